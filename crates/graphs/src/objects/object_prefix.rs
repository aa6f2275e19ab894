//! Lists, puts and clears the objects of the prefix that a cluster's output goes to: what is there,
//! what has to go, and the small objects that name the owner and mark the output as complete.
//!
//! Unlike on one machine, output objects appear one by one, from many nodes; the driver knows which
//! of them count.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use serde::{Deserialize, Serialize};
use tonnage_object::{Client, ObjectError, RequestCounts, Settings};
use tonnage_pipeline::RunHandle;

use crate::error::JobError;
use crate::objects::object_input::{access, check_access, default_requests, store_error};

/// A prefix of a bucket.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectPrefix {
    /// The bucket.
    pub store: Settings,
    /// The prefix, without a `/` at its end; empty for the whole bucket.
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

/// What to list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListConfig {
    /// The prefix.
    pub place: ObjectPrefix,
}

/// An object below the prefix.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Its name below the prefix.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

/// The objects below a prefix.
#[derive(Clone, Debug, Serialize)]
pub struct ListOutcome {
    /// All objects, hidden ones too, in the order of their names.
    pub objects: Vec<Entry>,
    /// Requests to the store.
    pub requests: RequestCounts,
}

/// Lists the objects below a prefix.
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
    /// The prefix.
    pub place: ObjectPrefix,
    /// The object's name below the prefix.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// The requests that a job made.
#[derive(Clone, Debug, Serialize)]
pub struct RequestsOutcome {
    /// Requests to the store.
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

/// What to remove.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClearConfig {
    /// The prefix.
    pub place: ObjectPrefix,
    /// Objects; missing ones are no error.
    pub names: Vec<String>,
    /// Whether all incomplete uploads below the prefix are aborted, as far as the store lists them.
    pub uploads: bool,
    /// Concurrent requests.
    #[serde(default = "default_requests")]
    pub requests: usize,
}

/// Aborts uploads, then removes objects, so that nothing is completed after it was removed.
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

/// Aborts all uploads below the prefix that the store lists.
fn abort_uploads(config: &ClearConfig, handle: &RunHandle) -> Result<RequestCounts, JobError> {
    let (place, client) = (&config.place, config.place.client()?);
    let (mut asked, mut last) = (RequestCounts::default(), None);
    loop {
        let uploads = check_access(&place.store, client.uploads(&place.folder))?;
        let uploads = uploads.unwrap_or_default();
        let first = uploads.first().cloned();
        // A store may list for a while what is gone.
        if first.is_none() || first == last {
            asked.add(&client.counts());
            return Ok(asked);
        }
        last = first;
        let given_up = in_parallel(config, handle, &uploads, |client, one| client.abort(one));
        asked.add(&given_up?);
    }
}

/// Applies `work` to each item, several at once, up to the first failure.
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
