//! Fields of a record: between delimiters, with or without quotes.

/// The beginning of a value, to name it in a message.
#[must_use]
pub fn beginning_of(value: &[u8]) -> String {
    const SHOWN: usize = 80;
    let shown = String::from_utf8_lossy(&value[..value.len().min(SHOWN)]);
    let more = if value.len() > SHOWN { "..." } else { "" };
    format!("{shown:?}{more}")
}

/// How a record is divided into fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The byte between fields.
    pub delimiter: u8,
    /// The byte around a field that may have delimiters, newlines, and doubled quotes.
    pub quote: Option<u8>,
}

/// A field: its bytes within quotes if it has any, and whether quotes are doubled there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether it was quoted; an empty field that was not is null.
    pub is_quoted: bool,
    /// Whether each quote in it stands for two.
    pub(super) has_quotes: Option<u8>,
}

impl Field<'_> {
    /// The value: the bytes with each doubled quote once.
    pub fn value<'a>(&'a self, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let Some(quote) = self.has_quotes else {
            return self.bytes;
        };
        scratch.clear();
        let mut rest = self.bytes;
        while let Some(at) = memchr::memchr(quote, rest) {
            scratch.extend_from_slice(&rest[..=at]);
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        scratch.extend_from_slice(rest);
        scratch
    }
}

impl Dialect {
    /// The fields of a record in these places, which ascend; `None` for one that it lacks. The
    /// record comes without its newline.
    pub fn fields<'a>(
        &self,
        record: &'a [u8],
        places: &[usize],
        each: impl FnMut(usize, Option<Field<'a>>),
    ) {
        fields_of(record, places, |rest| self.first_field(rest), each);
    }

    /// How many fields a record has, one after the other.
    pub(super) fn walk_fields(&self, record: &[u8]) -> usize {
        let (mut count, mut rest) = (0, Some(record));
        while let Some(text) = rest {
            rest = self.first_field(text).1;
            count += 1;
        }
        count
    }

    /// Whether there are quotes that are neither around a field nor doubled within one.
    #[must_use]
    pub fn is_misquoted(&self, record: &[u8]) -> bool {
        let Some(quote) = self.quote else {
            return false;
        };
        let mut rest = Some(record);
        while let Some(text) = rest {
            let (field, behind) = self.first_field(text);
            let end = match field.is_quoted {
                true => field.bytes.len() + 2,
                false => field.bytes.len(),
            };
            let is_whole =
                end <= text.len() && text.get(end).is_none_or(|&next| next == self.delimiter);
            if !is_whole || (!field.is_quoted && memchr::memchr(quote, field.bytes).is_some()) {
                return true;
            }
            rest = behind;
        }
        false
    }

    /// The first field, and what is behind its delimiter.
    fn first_field<'a>(&self, record: &'a [u8]) -> (Field<'a>, Option<&'a [u8]>) {
        if let Some(quote) = self.quote
            && record.first() == Some(&quote)
        {
            return self.quoted_field(quote, record);
        }
        let end = memchr::memchr(self.delimiter, record);
        let field = Field {
            bytes: &record[..end.unwrap_or(record.len())],
            is_quoted: false,
            has_quotes: None,
        };
        (field, end.map(|end| &record[end + 1..]))
    }

    fn quoted_field<'a>(&self, quote: u8, record: &'a [u8]) -> (Field<'a>, Option<&'a [u8]>) {
        let (mut at, mut has_quotes) = (1, false);
        let end = loop {
            match memchr::memchr(quote, &record[at..]) {
                None => break record.len(),
                Some(found) if record.get(at + found + 1) == Some(&quote) => {
                    has_quotes = true;
                    at += found + 2;
                }
                Some(found) => break at + found,
            }
        };
        let field = Field {
            bytes: &record[1..end.max(1)],
            is_quoted: true,
            has_quotes: has_quotes.then_some(quote),
        };
        // Anything between the quote and the delimiter is not part of the field.
        let behind = record.get(end + 1..).unwrap_or_default();
        let next = memchr::memchr(self.delimiter, behind);
        (field, next.map(|next| &behind[next + 1..]))
    }
}

