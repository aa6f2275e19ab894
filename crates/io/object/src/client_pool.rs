//! ClientPool that wait for their next use: whoever asks again has connections that are made already,
//! and knows the slow tail from before.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::client::Client;
use crate::error::ObjectError;
use crate::hedging::HedgePolicy;
use crate::progress::Progress;
use crate::settings::Settings;

/// ClientPool of any stores, each used by one thread at a time.
#[derive(Debug, Default)]
pub struct ClientPool {
    idle: Mutex<Vec<Client>>,
    hedge_policy: Arc<HedgePolicy>,
    progress: Arc<Progress>,
}

impl ClientPool {
    /// A client of a store: one that waits, or a new one. It hedges.
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

    /// Keeps a client for the next who takes one.
    pub fn give(&self, client: Client) {
        self.lock().push(client);
    }

    /// Bytes of objects that they all have received: as they come, not only of ranges that are whole.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.progress.bytes()
    }

    /// The shortest time to the first byte of an answer that any of them had, or has: it is known
    /// before the first range is whole. `None` before that byte.
    #[must_use]
    pub fn first_byte(&self) -> Option<Duration> {
        self.progress.first_byte()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
