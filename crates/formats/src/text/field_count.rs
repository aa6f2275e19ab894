//! How many fields a record has. Where there are quotes, eight bytes are looked at at once.
//!
//! In a word of eight bytes each is its highest bit. A byte is within quotes if an odd number of
//! them is before it, which three shifts tell for a whole word (Langdale and Lemire, "Parsing
//! gigabytes of JSON per second", 2019, section 3.1.1). Records with quotes elsewhere than around
//! fields are walked field by field.

use crate::text::fields::Dialect;

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHEST: u64 = ONES << 7;

impl Dialect {
    /// How many fields a record has, which comes without its newline.
    #[must_use]
    pub fn count_fields(&self, record: &[u8]) -> usize {
        let quote = self.quote;
        let Some(quote) = quote.filter(|&quote| memchr::memchr(quote, record).is_some()) else {
            return memchr::memchr_iter(self.delimiter, record).count() + 1;
        };
        let mut fields = QuotedFields::new(self.delimiter, quote);
        let (words, rest) = record.as_chunks();
        words.iter().for_each(|word| fields.see(*word));
        // What is behind the record is neither a delimiter nor a quote.
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        fields.see(last);
        match fields.is_misquoted || fields.within != 0 {
            true => self.walk_fields(record),
            false => fields.delimiters as usize + 1,
        }
    }
}

/// Counts the delimiters outside of quotes.
struct QuotedFields {
    delimiter: u64,
    quote: u64,
    delimiters: u64,
    /// All bits if what comes next is within quotes.
    within: u64,
    /// The first byte's bit if a quote can begin a field there, or be the second of two.
    may_begin: u64,
    /// Whether a quote begins anywhere else.
    is_misquoted: bool,
}

impl QuotedFields {
    fn new(delimiter: u8, quote: u8) -> Self {
        Self {
            delimiter: ONES * u64::from(delimiter),
            quote: ONES * u64::from(quote),
            delimiters: 0,
            within: 0,
            may_begin: 0x80,
            is_misquoted: false,
        }
    }

    fn see(&mut self, bytes: [u8; 8]) {
        let word = u64::from_le_bytes(bytes);
        let delimiters = equal_bytes(word, self.delimiter);
        let quotes = equal_bytes(word, self.quote);
        if quotes | self.within == 0 {
            self.delimiters += count(delimiters);
            self.may_begin = delimiters >> 56;
            return;
        }
        let mut parity = quotes ^ (quotes << 8);
        parity ^= parity << 16;
        parity ^= parity << 32;
        parity ^= self.within & HIGHEST;
        let before = (parity << 8) | (self.within & 0x80);
        let may_begin = ((delimiters | quotes) << 8) | self.may_begin;
        self.is_misquoted |= quotes & !before & !may_begin != 0;
        self.delimiters += count(delimiters & !parity);
        self.within = 0_u64.wrapping_sub(parity >> 63);
        self.may_begin = (delimiters | quotes) >> 56;
    }
}

/// The bytes of a word that are equal to those of another.
fn equal_bytes(word: u64, other: u64) -> u64 {
    let differing = word ^ other;
    !(((differing & !HIGHEST) + !HIGHEST) | differing) & HIGHEST
}

fn count(bytes: u64) -> u64 {
    (bytes >> 7).wrapping_mul(ONES) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every text of these bytes, up to eleven long: records that cross a word, in all ways.
    #[test]
    fn words_count_what_fields_are() {
        let dialect = Dialect {
            delimiter: b',',
            quote: Some(b'"'),
        };
        for length in 0..=11 {
            for number in 0..3_usize.pow(length) {
                let digit = |place| number / 3_usize.pow(place) % 3;
                let record: Vec<u8> = (0..length).map(|place| b"a,\""[digit(place)]).collect();
                let fields = dialect.walk_fields(&record);
                let text = String::from_utf8_lossy(&record);
                assert_eq!(dialect.count_fields(&record), fields, "{text}");
            }
        }
    }
}
