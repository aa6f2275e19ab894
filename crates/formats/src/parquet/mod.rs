//! Parquet.
//!
//! A split is a row group, or a range of rows of one that is too large: then of each column the
//! pages that have these rows. The file's own index of pages tells which; where a file has none,
//! the headers of the pages are read, some kilobytes for each page.

mod decode;
mod decoding_memory;
mod encode;
mod leaves;
mod page_header;
mod pages;
mod sampling;
mod split;
mod types;

pub use decode::Decoder;
pub use encode::{EncodedRowGroup, FileWriter, Output, RowGroupEncoder};
pub use split::{ParquetFile, Projection, Split};
