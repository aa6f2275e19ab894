//! Compresses text as it is written: one member a file.

use std::io::{self, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;

use crate::compression::Codec;

/// Levels where none is given: those of `gzip`, `zstd` and `bzip2`.
const LEVELS: (u32, u32, u32) = (6, 3, 9);
/// MiB that zstd takes at its levels, from 1 on.
const ZSTD_MEBIBYTES: [usize; 9] = [2, 2, 4, 5, 6, 6, 9, 9, 17];

/// Writes text to `W`, compressed.
pub struct Compressor<W: Write> {
    encoder: Encoder<W>,
}

enum Encoder<W: Write> {
    Gzip(GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
    Bzip2(BzEncoder<W>),
}

impl<W: Write> Compressor<W> {
    /// The highest level; zstd's others take more memory than a core has, mostly.
    pub const LEVELS: u32 = 9;

    /// Begins a file at this level, or the codec's usual one.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new(codec: Codec, level: Option<u32>, to: W) -> io::Result<Self> {
        let level = |usual: u32| level.unwrap_or(usual).clamp(1, Self::LEVELS);
        let encoder = match codec {
            Codec::Gzip => Encoder::Gzip(GzEncoder::new(
                to,
                flate2::Compression::new(level(LEVELS.0)),
            )),
            Codec::Zstd => {
                let level = i32::try_from(level(LEVELS.1)).expect("at most 9");
                let mut encoder = zstd::stream::write::Encoder::new(to, level)?;
                encoder.include_checksum(true)?;
                Encoder::Zstd(encoder)
            }
            Codec::Bzip2 => {
                Encoder::Bzip2(BzEncoder::new(to, bzip2::Compression::new(level(LEVELS.2))))
            }
        };
        Ok(Self { encoder })
    }

    /// Writes what is still to be written.
    ///
    /// # Errors
    /// What `W` says.
    pub fn finish(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Gzip(encoder) => encoder.try_finish(),
            Encoder::Zstd(encoder) => encoder.do_finish(),
            Encoder::Bzip2(encoder) => encoder.try_finish(),
        }
    }

    /// What is written to.
    pub fn inner_mut(&mut self) -> &mut W {
        match &mut self.encoder {
            Encoder::Gzip(encoder) => encoder.get_mut(),
            Encoder::Zstd(encoder) => encoder.get_mut(),
            Encoder::Bzip2(encoder) => encoder.get_mut(),
        }
    }
}

impl Codec {
    /// Memory that a compressor takes at this level, or the codec's usual one.
    #[must_use]
    pub fn compressor_bytes(self, level: Option<u32>) -> usize {
        match self {
            Self::Gzip => 512 << 10,
            Self::Zstd => {
                let level = level.unwrap_or(LEVELS.1).max(1) as usize;
                ZSTD_MEBIBYTES[level.min(ZSTD_MEBIBYTES.len()) - 1] << 20
            }
            Self::Bzip2 => 8 << 20,
        }
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            Encoder::Gzip(encoder) => encoder.write(text),
            Encoder::Zstd(encoder) => encoder.write(text),
            Encoder::Bzip2(encoder) => encoder.write(text),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Gzip(encoder) => encoder.flush(),
            Encoder::Zstd(encoder) => encoder.flush(),
            Encoder::Bzip2(encoder) => encoder.flush(),
        }
    }
}
