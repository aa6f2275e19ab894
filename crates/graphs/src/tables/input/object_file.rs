//! Objects as files of which little is read: what tells where their data is.
//!
//! A request takes as long for some kilobytes as for a few bytes, so more is read than what was
//! asked for: what is behind it, or, at the end, what is before it. Footers and headers are close
//! to each other, and most are there already when they are asked for.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tonnage_formats::ReadAt;
use tonnage_pipeline::RunHandle;
use tonnage_stages::extent::Object;
use tonnage_stages::object::access::ObjectAccess;

/// Bytes of a request, at least.
const REQUEST_BYTES: u64 = 64 << 10;
/// Answers that are remembered.
const ANSWERS: usize = 64;

/// Opens objects; clones share what was read.
#[derive(Clone, Debug, Default)]
pub struct ObjectFiles {
    /// How objects are read.
    pub access: ObjectAccess,
    handle: RunHandle,
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

/// Some bytes of an object.
#[derive(Debug)]
struct Answer {
    object: Arc<Object>,
    offset: u64,
    bytes: Bytes,
}

impl ObjectFiles {
    /// Objects that are read in this way, until the run is cancelled.
    #[must_use]
    pub fn new(access: &ObjectAccess, handle: &RunHandle) -> Self {
        Self {
            access: access.clone(),
            handle: handle.clone(),
            answers: Arc::default(),
        }
    }

    /// Whether the run was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.handle.is_cancelled()
    }

    /// An object of so many bytes.
    pub fn open(&self, object: &Arc<Object>, bytes: u64) -> Arc<dyn ReadAt> {
        Arc::new(ObjectFile {
            object: Arc::clone(object),
            bytes,
            files: self.clone(),
        })
    }

    fn recent_answer(&self, object: &Arc<Object>, range: &Range<u64>) -> Option<Bytes> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.iter().find_map(|answer| {
            let end = answer.offset + answer.bytes.len() as u64;
            let is_in = Arc::ptr_eq(&answer.object, object)
                && answer.offset <= range.start
                && range.end <= end;
            let at = |offset: u64| (offset - answer.offset) as usize;
            is_in.then(|| answer.bytes.slice(at(range.start)..at(range.end)))
        })
    }

    fn request(&self, object: &Arc<Object>, range: &Range<u64>) -> io::Result<Bytes> {
        let mut client = self
            .access
            .clients
            .take(&object.store)
            .map_err(io::Error::other)?;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let stopped = || self.handle.is_cancelled();
        let etag = object.etag.as_deref();
        let got = client.get_range(&object.key, etag, range.start, &mut bytes, stopped);
        self.access.count(&client.count());
        self.access.clients.give(client);
        got.map_err(io::Error::other)?;
        let bytes = Bytes::from(bytes);
        if range.end - range.start <= REQUEST_BYTES {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.truncate(ANSWERS - 1);
            answers.push_front(Answer {
                object: Arc::clone(object),
                offset: range.start,
                bytes: bytes.clone(),
            });
        }
        Ok(bytes)
    }
}

struct ObjectFile {
    object: Arc<Object>,
    bytes: u64,
    files: ObjectFiles,
}

impl ReadAt for ObjectFile {
    fn len(&self) -> u64 {
        self.bytes
    }

    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        if range.end > self.bytes || range.start > range.end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        if let Some(bytes) = self.files.recent_answer(&self.object, &range) {
            return Ok(bytes);
        }
        let start = range.start.min(self.bytes.saturating_sub(REQUEST_BYTES));
        let more = start..range.end.max((start + REQUEST_BYTES).min(self.bytes));
        let bytes = self.files.request(&self.object, &more)?;
        let at = (range.start - start) as usize;
        Ok(bytes.slice(at..at + (range.end - range.start) as usize))
    }
}
