//! Parts of text files that end anywhere, as parts of whole records: a record belongs to the part
//! in which it begins.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::error::{JobError, usage_error};
use crate::inputs::Input;

/// What is read at once to find the end of a record.
const STEP_BYTES: usize = 64 << 10;

/// The records that begin in each input; those without any are left out.
///
/// # Errors
/// A part of a file whose records may have newlines in quotes, since only what is before it tells
/// whether it begins within them; or what cannot be read.
pub fn whole_records(inputs: Vec<Input>, quote: Option<u8>) -> Result<Vec<Input>, JobError> {
    let mut whole: Vec<Input> = Vec::new();
    for input in inputs {
        if input.bytes == input.file_bytes {
            whole.push(input);
            continue;
        }
        let path = input.file.name();
        if quote.is_some() {
            return Err(usage_error(format!(
                "input {}: a file with quotes cannot be divided",
                path.display()
            )));
        }
        let find = |offset| record_at(&path, offset, input.file_bytes);
        let begin = find(input.offset)?;
        let end = find(input.offset + input.bytes)?;
        if begin < end {
            whole.push(Input {
                offset: begin,
                bytes: end - begin,
                ..input
            });
        }
    }
    Ok(whole)
}

/// Where the first record begins that begins at `offset` or behind it; the file's end if none does.
fn record_at(path: &Path, offset: u64, file_bytes: u64) -> Result<u64, JobError> {
    if offset == 0 || offset >= file_bytes {
        return Ok(offset.min(file_bytes));
    }
    let find = || {
        let file = File::open(path)?;
        let mut bytes = vec![0; STEP_BYTES];
        let mut at = offset - 1; // The byte before a record is a newline.
        while at < file_bytes {
            let most = STEP_BYTES.min((file_bytes - at) as usize);
            let read = file.read_at(&mut bytes[..most], at)?;
            if let Some(newline) = memchr::memchr(b'\n', &bytes[..read]) {
                return Ok(at + newline as u64 + 1);
            }
            if read == 0 {
                break; // It was cut off; who reads it tells that.
            }
            at += read as u64;
        }
        Ok(file_bytes)
    };
    find().map_err(|why| JobError::file("read", path, &why))
}
