//! Files of tables: split, decoded and encoded, one format a module.
//!
//! A file is divided into splits without reading its data; a split names the ranges of bytes that
//! it needs, and is decoded on its own from these. So the pipeline's stages read (devices, object
//! stores), and nothing here waits for a device, but for the little that tells where data is.

mod error;
mod ranges;
mod read_at;
mod value_bytes;

pub mod arrow_ipc;
pub mod compression;
pub mod parquet;
pub mod text;
pub mod text_columns;
pub mod types;

pub use error::FormatError;
pub use read_at::{Pieces, ReadAt};
