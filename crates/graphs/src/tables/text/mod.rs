//! Text: lines, and records of fields.

pub mod beginning;
pub mod csv_beginning;
pub mod file_records;
pub mod files;
pub mod inputs;
pub mod parts;
pub mod records;
pub mod rows;
mod stream;
pub mod text_file;
pub mod text_table;
