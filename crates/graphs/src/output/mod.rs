//! Outputs that become visible when all of their parts are finished.

pub(crate) mod atomic_output;
pub(crate) mod job_output;
pub(crate) mod manifest;
