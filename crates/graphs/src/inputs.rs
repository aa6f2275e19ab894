//! The input of a job: files with their sizes and devices, and objects; refused early if it cannot
//! be used.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use tonnage_object::Settings;
use tonnage_stages::extent::{ALIGNMENT, Extent, FileRef, Object, Piece};
use tonnage_stages::object::access::ObjectAccess;
use tonnage_stages::output_file::OutputFile;

use crate::error::{JobError, usage_error};
use crate::objects::object_input::{self, ObjectStorage, ObjectUrl};
use crate::output::atomic_output;
use crate::output::manifest::MANIFEST;

/// A part of an input file or object: how a cluster divides the input among its nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Split {
    /// A part of a file.
    File {
        /// The file.
        path: PathBuf,
        /// Where it begins, at a record.
        offset: u64,
        /// Its length, in whole records.
        bytes: u64,
    },
    /// A part of an object.
    Object {
        /// The bucket.
        store: Box<Settings>,
        /// Its name there.
        key: String,
        /// Its ETag when the input was listed; another ETag is an error.
        #[serde(default)]
        etag: Option<String>,
        /// Where it begins, at a record.
        offset: u64,
        /// Its length, in whole records.
        bytes: u64,
        /// That of the whole object, if this may be a part of it.
        #[serde(default)]
        object_bytes: Option<u64>,
    },
}

/// An input file or object, or a part of one.
#[derive(Clone, Debug)]
pub struct Input {
    /// Where it is.
    pub file: FileRef,
    /// Where it begins.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// The length of the whole file, if this is a part of one.
    pub file_bytes: u64,
    /// The file's number among all files of a job, if this is not known from the others.
    pub file_number: Option<u64>,
    /// Its device; `None` for an object.
    pub device: Option<u64>,
}

/// Rows of a file, or bytes of a text file, that can be numbered in order behind the file's number.
pub const NUMBERED: u64 = 1 << 40;

/// The number of the first row, or byte, of the file with this number, where not all files are
/// known here.
pub fn first_of_file(file_number: u64) -> u64 {
    file_number.saturating_mul(NUMBERED)
}

/// Finds the input: files, all files in directories, and the objects of URLs. Hidden files (`.x`
/// and `_x`, as in Hadoop) are left out.
///
/// Files of directories are sorted by name over all directories, so that parts written to several
/// devices are one sequence.
pub fn find(
    paths: &[PathBuf],
    record_bytes: usize,
    storage: &ObjectStorage,
    requests: &ObjectAccess,
) -> Result<Vec<Input>, JobError> {
    let (mut files, mut urls) = (Vec::new(), Vec::new());
    for path in paths {
        match ObjectUrl::of(path) {
            Some(url) => urls.push(url),
            None => files.push(path.clone()),
        }
    }
    let mut found = in_files(&files, record_bytes)?;
    for url in urls {
        // The command has listed them before, and named what cannot be read.
        for (object, bytes) in object_input::find(&url, storage, requests, &mut Vec::new())? {
            let input = of_object(object, 0, bytes);
            check_records(&input, record_bytes)?;
            found.push(input);
        }
    }
    Ok(found)
}

fn in_files(paths: &[PathBuf], record_bytes: usize) -> Result<Vec<Input>, JobError> {
    let mut named = Vec::new();
    let mut in_directories = Vec::new();
    for path in paths {
        let unreadable = |why: std::io::Error| {
            usage_error(format!(
                "input {}: {why}; use the path of a file or a directory",
                path.display()
            ))
        };
        if fs::metadata(path).map_err(unreadable)?.is_dir() {
            let before = in_directories.len();
            for entry in fs::read_dir(path).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                let name = entry.file_name();
                if !matches!(name.as_encoded_bytes().first(), Some(b'.' | b'_')) {
                    in_directories.push(entry.path());
                }
            }
            atomic_output::check_finished(path, paths)?;
            let of_an_output = path.join(MANIFEST).is_file(); // It may have got no part.
            if in_directories.len() == before && !of_an_output {
                // A mistyped directory must not pass for an empty input.
                return Err(usage_error(format!(
                    "input {}: the directory contains no input files (names that begin with . or _ \
                     are ignored)",
                    path.display()
                )));
            }
        } else {
            named.push(path.clone());
        }
    }
    in_directories.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    named.extend(in_directories);
    named
        .iter()
        .map(|path| look_at(path, record_bytes))
        .collect()
}

