//! The sort of tables on one machine: rows of any types, by keys of any columns.

pub(crate) mod columns;
mod compression;
pub(crate) mod format;
pub(crate) mod input;
mod limit;
pub(crate) mod memory;
pub(crate) mod passes;
mod table_format;
pub mod table_sort;
mod text;
mod typed_text;
