//! One dictionary for each column of a file: batches have dictionaries of their own, and a file may
//! only append to those that it has.

use std::collections::HashMap;

use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch, UInt64Array, make_array};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use arrow_select::take::take;

use crate::error::FormatError;
use crate::value_bytes::value_bytes;

/// The dictionaries of a file.
#[derive(Default)]
pub struct Dictionaries {
    /// In the order in which columns are walked.
    dictionaries: Vec<Dictionary>,
}

#[derive(Default)]
struct Dictionary {
    places: HashMap<Vec<u8>, u64>,
    values: Option<ArrayRef>,
}

impl Dictionaries {
    /// The batch with the file's dictionaries, to which its new values are added.
    pub fn unify(&mut self, batch: &RecordBatch) -> Result<RecordBatch, FormatError> {
        let mut next = 0;
        let columns =
            batch
                .columns()
                .iter()
                .map(|column| match has_dictionary(column.data_type()) {
                    true => Ok(make_array(self.array(&column.to_data(), &mut next)?)),
                    false => Ok(column.clone()),
                });
        let columns = columns.collect::<Result<_, FormatError>>()?;
        Ok(RecordBatch::try_new(batch.schema(), columns)?)
    }

    fn array(&mut self, array: &ArrayData, next: &mut usize) -> Result<ArrayData, FormatError> {
        if let DataType::Dictionary(_, _) = array.data_type() {
            let place = *next;
            *next += 1;
            self.dictionaries
                .resize_with(self.dictionaries.len().max(place + 1), Dictionary::default);
            return self.dictionaries[place].array(array);
        }
        let children = array.child_data().iter();
        let children = children.map(|child| match has_dictionary(child.data_type()) {
            true => self.array(child, next),
            false => Ok(child.clone()),
        });
        let children = children.collect::<Result<_, FormatError>>()?;
        Ok(array.clone().into_builder().child_data(children).build()?)
    }
}

impl Dictionary {
    /// The array with this dictionary.
    fn array(&mut self, array: &ArrayData) -> Result<ArrayData, FormatError> {
        let DataType::Dictionary(index, _) = array.data_type() else {
            return Ok(array.clone());
        };
        let batch_values = make_array(array.child_data()[0].clone());
        let places = self.add(&batch_values)?;
        let keys = ArrayData::builder(index.as_ref().clone())
            .len(array.len())
            .offset(array.offset())
            .nulls(array.nulls().cloned())
            .add_buffer(array.buffers()[0].clone())
            .build()?;
        let keys = cast(&make_array(keys), &DataType::UInt64)?;
        let keys = arrow_array::cast::as_primitive_array::<UInt64Type>(&keys);
        let keys: PrimitiveArray<UInt64Type> =
            keys.unary(|key| places.get(key as usize).copied().unwrap_or(0));
        let options = CastOptions {
            safe: false,
            ..CastOptions::default()
        };
        let keys: ArrayRef = std::sync::Arc::new(keys);
        let keys = cast_with_options(&keys, index, &options).map_err(|_| {
            FormatError::Damaged(format!(
                "a file has more different values than a dictionary of {index} can number; write \
                 smaller files"
            ))
        })?;
        let keys = keys.to_data();
        let values = self.values.get_or_insert(batch_values);
        Ok(keys
            .into_builder()
            .data_type(array.data_type().clone())
            .child_data(vec![values.to_data()])
            .build()?)
    }

    /// Adds values that are new; gives the place of each.
    fn add(&mut self, values: &ArrayRef) -> Result<Vec<u64>, FormatError> {
        let Some(bytes) = value_bytes(values) else {
            return Err(FormatError::Damaged(format!(
                "a dictionary of {} cannot be written",
                values.data_type()
            )));
        };
        let mut places = Vec::with_capacity(bytes.len());
        let mut added = Vec::new();
        for (place, value) in bytes.into_iter().enumerate() {
            let next = self.places.len() as u64;
            let known = *self.places.entry(value).or_insert(next);
            if known == next {
                added.push(place as u64);
            }
            places.push(known);
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
