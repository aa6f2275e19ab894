//! Splits of an Arrow IPC file.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, SchemaRef};

use super::messages::{Batch, Messages};
use super::places::{ArrayPlace, BufferPlace, Locator};
use crate::error::FormatError;
use crate::ranges::joined;
use crate::read_at::ReadAt;

/// What is between buffers and read with them: padding, and what a device reads anyway.
const GAP_BYTES: u64 = 4096;

/// An Arrow IPC file or stream, opened: what its messages say.
#[derive(Clone)]
pub struct ArrowFile {
    file: Arc<dyn ReadAt>,
    messages: Arc<Messages>,
    /// The number of each batch's first row, and that of all rows.
    first_rows: Arc<Vec<u64>>,
}

/// Columns of a file to read.
#[derive(Clone)]
pub struct Projection {
    file: ArrowFile,
    /// The place of each of the file's columns among these, if it is read.
    places: Arc<[Option<usize>]>,
    pub(super) schema: SchemaRef,
    pub(super) dictionaries: Arc<Vec<DictionaryPlace>>,
}

/// Where values of a dictionary are.
#[derive(Debug)]
pub(super) struct DictionaryPlace {
    pub id: i64,
    pub values: ArrayPlace,
}

/// Rows that are read together.
#[derive(Clone, Debug)]
pub struct Split {
    /// Their numbers in the file.
    pub rows: Range<u64>,
    /// The bytes of the file that they need, in the file's order.
    pub ranges: Vec<Range<u64>>,
    /// Memory to decode them. Most buffers are used where they are, but any may have to be copied.
    pub decoded_bytes: u64,
    pub(super) parts: Vec<Part>,
}

/// Rows of a batch.
#[derive(Clone, Debug)]
pub(super) struct Part {
    batch: usize,
    pub rows: Range<u64>,
    is_whole: bool,
}

impl ArrowFile {
    /// Reads the messages.
    ///
    /// # Errors
    /// When it is no Arrow IPC file, or cannot be read.
    pub fn open(file: Arc<dyn ReadAt>) -> Result<Self, FormatError> {
        let messages = Messages::read(file.as_ref())?;
        let mut first_rows = vec![0_u64];
        for batch in &messages.batches {
            let rows = first_rows.last().copied().unwrap_or(0);
            first_rows.push(rows.saturating_add(batch.rows));
        }
        Ok(Self {
            file,
            messages: Arc::new(messages),
            first_rows: Arc::new(first_rows),
        })
    }

    /// Its columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.messages.schema
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.first_rows.last().copied().unwrap_or(0)
    }

    /// The columns in these places.
    ///
    /// # Errors
    /// When their dictionaries cannot be found.
    pub fn projection(&self, columns: &[usize]) -> Result<Projection, FormatError> {
        let schema = Arc::new(self.schema().project(columns)?);
        let mut dictionaries = Vec::new();
        for dictionary in &self.messages.dictionaries {
            let values = schema
                .fields()
                .iter()
                .find_map(|field| values_type(field, dictionary.id));
            if let Some(values) = values {
                let field = Field::new("", values, true);
                let batch = &dictionary.values;
                dictionaries.push(DictionaryPlace {
                    id: dictionary.id,
                    values: Locator::new(self.file.as_ref(), batch).next(&field, None)?,
                });
            }
        }
        let place = |column| columns.iter().position(|&each| each == column);
        Ok(Projection {
            file: self.clone(),
            places: (0..self.schema().fields().len()).map(place).collect(),
            schema,
            dictionaries: Arc::new(dictionaries),
        })
    }

    /// Divides the file into splits that need at most about `most_bytes` of the file each; more
    /// where a batch cannot be divided: it is compressed, or has views of large buffers.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    pub fn splits(
        &self,
        projection: &Projection,
        most_bytes: u64,
    ) -> Result<Vec<Split>, FormatError> {
        let file = self.file.as_ref();
        let dictionaries = projection.dictionaries.iter().map(|each| &each.values);
        let with_dictionaries = most_bytes.saturating_sub(file_bytes(dictionaries));
        let most = with_dictionaries.max(most_bytes / 2);
        let (mut splits, mut whole_batches, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (number, batch) in self.messages.batches.iter().enumerate() {
            if batch.rows == 0 {
                continue;
            }
            let whole = self.whole_batch(number);
            let places = projection.locate(&whole, file)?;
            let ranges = row_ranges(batch, &places, most);
            let batch_bytes = file_bytes(&places);
            if bytes + batch_bytes > most && !whole_batches.is_empty() {
                splits.push(projection.split(std::mem::take(&mut whole_batches)));
                bytes = 0;
            }
            if ranges.is_empty() {
                bytes += batch_bytes;
                whole_batches.push((whole, places));
            }
            for rows in ranges {
                let part = part(number, rows);
                let places = projection.locate(&part, file)?;
                splits.push(projection.split(vec![(part, places)]));
            }
        }
        if !whole_batches.is_empty() {
            splits.push(projection.split(whole_batches));
        }
        Ok(splits)
    }

    /// The split with a row of the file, of about `most_bytes`; where a batch cannot be divided,
    /// all of it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn split_at(
        &self,
        projection: &Projection,
        row: u64,
        most_bytes: u64,
    ) -> Result<Option<Split>, FormatError> {
        let next = self.first_rows.partition_point(|&first| first <= row);
        let Some((number, batch)) = next
            .checked_sub(1)
            .and_then(|number| Some((number, self.messages.batches.get(number)?)))
        else {
            return Ok(None);
        };
        let file = self.file.as_ref();
        let whole = self.whole_batch(number);
        let places = projection.locate(&whole, file)?;
        let row = row - self.first_rows[number];
        let mut ranges = row_ranges(batch, &places, most_bytes).into_iter();
        Ok(Some(match ranges.find(|rows| rows.contains(&row)) {
            Some(rows) => {
                let part = part(number, rows);
                let places = projection.locate(&part, file)?;
                projection.split(vec![(part, places)])
            }
            None => projection.split(vec![(whole, places)]),
        }))
    }

    fn whole_batch(&self, batch: usize) -> Part {
        Part {
            batch,
            rows: 0..self.messages.batches[batch].rows,
            is_whole: true,
        }
    }
}

