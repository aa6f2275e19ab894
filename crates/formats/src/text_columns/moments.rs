//! Dates, times, timestamps and durations as ISO 8601 has them.
//!
//! Years have four digits, or a sign and more. A fraction of a second, if there is one, has as
//! many digits as its unit. Days are counted from 1970 by Hinnant's algorithms ("chrono-Compatible Low-Level Date
//! Algorithms").

use std::io::Write as _;

use arrow_schema::TimeUnit;

const DAY_SECONDS: i64 = 86_400;
const NANOSECONDS: i64 = 1_000_000_000;

/// Units in a second.
pub fn in_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => NANOSECONDS,
    }
}

/// Reads `YYYY-MM-DD` as days since 1970.
pub fn parse_date(text: &[u8]) -> Option<i64> {
    let mut rest = text;
    let day = date(&mut rest)?;
    rest.is_empty().then_some(day)
}

/// Reads `HH:MM`, with seconds and their fraction if there are any, as units since midnight.
pub fn parse_time(text: &[u8], unit: TimeUnit) -> Option<i64> {
    let mut rest = text;
    let (seconds, fraction) = time(&mut rest)?;
    let units = seconds * in_second(unit) + in_units(fraction, unit)?;
    rest.is_empty().then_some(units)
}

/// Reads a date, and a time behind `T` or a blank if there is one, as units since 1970. With a zone,
/// `Z` or an offset has to follow; without, none may.
pub fn parse_timestamp(text: &[u8], unit: TimeUnit, has_zone: bool) -> Option<i64> {
    let mut rest = text;
    let day = date(&mut rest)?;
    let (mut seconds, mut fraction) = (0, 0);
    if let Some((b'T' | b't' | b' ', behind)) = rest.split_first() {
        rest = behind;
        (seconds, fraction) = time(&mut rest)?;
    }
    if has_zone {
        seconds -= zone(&mut rest)?;
    }
    let units = (i128::from(day) * i128::from(DAY_SECONDS) + i128::from(seconds))
        * i128::from(in_second(unit))
        + i128::from(in_units(fraction, unit)?);
    let units = i64::try_from(units).ok()?;
    rest.is_empty().then_some(units)
}

/// Reads seconds as `PT1.5S`, or a number of units.
pub fn parse_duration(text: &[u8], unit: TimeUnit) -> Option<i64> {
    let (is_negative, amount) = match text.strip_prefix(b"-") {
        Some(amount) => (true, amount),
        None => (false, text),
    };
    let units = match amount.strip_prefix(b"PT") {
        None => whole_number(amount)?,
        Some(seconds) => {
            let mut rest = seconds.strip_suffix(b"S")?;
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let seconds = whole_number(&rest[..digits])?;
            rest = &rest[digits..];
            let fraction = fraction_of_second(&mut rest)?;
            let units =
                seconds * i128::from(in_second(unit)) + i128::from(in_units(fraction, unit)?);
            rest.is_empty().then_some(units)?
        }
    };
    i64::try_from(if is_negative { -units } else { units }).ok()
}

/// Appends the date of a day.
pub fn print_date(day: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil(day);
    let year_text = match year {
        0..=9999 => write!(out, "{year:04}"),
        _ => write!(out, "{year:+05}"),
    };
    year_text
        .and_then(|()| write!(out, "-{month:02}-{day:02}"))
        .expect("memory takes all");
}

/// Appends a time of day.
pub fn print_time(units: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    let (seconds, rest) = (
        units.div_euclid(in_second(unit)),
        units.rem_euclid(in_second(unit)),
    );
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    write!(out, "{hour:02}:{minute:02}:{second:02}").expect("memory takes all");
    print_fraction(rest, unit, out);
}

/// Appends a timestamp, with `Z` if it has a zone: it is counted in UTC, whichever the zone.
pub fn print_timestamp(units: i64, unit: TimeUnit, has_zone: bool, out: &mut Vec<u8>) {
    let in_day = DAY_SECONDS * in_second(unit);
    print_date(units.div_euclid(in_day), out);
    out.push(b'T');
    print_time(units.rem_euclid(in_day), unit, out);
    if has_zone {
        out.push(b'Z');
    }
}

/// Appends a duration as `PT1.5S`.
pub fn print_duration(units: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    let amount = units.unsigned_abs();
    let in_second = in_second(unit).unsigned_abs();
    let sign = if units < 0 { "-" } else { "" };
    write!(out, "{sign}PT{}", amount / in_second).expect("memory takes all");
    print_fraction((amount % in_second) as i64, unit, out);
    out.push(b'S');
}

fn print_fraction(units: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    if units > 0 {
        let places = in_second(unit).ilog10() as usize;
        write!(out, ".{units:0places$}").expect("memory takes all");
    }
}

/// A fraction in nanoseconds as units; `None` if it is finer.
fn in_units(nanoseconds: i64, unit: TimeUnit) -> Option<i64> {
    let in_unit = NANOSECONDS / in_second(unit);
    (nanoseconds % in_unit == 0).then_some(nanoseconds / in_unit)
}

fn date(rest: &mut &[u8]) -> Option<i64> {
    let sign = match rest.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => 0,
    };
    if sign != 0 {
        *rest = &rest[1..];
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(4..=12).contains(&digits) || (sign == 0 && digits > 4) {
        return None;
    }
    let year = i64::try_from(whole_number(&rest[..digits])?).ok()? * if sign < 0 { -1 } else { 1 };
    *rest = &rest[digits..];
    let month = behind(rest, b'-')?;
    let day = behind(rest, b'-')?;
    let is_date = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    is_date.then(|| day_number(year, month, day))
}

