//! What every job reports, and the two ways in which it can fail.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use thiserror::Error;
use tonnage_disk::{DiskError, Mode};
use tonnage_pipeline::{Arena, Control, Graph, Options, Report, RunError, run};

/// How often the timeline of a phase is sampled.
const SAMPLE_EVERY: Duration = Duration::from_millis(50);

/// Why a job did not finish.
#[derive(Debug, Error)]
pub enum JobError {
    /// The arguments or the input cannot be used: nothing was started.
    #[error("{0}")]
    Refused(String),
    /// It failed while it ran.
    #[error("{what}")]
    Failed {
        /// What happened, where, to which file.
        what: String,
        /// The stage that failed, if one did.
        stage: Option<String>,
        /// The file it happened to.
        file: Option<PathBuf>,
        /// Where in the file.
        offset: Option<u64>,
    },
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl JobError {
    /// A failure that is no stage's.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::Failed {
            what: what.into(),
            stage: None,
            file: None,
            offset: None,
        }
    }

    /// A failure to do something to a file outside any graph.
    pub fn file(doing: &str, path: &Path, source: &std::io::Error) -> Self {
        let what = format!("{doing} {}: {source}", path.display());
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
            RunError::Failed { stage, failure } => Self::Failed {
                what,
                stage: Some(stage),
                file: failure.file,
                offset: failure.offset,
            },
            RunError::Graph(_) | RunError::System { .. } => Self::failed(what),
        }
    }
}

/// A phase of a job: one run of one graph.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// Its name: `sample`, `pass_one`, `pass_two`.
    pub name: String,
    /// The graph as one line.
    pub graph: String,
    /// Seconds between the job's start and the phase's.
    pub began_seconds: f64,
    /// How the disks were really used.
    pub disk_modes: Vec<Mode>,
    /// What the run reports.
    #[serde(flatten)]
    pub report: Report,
}

/// Threads of a work stage: the cores that this process may use, by affinity and control group.
#[must_use]
pub fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Memory for a job's graphs, which run one after another. No page of it is touched yet.
///
/// # Errors
/// The kernel's refusal.
pub fn memory(bytes: usize) -> Result<Arc<Arena>, JobError> {
    let arena = Arena::map(bytes).map_err(|why| {
        JobError::Refused(format!(
            "{bytes} bytes of memory cannot be mapped ({why}): ask for less"
        ))
    })?;
    Ok(Arc::new(arena))
}

/// How a job's graphs are run.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Cancels and shows progress.
    pub control: Control,
    /// When the job began.
    pub epoch: std::time::Instant,
}

impl Watch {
    /// A job that begins now.
    #[must_use]
    pub fn begin(control: &Control) -> Self {
        Self {
            control: control.clone(),
            epoch: std::time::Instant::now(),
        }
    }

    /// Runs one phase within `memory`, for a set time if there is one.
    ///
    /// # Errors
    /// What the run reports.
    pub fn run(
        &self,
        name: &str,
        graph: &Graph,
        memory: &Arc<Arena>,
        duration: Option<Duration>,
    ) -> Result<Phase, JobError> {
        let began_seconds = self.epoch.elapsed().as_secs_f64();
        // Twenty samples even of a short trial.
        let sample_every = duration.map_or(SAMPLE_EVERY, |duration| {
            (duration / 20).clamp(SAMPLE_EVERY / 10, SAMPLE_EVERY)
        });
        let options = Options {
            memory: Arc::clone(memory),
            duration,
            sample_every,
        };
        let report = run(graph, &options, &self.control)?;
        let (name, graph) = (name.to_owned(), graph.draw());
        Ok(Phase {
            name,
            graph,
            began_seconds,
            disk_modes: Vec::new(),
            report,
        })
    }
}