fn part(batch: usize, rows: Range<u64>) -> Part {
    Part {
        batch,
        rows,
        is_whole: false,
    }
}

/// Ranges of the rows of a batch that is too large; none if it cannot be divided, or is not.
fn row_ranges(batch: &Batch, places: &[ArrayPlace], most_bytes: u64) -> Vec<Range<u64>> {
    let bytes = file_bytes(places);
    let shared = places.iter().map(ArrayPlace::shared_bytes).sum();
    let room = most_bytes.saturating_sub(shared);
    // Each part would need what is shared again.
    if batch.codec.is_some() || room < most_bytes.div_ceil(2) || bytes <= most_bytes {
        return Vec::new();
    }
    let parts = (bytes - shared)
        .div_ceil(room)
        .clamp(1, batch.rows.div_ceil(8));
    // A part begins with a byte of the bits.
    let begin = |part: u64| match part == parts {
        true => batch.rows,
        false => (u128::from(batch.rows) * u128::from(part) / u128::from(parts)) as u64 / 8 * 8,
    };
    let ranges = (0..parts).map(|part| begin(part)..begin(part + 1));
    ranges.filter(|rows| !rows.is_empty()).collect()
}

/// Bytes of the file that arrays need.
fn file_bytes<'a>(places: impl IntoIterator<Item = &'a ArrayPlace>) -> u64 {
    sum(places, |buffer| buffer.range.end - buffer.range.start)
}

/// Bytes of their values.
fn decoded_bytes<'a>(places: impl IntoIterator<Item = &'a ArrayPlace>) -> u64 {
    sum(places, |buffer| buffer.bytes)
}

fn sum<'a>(
    places: impl IntoIterator<Item = &'a ArrayPlace>,
    bytes: impl Fn(&BufferPlace) -> u64,
) -> u64 {
    let mut sum = 0_u64;
    for place in places {
        place.visit(&mut |buffer| sum = sum.saturating_add(bytes(buffer)));
    }
    sum
}

impl Projection {
    /// Where the columns of some rows are; `source` has the bytes that tell it.
    pub(super) fn locate(
        &self,
        part: &Part,
        source: &dyn ReadAt,
    ) -> Result<Vec<ArrayPlace>, FormatError> {
        let batch = &self.file.messages.batches[part.batch];
        let mut locator = Locator::new(source, batch);
        let mut columns: Vec<Option<ArrayPlace>> = vec![None; self.schema.fields().len()];
        for (field, place) in self.file.schema().fields().iter().zip(&*self.places) {
            let rows = (!part.is_whole).then(|| part.rows.clone());
            match place {
                Some(place) => columns[*place] = Some(locator.next(field, rows)?),
                None => locator.skip(field)?,
            }
        }
        let columns: Vec<ArrayPlace> = columns.into_iter().flatten().collect();
        let rows = usize::try_from(part.rows.end - part.rows.start).unwrap_or(usize::MAX);
        if columns.iter().any(|column| column.rows != rows) {
            return Err(FormatError::Damaged(format!(
                "record batch {} has columns of other lengths than its own",
                part.batch
            )));
        }
        Ok(columns)
    }

    /// Some parts; where they are is found again when they are decoded, since it is long.
    fn split(&self, parts: Vec<(Part, Vec<ArrayPlace>)>) -> Split {
        let dictionaries = || self.dictionaries.iter().map(|each| &each.values);
        let columns = parts.iter().flat_map(|(_, columns)| columns);
        let mut ranges = Vec::new();
        for array in dictionaries().chain(columns) {
            array.visit(&mut |buffer| {
                if !buffer.range.is_empty() {
                    ranges.push(buffer.range.clone());
                }
            });
        }
        let largest = parts
            .iter()
            .map(|(_, columns)| decoded_bytes(columns))
            .max();
        let number = |batch: usize, row: u64| self.file.first_rows[batch].saturating_add(row);
        Split {
            rows: parts
                .first()
                .map_or(0, |(part, _)| number(part.batch, part.rows.start))
                ..parts
                    .last()
                    .map_or(0, |(part, _)| number(part.batch, part.rows.end)),
            ranges: joined(ranges, GAP_BYTES),
            decoded_bytes: decoded_bytes(dictionaries()).saturating_add(largest.unwrap_or(0)),
            parts: parts.into_iter().map(|(part, _)| part).collect(),
        }
    }
}

/// The type of the values of a dictionary, if a field has it.
fn values_type(field: &Field, id: i64) -> Option<DataType> {
    use DataType as T;
    #[expect(deprecated)] // as in arrow-ipc's own reader: nothing else tells it
    let is_same = field.dict_id() == Some(id);
    match field.data_type() {
        T::Dictionary(_, values) => is_same.then(|| values.as_ref().clone()),
        T::List(item) | T::LargeList(item) | T::FixedSizeList(item, _) | T::Map(item, _) => {
            values_type(item, id)
        }
        T::Struct(fields) => fields.iter().find_map(|field| values_type(field, id)),
        _ => None,
    }
}
