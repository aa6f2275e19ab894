//! Parts of text files that end anywhere, as parts of whole records: a record belongs to the part
//! in which it begins. Where newlines may be within quotes, it has to be known whether a part begins
//! and ends within them, which only all bytes before it tell.

use std::io;

use tonnage_formats::ReadAt;
use tonnage_formats::text::newline_outside;

use super::inputs::TextInput;
use crate::error::{JobError, usage_error};
use crate::tables::input::table_file::TableFile;

/// What is read at once to find the end of a record.
const STEP_BYTES: u64 = 64 << 10;

/// The records that begin in each input; those without any are left out.
///
/// # Errors
/// What cannot be read, or a part of which it has to be known whether it begins within quotes.
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
        let quoted = match (quote, file.quoted) {
            (None, _) => (false, false),
            (Some(_), Some(quoted)) => quoted,
            (Some(_), None) => {
                return Err(usage_error(format!(
                    "input {}: a file with quotes cannot be divided before they are counted",
                    file.name()
                )));
            }
        };
        let find = |offset, is_quoted| {
            let found = file
                .open()
                .and_then(|opened| record_at(opened.as_ref(), offset, (quote, is_quoted)));
            found.map_err(|why| file.read_error(&why))
        };
        let begin = find(input.offset, quoted.0)?;
        let end = find(input.offset + input.bytes, quoted.1)?;
        if begin < end {
            let mut part = file.clone();
            (part.input.offset, part.input.bytes) = (begin, end - begin);
            whole.push(part);
        }
    }
    Ok(whole)
}

/// Where the first record begins that begins at `offset` or behind it; the file's end if none does.
/// Newlines between quotes end no record; what is at `offset` may be within quotes.
fn record_at(
    file: &dyn ReadAt,
    offset: u64,
    (quote, mut is_quoted): (Option<u8>, bool),
) -> io::Result<u64> {
    let file_bytes = file.len();
    if offset == 0 || offset >= file_bytes {
        return Ok(offset.min(file_bytes));
    }
    let mut at = offset - 1; // The byte before a record is a newline.
    if let Some(quote) = quote {
        is_quoted ^= file.read(at..offset)?.first() == Some(&quote);
    }
    while at < file_bytes {
        let end = file_bytes.min(at + STEP_BYTES);
        let bytes = file.read(at..end)?;
        let newline = match quote {
            None => memchr::memchr(b'\n', &bytes),
            Some(quote) => newline_outside(&bytes, quote, &mut is_quoted),
        };
        if let Some(newline) = newline {
            return Ok(at + newline as u64 + 1);
        }
        at = end;
    }
    Ok(file_bytes)
}
