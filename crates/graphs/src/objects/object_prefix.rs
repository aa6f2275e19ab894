//! The folder that a fleet's output goes to, seen to from outside the passes: what is there, what has
//! to go, and the small objects that say whose it is and when it is whole.
//!
//! Unlike on one machine, its objects appear one by one, from many machines; who asks for these jobs
//! knows which of them count.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use serde::{Deserialize, Serialize};
use tonnage_object::{Client, ObjectError, RequestCounts, Settings};
use tonnage_pipeline::RunHandle;

use crate::error::JobError;
use crate::objects::object_input::{access, check_access, default_requests, store_error};

/// Which folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectPrefix {
    /// The bucket.
    pub store: Settings,
    /// The folder, without a `/` at its end; all of the bucket if it is empty.
    pub folder: String,
}

impl ObjectPrefix {
    fn client(&self) -> Result<Client, JobError> {
        Client::new(&self.store).map_err(|why| store_error(&why))
    }

    pub(crate) fn key(&self, name: &str) -> String {
        match self.folder.as_str() {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        }
    }
}

/// What to look for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListConfig {
    /// Where.
    pub place: ObjectPrefix,
}

/// An object of the folder.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Its name there.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

/// What is there.
#[derive(Clone, Debug, Serialize)]
pub struct ListOutcome {
    /// All objects, hidden ones too, in the order of their names.
    pub objects: Vec<Entry>,
    /// What was asked of the store.
    pub requests: RequestCounts,
}

/// Looks what is there.
///
/// # Errors
/// What the store refuses, or fails at.
pub fn list(config: &ListConfig, _control: &RunHandle) -> Result<ListOutcome, JobError> {
    let (place, client) = (&config.place, config.place.client()?);
    let found = check_access(&place.store, client.list(&place.folder))?;
    let name = |key: &str| key[place.folder.len()..].trim_start_matches('/').to_owned();
    let mut objects: Vec<Entry> = found
        .iter()
        .map(|found| Entry {
            name: name(&found.key),
            bytes: found.bytes,
        })
        .collect();
    objects.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(ListOutcome {
        objects,
        requests: client.counts(),
    })
}

/// What to put.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutConfig {
    /// Where.
    pub place: ObjectPrefix,
    /// The object's name there.
    pub name: String,
    /// What it holds.
    pub text: String,
}

/// What was asked of the store.
#[derive(Clone, Debug, Serialize)]
pub struct RequestsOutcome {
    /// Request by request.
    pub requests: RequestCounts,
}

/// Puts a small object.
///
/// # Errors
/// What the store refuses, or fails at.
pub fn put(config: &PutConfig, handle: &RunHandle) -> Result<RequestsOutcome, JobError> {
    let (place, client) = (&config.place, config.place.client()?);
    let text = config.text.clone().into_bytes();
    let key = place.key(&config.name);
    let done = client.put(&key, text.into(), || handle.is_cancelled());
    check_access(&place.store, done)?;
    Ok(RequestsOutcome {
        requests: client.counts(),
    })
}

/// What is to go.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClearConfig {
    /// Where.
    pub place: ObjectPrefix,
    /// Objects; those that are not there are no error.
    pub names: Vec<String>,
    /// Whether all uploads to the folder that were not completed are given up, as far as the store
    /// tells of them.
    pub uploads: bool,
    /// RequestLog at once.
    #[serde(default = "default_requests")]
    pub requests: usize,
}

/// Removes objects, and gives uploads up: those first, so that nothing is completed that was removed.
///
/// # Errors
/// What the store refuses, or fails at, or the cancellation.
pub fn clear(config: &ClearConfig, handle: &RunHandle) -> Result<RequestsOutcome, JobError> {
    let requests = access(config.requests)?;
    if config.uploads {
        requests.count(&abort_uploads(config, handle)?);
    }
    let key = |name: &String| config.place.key(name);
    let keys: Vec<String> = config.names.iter().map(key).collect();
    let removed = in_parallel(config, handle, &keys, |client, key| client.remove(key));
    requests.count(&removed?);
    Ok(RequestsOutcome {
        requests: requests.counted(),
    })
}

/// Gives up all uploads to the folder that the store tells of.
fn abort_uploads(config: &ClearConfig, handle: &RunHandle) -> Result<RequestCounts, JobError> {
    let (place, client) = (&config.place, config.place.client()?);
    let (mut asked, mut last) = (RequestCounts::default(), None);
    loop {
        let uploads = check_access(&place.store, client.uploads(&place.folder))?;
        let uploads = uploads.unwrap_or_default();
        let first = uploads.first().cloned();
        // A store may tell for a while of what is gone.
        if first.is_none() || first == last {
            asked.add(&client.counts());
            return Ok(asked);
        }
        last = first;
        let given_up = in_parallel(config, handle, &uploads, |client, one| client.abort(one));
        asked.add(&given_up?);
    }
}

/// Does something to each, several at once; the first failure ends it.
fn in_parallel<T: Sync>(
    config: &ClearConfig,
    handle: &RunHandle,
    all: &[T],
    work: impl Fn(&Client, &T) -> Result<(), ObjectError> + Sync,
) -> Result<RequestCounts, JobError> {
    let next = AtomicUsize::new(0);
    let some = || {
        let client = config.place.client()?;
        while let Some(one) = all.get(next.fetch_add(1, Relaxed)) {
            if handle.is_cancelled() {
                return Err(JobError::Cancelled);
            }
            check_access(&config.place.store, work(&client, one))
                .inspect_err(|_| next.store(all.len(), Relaxed))?;
        }
        Ok(client.counts())
    };
    thread::scope(|scope| {
        let workers = config.requests.min(all.len());
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(some)).collect();
        let mut asked = RequestCounts::default();
        for worker in running {
            asked.add(&worker.join().expect("it does not panic")?);
        }
        Ok(asked)
    })
}
