//! Decimals as text, exactly.

use std::io::Write as _;

use arrow_buffer::i256;

/// The most digits of a decimal.
const MOST_DIGITS: usize = 76;

/// Reads digits with a sign, a point or an exponent as a number of units of 10 to the power of
/// `-scale`; `None` if it is no number, has more than `precision` digits, or is finer than a unit.
pub fn parse(text: &[u8], precision: u8, scale: i8) -> Option<i256> {
    let (is_negative, text) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let (number, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        None => (text, 0),
        Some(at) => {
            let exponent = std::str::from_utf8(&text[at + 1..]).ok()?;
            (&text[..at], exponent.parse::<i16>().ok()?)
        }
    };
    let (whole, fraction) = match memchr::memchr(b'.', number) {
        None => (number, &[][..]),
        Some(at) => (&number[..at], &number[at + 1..]),
    };
    let mut digits = whole.iter().chain(fraction).copied();
    if whole.len() + fraction.len() == 0 || !digits.clone().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    // Units for each digit: behind `units` digits nothing but zeros may come.
    let units = whole.len() as i64 + i64::from(exponent) + i64::from(scale);
    let digits_wanted = usize::try_from(units).unwrap_or(0);
    let mut canonical = [b'0'; MOST_DIGITS + 1];
    let mut count = 0;
    let mut push = |digit: u8| {
        if count == 0 && digit == b'0' {
            return Some(());
        }
        count += 1;
        (count <= usize::from(precision).min(MOST_DIGITS)).then(|| canonical[count] = digit)
    };
    let mut read = 0;
    for digit in digits.by_ref().take(digits_wanted) {
        push(digit)?;
        read += 1;
    }
    if units < 0 || digits.clone().next().is_some() {
        if !digits.all(|digit| digit == b'0') {
            return None;
        }
    } else if count_of_significant(whole, fraction) > 0 {
        for _ in read..digits_wanted {
            push(b'0')?;
        }
    }
    let text = std::str::from_utf8(&canonical[..=count]).ok()?;
    let magnitude = match count {
        ..=38 => i256::from_i128(text.parse().ok()?),
        _ => i256::from_string(text)?,
    };
    Some(if is_negative { -magnitude } else { magnitude })
}

fn count_of_significant(whole: &[u8], fraction: &[u8]) -> usize {
    let digits = whole.iter().chain(fraction);
    digits.filter(|&&digit| digit != b'0').count()
}

/// Appends a number of units of 10 to the power of `-scale`, with as many places as the scale.
pub fn print(units: i256, scale: i8, out: &mut Vec<u8>) {
    let text = match units.to_i128() {
        Some(units) => units.to_string(),
        None => units.to_string(),
    };
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    out.extend_from_slice(sign.as_bytes());
    match usize::try_from(scale) {
        Ok(0) => out.extend_from_slice(digits.as_bytes()),
        Ok(places) => {
            let padded = format!("{digits:0>width$}", width = places + 1);
            let (whole, fraction) = padded.split_at(padded.len() - places);
            write!(out, "{whole}.{fraction}").expect("memory takes all");
        }
        Err(_) if digits == "0" => out.push(b'0'),
        Err(_) => {
            out.extend_from_slice(digits.as_bytes());
            out.resize(out.len() + usize::from(scale.unsigned_abs()), b'0');
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn units(text: &str, precision: u8, scale: i8) -> Option<String> {
        parse(text.as_bytes(), precision, scale).map(|units| units.to_string())
    }

    #[test]
    fn numbers_are_exact_or_refused() {
        for (text, precision, scale, wanted) in [
            ("12.34", 10, 2, Some("1234")),
            ("-12.3", 10, 2, Some("-1230")),
            ("+.5", 10, 2, Some("50")),
            ("5.", 10, 0, Some("5")),
            ("0", 1, 0, Some("0")),
            ("-0.00", 3, 1, Some("0")),
            ("12.340", 4, 2, Some("1234")),
            ("12.345", 10, 2, None),
            ("1234.5", 4, 1, None),
            ("0001234.5", 5, 1, Some("12345")),
            ("1e3", 10, 2, Some("100000")),
            ("1.5E-1", 10, 2, Some("15")),
            ("1E-3", 10, 2, None),
            ("0E-30", 10, 2, Some("0")),
            ("0E+300", 10, 2, Some("0")),
            ("1e99", 38, 0, None),
            ("1200", 3, -2, Some("12")),
            ("1250", 3, -2, None),
            ("9e30000", 76, 0, None),
            ("", 10, 2, None),
            (".", 10, 2, None),
            ("-", 10, 2, None),
            ("1.2.3", 10, 2, None),
            ("1e", 10, 2, None),
            ("0x1", 10, 2, None),
        ] {
            assert_eq!(units(text, precision, scale).as_deref(), wanted, "{text}");
        }
        let most = "9".repeat(76);
        assert_eq!(units(&most, 76, 0), Some(most.clone()));
        assert_eq!(units(&format!("{most}0"), 76, 0), None);
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(
            high in any::<i128>(), low in any::<u128>(), shift in 0_u8..=255, scale in -5_i8..=76,
        ) {
            // Up to 76 digits, of any length.
            let number = i256::from_parts(low, high >> 6) >> shift;
            let mut text = Vec::new();
            print(number, scale, &mut text);
            let read = parse(&text, 76, scale);
            prop_assert_eq!(read.or(Some(number)), Some(number));
            prop_assert!(read.is_some() || number.to_string().trim_start_matches('-').len() > 76);
        }
    }
}
