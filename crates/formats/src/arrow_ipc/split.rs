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

/// Columns to read, by their places in the file.
#[derive(Clone, Debug)]
pub struct Projection {
    columns: Vec<usize>,
    pub(super) schema: SchemaRef,
    pub(super) dictionaries: Arc<Vec<DictionaryPlace>>,
}

/// Where values of a dictionary are.
#[derive(Clone, Debug)]
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
    pub(super) parts: Vec<Part>,
}

/// Rows of a batch.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub rows: Range<u64>,
    pub columns: Vec<ArrayPlace>,
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
        Ok(Projection {
            columns: columns.to_vec(),
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
        let with_dictionaries = most_bytes.saturating_sub(projection.dictionary_bytes());
        let most = with_dictionaries.max(most_bytes / 2);
        let (mut splits, mut parts, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (number, batch) in self.messages.batches.iter().enumerate() {
            if batch.rows == 0 {
                continue;
            }
            let whole = self.part(projection, number, None)?;
            let whole_bytes = whole.bytes();
            if bytes + whole_bytes > most && !parts.is_empty() {
                splits.push(projection.split(std::mem::take(&mut parts)));
                bytes = 0;
            }
            if whole_bytes <= most {
                bytes += whole_bytes;
                parts.push(whole);
                continue;
            }
            let ranges = row_ranges(batch, &whole, most);
            if ranges.is_empty() {
                splits.push(projection.split(vec![whole]));
                continue;
            }
            for rows in ranges {
                let part = self.part(projection, number, Some(rows))?;
                splits.push(projection.split(vec![part]));
            }
        }
        if !parts.is_empty() {
            splits.push(projection.split(parts));
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
        let whole = self.part(projection, number, None)?;
        let row = row - self.first_rows[number];
        let rows = row_ranges(batch, &whole, most_bytes)
            .into_iter()
            .find(|rows| rows.contains(&row));
        let part = match rows {
            Some(rows) => self.part(projection, number, Some(rows))?,
            None => whole,
        };
        Ok(Some(projection.split(vec![part])))
    }

    /// Rows of a batch, or all of them.
    fn part(
        &self,
        projection: &Projection,
        number: usize,
        rows: Option<Range<u64>>,
    ) -> Result<Part, FormatError> {
        let batch = &self.messages.batches[number];
        let mut locator = Locator::new(self.file.as_ref(), batch);
        let mut columns: Vec<Option<ArrayPlace>> = vec![None; projection.columns.len()];
        for (place, field) in self.schema().fields().iter().enumerate() {
            match projection
                .columns
                .iter()
                .position(|&column| column == place)
            {
                Some(wanted) => columns[wanted] = Some(locator.next(field, rows.clone())?),
                None => locator.skip(field)?,
            }
        }
        let rows = rows.unwrap_or(0..batch.rows);
        let columns: Vec<ArrayPlace> = columns.into_iter().flatten().collect();
        let count = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
        if columns.iter().any(|column| column.rows != count) {
            return Err(FormatError::Damaged(format!(
                "record batch {number} has columns of other lengths than its own"
            )));
        }
        let first = self.first_rows[number];
        Ok(Part {
            rows: first.saturating_add(rows.start)..first.saturating_add(rows.end),
            columns,
        })
    }
}

/// Ranges of the rows of a batch that is too large; none if it cannot be divided, or is not.
fn row_ranges(batch: &Batch, whole: &Part, most_bytes: u64) -> Vec<Range<u64>> {
    let (bytes, shared) = (whole.bytes(), whole.shared_bytes());
    let room = most_bytes.saturating_sub(shared);
    // Each part would need what is shared again.
    if batch.codec.is_some() || room < most_bytes.div_ceil(2) || bytes <= most_bytes {
        return Vec::new();
    }
    let parts = (bytes - shared)
        .div_ceil(room)
        .clamp(1, batch.rows.div_ceil(8));
    // A part begins with a byte of the bits.
    let begin = |part: u64| (u128::from(batch.rows) * u128::from(part) / u128::from(parts)) as u64;
    let begin = |part: u64| match part == parts {
        true => batch.rows,
        false => begin(part) / 8 * 8,
    };
    (0..parts)
        .map(|part| begin(part)..begin(part + 1))
        .collect()
}

impl Part {
    /// Bytes of the file that it needs.
    fn bytes(&self) -> u64 {
        self.sum(|buffer| buffer.range.end - buffer.range.start)
    }

    /// Bytes of its values.
    fn decoded_bytes(&self) -> u64 {
        self.sum(|buffer| buffer.bytes)
    }

    fn shared_bytes(&self) -> u64 {
        self.columns.iter().map(ArrayPlace::shared_bytes).sum()
    }

    fn sum(&self, bytes: impl Fn(&BufferPlace) -> u64) -> u64 {
        let mut sum = 0_u64;
        for column in &self.columns {
            column.visit(&mut |buffer| sum = sum.saturating_add(bytes(buffer)));
        }
        sum
    }
}

impl Projection {
    /// Bytes of the file with the dictionaries' values.
    fn dictionary_bytes(&self) -> u64 {
        self.sum(|buffer| buffer.range.end - buffer.range.start)
    }

    fn sum(&self, bytes: impl Fn(&BufferPlace) -> u64) -> u64 {
        let mut sum = 0_u64;
        for dictionary in self.dictionaries.iter() {
            let values = &dictionary.values;
            values.visit(&mut |buffer| sum = sum.saturating_add(bytes(buffer)));
        }
        sum
    }

    /// Memory to decode a split. Most buffers are used where they are, but any may have to be
    /// copied.
    #[must_use]
    pub fn decoded_bytes(&self, split: &Split) -> u64 {
        let parts = split.parts.iter().map(Part::decoded_bytes);
        parts.max().unwrap_or(0) + self.sum(|buffer| buffer.bytes)
    }

    fn split(&self, parts: Vec<Part>) -> Split {
        let dictionaries = self.dictionaries.iter().map(|each| &each.values);
        let arrays = dictionaries.chain(parts.iter().flat_map(|part| &part.columns));
        let mut ranges = Vec::new();
        for array in arrays {
            array.visit(&mut |buffer| {
                if !buffer.range.is_empty() {
                    ranges.push(buffer.range.clone());
                }
            });
        }
        Split {
            rows: parts.first().map_or(0, |part| part.rows.start)
                ..parts.last().map_or(0, |part| part.rows.end),
            ranges: joined(ranges, GAP_BYTES),
            parts,
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
