//! Which bucket, where, and how patiently; how a store is made from that.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey as Key};
use object_store::client::HttpClient;
use object_store::{BackoffConfig, ClientConfigKey, RetryConfig};
use serde::{Deserialize, Serialize};

use crate::credentials;
use crate::error::ObjectError;
use crate::faults::Faults;
use crate::service::Connector;
use crate::tally::Counts;

/// Between a failed request and its repetition, at first; it doubles, and is drawn at random.
const PAUSE: Duration = Duration::from_millis(100);

/// What answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// A store that speaks S3.
    #[default]
    S3,
    /// Nothing: every answer is made up here, at once.
    Null,
}

/// Keys for a store, instead of those of the environment.
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

/// Which bucket, and how to use it.
///
/// What is not said here is taken from the environment's `AWS_` variables, and keys that are not
/// there from the files of AWS' own tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Its name.
    pub bucket: String,
    /// The address of the service, like `http://127.0.0.1:7070`; AWS' own if nobody says another.
    pub endpoint: Option<String>,
    /// What answers.
    pub engine: Engine,
    /// How often a request is repeated that failed for a reason that may pass.
    pub retries: usize,
    /// How long one request may take.
    pub patience_seconds: f64,
    /// What is to go wrong.
    pub faults: Option<Faults>,
    /// Instead of the environment's.
    #[serde(skip)]
    pub keys: Option<Keys>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bucket: String::new(),
            endpoint: None,
            engine: Engine::S3,
            retries: 4,
            patience_seconds: 60.0,
            faults: None,
            keys: None,
        }
    }
}

impl Settings {
    /// An object's url, which is its name for messages.
    #[must_use]
    pub fn name(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.bucket)
    }

    /// The store, whose every request is counted, and the bare client that it makes them with.
    pub(crate) fn store(
        &self,
        counts: &Arc<Counts>,
    ) -> Result<(AmazonS3, HttpClient), ObjectError> {
        let patience = self.patience()?;
        let connector = Connector::new(self, counts);
        let made = connector.made();
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&self.bucket)
            .with_http_connector(connector)
            .with_disable_bulk_delete(true)
            .with_retry(RetryConfig {
                max_retries: self.retries,
                retry_timeout: patience * (1 + self.retries as u32),
                backoff: BackoffConfig {
                    init_backoff: PAUSE,
                    ..BackoffConfig::default()
                },
            })
            .with_config(
                Key::Client(ClientConfigKey::Timeout),
                format!("{}ms", patience.as_millis()),
            );
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_config(Key::S3Endpoint, endpoint);
        }
        let endpoint = builder
            .get_config_value(&Key::S3Endpoint)
            .or_else(|| builder.get_config_value(&Key::Endpoint));
        if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
            builder = builder
                .with_allow_http(true)
                // None are needed, so that none need be there.
                .with_config(Key::Client(ClientConfigKey::NoSystemCertificates), "true");
        }
        match (&self.keys, self.engine) {
            (Some(keys), _) => {
                builder = builder
                    .with_access_key_id(&keys.id)
                    .with_secret_access_key(&keys.secret);
            }
            (None, Engine::Null) => {
                builder = builder
                    .with_access_key_id("nobody")
                    .with_secret_access_key("nothing");
            }
            (None, Engine::S3) => builder = credentials::complete(builder)?,
        }
        let refused = |why: String| {
            let why = why.trim_start_matches("Generic S3 error: ");
            ObjectError::Settings(format!("s3://{}: {why}", self.bucket))
        };
        let store = builder.build().map_err(|why| refused(why.to_string()))?;
        let http = made.get().ok_or_else(|| refused("no client".to_owned()))?;
        Ok((store, http))
    }

    fn patience(&self) -> Result<Duration, ObjectError> {
        Duration::try_from_secs_f64(self.patience_seconds).map_err(|why| {
            ObjectError::Settings(format!("patience of {} s: {why}", self.patience_seconds))
        })
    }
}
