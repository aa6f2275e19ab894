//! What can go wrong: a graph that does not fit together, a stage that fails, a run that stops.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// A graph that cannot be run, found before any thread starts.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum GraphError {
    /// Nothing to run.
    #[error("the graph has no stages")]
    Empty,
    /// Two stages of one name.
    #[error("two stages are called {0}")]
    SameName(String),
    /// An edit names a stage that is not there.
    #[error("the graph has no stage called {name}; it has {known}")]
    NoStage {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Neighbours that do not fit.
    #[error("{from} gives {gives}, but {to} takes {takes}")]
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
    /// The stages together want more than the budget.
    #[error(
        "the stages need {need_bytes} bytes of memory ({shares}), the budget is {budget_bytes}"
    )]
    Memory {
        /// Sum over the stages.
        need_bytes: usize,
        /// The budget.
        budget_bytes: usize,
        /// Who wants what.
        shares: String,
    },
}

/// What a stage reports when it cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What happened, in words.
    pub what: String,
    /// The file it happened to.
    pub file: Option<PathBuf>,
    /// Where in the file.
    pub offset: Option<u64>,
}

impl Failure {
    /// A failure that no file is to blame for.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            file: None,
            offset: None,
        }
    }

    /// A failure at a place in a file.
    pub fn at(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            file: Some(file.to_owned()),
            offset: Some(offset),
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
    /// A stage failed; every other was stopped.
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
        /// What was asked for.
        what: &'static str,
        /// The answer.
        source: std::io::Error,
    },
}
