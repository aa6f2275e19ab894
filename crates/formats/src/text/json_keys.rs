//! Keys of JSON lines: values of some members of each line's object, by their names from the
//! outermost object on. Of members with the same name the last counts.

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::text::decimal_key::DecimalText;
use crate::text::keys::{FieldKind, KeyError, push_bytes};

/// A member that is part of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonKey {
    /// The names of objects that it is in, and its own.
    pub path: Vec<String>,
    /// What it is compared as.
    pub kind: FieldKind,
    /// Whether greater values come first.
    pub descending: bool,
    /// Whether nulls, and members that are missing, come first.
    pub nulls_first: bool,
}

/// Makes keys of lines.
#[derive(Clone, Debug)]
pub struct JsonKeys {
    keys: Vec<JsonKey>,
    members: Vec<Member>,
}

/// A name in an object.
#[derive(Clone, Debug)]
struct Member {
    name: String,
    /// The numbers of the keys that it is.
    keys: Vec<usize>,
    /// Those that are members of it.
    inner: Vec<usize>,
    members: Vec<Member>,
}

const VALUE: u8 = 1;

impl JsonKeys {
    /// Keys of these members.
    #[must_use]
    pub fn new(keys: Vec<JsonKey>) -> Self {
        let mut members = Vec::new();
        for (number, key) in keys.iter().enumerate() {
            add(&mut members, &key.path, number);
        }
        Self { keys, members }
    }

    /// Appends the key of a line.
    ///
    /// # Errors
    /// What is no JSON object, or a value of another kind.
    pub fn push(
        &self,
        line: &[u8],
        places: &mut Vec<Option<Range<usize>>>,
        to: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        places.clear();
        places.resize(self.keys.len(), None);
        let no_object = |why: serde_json::Error| KeyError::Record(no_json(&why.to_string()));
        let mut parser = serde_json::Deserializer::from_slice(line);
        let object = Object {
            members: &self.members,
            base: line.as_ptr() as usize,
            places,
        };
        let read = object.deserialize(&mut parser).and_then(|()| parser.end());
        read.map_err(no_object)?;
        for (number, key) in self.keys.iter().enumerate() {
            let value = places[number].clone().map(|place| &line[place]);
            let Some(value) = value.filter(|&value| value != b"null") else {
                to.push(if key.nulls_first { 0 } else { 2 });
                continue;
            };
            to.push(VALUE);
            push_value(key, value, to).ok_or_else(|| KeyError::Value {
                number,
                kind: key.kind,
                value: value.to_vec(),
            })?;
        }
        Ok(())
    }
}

/// What is wrong with the syntax of a line, of which serde says that it is the first.
#[must_use]
pub fn no_json(why: &str) -> String {
    match why.rsplit_once(" at line 1 column ") {
        Some((what, column)) => {
            format!("is no JSON object: {what} at its byte {column}; correct it")
        }
        None => format!("is no JSON object: {why}; correct it"),
    }
}

fn add(members: &mut Vec<Member>, path: &[String], number: usize) {
    let Some((name, inner)) = path.split_first() else {
        return;
    };
    let known = members.iter().position(|member| member.name == *name);
    let at = known.unwrap_or_else(|| {
        members.push(Member {
            name: name.clone(),
            keys: Vec::new(),
            inner: Vec::new(),
            members: Vec::new(),
        });
        members.len() - 1
    });
    match inner {
        [] => members[at].keys.push(number),
        inner => {
            members[at].inner.push(number);
            add(&mut members[at].members, inner, number);
        }
    }
}

