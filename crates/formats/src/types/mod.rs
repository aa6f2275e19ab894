//! Types of columns: what PyArrow calls them, what differing ones have in common, and exact casts.

mod exact_cast;
mod names;
mod promotion;
mod schema_message;

pub use exact_cast::{CastError, cast_exactly};
pub use names::name_of;
pub use promotion::{common_field, common_type};
pub use schema_message::{read_schema, write_schema};
