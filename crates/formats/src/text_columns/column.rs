//! A column that is built value by value, and can forget its last ones.

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, NullArray, StructArray, make_array};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef, Fields};

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
        /// Where they end.
        offsets: Vec<i32>,
        /// What they consist of.
        items: Box<Column>,
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
                let offsets = vec![0];
                (array_type, Values::List { offsets, items })
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
        Arc::new(Field::new(self.field.name(), self.array_type.clone(), true))
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
            Values::Bytes { .. } | Values::List { .. } => 4,
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
            Values::Bytes { offsets, .. } | Values::List { offsets, .. } => {
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
            Values::List { offsets, items } => {
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
            Values::List { offsets, items } => {
                let offsets = ScalarBuffer::from(std::mem::replace(offsets, vec![0]));
                let (field, items) = (items.array_field(), items.finish()?);
                let lists = ListArray::try_new(field, OffsetBuffer::new(offsets), items, nulls);
                return Ok(Arc::new(lists?));
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

fn array_fields(columns: &[Column]) -> Fields {
    columns.iter().map(Column::array_field).collect()
}

fn end_of(offsets: &[i32]) -> usize {
    offsets.last().map_or(0, |end| *end as usize)
}
