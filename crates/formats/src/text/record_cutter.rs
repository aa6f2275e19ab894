//! Cuts splits of a file into whole records, in whatever order splits come.
//!
//! A newline ends a record unless it is within quotes. Whether a split begins within quotes is the
//! parity of all quotes before it, so each split's quotes are counted first; a split that comes
//! before its predecessors is kept until these are counted. Nobody ever waits. What is before the
//! first and behind the last newline of a split belongs to records that span splits: these pieces
//! are kept until all pieces of a record are there.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// The pieces of a file that are known, but not yet records.
#[derive(Debug)]
pub struct RecordCutter {
    quote: Option<u8>,
    splits: usize,
    most_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether each split begins within quotes, as far as all before it are counted.
    begins_quoted: Vec<bool>,
    /// Splits that are counted, but not all before them: their bytes, and the parity of their
    /// quotes.
    early: BTreeMap<usize, (Bytes, bool)>,
    /// What each split has at its ends.
    ends: BTreeMap<usize, Ends>,
}

/// The ends of a split.
#[derive(Debug)]
enum Ends {
    /// It ends records: what is before the first newline, with it, and behind the last, and where
    /// that begins.
    Across {
        head: Bytes,
        tail: Bytes,
        tail_at: usize,
    },
    /// It lies within one record.
    Within(Bytes),
}

/// Whole records, each with its newline, end to end. The last record of a file may have none.
#[derive(Debug, PartialEq, Eq)]
pub struct WholeRecords {
    /// The number of the split in which they begin.
    pub split: usize,
    /// Where they begin in it.
    pub at: usize,
    /// The records: several of one split, or one that spans splits.
    pub bytes: Bytes,
}

/// Why a record is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutError {
    /// It is longer than it may be.
    TooLong {
        /// The number of the split that it begins in.
        split: usize,
        /// How many bytes of it are known.
        bytes: usize,
    },
    /// The file ends within its quotes.
    Unclosed {
        /// The number of the split that it begins in.
        split: usize,
        /// Where it begins in it.
        at: usize,
    },
}

impl RecordCutter {
    /// Cuts a file of so many splits; a record has `most_bytes` bytes at most. Newlines between
    /// `quote`s end no record.
    #[must_use]
    pub fn new(splits: usize, quote: Option<u8>, most_bytes: usize) -> Self {
        Self {
            quote,
            splits,
            most_bytes,
            state: Mutex::new(State {
                begins_quoted: vec![false],
                ..State::default()
            }),
        }
    }

    /// Takes a split, of which there is each once; gives the records that are whole now.
    ///
    /// # Errors
    /// A record that is too long, or that a quote has no end in.
    pub fn records_of(&self, split: usize, bytes: Bytes) -> Result<Vec<WholeRecords>, CutError> {
        let mut whole = Vec::new();
        for (split, bytes, is_quoted) in self.ready(split, bytes) {
            let (ends, records) = self.ends_of(bytes, is_quoted);
            whole.extend(records.map(|(at, bytes)| WholeRecords { split, at, bytes }));
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.ends.insert(split, ends);
            for first in self.joinable(&state, split) {
                whole.extend(self.join(&mut state, first)?);
            }
        }
        Ok(whole)
    }

    /// The splits of which it is known now whether they begin within quotes.
    fn ready(&self, split: usize, bytes: Bytes) -> Vec<(usize, Bytes, bool)> {
        let Some(quote) = self.quote else {
            return vec![(split, bytes, false)];
        };
        let is_odd = has_odd_quotes(&bytes, quote);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.early.insert(split, (bytes, is_odd));
        let mut ready = Vec::new();
        loop {
            let next = state.begins_quoted.len() - 1;
            let Some((bytes, is_odd)) = state.early.remove(&next) else {
                return ready;
            };
            let is_quoted = state.begins_quoted[next];
            state.begins_quoted.push(is_quoted ^ is_odd);
            ready.push((next, bytes, is_quoted));
        }
    }