/// The fields between blanks, as many as there are, in these places; as `Dialect::fields`.
pub fn words<'a>(record: &'a [u8], places: &[usize], each: impl FnMut(usize, Option<Field<'a>>)) {
    fields_of(record, places, first_word, each);
}

fn fields_of<'a>(
    record: &'a [u8],
    places: &[usize],
    first_field: impl Fn(&'a [u8]) -> (Field<'a>, Option<&'a [u8]>),
    mut each: impl FnMut(usize, Option<Field<'a>>),
) {
    let mut wanted = places.iter().copied().enumerate().peekable();
    let (mut rest, mut at) = (Some(record), 0);
    while let Some(&(_, place)) = wanted.peek() {
        let field = rest.map(&first_field);
        // A field may be part of the key more than once.
        while let Some((number, _)) = wanted.next_if(|wanted| wanted.1 == at) {
            each(number, field.map(|(field, _)| field));
        }
        rest = field.and_then(|(_, behind)| behind);
        at += 1;
        if rest.is_none() && at > place {
            at = wanted.peek().map_or(at, |wanted| wanted.1);
        }
    }
}

/// What is between blanks, and what is behind it from the next blank on.
fn first_word(record: &[u8]) -> (Field<'_>, Option<&[u8]>) {
    let blanks = record
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'));
    let word = &record[blanks.count()..];
    let end = memchr::memchr2(b' ', b'\t', word);
    let field = Field {
        bytes: &word[..end.unwrap_or(word.len())],
        is_quoted: false,
        has_quotes: None,
    };
    (field, end.map(|end| &word[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: Dialect = Dialect {
        delimiter: b',',
        quote: Some(b'"'),
    };

    fn values(record: &str, places: &[usize]) -> Vec<Option<String>> {
        let mut values = vec![None; places.len()];
        CSV.fields(record.as_bytes(), places, |number, field| {
            let mut scratch = Vec::new();
            values[number] = field
                .map(|field| String::from_utf8(field.value(&mut scratch).to_vec()).expect("text"));
        });
        values
    }

    #[test]
    fn fields_with_and_without_quotes() {
        let record = r#"a,"b,""c""",,"d
e",f"#;
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            values(record, &[0, 1, 2, 3, 4, 5]),
            [
                some("a"),
                some("b,\"c\""),
                some(""),
                some("d\ne"),
                some("f"),
                None
            ]
        );
        assert_eq!(CSV.count_fields(record.as_bytes()), 5);
        assert_eq!(values(record, &[1, 4]), [some("b,\"c\""), some("f")]);
        assert_eq!(values("", &[0, 1]), [some(""), None]);
        assert_eq!(values("\"", &[0]), [some("")]);
        assert_eq!(values("a,", &[0, 1, 2]), [some("a"), some(""), None]);
        assert_eq!(
            ["", "a,", "a\"b,c", "\"a,b\","].map(|record| CSV.count_fields(record.as_bytes())),
            [1, 2, 2, 2]
        );
    }

    #[test]
    fn quotes_are_around_fields_or_doubled_within_them() {
        for record in [
            "a,b",
            "",
            "\"\"",
            "a,\"b\nc\"",
            "\"a,\"\"\",b",
            "\"\"\"\",x",
        ] {
            assert!(!CSV.is_misquoted(record.as_bytes()), "{record}");
        }
        for record in ["a\"b\nc\"", "\"a\"b,c", "a,\"b", "\"", "a,5\" x\nb,6\" y"] {
            assert!(CSV.is_misquoted(record.as_bytes()), "{record}");
        }
    }

    #[test]
    fn fields_between_blanks() {
        let mut found = Vec::new();
        words(b" \tone  two\tthree ", &[0, 1, 2, 3, 4], |number, field| {
            found.push((number, field.map(|field| field.bytes)));
        });
        let expected = [
            Some(&b"one"[..]),
            Some(b"two"),
            Some(b"three"),
            Some(b""),
            None,
        ];
        assert_eq!(found, expected.into_iter().enumerate().collect::<Vec<_>>());
    }
}
