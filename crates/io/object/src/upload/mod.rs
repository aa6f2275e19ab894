//! A multipart upload, and the parts that it has.

pub(crate) mod list;

use object_store::MultipartId;
use object_store::multipart::PartId;

/// An object that any number of clients put in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The object's name in the bucket.
    pub key: String,
    pub(crate) id: MultipartId,
}

/// A part that was put.
#[derive(Clone, Debug)]
pub struct Part(pub(crate) PartId);
