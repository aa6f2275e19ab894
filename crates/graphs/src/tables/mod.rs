//! The sort of tables on one machine: rows of any types, by keys of any columns.

mod columns;
mod format;
mod input;
mod limit;
mod memory;
mod passes;
mod table_format;
pub mod table_sort;
mod text;
