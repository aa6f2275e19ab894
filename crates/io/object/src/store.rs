//! Builds the `object_store` client of a bucket from its settings.

use std::sync::Arc;

use object_store::ClientConfigKey;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey as Key};
use object_store::client::HttpClient;

use crate::counters::Counters;
use crate::credentials;
use crate::error::ObjectError;
use crate::http::service::Connector;
use crate::retries::retry_config;
use crate::settings::{Engine, Settings};

/// The store, whose requests are counted, and the bare HTTP client that makes them.
pub(crate) fn connect(
    settings: &Settings,
    counts: &Arc<Counters>,
) -> Result<(AmazonS3, HttpClient), ObjectError> {
    let patience = settings.patience()?;
    let connector = Connector::new(settings, counts);
    let made = connector.made();
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(&settings.bucket)
        .with_http_connector(connector)
        .with_disable_bulk_delete(true)
        .with_retry(retry_config(settings.retries, patience))
        .with_config(
            Key::Client(ClientConfigKey::Timeout),
            format!("{}ms", patience.as_millis()),
        );
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_config(Key::S3Endpoint, endpoint);
    }
    let endpoint = builder
        .get_config_value(&Key::S3Endpoint)
        .or_else(|| builder.get_config_value(&Key::Endpoint));
    if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
        builder = builder
            .with_allow_http(true)
            // None are needed, so none have to be installed.
            .with_config(Key::Client(ClientConfigKey::NoSystemCertificates), "true");
    }
    match (&settings.keys, settings.engine) {
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
        ObjectError::Settings(format!("s3://{}: {why}", settings.bucket))
    };
    let store = builder.build().map_err(|why| refused(why.to_string()))?;
    let http = made
        .get()
        .ok_or_else(|| refused("the HTTP client could not be created".to_owned()))?;
    Ok((store, http))
}
