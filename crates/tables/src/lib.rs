//! Rows of tables as bytes: normalized keys, values behind them, and back to columns.
//!
//! A sort moves rows, and files have columns. Pass one turns the rows of a batch into bytes, pass
//! two turns sorted bytes into batches again:
//!
//! ```text
//!   row     length | [key length] | key | nulls | values of fixed size | values of any size
//!   key     of each key column: a byte for null or not, and bytes that compare as the values do
//! ```
//!
//! Keys are compared by `memcmp`, whatever their types (normalized keys: Graefe, "Implementing
//! sorting in database systems", ACM Computing Surveys 2006). A column that can be read from the
//! key is not stored again. Structs are taken apart: each of their fields is a column, null where
//! its struct is; lists and maps are values of any size. Rows lie contiguous, so a gather touches
//! few cache lines however many columns there are, and columns are converted one at a time, some
//! hundred rows in the cache.
//!
//! Pure functions: nothing here reads or writes.

mod builder;
mod column;
mod error;
mod key;
mod layout;
mod leading_columns;
mod nested_builder;
mod nested_writer;
mod order;
mod reader;
mod row_builder;
mod table_builder;
mod writer;

pub use error::TableError;
pub use layout::{RowLayout, RowShape};
pub use leading_columns::LeadingColumns;
pub use order::ColumnOrder;
pub use reader::RowReader;
pub use row_builder::RowBuilder;
pub use writer::{RowWriter, Rows};
