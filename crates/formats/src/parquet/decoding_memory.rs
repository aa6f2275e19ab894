//! How much memory decoding takes: of each column a page and a dictionary, and a batch of all columns.
//!
//! What a file says of its columns tells how long their values are on average. How long pages are,
//! and their values, only their headers tell: they are read once the split is in memory.

use std::ops::Range;

use parquet::arrow::ProjectionMask;
use parquet::basic::{Compression, Type};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use super::page_header::PageHeader;
use crate::read_at::Pieces;

/// Memory of a page and its dictionary before their headers are known: as most writers limit them.
const USUAL_PAGE_BYTES: u64 = 2 << 20;
/// Bytes of a batch: enough to be worth its arrays, of each column and in all, and not too many.
const COLUMN_BATCH_BYTES: u64 = 4 << 10;
const BATCH_BYTES: [u64; 2] = [256 << 10, 2 << 20];
/// A definition level, and a repetition level.
const LEVEL_BYTES: u64 = 2;
/// Where a value of a dictionary of texts begins.
const OFFSET_BYTES: u64 = 8;

/// The memory that decoding a split takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodingMemory {
    /// Pages and dictionaries of all columns.
    page_bytes: u64,
    /// A row in a batch, on average.
    row_bytes: u64,
    /// A batch, about.
    pub batch_bytes: u64,
}

/// What the pages of a column in a split take.
#[derive(Clone, Copy, Debug, Default)]
struct ColumnPages {
    bytes: u64,
    /// Bytes and values of the dictionary, if there is one.
    dictionary: Option<(u64, u64)>,
    /// Bytes of a value in the page with the longest.
    value_bytes: u64,
}

impl DecodingMemory {
    /// Of splits of about so many bytes of a row group, before they are read.
    pub fn expected(group: &RowGroupMetaData, columns: &ProjectionMask, split_bytes: u64) -> Self {
        Self::with_pages(group, columns, split_bytes, |column| ColumnPages {
            bytes: bytes(column.uncompressed_size()).min(USUAL_PAGE_BYTES),
            ..ColumnPages::default()
        })
    }

    /// Of such a split in memory.
    pub fn of_pages(
        group: &RowGroupMetaData,
        columns: &ProjectionMask,
        split_bytes: u64,
        pieces: &Pieces,
    ) -> Self {
        let pages = |column: &ColumnChunkMetaData| ColumnPages::find(column, pieces);
        Self::with_pages(group, columns, split_bytes, pages)
    }

    fn with_pages(
        group: &RowGroupMetaData,
        mask: &ProjectionMask,
        split_bytes: u64,
        pages_of: impl Fn(&ColumnChunkMetaData) -> ColumnPages,
    ) -> Self {
        let (mut page_bytes, mut decoded, mut columns) = (0_u64, 0_u64, 0);
        for (leaf, column) in group.columns().iter().enumerate() {
            if mask.leaf_included(leaf) {
                let pages = pages_of(column);
                page_bytes = page_bytes.saturating_add(pages.bytes);
                decoded = decoded.saturating_add(decoded_bytes(column, &pages));
                columns += 1;
            }
        }
        let [least, most] = BATCH_BYTES;
        let batch_bytes = (split_bytes / 4).clamp(least, most);
        Self {
            page_bytes,
            row_bytes: decoded / bytes(group.num_rows()).max(1),
            batch_bytes: batch_bytes.max(columns * COLUMN_BATCH_BYTES),
        }
    }

    /// How many rows a batch has, at most so many.
    pub fn batch_rows(&self, most: usize) -> usize {
        let rows = self.batch_bytes / self.row_bytes.max(1);
        usize::try_from(rows).unwrap_or(most).clamp(1, most)
    }

    /// All of it: a batch is copied once, for values that are nested or whose type changes.
    pub fn bytes(&self) -> u64 {
        let batch = self.batch_bytes.max(self.row_bytes);
        self.page_bytes.saturating_add(batch.saturating_mul(2))
    }
}

impl ColumnPages {
    /// What the headers say that are in memory.
    fn find(column: &ColumnChunkMetaData, pieces: &Pieces) -> Self {
        let is_stored_plain = column.compression() == Compression::UNCOMPRESSED;
        let (start, length) = column.byte_range();
        let chunk: Range<u64> = start..start + length;
        let (mut pages, mut at) = (Self::default(), start);
        let mut largest = 0;
        while let Some(header_at) = pieces.next(at).filter(|at| chunk.contains(at)) {
            // What is wrong with a header, the decoder says.
            let Some(header) = PageHeader::parse(&pieces.from(header_at)) else {
                break;
            };
            if header.is_dictionary {
                pages.dictionary = Some((header.bytes, header.values));
            } else {
                pages.value_bytes = pages.value_bytes.max(header.bytes / header.values.max(1));
                if !is_stored_plain {
                    largest = header.bytes.max(largest); // others are used where they are
                }
            }
            at = header_at + header.header_bytes + header.stored_bytes;
        }
        let offsets = match column.column_type() {
            Type::BYTE_ARRAY => OFFSET_BYTES,
            _ => 0,
        };
        let dictionary = pages.dictionary;
        let dictionary = dictionary.map_or(0, |(bytes, values)| bytes + values * offsets);
        pages.bytes = largest.saturating_add(dictionary);
        pages
    }
}

/// The bytes of a column's values in a row group, were all as long as those of the page with the
/// longest. In a file repeated values take a bit or two; how long texts are then, files of newer
/// writers tell, and the dictionary.
fn decoded_bytes(column: &ColumnChunkMetaData, pages: &ColumnPages) -> u64 {
    let about = column.column_descr();
    let width = match column.column_type() {
        Type::BOOLEAN => 1,
        Type::INT32 | Type::FLOAT => 4,
        Type::INT64 | Type::DOUBLE => 8,
        Type::INT96 => 12,
        Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(about.type_length()).unwrap_or(0),
        Type::BYTE_ARRAY => 4, // an offset
    };
    let levels = [about.max_def_level(), about.max_rep_level()];
    let levels = LEVEL_BYTES * levels.iter().filter(|&&most| most > 0).count() as u64;
    let count = bytes(column.num_values());
    let from_dictionary = pages.dictionary.map_or(0, |(bytes, values)| {
        u64::try_from(u128::from(count) * u128::from(bytes) / u128::from(values.max(1)))
            .unwrap_or(u64::MAX)
    });
    let texts = match column.column_type() {
        Type::BYTE_ARRAY => {
            let texts = column.unencoded_byte_array_data_bytes().unwrap_or(0);
            bytes(texts).max(from_dictionary)
        }
        _ => 0,
    };
    let values = count.saturating_mul(width + levels);
    values
        .saturating_add(texts)
        .max(bytes(column.uncompressed_size()))
        .max(count.saturating_mul(pages.value_bytes))
}

/// A length that the file tells; a damaged one may be negative.
fn bytes(length: i64) -> u64 {
    u64::try_from(length).unwrap_or(0)
}
