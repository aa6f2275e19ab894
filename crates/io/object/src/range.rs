//! One range of an object, straight into its place: by one request after another, or two at once.
//!
//! A range is filled from its beginning up to its *cursor*. A request asks for what is missing when
//! it begins, so its bytes either are there already, or continue at the cursor. Two racing requests
//! need no memory of their own: each advances the cursor, one at a time, since the waiting thread
//! drives both, and what one has brought is not lost if the other is faster. They bring the same
//! bytes, since both ask for the object of one ETag.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, Result as StoreResult};
use tokio::time::timeout;

use crate::counters::Counters;
use crate::error::generic;
use crate::hedging::HedgePolicy;
use crate::progress::Progress;

/// A requested range.
pub(crate) struct Range<'a> {
    pub store: &'a AmazonS3,
    pub key: Path,
    pub etag: Option<&'a str>,
    pub offset: u64,
    /// How often a short answer is continued.
    pub retries: usize,
    pub cursor: RefCell<Cursor<'a>>,
}

/// How far a range is filled.
pub(crate) struct Cursor<'a> {
    memory: &'a mut [u8],
    filled: usize,
    began: Instant,
    first_byte: Option<Duration>,
    progress: &'a Progress, // what is filled, of this range and others
}

impl<'a> Cursor<'a> {
    pub fn new(memory: &'a mut [u8], progress: &'a Progress) -> Self {
        Self {
            memory,
            filled: 0,
            began: Instant::now(),
            first_byte: None,
            progress,
        }
    }

    /// Stores bytes for the place `at`, which is not beyond the cursor; returns where they end.
    fn take(&mut self, at: usize, part: &[u8]) -> usize {
        if self.first_byte.is_none() {
            let first_byte = self.began.elapsed();
            self.first_byte = Some(first_byte);
            self.progress.begun(first_byte);
        }
        let end = (at + part.len()).min(self.memory.len());
        if end > self.filled {
            self.memory[self.filled..end].copy_from_slice(&part[self.filled - at..end - at]);
            self.progress.add_bytes((end - self.filled) as u64);
            self.filled = end;
        }
        end
    }
}

impl Range<'_> {
    /// Fills the range; returns the time to the first byte. With a policy, a slow request is
    /// hedged.
    pub async fn get(
        &self,
        hedge_policy: Option<&HedgePolicy>,
        counts: &Counters,
    ) -> StoreResult<Option<Duration>> {
        match hedge_policy {
            Some(hedge_policy) if self.etag.is_some() => self.hedged(hedge_policy, counts).await?,
            _ => self.fill().await?,
        }
        Ok(self.cursor.borrow().first_byte)
    }

    async fn hedged(&self, hedge_policy: &HedgePolicy, counts: &Counters) -> StoreResult<()> {
        let (began, before) = (Instant::now(), counts.now());
        let len = self.cursor.borrow().memory.len();
        let mut first = pin!(self.fill());
        let early = match hedge_policy.begins(len) {
            Some(late) => timeout(late, first.as_mut()).await.ok(),
            None => Some(first.as_mut().await),
        };
        match early {
            Some(ended) => ended?,
            // A failed request is retried after a pause, which protects the store.
            None if counts.waits_since(before) && hedge_policy.grant(len) => {
                counts.hedged();
                either(first, self.fill(), || counts.given_up()).await?;
            }
            None => first.await?,
        }
        hedge_policy.saw(len, began.elapsed());
        Ok(())
    }

    /// Fills what is missing.
    async fn fill(&self) -> StoreResult<()> {
        let (mut at, len) = {
            let cursor = self.cursor.borrow();
            (cursor.filled, cursor.memory.len())
        };
        for _ in 0..=self.retries {
            let (from, to) = (self.offset + at as u64, self.offset + len as u64);
            let options = GetOptions {
                range: Some(GetRange::Bounded(from..to)),
                if_match: self.etag.map(ToOwned::to_owned),
                ..GetOptions::default()
            };
            let answer = self.store.get_opts(&self.key, options).await?;
            let ends_before = answer.range.end < to;
            let mut body = answer.into_stream();
            while let Some(part) = poll_fn(|context| body.as_mut().poll_next(context)).await {
                at = self.cursor.borrow_mut().take(at, &part?);
            }
            if at == len {
                return Ok(());
            }
            if ends_before {
                break;
            }
        }
        Err(generic(format!("only {at} of {len} bytes arrived")))
    }
}

/// Waits for the first success of two futures and drops the other; if one fails, waits for the
/// other.
async fn either<T>(
    one: impl Future<Output = StoreResult<T>>,
    other: impl Future<Output = StoreResult<T>>,
    dropped: impl FnOnce(),
) -> StoreResult<T> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (ended, was_one) = poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Ready(ended) => Poll::Ready((ended, true)),
        Poll::Pending => other.as_mut().poll(context).map(|ended| (ended, false)),
    })
    .await;
    match ended {
        Ok(given) => {
            dropped();
            Ok(given)
        }
        Err(_) if was_one => other.await,
        Err(_) => one.await,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn two_that_race_fill_it_with_what_either_brings(
            whole in prop::collection::vec(any::<u8>(), 1..300),
            turns in prop::collection::vec((any::<bool>(), 1..40_usize), 1..100),
            begins in 0..10_usize,
        ) {
            let mut memory = vec![0; whole.len()];
            let progress = Progress::default();
            let mut cursor = Cursor::new(&mut memory, &progress);
            let mut at = [0, usize::MAX];
            for (turn, (second, len)) in turns.into_iter().enumerate() {
                let one = usize::from(second && turn >= begins);
                at[one] = at[one].min(cursor.filled);
                let end = (at[one] + len).min(whole.len());
                at[one] = cursor.take(at[one], &whole[at[one]..end]);
                prop_assert_eq!(at[one], end);
                let furthest = at.into_iter().filter(|at| *at != usize::MAX).max();
                prop_assert_eq!(cursor.filled, furthest.unwrap());
            }
            let filled = cursor.filled;
            prop_assert_eq!(progress.bytes(), filled as u64);
            prop_assert_eq!(&memory[..filled], &whole[..filled]);
            prop_assert!(memory[filled..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn more_than_was_asked_for_is_not_taken() {
        let mut memory = [0; 3];
        assert_eq!(
            Cursor::new(&mut memory, &Progress::default()).take(0, &[1, 2, 3, 4]),
            3
        );
        assert_eq!(memory, [1, 2, 3]);
    }
}
