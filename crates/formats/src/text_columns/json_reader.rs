//! JSON lines as batches.
//!
//! Numbers are read from their text, so they may have any number of digits. Decimals, dates and
//! times are strings, bytes are Base64, and maps are lists of pairs, as MapReduce writes them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::RecordReader;
use super::column::{Column, Values, batch_of};
use super::refusals::{missing_value, no_values, wrong_value};
use crate::error::FormatError;
use crate::text::no_json;

/// Reads JSON lines.
#[derive(Debug)]
pub struct JsonReader {
    /// All fields that an object may have.
    known: Arc<Schema>,
    columns: Vec<Column>,
}

impl JsonReader {
    /// Reads objects with the fields of `file`, of which those of `kept` become columns.
    ///
    /// # Errors
    /// A column whose type JSON has no values of.
    pub fn new(file: &SchemaRef, kept: &SchemaRef) -> Result<Self, String> {
        let column =
            |field: &Arc<Field>| Column::new(field).ok_or_else(|| no_values(field, "JSON"));
        Ok(Self {
            known: Arc::clone(file),
            columns: kept.fields().iter().map(column).collect::<Result<_, _>>()?,
        })
    }
}

impl RecordReader for JsonReader {
    fn push(&mut self, record: &[u8]) -> Result<bool, String> {
        if record.trim_ascii().is_empty() {
            return Ok(false);
        }
        let rows = self.rows();
        let mut parser = serde_json::Deserializer::from_slice(record);
        let object = ObjectSeed {
            columns: &mut self.columns,
            known: Some(&self.known),
        };
        let read = object.deserialize(&mut parser).and_then(|()| parser.end());
        if let Err(why) = read {
            self.columns
                .iter_mut()
                .for_each(|column| column.truncate(rows));
            return Err(refusal(&why.to_string()));
        }
        Ok(true)
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    fn row_bytes(&self) -> usize {
        self.columns.iter().map(Column::value_bytes).sum()
    }

    fn finish(&mut self) -> Result<RecordBatch, FormatError> {
        batch_of(&mut self.columns)
    }
}

/// Why a record is refused: for its syntax, or for a value.
fn refusal(why: &str) -> String {
    match why.rsplit_once(" at line 1 column ") {
        Some((what, _)) if what.starts_with("has ") => what.to_owned(),
        _ => no_json(why),
    }
}

/// Reads an object into columns, one value each.
struct ObjectSeed<'a> {
    columns: &'a mut [Column],
    /// Fields that are passed over if there is no column; `None` if there is one for each.
    known: Option<&'a Schema>,
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let rows = self.columns.iter().map(Column::len).min().unwrap_or(0);
        let mut next = 0;
        while let Some(Name(name)) = object.next_key()? {
            // Objects of a file mostly have their fields in the same order.
            let is_next = self
                .columns
                .get(next)
                .is_some_and(|column| *column.field.name() == name);
            let place = match is_next {
                true => Some(next),
                false => self
                    .columns
                    .iter()
                    .position(|column| *column.field.name() == name),
            };
            let Some(place) = place else {
                if self
                    .known
                    .is_some_and(|known| known.index_of(&name).is_ok())
                {
                    object.next_value::<IgnoredAny>()?;
                    continue;
                }
                return Err(A::Error::custom(format!(
                    "has the field {name:?}, which the schema lacks; specify a schema that has it"
                )));
            };
            next = place + 1;
            let column = &mut self.columns[place];
            if column.len() > rows {
                return Err(A::Error::custom(format!("has the field {name:?} twice")));
            }
            object.next_value_seed(ValueSeed { column })?;
        }
        for column in self
            .columns
            .iter_mut()
            .filter(|column| column.len() == rows)
        {
            let pushed = column.push_null();
            pushed.ok_or_else(|| A::Error::custom(missing_value(column)))?;
        }
        Ok(())
    }
}

/// A field's name.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads a value into a column.
struct ValueSeed<'a> {
    column: &'a mut Column,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let text = <&RawValue as serde::Deserialize>::deserialize(from)?.get();
        push_value(self.column, text).map_err(D::Error::custom)
    }
}

