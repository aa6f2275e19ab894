//! Object storage as input: URLs, credentials that a store accepts, and the objects that URLs name.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tonnage_object::{Client, ErrorKind, Listing, ObjectInfo, RequestCounts};
pub use tonnage_object::{ObjectError, ParallelReader, Settings};
use tonnage_pipeline::RunHandle;
use tonnage_stages::extent::Object;
use tonnage_stages::object::access::ObjectAccess;

use crate::error::{JobError, setting_error, usage_error};
use crate::output::atomic_output;
use crate::output::manifest::{MANIFEST, Manifest};

/// Scheme of all URLs.
const SCHEME: &str = "s3://";
/// Holds the store's address if none is configured.
const ENDPOINT: &str = "AWS_ENDPOINT_URL";
/// Default number of concurrent requests: keeps two cores busy in pass one where the first byte
/// takes 40 ms and a connection carries 85 MB/s. The best number for puts is not known.
const REQUESTS: usize = 16;
/// More connections are of no use to one machine.
const REQUESTS_AT_MOST: usize = 1024;

/// How a job uses object storage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObjectStorage {
    /// The store; URLs name the bucket.
    pub store: Settings,
    /// Concurrent requests, of input and of output.
    pub requests: usize,
}

impl Default for ObjectStorage {
    fn default() -> Self {
        Self {
            store: Settings::default(),
            requests: REQUESTS,
        }
    }
}

impl ObjectStorage {
    /// Access for readers, with a limit of concurrent requests.
    ///
    /// # Errors
    /// When the limit is out of range.
    pub fn access(&self) -> Result<ObjectAccess, JobError> {
        access(self.requests)
    }

    /// The store, with the bucket of a URL.
    #[must_use]
    pub fn bucket(&self, url: &ObjectUrl) -> Settings {
        Settings {
            bucket: url.bucket.clone(),
            ..self.store.clone()
        }
    }
}

/// Access for readers, with a limit of concurrent requests.
///
/// # Errors
/// When the limit is out of range.
pub fn access(requests: usize) -> Result<ObjectAccess, JobError> {
    if !(1..=REQUESTS_AT_MOST).contains(&requests) {
        return Err(setting_error(
            "requests",
            format!("{requests} is not from 1 to {REQUESTS_AT_MOST}"),
        ));
    }
    Ok(ObjectAccess {
        requests,
        ..ObjectAccess::default()
    })
}

/// Default number of concurrent requests.
#[must_use]
pub fn default_requests() -> usize {
    REQUESTS
}

/// A bucket and a key, `s3://BUCKET/KEY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectUrl {
    /// The bucket.
    pub bucket: String,
    /// The object, or the prefix of several; without a `/` at the end.
    pub key: String,
    /// Whether it ended with `/`, or names the bucket: then it is a prefix, not an object.
    pub folder: bool,
}

impl ObjectUrl {
    /// Parses a URL; `None` if it is a path.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let rest = path.to_str()?.strip_prefix(SCHEME)?;
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        Some(Self {
            bucket: bucket.to_owned(),
            key: key.trim_matches('/').to_owned(),
            folder: key.is_empty() || key.ends_with('/'),
        })
    }

    /// The key of `name` below this prefix.
    #[must_use]
    pub fn join(&self, name: &str) -> String {
        match self.key.as_str() {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        }
    }
}

/// What to find.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// URLs of objects or prefixes.
    pub urls: Vec<PathBuf>,
    /// How to use the store.
    #[serde(rename = "volumes")]
    pub storage: ObjectStorage,
}

/// An object that was found.
#[derive(Clone, Debug, Serialize)]
pub struct FoundObject {
    /// Its bucket.
    pub bucket: String,
    /// Its name there.
    pub key: String,
    /// Its length.
    pub bytes: u64,
    /// Its ETag, if the store gives one.
    pub etag: Option<String>,
}

/// The results.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The objects, URL by URL, sorted by name.
    pub objects: Vec<FoundObject>,
    /// URLs of objects below these whose names cannot be requested.
    pub unreadable: Vec<String>,
    /// Requests to the store.
    pub requests: RequestCounts,
}

/// Finds the objects that URLs name, so that a cluster can divide them among its nodes.
///
/// # Errors
/// When a URL names nothing, or the store denies access.
pub fn run(config: &Config, _control: &RunHandle) -> Result<Outcome, JobError> {
    let (requests, mut objects) = (config.storage.access()?, Vec::new());
    let mut unreadable = Vec::new();
    for path in &config.urls {
        let url = ObjectUrl::of(path)
            .ok_or_else(|| usage_error(format!("{}: write s3://BUCKET/PREFIX", path.display())))?;
        let found = find(&url, &config.storage, &requests, &mut unreadable)?;
        objects.extend(found.into_iter().map(|(object, bytes)| FoundObject {
            bucket: object.store.bucket.clone(),
            key: object.key.clone(),
            bytes,
            etag: object.etag.clone(),
        }));
    }
    Ok(Outcome {
        objects,
        unreadable,
        requests: requests.counted(),
    })
}

