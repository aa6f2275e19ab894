//! Uploads a finished file as an object below a prefix: for files that were written to a disk
//! first, because their writer seeks, or counts before anything may be visible.
//!
//! ```text
//!   upload   read -blocks-> write
//! ```

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_object::RequestCounts;
use tonnage_pipeline::{Graph, Node, RunHandle};
use tonnage_stages::disk::modes::DiskModes;
use tonnage_stages::extent::{ALIGNMENT, aligned};
use tonnage_stages::object::uploads::{Seal, Uploads};
use tonnage_stages::output_file::{OnFinished, OutputFile};
use tonnage_stages::ports::BLOCKS;
use tonnage_stages::sink::{Target, WriteBlocks};
use tonnage_stages::source::ReadExtents;

use crate::error::{JobError, setting_error};
use crate::inputs::blocks_of;
use crate::memory_plan::{MOST_PARTS, PART_BYTES, SHORT_PART_BYTES, UNCOUNTED, requested};
use crate::objects::object_input::{access, default_requests};
use crate::objects::object_prefix::ObjectPrefix;
use crate::phases::{Phase, Watch, memory};

/// What to upload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The file, which is not empty.
    pub path: PathBuf,
    /// The prefix.
    pub place: ObjectPrefix,
    /// The object's name below the prefix.
    pub name: String,
    /// Memory for all buffers.
    pub memory_bytes: usize,
    /// Concurrent requests.
    #[serde(default = "default_requests")]
    pub requests: usize,
    /// How to use the disk.
    #[serde(default)]
    pub disk: Disk,
}

/// The results.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Length of the object.
    pub bytes: u64,
    /// Requests to the store.
    pub requests: RequestCounts,
    /// The run.
    pub phases: Vec<Phase>,
}

/// The length of parts: one in flight per request, and one that is being read; of a short file as
/// many as there are requests, of a long one no more than stores accept.
fn part_bytes(bytes: u64, memory_bytes: usize, requests: usize) -> usize {
    let [least, most] = PART_BYTES;
    let fits = memory_bytes / (requests + 1) / ALIGNMENT * ALIGNMENT;
    let each = requested(bytes, requests, most, SHORT_PART_BYTES);
    let shortest = bytes.div_ceil(MOST_PARTS) as usize;
    fits.min(each).max(least).max(aligned(shortest))
}

/// Uploads the file; the object appears when it is complete.
///
/// # Errors
/// What is refused, what fails, or the cancellation.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let access = access(config.requests)?;
    let about = fs::metadata(&config.path);
    let about = about.map_err(|why| JobError::file("read", &config.path, &why))?;
    let part_bytes = part_bytes(about.len(), config.memory_bytes, access.requests);
    let buffers = (config.memory_bytes / part_bytes).min(access.requests + 1);
    if buffers < 2 {
        return Err(setting_error(
            "memory",
            format!(
                "{} bytes are not enough for two upload parts of {part_bytes} bytes; use more",
                config.memory_bytes
            ),
        ));
    }
    let file = OutputFile {
        path: config.path.clone(),
        bytes: about.len(),
    };
    let read = ReadExtents {
        disk: config.disk.clone(),
        access: access.clone(),
        next: Arc::default(),
        lanes: Arc::new(vec![blocks_of(0, &file, part_bytes).collect()]),
        gives: BLOCKS,
        record_bytes: UNCOUNTED,
        buffers,
        buffer_bytes: part_bytes,
        modes: Arc::default(),
    };
    let object = OutputFile {
        path: config.place.key(&config.name).into(),
        bytes: file.bytes,
    };
    let uploads = Uploads::new(
        &config.place.store,
        vec![object],
        part_bytes,
        Seal::EachWhenWhole,
        access.clone(),
    );
    let write = WriteBlocks {
        disk: config.disk.clone(),
        target: Target::Objects(Arc::new(uploads)),
        lanes: buffers - 1,
        record_bytes: UNCOUNTED,
        inbox_bytes: part_bytes,
        on_finished: OnFinished::default(),
        modes: Arc::new(DiskModes::default()),
    };
    let graph = Graph::chain([Node::new("read", read), Node::new("write", write)]);
    let phase = watch.run("upload", &graph, &memory(graph.memory_bytes())?, None)?;
    drop(graph);
    Ok(Outcome {
        bytes: file.bytes,
        requests: access.counted(),
        phases: vec![phase],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: usize = 1 << 30;

    #[test]
    fn parts_are_as_long_as_memory_allows() {
        assert_eq!(part_bytes(64 * GIB as u64, 4 * GIB, 16), 64 << 20);
        assert_eq!(part_bytes(64 * GIB as u64, 340 << 20, 16), 20 << 20);
        assert_eq!(part_bytes(4 * GIB as u64, 1 << 20, 16), 5 << 20);
    }

    #[test]
    fn a_short_file_is_uploaded_by_all_requests() {
        assert_eq!(part_bytes(512 << 20, 4 * GIB, 16), 32 << 20);
        assert_eq!(part_bytes(1 << 20, 4 * GIB, 16), 16 << 20);
    }

    #[test]
    fn a_long_file_has_no_more_parts_than_stores_accept() {
        for bytes in [1_u64 << 40, 5 << 40, (5 << 40) - 1] {
            let part = part_bytes(bytes, GIB, 16) as u64;
            assert!(bytes.div_ceil(part) <= MOST_PARTS);
        }
    }
}
