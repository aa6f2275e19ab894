//! Why columns and records are refused.

use arrow_schema::Field;

use super::column::Column;
use crate::types::name_of;

/// A column of a type that a format lacks.
pub fn no_values(field: &Field, format: &str) -> String {
    let (name, data_type) = (field.name(), name_of(field.data_type()));
    format!(
        "the column {name:?} has the type {data_type}, which {format} has no values of; leave it out, or \
         choose another format"
    )
}

/// What is wrong with the value of a column.
pub fn wrong_value(column: &Column, value: &[u8]) -> String {
    const SHOWN: usize = 80;
    let shown = String::from_utf8_lossy(&value[..value.len().min(SHOWN)]);
    let more = if value.len() > SHOWN { "..." } else { "" };
    let data_type = name_of(column.field.data_type());
    format!(
        "has {shown:?}{more} in column {:?}, which is no {data_type}; specify the column's type in \
         the schema, or correct it",
        column.field.name()
    )
}

/// A null where none may be.
pub fn missing_value(column: &Column) -> String {
    let name = column.field.name();
    format!("has no value in column {name:?}, which the schema does not allow")
}
