//! The order of a sort: columns, each ascending or descending, its nulls first or last.

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
