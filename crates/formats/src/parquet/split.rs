//! Splits of a Parquet file.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::errors::ParquetError;
use parquet::file::metadata::page_index::PageIndexProvider;
use parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader,
};
use parquet::file::page_index::offset_index::PageLocation;

use super::decoding_memory::DecodingMemory;
use super::pages::{Pages, find_pages, ranges_of_pages};
use crate::error::FormatError;
use crate::ranges::joined;
use crate::read_at::{ReadAt, WholeFile};

/// Runs of rows that are sampled in a split.
const SAMPLED_RUNS: usize = 8;

/// A Parquet file, opened: what its footer says.
#[derive(Clone)]
pub struct ParquetFile {
    file: Arc<dyn ReadAt>,
    pub(super) metadata: Arc<ParquetMetaData>,
    schema: SchemaRef,
}

/// Rows of a row group that are decoded together.
#[derive(Clone, Debug)]
pub struct Split {
    /// The row group.
    pub row_group: usize,
    /// Its rows.
    pub rows: Range<usize>,
    /// The bytes of the file that they need, in the file's order.
    pub ranges: Vec<Range<u64>>,
    /// Memory to decode them, about: how long pages are, is known once they are read.
    pub decoded_bytes: u64,
    /// About how many bytes of the file a split may have.
    pub(super) most_bytes: u64,
    /// What the file says of the row group, and where its pages are if the split is a part of it.
    pub(super) group: ArrowReaderMetadata,
    /// Which of the row group's rows are decoded; none if all are.
    pub(super) decoded: Vec<Range<usize>>,
}

impl Split {
    /// About so many of its rows at most, from places spread evenly over it.
    #[must_use]
    pub fn thinned(mut self, rows: usize) -> Self {
        let all = self.rows.clone();
        if rows < all.len() {
            let run = rows.div_ceil(SAMPLED_RUNS);
            let runs = all.len().min(rows) / run;
            let begin = |place: usize| all.start + all.len() * place / runs;
            self.decoded = (0..runs)
                .map(|place| begin(place)..begin(place) + run)
                .collect();
        }
        self
    }
}

fn not_parquet(why: ParquetError) -> FormatError {
    match why {
        ParquetError::External(_) => why.into(), // the device's
        _ => FormatError::Damaged(format!(
            "it is no Parquet file, or damaged, or encrypted: {}",
            FormatError::from(why)
        )),
    }
}

/// Columns to read, by their places in the file.
#[derive(Clone, Debug)]
pub struct Projection {
    pub(super) mask: ProjectionMask,
}

impl ParquetFile {
    /// Reads the footer.
    ///
    /// # Errors
    /// When it is no Parquet file, or cannot be read.
    pub fn open(file: Arc<dyn ReadAt>) -> Result<Self, FormatError> {
        let mut reader =
            ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
        let parsed = reader.try_parse(&WholeFile(Arc::clone(&file)));
        parsed.map_err(not_parquet)?;
        let metadata = reader.finish()?;
        let about = metadata.file_metadata();
        let schema = parquet_to_arrow_schema(about.schema_descr(), about.key_value_metadata())?;
        Ok(Self {
            file,
            metadata: Arc::new(metadata),
            schema: Arc::new(schema),
        })
    }