    /// The ends of a split, and its whole records with the place where they begin.
    fn ends_of(&self, bytes: Bytes, is_quoted: bool) -> (Ends, Option<(usize, Bytes)>) {
        let newline = match self.quote {
            None => memchr::memchr(b'\n', &bytes),
            Some(quote) => newline_outside(&bytes, quote, &mut { is_quoted }),
        };
        let Some(first) = newline else {
            return (Ends::Within(Bytes::copy_from_slice(&bytes)), None);
        };
        let last = match self.quote {
            None => memchr::memrchr(b'\n', &bytes),
            Some(quote) => last_newline(&bytes, quote, is_quoted ^ has_odd_quotes(&bytes, quote)),
        };
        let last = last.unwrap_or(first);
        let ends = Ends::Across {
            head: Bytes::copy_from_slice(&bytes[..=first]),
            tail: Bytes::copy_from_slice(&bytes[last + 1..]),
            tail_at: last + 1,
        };
        (
            ends,
            (last > first).then(|| (first + 1, bytes.slice(first + 1..=last))),
        )
    }

    /// Where records may be whole now that a split's ends are known: the splits that they begin
    /// in, or the file's beginning (`None`).
    fn joinable(&self, state: &State, split: usize) -> Vec<Option<usize>> {
        let before = self.beginning(state, split);
        match state.ends.get(&split) {
            Some(Ends::Across { .. }) => before.into_iter().chain([Some(split)]).collect(),
            _ => before.into_iter().collect(),
        }
    }

    /// The split in which the record begins that a split begins with; not if a split is missing.
    fn beginning(&self, state: &State, split: usize) -> Option<Option<usize>> {
        let mut at = split;
        loop {
            let Some(before) = at.checked_sub(1) else {
                return Some(None);
            };
            match state.ends.get(&before)? {
                Ends::Across { .. } => return Some(Some(before)),
                Ends::Within(_) => at = before,
            }
        }
    }

    /// The record that begins behind the last newline of split `first`, if all of it is there; its
    /// pieces are forgotten.
    fn join(
        &self,
        state: &mut State,
        first: Option<usize>,
    ) -> Result<Option<WholeRecords>, CutError> {
        let (mut record, mut at) = (Vec::new(), 0);
        if let Some(Ends::Across { tail, tail_at, .. }) =
            first.and_then(|first| state.ends.get(&first))
        {
            record.extend_from_slice(tail);
            at = *tail_at;
        }
        let begin = first.map_or(0, |first| first + 1);
        let (mut end, mut has_newline) = (begin, false);
        while end < self.splits {
            let piece = match state.ends.get(&end) {
                None => return self.check(first, record.len()).map(|()| None),
                Some(Ends::Within(piece) | Ends::Across { head: piece, .. }) => piece,
            };
            record.extend_from_slice(piece);
            self.check(first, record.len())?;
            end += 1;
            has_newline = matches!(state.ends.get(&(end - 1)), Some(Ends::Across { .. }));
            if has_newline {
                break;
            }
        }
        // Without one, it is the file's last record.
        if !has_newline && !record.is_empty() && state.begins_quoted.get(end) == Some(&true) {
            let split = first.unwrap_or(0);
            return Err(CutError::Unclosed { split, at });
        }
        if let Some(Ends::Across { tail, .. }) = first.and_then(|first| state.ends.get_mut(&first))
        {
            tail.clear();
        }
        for split in begin..end {
            if let Some(Ends::Within(piece) | Ends::Across { head: piece, .. }) =
                state.ends.get_mut(&split)
            {
                piece.clear();
            }
        }
        Ok((!record.is_empty()).then(|| WholeRecords {
            split: first.unwrap_or(0),
            at,
            bytes: record.into(),
        }))
    }

    fn check(&self, first: Option<usize>, bytes: usize) -> Result<(), CutError> {
        match bytes > self.most_bytes {
            true => Err(CutError::TooLong {
                split: first.unwrap_or(0),
                bytes,
            }),
            false => Ok(()),
        }
    }
}

