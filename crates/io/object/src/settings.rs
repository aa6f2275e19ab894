//! The settings of a store: its bucket, its address, time limits and retries.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::ObjectError;
use crate::http::faults::Faults;
use crate::retries::RETRIES;

/// What answers requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// A store that speaks S3.
    #[default]
    S3,
    /// Nothing: answers are made up at once.
    Null,
}

/// Keys of a store, instead of the environment's.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// The access key's id.
    pub id: String,
    /// The secret.
    pub secret: String,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({})", self.id)
    }
}

/// A bucket, and how to use it.
///
/// Missing values come from the environment's `AWS_` variables, missing keys from the files of AWS'
/// own tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Its name.
    pub bucket: String,
    /// The address of the service, like `http://127.0.0.1:7070`; AWS by default.
    pub endpoint: Option<String>,
    /// What answers requests.
    pub engine: Engine,
    /// Retries of a request that failed for a transient reason.
    pub retries: usize,
    /// Time limit of one request.
    pub patience_seconds: f64,
    /// How long a put that is to stop is waited for: what was sent cannot be taken back, and would
    /// become an object when nobody looks any more. Tests set less.
    #[serde(skip)]
    pub put_grace: Duration,
    /// Injected faults.
    pub faults: Option<Faults>,
    /// Used instead of the environment's.
    #[serde(skip)]
    pub keys: Option<Keys>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bucket: String::new(),
            endpoint: None,
            engine: Engine::S3,
            retries: RETRIES,
            patience_seconds: 60.0,
            put_grace: Duration::from_secs(5),
            faults: None,
            keys: None,
        }
    }
}

impl Settings {
    /// An object's URL, which is its name in messages.
    #[must_use]
    pub fn name(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.bucket)
    }

    pub(crate) fn patience(&self) -> Result<Duration, ObjectError> {
        Duration::try_from_secs_f64(self.patience_seconds).map_err(|why| {
            ObjectError::Settings(format!("patience of {} s: {why}", self.patience_seconds))
        })
    }
}
