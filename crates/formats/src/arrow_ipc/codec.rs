//! Compressed buffers: eight bytes with the length, or -1 if it is not compressed, then the data.

use std::io::Read;

use arrow_buffer::Buffer;
use bytes::Bytes;

use crate::error::FormatError;

/// Bytes of the length.
pub const LENGTH_BYTES: u64 = 8;
/// Nothing is compressed to less than one byte of so many: neither codec can.
const MOST_RATIO: u64 = 1 << 16;
/// Most buffers are compressed by less.
const LIKELY_RATIO: usize = 16;

/// How buffers are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// LZ4, in frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// Refuses a length that so many compressed bytes cannot have, before memory is taken for it.
pub fn check_ratio(bytes: u64, compressed: u64) -> Result<u64, FormatError> {
    match bytes <= compressed.saturating_mul(MOST_RATIO) {
        true => Ok(bytes),
        false => Err(FormatError::Damaged(format!(
            "a buffer of {compressed} bytes cannot have {bytes} bytes of values"
        ))),
    }
}

/// How long a buffer is that begins with these bytes, and has `compressed` bytes in the file.
pub fn decoded_bytes(begin: &[u8], compressed: u64) -> Result<u64, FormatError> {
    match begin
        .first_chunk()
        .map(|length| i64::from_le_bytes(*length))
    {
        Some(-1) => Ok(compressed - LENGTH_BYTES),
        Some(length) if length >= 0 => check_ratio(length as u64, compressed),
        _ => Err(FormatError::Damaged(
            "a compressed buffer has no length".to_owned(),
        )),
    }
}

impl Codec {
    /// The first `bytes` of a buffer.
    pub fn decode(self, buffer: &Bytes, bytes: usize) -> Result<Buffer, FormatError> {
        let begin = LENGTH_BYTES as usize;
        if buffer.len() < begin {
            return Ok(Buffer::default());
        }
        let data = buffer.slice(begin..);
        if buffer.starts_with(&(-1_i64).to_le_bytes()) {
            return Ok(Buffer::from(data.slice(..bytes.min(data.len()))));
        }
        // What a damaged length asks for is taken only as far as there are values.
        let mut values = Vec::with_capacity(bytes.min(LIKELY_RATIO * data.len()));
        let read = match self {
            Self::Lz4 => lz4_flex::frame::FrameDecoder::new(&data[..])
                .take(bytes as u64)
                .read_to_end(&mut values),
            Self::Zstd => zstd::stream::read::Decoder::with_buffer(&data[..])
                .and_then(|reader| reader.take(bytes as u64).read_to_end(&mut values)),
        };
        read.map_err(|why| FormatError::Damaged(format!("a compressed buffer: {why}")))?;
        Ok(Buffer::from_vec(values))
    }
}
