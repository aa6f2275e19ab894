//! The folders of an output, which are found as its rows are written.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::output_file::FilePaths;
use tonnage_stages::work::RowFolders;
use tonnage_tables::{LeadingColumns, RowLayout};

use super::folder_text::{folder_name, has_text};
use crate::error::{JobError, setting_error};
use crate::output::job_output::PathOf;
use crate::output::manifest::part_name;

/// The most files: more are a mistake, and their names are in memory, too.
const MOST_FILES: usize = 100_000;

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

    /// The folder of a row.
    fn path(&self, row: &[u8]) -> Result<String, String> {
        let values = self.columns.values(row).map_err(|why| why.to_string())?;
        let names = self.names.iter().zip(&values);
        let names: Result<Vec<String>, _> = names
            .map(|(name, values)| folder_name(name, values))
            .collect();
        Ok(names?.join("/"))
    }
}

/// The folders of an output, and their files.
pub struct OutputFolders {
    columns: FolderColumns,
    suffix: String,
    path_of: Box<PathOf>,
    paths: Arc<FilePaths>,
    names: Mutex<Vec<FileName>>,
}

/// A file's place in the order of rows, and its name below the output.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileName {
    folder_key: Vec<u8>,
    place: usize,
    name: String,
}

impl OutputFolders {
    /// No folders yet; names of files end in `suffix`.
    pub fn new(columns: FolderColumns, suffix: String, path_of: Box<PathOf>) -> Self {
        Self {
            columns,
            suffix,
            path_of,
            paths: Arc::default(),
            names: Mutex::default(),
        }
    }

    /// Where files are written.
    pub fn paths(&self) -> &Arc<FilePaths> {
        &self.paths
    }

    /// The files' names below the output, by their numbers.
    pub fn names(&self) -> Vec<String> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().map(|file| file.name.clone()).collect()
    }

    /// The same, in the order of their rows.
    pub fn names_in_order(&self) -> Vec<String> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ordered: Vec<&FileName> = names.iter().collect();
        ordered.sort_unstable();
        ordered.iter().map(|file| file.name.clone()).collect()
    }
}

impl fmt::Debug for OutputFolders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "folders of {}", self.columns.names.join(", "))
    }
}

impl RowFolders for OutputFolders {
    fn beginning<'r>(&self, row: &'r [u8]) -> Result<&'r [u8], StageError> {
        let beginning = self.columns.columns.beginning(row);
        beginning.map_err(|why| Failure::new(why.to_string()).into())
    }

    fn contains(&self, beginning: &[u8], row: &[u8]) -> bool {
        self.columns.columns.have(beginning, row)
    }

    fn begin_file(&self, row: &[u8], place: usize) -> Result<usize, StageError> {
        let folder = self.columns.path(row).map_err(Failure::bad_input)?;
        let name = format!("{folder}/{}{}", part_name(place), self.suffix);
        let folder_key = self.beginning(row)?.to_vec();
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() == MOST_FILES {
            let why = format!("the rows have more than {MOST_FILES} folders and files");
            let fix = "use columns with fewer values for folders";
            return Err(Failure::bad_input(format!("{why}; {fix}")).into());
        }
        let number = self.paths.add(|number| (self.path_of)(number, &name));
        names.push(FileName {
            folder_key,
            place,
            name,
        });
        Ok(number)
    }
}
