//! The files of an output, which are known as their first rows are written.
//!
//! A file's name tells its place among all that there may be, so files without rows leave gaps. In
//! folders the place ascends with the keys of each folder; only the folder depends on the rows. A
//! partition is reported once all of its files are durable, and no more can come.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::output_file::FilePaths;
use tonnage_stages::totals::Total;
use tonnage_stages::work::RowFiles;

use crate::tables::folders::folder_columns::FolderColumns;
use crate::tables::passes::sort_units::SortUnits;

/// The most files in folders: more are a mistake, and their names are in memory, too.
const MOST_FILES: usize = 100_000;

/// Where a file with a number, and a name below the output, is written.
pub type PathOf = dyn Fn(usize, &str) -> PathBuf + Send + Sync;

/// Called with the files of a partition once these are whole.
pub type OnWhole = dyn Fn(&WholePartition) -> Result<(), Failure> + Send + Sync;

/// The files of a partition, in the order of keys.
pub struct WholePartition {
    /// Its files. The first one counts rows that no file has, too.
    pub files: Vec<(usize, OutputRows)>,
    /// Bytes of rows that the partition had.
    pub bytes: u64,
}

/// A file of the output, and its rows.
#[derive(Clone, Debug)]
pub struct OutputRows {
    /// Its name below the output.
    pub name: String,
    /// The rows that were sorted into it.
    pub rows: Total,
    /// Those of them that were left out.
    pub left_out: Total,
    partition: usize,        // its place among the partitions
    place: (Vec<u8>, usize), // of its rows among all: by folder, then by the file's place
}

/// The files of an output.
pub struct OutputFiles {
    folders: Option<FolderColumns>,
    names: Vec<String>, // by their places, without folders
    path_of: Box<PathOf>,
    paths: Arc<FilePaths>,
    partition_of: Vec<usize>, // of units
    on_whole: Option<Box<OnWhole>>,
    written: Mutex<Written>,
}

/// What was written so far.
struct Written {
    files: Vec<OutputRows>, // by their numbers
    partitions: Vec<PartitionRows>,
}

struct PartitionRows {
    units: usize, // that have not ended
    files: Vec<usize>,
    durable: usize, // files
    bytes: u64,
    in_no_file: (Total, Total), // rows, and those of them that were left out
}

impl OutputFiles {
    /// No files yet; `names` are those that there may be, by their places.
    pub fn new(
        units: &SortUnits,
        names: Vec<String>,
        folders: Option<&FolderColumns>,
        path_of: Box<PathOf>,
    ) -> Self {
        let partitions = units.partitions.iter().map(|partition| PartitionRows {
            units: partition.units,
            files: Vec::new(),
            durable: 0,
            bytes: partition.bytes,
            in_no_file: (partition.others, partition.others),
        });
        Self {
            folders: folders.cloned(),
            names,
            path_of,
            paths: Arc::default(),
            partition_of: units.partition_of.clone(),
            on_whole: None,
            written: Mutex::new(Written {
                files: Vec::new(),
                partitions: partitions.collect(),
            }),
        }
    }

    /// The same, with a callback for each partition whose files are whole.
    pub fn reporting(self, on_whole: Box<OnWhole>) -> Self {
        Self {
            on_whole: Some(on_whole),
            ..self
        }
    }

    /// Where files are written.
    pub fn paths(&self) -> &Arc<FilePaths> {
        &self.paths
    }

    /// The files' names below the output, by their numbers.
    pub fn names(&self) -> Vec<String> {
        let written = self.written();
        written.files.iter().map(|file| file.name.clone()).collect()
    }

    /// The same, in the order of their rows.
    pub fn names_in_order(&self) -> Vec<String> {
        let written = self.written();
        let mut ordered: Vec<&OutputRows> = written.files.iter().collect();
        ordered.sort_unstable_by_key(|file| &file.place);
        ordered.iter().map(|file| file.name.clone()).collect()
    }

