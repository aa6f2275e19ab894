//! Why columns and records are refused.

use arrow_schema::Field;

use super::column::Column;
use crate::text::beginning_of;
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
    let data_type = name_of(column.field.data_type());
    format!(
        "has {} in column {:?}, which is no {data_type}; correct it, or specify the column's type in \
         the schema",
        beginning_of(value),
        column.field.name()
    )
}

/// A record of more or fewer fields than there are columns.
pub fn wrong_fields(fields: usize, columns: usize) -> String {
    let count = match fields {
        1 => "1 field".to_owned(),
        fields if fields > columns => format!("more than {columns} fields"),
        fields => format!("{fields} fields"),
    };
    let are = if columns == 1 {
        "is 1 column"
    } else {
        &format!("are {columns} columns")
    };
    format!("has {count}, and there {are}; correct it, or put quotes around values with delimiters")
}

/// A null where none may be.
pub fn missing_value(column: &Column) -> String {
    let name = column.field.name();
    format!("has no value in column {name:?}, which the schema does not allow")
}
