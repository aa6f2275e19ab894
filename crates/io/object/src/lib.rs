//! Objects of any store that speaks S3: ranges of them, whole ones, parts of uploads.
//!
//! ```text
//! settings.rs     which bucket, where, how patiently
//! credentials.rs  keys from the files that AWS' own tools keep
//! client.rs       blocking calls, each with its time to the first byte; a runtime of its own
//! coming.rs       what ranges receive, as it comes
//! range.rs        one range, straight into its place: by one request, or two that race
//! tail.rs         when a second one is made
//! ranges.rs       parts of objects, each by several clients side by side
//! unfinished.rs   uploads that were neither completed nor given up
//! service.rs      every HTTP request passes here and is counted, with what became of it
//!   null.rs         answers at once, from nowhere
//!   faults.rs       what goes wrong on purpose
//! tally.rs        requests, repetitions, errors by kind
//! error.rs        what went wrong, at which object
//! ```
//!
//! The protocol (signatures, retries, going on in the middle of a broken body) is `object_store`'s.
//! A client is one thread's: its connection is driven by the thread that waits for it, so that a
//! thread more is a connection more, and a thread's CPU time is all of what its requests cost.

mod client;
mod client_pool;
mod counters;
mod credentials;
mod error;
mod hedging;
mod http;
mod list_uploads;
mod parallel_read;
mod progress;
mod range;
mod settings;
mod store;
mod upload;

pub use client::{CallStats, Client, ObjectInfo};
pub use client_pool::ClientPool;
pub use counters::{ErrorKind, RequestCounts};
pub use error::ObjectError;
pub use hedging::HedgePolicy;
pub use http::faults::{Effect, Faults, Method, Rule};
pub use parallel_read::ParallelReader;
pub use settings::{Engine, Keys, Settings};
pub use upload::{Part, Upload};
