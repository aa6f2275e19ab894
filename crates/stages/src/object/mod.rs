//! What stages that use an object store share: access for readers, uploads, and a log of requests.

pub mod access;
pub mod request_log;
pub mod uploads;
