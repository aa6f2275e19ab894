//! The network benchmark: the shuffle's edge alone, all to all, in memory.
//!
//! ```text
//!   all_to_all   generate -> send -> receive -> discard
//! ```
//!
//! Between `send` and `receive` lies the network: what this node sends leaves the graph of another.
//! It follows Themis' NetBench. Every node runs this graph for the same time and reports what it
//! received. `generate` has no chunks for peers that a node does not send to, so bytes may flow one
//! way between two nodes, or from one node to all.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tonnage_net::{Mesh, Settings};
use tonnage_pipeline::{Graph, Node, RunHandle};
use tonnage_records::{Encoding, Generator, Layout};
use tonnage_stages::extent::aligned;
use tonnage_stages::ports::BLOCKS;
use tonnage_stages::source::{Chunk, Content, Generate};
use tonnage_stages::work::SendStats;

use crate::benches::disk::discard;
use crate::cluster::exchange::{Exchange, connect};
use crate::error::{JobError, setting_error, usage_error};
use crate::phases::{Phase, Watch, memory};

/// Buffers for each connection: one being sent, one that waits.
const BUFFERS_PER_CONNECTION: usize = 2;

/// One node's part.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The nodes.
    pub mesh: Settings,
    /// Size of a block.
    pub block_bytes: usize,
    /// The peers that it sends to; none for a node that only receives.
    pub sends_to: Vec<usize>,
    /// Whether each peer gets the same amount, as in a shuffle, so that the slowest sets the pace;
    /// else each gets as much as it accepts, which shows what this node's own link carries.
    pub evenly: bool,
    /// Seconds of sending.
    pub seconds: f64,
}

/// The results of a node.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Seconds until all nodes were connected; then all begin.
    pub meeting_seconds: f64,
    /// What each connection sent.
    pub sent: Vec<SendStats>,
    /// The run.
    pub phases: Vec<Phase>,
}

/// Runs one node's part.
///
/// # Errors
/// What is refused, what fails, or the cancellation.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let Config {
        mesh: settings,
        block_bytes,
        sends_to,
        evenly,
        seconds,
    } = config;
    if settings.number >= settings.endpoints.len() || settings.endpoints.len() < 2 {
        return Err(setting_error("endpoints", "there must be at least 2"));
    }
    let is_peer = |&to: &usize| to < settings.endpoints.len() && to != settings.number;
    if let Some(to) = sends_to.iter().find(|to| !is_peer(to)) {
        return Err(usage_error(format!(
            "sends_to: endpoint {to} is not a peer"
        )));
    }
    let duration = Duration::try_from_secs_f64(*seconds)
        .map_err(|_| setting_error("seconds", format!("{seconds} is not a duration")))?;
    let began = Instant::now();
    let mesh = connect(settings, handle)?;
    let meeting_seconds = began.elapsed().as_secs_f64();
    let (graph, wire) = all_to_all(mesh, *block_bytes, sends_to, *evenly);
    let budget = memory(graph.memory_bytes())?;
    let phase = watch.run("all_to_all", &graph, &budget, Some(duration))?;
    let (mut sent, _) = wire.take_stats();
    sent.sort_unstable_by_key(|sent| sent.peer);
    Ok(Outcome {
        meeting_seconds,
        sent,
        phases: vec![phase],
    })
}

/// The graph over the connections of a mesh.
fn all_to_all(
    mesh: Mesh,
    block_bytes: usize,
    sends_to: &[usize],
    evenly: bool,
) -> (Graph, Exchange) {
    let (lanes, record_bytes) = (mesh.outgoing.len(), Layout::SORT_BENCHMARK.record_bytes);
    let buffers = BUFFERS_PER_CONNECTION * lanes;
    // One block waits for its lane, in addition to those queued there.
    let generated = if evenly { buffers } else { buffers + 2 * lanes };
    let chunk = |number: usize| Chunk {
        number,
        offset: 0,
        len: block_bytes,
        lane: number % lanes,
        first_record: (number * block_bytes / record_bytes) as u64,
    };
    let is_sent = |number: &usize| sends_to.contains(&mesh.outgoing[number % lanes].peer());
    let generate = Generate {
        generator: Arc::new(Generator::new(Encoding::Binary, false, 0)),
        content: Content::Endless,
        chunks: Arc::new((0..buffers).filter(is_sent).map(chunk).collect()),
        gives: BLOCKS,
        record_bytes,
        workers: if evenly { 1 } else { lanes },
        lanes_apart: !evenly,
        buffers: generated,
        buffer_bytes: aligned(block_bytes),
        next: Arc::new(AtomicUsize::new(0)),
    };
    let mut wire = Exchange::new(mesh, None, record_bytes, block_bytes);
    // Room for all of its buffers: the generator waits only for one to come back.
    wire.send.inbox_bytes = BUFFERS_PER_CONNECTION * block_bytes;
    wire.receive.buffers = buffers;
    let [send, receive] = wire.nodes();
    let ends = (Node::new("generate", generate), discard(BLOCKS));
    (Graph::chain([ends.0, send, receive, ends.1]), wire)
}
