//! Keys of decimal numbers of any length: bytes that compare as the numbers do, exactly.
//!
//! A number is 0.d1d2d3... x 10^e with a first digit that is not zero. Its key is a byte for the
//! sign, the exponent, and the digits with a byte below all digits behind them; of negative numbers
//! all that is inverted.

const NEGATIVE: u8 = 0;
const ZERO: u8 = 1;
const POSITIVE: u8 = 2;

/// A decimal number as its text has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecimalText<'a> {
    is_negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> DecimalText<'a> {
    /// The number that a field begins with, behind blanks, as GNU sort's `-n` takes it: without an
    /// exponent, and 0 if there is none.
    #[must_use]
    pub fn beginning(field: &'a [u8]) -> Self {
        let blanks = field.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
        let text = &field[blanks.count()..];
        let unsigned = text.strip_prefix(b"-");
        let (whole, rest) = digits(unsigned.unwrap_or(text));
        let fraction = rest
            .strip_prefix(b".")
            .map_or(&[][..], |rest| digits(rest).0);
        Self {
            is_negative: unsigned.is_some(),
            whole,
            fraction,
            exponent: 0,
        }
    }

    /// A number as JSON has it; `None` if its exponent is beyond all use.
    #[must_use]
    pub fn of_json(text: &'a [u8]) -> Option<Self> {
        let number = Self::beginning(text);
        let Some(at) = memchr::memchr2(b'e', b'E', text) else {
            return Some(number);
        };
        let exponent = std::str::from_utf8(&text[at + 1..]).ok()?;
        Some(Self {
            exponent: exponent.parse::<i32>().ok()?.into(),
            ..number
        })
    }

    /// Appends the key, each of whose bytes is `inverted` (0 or 255) for descending order.
    pub fn push_key(self, inverted: u8, to: &mut Vec<u8>) {
        let whole = without_leading_zeros(self.whole);
        let mut fraction = self.fraction;
        let mut exponent = self.exponent + whole.len() as i64;
        if whole.is_empty() {
            fraction = without_leading_zeros(fraction);
            exponent -= (self.fraction.len() - fraction.len()) as i64;
        }
        let digits = || whole.iter().chain(fraction);
        let zeros = digits().rev().take_while(|&&digit| digit == b'0').count();
        let count = whole.len() + fraction.len() - zeros;
        if count == 0 {
            to.push(ZERO ^ inverted);
            return;
        }
        to.push(inverted ^ if self.is_negative { NEGATIVE } else { POSITIVE });
        let inverted = inverted ^ if self.is_negative { u8::MAX } else { 0 };
        let exponent = (exponent as u64 ^ 1 << 63).to_be_bytes();
        let key = exponent.iter().chain(digits().take(count)).chain([&0]);
        to.extend(key.map(|byte| byte ^ inverted));
    }
}

/// The digits that a text begins with, and what is behind them.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at(count)
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    &digits[zeros..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> Vec<u8> {
        let mut key = Vec::new();
        DecimalText::of_json(text.as_bytes())
            .expect("a small exponent")
            .push_key(0, &mut key);
        key
    }

    proptest! {
        #[test]
        fn keys_compare_as_numbers(
            numbers in prop::collection::vec((any::<i64>(), -400_i32..400, 0_usize..3), 2..3),
        ) {
            // Twice the same number, in two notations, is equal; others are as 128-bit numbers say.
            let text = |&(number, exponent, zeros): &(i64, i32, usize)| {
                format!("{number}.{}e{exponent}", "0".repeat(zeros + 1))
            };
            let shifted = |&(number, exponent, _): &(i64, i32, usize)| {
                format!("{number}00e{}", exponent - 2)
            };
            prop_assert_eq!(key(&text(&numbers[0])), key(&shifted(&numbers[0])));
            let same = (numbers[1].0, numbers[0].1, numbers[1].2);
            let expected = numbers[0].0.cmp(&numbers[1].0);
            prop_assert_eq!(key(&text(&numbers[0])).cmp(&key(&text(&same))), expected);
        }
    }

    #[test]
    fn the_order_is_that_of_the_numbers() {
        let ascending = [
            "-1e400",
            "-18446744073709551617",
            "-18446744073709551616",
            "-2",
            "-1.50",
            "-1.5e-3",
            "0",
            "1e-400",
            "0.001",
            "0.0011",
            "0.1",
            "1",
            "1.0000000000000000000001",
            "9",
            "10",
            "99.9",
            "100",
            "123456789012345678901234567890",
            "1e400",
        ];
        for pair in ascending.windows(2) {
            assert!(key(pair[0]) < key(pair[1]), "{pair:?}");
        }
        assert_eq!(key("-0.00"), key("0"));
        assert_eq!(key("00012.500"), key("12.5"));
        assert_eq!(DecimalText::of_json(b"1e99999999999"), None);
    }

    #[test]
    fn a_field_begins_with_its_number() {
        for (field, number) in [(" \t-12.5x", "-12.5"), ("x", "0"), ("1e5", "1"), ("", "0")] {
            let mut found = Vec::new();
            DecimalText::beginning(field.as_bytes()).push_key(0, &mut found);
            assert_eq!(found, key(number), "{field}");
        }
    }
}
