//! Atomic outputs: complete or absent.
//!
//! Parts are written to a hidden directory next to their final place, on the same device. A part's
//! final place may be in folders, which are made when it is published. Once all are durable and the totals agree, a list of the parts is written there, the parts are renamed to
//! their final names, and the manifest follows last. If a job ends before that, its hidden
//! directories are removed. If it was killed, the next job there finds them unlocked, and removes
//! them and the parts that were renamed already. A running job holds a lock.
#![allow(unsafe_code)] // One call: flock.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::{JobError, setting_error, usage_error};
use crate::free_space::make_writable;
use crate::output::manifest::{MANIFEST, Manifest, part_name};

/// Prefix of hidden directories.
pub const STAGING_PREFIX: &str = ".tonnage-unfinished-";
/// The list of parts in a hidden directory that is about to be published.
const PARTS: &str = "parts.json";

/// The outputs of a job, one directory per device.
#[derive(Debug)]
pub struct AtomicOutput {
    places: Vec<StagingDirectory>,
    suffix: String,
}

#[derive(Debug)]
struct StagingDirectory {
    directory: PathBuf,
    hidden: PathBuf,
    made_directory: bool,
    _lock: File,
}

impl AtomicOutput {
    /// Prepares `directories`: removes what killed jobs left, refuses what would be overwritten.
    /// Names of parts end in `suffix`.
    ///
    /// # Errors
    /// When a directory cannot be used.
    pub fn prepare(directories: &[PathBuf], suffix: &str) -> Result<Self, JobError> {
        let places = directories
            .iter()
            .map(|directory| StagingDirectory::prepare(directory));
        Ok(Self {
            places: places.collect::<Result<_, _>>()?,
            suffix: suffix.to_owned(),
        })
    }

    /// Where part `number` is written until it is published; parts alternate between directories.
    #[must_use]
    pub fn part(&self, number: usize) -> PathBuf {
        self.places[number % self.places.len()]
            .hidden
            .join(self.name(number))
    }

    /// The same as a function of the number.
    pub fn part_path(&self) -> impl Fn(usize) -> PathBuf + Send + Sync + use<> {
        let hidden: Vec<PathBuf> = self.places.iter().map(|each| each.hidden.clone()).collect();
        let suffix = self.suffix.clone();
        move |number| hidden[number % hidden.len()].join(format!("{}{suffix}", part_name(number)))
    }

    /// The names of parts 0 to `parts`.
    #[must_use]
    pub fn names(&self, parts: usize) -> Vec<String> {
        (0..parts).map(|number| self.name(number)).collect()
    }

    fn name(&self, number: usize) -> String {
        format!("{}{}", part_name(number), self.suffix)
    }

    /// Publishes the parts by these names, by their numbers, then the manifest.
    ///
    /// # Errors
    /// When a part cannot be renamed; then those that were are withdrawn from every directory.
    pub fn publish(self, names: &[String], manifest: &Manifest) -> Result<(), JobError> {
        let count = self.places.len();
        let of_lane = |lane| names.iter().enumerate().skip(lane).step_by(count);
        for (lane, place) in self.places.iter().enumerate() {
            let names: Vec<&String> = of_lane(lane).map(|(_, name)| name).collect();
            place
                .list(&names)
                .map_err(|why| place.publish_error(&why))?;
        }
        for (lane, place) in self.places.iter().enumerate() {
            let parts = of_lane(lane).map(|(number, name)| (self.part(number), name.as_str()));
            place
                .publish(parts.collect())
                .map_err(|why| place.publish_error(&why))?;
        }
        for place in &self.places {
            if let Err(why) = place.write_manifest(manifest) {
                // All or nothing: withdraw the other directories, too.
                for place in &self.places {
                    let _not_there = fs::remove_file(place.directory.join(MANIFEST));
                }
                return Err(place.publish_error(&why));
            }
        }
        for place in &self.places {
            // From here on the directories are complete and nothing may be withdrawn.
            let _goes_with_its_directory = fs::remove_file(place.hidden.join(PARTS));
        }
        Ok(())
    }
}