fn look_at(path: &Path, record_bytes: usize) -> Result<Input, JobError> {
    let show = path.display();
    let refuse = |why: std::io::Error| usage_error(format!("input {show}: {why}"));
    let about = fs::metadata(path).map_err(refuse)?;
    // Before it is opened: opening a pipe waits for its writer.
    if !about.is_file() {
        return Err(usage_error(format!(
            "input {show} is not a regular file; use regular files, or directories that contain only \
             regular files"
        )));
    }
    fs::File::open(path).map_err(refuse)?;
    let input = Input {
        file: FileRef::Path(path.into()),
        offset: 0,
        bytes: about.len(),
        file_bytes: about.len(),
        file_number: None,
        device: Some(about.dev()),
    };
    check_records(&input, record_bytes)?;
    Ok(input)
}

fn of_object(object: Arc<Object>, offset: u64, bytes: u64) -> Input {
    Input {
        file: FileRef::Object(object),
        offset,
        bytes,
        file_bytes: offset + bytes,
        file_number: None,
        device: None,
    }
}

/// Refuses what is not whole records.
fn check_records(input: &Input, record_bytes: usize) -> Result<(), JobError> {
    let (show, bytes) = (input.file.name(), input.bytes);
    let rest = bytes % record_bytes as u64;
    if rest != 0 {
        return Err(usage_error(format!(
            "input {}: its size ({bytes} bytes) is not a multiple of the record size ({record_bytes}): \
             {rest} extra bytes at offset {}. Truncate the file there, or set another record size",
            show.display(),
            bytes - rest
        )));
    }
    Ok(())
}

/// Checks splits; refused if a file is missing or was truncated. Objects are not checked: where
/// they are small, a request for each would cost as much as reading it.
pub fn splits(splits: &[Split], record_bytes: usize) -> Result<Vec<Input>, JobError> {
    let mut stores: Vec<Arc<Settings>> = Vec::new();
    let mut look_at = |split: &Split| match split {
        Split::File {
            path,
            offset,
            bytes,
        } => {
            let (whole, end) = (look_at(path, record_bytes)?, offset + bytes);
            if whole.bytes < end {
                return Err(usage_error(format!(
                    "input {} was truncated: it has {} bytes, but the job needs {end}",
                    path.display(),
                    whole.bytes
                )));
            }
            Ok(Input {
                offset: *offset,
                bytes: *bytes,
                ..whole
            })
        }
        Split::Object {
            store,
            key,
            etag,
            offset,
            bytes,
            object_bytes,
        } => {
            let known = stores.iter().position(|known| **known == **store);
            let place = known.unwrap_or_else(|| {
                stores.push(Arc::new((**store).clone()));
                stores.len() - 1
            });
            let object = Object {
                store: Arc::clone(&stores[place]),
                key: key.clone(),
                etag: etag.clone(),
            };
            let part = of_object(Arc::new(object), *offset, *bytes);
            Ok(Input {
                file_bytes: object_bytes.unwrap_or(part.file_bytes),
                ..part
            })
        }
    };
    splits.iter().map(&mut look_at).collect()
}

/// Number of workers that read the inputs: one per device, and one per concurrent request if any
/// input is an object.
pub fn readers(inputs: &[Input], requests: &ObjectAccess) -> usize {
    let mut devices: Vec<Option<u64>> = inputs.iter().map(|input| input.device).collect();
    devices.sort_unstable();
    devices.dedup();
    let of = |device: &Option<u64>| device.map_or(requests.requests, |_| 1);
    devices.iter().map(of).sum::<usize>().max(1)
}

/// Whether any input is an object.
pub fn has_objects(inputs: &[Input]) -> bool {
    inputs.iter().any(|input| input.device.is_none())
}

