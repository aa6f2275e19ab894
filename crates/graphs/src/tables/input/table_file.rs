//! A file of a table's input, and what the folders that it is in say of its rows.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use bytes::Bytes;
use serde::Deserialize;
use tonnage_formats::ReadAt;
use tonnage_stages::extent::FileRef;

use super::object_file::ObjectFiles;
use super::table_schema::FolderColumns;
use crate::error::{JobError, usage_error};
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
    /// Of a part of a text file, if it is known: whether it begins, and ends, within quotes.
    #[serde(default)]
    pub quoted: Option<(bool, bool)>,
}

/// A file, or a part of one, that is there.
#[derive(Clone, Debug)]
pub struct TableFile {
    /// Where it is.
    pub input: Input,
    /// Columns by its folders.
    pub folders: FolderColumns,
    /// Whether it begins, and ends, within quotes, if it is a part of which that is known.
    pub quoted: Option<(bool, bool)>,
    objects: ObjectFiles,
}

impl TableFile {
    /// Checks that all files are there; objects will be opened by `objects`.
    ///
    /// # Errors
    /// A file that is missing, or shorter than it was.
    pub fn find(files: &[TableFileConfig], objects: &ObjectFiles) -> Result<Vec<Self>, JobError> {
        let splits: Vec<Split> = files.iter().map(|each| each.file.clone()).collect();
        let inputs = inputs::splits(&splits, 1)?.into_iter().zip(files);
        Ok(inputs
            .map(|(input, file)| Self {
                input: Input {
                    file_number: file.number,
                    ..input
                },
                folders: file.folders.clone(),
                quoted: file.quoted,
                objects: objects.clone(),
            })
            .collect())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        self.input.file.name().display().to_string()
    }

    /// Opens it, for the little that tells where its data is.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(&self) -> io::Result<Arc<dyn ReadAt>> {
        let bytes = self.input.file_bytes;
        match &self.input.file {
            FileRef::Object(object) => Ok(self.objects.open(object, bytes)),
            other => {
                let path = other.name();
                File::open(&path)?;
                Ok(Arc::new(DiskFile { path, bytes }))
            }
        }
    }

    /// Why it could not be read: a store may fail at any time, a file is there or not.
    #[must_use]
    pub fn read_error(&self, why: &io::Error) -> JobError {
        let what = format!("input {}: {why}", self.name());
        match &self.input.file {
            FileRef::Object(_) => JobError::failure(what),
            _ => usage_error(what),
        }
    }

    /// Applies `work` to each file; to objects, which are waited for, several at once.
    ///
    /// # Errors
    /// The error of the first file with one.
    pub fn map<T: Send>(
        files: &[Self],
        work: impl Fn(&Self) -> Result<T, JobError> + Sync,
    ) -> Result<Vec<T>, JobError> {
        Self::map_items(files, files, work)
    }

    /// The same for items of which each is of some of these files.
    ///
    /// # Errors
    /// The error of the first item with one.
    pub fn map_items<'a, I: Sync, T: Send>(
        files: &[Self],
        items: &'a [I],
        work: impl Fn(&'a I) -> Result<T, JobError> + Sync,
    ) -> Result<Vec<T>, JobError> {
        let is_object = |file: &&Self| matches!(file.input.file, FileRef::Object(_));
        let Some(objects) = files.iter().find(is_object).map(|file| &file.objects) else {
            return items.iter().map(work).collect();
        };
        let next = AtomicUsize::new(0);
        let some = || {
            let places = std::iter::repeat_with(|| next.fetch_add(1, Relaxed));
            let mut done: Vec<(usize, Result<T, JobError>)> = Vec::new();
            for place in places.take_while(|&place| place < items.len()) {
                let ended = work(&items[place]);
                if ended.is_err() {
                    next.store(items.len(), Relaxed);
                }
                done.push((place, ended));
            }
            done
        };
        let mut all: Vec<_> = thread::scope(|scope| {
            let workers = objects.access.requests.clamp(1, items.len());
            let running: Vec<_> = (0..workers).map(|_| scope.spawn(some)).collect();
            let ended = running.into_iter();
            ended
                .flat_map(|worker| worker.join().expect("it does not panic"))
                .collect()
        });
        if objects.is_cancelled() {
            return Err(JobError::Cancelled);
        }
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, ended)| ended).collect()
    }
}

/// A file that is open only while it is read: there may be more files than a process can open.
struct DiskFile {
    path: PathBuf,
    bytes: u64,
}

impl ReadAt for DiskFile {
    fn len(&self) -> u64 {
        self.bytes
    }

    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        (File::open(&self.path)?, self.bytes).read(range)
    }
}
