//! The exceptions that jobs raise in Python.

use pyo3::import_exception;
use pyo3::prelude::*;
use tonnage_graphs::error::JobError;

import_exception!(tonnage.base.core.errors, UsageError);
import_exception!(tonnage.base.core.errors, RunError);
import_exception!(tonnage.base.core.errors, Cancelled);

/// Turns a job's error into a Python exception.
pub(crate) fn raised(why: JobError) -> PyErr {
    match why {
        JobError::Refused { setting, why } => UsageError::new_err((why, setting)),
        JobError::Cancelled => Cancelled::new_err("cancelled"),
        JobError::Failed {
            what,
            stage,
            file,
            offset,
        } => RunError::new_err((what, stage, file, offset)),
    }
}