impl StagingDirectory {
    fn prepare(directory: &Path) -> Result<Self, JobError> {
        let show = directory.display();
        let refuse = |why: io::Error| setting_error("output", format!("{show}: {why}"));
        let made_directory = !directory.exists();
        make_writable("output", directory)?;
        clean(directory).map_err(refuse)?;
        let entries = fs::read_dir(directory).map_err(refuse)?;
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        let names: Vec<String> = entries
            .map(name)
            .collect::<io::Result<_>>()
            .map_err(refuse)?;
        // First, since a running job may be about to publish its parts: nobody should remove those.
        if names.iter().any(|name| name.starts_with(STAGING_PREFIX)) {
            return Err(setting_error(
                "output",
                format!("another job is writing to {show}; wait for it, or use another directory"),
            ));
        }
        let is_output =
            |name: &&String| name.starts_with("part-") || name.contains('=') || *name == MANIFEST;
        if let Some(name) = names.iter().filter(is_output).min() {
            return Err(setting_error(
                "output",
                format!(
                    "{show} contains an earlier output ({name} and others); use an empty \
                     directory, or remove that output"
                ),
            ));
        }
        let hidden = directory.join(format!("{STAGING_PREFIX}{}", std::process::id()));
        let begins = || {
            setting_error(
                "output",
                format!(
                    "another job is starting to write to {show}; wait for it, or use another \
                     directory"
                ),
            )
        };
        match fs::create_dir(&hidden) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => return Err(begins()),
            made => made.map_err(refuse)?,
        }
        // Until it is locked another starting job may take it for a killed job's and remove it.
        // This job does not wait for that one, which may be about to write here.
        let Some(lock) = lock(&hidden).map_err(refuse)? else {
            return Err(begins());
        };
        let place = Self {
            directory: directory.to_owned(),
            hidden,
            made_directory,
            _lock: lock,
        };
        // Two jobs that looked at the same moment saw nobody: now each sees the other.
        if count_staging(directory, Some(&place.hidden)).map_err(refuse)? > 0 {
            return Err(begins());
        }
        Ok(place)
    }

    fn list(&self, names: &[&String]) -> io::Result<()> {
        let mut list = File::create(self.hidden.join(PARTS))?;
        list.write_all(&serde_json::to_vec(names)?)?;
        list.sync_all()?;
        File::open(&self.hidden)?.sync_all()
    }

    /// Moves parts to their names, in folders that are made for them.
    fn publish(&self, parts: Vec<(PathBuf, &str)>) -> io::Result<()> {
        let folders = folders_of(parts.iter().map(|(_, name)| *name));
        for folder in &folders {
            fs::create_dir(self.directory.join(folder))?;
        }
        for (part, name) in parts {
            fs::rename(part, self.directory.join(name))?;
        }
        // Before the manifest, which says that they are there.
        for folder in &folders {
            File::open(self.directory.join(folder))?.sync_all()?;
        }
        Ok(())
    }

    fn write_manifest(&self, manifest: &Manifest) -> io::Result<()> {
        let unnamed = self.hidden.join(MANIFEST);
        let mut file = File::create(&unnamed)?;
        file.write_all(&serde_json::to_vec_pretty(manifest)?)?;
        file.sync_all()?;
        fs::rename(&unnamed, self.directory.join(MANIFEST))?;
        File::open(&self.directory)?.sync_all()
    }

    fn publish_error(&self, why: &io::Error) -> JobError {
        JobError::file("publish the output in", &self.directory, why)
    }
}

impl Drop for StagingDirectory {
    fn drop(&mut self) {
        // Nobody is left to report a failure to; the next job removes what stays.
        let _stays = remove_unfinished(&self.directory, &self.hidden);
        if self.made_directory {
            let _not_empty = fs::remove_dir(&self.directory);
        }
    }
}

