//! The ways in which a job can fail.

use std::path::{Path, PathBuf};

use thiserror::Error;
use tonnage_disk::DiskError;
use tonnage_pipeline::{GraphError, RunError};

/// Why a job did not finish.
#[derive(Debug, Error)]
pub enum JobError {
    /// The arguments or the input cannot be used; of what was started, nothing is left.
    #[error("{}{why}", setting.map_or_else(String::new, |name| format!("{name}: ")))]
    Refused {
        /// The setting to change, as Python names it, if one is to blame.
        setting: Option<&'static str>,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The job failed while it ran.
    #[error("{what}")]
    Failed {
        /// What happened.
        what: String,
        /// The stage that failed, if any.
        stage: Option<String>,
        /// The file that was involved, if any.
        file: Option<PathBuf>,
        /// The offset in that file.
        offset: Option<u64>,
    },
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl JobError {
    /// A failure outside of any stage.
    pub fn failure(what: impl Into<String>) -> Self {
        Self::Failed {
            what: what.into(),
            stage: None,
            file: None,
            offset: None,
        }
    }

    /// A failure with a file, outside of any graph.
    pub fn file(action: &str, path: &Path, source: &std::io::Error) -> Self {
        let what = format!("cannot {action} {}: {source}", path.display());
        Self::Failed {
            what,
            stage: None,
            file: Some(path.to_owned()),
            offset: None,
        }
    }
}

impl From<DiskError> for JobError {
    fn from(error: DiskError) -> Self {
        Self::Failed {
            what: error.to_string(),
            stage: None,
            file: error.path().map(ToOwned::to_owned),
            offset: error.offset(),
        }
    }
}

impl From<RunError> for JobError {
    fn from(error: RunError) -> Self {
        let what = error.to_string();
        match error {
            RunError::Cancelled => Self::Cancelled,
            RunError::Failed { failure, .. } if failure.is_bad_input => usage_error(failure.what),
            RunError::Failed { stage, failure } => Self::Failed {
                what,
                stage: Some(stage),
                file: failure.file,
                offset: failure.offset,
            },
            RunError::Graph(GraphError::Memory { .. }) => {
                setting_error("memory", format!("{what}; use more"))
            }
            RunError::Graph(_) | RunError::System { .. } => Self::failure(what),
        }
    }
}

/// An error of arguments, or of an input, that cannot be used.
pub fn usage_error(why: impl Into<String>) -> JobError {
    JobError::Refused {
        setting: None,
        why: why.into(),
    }
}

/// An error of one setting.
pub fn setting_error(setting: &'static str, why: impl Into<String>) -> JobError {
    JobError::Refused {
        setting: Some(setting),
        why: why.into(),
    }
}