/// The objects that a URL names: one object, or all below a prefix, sorted by name. Hidden ones,
/// with a name that begins with `.` or `_`, are left out. Those whose names cannot be requested are
/// left out, too, and added to `unreadable`.
///
/// # Errors
/// When there are none, or parts of an output are missing.
pub fn find(
    url: &ObjectUrl,
    storage: &ObjectStorage,
    requests: &ObjectAccess,
    unreadable: &mut Vec<String>,
) -> Result<Vec<(Arc<Object>, u64)>, JobError> {
    let store = Arc::new(storage.bucket(url));
    let client = Client::new(&store).map_err(|why| store_error(&why))?;
    let one = match url.folder {
        true => None,
        false => check_access(&store, client.find(&url.key))?,
    };
    let found = match one {
        Some(one) => vec![one],
        None => find_in_prefix(&client, &store, url, unreadable)?,
    };
    requests.count(&client.counts());
    let object = |found: ObjectInfo| {
        let object = Object {
            store: Arc::clone(&store),
            key: found.key,
            etag: found.etag,
        };
        (Arc::new(object), found.bytes)
    };
    Ok(found.into_iter().map(object).collect())
}

fn find_in_prefix(
    client: &Client,
    store: &Settings,
    url: &ObjectUrl,
    unreadable: &mut Vec<String>,
) -> Result<Vec<ObjectInfo>, JobError> {
    let Listing {
        objects: all,
        unreadable: names,
    } = check_access(store, client.list_all(&url.key))?;
    let of_an_output = check_finished(client, store, url, &all)?; // It may have no part.
    let hidden = |key: &str| {
        let name = key[url.key.len()..].trim_start_matches('/');
        name.split('/').any(|part| part.starts_with(['.', '_']))
    };
    unreadable.extend(
        names
            .iter()
            .filter(|key| !hidden(key))
            .map(|key| store.name(key)),
    );
    let mut found: Vec<ObjectInfo> = all.into_iter().filter(|one| !hidden(&one.key)).collect();
    if found.is_empty() && !of_an_output {
        return Err(usage_error(format!(
            "input {}: no object has this name, and no readable object has it as a prefix (names \
             that begin with . or _ are ignored); check the name",
            store.name(&url.key)
        )));
    }
    found.sort_unstable_by(|one, other| one.key.cmp(&other.key));
    Ok(found)
}

/// Refuses a prefix whose output is unfinished or lacks parts; returns whether it holds a complete
/// output.
fn check_finished(
    client: &Client,
    store: &Settings,
    url: &ObjectUrl,
    all: &[ObjectInfo],
) -> Result<bool, JobError> {
    let unfinished = url.join(atomic_output::STAGING_PREFIX);
    if all.iter().any(|found| found.key.starts_with(&unfinished)) {
        return Err(usage_error(format!(
            "{} contains unfinished output; wait for its job, or run the job again",
            store.name(&url.key)
        )));
    }
    let key = url.join(MANIFEST);
    let Some(manifest) = all.iter().find(|found| found.key == key) else {
        return Ok(false);
    };
    let mut bytes = vec![0; manifest.bytes as usize];
    let got = client.get_range(&key, manifest.etag.as_deref(), 0, &mut bytes, || false);
    check_access(store, got)?;
    for part in Manifest::read(&store.name(&key), &bytes)?.parts {
        let part = url.join(&part);
        if !all.iter().any(|found| found.key == part) {
            return Err(usage_error(format!(
                "input {} is an incomplete output: {} is missing",
                store.name(&url.key),
                store.name(&part)
            )));
        }
    }
    Ok(true)
}

/// Turns errors that affect every request into a refusal that says how to fix them.
///
/// # Errors
/// The store's error.
pub fn check_access<T>(store: &Settings, answer: Result<T, ObjectError>) -> Result<T, JobError> {
    let why = match answer {
        Ok(given) => return Ok(given),
        Err(why) => why,
    };
    let ObjectError::Failed { kind, what, .. } = &why else {
        return Err(store_error(&why));
    };
    let bucket = format!("{SCHEME}{}", store.bucket);
    let of_environment = env::var(ENDPOINT).ok();
    let place = store.endpoint.as_ref().or(of_environment.as_ref());
    let place = place.map_or("AWS", String::as_str);
    Err(match kind {
        ErrorKind::Unreachable => {
            let why = format!(
                "{place} cannot be reached ({what}); check the address, or start the server"
            );
            match (&store.endpoint, &of_environment) {
                (None, Some(_)) => usage_error(format!("{ENDPOINT}: {why}")),
                _ => setting_error("endpoint_url", why),
            }
        }
        ErrorKind::Missing => usage_error(format!(
            "{bucket}: the bucket does not exist at {place} ({what}); create it, or correct the name"
        )),
        ErrorKind::Denied => usage_error(format!(
            "{bucket}: access to {place} was denied ({what}); set AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        )),
        _ => store_error(&why),
    })
}

/// Turns a store's error into a job's.
pub fn store_error(why: &ObjectError) -> JobError {
    match why {
        ObjectError::Settings(what) => usage_error(what),
        ObjectError::Stopped => JobError::Cancelled,
        ObjectError::Failed { .. } => JobError::failure(why.to_string()),
    }
}
