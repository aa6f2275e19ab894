//! The reading side of a reduction; the host program reduces.
//!
//! ```text
//!   retrieval    retrieve -chunks-> lend      chunks on demand, by ranges, without a copy
//! ```

pub mod retrieval;
