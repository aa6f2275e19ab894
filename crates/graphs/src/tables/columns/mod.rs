//! Files with columns: their rows, and files of rows.

pub mod arrow_files;
pub mod column_file;
pub mod column_rows;
pub mod column_table;
pub mod output;
mod output_columns;
pub mod parquet_files;
mod printed_files;
