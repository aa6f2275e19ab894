//! A file's columns as those of its table: cast where the types differ, null where they are
//! missing, and with the columns of its folders.
//!
//! A file that has such a column itself has to agree with its folder.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt32Array,
    new_null_array,
};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, SchemaRef};
use arrow_select::take::take;
use tonnage_formats::types::{cast_exactly, name_of};

use super::table_schema::{FileSchema, own_place};
use crate::error::{JobError, usage_error};
use crate::tables::folders::folder_text::value_text;

/// How a file's columns become the table's.
#[derive(Debug)]
pub struct FileColumns {
    schema: SchemaRef,
    sources: Vec<ColumnSource>,
    /// The places of its own columns that are read.
    places: Vec<usize>,
}

/// Where a column comes from.
#[derive(Clone, Debug)]
enum ColumnSource {
    /// One of its own, which has this one value if a folder says so.
    Own(Option<ArrayRef>),
    /// One value for all rows.
    Constant(ArrayRef),
}

impl FileColumns {
    /// The columns of a file as those of `schema`.
    ///
    /// # Errors
    /// When a folder's value is none of the column's type.
    pub fn new(file: &FileSchema<'_>, schema: &SchemaRef) -> Result<Self, JobError> {
        let refuse = |why: String| usage_error(format!("input {}: {why}", file.name));
        let (mut sources, mut places) = (Vec::new(), Vec::new());
        for field in schema.fields() {
            let folder = file.folders.iter().find(|each| each.0 == *field.name());
            let constant = folder.map(|(name, value)| {
                folder_value(value.as_deref(), field.data_type()).map_err(|why| {
                    refuse(format!(
                        "its folder {name}={}: {why}",
                        value.as_deref().unwrap_or("")
                    ))
                })
            });
            let constant = constant.transpose()?;
            let own = own_place(file.schema, field.name()).map_err(refuse)?;
            sources.push(match own {
                Some(place) => {
                    places.push(place);
                    ColumnSource::Own(constant)
                }
                None => ColumnSource::Constant(
                    constant.unwrap_or_else(|| new_null_array(field.data_type(), 1)),
                ),
            });
        }
        Ok(Self {
            schema: Arc::clone(schema),
            sources,
            places,
        })
    }

    /// The same with the table's columns of `schema` only.
    #[must_use]
    pub fn narrowed(&self, schema: &SchemaRef) -> Self {
        let mut own = self.places.iter();
        let (mut sources, mut places) = (Vec::new(), Vec::new());
        for (field, source) in self.schema.fields().iter().zip(&self.sources) {
            let place = match source {
                ColumnSource::Own(_) => own.next(),
                ColumnSource::Constant(_) => None,
            };
            if schema.index_of(field.name()).is_ok() {
                sources.push(source.clone());
                places.extend(place);
            }
        }
        Self {
            schema: Arc::clone(schema),
            sources,
            places,
        }
    }

    /// The places of its own columns that are read, in their order.
    #[must_use]
    pub fn places(&self) -> &[usize] {
        &self.places
    }

    /// A batch of its own columns, as the table's.
    ///
    /// # Errors
    /// A value that a type lacks, or another than the folder's.
    pub fn arrange(&self, batch: &RecordBatch) -> Result<RecordBatch, String> {
        let rows = batch.num_rows();
        let columns = self.schema.fields().iter().zip(&self.sources);
        let columns = columns.map(|(field, source)| match source {
            ColumnSource::Constant(value) => repeated(value, rows),
            ColumnSource::Own(folder) => {
                let own = batch.column_by_name(field.name());
                let own = own.ok_or_else(|| format!("there is no column {:?}", field.name()))?;
                let own = cast_exactly(own, field.data_type())
                    .map_err(|why| format!("column {:?}: {why}", field.name()))?;
                if let Some(value) = folder {
                    check_folder(field.name(), &own, value)?;
                }
                Ok(own)
            }
        });
        let columns = columns.collect::<Result<_, String>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        batch.map_err(|why| why.to_string())
    }
}

/// A folder's value, as one value of a type.
fn folder_value(text: Option<&str>, data_type: &DataType) -> Result<ArrayRef, String> {
    let Some(text) = text else {
        return Ok(new_null_array(data_type, 1));
    };
    let words: ArrayRef = Arc::new(StringArray::from(vec![text]));
    if let Ok(value) = cast_exactly(&words, data_type) {
        return Ok(value);
    }
    let no_value = || format!("{text:?} is no {}", name_of(data_type));
    if let Ok(number) = text.parse::<i64>() {
        let number: ArrayRef = Arc::new(Int64Array::from(vec![number]));
        return cast_exactly(&number, data_type).map_err(|_| no_value());
    }
    // Dates and the like: as they are written, so that nothing of the text is lost.
    let value = arrow_cast::cast(&words, data_type).map_err(|_| no_value())?;
    let is_same = array_value_to_string(&value, 0).is_ok_and(|same| same == text);
    let is_same = is_same || value_text(&value, 0).is_ok_and(|same| same == text);
    is_same.then_some(value).ok_or_else(no_value)
}

fn repeated(value: &ArrayRef, rows: usize) -> Result<ArrayRef, String> {
    let zeros = UInt32Array::from_value(0, rows);
    take(value.as_ref(), &zeros, None).map_err(|why| why.to_string())
}

/// Refuses a column that has other values than its folder.
fn check_folder(name: &str, own: &ArrayRef, value: &ArrayRef) -> Result<(), String> {
    let same = repeated(value, own.len())?;
    if own.to_data() == same.to_data() {
        return Ok(());
    }
    let differs = |&row: &usize| own.slice(row, 1).to_data() != value.to_data();
    let row = (0..own.len()).find(differs).unwrap_or(0);
    let shown = |array: &ArrayRef, row| match array.is_null(row) {
        true => "null".to_owned(),
        false => array_value_to_string(array, row).unwrap_or_else(|why| why.to_string()),
    };
    Err(format!(
        "column {name:?} has {}, but its folder says {}; correct one of them",
        shown(own, row),
        shown(value, 0)
    ))
}
