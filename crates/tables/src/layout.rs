//! How the rows of a table lie in memory: which columns are in the key, and what is behind it.

use std::ops::Range;

use arrow_schema::{DataType, Schema, SchemaRef};

use crate::column::Shape;
use crate::error::TableError;
use crate::key::KeyField;
use crate::order::{ColumnOrder, name_in_order};

/// Bytes of a row's length, and of its key's.
pub const LENGTH_BYTES: usize = 4;

/// A column that is stored behind the key.
#[derive(Clone, Copy, Debug)]
pub struct ValueField {
    /// Place of the column.
    pub column: usize,
    /// Its shape.
    pub shape: Shape,
}

/// A column of structs, and those of its fields.
#[derive(Clone, Debug)]
pub struct StructField {
    /// Place of the column.
    pub column: usize,
    /// Places of the fields' columns.
    pub fields: Range<usize>,
}

/// Where the key of a row is: all that sorting needs to know of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowShape {
    /// The length of each key, unless they differ.
    pub key_bytes: Option<usize>,
    /// Whether each key ends with its row's number, so that equal keys keep their order.
    pub is_numbered: bool,
}

/// How rows lie in memory.
#[derive(Clone, Debug)]
pub struct RowLayout {
    schema: SchemaRef,
    shape: RowShape,
    /// The types of the table's columns, and behind them those of structs' fields.
    pub(crate) types: Vec<DataType>,
    /// Structs, before those that are in them.
    pub(crate) structs: Vec<StructField>,
    pub(crate) keys: Vec<KeyField>,
    /// Values of fixed size, then the others.
    pub(crate) values: Vec<ValueField>,
    pub(crate) null_bytes: usize,
    pub(crate) fixed_bytes: usize,
}

/// Bytes of a row's number at the end of its key.
pub(crate) const NUMBER_BYTES: usize = 8;

impl RowLayout {
    /// Rows of `schema`, ordered by `order`; by their numbers, too, if the order is stable.
    ///
    /// # Errors
    /// A column that is missing, that has no order, or that rows cannot hold.
    pub fn new(
        schema: &SchemaRef,
        order: &[ColumnOrder],
        is_stable: bool,
    ) -> Result<Self, TableError> {
        let columns = Columns::of(schema);
        let key = |column: &ColumnOrder| {
            let place = columns.place(&column.name)?;
            KeyField::new(
                place,
                &column.name,
                &columns.types[place],
                column.descending,
                column.nulls_first,
            )
        };
        let keys: Vec<KeyField> = order.iter().map(key).collect::<Result<_, _>>()?;
        let in_key = |place: usize| keys.iter().any(|key| key.column == place && key.is_exact());
        let mut values = Vec::new();
        for (column, data_type) in columns.types.iter().enumerate() {
            let shape = Shape::of_column(data_type).ok_or_else(|| TableError::Unsupported {
                name: columns.paths[column].clone(),
                data_type: data_type.clone(),
            })?;
            if !in_key(column) {
                values.push(ValueField { column, shape });
            }
        }
        values.sort_by_key(|value| fixed_bytes(value.shape).is_none());
        let key_bytes: Option<usize> = keys.iter().map(KeyField::fixed_bytes).sum();
        let fixed = values.iter().filter_map(|value| fixed_bytes(value.shape));
        Ok(Self {
            fixed_bytes: fixed.sum(),
            null_bytes: values.len().div_ceil(8),
            shape: RowShape::new(key_bytes, is_stable),
            schema: schema.clone(),
            types: columns.types,
            structs: columns.structs,
            keys,
            values,
        })
    }

    /// The table's columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Where the keys of rows are.
    #[inline]
    #[must_use]
    pub fn shape(&self) -> RowShape {
        self.shape
    }
}

impl RowShape {
    /// Keys of this length, if all have one, and behind each its row's number if `is_numbered`.
    #[must_use]
    pub fn new(key_bytes: Option<usize>, is_numbered: bool) -> Self {
        let number_bytes = if is_numbered { NUMBER_BYTES } else { 0 };
        Self {
            key_bytes: key_bytes.map(|bytes| bytes + number_bytes),
            is_numbered,
        }
    }

    /// Bytes of its row's number, with which each key ends; 0 if keys have none.
    #[must_use]
    pub fn number_bytes(self) -> usize {
        if self.is_numbered { NUMBER_BYTES } else { 0 }
    }

    /// Bytes before the key.
    #[inline]
    #[must_use]
    pub fn key_offset(self) -> usize {
        match self.key_bytes {
            Some(_) => LENGTH_BYTES,
            None => 2 * LENGTH_BYTES,
        }
    }

    /// The length of the row that begins `bytes`, if there is one.
    #[inline]
    #[must_use]
    pub fn row_bytes(bytes: &[u8]) -> Option<usize> {
        let length = bytes.first_chunk::<LENGTH_BYTES>()?;
        Some(u32::from_le_bytes(*length) as usize)
    }

    /// The key of a row.
    #[inline]
    #[must_use]
    pub fn key(self, row: &[u8]) -> &[u8] {
        let bytes = match self.key_bytes {
            Some(bytes) => bytes,
            None => Self::row_bytes(&row[LENGTH_BYTES..]).unwrap_or_default(),
        };
        &row[self.key_offset()..][..bytes]
    }

    /// What is behind the key of a row.
    #[inline]
    #[must_use]
    pub fn behind_key(self, row: &[u8]) -> &[u8] {
        &row[self.key_offset() + self.key(row).len()..]
    }

    /// The part of a key that tells its order from others': without the row's number.
    #[inline]
    #[must_use]
    pub fn order_of(self, key: &[u8]) -> &[u8] {
        match self.is_numbered {
            true => &key[..key.len() - NUMBER_BYTES],
            false => key,
        }
    }
}

/// Bytes of a value behind the key, unless they differ.
pub(crate) fn fixed_bytes(shape: Shape) -> Option<usize> {
    match shape {
        Shape::Fixed(width) => Some(width),
        Shape::Bits => Some(1),
        Shape::Struct | Shape::Null => Some(0),
        Shape::Bytes | Shape::Nested => None,
    }
}

/// The columns of a table, and behind them those of structs' fields.
#[derive(Default)]
struct Columns {
    /// The names; `place.name` of the field `name` in the struct `place`.
    paths: Vec<String>,
    types: Vec<DataType>,
    structs: Vec<StructField>,
}

impl Columns {
    fn of(schema: &Schema) -> Self {
        let mut columns = Self::default();
        let push = |columns: &mut Self, path: String, data_type: &DataType| {
            columns.paths.push(path);
            columns.types.push(data_type.clone());
        };
        for field in schema.fields() {
            push(&mut columns, field.name().clone(), field.data_type());
        }
        let mut column = 0;
        while let Some(data_type) = columns.types.get(column).cloned() {
            if let DataType::Struct(fields) = data_type {
                let (begin, path) = (columns.types.len(), columns.paths[column].clone());
                for field in &fields {
                    let path = format!("{path}.{}", field.name());
                    push(&mut columns, path, field.data_type());
                }
                let fields = begin..columns.types.len();
                columns.structs.push(StructField { column, fields });
            }
            column += 1;
        }
        columns
    }

    /// The place of a column: of the table, or of a field of its structs.
    fn place(&self, name: &str) -> Result<usize, TableError> {
        let place = self.paths.iter().position(|path| path == name);
        place.ok_or_else(|| {
            let known: Vec<_> = self.paths.iter().map(|path| name_in_order(path)).collect();
            TableError::NoColumn {
                name: name.to_owned(),
                known: known.join(", "),
            }
        })
    }
}
