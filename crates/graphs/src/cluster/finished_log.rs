//! The log of finished files: one line of JSON each, added when the file has its final name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tonnage_pipeline::Failure;

use crate::error::JobError;

/// Extension of a file that is not finished.
pub const UNFINISHED: &str = "unfinished";

/// A log on disk.
#[derive(Debug)]
pub struct FinishedLog {
    file: File,
    path: PathBuf,
}

impl FinishedLog {
    /// Opens the log, or creates it; an incomplete last line is dropped.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, JobError> {
        let open = || {
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            let lines = fs::read(path)?;
            let whole = lines.iter().rposition(|&byte| byte == b'\n');
            let whole = whole.map_or(0, |last| last + 1);
            if whole < lines.len() {
                file.set_len(whole as u64)?;
            }
            let path = path.to_owned();
            Ok(Self { file, path })
        };
        open().map_err(|why| JobError::file("open", path, &why))
    }

    /// Gives a finished file its name, in the same directory, durably, and logs it with `more`.
    ///
    /// # Errors
    /// When it cannot be renamed, or the log cannot be written.
    pub fn add(&self, unfinished: &Path, more: Value) -> Result<(), Failure> {
        self.add_as(unfinished, &unfinished.with_extension(""), more)
    }

    /// The same with a path that may be in folders of the directory, which are made for it.
    ///
    /// # Errors
    /// The same.
    pub fn add_as(&self, unfinished: &Path, path: &Path, more: Value) -> Result<(), Failure> {
        self.try_add(unfinished, path, more).map_err(|why| {
            let what = format!("cannot rename {}: {why}", unfinished.display());
            Failure::at(unfinished, 0, what)
        })
    }

    /// Logs the place of something finished with `more`.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn note(&self, place: &Path, more: Value) -> Result<(), Failure> {
        self.try_note(place, more).map_err(|why| {
            let (place, log) = (place.display(), self.path.display());
            Failure::at(
                &self.path,
                0,
                format!("cannot record {place} in {log}: {why}"),
            )
        })
    }

    fn try_add(&self, unfinished: &Path, path: &Path, more: Value) -> io::Result<()> {
        let above = path.ancestors().skip(1);
        let directory = unfinished.parent();
        let folders: Vec<&Path> = above
            .take_while(|&folder| Some(folder) != directory)
            .collect();
        if let Some(folder) = folders.first() {
            fs::create_dir_all(folder)?;
        }
        fs::rename(unfinished, path)?;
        for folder in folders.into_iter().chain(directory) {
            File::open(folder)?.sync_all()?;
        }
        self.try_note(path, more)
    }

    fn try_note(&self, place: &Path, more: Value) -> io::Result<()> {
        let mut line = json!({"path": place});
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        // In one call, so that lines of several threads do not mix.
        (&self.file).write_all(format!("{line}\n").as_bytes())?;
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_room_is_the_disks_fault() {
        let path = PathBuf::from("/dev/full");
        let file = OpenOptions::new()
            .write(true)
            .open(&path)
            .expect("it is there");
        let log = FinishedLog { file, path };
        let full = log.note(Path::new("s3://bucket/part-00000"), json!({}));
        let full = full.expect_err("it is full");
        assert_eq!(full.file.as_deref(), Some(Path::new("/dev/full")));
        assert!(full.what.ends_with("(os error 28)"), "{}", full.what);
    }
}
