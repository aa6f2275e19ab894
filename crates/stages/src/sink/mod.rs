//! Stages that data ends in.

mod count_quotes;
mod discard;
mod lend;
mod put;
mod sample_keys;
mod sample_rows;
mod summarise;
mod to_host;
mod write;
mod write_objects;

pub use count_quotes::CountQuotes;
pub use discard::Discard;
pub use lend::Lend;
pub use put::{Put, PutAs};
pub use sample_keys::SampleKeys;
pub use sample_rows::{RowSample, SampleRows};
pub use summarise::{Summaries, Summarise};
pub use to_host::{PartitionBlocks, ToHost};
pub use write::{Target, WriteBlocks};
