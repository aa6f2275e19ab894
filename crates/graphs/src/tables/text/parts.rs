//! Parts of text files that end anywhere, as parts of whole records: a record belongs to the part
//! in which it begins.

use std::io;

use tonnage_formats::ReadAt;

use super::inputs::TextInput;
use crate::error::{JobError, usage_error};
use crate::tables::input::table_file::TableFile;

/// What is read at once to find the end of a record.
const STEP_BYTES: u64 = 64 << 10;

/// The records that begin in each input; those without any are left out.
///
/// # Errors
/// A part of a file whose records may have newlines in quotes, since only what is before it tells
/// whether it begins within them; or what cannot be read.
pub fn whole_records(files: &[TableFile], quote: Option<u8>) -> Result<Vec<TableFile>, JobError> {
    let mut whole: Vec<TableFile> = Vec::new();
    for file in files {
        let input = &file.input;
        if input.bytes == input.file_bytes {
            whole.push(file.clone());
            continue;
        }
        if TextInput::open(file)?.is_compressed() {
            // All of its records begin where its stream does.
            if input.offset == 0 {
                let mut stream = file.clone();
                stream.input.bytes = input.file_bytes;
                whole.push(stream);
            }
            continue;
        }
        if quote.is_some() {
            return Err(usage_error(format!(
                "input {}: a file with quotes cannot be divided",
                file.name()
            )));
        }
        let find = |offset| {
            let found = file
                .open()
                .and_then(|opened| record_at(opened.as_ref(), offset));
            found.map_err(|why| file.read_error(&why))
        };
        let begin = find(input.offset)?;
        let end = find(input.offset + input.bytes)?;
        if begin < end {
            let mut part = file.clone();
            (part.input.offset, part.input.bytes) = (begin, end - begin);
            whole.push(part);
        }
    }
    Ok(whole)
}

/// Where the first record begins that begins at `offset` or behind it; the file's end if none does.
fn record_at(file: &dyn ReadAt, offset: u64) -> io::Result<u64> {
    let file_bytes = file.len();
    if offset == 0 || offset >= file_bytes {
        return Ok(offset.min(file_bytes));
    }
    let mut at = offset - 1; // The byte before a record is a newline.
    while at < file_bytes {
        let end = file_bytes.min(at + STEP_BYTES);
        let bytes = file.read(at..end)?;
        if let Some(newline) = memchr::memchr(b'\n', &bytes) {
            return Ok(at + newline as u64 + 1);
        }
        at = end;
    }
    Ok(file_bytes)
}
