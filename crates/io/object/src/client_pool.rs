//! Idle clients for reuse: they have open connections, and share what they know of slow requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::client::Client;
use crate::error::ObjectError;
use crate::hedging::HedgePolicy;
use crate::progress::Progress;
use crate::settings::Settings;

/// Clients of any stores, each used by one thread at a time.
#[derive(Debug, Default)]
pub struct ClientPool {
    idle: Mutex<Vec<Client>>,
    hedge_policy: Arc<HedgePolicy>,
    progress: Arc<Progress>,
}

impl ClientPool {
    /// A client of a store, an idle one or a new one. It hedges.
    ///
    /// # Errors
    /// When the store's settings cannot be used.
    pub fn take(&self, store: &Settings) -> Result<Client, ObjectError> {
        let idle = {
            let mut idle = self.lock();
            let place = idle.iter().rposition(|client| client.is_of(store));
            place.map(|place| idle.swap_remove(place))
        };
        match idle {
            Some(client) => Ok(client),
            None => Ok(Client::new(store)?
                .hedging(&self.hedge_policy)
                .counting(&self.progress)),
        }
    }

    /// Returns a client for reuse.
    pub fn give(&self, client: Client) {
        self.lock().push(client);
    }

    /// Bytes that all clients have received, those of incomplete ranges too.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.progress.bytes()
    }

    /// The shortest time to a first byte of any client, known before the first range is complete.
    /// `None` before that byte.
    #[must_use]
    pub fn first_byte(&self) -> Option<Duration> {
        self.progress.first_byte()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
