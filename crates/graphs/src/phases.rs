//! What every job has: its phases, its threads and its memory.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tonnage_disk::Mode;
use tonnage_pipeline::{Arena, Graph, RunHandle, RunOptions, RunReport, run};
use tonnage_stages::disk::modes::DiskModes;

use crate::error::{JobError, usage_error};

/// How often the timeline of a phase is sampled.
const SAMPLE_EVERY: Duration = Duration::from_millis(50);

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
    pub report: RunReport,
}

/// Threads of a work stage: the cores that this process may use, by affinity and cgroup.
#[must_use]
pub fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Memory for a job's graphs, which run one after another. No page is touched yet.
///
/// # Errors
/// The kernel refuses the mapping.
pub fn memory(bytes: usize) -> Result<Arc<Arena>, JobError> {
    let arena = Arena::map(bytes).map_err(|why| {
        usage_error(format!(
            "cannot allocate {bytes} bytes of memory ({why}); request less"
        ))
    })?;
    Ok(Arc::new(arena))
}

/// Runs the phases of a job.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Cancels the job and shows its progress.
    pub handle: RunHandle,
    /// When the job began.
    pub epoch: std::time::Instant,
}

impl Watch {
    /// Begins a job now.
    #[must_use]
    pub fn begin(handle: &RunHandle) -> Self {
        Self {
            handle: handle.clone(),
            epoch: std::time::Instant::now(),
        }
    }

    /// Runs one phase within `memory` to its end, and notes how its disks were used.
    ///
    /// # Errors
    /// The report of the run.
    pub fn run_on_disks(
        &self,
        name: &str,
        graph: &Graph,
        memory: &Arc<Arena>,
        modes: &[&Arc<DiskModes>],
    ) -> Result<Phase, JobError> {
        let mut phase = self.run(name, graph, memory, None)?;
        for mode in modes.iter().flat_map(|modes| modes.distinct()) {
            if !phase.disk_modes.contains(&mode) {
                phase.disk_modes.push(mode);
            }
        }
        Ok(phase)
    }

    /// Runs one phase within `memory`, for at most `duration`.
    ///
    /// # Errors
    /// The report of the run.
    pub fn run(
        &self,
        name: &str,
        graph: &Graph,
        memory: &Arc<Arena>,
        duration: Option<Duration>,
    ) -> Result<Phase, JobError> {
        let began_seconds = self.epoch.elapsed().as_secs_f64();
        // At least twenty samples, even of a short trial.
        let sample_every = duration.map_or(SAMPLE_EVERY, |duration| {
            (duration / 20).clamp(SAMPLE_EVERY / 10, SAMPLE_EVERY)
        });
        let options = RunOptions {
            memory: Arc::clone(memory),
            duration,
            sample_every,
        };
        let report = run(graph, &options, &self.handle)?;
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
