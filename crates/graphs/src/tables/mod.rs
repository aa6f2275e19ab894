//! The sort of tables: rows of any types, by keys of any columns. `cluster::tables` uses its passes.

pub(crate) mod columns;
mod compression;
mod folders;
pub(crate) mod format_config;
pub(crate) mod input;
pub(crate) mod limit;
pub(crate) mod memory;
pub(crate) mod output_files;
pub(crate) mod passes;
pub(crate) mod table_format;
pub mod table_sort;
mod text;
mod typed_text;

pub use text::{beginning as text_beginning, csv_beginning};
