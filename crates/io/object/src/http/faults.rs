//! Seeded faults: which requests fail, and how.
//!
//! A rule fires on what a request *is* (its method, path, range and number of earlier attempts,
//! hashed with the seed), not on when it is made. So the same seed gives the same faults.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use object_store::client::{HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};

use crate::http::response::answer;

/// Faults to inject into a store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Same seed, same faults.
    pub seed: u64,
    /// The first matching rule decides.
    pub rules: Vec<Rule>,
}

/// A request's method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Gets an object, or a list.
    Get,
    /// Puts an object, or a part.
    Put,
    /// Begins an upload, or completes it.
    Post,
    /// Removes an object, or an upload.
    Delete,
}

/// When a fault occurs, and which. All given conditions have to hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The method.
    pub method: Method,
    /// Only requests with this text in their path or query.
    #[serde(default)]
    pub path_contains: Option<String>,
    /// Only the first so many attempts of the same request.
    #[serde(default)]
    pub times: Option<u32>,
    /// Only this share of requests.
    #[serde(default)]
    pub probability: Option<f64>,
    /// The fault.
    pub effect: Effect,
}

impl Rule {
    /// Applies to every request of a method.
    #[must_use]
    pub fn new(method: Method, effect: Effect) -> Self {
        Self {
            method,
            path_contains: None,
            times: None,
            probability: None,
            effect,
        }
    }
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The request is not done, and answered with this status.
    Status {
        /// Like 503.
        status: u16,
    },
    /// The connection ends before there is an answer.
    Cut,
    /// The request is done, but the connection ends before the answer.
    Lost,
    /// The request takes longer.
    Stall {
        /// By how much.
        milliseconds: u64,
    },
    /// The body is a byte shorter than the answer says.
    Short,
}

impl Effect {
    /// The answer that the caller sees.
    pub(crate) async fn answer(
        self,
        inner: &HttpClient,
        request: HttpRequest,
    ) -> Result<HttpResponse, HttpError> {
        match self {
            Self::Status { status } => {
                let said =
                    format!("<Error><Code>Injected</Code><Message>{status}</Message></Error>");
                answer(status, &[], said.into())
            }
            Self::Cut => Err(connection_cut()),
            Self::Lost => {
                inner.execute(request).await?;
                Err(connection_cut())
            }
            Self::Stall { milliseconds } => {
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                inner.execute(request).await
            }
            Self::Short => {
                let (head, body) = inner.execute(request).await?.into_parts();
                let whole = body.bytes().await?;
                let short = whole.slice(..whole.len().saturating_sub(1));
                Ok(HttpResponse::from_parts(head, short.into()))
            }
        }
    }
}

fn connection_cut() -> HttpError {
    let cut = io::Error::from(io::ErrorKind::ConnectionReset);
    HttpError::new(HttpErrorKind::Interrupted, cut)
}

/// Decides on faults.
#[derive(Debug)]
pub(crate) struct Injector {
    faults: Faults,
    made: Mutex<HashMap<u64, u32>>, // how often each request was made
}

impl Injector {
    pub fn new(faults: &Faults) -> Self {
        Self {
            faults: faults.clone(),
            made: Mutex::default(),
        }
    }

    /// The fault of a request, if any. Counts the request.
    pub fn fault(&self, request: &HttpRequest) -> Option<Effect> {
        let method = request.method().as_str();
        let path = request.uri().path_and_query()?.as_str();
        let range = request.headers().get("range").map(|range| range.as_bytes());
        let identity = hash((method, path, range));
        let before = {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            let count = made.entry(identity).or_default();
            *count += 1;
            *count - 1
        };
        let fits = |(place, rule): &(usize, &Rule)| {
            let draw = hash((self.faults.seed, *place, identity, before));
            // The top 53 bits: as many as the fraction of a float has.
            let chance = (draw >> 11) as f64 / (1_u64 << 53) as f64;
            rule.method.name() == method
                && rule
                    .path_contains
                    .as_ref()
                    .is_none_or(|part| path.contains(part.as_str()))
                && rule.times.is_none_or(|times| before < times)
                && rule
                    .probability
                    .is_none_or(|probability| chance < probability)
        };
        let found = self.faults.rules.iter().enumerate().find(fits);
        found.map(|(_, rule)| rule.effect)
    }
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new(); // the same in every process
    what.hash(&mut hasher);
    hasher.finish()
}
