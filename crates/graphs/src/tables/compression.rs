//! How files of the output are compressed.

use ::parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use ::parquet::errors::ParquetError;
use serde::Deserialize;
use tonnage_formats::arrow_ipc;
use tonnage_formats::compression::Codec;

use crate::error::{JobError, setting_error};

/// A codec, and its level where it has levels.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompressionConfig {
    codec: CodecName,
    #[serde(default)]
    level: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CodecName {
    None,
    Snappy,
    Zstd,
    Lz4,
    Gzip,
    Brotli,
    Bzip2,
}

impl CompressionConfig {
    /// For pages of Parquet.
    ///
    /// # Errors
    /// When Parquet has no such codec or level.
    pub fn of_parquet(self) -> Result<Compression, JobError> {
        let wrong_level = |why: ParquetError| setting_error("compression", why.to_string());
        Ok(match (self.codec, self.level) {
            (CodecName::None, _) => Compression::UNCOMPRESSED,
            (CodecName::Snappy, _) => Compression::SNAPPY,
            (CodecName::Lz4, _) => Compression::LZ4_RAW,
            (CodecName::Zstd, None) => Compression::ZSTD(ZstdLevel::default()),
            (CodecName::Zstd, Some(level)) => {
                let level = i32::try_from(level).unwrap_or(i32::MAX);
                Compression::ZSTD(ZstdLevel::try_new(level).map_err(wrong_level)?)
            }
            (CodecName::Gzip, None) => Compression::GZIP(GzipLevel::default()),
            (CodecName::Gzip, Some(level)) => {
                Compression::GZIP(GzipLevel::try_new(level).map_err(wrong_level)?)
            }
            (CodecName::Brotli, None) => Compression::BROTLI(BrotliLevel::default()),
            (CodecName::Brotli, Some(level)) => {
                Compression::BROTLI(BrotliLevel::try_new(level).map_err(wrong_level)?)
            }
            (CodecName::Bzip2, _) => return Err(self.refusal("Parquet")),
        })
    }

    /// For buffers of Arrow IPC.
    ///
    /// # Errors
    /// When Arrow has no such codec.
    pub fn of_arrow(self) -> Result<Option<arrow_ipc::Codec>, JobError> {
        match self.codec {
            CodecName::None => Ok(None),
            CodecName::Lz4 => Ok(Some(arrow_ipc::Codec::Lz4)),
            CodecName::Zstd => Ok(Some(arrow_ipc::Codec::Zstd)),
            _ => Err(self.refusal("Arrow")),
        }
    }

    /// For text, with its level.
    ///
    /// # Errors
    /// When text is not written so.
    pub fn of_text(self) -> Result<Option<TextCodec>, JobError> {
        let codec = match self.codec {
            CodecName::None => return Ok(None),
            CodecName::Gzip => Codec::Gzip,
            CodecName::Zstd => Codec::Zstd,
            CodecName::Bzip2 => Codec::Bzip2,
            _ => return Err(self.refusal("text")),
        };
        let level = self.level;
        Ok(Some(TextCodec { codec, level }))
    }

    fn refusal(self, format: &str) -> JobError {
        setting_error("compression", format!("{format} has no {:?}", self.codec))
    }
}

/// How text is compressed.
#[derive(Clone, Copy, Debug)]
pub struct TextCodec {
    /// The codec.
    pub codec: Codec,
    /// Its level.
    pub level: Option<u32>,
}

impl TextCodec {
    /// How names of files of a format end, if they are compressed so.
    pub fn suffix(of_format: &str, compression: Option<Self>) -> String {
        let of_codec = match compression.map(|compression| compression.codec) {
            None => "",
            Some(Codec::Gzip) => ".gz",
            Some(Codec::Zstd) => ".zst",
            Some(Codec::Bzip2) => ".bz2",
        };
        format!("{of_format}{of_codec}")
    }
}