    /// All rows that were sorted, and those of them that were left out.
    pub fn total(&self) -> (Total, Total) {
        let written = self.written();
        let in_files = written
            .files
            .iter()
            .map(|file| (&file.rows, &file.left_out));
        let partitions = written.partitions.iter();
        let in_none = partitions.map(|each| (&each.in_no_file.0, &each.in_no_file.1));
        let (mut rows, mut left_out) = (Total::default(), Total::default());
        for (of_rows, of_left_out) in in_files.chain(in_none) {
            rows.add(of_rows);
            left_out.add(of_left_out);
        }
        (rows, left_out)
    }

    /// Notes that a file is durable.
    ///
    /// # Errors
    /// When its partition is whole, and cannot be reported.
    pub fn note_durable(&self, number: usize) -> Result<(), Failure> {
        let whole = {
            let mut written = self.written();
            let place = written.files[number].partition;
            written.partitions[place].durable += 1;
            written.whole_partition(place)
        };
        self.report(whole)
    }

    fn report(&self, whole: Option<WholePartition>) -> Result<(), Failure> {
        match (&self.on_whole, whole) {
            (Some(report), Some(whole)) => report(&whole),
            _ => Ok(()),
        }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Written {
    /// The files of a partition, if these are whole now.
    fn whole_partition(&self, place: usize) -> Option<WholePartition> {
        let partition = &self.partitions[place];
        if partition.units > 0 || partition.durable < partition.files.len() {
            return None;
        }
        let files = partition.files.iter();
        let mut files: Vec<(usize, OutputRows)> = files
            .map(|&number| (number, self.files[number].clone()))
            .collect();
        files.sort_unstable_by(|(_, one), (_, other)| one.place.cmp(&other.place));
        if let Some((_, first)) = files.first_mut() {
            let (rows, left_out) = &partition.in_no_file;
            first.rows.add(rows);
            first.left_out.add(left_out);
        }
        let bytes = partition.bytes;
        Some(WholePartition { files, bytes })
    }
}

impl fmt::Debug for OutputFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} files at most", self.names.len())
    }
}

impl RowFiles for OutputFiles {
    fn folder<'r>(&self, row: &'r [u8]) -> Result<&'r [u8], StageError> {
        match &self.folders {
            Some(columns) => columns.beginning(row),
            None => Ok(&[]),
        }
    }

    fn is_in(&self, folder: &[u8], row: &[u8]) -> bool {
        let mut columns = self.folders.iter();
        columns.all(|columns| columns.have(folder, row))
    }

    fn begin(&self, unit: usize, place: usize, row: &[u8]) -> Result<usize, StageError> {
        let name = &self.names[place];
        let name = match &self.folders {
            None => name.clone(),
            Some(columns) => {
                let folder = columns.folder(row).map_err(Failure::bad_input)?;
                format!("{folder}/{name}")
            }
        };
        let place = (self.folder(row)?.to_vec(), place);
        let mut written = self.written();
        if self.folders.is_some() && written.files.len() == MOST_FILES {
            let why = format!("the rows have more than {MOST_FILES} folders and files");
            let fix = "use columns with fewer values for folders";
            return Err(Failure::bad_input(format!("{why}; {fix}")).into());
        }
        let partition = self.partition_of[unit];
        let number = self.paths.add(|number| (self.path_of)(number, &name));
        written.partitions[partition].files.push(number);
        written.files.push(OutputRows {
            name,
            rows: Total::default(),
            left_out: Total::default(),
            partition,
            place,
        });
        Ok(number)
    }

    fn count(&self, unit: usize, file: Option<usize>, rows: &Total, left_out: &Total) {
        let mut written = self.written();
        let (all, others) = match file {
            Some(number) => {
                let file = &mut written.files[number];
                (&mut file.rows, &mut file.left_out)
            }
            None => {
                let partition = &mut written.partitions[self.partition_of[unit]];
                (&mut partition.in_no_file.0, &mut partition.in_no_file.1)
            }
        };
        all.add(rows);
        others.add(left_out);
    }

    fn end_unit(&self, unit: usize) -> Result<(), StageError> {
        let whole = {
            let mut written = self.written();
            let place = self.partition_of[unit];
            written.partitions[place].units -= 1;
            written.whole_partition(place)
        };
        Ok(self.report(whole)?)
    }
}
