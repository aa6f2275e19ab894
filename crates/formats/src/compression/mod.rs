//! Compressed text: one stream a file, of one member or several end to end.

mod compressor;
mod decompressor;

pub use compressor::Compressor;
pub use decompressor::Decompressor;

/// How a file of text is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
    /// bzip2.
    Bzip2,
}

/// Bytes that tell how a file is compressed, and what memory it takes to decompress.
pub const BEGINNING_BYTES: usize = 18;

const GZIP: &[u8] = &[0x1f, 0x8b, 8];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// A block of bzip2, or the end of a stream without blocks: a line may begin with `BZh`, too.
const BZIP2_BLOCKS: [&[u8]; 2] = [b"1AY&SY", b"\x17rE8P\x90"];

impl Codec {
    /// The codec of a file that begins so, if it is compressed.
    #[must_use]
    pub fn of(beginning: &[u8]) -> Option<Self> {
        if beginning.starts_with(GZIP) {
            return Some(Self::Gzip);
        }
        if beginning.starts_with(ZSTD) {
            return Some(Self::Zstd);
        }
        let (&level, rest) = beginning.strip_prefix(b"BZh")?.split_first()?;
        let has_block = BZIP2_BLOCKS.iter().any(|block| rest.starts_with(block));
        (level.is_ascii_digit() && level > b'0' && has_block).then_some(Self::Bzip2)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
        }
    }

    /// How far back a stream that begins so refers to its text, at most.
    #[must_use]
    pub fn window_bytes(self, beginning: &[u8]) -> usize {
        match self {
            Self::Gzip => 32 << 10,
            Self::Zstd => zstd_window(beginning).unwrap_or(0),
            Self::Bzip2 => 900_000,
        }
    }

    /// Memory that a decompressor takes with such a window.
    #[must_use]
    pub fn memory_bytes(self, window_bytes: usize) -> usize {
        match self {
            Self::Gzip => 64 << 10,
            Self::Zstd => window_bytes + (512 << 10),
            Self::Bzip2 => 4 << 20,
        }
    }
}

/// The window that the header of a frame names: its own field, or the length of the content.
fn zstd_window(beginning: &[u8]) -> Option<usize> {
    let (&descriptor, fields) = beginning.strip_prefix(ZSTD)?.split_first()?;
    let is_single_segment = descriptor & 1 << 5 != 0;
    if !is_single_segment {
        let window = *fields.first()?;
        let base = 1_usize.checked_shl(10 + u32::from(window >> 3))?;
        return Some(base + base / 8 * usize::from(window & 7));
    }
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content_bytes = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let mut content = [0; 8];
    let field = fields.get(dictionary_bytes..dictionary_bytes + content_bytes)?;
    content[..content_bytes].copy_from_slice(field);
    let added = if content_bytes == 2 { 256 } else { 0 };
    usize::try_from(u64::from_le_bytes(content).saturating_add(added)).ok()
}
