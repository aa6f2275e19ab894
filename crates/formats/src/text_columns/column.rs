//! A column that is built value by value, and can forget its last ones.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    ArrayRef, FixedSizeListArray, ListArray, MapArray, NullArray, RecordBatch, RecordBatchOptions,
    StructArray, make_array,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};

use super::scalars::Scalar;
use crate::error::FormatError;

/// Builds a column. Its arrays have the plainest type that has the field's values: no dictionary,
/// and 32-bit offsets.
#[derive(Debug)]
pub struct Column {
    /// Its name and its type, as others should see them.
    pub field: FieldRef,
    array_type: DataType,
    valid: BooleanBufferBuilder,
    /// The values.
    pub values: Values,
}

/// Values by how they lie in memory.
#[derive(Debug)]
pub enum Values {
    /// Of one size.
    Scalar(Scalar, Vec<u8>),
    /// Bytes of one size.
    FixedBinary(usize, Vec<u8>),
    /// Truths.
    Bits(BooleanBufferBuilder),
    /// Text, or bytes.
    Bytes {
        /// Whether it is text.
        is_text: bool,
        /// Where values end.
        offsets: Vec<i32>,
        /// All of them.
        data: Vec<u8>,
    },
    /// Nothing but nulls.
    Null,
    /// Lists.
    List {
        /// How many items each has, if all have as many.
        length: Option<usize>,
        /// Where they end.
        offsets: Vec<i32>,
        /// What they consist of.
        items: Box<Column>,
    },
    /// Maps.
    Map {
        /// Where they end.
        offsets: Vec<i32>,
        /// Their pairs: two fields.
        pairs: Box<Column>,
    },
    /// Structs.
    Struct(Vec<Column>),
}

impl Column {
    /// An empty column; `None` if text has no values of this type.
    pub fn new(field: &FieldRef) -> Option<Self> {
        use DataType as T;
        let data_type = match field.data_type() {
            T::Dictionary(_, values) => values,
            data_type => data_type,
        };
        let bytes = |is_text| Values::Bytes {
            is_text,
            offsets: vec![0],
            data: Vec::new(),
        };
        let (array_type, values) = match data_type {
            T::Null => (T::Null, Values::Null),
            T::Boolean => (T::Boolean, Values::Bits(BooleanBufferBuilder::new(0))),
            T::Utf8 | T::LargeUtf8 | T::Utf8View => (T::Utf8, bytes(true)),
            T::Binary | T::LargeBinary | T::BinaryView => (T::Binary, bytes(false)),
            T::FixedSizeBinary(width) => {
                let width = usize::try_from(*width).ok()?;
                (data_type.clone(), Values::FixedBinary(width, Vec::new()))
            }
            T::List(item) | T::LargeList(item) => {
                let items = Box::new(Self::new(item)?);
                let array_type = T::List(items.array_field());
                let values = Values::List {
                    length: None,
                    offsets: vec![0],
                    items,
                };
                (array_type, values)
            }
            T::FixedSizeList(item, length) => {
                let items = Box::new(Self::new(item)?);
                let array_type = T::FixedSizeList(items.array_field(), *length);
                let values = Values::List {
                    length: Some(usize::try_from(*length).ok()?),
                    offsets: vec![0],
                    items,
                };
                (array_type, values)
            }
            T::Map(pair, is_sorted) => {
                let pairs = Box::new(Self::new(pair)?);
                let entries = pairs.array_field().as_ref().clone().with_nullable(false);
                let array_type = T::Map(Arc::new(entries), *is_sorted);
                let offsets = vec![0];
                (array_type, Values::Map { offsets, pairs })
            }
            T::Struct(fields) => {
                let fields: Vec<Self> = fields.iter().map(Self::new).collect::<Option<_>>()?;
                (T::Struct(array_fields(&fields)), Values::Struct(fields))
            }
            _ => {
                let scalar = Scalar::of(data_type)?;
                (data_type.clone(), Values::Scalar(scalar, Vec::new()))
            }
        };
        Some(Self {
            field: Arc::clone(field),
            array_type,
            valid: BooleanBufferBuilder::new(0),
            values,
        })
    }

    /// The field of its arrays.
    pub fn array_field(&self) -> FieldRef {
        let (name, may_be_null) = (self.field.name(), self.field.is_nullable());
        Arc::new(Field::new(name, self.array_type.clone(), may_be_null))
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.valid.len()
    }

    /// About how many bytes a value has without its text.
    pub fn value_bytes(&self) -> usize {
        1 + match &self.values {
            Values::Scalar(scalar, _) => scalar.bytes(),
            Values::FixedBinary(width, _) => *width,
            Values::Bits(_) | Values::Null => 0,
            Values::List {
                length: Some(length),
                items,
                ..
            } => length * items.value_bytes(),
            Values::Bytes { .. } | Values::List { .. } | Values::Map { .. } => 4,
            Values::Struct(fields) => fields.iter().map(Self::value_bytes).sum(),
        }
    }

    /// Counts a value that was appended to the values.
    pub fn push_valid(&mut self) {
        self.valid.append(true);
    }

    /// Adds a null; `None` if there may be none.
    pub fn push_null(&mut self) -> Option<()> {
        self.field.is_nullable().then(|| self.push_nothing())
    }

