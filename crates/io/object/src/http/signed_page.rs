//! A page of a list: `object_store` has no call for some lists, and refuses others as a whole for
//! one name in them. So the request is signed as a URL, sent here, and retried like the others.

use std::time::Duration;

use object_store::aws::AmazonS3;
use object_store::client::{HttpClient, HttpError, HttpRequest, HttpRequestBody};
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer};
use object_store::{Error, Result as StoreResult};
use tokio::time::sleep;

use crate::counters::ErrorKind;
use crate::retries;
use crate::settings::Settings;

/// Validity of a signed URL; it is used at once.
const VALID: Duration = Duration::from_secs(600);
/// Status "not implemented".
const NOT_DONE: u16 = 501;

/// What asks a bucket for lists.
#[derive(Clone, Copy)]
pub(crate) struct Lister<'a> {
    pub settings: &'a Settings,
    pub store: &'a AmazonS3,
    pub http: &'a HttpClient,
}

impl Lister<'_> {
    /// The answer to a query of the bucket; the store's refusal as an `Err` within `Ok`.
    pub async fn page(&self, query: &[(&str, &str)]) -> StoreResult<Result<String, String>> {
        let options = SignedUrlOptions::new().with_query(query.iter().copied());
        let mut pauses = retries::pauses(self.settings.retries);
        loop {
            let mut request = HttpRequest::new(HttpRequestBody::empty());
            let (method, bucket) = (request.method().clone(), Path::default());
            let signed = self.store.signed_url_opts(method, &bucket, VALID, &options);
            *request.uri_mut() = signed.await?.as_str().parse().map_err(generic)?;
            let failed = match answer(self.http, request).await {
                Ok((status, body)) => match ErrorKind::of_status(status) {
                    None => return Ok(Ok(body)),
                    Some(ErrorKind::Throttled | ErrorKind::Server) if status != NOT_DONE => {
                        generic(format!("status {status}"))
                    }
                    Some(_) => return Ok(Err(format!("status {status}: {body}"))),
                },
                Err(why) => generic(why),
            };
            sleep(pauses.next().ok_or(failed)?).await;
        }
    }
}

async fn answer(http: &HttpClient, request: HttpRequest) -> Result<(u16, String), HttpError> {
    let answer = http.execute(request).await?;
    let (status, body) = (answer.status().as_u16(), answer.into_body().bytes().await?);
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

/// Decodes XML's escapes.
pub(crate) fn plain(text: &str) -> String {
    let mut parts = text.split('&');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, behind) = part.split_once(';').unwrap_or((part, ""));
        match escaped(name) {
            Some(character) => {
                decoded.push(character);
                decoded.push_str(behind);
            }
            None => {
                decoded.push('&');
                decoded.push_str(part);
            }
        }
    }
    decoded
}

fn escaped(name: &str) -> Option<char> {
    let number = |digits: &str| match digits.strip_prefix('x') {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    };
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "amp" => Some('&'),
        other => char::from_u32(number(other.strip_prefix('#')?)?),
    }
}

pub(crate) fn generic(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic {
        store: "S3",
        source: why.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn escapes_are_decoded_once() {
        assert_eq!(plain("a&amp;lt;&#34;&#xA;&lt;b&;c&x;"), "a&lt;\"\n<b&;c&x;");
    }
}
