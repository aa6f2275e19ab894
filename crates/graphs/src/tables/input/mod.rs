//! The input of a table sort: its files, opened, and what columns they have in common.

pub mod file_columns;
pub mod object_file;
pub mod table;
pub mod table_file;
pub mod table_schema;