/// Removes what killed jobs left in `directory`: hidden directories without a lock.
///
/// # Errors
/// When something cannot be removed.
pub fn clean(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with(STAGING_PREFIX)
        {
            let hidden = entry.path();
            // Held until the directory is removed.
            if let Some(_lock) = lock(&hidden)? {
                remove_unfinished(directory, &hidden)?;
            }
        }
    }
    Ok(())
}

/// Refuses `directory` as an input if its output is not finished, or if parts of it are in none of
/// the directories `all`.
///
/// # Errors
/// What is missing.
pub fn check_finished(directory: &Path, all: &[PathBuf]) -> Result<(), JobError> {
    let show = directory.display();
    if count_staging(directory, None).is_ok_and(|others| others > 0) {
        return Err(usage_error(format!(
            "{show} contains unfinished output; wait for its job, or run the job again"
        )));
    }
    let name = directory.join(MANIFEST);
    // Before it is opened: opening a pipe waits for its writer.
    if fs::metadata(&name).is_ok_and(|about| !about.is_file()) {
        let show = name.display();
        return Err(usage_error(format!(
            "{show} is not a regular file; remove it"
        )));
    }
    let bytes = match fs::read(&name) {
        Ok(bytes) => bytes,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(usage_error(format!("{}: {why}", name.display()))),
    };
    for part in Manifest::read(&name.display().to_string(), &bytes)?.parts {
        if !all.iter().any(|directory| directory.join(&part).is_file()) {
            return Err(usage_error(format!(
                "{show} is an incomplete output: {part} is missing; specify all \
                 directories that the output was written to"
            )));
        }
    }
    Ok(())
}

/// Number of hidden directories in `directory`, except `own`.
fn count_staging(directory: &Path, own: Option<&Path>) -> io::Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let hidden = entry
            .file_name()
            .to_string_lossy()
            .starts_with(STAGING_PREFIX);
        count += usize::from(hidden && Some(entry.path().as_path()) != own);
    }
    Ok(count)
}

/// The folders of files with these names, each before those in it.
fn folders_of<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a Path> {
    let folders = names.flat_map(|name| Path::new(name).ancestors().skip(1));
    folders.filter(|folder| *folder != Path::new("")).collect()
}

fn remove_unfinished(directory: &Path, hidden: &Path) -> io::Result<()> {
    let listed = fs::read(hidden.join(PARTS)).ok();
    if let Some(names) = listed.and_then(|list| serde_json::from_slice::<Vec<String>>(&list).ok()) {
        // Killed, or failed, while publishing: without a manifest, so withdraw the parts.
        if !directory.join(MANIFEST).is_file() {
            for name in &names {
                match fs::remove_file(directory.join(name)) {
                    Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
                    _ => {}
                }
            }
            for folder in folders_of(names.iter().map(String::as_str)).iter().rev() {
                let _not_there = fs::remove_dir(directory.join(folder));
            }
        }
    }
    match fs::remove_dir_all(hidden) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why),
        _ => Ok(()),
    }
}

/// Locks `hidden`; `None` if another job holds the lock, or if it is gone.
fn lock(hidden: &Path) -> io::Result<Option<File>> {
    let Some(file) = if_there(File::open(hidden))? else {
        return Ok(None);
    };
    // SAFETY: the descriptor is open as long as `file` is; flock touches no memory.
    while unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        let why = io::Error::last_os_error();
        match why.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => return Ok(None),
            _ => return Err(why),
        }
    }
    // The previous owner may have removed it, and another of the same name may exist by now.
    let (locked, named) = (file.metadata()?, if_there(fs::metadata(hidden))?);
    Ok(named
        .is_some_and(|named| named.ino() == locked.ino())
        .then_some(file))
}

fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}
