//! The open block of each partition, of one worker.
//!
//! A block is sent when the next record would not fit, so it holds whole records only. The first
//! blocks are sent early, each at another length: with uniform keys all of them would fill at the
//! same moment, and reading and writing would alternate instead of overlapping. Short records
//! reach their blocks by a `WriteCombiner`.

use std::sync::Arc;

use tonnage_pipeline::{Buffer, StageError, WorkerPorts, WriteCombiner};

/// Open blocks.
pub struct OpenBlocks {
    first_number: usize,
    lanes: Arc<Vec<Option<usize>>>,
    block_bytes: usize,
    open: Vec<Option<Buffer>>,
    full: Vec<usize>,                // length at which the open block is handed on
    combiner: Option<WriteCombiner>, // none for long records
}

impl OpenBlocks {
    /// No block is open yet. Partition number `first_number` and those behind it go to `lanes`,
    /// `None` for one that is not wanted; `worker` is one of so many.
    pub fn new(
        first_number: usize,
        lanes: &Arc<Vec<Option<usize>>>,
        block_bytes: usize,
        (worker, workers): (usize, usize),
    ) -> Self {
        let partitions = lanes.len();
        let full = |place: usize| {
            let turn = place * workers + worker + 1;
            block_bytes * turn / (partitions * workers)
        };
        Self {
            first_number,
            lanes: Arc::clone(lanes),
            block_bytes,
            open: (0..partitions).map(|_| None).collect(),
            full: (0..partitions).map(full).collect(),
            combiner: None,
        }
    }

    /// Combines writes of records of this size.
    pub fn combining(mut self, record_bytes: usize) -> Self {
        self.combiner = Some(WriteCombiner::new(self.lanes.len(), record_bytes));
        self
    }

    /// Appends a record to its partition's block.
    #[inline]
    pub fn append(
        &mut self,
        place: usize,
        record: &[u8],
        ports: &mut WorkerPorts,
    ) -> Result<(), StageError> {
        let combiner = &mut self.combiner;
        let held = combiner
            .as_ref()
            .map_or(0, |combiner| combiner.staged_bytes(place));
        match &mut self.open[place] {
            Some(block) if block.len + held + record.len() <= self.full[place] => {
                match combiner {
                    Some(combiner) => combiner.append(place, record, block),
                    None => block.append(record),
                }
                Ok(())
            }
            _ => self.turn_over(place, record, ports),
        }
    }

    /// Sends all open blocks.
    pub fn send_all(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        for place in 0..self.open.len() {
            if let Some(mut block) = self.open[place].take() {
                self.flush(place, &mut block);
                ports.send(block)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, place: usize, block: &mut Buffer) {
        if let Some(combiner) = &mut self.combiner {
            combiner.flush(place, block);
        }
    }

    /// Sends the open block, if any, and begins the next with `record`; drops records that are not
    /// wanted.
    #[cold]
    fn turn_over(
        &mut self,
        place: usize,
        record: &[u8],
        ports: &mut WorkerPorts,
    ) -> Result<(), StageError> {
        let Some(lane) = self.lanes[place] else {
            return Ok(());
        };
        if let Some(mut full) = self.open[place].take() {
            self.flush(place, &mut full);
            ports.send(full)?;
            self.full[place] = self.block_bytes;
        }
        let mut block = ports.buffer()?;
        (block.number, block.lane) = (self.first_number + place, lane);
        match &mut self.combiner {
            Some(combiner) => combiner.append(place, record, &mut block),
            None => block.append(record),
        }
        self.open[place] = Some(block);
        Ok(())
    }
}
