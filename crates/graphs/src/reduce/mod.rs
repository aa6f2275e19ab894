//! The reading side of a reduction: what is reduced, and how, is outside of the core.
//!
//! ```text
//!   retrieval    retrieve -chunks-> hand      chunks as they are asked for, by ranges, without a copy
//! ```

pub mod retrieval;