/// Appends a value; `None` if it is of another kind.
fn push_value(key: &JsonKey, value: &[u8], to: &mut Vec<u8>) -> Option<()> {
    let inverted = if key.descending { u8::MAX } else { 0 };
    match (key.kind, value) {
        (FieldKind::Decimal, [b'-' | b'0'..=b'9', ..]) => {
            DecimalText::of_json(value)?.push_key(inverted, to);
        }
        (FieldKind::Boolean, b"false") => to.push(inverted),
        (FieldKind::Boolean, b"true") => to.push(1 ^ inverted),
        (FieldKind::Bytes, [b'"', text @ .., b'"']) => match memchr::memchr(b'\\', text) {
            None => push_bytes(text, key.descending, to),
            Some(_) => {
                let text: String = serde_json::from_slice(value).ok()?;
                push_bytes(text.as_bytes(), key.descending, to);
            }
        },
        _ => return None,
    }
    Some(())
}

/// Finds the places of members in an object.
struct Object<'a> {
    members: &'a [Member],
    /// The address of the line.
    base: usize,
    places: &'a mut [Option<Range<usize>>],
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, object: D) -> Result<(), D::Error> {
        object.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(known) = object.next_key_seed(Name(self.members))? {
            let Some(member) = known.map(|at| &self.members[at]) else {
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = object.next_value::<&'de RawValue>()?.get();
            let begin = value.as_ptr() as usize - self.base;
            for &number in &member.keys {
                self.places[number] = Some(begin..begin + value.len());
            }
            for &number in &member.inner {
                self.places[number] = None;
            }
            if !member.members.is_empty() && value.starts_with('{') {
                let inner = Object {
                    members: &member.members,
                    base: self.base,
                    places: &mut *self.places,
                };
                let mut parser = serde_json::Deserializer::from_str(value);
                let read = parser.deserialize_map(inner);
                read.map_err(serde::de::Error::custom)?;
            }
        }
        Ok(())
    }
}

/// The place of a name among members.
struct Name<'a>(&'a [Member]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'de>>(self, name: D) -> Result<Self::Value, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|member| member.name == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(path: &str, kind: FieldKind, line: &str) -> Result<Vec<u8>, KeyError> {
        let keys = JsonKeys::new(vec![JsonKey {
            path: path.split('.').map(str::to_owned).collect(),
            kind,
            descending: false,
            nulls_first: false,
        }]);
        let (mut places, mut key) = (Vec::new(), Vec::new());
        keys.push(line.as_bytes(), &mut places, &mut key)
            .map(|()| key)
    }

    #[test]
    fn members_are_found_by_their_path() {
        let text = |line| key_of("a.b", FieldKind::Bytes, line).expect("an object");
        let value = |text: &str| [&[VALUE][..], text.as_bytes(), &[0]].concat();
        assert_eq!(
            text(r#"{"b": 1, "a": {"c": [{"b": 2}], "b": "x"}}"#),
            value("x")
        );
        assert_eq!(text(r#"{"a": {"b": "\u00e4\"\n"}}"#), value("ä\"\n"));
        assert_eq!(text(r#"{"\u0061": {"b": "x"}}"#), value("x"));
        assert_eq!(text(r#"{"a": {"b": "x", "b": "y"}}"#), value("y"));
        for null in [
            r#"{}"#,
            r#"{"a": 7}"#,
            r#"{"a": {"b": null}}"#,
            r#"{"a":{"b":"x"},"a":{}}"#,
        ] {
            assert_eq!(text(null), [2], "{null}");
        }
    }

    #[test]
    fn what_is_of_another_kind_or_no_object_is_refused() {
        for (line, kind) in [
            (r#"{"a": "1"}"#, FieldKind::Decimal),
            (r#"{"a": 1}"#, FieldKind::Bytes),
            (r#"{"a": [true]}"#, FieldKind::Boolean),
        ] {
            let why = key_of("a", kind, line).expect_err("another kind");
            assert!(matches!(why, KeyError::Value { number: 0, .. }), "{why:?}");
        }
        for line in [
            "",
            "[1]",
            r#"{"a": 1"#,
            r#"{"a": 1} x"#,
            r#"{"a": 01}"#,
            "7",
            r#"{"x": nul}"#,
        ] {
            let why = key_of("a", FieldKind::Decimal, line).expect_err("no object");
            assert!(matches!(why, KeyError::Record(_)), "{line}: {why:?}");
        }
    }
}
