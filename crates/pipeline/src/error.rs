//! Errors: a graph that does not fit together, a stage that fails, a run that stops.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// A graph that cannot be run, found before any thread starts.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum GraphError {
    /// There is nothing to run.
    #[error("the graph has no stages")]
    Empty,
    /// Two stages have the same name.
    #[error("two stages are named {0}")]
    SameName(String),
    /// An edit names an unknown stage.
    #[error("the graph has no stage named {name}; its stages are {known}")]
    NoStage {
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// Neighbouring stages do not fit.
    #[error("{from} outputs {gives}, but {to} expects {takes}")]
    Mismatch {
        /// Upstream stage.
        from: String,
        /// What it gives.
        gives: String,
        /// Downstream stage.
        to: String,
        /// What it takes.
        takes: String,
    },
    /// The stages together need more than the budget.
    #[error(
        "the stages need {need_bytes} bytes of memory ({shares}), but the budget is {budget_bytes}"
    )]
    Memory {
        /// Sum over the stages.
        need_bytes: usize,
        /// The budget.
        budget_bytes: usize,
        /// How much each stage needs.
        shares: String,
    },
}

/// What a stage reports when it fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What happened.
    pub what: String,
    /// The file that was involved, if any.
    pub file: Option<PathBuf>,
    /// The offset in that file.
    pub offset: Option<u64>,
    /// Whether it is the input that cannot be used, and not the run that failed.
    pub is_bad_input: bool,
}

impl Failure {
    /// A failure that involves no file.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            file: None,
            offset: None,
            is_bad_input: false,
        }
    }

    /// A failure at a place in a file.
    pub fn at(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            file: Some(file.to_owned()),
            offset: Some(offset),
            is_bad_input: false,
        }
    }

    /// Input that cannot be used, and that would not be better the next time.
    pub fn bad_input(what: impl Into<String>) -> Self {
        Self {
            is_bad_input: true,
            ..Self::new(what)
        }
    }
}

/// Why a worker ended before its input did.
#[derive(Debug)]
pub enum StageError {
    /// The run was cancelled, or another stage failed.
    Stopped,
    /// This stage failed.
    Failed(Failure),
}

impl From<Failure> for StageError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Why a run did not finish.
#[derive(Debug, Error)]
pub enum RunError {
    /// Cancelled from outside.
    #[error("cancelled")]
    Cancelled,
    /// A stage failed; all others were stopped.
    #[error("stage {stage}: {}", .failure.what)]
    Failed {
        /// Its name.
        stage: String,
        /// What happened.
        failure: Failure,
    },
    /// The graph cannot be run.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The system refused memory or a thread.
    #[error("{what}: {source}")]
    System {
        /// What was requested.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}
