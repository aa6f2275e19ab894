//! Copies of output that endpoints keep for each other.
//!
//! When an endpoint knows its output files, it tells each peer of those that this one is to keep a
//! copy of; what is sent then is as if the peer wrote files of its own. A copy is named and listed
//! when it is whole and durable. One whose sender is lost is never whole, and is removed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde::{Deserialize, Serialize};
use tonnage_net::{Head, Incoming, Mesh, Outgoing, Settings};
use tonnage_pipeline::Control;
use tonnage_stages::sink::OutputFile;

use crate::fleet::list::UNFINISHED;
use crate::job::JobError;

/// The most that an endpoint has to say of its files: some hundred thousand of them.
const TABLE_BYTES: usize = 16 << 20;

/// Where copies of others' output are kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copies {
    /// Who takes part.
    pub mesh: Settings,
    /// Directories for the copies, one a device; made if they are not there.
    pub output: Vec<PathBuf>,
    /// The list of copies that are whole; it may be that of the endpoint's own files.
    pub finished: PathBuf,
}

/// What an endpoint keeps.
#[derive(Debug, Default)]
pub struct Kept {
    /// Copies, as files that come after its own.
    pub files: Vec<OutputFile>,
    /// By peer, and by that one's number of a file, the number of the copy.
    pub numbers: BTreeMap<(usize, usize), usize>,
}

/// A file of which a copy will come.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    number: usize,
    name: String,
    bytes: u64,
}

impl Copies {
    /// Tells every peer which of `files` it is to keep, and hears of theirs; copies get numbers
    /// after these files. Of a peer that is lost nothing is kept.
    ///
    /// # Errors
    /// When a directory cannot be made.
    pub fn exchange(
        &self,
        mesh: &mut Mesh,
        files: &[OutputFile],
        keepers: &[Option<usize>],
        control: &Control,
    ) -> Result<Kept, JobError> {
        let (here, endpoints) = (self.mesh.number, self.mesh.endpoints.len());
        if let Some(keeper) = keepers
            .iter()
            .flatten()
            .find(|&&keeper| keeper == here || keeper >= endpoints)
        {
            return Err(JobError::Refused(format!(
                "endpoint {keeper} is to keep a copy: give another one than {here} of {endpoints}"
            )));
        }
        if self.output.is_empty() {
            return Err(JobError::Refused(
                "copies are kept nowhere: give a directory at least".to_owned(),
            ));
        }
        for directory in &self.output {
            make(directory).map_err(|why| JobError::file("making", directory, &why))?;
        }
        let heard = Mutex::new(BTreeMap::new());
        thread::scope(|scope| {
            for link in &mut mesh.outgoing {
                let table = told(files, keepers, link.peer());
                scope.spawn(move || tell(link, &table, control));
            }
            for link in &mut mesh.incoming {
                let heard = &heard;
                scope.spawn(move || {
                    if let Some(table) = hear(link, control) {
                        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                        heard.insert(link.peer(), table); // all of a peer's connections say the same
                    }
                });
            }
        });
        let heard = heard.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(self.kept(heard, files.len()))
    }

    fn kept(&self, heard: BTreeMap<usize, Vec<Told>>, own: usize) -> Kept {
        let mut kept = Kept::default();
        // A file's number says which device writes it.
        let devices = self.output.len();
        let mut directories = self.output.iter().cycle().skip(own % devices);
        for (peer, table) in heard {
            for file in table {
                let directory = directories.next().expect("it goes around");
                let number = own + kept.files.len();
                kept.numbers.insert((peer, file.number), number);
                kept.files.push(OutputFile {
                    path: directory.join(format!("{}.{UNFINISHED}", file.name)),
                    bytes: file.bytes,
                });
            }
        }
        kept
    }
}

/// Makes a directory that is still there after a loss of power.
fn make(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    match directory.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// What a peer is to keep.
fn told(files: &[OutputFile], keepers: &[Option<usize>], peer: usize) -> Vec<Told> {
    let of_peer = files.iter().zip(keepers).enumerate();
    let of_peer = of_peer.filter(|(_, (_, keeper))| **keeper == Some(peer));
    of_peer
        .filter_map(|(number, (file, _))| {
            let name = file.path.file_name()?.to_str()?;
            // While pass two writes it, it is called so.
            let whole = name.strip_suffix(UNFINISHED);
            let whole = whole.and_then(|name| name.strip_suffix('.'));
            Some(Told {
                number,
                name: whole.unwrap_or(name).to_owned(),
                bytes: file.bytes,
            })
        })
        .collect()
}

/// A connection that fails here fails again where blocks are sent, and says so there.
fn tell(link: &mut Outgoing, table: &[Told], control: &Control) {
    let text = serde_json::to_vec(table).expect("it is JSON");
    let head = Head {
        len: u32::try_from(text.len()).unwrap_or(u32::MAX),
        ..Head::default()
    };
    let _again = link.send(head, &text, || control.is_cancelled());
}

fn hear(link: &mut Incoming, control: &Control) -> Option<Vec<Told>> {
    let mut text = vec![0; TABLE_BYTES];
    let head = link.receive(&mut text, || control.is_cancelled()).ok()??;
    let table: Vec<Told> = serde_json::from_slice(&text[..head.len as usize]).ok()?;
    // A name, and no path: it stays in its directory.
    let is_name = |told: &Told| Path::new(&told.name).file_name() == Some(OsStr::new(&told.name));
    table.iter().all(is_name).then_some(table)
}
