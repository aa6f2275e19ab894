//! `read` of objects: extents by range requests, each worker one after another.
//!
//! How many are under way decides what a store gives (MATE-EC2's threaded retrieval), so all objects
//! are one lane with as many workers as there shall be requests, and whoever is free takes the next
//! extent: a request that is slow, or has to be repeated, holds up no other.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tonnage_object::{Client, ObjectError, Settings};
use tonnage_pipeline::{Failure, Flow, Stage, StageError};

use super::read::{Fetch, Read};
use crate::extent::{Extent, FileRef, Object};
use crate::requests::failure;

/// One request after another.
pub(super) struct Fetcher {
    read: Read,
    lane: usize,
    clients: Vec<(Arc<Settings>, Client)>, // one for each bucket
}

impl Fetcher {
    pub fn new(read: Read, lane: usize) -> Self {
        Self {
            read,
            lane,
            clients: Vec::new(),
        }
    }
}

/// A worker's client for a store.
pub(super) fn client_of<'a>(
    clients: &'a mut Vec<(Arc<Settings>, Client)>,
    store: &Arc<Settings>,
    fetch: &Fetch,
) -> Result<&'a Client, ObjectError> {
    let known = clients.iter().position(|(of, _)| of == store);
    let place = match known {
        Some(place) => place,
        None => {
            clients.push((Arc::clone(store), fetch.clients.take(store)?));
            clients.len() - 1
        }
    };
    Ok(&clients[place].1)
}

impl Stage for Fetcher {
    fn run(&mut self, flow: &mut Flow) -> Result<(), StageError> {
        let (lanes, next) = (Arc::clone(&self.read.lanes), Arc::clone(&self.read.next));
        while !flow.time_is_up() {
            let Some(extent) = lanes[self.lane].get(next.fetch_add(1, Relaxed)) else {
                break;
            };
            let (object, offset) = object(extent)?;
            let mut buffer = flow.buffer()?;
            (buffer.number, buffer.offset) = (extent.number, extent.offset);
            (buffer.lane, buffer.len) = (self.lane, extent.len());
            let memory = &mut buffer.slot_mut()[..extent.len()];
            let (etag, stopped) = (object.etag.as_deref(), || flow.check().is_err());
            let client = client_of(&mut self.clients, &object.store, &self.read.fetch);
            let client = client.map_err(|why| failure(&why))?;
            let got = client.get_range(&object.key, etag, offset, memory, stopped);
            got.map_err(|why| failure(&why))?;
            flow.moved(extent.len(), extent.len() / self.read.record_bytes);
            flow.send(buffer)?;
        }
        self.read.fetch.give(std::mem::take(&mut self.clients));
        Ok(())
    }
}

/// The object that an extent is a range of, and where the range begins.
fn object(extent: &Extent) -> Result<(&Object, u64), Failure> {
    match extent.pieces.as_slice() {
        [piece] => match &piece.file {
            FileRef::Object(object) => Ok((object, piece.offset)),
            _ => Err(Failure::new("a file is among the objects of a lane")),
        },
        _ => Err(Failure::new("an extent of an object is one range")),
    }
}
