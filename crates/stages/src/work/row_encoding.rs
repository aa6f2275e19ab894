//! Rows become files: a worker has one open at a time, which begins with its first row.

use std::fmt;

use tonnage_pipeline::StageError;

use super::file_blocks::{FileBlocks, SharedPorts};
use super::row_files::RowFiles;

/// Encodes rows into files.
pub trait RowEncoding: fmt::Debug + Send + Sync {
    /// Begins a file.
    ///
    /// # Errors
    /// What the file says.
    fn begin<'a>(&self, file: FileBlocks<'a>) -> Result<Box<dyn RowEncoder + 'a>, StageError>;

    /// Memory that an encoder needs.
    fn memory_bytes(&self) -> usize;
}

/// Encodes the rows of one file.
pub trait RowEncoder {
    /// Adds some rows.
    ///
    /// # Errors
    /// Why they cannot be encoded, or what the file says.
    fn push(&mut self, rows: &[&[u8]]) -> Result<(), StageError>;

    /// Ends the file.
    ///
    /// # Errors
    /// Why it cannot be encoded, or what the file says.
    fn finish(self: Box<Self>) -> Result<(), StageError>;
}

/// Which file rows of a unit belong to.
#[derive(Clone, Copy)]
pub(super) struct FilePlace<'f> {
    /// The unit.
    pub unit: usize,
    /// The file's place among all.
    pub place: usize,
    /// What the keys of its folder begin with.
    pub folder: &'f [u8],
}

/// Writes one file after another.
pub(super) struct FileWriter<'a> {
    /// The files.
    pub files: &'a dyn RowFiles,
    /// How rows are encoded.
    pub encoding: &'a dyn RowEncoding,
    /// Devices, between which files alternate.
    pub lanes: usize,
    /// Where blocks go.
    pub ports: &'a SharedPorts<'a>,
    /// The file that has begun, if one has.
    pub open: Option<OpenFile<'a>>,
}

/// A file that has begun.
pub(super) struct OpenFile<'a> {
    number: usize,
    place: usize,
    folder: Vec<u8>,
    encoder: Box<dyn RowEncoder + 'a>,
}

impl FileWriter<'_> {
    /// Turns to a file: ends the one that is open, if it is another.
    pub fn turn_to(&mut self, file: FilePlace<'_>) -> Result<(), StageError> {
        let wanted = (file.place, file.folder);
        match &self.open {
            Some(open) if (open.place, &open.folder[..]) != wanted => self.end(),
            _ => Ok(()),
        }
    }

    /// Adds rows to the file that it has turned to, which begins with the first of them.
    pub fn push(&mut self, file: FilePlace<'_>, rows: &[&[u8]]) -> Result<(), StageError> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let open = match &mut self.open {
            Some(open) => open,
            none => {
                let number = self.files.begin(file.unit, file.place, first)?;
                let blocks = FileBlocks::new(number, number % self.lanes, self.ports);
                none.insert(OpenFile {
                    number,
                    place: file.place,
                    folder: file.folder.to_vec(),
                    encoder: self.encoding.begin(blocks)?,
                })
            }
        };
        open.encoder.push(rows)
    }

    /// The number of the open file.
    pub fn number(&self) -> Option<usize> {
        self.open.as_ref().map(|open| open.number)
    }

    /// Ends the open file.
    pub fn end(&mut self) -> Result<(), StageError> {
        self.open
            .take()
            .map_or(Ok(()), |open| open.encoder.finish())
    }
}
