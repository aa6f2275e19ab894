//! HTTP responses as `object_store` takes them, and responses that no server gave.

use std::pin::Pin;

use bytes::Bytes;
use object_store::HeaderValue;
use object_store::client::{HttpError, HttpErrorKind, HttpResponse};

/// The result of a service, as the library's trait wants it.
pub(crate) type Answer<'a> =
    Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

/// An answer without a server.
pub(crate) fn answer(
    status: u16,
    headers: &[(&'static str, String)],
    body: Bytes,
) -> Result<HttpResponse, HttpError> {
    let odd = |why: String| HttpError::new(HttpErrorKind::Unknown, std::io::Error::other(why));
    let mut answer = HttpResponse::new(body.into());
    *answer.status_mut() = status
        .try_into()
        .map_err(|_| odd(format!("status {status}")))?;
    for (name, value) in headers {
        let value = HeaderValue::from_str(value).map_err(|why| odd(why.to_string()))?;
        answer.headers_mut().insert(*name, value);
    }
    Ok(answer)
}