    /// Adds a null, of no meaning if it is within a null.
    fn push_nothing(&mut self) {
        self.valid.append(false);
        match &mut self.values {
            Values::Scalar(scalar, values) => values.resize(values.len() + scalar.bytes(), 0),
            Values::FixedBinary(width, values) => values.resize(values.len() + *width, 0),
            Values::Bits(bits) => bits.append(false),
            Values::List {
                length: Some(length),
                offsets,
                items,
            } => {
                (0..*length).for_each(|_| items.push_nothing());
                offsets.push(items.len() as i32);
            }
            Values::Bytes { offsets, .. }
            | Values::List { offsets, .. }
            | Values::Map { offsets, .. } => {
                offsets.push(offsets.last().copied().unwrap_or(0));
            }
            Values::Null => (),
            Values::Struct(fields) => fields.iter_mut().for_each(Self::push_nothing),
        }
    }

    /// Forgets all but the first values, also those of which only a part was added.
    pub fn truncate(&mut self, len: usize) {
        if self.valid.len() > len {
            self.valid.truncate(len);
        }
        match &mut self.values {
            Values::Scalar(scalar, values) => values.truncate(len * scalar.bytes()),
            Values::FixedBinary(width, values) => values.truncate(len * *width),
            Values::Bits(bits) if bits.len() > len => bits.truncate(len),
            Values::Bits(_) | Values::Null => (),
            Values::Bytes { offsets, data, .. } => {
                offsets.truncate(len + 1);
                data.truncate(end_of(offsets));
            }
            Values::List { offsets, items, .. }
            | Values::Map {
                offsets,
                pairs: items,
            } => {
                offsets.truncate(len + 1);
                items.truncate(end_of(offsets));
            }
            Values::Struct(fields) => fields.iter_mut().for_each(|field| field.truncate(len)),
        }
    }

    /// The column as an array; it is empty then.
    pub fn finish(&mut self) -> Result<ArrayRef, FormatError> {
        let len = self.valid.len();
        let valid = self.valid.finish();
        let nulls = Some(NullBuffer::new(valid)).filter(|nulls| nulls.null_count() > 0);
        let data = ArrayData::builder(self.array_type.clone()).len(len);
        let data = data.nulls(nulls.clone()).align_buffers(true);
        let data = match &mut self.values {
            Values::Scalar(_, values) | Values::FixedBinary(_, values) => {
                data.add_buffer(Buffer::from_vec(std::mem::take(values)))
            }
            Values::Bits(bits) => data.add_buffer(bits.finish().into_inner()),
            Values::Bytes {
                offsets, data: all, ..
            } => {
                let offsets = Buffer::from_vec(std::mem::replace(offsets, vec![0]));
                let all = Buffer::from_vec(std::mem::take(all));
                data.add_buffer(offsets).add_buffer(all)
            }
            Values::Null => return Ok(Arc::new(NullArray::new(len))),
            Values::List {
                length: Some(length),
                offsets,
                items,
            } => {
                offsets.truncate(1);
                let (field, items) = (items.array_field(), items.finish()?);
                let length = *length as i32;
                let lists =
                    FixedSizeListArray::try_new_with_length(field, length, items, nulls, len);
                return Ok(Arc::new(lists?));
            }
            Values::List { offsets, items, .. } => {
                let (field, items) = (items.array_field(), items.finish()?);
                let lists = ListArray::try_new(field, all_offsets(offsets), items, nulls);
                return Ok(Arc::new(lists?));
            }
            Values::Map { offsets, pairs } => {
                let entries = pairs.finish()?.as_struct().clone();
                let DataType::Map(field, is_sorted) = &self.array_type else {
                    return Err(FormatError::Damaged("a map has another type".to_owned()));
                };
                let field = Arc::clone(field);
                let maps =
                    MapArray::try_new(field, all_offsets(offsets), entries, nulls, *is_sorted);
                return Ok(Arc::new(maps?));
            }
            Values::Struct(fields) => {
                let arrays = fields.iter_mut().map(Self::finish);
                let arrays: Vec<ArrayRef> = arrays.collect::<Result<_, _>>()?;
                let structs =
                    StructArray::try_new_with_length(array_fields(fields), arrays, nulls, len);
                return Ok(Arc::new(structs?));
            }
        };
        Ok(make_array(data.build()?))
    }
}

/// The offsets, of which the first remains.
fn all_offsets(offsets: &mut Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(offsets, vec![0])))
}

fn array_fields(columns: &[Column]) -> Fields {
    columns.iter().map(Column::array_field).collect()
}

fn end_of(offsets: &[i32]) -> usize {
    offsets.last().map_or(0, |end| *end as usize)
}

/// A batch of columns, which are empty then.
pub fn batch_of(columns: &mut [Column]) -> Result<RecordBatch, FormatError> {
    let rows = columns.first().map_or(0, Column::len);
    let fields: Vec<_> = columns.iter().map(Column::array_field).collect();
    let arrays = columns.iter_mut().map(Column::finish);
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let arrays = arrays.collect::<Result<_, _>>()?;
    let schema = Arc::new(Schema::new(fields));
    Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
}
