//! The Python face of the core: conversion only.
//!
//! A job is started with a configuration as JSON, runs on a thread of its own without the GIL, is
//! polled and cancelled through its handle, and gives its outcome as JSON. What the JSON holds is
//! declared by the `Config` and `Outcome` of the graph that runs, and typed in `_core.pyi`.

use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pyo3::PyClass;
use pyo3::buffer::PyBuffer;
use pyo3::import_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tonnage_disk::Disk;
use tonnage_graphs::job::{self, JobError};
use tonnage_graphs::{
    Plan, Shape, cpu_bench, disk_bench, fleet, folder, gensort, hash, map_reduce, net_bench,
    object_bench, ops_bench, reduce, sort, upload, valsort, volumes,
};
use tonnage_pipeline::Control;

use crate::gates::{Given, Taken};
use crate::retrieval::{Chunk, Retrieval};

mod gates;
mod output;
mod ranges;
mod reductions;
mod retrieval;

import_exception!(tonnage.base.core.errors, UsageError);
import_exception!(tonnage.base.core.errors, RunError);
import_exception!(tonnage.base.core.errors, Cancelled);

type Ending = Result<String, JobError>;

/// A job that runs.
#[pyclass(frozen, module = "tonnage._core")]
struct Job {
    control: Control,
    thread: Mutex<Option<JoinHandle<Ending>>>,
    ended: Mutex<mpsc::Receiver<()>>,
}

#[pymethods]
impl Job {
    /// Starts the job `name` with a configuration in JSON, and with the gate that it needs if
    /// something comes in or goes out by one.
    #[new]
    #[pyo3(signature = (name, config, gate=None))]
    fn new(name: &str, config: &str, gate: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let control = Control::default();
        let (thread, ended) = match name {
            "map_reduce_pass_one" => {
                let gate = of_job::<Given>(name, gate)?.get().gate();
                let job = move |config: &_, control: &_| {
                    map_reduce::pass_one::run(config, &gate, control)
                };
                start(config, job, &control)
            }
            "map_reduce_pass_two" => {
                let gate = of_job::<Taken>(name, gate)?.get().gate();
                let job = move |config: &_, control: &_| {
                    map_reduce::pass_two::run(config, &gate, control)
                };
                start(config, job, &control)
            }
            "retrieval" => {
                let ends = of_job::<Retrieval>(name, gate)?.get().ends();
                let job =
                    move |config: &_, control: &_| reduce::retrieval::run(config, &ends, control);
                start(config, job, &control)
            }
            "sort" => start(config, sort::run, &control),
            "disk_bench" => start(config, disk_bench::run, &control),
            "cpu_bench" => start(config, cpu_bench::run, &control),
            "net_bench" => start(config, net_bench::run, &control),
            "object_bench" => start(config, object_bench::run, &control),
            "object_find" => start(config, volumes::run, &control),
            "folder_list" => start(config, folder::list, &control),
            "folder_put" => start(config, folder::put, &control),
            "folder_clear" => start(config, folder::clear, &control),
            "upload" => start(config, upload::run, &control),
            "object_remove" => start(config, object_bench::remove, &control),
            "ops_bench" => start(config, ops_bench::run, &control),
            "fleet_sample" => start(config, fleet::sample::run, &control),
            "fleet_boundaries" => start(config, fleet::boundaries::run, &control),
            "fleet_pass_one" => start(config, fleet::pass_one::run, &control),
            "fleet_pass_two" => start(config, fleet::pass_two::run, &control),
            "fleet_copy" => start(config, fleet::copy::run, &control),
            "gensort" => start(config, gensort::run, &control),
            "valsort" => start(config, valsort::run, &control),
            _ => Err(PyValueError::new_err(format!(
                "there is no job called {name}"
            ))),
        }?;
        Ok(Self {
            control,
            thread: Mutex::new(Some(thread)),
            ended: Mutex::new(ended),
        })
    }

    /// Bytes that the last stages have dealt with so far.
    fn done_bytes(&self) -> u64 {
        self.control.done_bytes()
    }

    /// Waits for the job's end, in whatever way, but at most so long; tells whether it has ended.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let most = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        py.detach(|| {
            let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.recv_timeout(most) != Err(mpsc::RecvTimeoutError::Timeout)
        })
    }

    /// Asks the job to end; `result` then raises `Cancelled`.
    fn cancel(&self) {
        self.control.cancel();
    }

    /// Waits for the end and gives the outcome in JSON; once only.
    fn result(&self, py: Python<'_>) -> PyResult<String> {
        let Some(thread) = self.lock().take() else {
            return Err(PyRuntimeError::new_err("the result was taken already"));
        };
        let ending = py.detach(|| thread.join());
        ending
            .map_err(|_| PyRuntimeError::new_err("the core panicked; see above"))?
            .map_err(raised)
    }
}

