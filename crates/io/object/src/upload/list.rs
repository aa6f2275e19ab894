//! Lists uploads that were neither completed nor aborted.
//!
//! `object_store` has no call for S3's ListMultipartUploads, so the request is signed as a URL,
//! sent here, and retried like the others. The answer is flat XML that the store made; a few
//! elements are extracted by name.

use std::time::Duration;

use object_store::aws::AmazonS3;
use object_store::client::{HttpClient, HttpError, HttpRequest, HttpRequestBody};
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer};
use object_store::{Error, Result as StoreResult};
use tokio::time::sleep;

use super::Upload;
use crate::counters::ErrorKind;
use crate::error::element;
use crate::retries;
use crate::settings::Settings;

/// Validity of a signed URL; it is used at once.
const VALID: Duration = Duration::from_secs(600);
/// Status "not implemented".
const NOT_DONE: u16 = 501;

/// The first page of uploads whose names begin with `prefix`; `None` if the store does not list
/// them, or not for these keys.
pub(crate) async fn first_page(
    settings: &Settings,
    store: &AmazonS3,
    http: &HttpClient,
    prefix: &str,
) -> StoreResult<Option<Vec<Upload>>> {
    let Some(page) = page(settings, store, http, prefix).await? else {
        return Ok(None);
    };
    let one = |upload: &str| {
        let value = |name| element(upload, name).map(plain).unwrap_or_default();
        Upload {
            key: value("Key"),
            id: value("UploadId"),
        }
    };
    let found = page.split("<Upload>").skip(1).map(one);
    // Some stores ignore the prefix.
    Ok(Some(
        found.filter(|one| one.key.starts_with(prefix)).collect(),
    ))
}

async fn page(
    settings: &Settings,
    store: &AmazonS3,
    http: &HttpClient,
    prefix: &str,
) -> StoreResult<Option<String>> {
    let query = [("uploads", ""), ("prefix", prefix)];
    let options = SignedUrlOptions::new().with_query(query);
    let mut pauses = retries::pauses(settings.retries);
    loop {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        let (method, bucket) = (request.method().clone(), Path::default());
        let signed = store.signed_url_opts(method, &bucket, VALID, &options);
        *request.uri_mut() = signed.await?.as_str().parse().map_err(generic)?;
        let failed = match answer(http, request).await {
            Ok((status, body)) => match ErrorKind::of_status(status) {
                None => return Ok(Some(body)),
                Some(ErrorKind::Throttled | ErrorKind::Server) if status != NOT_DONE => {
                    generic(format!("status {status}"))
                }
                Some(_) => return Ok(None),
            },
            Err(why) => generic(why),
        };
        sleep(pauses.next().ok_or(failed)?).await;
    }
}

async fn answer(http: &HttpClient, request: HttpRequest) -> Result<(u16, String), HttpError> {
    let answer = http.execute(request).await?;
    let (status, body) = (answer.status().as_u16(), answer.into_body().bytes().await?);
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

/// Decodes XML's escapes.
fn plain(text: &str) -> String {
    let escapes = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"), // last: what it gives is no escape
    ];
    escapes.iter().fold(text.to_owned(), |text, (escape, is)| {
        text.replace(escape, is)
    })
}

fn generic(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic {
        store: "S3",
        source: why.into(),
    }
}
