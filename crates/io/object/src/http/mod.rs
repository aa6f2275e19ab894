//! The HTTP layer below `object_store`: counts every request, and may make it fail.

pub(crate) mod faults;
pub(crate) mod null;
pub(crate) mod response;
pub(crate) mod service;
