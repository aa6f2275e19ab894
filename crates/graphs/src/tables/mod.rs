//! The sort of tables on one machine: rows of any types, by keys of any columns.

mod arrow_files;
mod column_file;
mod column_rows;
mod format;
mod memory;
mod parquet_files;
mod passes;
pub mod table_sort;
mod text;
