//! The messages of a file or stream: its schema, and where the buffers of its batches are.
//!
//! Every place that a message names is compared with the file's length before anything is read
//! there or memory is taken for it.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::{
    Block, BodyCompressionMethod, CompressionType, Message, root_as_footer, root_as_message,
};
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::codec::Codec;
use crate::error::FormatError;
use crate::read_at::ReadAt;

const FILE_MAGIC: &[u8] = b"ARROW1";
const FEATHER_1_MAGIC: &[u8] = b"FEA1";
/// What a message begins with, since version 0.15 of Arrow.
const CONTINUATION: &[u8] = &[0xff; 4];
/// The footer's length and the magic behind it.
const TAIL_BYTES: u64 = 10;
/// The magic at the beginning, padded.
const HEAD_BYTES: u64 = 8;

/// A record batch, or the values of a dictionary.
#[derive(Debug)]
pub struct Batch {
    /// Its rows.
    pub rows: u64,
    /// Of each array its length, and whether it has nulls.
    pub arrays: Vec<(u64, bool)>,
    /// Where each buffer is in the file.
    pub buffers: Vec<Range<u64>>,
    /// How many buffers of data each column of views has.
    pub views: Vec<usize>,
    /// How buffers are compressed.
    pub codec: Option<Codec>,
}

/// Values of a dictionary.
#[derive(Debug)]
pub struct Dictionary {
    /// Which.
    pub id: i64,
    /// Whether they are appended to those that came before.
    pub is_delta: bool,
    /// The values.
    pub values: Batch,
}

/// All that a file says of its data.
#[derive(Debug)]
pub struct Messages {
    /// The columns.
    pub schema: SchemaRef,
    /// Values of dictionaries, in the file's order.
    pub dictionaries: Vec<Dictionary>,
    /// The record batches.
    pub batches: Vec<Batch>,
}

impl Messages {
    /// Reads them.
    pub fn read(file: &dyn ReadAt) -> Result<Self, FormatError> {
        let begin = file.read(0..HEAD_BYTES.min(file.len()))?;
        let messages = if begin.starts_with(FILE_MAGIC) {
            Self::of_file(file)?
        } else if begin.starts_with(CONTINUATION) {
            Self::of_stream(file)?
        } else if begin.starts_with(FEATHER_1_MAGIC) {
            return damaged("it is Feather of version 1; write it again as version 2");
        } else {
            return damaged("it is no Arrow IPC file");
        };
        let mut known = HashSet::new();
        for dictionary in &messages.dictionaries {
            let is_first = known.insert(dictionary.id);
            if is_first == dictionary.is_delta {
                return damaged(
                    "its dictionaries are replaced between batches; write it with one dictionary \
                     for each column",
                );
            }
        }
        Ok(messages)
    }

    /// The messages that a file's footer names.
    fn of_file(file: &dyn ReadAt) -> Result<Self, FormatError> {
        let early = || FormatError::Damaged("it ends early: it has no footer".to_owned());
        let tail_at = file.len().checked_sub(TAIL_BYTES).ok_or_else(early)?;
        let tail = file.read(tail_at..file.len())?;
        let length = tail.first_chunk().map(|length| i32::from_le_bytes(*length));
        let length = length.and_then(|length| u64::try_from(length).ok());
        let footer_at = length.and_then(|length| tail_at.checked_sub(length));
        let footer_at = footer_at
            .filter(|&at| at >= HEAD_BYTES && tail.ends_with(FILE_MAGIC))
            .ok_or_else(early)?;
        let footer = file.read(footer_at..tail_at)?;
        let footer = root_as_footer(&footer).or_else(|_| damaged("its footer is damaged"))?;
        let schema = schema_of(footer.schema())?;
        let (mut dictionaries, mut batches) = (Vec::new(), Vec::new());
        for block in footer.dictionaries().iter().flatten() {
            let (message, body) = message_of(file, block)?;
            dictionaries.push(dictionary_of(&parse_message(&message)?, body)?);
        }
        for block in footer.recordBatches().iter().flatten() {
            let (message, body) = message_of(file, block)?;
            let message = parse_message(&message)?;
            let Some(batch) = message.header_as_record_batch() else {
                return damaged("its footer names a record batch where there is none");
            };
            batches.push(batch_of(&batch, body)?);
        }
        Ok(Self {
            schema,
            dictionaries,
            batches,
        })
    }