fn push_value(column: &mut Column, text: &str) -> Result<(), String> {
    let opening = match &column.values {
        Values::List { .. } | Values::Map { .. } => "[",
        Values::Struct(_) => "{",
        _ => "",
    };
    if text != "null" && !text.starts_with(opening) {
        return Err(wrong_value(column, text.as_bytes()));
    }
    if text == "null" {
        return column.push_null().ok_or_else(|| missing_value(column));
    }
    let pushed = match &mut column.values {
        Values::List {
            length,
            offsets,
            items,
        } => {
            let before = items.len();
            read_items(text, Items(items))?;
            offsets.push(items.len() as i32);
            length
                .is_none_or(|length| items.len() - before == length)
                .then_some(())
        }
        Values::Map { offsets, pairs } => {
            read_items(text, Pairs(pairs))?;
            offsets.push(pairs.len() as i32);
            Some(())
        }
        Values::Struct(fields) => {
            let object = ObjectSeed {
                columns: fields,
                known: None,
            };
            let mut parser = serde_json::Deserializer::from_str(text);
            let read = object.deserialize(&mut parser);
            read.map_err(|why| refusal(&why.to_string()))?;
            Some(())
        }
        values => push_scalar(values, text),
    };
    pushed.ok_or_else(|| wrong_value(column, text.as_bytes()))?;
    column.push_valid();
    Ok(())
}

fn read_items<'de>(text: &'de str, items: impl Visitor<'de, Value = ()>) -> Result<(), String> {
    let mut parser = serde_json::Deserializer::from_str(text);
    let read = parser.deserialize_seq(items);
    read.map_err(|why| refusal(&why.to_string()))
}

/// The items of a list.
struct Items<'a>(&'a mut Column);

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items
            .next_element_seed(ValueSeed { column: self.0 })?
            .is_some()
        {}
        Ok(())
    }
}

/// The pairs of a map, each a list of a key and a value.
struct Pairs<'a>(&'a mut Column);

impl<'de> Visitor<'de> for Pairs<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of pairs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<(), A::Error> {
        while pairs.next_element_seed(Pair(self.0))?.is_some() {}
        Ok(())
    }
}

struct Pair<'a>(&'a mut Column);

impl<'de> DeserializeSeed<'de> for Pair<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Pair<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of a key and a value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<(), A::Error> {
        if let Values::Struct(fields) = &mut self.0.values {
            for (place, column) in fields.iter_mut().enumerate() {
                let read = pair.next_element_seed(ValueSeed { column })?;
                read.ok_or_else(|| A::Error::invalid_length(place, &"a key and a value"))?;
            }
        }
        if pair.next_element::<IgnoredAny>()?.is_some() {
            return Err(A::Error::invalid_length(3, &"a key and a value"));
        }
        self.0.push_valid();
        Ok(())
    }
}

fn push_scalar(values: &mut Values, text: &str) -> Option<()> {
    let string = || -> Option<Cow<'_, str>> {
        let Name(string) = serde_json::from_str(text).ok()?;
        Some(string)
    };
    match values {
        Values::Scalar(scalar, values) if text.starts_with('"') => {
            scalar.push(string()?.as_bytes(), values)
        }
        Values::Scalar(scalar, values) => {
            let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
            (is_number && scalar.is_number()).then(|| scalar.push(text.as_bytes(), values))?
        }
        Values::Bits(bits) => {
            bits.append(text.parse().ok()?);
            Some(())
        }
        Values::Bytes {
            is_text,
            offsets,
            data,
        } => {
            match *is_text {
                true => data.extend_from_slice(string()?.as_bytes()),
                false => BASE64.decode_vec(string()?.as_bytes(), data).ok()?,
            }
            offsets.push(i32::try_from(data.len()).ok()?);
            Some(())
        }
        Values::FixedBinary(width, values) => {
            let bytes = BASE64.decode(string()?.as_bytes()).ok()?;
            (bytes.len() == *width).then(|| values.extend_from_slice(&bytes))
        }
        Values::Null | Values::List { .. } | Values::Map { .. } | Values::Struct(_) => None,
    }
}
