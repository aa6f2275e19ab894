//! Object storage as the input and the output of jobs.

pub mod object_input;
pub mod object_prefix;
pub mod object_upload;
