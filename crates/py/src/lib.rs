//! The Python bindings of the core: conversion only.
//!
//! A job is started with a configuration in JSON and runs on its own thread without the GIL. Its
//! handle polls and cancels it, and returns its outcome as JSON. The `Config` and `Outcome` of the
//! graph declare the JSON; `_core.pyi` types it.

use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pyo3::PyClass;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tonnage_disk::Disk;
use tonnage_graphs::error::JobError;
use tonnage_graphs::objects::{object_input, object_prefix, object_upload};
use tonnage_graphs::phases;
use tonnage_graphs::sort::{gensort, sort_job, valsort};
use tonnage_graphs::tables::{csv_beginning, table_sort, text_beginning};
use tonnage_graphs::{Plan, Shape, benches, cluster, hash, map_reduce, reduce};
use tonnage_pipeline::RunHandle;

use crate::errors::raised;
use crate::host_queues::{HostInput, HostOutput};
use crate::retrieval::{Chunk, Retrieval};

mod errors;
mod host_queues;
mod output;
mod ranges;
mod reductions;
mod retrieval;

type JobResult = Result<String, JobError>;

/// A running job.
#[pyclass(frozen, module = "tonnage._core")]
struct Job {
    handle: RunHandle,
    thread: Mutex<Option<JoinHandle<JobResult>>>,
    ended: Mutex<mpsc::Receiver<()>>,
}

#[pymethods]
impl Job {
    /// Starts the job `name` with a configuration in JSON, and with the queue that it needs if it
    /// exchanges data with Python while it runs.
    #[new]
    #[pyo3(signature = (name, config, gate=None))]
    fn new(name: &str, config: &str, gate: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let handle = RunHandle::default();
        let (thread, ended) = match name {
            "map_reduce_pass_one" => {
                let queue = queue_of::<HostInput>(name, gate)?.get().queue();
                let job =
                    move |config: &_, handle: &_| map_reduce::pass_one::run(config, &queue, handle);
                start(config, job, &handle)
            }
            "map_reduce_pass_two" => {
                let queue = queue_of::<HostOutput>(name, gate)?.get().queue();
                let job =
                    move |config: &_, handle: &_| map_reduce::pass_two::run(config, &queue, handle);
                start(config, job, &handle)
            }
            "retrieval" => {
                let ends = queue_of::<Retrieval>(name, gate)?.get().ends();
                let job =
                    move |config: &_, handle: &_| reduce::retrieval::run(config, &ends, handle);
                start(config, job, &handle)
            }
            "sort" => start(config, sort_job::run, &handle),
            "text_beginning" => start(config, text_beginning::run, &handle),
            "csv_beginning" => start(config, csv_beginning::run, &handle),
            "table_sort" => start(config, table_sort::run, &handle),
            "disk_bench" => start(config, benches::disk::run, &handle),
            "cpu_bench" => start(config, benches::cpu::run, &handle),
            "net_bench" => start(config, benches::net::run, &handle),
            "object_bench" => start(config, benches::object::run, &handle),
            "object_find" => start(config, object_input::run, &handle),
            "folder_list" => start(config, object_prefix::list, &handle),
            "folder_put" => start(config, object_prefix::put, &handle),
            "folder_clear" => start(config, object_prefix::clear, &handle),
            "upload" => start(config, object_upload::run, &handle),
            "object_remove" => start(config, benches::object::remove, &handle),
            "ops_bench" => start(config, benches::random_io::run, &handle),
            "fleet_sample" => start(config, cluster::sample::run, &handle),
            "fleet_boundaries" => start(config, cluster::boundaries::run, &handle),
            "fleet_pass_one" => start(config, cluster::pass_one::run, &handle),
            "fleet_pass_two" => start(config, cluster::pass_two::run, &handle),
            "fleet_copy" => start(config, cluster::re_replicate::run, &handle),
            "fleet_table_schema" => start(config, cluster::tables::schema::run, &handle),
            "fleet_table_reading" => start(config, cluster::tables::schema::run_common, &handle),
            "fleet_table_quotes" => start(config, cluster::tables::quotes::run, &handle),
            "fleet_table_sample" => start(config, cluster::tables::sample::run, &handle),
            "fleet_table_boundaries" => start(config, cluster::tables::boundaries::run, &handle),
            "fleet_table_pass_one" => start(config, cluster::tables::pass_one::run, &handle),
            "fleet_table_pass_two" => start(config, cluster::tables::pass_two::run, &handle),
            "gensort" => start(config, gensort::run, &handle),
            "valsort" => start(config, valsort::run, &handle),
            _ => Err(PyValueError::new_err(format!(
                "there is no job named {name}"
            ))),
        }?;
        Ok(Self {
            handle,
            thread: Mutex::new(Some(thread)),
            ended: Mutex::new(ended),
        })
    }

    /// Bytes that the last stages have processed so far.
    fn done_bytes(&self) -> u64 {
        self.handle.done_bytes()
    }

