//! A batch of a table, whose structs are taken apart, built value by value.

use std::sync::Arc;

use arrow_array::{ArrayRef, StructArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, Fields};

use crate::builder::ColumnBuilder;
use crate::column::Shape;
use crate::error::TableError;
use crate::layout::StructField;
use crate::nested_builder::NestedBuilder;

/// A column of the table, or of a field of its structs.
#[derive(Debug)]
pub enum TableColumn {
    /// Values that are not nested.
    Plain(ColumnBuilder),
    /// Lists and maps.
    Nested(NestedBuilder),
    /// Structs, whose fields are columns of their own.
    Structs(StructBuilder),
}

/// Which structs are null.
#[derive(Debug)]
pub struct StructBuilder {
    names: Fields,
    nulls: NullBufferBuilder,
}

impl TableColumn {
    /// Builds a column of a type that rows can hold, for about so many rows.
    pub fn new(data_type: &DataType, rows: usize) -> Self {
        match (data_type, Shape::of(data_type)) {
            (DataType::Struct(names), _) => Self::Structs(StructBuilder {
                names: names.clone(),
                nulls: NullBufferBuilder::new(rows),
            }),
            (_, Some(Shape::Nested)) => Self::Nested(NestedBuilder::new(data_type)),
            _ => Self::Plain(ColumnBuilder::new(data_type, rows)),
        }
    }
}

impl StructBuilder {
    /// Adds a struct, or a null.
    #[inline]
    pub fn push(&mut self, is_null: bool) {
        self.nulls.append(!is_null);
    }

    fn finish(&mut self, fields: Vec<ArrayRef>) -> Result<ArrayRef, TableError> {
        let rows = self.nulls.len();
        let (names, nulls) = (self.names.clone(), self.nulls.finish());
        let structs = StructArray::try_new_with_length(names, fields, nulls, rows)?;
        Ok(Arc::new(structs))
    }
}

/// The columns of the table: of all columns, and the structs among them, those in structs last.
///
/// # Errors
/// When values are none of their type.
pub fn finish(
    columns: &mut [TableColumn],
    structs: &[StructField],
) -> Result<Vec<ArrayRef>, TableError> {
    let mut built: Vec<Option<ArrayRef>> = Vec::with_capacity(columns.len());
    for column in &mut *columns {
        built.push(match column {
            TableColumn::Plain(column) => Some(column.finish()?),
            TableColumn::Nested(column) => Some(column.finish()?),
            TableColumn::Structs(_) => None,
        });
    }
    // The fields of the last struct are the last columns.
    for each in structs.iter().rev() {
        let fields = built.drain(each.fields.clone()).flatten().collect();
        if let TableColumn::Structs(column) = &mut columns[each.column] {
            built[each.column] = Some(column.finish(fields)?);
        }
    }
    Ok(built.into_iter().flatten().collect())
}
