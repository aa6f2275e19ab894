//! Arrow IPC: files (`.arrow`, Feather's second version) and streams.
//!
//! A file's footer tells where its record batches are, and each batch's message where its buffers
//! are. A split is some whole batches, or, where a batch is too large, a range of its rows: then of
//! each buffer the bytes of these rows. Compressed batches cannot be divided. The dictionaries of
//! the columns are part of every split.

mod codec;
mod decode;
mod dictionaries;
mod encode;
mod messages;
mod places;
mod split;

pub use codec::Codec;
pub use decode::Decoder;
pub use encode::FileWriter;
pub use split::{ArrowFile, Projection, Split};
