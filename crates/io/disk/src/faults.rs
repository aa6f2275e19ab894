//! Seeded faults: which operations fail, and how.
//!
//! A rule fires on what an operation *is* (its kind, file name, offset, length and attempt, hashed
//! with the seed), not on when it happens. So the same seed gives the same faults for any thread
//! schedule. Only operations on whole files, which have no offset, are distinguished by their
//! count.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{DiskError, Operation};

/// Faults to inject into a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Same seed, same faults.
    pub seed: u64,
    /// The first matching rule decides.
    pub rules: Vec<Rule>,
}

/// When a fault occurs, and which. All given conditions have to hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The kind of operation.
    pub operation: Operation,
    /// Only files with this in their path.
    #[serde(default)]
    pub path_contains: Option<String>,
    /// Only the transfer that covers this byte of the file.
    #[serde(default)]
    pub at_offset: Option<u64>,
    /// Only operations beyond so many bytes of their kind, counted over all files and queues of the
    /// disk.
    #[serde(default)]
    pub after_bytes: Option<u64>,
    /// Only this share of operations.
    #[serde(default)]
    pub probability: Option<f64>,
    /// The fault.
    pub effect: Effect,
}

impl Rule {
    /// Applies to every operation of a kind.
    pub fn new(operation: Operation, effect: Effect) -> Rule {
        Rule {
            operation,
            path_contains: None,
            at_offset: None,
            after_bytes: None,
            probability: None,
            effect,
        }
    }
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The operation fails; nothing is done.
    Error {
        /// The error number.
        errno: i32,
    },
    /// A read or write moves only a part; the queue has to continue it.
    Short,
    /// The operation takes longer.
    Stall {
        /// By how much.
        milliseconds: u64,
    },
    /// One bit of the data read is flipped.
    Corrupt,
}

/// Operations of a disk and its clones so far, by kind; `after_bytes` counts by it.
///
/// Not a setting, so all are equal.
#[derive(Clone, Debug, Default)]
pub struct OperationCounts(Arc<[Count; Operation::COUNT]>);

#[derive(Debug, Default)]
struct Count {
    operations: AtomicU64,
    bytes: AtomicU64,
}

impl PartialEq for OperationCounts {
    fn eq(&self, _: &OperationCounts) -> bool {
        true
    }
}

/// An operation, as rules see it.
pub(crate) struct OperationInfo<'a> {
    pub operation: Operation,
    pub path: &'a Path,
    /// None for an operation on the whole file.
    pub offset: Option<u64>,
    pub len: u64,
    pub attempt: u32,
}

/// What a rule does to an operation.
pub(crate) struct Fault {
    pub effect: Effect,
    /// A random number, the same for the same operation.
    pub draw: u64,
}

/// Decides on faults. Shared by all files and queues of a disk.
#[derive(Clone, Debug)]
pub(crate) struct Injector {
    faults: Arc<Faults>,
    counts: OperationCounts,
}

impl Injector {
    pub fn new(faults: &Faults, counts: &OperationCounts) -> Injector {
        Injector {
            faults: Arc::new(faults.clone()),
            counts: counts.clone(),
        }
    }

    /// The fault of an operation, if any. Counts the operation.
    pub fn fault(&self, asked: &OperationInfo) -> Option<Fault> {
        let count = &self.counts.0[asked.operation as usize];
        let number = count.operations.fetch_add(1, Ordering::Relaxed);
        let bytes = count.bytes.fetch_add(asked.len, Ordering::Relaxed) + asked.len;
        let name = asked.path.file_name().unwrap_or_default().as_bytes();
        let identity = [
            asked.operation as u64,
            name.iter()
                .fold(0, |hash, byte| mixed(hash ^ u64::from(*byte))),
            asked.offset.unwrap_or(number),
            asked.len,
            u64::from(asked.attempt),
        ];
        self.faults.rules.iter().zip(0..).find_map(|(rule, index)| {
            let draw = identity
                .iter()
                .fold(mixed(self.faults.seed ^ index), |hash, part| {
                    mixed(hash ^ part)
                });
            // A second number, since survivors of `probability` have used up `draw`.
            rule.fits(asked, bytes, draw).then(|| Fault {
                effect: rule.effect.clone(),
                draw: mixed(draw),
            })
        })
    }

    /// Subtracts bytes that were not moved after all.
    pub fn not_moved(&self, operation: Operation, bytes: u64) {
        self.counts.0[operation as usize]
            .bytes
            .fetch_sub(bytes, Ordering::Relaxed);
    }

    /// An operation on a whole file, or the setup of a queue (which has no path).
    pub fn control(&self, operation: Operation, path: &Path, bytes: u64) -> Result<(), DiskError> {
        let asked = OperationInfo {
            operation,
            path,
            offset: None,
            len: bytes,
            attempt: 0,
        };
        match self.fault(&asked).map(|fault| fault.effect) {
            Some(Effect::Error { errno }) => {
                self.not_moved(operation, bytes);
                let source = io::Error::from_raw_os_error(errno);
                Err(DiskError::file(operation, path, bytes, source))
            }
            Some(Effect::Stall { milliseconds }) => {
                std::thread::sleep(Duration::from_millis(milliseconds));
                Ok(())
            }
            // Nothing can be cut short or corrupted.
            Some(Effect::Short | Effect::Corrupt) | None => Ok(()),
        }
    }
}

impl Rule {
    fn fits(&self, asked: &OperationInfo, bytes: u64, draw: u64) -> bool {
        let path_fits = |part: &String| asked.path.to_string_lossy().contains(part.as_str());
        let covers = |at: u64| {
            asked
                .offset
                .is_some_and(|offset| (offset..offset + asked.len).contains(&at))
        };
        // The top 53 bits: as many as the fraction of a float has.
        let chance = (draw >> 11) as f64 / (1u64 << 53) as f64;
        self.operation == asked.operation
            && self.path_contains.as_ref().is_none_or(path_fits)
            && self.at_offset.is_none_or(covers)
            && self.after_bytes.is_none_or(|after| bytes > after)
            && self
                .probability
                .is_none_or(|probability| chance < probability)
    }
}

/// Scrambles a number (the finishing steps of splitmix64).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
