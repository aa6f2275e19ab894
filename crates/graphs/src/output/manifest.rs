//! `_tonnage.json`, the manifest of a complete output: its parts in order, and their totals.

use serde::{Deserialize, Serialize};

use crate::error::{JobError, usage_error};

/// The manifest's name in each directory of an output.
pub const MANIFEST: &str = "_tonnage.json";

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Format {
    #[serde(rename = "tonnage.output/1")]
    One,
}

/// What a manifest holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    format: Format,
    records: u64,
    bytes: u64,
    /// Sum of the records' CRC-32s in hexadecimal, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
    /// Names of the parts in key order, wherever they are.
    pub parts: Vec<String>,
}

impl Manifest {
    /// The manifest of parts 0 to `parts`.
    #[must_use]
    pub fn new(parts: usize, records: u64, bytes: u64, checksum: &str) -> Self {
        Self {
            format: Format::One,
            records,
            bytes,
            checksum: Some(checksum.to_owned()),
            parts: (0..parts).map(part_name).collect(),
        }
    }

    /// The manifest of files of these names, with so many rows and bytes.
    #[must_use]
    pub fn of_files(parts: Vec<String>, rows: u64, bytes: u64) -> Self {
        Self {
            format: Format::One,
            records: rows,
            bytes,
            checksum: None,
            parts,
        }
    }

    /// Reads a manifest; `name` is its path or URL.
    ///
    /// # Errors
    /// What is wrong in it.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, JobError> {
        serde_json::from_slice(bytes).map_err(|why| {
            usage_error(format!(
                "{name} is not the manifest of an output ({why}); run the job again, or remove \
                 that file to read the directory without it"
            ))
        })
    }
}

/// The name of part `number`.
#[must_use]
pub fn part_name(number: usize) -> String {
    format!("part-{number:05}")
}
