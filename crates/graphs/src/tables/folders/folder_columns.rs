//! The columns that the names of folders tell, and the folders of rows.

use std::sync::Arc;

use tonnage_pipeline::{Failure, StageError};
use tonnage_tables::{LeadingColumns, RowLayout};

use super::folder_text::{folder_name, has_text};
use crate::error::{JobError, setting_error};

/// The columns that the names of folders tell: the first of the rows' keys.
#[derive(Clone, Debug)]
pub struct FolderColumns {
    columns: LeadingColumns,
    names: Vec<String>,
}

impl FolderColumns {
    /// The first `count` columns of the keys of a layout; `None` if there are none.
    ///
    /// # Errors
    /// A column whose values have no text, or that readers would pass over.
    pub fn new(layout: &Arc<RowLayout>, count: usize) -> Result<Option<Self>, JobError> {
        let columns = LeadingColumns::new(layout, count);
        let fields = layout.schema().fields();
        let refuse = |why: String| Err(setting_error("partition_by", why));
        let mut names = Vec::new();
        for place in columns.places() {
            if place >= fields.len() {
                return refuse("a field of a struct is no folder; use a column".to_owned());
            }
            let (name, data_type) = (fields[place].name(), fields[place].data_type());
            if !has_text(data_type) {
                return refuse(format!(
                    "the column {name:?} is {data_type}, which is no name of a folder; use text, \
                     whole numbers, decimals, booleans, dates or timestamps"
                ));
            }
            if name.is_empty() || name.starts_with(['.', '_']) {
                return refuse(format!(
                    "folders of the column {name:?} would be passed over when they are read; use \
                     one whose name begins with neither . nor _"
                ));
            }
            names.push(name.clone());
        }
        Ok((count > 0).then_some(Self { columns, names }))
    }

    /// Their places in the table.
    pub fn places(&self) -> Vec<usize> {
        self.columns.places()
    }

    /// What the keys of all rows in this one's folder begin with.
    pub fn beginning<'r>(&self, row: &'r [u8]) -> Result<&'r [u8], StageError> {
        let beginning = self.columns.beginning(row);
        beginning.map_err(|why| Failure::new(why.to_string()).into())
    }

    /// Whether the row is in the folder whose keys begin so.
    pub fn have(&self, beginning: &[u8], row: &[u8]) -> bool {
        self.columns.have(beginning, row)
    }

    /// The folder of a row.
    ///
    /// # Errors
    /// When a value is no name.
    pub fn folder(&self, row: &[u8]) -> Result<String, String> {
        let values = self.columns.values(row).map_err(|why| why.to_string())?;
        let names = self.names.iter().zip(&values);
        let names: Result<Vec<String>, _> = names
            .map(|(name, values)| folder_name(name, values))
            .collect();
        Ok(names?.join("/"))
    }
}
