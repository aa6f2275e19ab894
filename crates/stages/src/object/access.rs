//! How the workers of a graph read objects: how many requests at once, with which clients.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tonnage_object::{Client, ClientPool, ObjectError, RequestCounts, Settings};

/// How objects are read.
#[derive(Clone, Debug, Default)]
pub struct ObjectAccess {
    /// Concurrent requests, a worker each; at least 1.
    pub requests: usize,
    /// How objects are read.
    pub counts: Arc<Mutex<RequestCounts>>,
    /// Clients, which consecutive graphs may share.
    pub clients: Arc<ClientPool>,
}

impl ObjectAccess {
    /// Returns a worker's clients to the pool and counts their requests.
    pub(crate) fn give(&self, clients: WorkerClients) {
        for (_, mut client) in clients.0 {
            self.count(&client.count());
            self.clients.give(client);
        }
    }

    /// Adds requests to the count.
    pub fn count(&self, counts: &RequestCounts) {
        self.lock().add(counts);
    }

    /// Requests so far.
    #[must_use]
    pub fn counted(&self) -> RequestCounts {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, RequestCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker's clients, one for each bucket that it has met.
#[derive(Debug, Default)]
pub(crate) struct WorkerClients(Vec<(Arc<Settings>, Client)>);

impl WorkerClients {
    /// The client for a store, taken from the pool at first.
    pub fn get(
        &mut self,
        store: &Arc<Settings>,
        access: &ObjectAccess,
    ) -> Result<&Client, ObjectError> {
        let known = self.0.iter().position(|(of, _)| of == store);
        let place = match known {
            Some(place) => place,
            None => {
                let client = access.clients.take(store)?;
                self.0.push((Arc::clone(store), client));
                self.0.len() - 1
            }
        };
        Ok(&self.0[place].1)
    }
}
