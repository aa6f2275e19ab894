//! Adds the files of partitions that are whole to the log of what is finished.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use tonnage_pipeline::Failure;
use tonnage_stages::object::uploads::Uploads;
use tonnage_stages::output_file::FilePaths;

use crate::cluster::finished_log::FinishedLog;
use crate::cluster::pass_two::Output;
use crate::tables::output_files::{OutputRows, WholePartition};

/// The log, and where files are.
pub struct PartitionLog {
    /// The log.
    pub log: FinishedLog,
    /// Where the output goes.
    pub output: Output,
    /// Where files were written, by their numbers.
    pub paths: Arc<FilePaths>,
    /// Their uploads, if they are objects.
    pub uploads: Option<Arc<Uploads>>,
}

impl PartitionLog {
    /// Gives a partition's files their names, and logs them.
    ///
    /// # Errors
    /// When one cannot be renamed, or the log cannot be written.
    pub fn add(&self, whole: &WholePartition) -> Result<(), Failure> {
        for (place, (number, file)) in whole.files.iter().enumerate() {
            let written = self.paths.get(*number);
            match &self.output {
                Output::Directories(directories) => {
                    let found = fs::metadata(&written);
                    let cannot = |why| Failure::at(&written, 0, format!("cannot stat: {why}"));
                    let bytes = found.map_err(cannot)?.len();
                    let path = directories[number % directories.len()].join(&file.name);
                    let about = about(whole, place, file, bytes);
                    self.log.add_as(&written, &path, about)?;
                }
                Output::Objects { store, .. } => {
                    let uploads = self.uploads.as_ref();
                    let bytes = uploads.map_or(0, |all| all.put_bytes_of(*number));
                    let url = store.name(&written.to_string_lossy());
                    self.log
                        .note(url.as_ref(), about(whole, place, file, bytes))?;
                }
            }
        }
        Ok(())
    }
}

/// What the log has of a file of so many bytes.
fn about(whole: &WholePartition, place: usize, file: &OutputRows, bytes: u64) -> Value {
    json!({
        "bytes": bytes,
        "records": file.rows.records - file.left_out.records,
        "checksum": format!("{:x}", file.rows.checksum),
        "files": whole.files.len(),
        "taken": whole.bytes,
        "place": place,
    })
}