    /// Waits at most so long for the job's end; returns whether it has ended.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let most = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        py.detach(|| {
            let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.recv_timeout(most) != Err(mpsc::RecvTimeoutError::Timeout)
        })
    }

    /// Asks the job to end; `result` then raises `Cancelled`.
    fn cancel(&self) {
        self.handle.cancel();
    }

    /// Waits for the end and returns the outcome in JSON; once only.
    fn result(&self, py: Python<'_>) -> PyResult<String> {
        let Some(thread) = self.lock().take() else {
            return Err(PyRuntimeError::new_err("the result was already returned"));
        };
        let ending = py.detach(|| thread.join());
        ending
            .map_err(|_| PyRuntimeError::new_err("the core panicked; see above"))?
            .map_err(raised)
    }
}

impl Job {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<JobResult>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job that nobody holds any more is cancelled and has ended, and cleaned up: Python loses a job
/// if a signal comes just after it was started.
impl Drop for Job {
    fn drop(&mut self) {
        let Some(thread) = self.lock().take() else {
            return;
        };
        self.handle.cancel();
        let end = || {
            let _ = thread.join(); // nobody asks for the outcome
        };
        // Without the GIL, for which the job might wait; there is none when the interpreter ends.
        let mut end = Some(end);
        let attached = Python::try_attach(|py| end.take().map(|end| py.detach(end)));
        if attached.is_none()
            && let Some(end) = end
        {
            end();
        }
    }
}

/// The queue of a job that needs one.
fn queue_of<'a, 'py, G: PyClass>(
    name: &str,
    queue: Option<&'a Bound<'py, PyAny>>,
) -> PyResult<&'a Bound<'py, G>> {
    let queue = queue.ok_or_else(|| PyValueError::new_err(format!("{name} needs a queue")))?;
    Ok(queue.cast::<G>()?)
}

fn start<C, O>(
    config: &str,
    job: impl FnOnce(&C, &RunHandle) -> Result<O, JobError> + Send + 'static,
    handle: &RunHandle,
) -> PyResult<(JoinHandle<JobResult>, mpsc::Receiver<()>)>
where
    C: DeserializeOwned + Send + 'static,
    O: Serialize + 'static,
{
    let config: C = serde_json::from_str(config)
        .map_err(|why| PyValueError::new_err(format!("the configuration: {why}")))?;
    let handle = handle.clone();
    let (end, ended) = mpsc::channel::<()>();
    let run = move || {
        let _end = end; // dropped when the job has ended, which ends `ended`
        let outcome = job(&config, &handle)?;
        serde_json::to_string(&outcome).map_err(|why| JobError::failure(why.to_string()))
    };
    let thread = thread::Builder::new().name("tonnage job".into());
    let thread = thread
        .spawn(run)
        .map_err(|why| PyRuntimeError::new_err(format!("cannot start the job: {why}")))?;
    Ok((thread, ended))
}

/// Whether this is a debug build, whose speed means nothing.
#[pyfunction]
fn is_debug_build() -> bool {
    cfg!(debug_assertions)
}

/// Divides memory for a sort: a `Shape` in JSON to a `Plan` in JSON.
#[pyfunction]
fn plan(shape: &str) -> PyResult<String> {
    let shape: Shape = serde_json::from_str(shape)
        .map_err(|why| PyValueError::new_err(format!("the shape: {why}")))?;
    let plan = Plan::new(&shape, &Disk::default()).map_err(raised)?;
    serde_json::to_string(&plan).map_err(|why| PyRuntimeError::new_err(why.to_string()))
}

/// Mixes one value of each row into the row's hash; row i has the bytes `offsets[i]` to
/// `offsets[i + 1]`. All are 64-bit numbers in native byte order.
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
    mixed
        .ok_or_else(|| PyValueError::new_err("the offsets do not match the rows and their data"))?;
    let bytes: Vec<u8> = hashes.into_iter().flat_map(u64::to_ne_bytes).collect();
    Ok(PyBytes::new(py, &bytes))
}

/// The core's version.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Threads of a job's work stages: the cores that this process may use.
#[pyfunction]
fn workers() -> usize {
    phases::workers()
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Job>()?;
    module.add_class::<HostInput>()?;
    module.add_class::<HostOutput>()?;
    module.add_class::<Retrieval>()?;
    module.add_class::<Chunk>()?;
    module.add_class::<retrieval::Clients>()?;
    module.add_class::<reductions::Centres>()?;
    module.add_class::<output::Output>()?;
    module.add_class::<ranges::Ranges>()?;
    module.add(
        "GateClosed",
        module.py().get_type::<host_queues::GateClosed>(),
    )?;
    module.add_function(wrap_pyfunction!(mix_rows, module)?)?;
    module.add_function(wrap_pyfunction!(reductions::count_edges, module)?)?;
    module.add_function(wrap_pyfunction!(reductions::count_in_bins, module)?)?;
    module.add_function(wrap_pyfunction!(reductions::give_rank, module)?)?;
    module.add_function(wrap_pyfunction!(is_debug_build, module)?)?;
    module.add_function(wrap_pyfunction!(plan, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(workers, module)?)
}
