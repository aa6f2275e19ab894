//! Folders of rows, whose names tell the values of columns: `country=DE/day=2026-01-01`.
//! Hive's layout.
//!
//! Rows are sorted by the folders' columns first, so that the folders of a partition follow one
//! another, and a file ends where its folder does. A file has the number that it has without
//! folders, so numbers ascend with the keys in each folder; only the folder depends on the rows.

pub mod folder_columns;
pub mod folder_text;
