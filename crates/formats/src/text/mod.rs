//! Text: lines, records of CSV files, and JSON lines, sorted as they are.
//!
//! A record keeps its bytes; only the fields of its key are looked at. Splits are cut at any byte:
//! `record_cutter` finds where records begin, also where a split begins within quotes, and joins the record
//! that spans two splits, or many.

mod decimal_key;
mod field_count;
mod fields;
mod json_keys;
mod keys;
mod record_cutter;
mod record_keys;

pub use fields::{Dialect, Field, beginning_of};
pub use json_keys::{JsonKey, JsonKeys, no_json};
pub use keys::{FieldKey, FieldKind, KeyError, Scratch, TextKeys};
pub use record_cutter::{CutError, RecordCutter, WholeRecords, has_odd_quotes, newline_outside};
pub use record_keys::{KeyScratch, RecordKeys};
