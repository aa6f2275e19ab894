//! The exceptions that jobs raise in Python.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use tonnage_graphs::error::JobError;

create_exception!(
    _core,
    Refused,
    PyException,
    "The arguments or the input cannot be used."
);
create_exception!(_core, Failed, PyException, "The job failed while it ran.");
create_exception!(_core, Cancelled, PyException, "The job was cancelled.");

/// A job's error as it is raised.
pub(crate) fn raised(why: JobError) -> PyErr {
    match why {
        JobError::Refused(why) => Refused::new_err(why),
        JobError::Cancelled => Cancelled::new_err("cancelled"),
        JobError::Failed {
            what,
            stage,
            file,
            offset,
        } => Failed::new_err((what, stage, file, offset)),
    }
}