/// A job's error as it is raised.
fn raised(why: JobError) -> PyErr {
    match why {
        JobError::Refused(why) => UsageError::new_err(why),
        JobError::Cancelled => Cancelled::new_err("cancelled"),
        JobError::Failed {
            what,
            stage,
            file,
            offset,
        } => RunError::new_err((what, stage, file, offset)),
    }
}

impl Job {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<Ending>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The gate of a job that has one.
fn of_job<'a, 'py, G: PyClass>(
    name: &str,
    gate: Option<&'a Bound<'py, PyAny>>,
) -> PyResult<&'a Bound<'py, G>> {
    let gate = gate.ok_or_else(|| PyValueError::new_err(format!("{name} needs a gate")))?;
    Ok(gate.cast::<G>()?)
}

fn start<C, O>(
    config: &str,
    job: impl FnOnce(&C, &Control) -> Result<O, JobError> + Send + 'static,
    control: &Control,
) -> PyResult<(JoinHandle<Ending>, mpsc::Receiver<()>)>
where
    C: DeserializeOwned + Send + 'static,
    O: Serialize + 'static,
{
    let config: C = serde_json::from_str(config)
        .map_err(|why| PyValueError::new_err(format!("the configuration: {why}")))?;
    let control = control.clone();
    let (end, ended) = mpsc::channel::<()>();
    let run = move || {
        let _end = end; // dropped when the job has ended, which ends `ended`
        let outcome = job(&config, &control)?;
        serde_json::to_string(&outcome).map_err(|why| JobError::failed(why.to_string()))
    };
    let thread = thread::Builder::new().name("tonnage job".into());
    let thread = thread
        .spawn(run)
        .map_err(|why| PyRuntimeError::new_err(format!("starting the job: {why}")))?;
    Ok((thread, ended))
}

/// Whether this is a debug build, whose speeds say nothing.
#[pyfunction]
fn is_debug_build() -> bool {
    cfg!(debug_assertions)
}

/// How memory is divided for a sort: a `Shape` in JSON to a `Plan` in JSON.
#[pyfunction]
fn plan(shape: &str) -> PyResult<String> {
    let shape: Shape = serde_json::from_str(shape)
        .map_err(|why| PyValueError::new_err(format!("the shape: {why}")))?;
    let plan =
        Plan::new(&shape, &Disk::default()).map_err(|why| UsageError::new_err(why.to_string()))?;
    serde_json::to_string(&plan).map_err(|why| PyRuntimeError::new_err(why.to_string()))
}

/// Mixes one value of each row, from where its offset says to where the next one does, into the rows'
/// hashes; all are 64-bit numbers in this machine's order.
#[pyfunction]
fn mix_rows<'py>(
    py: Python<'py>,
    hashes: PyBuffer<u64>,
    offsets: PyBuffer<u64>,
    data: PyBuffer<u8>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (mut hashes, offsets) = (hashes.to_vec(py)?, offsets.to_vec(py)?);
    let data = data.to_vec(py)?;
    let mixed = py.detach(|| hash::mix_rows(&mut hashes, &offsets, &data));
    mixed.ok_or_else(|| PyValueError::new_err("the offsets do not fit the rows and their data"))?;
    let bytes: Vec<u8> = hashes.into_iter().flat_map(u64::to_ne_bytes).collect();
    Ok(PyBytes::new(py, &bytes))
}

/// The core's version.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// How many threads a job's work stages have: the cores that this process may use.
#[pyfunction]
fn workers() -> usize {
    job::workers()
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Job>()?;
    module.add_class::<Given>()?;
    module.add_class::<Taken>()?;
    module.add_class::<Retrieval>()?;
    module.add_class::<Chunk>()?;
    module.add_class::<retrieval::Clients>()?;
    module.add_class::<reductions::Centres>()?;
    module.add_class::<output::Output>()?;
    module.add_class::<ranges::Ranges>()?;
    module.add("Shut", module.py().get_type::<gates::Shut>())?;
    module.add_function(wrap_pyfunction!(mix_rows, module)?)?;
    module.add_function(wrap_pyfunction!(reductions::count_edges, module)?)?;
    module.add_function(wrap_pyfunction!(reductions::count_in_bins, module)?)?;
    module.add_function(wrap_pyfunction!(reductions::give_rank, module)?)?;
    module.add_function(wrap_pyfunction!(is_debug_build, module)?)?;
    module.add_function(wrap_pyfunction!(plan, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(workers, module)?)
}
