//! Where the pages of a column are.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::column::page::PageReader;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::metadata::page_index::PageIndexProvider;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::{OffsetIndexMetaData, PageLocation};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::error::FormatError;
use crate::read_at::{ReadAt, WholeFile, WholeReader};

/// The pages of each leaf column of one row group; none for leaves that are not read.
#[derive(Debug)]
pub struct Pages(pub Vec<Vec<PageLocation>>);

impl PageIndexProvider for Pages {
    fn has_offset_indexes(&self) -> bool {
        true
    }

    fn has_column_indexes(&self) -> bool {
        false
    }

    fn column_index(&self, _group: usize, _leaf: usize) -> Option<&ColumnIndexMetaData> {
        None
    }

    fn offset_index(&self, _group: usize, _leaf: usize) -> Option<&OffsetIndexMetaData> {
        None
    }

    fn page_locations(&self, _group: usize, leaf: usize) -> Option<&Vec<PageLocation>> {
        self.0.get(leaf)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The pages of a column in a row group, without its dictionary; `None` if nobody can tell which
/// rows are in which page.
pub fn find_pages(
    metadata: &ParquetMetaData,
    row_group: usize,
    leaf: usize,
    file: &Arc<dyn ReadAt>,
) -> Result<Option<Vec<PageLocation>>, FormatError> {
    let index = metadata.page_index();
    if let Some(pages) = index.and_then(|index| index.page_locations(row_group, leaf))
        && !pages.is_empty()
    {
        return Ok(Some(pages.clone()));
    }
    scan_pages(metadata, row_group, leaf, file)
}

/// Reads the headers of the pages, one after another.
fn scan_pages(
    metadata: &ParquetMetaData,
    row_group: usize,
    leaf: usize,
    file: &Arc<dyn ReadAt>,
) -> Result<Option<Vec<PageLocation>>, FormatError> {
    let group = metadata.row_group(row_group);
    let column = group.column(leaf);
    let is_repeated = column.column_descr().max_rep_level() > 0;
    let headers = Arc::new(Headers {
        whole: WholeFile(Arc::clone(file)),
        last: Mutex::new(0),
    });
    let rows = usize::try_from(group.num_rows()).unwrap_or(0);
    let mut reader = SerializedPageReader::new(Arc::clone(&headers), column, rows, None)?;
    let mut pages: Vec<PageLocation> = Vec::new();
    let mut first_row = 0;
    let (start, bytes) = column.byte_range();
    let end_last = |pages: &mut Vec<PageLocation>, at: u64| {
        if let Some(last) = pages
            .last_mut()
            .filter(|last| last.compressed_page_size == 0)
        {
            last.compressed_page_size = i32::try_from(at - last.offset as u64).unwrap_or(i32::MAX);
        }
    };
    while let Some(page) = reader.peek_next_page()? {
        let at = *headers.last.lock().unwrap_or_else(PoisonError::into_inner);
        end_last(&mut pages, at);
        if !page.is_dict {
            let rows = match (page.num_rows, page.num_levels) {
                (Some(rows), _) => rows,
                (None, Some(levels)) if !is_repeated => levels,
                _ => return Ok(None),
            };
            pages.push(PageLocation {
                offset: at as i64,
                compressed_page_size: 0, // until the next page
                first_row_index: first_row,
            });
            first_row += rows as i64;
        }
        reader.skip_next_page()?;
    }
    end_last(&mut pages, start + bytes);
    Ok((first_row == group.num_rows()).then_some(pages))
}

/// The bytes of a column's dictionary and of its pages with these rows.
pub fn ranges_of_pages(pages: &[PageLocation], start: u64, rows: &Range<usize>) -> Vec<Range<u64>> {
    let (first, end) = (rows.start as i64, rows.end as i64);
    let from = pages
        .partition_point(|page| page.first_row_index <= first)
        .saturating_sub(1);
    let to = pages.partition_point(|page| page.first_row_index < end);
    let mut ranges = Vec::new();
    if let Some(page) = pages.first().filter(|page| page.offset as u64 > start) {
        ranges.push(start..page.offset as u64);
    }
    ranges.extend(pages[from..to].iter().map(|page| {
        let offset = page.offset as u64;
        offset..offset + page.compressed_page_size as u64
    }));
    ranges
}

/// A file that remembers where the last header was read: the reader does not tell where a page is.
struct Headers {
    whole: WholeFile,
    last: Mutex<u64>,
}

impl Length for Headers {
    fn len(&self) -> u64 {
        self.whole.len()
    }
}

impl ChunkReader for Headers {
    type T = WholeReader;

    fn get_read(&self, start: u64) -> ParquetResult<WholeReader> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = start;
        self.whole.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.whole.get_bytes(start, length)
    }
}
