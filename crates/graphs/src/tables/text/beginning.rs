//! The beginning of the first text that is not blank, to infer from it what values are.

use serde::{Deserialize, Serialize};
use tonnage_formats::text_columns::Charset;
use tonnage_object::RequestCounts;
use tonnage_pipeline::RunHandle;

use super::inputs::{BYTE_ORDER_MARK, INFERRED_BYTES, NO_TEXT, TextInput};
use crate::error::{JobError, usage_error};
use crate::objects::object_input::ObjectStorage;
use crate::tables::input::object_file::ObjectFiles;
use crate::tables::input::table_file::{TableFile, TableFileConfig};

/// The files to look at.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The files, in their order.
    pub inputs: Vec<TableFileConfig>,
    /// What the bytes from 128 on mean, if they are not UTF-8; U+FFFD is none.
    pub upper_half: Option<String>,
    /// How to use an object store.
    #[serde(rename = "volumes")]
    pub storage: ObjectStorage,
}

/// The beginning of one.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The file; the first one if all are blank.
    pub file: String,
    /// Its first lines, whole ones.
    pub text: String,
    /// Requests to object stores.
    pub requests: RequestCounts,
}

/// Looks at the beginnings of files.
///
/// # Errors
/// When one cannot be read.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let access = config.storage.access()?;
    let files = TableFile::find(&config.inputs, &ObjectFiles::new(&access, handle))?;
    let charset = Charset::new(config.upper_half.as_deref());
    let (mut file, mut text) = (
        files.first().map_or_else(String::new, TableFile::name),
        String::new(),
    );
    for each in &files {
        let whole = TextInput::open(each)?.beginning(INFERRED_BYTES)?;
        let lines = whole.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&whole);
        let end = match whole.len() < INFERRED_BYTES {
            true => lines.len(),
            false => memchr::memrchr(b'\n', lines).map_or(0, |at| at + 1),
        };
        if whole.trim_ascii().is_empty() {
            continue;
        }
        file = each.name();
        let first = lines.split(|&byte| byte == b'\n').next();
        if first.is_some_and(|first| first.contains(&0)) {
            return Err(usage_error(format!("input {file}: {NO_TEXT}")));
        }
        if end == 0 {
            let why = "its first line has more than a MiB, and that is too long";
            return Err(usage_error(format!("input {file}: {why}")));
        }
        let lines = charset.to_utf8(&lines[..end]);
        let lines = lines.map_err(|why| usage_error(format!("input {file}: {why}")))?;
        text = String::from_utf8_lossy(&lines).into_owned();
        break;
    }
    Ok(Outcome {
        file,
        text,
        requests: access.counted(),
    })
}
