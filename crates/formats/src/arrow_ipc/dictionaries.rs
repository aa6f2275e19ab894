//! One dictionary for each column of a file, of the values of all batches, which have dictionaries
//! of their own.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array, make_array, new_empty_array};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;

use crate::error::FormatError;
use crate::value_bytes::ValueBytes;

/// The dictionaries of a file, in the order in which columns are walked.
#[derive(Default)]
pub struct Dictionaries(Vec<Dictionary>);

#[derive(Default)]
struct Dictionary {
    places: HashMap<Vec<u8>, u64>,
    values: Option<ArrayRef>,
}

impl Dictionaries {
    /// The batch with places in the file's dictionaries instead of values; values that are new are
    /// added to these.
    pub fn places_of(&mut self, batch: &RecordBatch) -> Result<RecordBatch, FormatError> {
        let mut next = 0;
        let columns = batch.columns().iter();
        let columns = columns.map(|column| match has_dictionary(column.data_type()) {
            true => Ok(make_array(self.add(&column.to_data(), &mut next)?)),
            false => Ok(Arc::clone(column)),
        });
        let columns = columns.collect::<Result<_, FormatError>>()?;
        let fields = batch.schema();
        let fields = fields.fields().iter().map(|field| with_places(field));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
    }

    /// A batch without rows that has the dictionaries; `None` if there are none.
    pub fn batch(&self, schema: &SchemaRef) -> Result<Option<RecordBatch>, FormatError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let mut next = 0;
        let columns = schema.fields().iter().map(|field| {
            let empty = new_empty_array(field.data_type()).to_data();
            Ok(make_array(self.fill(&empty, &mut next)?))
        });
        let columns = columns.collect::<Result<_, FormatError>>()?;
        Ok(Some(RecordBatch::try_new(Arc::clone(schema), columns)?))
    }

    fn add(&mut self, array: &ArrayData, next: &mut usize) -> Result<ArrayData, FormatError> {
        if let DataType::Dictionary(_, _) = array.data_type() {
            if *next == self.0.len() {
                self.0.push(Dictionary::default());
            }
            *next += 1;
            return self.0[*next - 1].places_of(array);
        }
        let children = array.child_data().iter();
        let children = children.map(|child| match has_dictionary(child.data_type()) {
            true => self.add(child, next),
            false => Ok(child.clone()),
        });
        let children = children.collect::<Result<_, FormatError>>()?;
        let builder = array.clone().into_builder().child_data(children);
        Ok(builder.data_type(places_type(array.data_type())).build()?)
    }

    /// An array without rows, with the dictionaries.
    fn fill(&self, empty: &ArrayData, next: &mut usize) -> Result<ArrayData, FormatError> {
        let children = match empty.data_type() {
            DataType::Dictionary(_, _) => {
                let values = self.0.get(*next).and_then(|each| each.values.as_ref());
                *next += 1;
                values.map_or_else(
                    || empty.child_data().to_vec(),
                    |values| vec![values.to_data()],
                )
            }
            _ => {
                let children = empty.child_data().iter();
                let children = children.map(|child| self.fill(child, next));
                children.collect::<Result<_, _>>()?
            }
        };
        Ok(empty.clone().into_builder().child_data(children).build()?)
    }
}

impl Dictionary {
    /// The place of each value of an array in this dictionary.
    fn places_of(&mut self, array: &ArrayData) -> Result<ArrayData, FormatError> {
        let index = places_type(array.data_type());
        let places = self.add(&make_array(array.child_data()[0].clone()))?;
        let keys = ArrayData::builder(index.clone())
            .len(array.len())
            .offset(array.offset())
            .nulls(array.nulls().cloned())
            .add_buffer(array.buffers()[0].clone())
            .build()?;
        let keys = cast(&make_array(keys), &DataType::UInt64)?;
        let keys = arrow_array::cast::as_primitive_array::<UInt64Type>(&keys);
        // A null has any key.
        let place = |key: u64| places.get(key as usize).copied().unwrap_or(0);
        let keys: UInt64Array = keys.unary(place);
        let options = CastOptions {
            safe: false,
            ..CastOptions::default()
        };
        let keys = cast_with_options(&keys, &index, &options).map_err(|_| {
            FormatError::Damaged(format!(
                "a file has more different values than a dictionary of {index} can number; write \
                 smaller files"
            ))
        })?;
        Ok(keys.to_data())
    }

    /// Adds values that are new; gives the place of each.
    fn add(&mut self, values: &ArrayRef) -> Result<Vec<u64>, FormatError> {
        let Some(bytes) = ValueBytes::of(values) else {
            return Err(FormatError::Damaged(format!(
                "a dictionary of {} cannot be written",
                values.data_type()
            )));
        };
        let bytes = bytes.present();
        let mut places = Vec::with_capacity(bytes.len());
        let mut added = Vec::new();
        for (place, value) in bytes.into_iter().enumerate() {
            places.push(match self.places.get(value) {
                Some(known) => *known,
                None => {
                    let next = self.places.len() as u64;
                    self.places.insert(value.to_vec(), next);
                    added.push(place as u64);
                    next
                }
            });
        }
        if !added.is_empty() {
            let added = take(values, &UInt64Array::from(added), None)?;
            self.values = Some(match &self.values {
                Some(before) => concat(&[before, &added])?,
                None => added,
            });
        }
        Ok(places)
    }
}

fn has_dictionary(data_type: &DataType) -> bool {
    use DataType as T;
    match data_type {
        T::Dictionary(_, _) => true,
        T::List(item) | T::LargeList(item) | T::FixedSizeList(item, _) | T::Map(item, _) => {
            has_dictionary(item.data_type())
        }
        T::Struct(fields) => fields.iter().any(|field| has_dictionary(field.data_type())),
        _ => false,
    }
}

/// The type of places in dictionaries, instead of a type with dictionaries.
fn places_type(data_type: &DataType) -> DataType {
    use DataType as T;
    match data_type {
        T::Dictionary(index, _) => index.as_ref().clone(),
        T::List(item) => T::List(with_places(item).into()),
        T::LargeList(item) => T::LargeList(with_places(item).into()),
        T::FixedSizeList(item, items) => T::FixedSizeList(with_places(item).into(), *items),
        T::Map(entries, is_sorted) => T::Map(with_places(entries).into(), *is_sorted),
        T::Struct(fields) => T::Struct(fields.iter().map(|field| with_places(field)).collect()),
        other => other.clone(),
    }
}

fn with_places(field: &Field) -> Field {
    field.clone().with_data_type(places_type(field.data_type()))
}
