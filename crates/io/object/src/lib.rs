//! A client of S3-compatible object stores: ranges of objects, whole objects, multipart uploads.
//!
//! ```text
//! settings.rs       the bucket, its address, limits and retries
//! credentials.rs    keys from the files of AWS' own tools
//! store.rs          builds the `object_store` client
//! client.rs         blocking calls with statistics, each client on a runtime of its own
//! client_pool.rs    idle clients for reuse
//! upload/           a multipart upload and its parts; a list of the unfinished ones
//! retries.rs        the retry policy: how often, and after which pauses
//! range.rs          one range, straight into its place, by one request or two racing ones
//! hedging.rs        when a second request is made
//! parallel_read.rs  ranges of objects, each by several clients at once
//! progress.rs       bytes that ranges have received
//! counters.rs       requests, retries, errors by kind
//! http/             the HTTP layer: counts every request
//!   null.rs           answers at once, without a server
//!   faults.rs         injected faults
//!   object_list.rs    lists of objects, whatever their names are
//! error.rs          errors with the object
//! ```
//!
//! `object_store` does the protocol (signatures, retries, continuing a broken body). A client
//! belongs to one thread, which drives its connection. So one more thread is one more connection,
//! and a thread's CPU time is the whole cost of its requests.

mod client;
mod client_pool;
mod counters;
mod credentials;
mod error;
mod hedging;
mod http;
mod parallel_read;
mod progress;
mod range;
mod retries;
mod settings;
mod store;
mod upload;

pub use client::{CallStats, Client};
pub use client_pool::ClientPool;
pub use counters::{ErrorKind, RequestCounts};
pub use error::ObjectError;
pub use hedging::HedgePolicy;
pub use http::faults::{Effect, Faults, Method, Rule};
pub use http::object_list::{Listing, ObjectInfo};
pub use parallel_read::ParallelReader;
pub use settings::{Engine, Keys, Settings};
pub use upload::{Part, Upload};
