//! Text: lines, and records of fields.

pub mod files;
pub mod records;
pub mod rows;
