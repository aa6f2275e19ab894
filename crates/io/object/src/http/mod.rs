//! The HTTP layer below `object_store`: counts every request, and may make it fail; and requests
//! that the library does not make.

pub(crate) mod faults;
pub(crate) mod null;
pub(crate) mod object_list;
pub(crate) mod response;
pub(crate) mod service;
pub(crate) mod signed_page;
