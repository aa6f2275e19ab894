//! The null store: shows what a client costs if the network and the store cost nothing.
//!
//! Puts vanish; gets return zeros, as many as requested, for objects of any name.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use object_store::client::{HttpRequest, HttpService};

use crate::http::response::{Answer, answer};

const UPLOAD: &str = "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key>\
                      <UploadId>1</UploadId></InitiateMultipartUploadResult>";
const COMPLETED: &str = "<CompleteMultipartUploadResult><ETag>\"0\"</ETag>\
                         </CompleteMultipartUploadResult>";
const NONE: &str = "<ListBucketResult></ListBucketResult>";

/// Answers at once.
#[derive(Debug, Default)]
pub(crate) struct Null {
    zeros: Mutex<Bytes>, // as many as any request wanted; no page of them is written
}

impl HttpService for Null {
    fn call<'a, 'b>(&'a self, request: HttpRequest) -> Answer<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let mut status = 200_u16;
            let mut headers = vec![
                ("etag", "\"0\"".to_owned()),
                ("last-modified", "Thu, 01 Jan 1970 00:00:00 GMT".to_owned()),
            ];
            let body = match request.method().as_str() {
                "GET" => match range(&request) {
                    Some((first, last)) => {
                        status = 206;
                        headers.push((
                            "content-range",
                            format!("bytes {first}-{last}/{}", last + 1),
                        ));
                        self.zeros((last + 1 - first) as usize)
                    }
                    None => NONE.into(),
                },
                "POST" if query.contains("uploadId") => COMPLETED.into(),
                "POST" => UPLOAD.into(),
                "DELETE" => {
                    status = 204;
                    Bytes::new()
                }
                _ => Bytes::new(),
            };
            headers.push(("content-length", body.len().to_string()));
            answer(status, &headers, body)
        })
    }
}

impl Null {
    fn zeros(&self, len: usize) -> Bytes {
        let mut zeros = self.zeros.lock().unwrap_or_else(PoisonError::into_inner);
        if zeros.len() < len {
            *zeros = vec![0; len].into();
        }
        zeros.slice(..len)
    }
}

/// The first and the last byte of a request's range.
fn range(request: &HttpRequest) -> Option<(u64, u64)> {
    let asked = request.headers().get("range")?.to_str().ok()?;
    let (first, last) = asked.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}
