//! Text as columns: records of CSV and JSON lines, decoded by a schema.

pub mod input;
mod record_columns;
mod rows;