/// The first newline that is not within quotes; `is_quoted` tells whether the bytes begin within
/// them, and then whether what was looked at ends so.
pub fn newline_outside(bytes: &[u8], quote: u8, is_quoted: &mut bool) -> Option<usize> {
    for at in memchr::memchr2_iter(b'\n', quote, bytes) {
        if bytes[at] == quote {
            *is_quoted = !*is_quoted;
        } else if !*is_quoted {
            return Some(at);
        }
    }
    None
}

/// Whether there is an odd number of quotes: then the bytes end within quotes, or begin so.
#[must_use]
pub fn has_odd_quotes(bytes: &[u8], quote: u8) -> bool {
    memchr::memchr_iter(quote, bytes).count() % 2 == 1
}

/// The last newline that is not within quotes, if the bytes end within quotes or not.
fn last_newline(bytes: &[u8], quote: u8, mut is_quoted: bool) -> Option<usize> {
    for at in memchr::memrchr2_iter(b'\n', quote, bytes) {
        if bytes[at] == quote {
            is_quoted = !is_quoted;
        } else if !is_quoted {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Records by the definition, one byte at a time.
    fn records(text: &[u8], quote: Option<u8>) -> Vec<Vec<u8>> {
        let (mut records, mut is_quoted) = (vec![Vec::new()], false);
        for &byte in text {
            records.last_mut().expect("one").push(byte);
            is_quoted ^= Some(byte) == quote;
            if byte == b'\n' && !is_quoted {
                records.push(Vec::new());
            }
        }
        records.retain(|record| !record.is_empty());
        records
    }

    proptest! {
        #[test]
        fn records_are_the_same_however_a_file_is_cut(
            text in prop::collection::vec(prop::sample::select(b"ab\n\"".to_vec()), 0..80),
            ends in prop::collection::vec(0_usize..80, 0..8),
            order in any::<u64>(),
            has_quotes in any::<bool>(),
        ) {
            let quote = has_quotes.then_some(b'"');
            let is_closed = text.iter().filter(|&&byte| Some(byte) == quote).count() % 2 == 0;
            prop_assume!(is_closed);
            let mut ends: Vec<usize> = ends.into_iter().map(|end| end.min(text.len())).collect();
            ends.extend([0, text.len()]);
            ends.sort_unstable();
            let text = Bytes::from(text);
            let splits: Vec<Bytes> = ends.windows(2).map(|pair| text.slice(pair[0]..pair[1])).collect();
            let cutter = RecordCutter::new(splits.len(), quote, 1000);
            let mut numbers: Vec<usize> = (0..splits.len()).collect();
            numbers.sort_by_key(|number| order.rotate_left(7 * *number as u32) % 13);
            let mut got = Vec::new();
            for number in numbers {
                for records_found in cutter.records_of(number, splits[number].clone()).expect("short records") {
                    let begin = ends[records_found.split] + records_found.at;
                    prop_assert_eq!(&text[begin..begin + records_found.bytes.len()], &records_found.bytes[..]);
                    got.extend(records(&records_found.bytes, quote));
                }
            }
            let mut expected = records(&text, quote);
            got.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn a_quote_without_an_end_is_told_when_all_is_there() {
        let cutter = RecordCutter::new(2, Some(b'"'), 100);
        let last = Bytes::from_static(b"c\n\"\"\n");
        assert_eq!(cutter.records_of(1, last), Ok(vec![]));
        let why = CutError::Unclosed { split: 0, at: 2 };
        assert_eq!(
            cutter.records_of(0, Bytes::from_static(b"a\n\"b\n")),
            Err(why)
        );
    }

    #[test]
    fn a_record_that_is_too_long_is_told_as_soon_as_it_is() {
        let cutter = RecordCutter::new(10, None, 5);
        let first = WholeRecords {
            split: 0,
            at: 0,
            bytes: Bytes::from_static(b"a\n"),
        };
        assert_eq!(
            cutter.records_of(0, Bytes::from_static(b"a\nbcd")),
            Ok(vec![first])
        );
        let why = CutError::TooLong { split: 0, bytes: 6 };
        assert_eq!(cutter.records_of(1, Bytes::from_static(b"efg")), Err(why));
    }
}
