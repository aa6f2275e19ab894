//! The blocks of a file that is encoded, whose length is not known before.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tonnage_pipeline::{Buffer, StageError, WorkerPorts};

/// The ports of a worker that has a file open while it receives what continues it.
///
/// One thread uses them; it is a mutex because encoders want files that could go to another.
pub(super) struct SharedPorts<'a>(Mutex<&'a mut WorkerPorts>);

impl<'a> SharedPorts<'a> {
    pub(super) fn new(ports: &'a mut WorkerPorts) -> Self {
        Self(Mutex::new(ports))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, &'a mut WorkerPorts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Blocks of a file, sent as they are full.
pub struct FileBlocks<'a> {
    number: usize,
    lane: usize,
    offset: u64,
    block: Option<Buffer>,
    ports: &'a SharedPorts<'a>,
    stopped: Option<StageError>, // why writing failed
}

impl<'a> FileBlocks<'a> {
    pub(super) fn new(number: usize, lane: usize, ports: &'a SharedPorts<'a>) -> Self {
        Self {
            number,
            lane,
            offset: 0,
            block: None,
            ports,
            stopped: None,
        }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn append(&mut self, mut bytes: &[u8]) -> Result<(), StageError> {
        while !bytes.is_empty() {
            let mut block = match self.block.take() {
                Some(block) if block.room() > 0 => block,
                full => self.next(full)?,
            };
            let (now, later) = bytes.split_at(bytes.len().min(block.room()));
            block.append(now);
            bytes = later;
            self.block = Some(block);
        }
        Ok(())
    }

    /// Sends the full block, if any; gives the next.
    fn next(&mut self, full: Option<Buffer>) -> Result<Buffer, StageError> {
        if let Some(full) = full {
            self.offset += full.len as u64;
            self.ports.lock().send(full)?;
        }
        let mut block = self.ports.lock().buffer()?;
        (block.number, block.lane, block.offset) = (self.number, self.lane, self.offset);
        Ok(block)
    }

    /// Why writing failed, if it did: `Write` has no place for it.
    pub fn stopped(&mut self) -> Option<StageError> {
        self.stopped.take()
    }

    /// Sends the last block, of no bytes if the file has none.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn end(&mut self) -> Result<(), StageError> {
        let mut last = match self.block.take() {
            Some(block) => block,
            None => self.next(None)?,
        };
        last.is_last = true;
        self.ports.lock().send(last)
    }
}

impl io::Write for FileBlocks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.append(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(why) => {
                self.stopped = Some(why);
                Err(io::Error::other("the run was stopped"))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
