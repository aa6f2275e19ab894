//! Errors of an object store, with the object.

use std::error::Error;

use thiserror::Error;

use crate::counters::ErrorKind;

/// Metadata and task roles have such addresses; they are asked when there are no other keys.
const METADATA: &str = "169.254.";

/// A failure of an object store, or of its settings.
#[derive(Debug, Error)]
pub enum ObjectError {
    /// The settings cannot be used; no request was made.
    #[error("{0}")]
    Settings(String),
    /// A request failed, its retries too.
    #[error("{}", message(.doing, .name, *.kind, .what, *.requests))]
    Failed {
        /// `getting`, `putting` and so on.
        doing: &'static str,
        /// The object, as `s3://bucket/key`.
        name: String,
        /// The last failure.
        kind: ErrorKind,
        /// In the store's words, or the system's.
        what: String,
        /// Number of attempts.
        requests: u64,
    },
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
}

impl ObjectError {
    /// Whether the store did not answer at all.
    #[must_use]
    pub fn is_unresponsive(&self) -> bool {
        matches!(
            self,
            Self::Failed {
                kind: ErrorKind::Unreachable | ErrorKind::Timeout,
                ..
            }
        )
    }

    /// The object that was replaced since it was found, if that is the error.
    #[must_use]
    pub fn changed(&self) -> Option<&str> {
        match self {
            Self::Failed {
                kind: ErrorKind::Changed,
                name,
                ..
            } => Some(name),
            _ => None,
        }
    }
}

fn message(doing: &str, name: &str, kind: ErrorKind, what: &str, requests: u64) -> String {
    match kind {
        ErrorKind::Changed => {
            format!(
                "{name} was changed while it was read; run the job again once no other program writes it"
            )
        }
        _ => format!("{doing} {name}: {what}{}", after(requests)),
    }
}

fn after(requests: u64) -> String {
    match requests {
        0 | 1 => String::new(),
        several => format!(" (tried {several} times)"),
    }
}

/// The cause of a library error: the store's code and message, or else the innermost cause.
pub(crate) fn root_cause(error: &object_store::Error) -> String {
    let said = error.to_string();
    if said.contains(METADATA) {
        return "no credentials were found, and this machine has no role".to_owned();
    }
    if let Some(code) = element(&said, "Code") {
        let message = element(&said, "Message").unwrap_or_default();
        return format!("{code}: {message}");
    }
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string().trim().trim_end_matches(':').to_owned()
}

/// An error of the library's type, for what the library does not notice.
pub(crate) fn generic(what: String) -> object_store::Error {
    object_store::Error::Generic {
        store: "S3",
        source: what.into(),
    }
}

/// The text of an element of an XML answer.
pub(crate) fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_speaks_for_itself() {
        let error = |source: &str| generic(source.to_owned());
        let answer = "Error: 503: <Error><Code>SlowDown</Code><Message>Less.</Message></Error>";
        assert_eq!(root_cause(&error(answer)), "SlowDown: Less.");
        assert_eq!(
            root_cause(&error("connection refused")),
            "connection refused"
        );
        let asked = "Error performing PUT http://169.254.169.254/latest/api/token";
        assert!(root_cause(&error(asked)).contains("no credentials"));
    }
}
