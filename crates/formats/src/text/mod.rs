//! Text: lines, and records of CSV files, sorted as they are.
//!
//! A record keeps its bytes; only the fields of its key are looked at. Splits are cut at any byte:
//! `record_cutter` finds where records begin, also where a split begins within quotes, and joins the record
//! that spans two splits, or many.

mod fields;
mod keys;
mod record_cutter;

pub use fields::{Dialect, Field};
pub use keys::{FieldKey, FieldKind, KeyError, Scratch, TextKeys};
pub use record_cutter::{RecordCutter, TooLong, WholeRecords};