    /// Its columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.metadata
            .file_metadata()
            .num_rows()
            .try_into()
            .unwrap_or(0)
    }

    /// The number of a split's first row in the file.
    #[must_use]
    pub fn first_row(&self, split: &Split) -> u64 {
        let before = &self.metadata.row_groups()[..split.row_group];
        let rows: i64 = before.iter().map(|group| group.num_rows()).sum();
        rows.try_into().unwrap_or(0) + split.rows.start as u64
    }

    /// The columns in these places.
    #[must_use]
    pub fn projection(&self, columns: &[usize]) -> Projection {
        let parquet = self.metadata.file_metadata().schema_descr();
        Projection {
            mask: ProjectionMask::roots(parquet, columns.iter().copied()),
        }
    }

    /// A row group on its own, with the places of its pages if they are needed.
    fn group(
        &self,
        number: usize,
        pages: Option<Pages>,
    ) -> Result<ArrowReaderMetadata, FormatError> {
        let pages = pages.map(|pages| Arc::new(pages) as Arc<dyn PageIndexProvider>);
        let metadata = ParquetMetaDataBuilder::new(self.metadata.file_metadata().clone())
            .add_row_group(self.metadata.row_group(number).clone())
            .set_page_index(pages)
            .build();
        Ok(ArrowReaderMetadata::try_new(
            Arc::new(metadata),
            ArrowReaderOptions::new(),
        )?)
    }

    /// Divides row groups whose rows are wanted into splits that need at most about `most_bytes`
    /// of the file each; more where a row group cannot be divided: it has lists, and no index of
    /// pages.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn splits(
        &self,
        projection: &Projection,
        most_bytes: u64,
        is_wanted: impl Fn(&Range<u64>) -> bool,
    ) -> Result<Vec<Split>, FormatError> {
        let (mut splits, mut first) = (Vec::new(), 0);
        for (number, group) in self.metadata.row_groups().iter().enumerate() {
            let rows = first..first + u64::try_from(group.num_rows()).unwrap_or(0);
            if is_wanted(&rows) {
                splits.extend(self.splits_of(number, projection, most_bytes)?);
            }
            first = rows.end;
        }
        Ok(splits)
    }

    /// The splits that have some of these rows of the file, in order, of about `most_bytes`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn splits_at(
        &self,
        projection: &Projection,
        rows: &[u64],
        most_bytes: u64,
    ) -> Result<Vec<Split>, FormatError> {
        let (mut chosen, mut first) = (Vec::new(), 0);
        for (number, group) in self.metadata.row_groups().iter().enumerate() {
            let end = first + u64::try_from(group.num_rows()).unwrap_or(0);
            let within =
                rows.partition_point(|&row| row < first)..rows.partition_point(|&row| row < end);
            if !within.is_empty() {
                let splits = self.splits_of(number, projection, most_bytes)?;
                let has_some = |split: &Split| {
                    let mut within = rows[within.clone()].iter();
                    within.any(|&row| split.rows.contains(&((row - first) as usize)))
                };
                chosen.extend(splits.into_iter().filter(has_some));
            }
            first = end;
        }
        Ok(chosen)
    }

    /// The splits of a row group.
    fn splits_of(
        &self,
        number: usize,
        projection: &Projection,
        most_bytes: u64,
    ) -> Result<Vec<Split>, FormatError> {
        let group = self.metadata.row_group(number);
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let is_read = |leaf: &usize| projection.mask.leaf_included(*leaf);
        let chunk = |leaf: usize| {
            let (start, bytes) = group.column(leaf).byte_range();
            start..start + bytes
        };
        let ranges = joined(
            (0..group.num_columns())
                .filter(is_read)
                .map(chunk)
                .collect(),
            0,
        );
        let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        if rows == 0 {
            return Ok(Vec::new());
        }
        let decoded_bytes = DecodingMemory::expected(group, &projection.mask, most_bytes).bytes();
        let whole = || {
            Ok(vec![Split {
                row_group: number,
                rows: 0..rows,
                ranges: ranges.clone(),
                decoded_bytes,
                most_bytes,
                group: self.group(number, None)?,
                decoded: Vec::new(),
            }])
        };
        if bytes <= most_bytes {
            return whole();
        }
        let pages = (0..group.num_columns()).map(|leaf| match is_read(&leaf) {
            true => find_pages(&self.metadata, number, leaf, &self.file),
            false => Ok(Some(Vec::new())),
        });
        let pages: Option<Vec<Vec<PageLocation>>> = pages.collect::<Result<_, _>>()?;
        let Some(pages) = pages else {
            return whole();
        };
        let group_with_pages = self.group(number, Some(Pages(pages.clone())))?;
        let parts = usize::try_from(bytes.div_ceil(most_bytes))
            .unwrap_or(rows)
            .min(rows);
        let part = |part: usize| {
            let rows = rows * part / parts..rows * (part + 1) / parts;
            let leaves = (0..group.num_columns()).filter(is_read);
            let ranges =
                leaves.flat_map(|leaf| ranges_of_pages(&pages[leaf], chunk(leaf).start, &rows));
            Split {
                row_group: number,
                ranges: joined(ranges.collect(), 0),
                decoded: vec![rows.clone()],
                decoded_bytes,
                most_bytes,
                rows,
                group: group_with_pages.clone(),
            }
        };
        Ok((0..parts).map(part).collect())
    }
}
