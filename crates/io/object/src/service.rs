//! Every HTTP request passes here: it is counted, with what became of it, and may be made to fail.
//!
//! It sits below the library that signs and repeats requests, so that each repetition is seen, and
//! what is tested with faults is the very code that repeats in real trouble.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

use crate::faults::Injector;
use crate::null::Null;
use crate::settings::{Engine, Settings};
use crate::tally::{Counts, Trouble};

/// What a service gives, as the library's trait has it.
pub(crate) type Answer<'a> =
    Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

/// Makes services that are watched.
#[derive(Debug)]
pub(crate) struct Connector {
    engine: Engine,
    counts: Arc<Counts>,
    injector: Option<Arc<Injector>>,
    made: Made,
}

/// The client that a connector made last, which is the store's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Made(Arc<Mutex<Option<HttpClient>>>);

impl Made {
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
    pub fn new(settings: &Settings, counts: &Arc<Counts>) -> Self {
        Self {
            engine: settings.engine,
            counts: Arc::clone(counts),
            injector: settings.faults.as_ref().map(Injector::new).map(Arc::new),
            made: Made::default(),
        }
    }

    /// Where the client is seen when it is made.
    pub fn made(&self) -> Made {
        self.made.clone()
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = HttpClient::new(Watched {
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
struct Watched {
    inner: HttpClient,
    counts: Arc<Counts>,
    injector: Option<Arc<Injector>>,
}

impl HttpService for Watched {
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
            let trouble = match &answer {
                Ok(answer) => Trouble::of_status(answer.status().as_u16()),
                Err(why) => Some(trouble(why.kind())),
            };
            if let Some(trouble) = trouble {
                self.counts.failed(trouble);
            }
            answer
        })
    }
}

fn trouble(kind: HttpErrorKind) -> Trouble {
    match kind {
        HttpErrorKind::Connect => Trouble::Unreachable,
        HttpErrorKind::Timeout => Trouble::Timeout,
        _ => Trouble::Broken,
    }
}
