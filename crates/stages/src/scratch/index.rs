//! The index of scratch files on disk, with which a restarted node finds its blocks: a magic
//! number, 20 bytes for each block (partition, length, CRC-32 or 0, offset; little-endian), and a
//! CRC-32.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use tonnage_records::crc32;

const MAGIC: &[u8; 8] = b"tonnage2";
const BLOCK_BYTES: usize = 20;

/// A block: its partition, and where it lies on the partition's device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedBlock {
    pub partition: u32,
    pub len: u32,
    pub offset: u64,
    pub crc: u32,
}

/// Reads an index.
///
/// # Errors
/// When it cannot be read or is damaged.
pub(crate) fn read(index: &Path) -> io::Result<Vec<IndexedBlock>> {
    let bytes = fs::read(index)?;
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the scratch index is damaged");
    let (bytes, sum) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
    let blocks = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
    if crc32(bytes) != u32::from_le_bytes(*sum) || blocks.len() % BLOCK_BYTES != 0 {
        return Err(damaged());
    }
    let block = |bytes: &[u8]| {
        let short = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("within"));
        IndexedBlock {
            partition: short(0),
            len: short(4),
            crc: short(8),
            offset: u64::from_le_bytes(*bytes[12..].first_chunk().expect("within")),
        }
    };
    Ok(blocks.chunks_exact(BLOCK_BYTES).map(block).collect())
}

/// Writes an index atomically.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(index: &Path, blocks: impl Iterator<Item = IndexedBlock>) -> io::Result<()> {
    let mut bytes = MAGIC.to_vec();
    for block in blocks {
        bytes.extend(block.partition.to_le_bytes());
        bytes.extend(block.len.to_le_bytes());
        bytes.extend(block.crc.to_le_bytes());
        bytes.extend(block.offset.to_le_bytes());
    }
    bytes.extend(crc32(&bytes).to_le_bytes());
    let unfinished = index.with_extension("part");
    let mut file = File::create(&unfinished)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, index)
}
