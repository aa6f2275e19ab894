//! A file of a table's input, and what the folders that it is in say of its rows.

use serde::Deserialize;

use super::table_schema::FolderColumns;
use crate::error::JobError;
use crate::inputs::{self, Input, Split};

/// A file to read, as it was found.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableFileConfig {
    /// The file or object.
    pub file: Split,
    /// Columns by its folders, such as `year=2024`.
    #[serde(default)]
    pub folders: FolderColumns,
    /// Its number among all files of a job, where these are not all known.
    #[serde(default)]
    pub number: Option<u64>,
}

/// A file, or a part of one, that is there.
#[derive(Clone, Debug)]
pub struct TableFile {
    /// Where it is.
    pub input: Input,
    /// Columns by its folders.
    pub folders: FolderColumns,
}

impl TableFile {
    /// Checks that all files are there.
    ///
    /// # Errors
    /// One that is missing, or shorter than it was.
    pub fn find(files: &[TableFileConfig]) -> Result<Vec<Self>, JobError> {
        let splits: Vec<Split> = files.iter().map(|each| each.file.clone()).collect();
        let inputs = inputs::splits(&splits, 1)?.into_iter().zip(files);
        Ok(inputs
            .map(|(input, file)| Self {
                input: Input {
                    file_number: file.number,
                    ..input
                },
                folders: file.folders.clone(),
            })
            .collect())
    }
}
