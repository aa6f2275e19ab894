//! Replicas of output files that nodes keep for each other.
//!
//! Once a node knows its output files, it tells each peer which of them that peer keeps a replica
//! of. The peer then writes the blocks it receives as if the files were its own. A replica is named
//! and logged when it is finished and durable. One whose sender is lost is never finished, and is
//! removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde::{Deserialize, Serialize};
use tonnage_net::{Head, Incoming, Mesh, Outgoing, Settings};
use tonnage_pipeline::RunHandle;
use tonnage_stages::output_file::OutputFile;

use crate::cluster::finished_log::UNFINISHED;
use crate::error::{JobError, usage_error};

/// The longest list of files that a node sends: some hundred thousand of them.
const TABLE_BYTES: usize = 16 << 20;

/// Where this node keeps replicas of other nodes' output.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replicas {
    /// The nodes.
    pub mesh: Settings,
    /// Directories for replicas, one per device; created if they do not exist.
    pub output: Vec<PathBuf>,
    /// The log of finished replicas; it may be that of the node's own files.
    pub finished: PathBuf,
}

/// The replicas that a node keeps.
#[derive(Debug, Default)]
pub struct HeldReplicas {
    /// Replicas, numbered after the node's own files.
    pub files: Vec<OutputFile>,
    /// The number of a replica, by peer and the peer's number of the file.
    pub numbers: BTreeMap<(usize, usize), usize>,
}

/// Announces a file of which a replica will be sent.
#[derive(Debug, Serialize, Deserialize)]
struct ReplicaNotice {
    number: usize,
    name: String,
    bytes: u64,
}

impl Replicas {
    /// Announces `files`, which have these names below the output, to the peers that keep them, and
    /// receives their announcements; replicas are numbered after these files. Nothing is kept for a
    /// lost peer.
    ///
    /// # Errors
    /// When a directory cannot be created.
    pub fn exchange(
        &self,
        mesh: &mut Mesh,
        files: &[(OutputFile, String)],
        keepers: &[Option<usize>],
        handle: &RunHandle,
    ) -> Result<HeldReplicas, JobError> {
        let (here, endpoints) = (self.mesh.number, self.mesh.endpoints.len());
        if let Some(keeper) = keepers
            .iter()
            .flatten()
            .find(|&&keeper| keeper == here || keeper >= endpoints)
        {
            return Err(usage_error(format!(
                "endpoint {keeper} cannot keep replicas of endpoint {here}; use another of the {endpoints} endpoints"
            )));
        }
        if self.output.is_empty() {
            return Err(usage_error(
                "there is no directory for replicas; specify at least one".to_owned(),
            ));
        }
        for directory in &self.output {
            make(directory).map_err(|why| JobError::file("create", directory, &why))?;
        }
        let notices = Mutex::new(BTreeMap::new());
        thread::scope(|scope| {
            for connection in &mut mesh.outgoing {
                let table = notices_for(files, keepers, connection.peer());
                scope.spawn(move || send_notices(connection, &table, handle));
            }
            for connection in &mut mesh.incoming {
                let notices = &notices;
                scope.spawn(move || {
                    if let Some(table) = receive_notices(connection, handle) {
                        let mut notices = notices.lock().unwrap_or_else(PoisonError::into_inner);
                        notices.insert(connection.peer(), table); // all of a peer's connections say the same
                    }
                });
            }
        });
        let notices = notices.into_inner().unwrap_or_else(PoisonError::into_inner);
        let held = self.held_replicas(notices, files.len());
        for folder in self.folders_of(&held.files) {
            make(folder).map_err(|why| JobError::file("create", folder, &why))?;
        }
        Ok(held)
    }

    /// The folders that files are in below the directories, each before those in it.
    fn folders_of<'f>(&self, files: &'f [OutputFile]) -> BTreeSet<&'f Path> {
        let is_below = |folder: &&Path| !self.output.iter().any(|directory| directory == folder);
        let files = files.iter();
        files
            .flat_map(|file| file.path.ancestors().skip(1).take_while(is_below))
            .collect()
    }

    fn held_replicas(
        &self,
        notices: BTreeMap<usize, Vec<ReplicaNotice>>,
        own: usize,
    ) -> HeldReplicas {
        let mut held = HeldReplicas::default();
        // A file's number determines the device that writes it.
        let devices = self.output.len();
        let mut directories = self.output.iter().cycle().skip(own % devices);
        for (peer, table) in notices {
            for file in table {
                let directory = directories.next().expect("it goes around");
                let number = own + held.files.len();
                held.numbers.insert((peer, file.number), number);
                held.files.push(OutputFile {
                    path: directory.join(format!("{}.{UNFINISHED}", file.name)),
                    bytes: file.bytes,
                });
            }
        }
        held
    }
}

/// Creates a directory durably.
fn make(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    match directory.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// The files that a peer keeps.
fn notices_for(
    files: &[(OutputFile, String)],
    keepers: &[Option<usize>],
    peer: usize,
) -> Vec<ReplicaNotice> {
    let of_peer = files.iter().zip(keepers).enumerate();
    let of_peer = of_peer.filter(|(_, (_, keeper))| **keeper == Some(peer));
    let notice = |(number, ((file, name), _)): (usize, (&(OutputFile, String), _))| ReplicaNotice {
        number,
        name: name.clone(),
        bytes: file.bytes,
    };
    of_peer.map(notice).collect()
}

/// A connection that fails here fails again where blocks are sent, and is reported there.
fn send_notices(connection: &mut Outgoing, table: &[ReplicaNotice], handle: &RunHandle) {
    let text = serde_json::to_vec(table).expect("it is JSON");
    let head = Head {
        len: u32::try_from(text.len()).unwrap_or(u32::MAX),
        ..Head::default()
    };
    let _again = connection.send(head, &text, || handle.is_cancelled());
}

fn receive_notices(connection: &mut Incoming, handle: &RunHandle) -> Option<Vec<ReplicaNotice>> {
    let mut text = vec![0; TABLE_BYTES];
    let head = connection
        .receive(&mut text, || handle.is_cancelled())
        .ok()??;
    let table: Vec<ReplicaNotice> = serde_json::from_slice(&text[..head.len as usize]).ok()?;
    // Nothing but names, so that it stays in its directory.
    let stays = |notice: &ReplicaNotice| {
        let mut parts = Path::new(&notice.name).components();
        !notice.name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
    };
    table.iter().all(stays).then_some(table)
}
