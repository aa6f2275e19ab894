//! Types that Parquet lacks become types that it has, wherever they are nested: it has no times in
//! seconds, and days have no milliseconds. Other readers would see bare integers otherwise.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_cast::display::FormatOptions;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};

use crate::error::FormatError;
use crate::types::name_of;

const STRICT: CastOptions<'_> = CastOptions {
    safe: false, // what does not fit is an error, not null
    format_options: FormatOptions::new(),
};

/// The schema of the same columns in Parquet.
pub(super) fn parquet_schema(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(parquet_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn parquet_field(field: &FieldRef) -> FieldRef {
    let data_type = parquet_type(field.data_type());
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

fn parquet_type(data_type: &DataType) -> DataType {
    use DataType as T;
    match data_type {
        T::Timestamp(TimeUnit::Second, zone) => T::Timestamp(TimeUnit::Millisecond, zone.clone()),
        T::Time32(TimeUnit::Second) => T::Time32(TimeUnit::Millisecond),
        T::Date64 => T::Date32,
        T::List(item) => T::List(parquet_field(item)),
        T::LargeList(item) => T::LargeList(parquet_field(item)),
        T::FixedSizeList(item, length) => T::FixedSizeList(parquet_field(item), *length),
        T::Struct(fields) => T::Struct(fields.iter().map(parquet_field).collect()),
        T::Map(entries, sorted) => T::Map(parquet_field(entries), *sorted),
        T::Dictionary(key, value) => T::Dictionary(key.clone(), Box::new(parquet_type(value))),
        other => other.clone(),
    }
}

/// The values of a column, of the type that it has in Parquet.
///
/// # Errors
/// When a value would change, as a day with a time.
pub(super) fn parquet_values(array: &ArrayRef, field: &Field) -> Result<ArrayRef, FormatError> {
    let (from, to) = (array.data_type(), field.data_type());
    if from == to {
        return Ok(Arc::clone(array));
    }
    let values = cast_with_options(array, to, &STRICT)?;
    match cast_with_options(&values, from, &STRICT)?.as_ref() == array.as_ref() {
        true => Ok(values),
        false => Err(FormatError::Damaged(format!(
            "column {:?}: a value of {} is not exact as {}, which is its type in Parquet",
            field.name(),
            name_of(from),
            name_of(to)
        ))),
    }
}
