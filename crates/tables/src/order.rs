//! The order of a sort: columns, each ascending or descending, its nulls first or last.

use std::borrow::Cow;

use serde::Deserialize;

/// One column of an order.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnOrder {
    /// Its name.
    pub name: String,
    /// Whether greater values come first.
    pub descending: bool,
    /// Whether nulls come first; whether values ascend or not.
    pub nulls_first: bool,
}

/// A name as it is written in an order: in quotes if it has a comma, a quote, or what is an order.
#[must_use]
pub fn name_in_order(name: &str) -> Cow<'_, str> {
    let has_order = name.starts_with('-')
        || [":nulls-first", ":nulls-last"]
            .iter()
            .any(|nulls| name.ends_with(nulls));
    match has_order || name.is_empty() || name != name.trim() || name.contains([',', '"']) {
        true => Cow::Owned(format!("\"{}\"", name.replace('"', "\"\""))),
        false => Cow::Borrowed(name),
    }
}
