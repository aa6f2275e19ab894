//! The service that makes every HTTP request: counts it with its result, and may inject a fault.
//!
//! It sits below the library that signs and retries requests. So it sees each retry, and tests with
//! faults exercise the code that retries in production.

use std::sync::{Arc, Mutex, PoisonError};

use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpErrorKind, HttpRequest, HttpService, ReqwestConnector,
};

use crate::counters::{Counters, ErrorKind};
use crate::http::faults::Injector;
use crate::http::null::Null;
use crate::http::response::Answer;
use crate::settings::{Engine, Settings};

/// Builds counting services.
#[derive(Debug)]
pub(crate) struct Connector {
    engine: Engine,
    counts: Arc<Counters>,
    injector: Option<Arc<Injector>>,
    made: ClientSlot,
}

/// The client that a connector built last, which is the store's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientSlot(Arc<Mutex<Option<HttpClient>>>);

impl ClientSlot {
    pub fn get(&self) -> Option<HttpClient> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn keep(&self, client: &HttpClient) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
    }
}

impl Connector {
    pub fn new(settings: &Settings, counts: &Arc<Counters>) -> Self {
        Self {
            engine: settings.engine,
            counts: Arc::clone(counts),
            injector: settings.faults.as_ref().map(Injector::new).map(Arc::new),
            made: ClientSlot::default(),
        }
    }

    /// Where the client appears when it is built.
    pub fn made(&self) -> ClientSlot {
        self.made.clone()
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = HttpClient::new(CountedService {
            inner: match self.engine {
                Engine::S3 => ReqwestConnector::default().connect(options)?,
                Engine::Null => HttpClient::new(Null::default()),
            },
            counts: Arc::clone(&self.counts),
            injector: self.injector.clone(),
        });
        self.made.keep(&client);
        Ok(client)
    }
}

#[derive(Debug)]
struct CountedService {
    inner: HttpClient,
    counts: Arc<Counters>,
    injector: Option<Arc<Injector>>,
}

impl HttpService for CountedService {
    fn call<'a, 'b>(&'a self, request: HttpRequest) -> Answer<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            self.counts.request();
            let fault = self
                .injector
                .as_ref()
                .and_then(|faults| faults.fault(&request));
            let answer = match fault {
                Some(effect) => effect.answer(&self.inner, request).await,
                None => self.inner.execute(request).await,
            };
            let kind = match &answer {
                Ok(answer) => ErrorKind::of_status(answer.status().as_u16()),
                Err(why) => Some(error_kind(why.kind())),
            };
            if let Some(kind) = kind {
                self.counts.count_failure(kind);
            }
            answer
        })
    }
}

fn error_kind(kind: HttpErrorKind) -> ErrorKind {
    match kind {
        HttpErrorKind::Connect => ErrorKind::Unreachable,
        HttpErrorKind::Timeout => ErrorKind::Timeout,
        _ => ErrorKind::Broken,
    }
}