/// Seconds of the day, and nanoseconds.
fn time(rest: &mut &[u8]) -> Option<(i64, i64)> {
    let hour = two_digits(rest)?;
    let minute = behind(rest, b':')?;
    let mut seconds = hour * 3600 + minute * 60;
    let mut fraction = 0;
    if rest.first() == Some(&b':') {
        let second = behind(rest, b':')?;
        seconds += second;
        fraction = fraction_of_second(rest)?;
        if second > 59 {
            return None;
        }
    }
    (hour < 24 && minute < 60).then_some((seconds, fraction))
}

/// Nanoseconds of what is behind a point, if there is one.
fn fraction_of_second(rest: &mut &[u8]) -> Option<i64> {
    let Some((b'.' | b',', behind)) = rest.split_first() else {
        return Some(0);
    };
    let digits = behind
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (fraction, others) = behind.split_at(digits);
    *rest = others;
    let (significant, finer) = fraction.split_at(digits.min(9));
    if digits == 0 || finer.iter().any(|&digit| digit != b'0') {
        return None;
    }
    let nanoseconds = significant
        .iter()
        .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    Some(nanoseconds * 10_i64.pow(9 - significant.len() as u32))
}

/// Seconds east of UTC.
fn zone(rest: &mut &[u8]) -> Option<i64> {
    let (sign, behind_sign) = rest.split_first()?;
    *rest = behind_sign;
    let east = match sign {
        b'Z' | b'z' => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = two_digits(rest)?;
    let minutes = match rest.first() {
        None => 0,
        Some(b':') => behind(rest, b':')?,
        Some(_) => two_digits(rest)?,
    };
    (hours < 24 && minutes < 60).then_some(east * (hours * 3600 + minutes * 60))
}

fn behind(rest: &mut &[u8], mark: u8) -> Option<i64> {
    *rest = rest.strip_prefix(&[mark])?;
    two_digits(rest)
}

fn two_digits(rest: &mut &[u8]) -> Option<i64> {
    let (&[tens, ones], others) = rest.split_first_chunk::<2>()?;
    *rest = others;
    let both = tens.is_ascii_digit() && ones.is_ascii_digit();
    both.then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
}

fn whole_number(digits: &[u8]) -> Option<i128> {
    let is_number =
        !digits.is_empty() && digits.len() <= 19 && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        digits
            .iter()
            .fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0'))
    })
}

fn days_in(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01, in the Gregorian calendar.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the day of a leap year comes last.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day.
fn civil(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, day_of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNITS: [TimeUnit; 4] = [
        TimeUnit::Second,
        TimeUnit::Millisecond,
        TimeUnit::Microsecond,
        TimeUnit::Nanosecond,
    ];

    #[test]
    fn timestamps_are_exact_or_refused() {
        use TimeUnit::{Millisecond, Nanosecond, Second};
        for (text, unit, has_zone, wanted) in [
            ("1970-01-01", Second, false, Some(0)),
            ("1970-01-02T00:00", Second, false, Some(86_400)),
            ("2000-02-29 12:34:56", Second, false, Some(951_827_696)),
            ("2001-02-29", Second, false, None),
            ("1969-12-31T23:59:59.5", Millisecond, false, Some(-500)),
            ("1970-01-01T00:00:00.5", Second, false, None),
            ("1970-01-01T00:00:00.500", Millisecond, false, Some(500)),
            ("1970-01-01T00:00:00.0005", Millisecond, false, None),
            ("1970-01-01T00:00:00.000000001", Nanosecond, false, Some(1)),
            ("1970-01-01T01:00:00+01:00", Second, true, Some(0)),
            ("1970-01-01T01:00:00-0130", Second, true, Some(9000)),
            ("1970-01-01T01:00:00Z", Second, true, Some(3600)),
            ("1970-01-01T01:00:00", Second, true, None),
            ("1970-01-01T01:00:00Z", Second, false, None),
            ("1970-01-01T24:00", Second, false, None),
            ("1970-01-01T23:59:60", Second, false, None),
            ("1970-13-01", Second, false, None),
            ("1970-1-1", Second, false, None),
            ("9999-12-31T23:59:59", Nanosecond, false, None),
            ("+12345-01-01", Second, false, Some(327_403_382_400)),
            ("70-01-01", Second, false, None),
            ("1970-01-01x", Second, false, None),
            ("", Second, false, None),
        ] {
            let read = parse_timestamp(text.as_bytes(), unit, has_zone);
            assert_eq!(read, wanted, "{text}");
        }
        assert_eq!(parse_time(b"23:59:59.25", Millisecond), Some(86_399_250));
        assert_eq!(parse_duration(b"-PT1.5S", Millisecond), Some(-1500));
        assert_eq!(parse_duration(b"42", Millisecond), Some(42));
        assert_eq!(parse_duration(b"PT", Millisecond), None);
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(units in any::<i64>(), unit in 0_usize..4, has_zone in any::<bool>()) {
            let unit = UNITS[unit];
            let printed = |print: &dyn Fn(&mut Vec<u8>)| {
                let mut text = Vec::new();
                print(&mut text);
                text
            };
            let text = printed(&|out| print_timestamp(units, unit, has_zone, out));
            prop_assert_eq!(parse_timestamp(&text, unit, has_zone), Some(units));
            let text = printed(&|out| print_duration(units, unit, out));
            prop_assert_eq!(parse_duration(&text, unit), Some(units));
            let day = units % (1 << 40);
            let text = printed(&|out| print_date(day, out));
            prop_assert_eq!(parse_date(&text), Some(day));
            let time = units.rem_euclid(DAY_SECONDS * in_second(unit));
            let text = printed(&|out| print_time(time, unit, out));
            prop_assert_eq!(parse_time(&text, unit), Some(time));
        }
    }
}