/// Divides the inputs into extents of at most `extent_bytes`: whole records, aligned where the
/// record size allows; one lane per device, and one for all objects.
pub fn extents(
    inputs: &[Input],
    record_bytes: usize,
    extent_bytes: usize,
) -> Vec<Vec<Arc<Extent>>> {
    let stride = extent_stride(record_bytes, extent_bytes) as u64;
    let cut = |(number, input): (usize, &Input)| {
        let input = input.clone();
        (0..input.bytes.div_ceil(stride)).map(move |place| {
            let offset = place * stride;
            let len = stride.min(input.bytes - offset) as usize;
            let at = input.offset + offset;
            (input.device, extent(number, &input.file, at, len))
        })
    };
    lanes(
        inputs
            .iter()
            .enumerate()
            .flat_map(|input| cut(input).collect::<Vec<_>>()),
    )
}

/// About `chunks` extents of `chunk_bytes` bytes, spread evenly over the inputs.
pub fn sample(
    inputs: &[Input],
    record_bytes: usize,
    chunks: usize,
    chunk_bytes: usize,
) -> Vec<Vec<Arc<Extent>>> {
    let record = record_bytes as u64;
    let chunk = (chunk_bytes as u64 / record).max(1) * record;
    let total: u64 = inputs.iter().map(|input| input.bytes).sum();
    if total <= chunk * chunks as u64 {
        return extents(inputs, record_bytes, chunk as usize);
    }
    let mut found = Vec::new();
    let (mut before, mut number) = (0, 0);
    for place in 0..chunks as u64 {
        // The middle of each of `chunks` equal strata, so that sorted input is sampled evenly, too.
        let at = (u128::from(total) * (2 * u128::from(place) + 1) / (2 * chunks as u128)) as u64;
        while at >= before + inputs[number].bytes {
            before += inputs[number].bytes;
            number += 1;
        }
        let input = &inputs[number];
        let offset = (at - before) / record * record;
        let len = chunk.min(input.bytes - offset) as usize;
        let at = input.offset + offset;
        found.push((input.device, extent(number, &input.file, at, len)));
    }
    lanes(found)
}

/// The largest whole number of records up to `extent_bytes` that ends at an aligned offset; if
/// there is none, the largest whole number of records.
pub fn extent_stride(record_bytes: usize, extent_bytes: usize) -> usize {
    let (mut a, mut b) = (record_bytes, ALIGNMENT);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let aligned = record_bytes / a * ALIGNMENT;
    let step = if aligned <= extent_bytes {
        aligned
    } else {
        record_bytes
    };
    (extent_bytes / step).max(1) * step
}

fn extent(number: usize, file: &FileRef, offset: u64, len: usize) -> Extent {
    let pieces = vec![Piece {
        file: file.clone(),
        offset,
        len,
        crc: None,
    }];
    Extent {
        number,
        offset,
        in_order: false,
        pieces,
    }
}

fn lanes(extents: impl IntoIterator<Item = (Option<u64>, Extent)>) -> Vec<Vec<Arc<Extent>>> {
    let mut devices: Vec<Option<u64>> = Vec::new();
    let mut lanes: Vec<Vec<Arc<Extent>>> = Vec::new();
    for (device, extent) in extents {
        let lane = devices
            .iter()
            .position(|&known| known == device)
            .unwrap_or_else(|| {
                devices.push(device);
                lanes.push(Vec::new());
                devices.len() - 1
            });
        lanes[lane].push(Arc::new(extent));
    }
    if lanes.is_empty() {
        vec![Vec::new()]
    } else {
        lanes
    }
}

/// A file in blocks, one extent each.
pub fn blocks_of(
    number: usize,
    file: &OutputFile,
    block_bytes: usize,
) -> impl Iterator<Item = Arc<Extent>> {
    let (bytes, path): (u64, Arc<Path>) = (file.bytes, file.path.as_path().into());
    (0..bytes).step_by(block_bytes).map(move |offset| {
        let len = (bytes - offset).min(block_bytes as u64) as usize;
        let file = FileRef::Path(Arc::clone(&path));
        Arc::new(Extent {
            number,
            offset,
            in_order: false,
            pieces: vec![Piece {
                file,
                offset,
                len,
                crc: None,
            }],
        })
    })
}