    /// The messages of a stream, one behind another.
    fn of_stream(file: &dyn ReadAt) -> Result<Self, FormatError> {
        let mut schema = None;
        let (mut dictionaries, mut batches) = (Vec::new(), Vec::new());
        let mut at = 0;
        // Some writers leave out the end of the stream.
        while at < file.len() {
            let begin = range_in(file, at, HEAD_BYTES)?;
            let begin = file.read(begin)?;
            let length = begin[4..]
                .first_chunk()
                .map_or(-1, |b| i32::from_le_bytes(*b));
            let Ok(length) = u64::try_from(length) else {
                return damaged("a message has no length");
            };
            if !begin.starts_with(CONTINUATION) {
                return damaged("a message begins with other bytes than messages do");
            }
            if length == 0 {
                break;
            }
            let message = range_in(file, at + HEAD_BYTES, length)?;
            let body_at = message.end;
            let message = file.read(message)?;
            let message = root(&message)?;
            let body_bytes = u64::try_from(message.bodyLength()).unwrap_or(u64::MAX);
            let body = range_in(file, body_at, body_bytes)?;
            at = body.end;
            if let Some(batch) = message.header_as_record_batch() {
                batches.push(batch_of(&batch, body)?);
            } else if message.header_as_dictionary_batch().is_some() {
                dictionaries.push(dictionary_of(&message, body)?);
            } else {
                schema = Some(schema_of(message.header_as_schema())?);
            }
        }
        Ok(Self {
            schema: schema.map_or_else(|| damaged("it has no schema"), Ok)?,
            dictionaries,
            batches,
        })
    }
}

/// A range of the file.
fn range_in(file: &dyn ReadAt, start: u64, bytes: u64) -> Result<Range<u64>, FormatError> {
    match start.checked_add(bytes).filter(|&end| end <= file.len()) {
        Some(end) => Ok(start..end),
        None => damaged("it ends early: a message is not whole"),
    }
}

/// A message, and where its body is.
fn message_of(file: &dyn ReadAt, block: &Block) -> Result<(Bytes, Range<u64>), FormatError> {
    let places = (
        u64::try_from(block.offset()),
        u64::try_from(block.metaDataLength()),
        u64::try_from(block.bodyLength()),
    );
    let (Ok(offset), Ok(message_bytes), Ok(body_bytes)) = places else {
        return damaged("its footer is damaged");
    };
    let message = range_in(file, offset, message_bytes)?;
    let body = range_in(file, message.end, body_bytes)?;
    Ok((file.read(message)?, body))
}

/// The message behind its length.
fn parse_message(message: &Bytes) -> Result<Message<'_>, FormatError> {
    let prefix_bytes = if message.starts_with(CONTINUATION) {
        8
    } else {
        4 // as before version 0.15
    };
    root(message.get(prefix_bytes..).unwrap_or_default())
}

fn root(message: &[u8]) -> Result<Message<'_>, FormatError> {
    root_as_message(message).or_else(|_| damaged("a message is damaged"))
}

fn schema_of(schema: Option<arrow_ipc::Schema<'_>>) -> Result<SchemaRef, FormatError> {
    let Some(schema) = schema else {
        return damaged("it has no schema");
    };
    if !schema.endianness().equals_to_target_endianness() {
        return damaged("its numbers have the bytes of another kind of processor (endianness)");
    }
    Ok(Arc::new(try_fb_to_schema(schema)?))
}

fn dictionary_of(message: &Message<'_>, body: Range<u64>) -> Result<Dictionary, FormatError> {
    let dictionary = message.header_as_dictionary_batch();
    let Some((dictionary, values)) =
        dictionary.and_then(|dictionary| Some((dictionary, dictionary.data()?)))
    else {
        return damaged("its footer names a dictionary where there is none");
    };
    Ok(Dictionary {
        id: dictionary.id(),
        is_delta: dictionary.isDelta(),
        values: batch_of(&values, body)?,
    })
}

fn batch_of(batch: &arrow_ipc::RecordBatch<'_>, body: Range<u64>) -> Result<Batch, FormatError> {
    let codec = match batch.compression() {
        None => None,
        Some(how) if how.method() != BodyCompressionMethod::BUFFER => {
            return damaged("its batches are compressed by an unknown method");
        }
        Some(how) => match how.codec() {
            CompressionType::LZ4_FRAME => Some(Codec::Lz4),
            CompressionType::ZSTD => Some(Codec::Zstd),
            _ => return damaged("its batches are compressed by an unknown codec"),
        },
    };
    let count = |count: i64| match u64::try_from(count) {
        Ok(count) => Ok(count),
        Err(_) => damaged("a message has a negative length"),
    };
    let place = |buffer: &arrow_ipc::Buffer| {
        let start = body.start.saturating_add(count(buffer.offset())?);
        let end = start.saturating_add(count(buffer.length())?);
        match end <= body.end {
            true => Ok(start..end),
            false => damaged("a buffer is not within its batch"),
        }
    };
    let views = batch.variadicBufferCounts().into_iter().flatten();
    Ok(Batch {
        rows: count(batch.length())?,
        arrays: batch
            .nodes()
            .into_iter()
            .flatten()
            .map(|node| Ok((count(node.length())?, node.null_count() > 0)))
            .collect::<Result<_, FormatError>>()?,
        buffers: batch
            .buffers()
            .into_iter()
            .flatten()
            .map(place)
            .collect::<Result<_, _>>()?,
        views: views
            .map(|views| Ok(count(views)? as usize))
            .collect::<Result<_, FormatError>>()?,
        codec,
    })
}

pub fn damaged<T>(why: &str) -> Result<T, FormatError> {
    Err(FormatError::Damaged(why.to_owned()))
}
