//! Splits requests into transfers, and keeps the engine supplied with them.
//!
//! Requests wait in line. The first is cut into transfers as slots become free, so at most `depth`
//! transfers are in the kernel and at most one request is being cut. The rest of a short transfer
//! goes first, since the last bytes of a request hold up its whole buffer.
//!
//! One invariant must hold: memory is returned (or dropped) only when no transfer of its request is
//! in the kernel. `Job::open` counts them.

use std::collections::VecDeque;
use std::io;

use crate::engine::{Backend, Outcome};
use crate::error::{DiskError, Operation};
use crate::memory::{Memory, Pointer};
use crate::queue::{Completion, Direction, Mode, Queue, Request, Segment};
use crate::transfer::Transfer;

/// The largest transfer: some kernels count in 32 bits.
const LARGEST_TRANSFER: usize = 1 << 30;

pub(crate) struct Scheduler<M: Memory> {
    backend: Box<dyn Backend>,
    transfer_bytes: usize,
    /// Transfers that the engine has, by slot.
    slots: Vec<Option<Part>>,
    free: Vec<usize>,
    /// Rests of short transfers.
    again: VecDeque<Part>,
    jobs: Jobs<M>,
    /// Jobs with transfers not yet started, first come first.
    line: VecDeque<Key>,
    done: VecDeque<Completion<M>>,
    direct: bool,
    why: Option<String>,
}

/// A request on its way.
struct Job<M> {
    memory: M,
    start: Pointer,
    tag: u64,
    direction: Direction,
    segments: Vec<Segment>,
    /// Where the next transfer begins: which segment, and how far into it.
    next: (usize, usize),
    /// Transfers in the kernel or to be continued.
    open: usize,
    moved: usize,
    error: Option<DiskError>,
}

/// Jobs by place. Places are reused, so a key also holds the place's generation: the key of a
/// finished job finds nothing.
struct Jobs<M> {
    places: Vec<(u32, Option<Job<M>>)>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    place: u32,
    generation: u32,
}

impl<M> Default for Jobs<M> {
    fn default() -> Self {
        Jobs {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<M> Jobs<M> {
    fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    fn insert(&mut self, job: Job<M>) -> Key {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            (self.places.len() - 1) as u32
        });
        let (generation, held) = &mut self.places[place as usize];
        *held = Some(job);
        Key {
            place,
            generation: *generation,
        }
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut Job<M>> {
        let (generation, job) = &mut self.places[key.place as usize];
        job.as_mut().filter(|_| *generation == key.generation)
    }

    fn remove(&mut self, key: Key) -> Option<Job<M>> {
        self.get_mut(key)?;
        let (generation, job) = &mut self.places[key.place as usize];
        *generation = generation.wrapping_add(1);
        self.free.push(key.place);
        job.take()
    }
}

/// A transfer, and the request that it is a part of.
struct Part {
    job: Key,
    segment: usize,
    transfer: Transfer,
}

impl<M: Memory> Scheduler<M> {
    pub fn new(
        backend: Box<dyn Backend>,
        depth: usize,
        transfer_bytes: usize,
        why: Option<String>,
    ) -> Self {
        Scheduler {
            backend,
            transfer_bytes: transfer_bytes.min(LARGEST_TRANSFER),
            slots: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            again: VecDeque::new(),
            jobs: Jobs::default(),
            line: VecDeque::new(),
            done: VecDeque::new(),
            direct: true,
            why,
        }
    }

    /// Starts as many transfers as the depth allows; `Backend::submit` or `wait` submits them.
    fn start(&mut self) {
        while let Some(&slot) = self.free.last() {
            let Some(part) = self.again.pop_front().or_else(|| self.next_part()) else {
                break;
            };
            self.free.pop();
            let transfer = part.transfer.clone();
            self.slots[slot] = Some(part);
            self.backend.start(slot, transfer);
        }
    }

    /// Cuts the next transfer off the first request in line.
    fn next_part(&mut self) -> Option<Part> {
        while let Some(&number) = self.line.front() {
            // A job that ended early is no longer there.
            if let Some(job) = self.jobs.get_mut(number)
                && let Some((segment, transfer)) = job.next_transfer(self.transfer_bytes)
            {
                job.open += 1;
                return Some(Part {
                    job: number,
                    segment,
                    transfer,
                });
            }
            self.line.pop_front();
        }
        None
    }

    /// Handles all available outcomes.
    fn settle_all(&mut self) {
        while let Some(outcome) = self.backend.take() {
            self.settle(outcome);
        }
    }

    fn settle(&mut self, (slot, result): Outcome) {
        let mut part = self.slots[slot]
            .take()
            .expect("an outcome is of a transfer under way");
        self.free.push(slot);
        let number = part.job;
        let job = self
            .jobs
            .get_mut(number)
            .expect("a job lives as long as its transfers");
        job.open -= 1;
        let transfer = &mut part.transfer;
        let (failure, rest) = match result {
            Err(error) if is_transient(&error) => {
                transfer.attempt += 1;
                (None, true)
            }
            Err(error) => (Some(error), false),
            Ok(0) if transfer.direction.is_write() => {
                (Some(io::ErrorKind::WriteZero.into()), false)
            }
            Ok(0) => {
                // The file ends here, and with it the segment.
                let segment = &mut job.segments[part.segment];
                segment.len = segment.len.min((transfer.offset - segment.offset) as usize);
                (None, false)
            }
            Ok(moved) => {
                job.moved += moved;
                transfer.advance(moved);
                (None, transfer.len > 0)
            }
        };
        if let Some(source) = failure {
            let error = DiskError::range(
                operation(transfer.direction),
                transfer.file.path(),
                transfer.offset,
                transfer.len,
                source,
            );
            job.error.get_or_insert(error);
            let before = self.again.len();
            self.again.retain(|other| other.job != number);
            job.open -= before - self.again.len();
        } else if rest && job.error.is_none() {
            job.open += 1;
            self.again.push_back(part);
        }
        self.conclude(number);
    }

    /// Returns the memory if the kernel has none of it and nothing is left to do.
    fn conclude(&mut self, number: Key) {
        if !self.jobs.get_mut(number).is_some_and(|job| job.is_done()) {
            return;
        }
        let job = self.jobs.remove(number).expect("just seen");
        let result = job.error.map_or(Ok(job.moved), Err);
        self.done.push_back(Completion {
            memory: job.memory,
            tag: job.tag,
            result,
        });
    }
}

impl<M: Memory> Queue<M> for Scheduler<M> {
    fn submit(&mut self, mut request: Request<M>) {
        for segment in &request.segments {
            if let (true, Some(why)) = (self.direct, segment.file.why_buffered()) {
                self.direct = false;
                let before = self.why.take().map_or(String::new(), |why| why + "; ");
                self.why = Some(before + why);
            }
        }
        let start = Pointer(request.memory.as_mut_ptr());
        let error = check(&request, start).err();
        let job = Job {
            memory: request.memory,
            start,
            tag: request.tag,
            direction: request.direction,
            segments: request.segments,
            next: (0, 0),
            open: 0,
            moved: 0,
            error,
        };
        let number = self.jobs.insert(job);
        self.line.push_back(number);
        self.conclude(number);
        self.start();
    }

    fn wait(&mut self) -> Option<Completion<M>> {
        loop {
            self.settle_all();
            self.start();
            if self.done.is_empty() && self.jobs.len() > 0 {
                self.backend.wait();
            } else {
                self.backend.submit();
                return self.done.pop_front();
            }
        }
    }

    fn ready(&mut self) -> Option<Completion<M>> {
        if self.done.is_empty() {
            self.settle_all();
            self.start();
        }
        self.done.pop_front()
    }

    fn outstanding(&self) -> usize {
        self.jobs.len() + self.done.len()
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn mode(&self) -> Mode {
        Mode {
            engine: self.backend.engine().to_owned(),
            registered: self.backend.registered(),
            direct: self.direct,
            why: self.why.clone(),
        }
    }
}

impl<M: Memory> Drop for Scheduler<M> {
    /// The memory is dropped after this, so the kernel has to be done with it.
    fn drop(&mut self) {
        while self.free.len() < self.slots.len() {
            self.backend.wait();
            while let Some((slot, _)) = self.backend.take() {
                self.free.push(slot);
            }
        }
    }
}

impl<M> Job<M> {
    /// The next transfer, of at most `largest` bytes.
    fn next_transfer(&mut self, largest: usize) -> Option<(usize, Transfer)> {
        if self.error.is_some() {
            return None;
        }
        while self.segments.get(self.next.0)?.len <= self.next.1 {
            self.next = (self.next.0 + 1, 0);
        }
        let (index, within) = self.next;
        let segment = &self.segments[index];
        let file = segment.file.clone();
        let largest = if file.is_direct() {
            (largest / file.alignment()).max(1) * file.alignment()
        } else {
            largest
        };
        let len = largest.min(segment.len - within);
        self.next.1 += len;
        let transfer = Transfer {
            direction: self.direction,
            file,
            offset: segment.offset + within as u64,
            pointer: self.start.add(segment.at + within),
            len,
            unaligned: false,
            attempt: 0,
        };
        Some((index, transfer))
    }

    fn is_done(&self) -> bool {
        let (index, within) = self.next;
        let mut rest = self.segments.iter().skip(index);
        let started = rest.next().is_none_or(|segment| within >= segment.len)
            && rest.all(|segment| segment.len == 0);
        self.open == 0 && (started || self.error.is_some())
    }
}

/// Rejects what the kernel would reject without an explanation, and ranges outside the memory.
fn check<M: Memory>(request: &Request<M>, start: Pointer) -> Result<(), DiskError> {
    for Segment {
        file,
        offset,
        at,
        len,
    } in &request.segments
    {
        let alignment = file.alignment();
        let address = start.add(*at).0 as usize;
        let capacity = request.memory.capacity();
        let aligned = |number: usize| number.is_multiple_of(alignment);
        let problem = if at.checked_add(*len).is_none_or(|end| end > capacity) {
            format!("{len} bytes at {at} are outside the memory of {capacity} bytes")
        } else if offset
            .checked_add(*len as u64)
            .is_none_or(|end| end > i64::MAX as u64)
        {
            format!("{len} bytes there exceed the largest file")
        } else if file.is_direct()
            && !(aligned(*len) && aligned(address) && offset.is_multiple_of(alignment as u64))
        {
            format!(
                "a direct transfer needs offset, length {len} and address {address:#x} \
                 to be multiples of {alignment}"
            )
        } else {
            continue;
        };
        let source = io::Error::new(io::ErrorKind::InvalidInput, problem);
        let operation = operation(request.direction);
        return Err(DiskError::range(
            operation,
            file.path(),
            *offset,
            *len,
            source,
        ));
    }
    Ok(())
}

fn operation(direction: Direction) -> Operation {
    match direction {
        Direction::Read => Operation::Read,
        Direction::Write | Direction::WriteDurably => Operation::Write,
    }
}

/// Whether the kernel asks to retry. It cancels transfers of a thread that ends, which a queue may
/// outlive.
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EAGAIN | libc::ECANCELED)
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::file::DiskFile;

    /// Memory that is never looked at, but looks at what is in the kernel when it goes.
    struct Nowhere(Arc<Mutex<Log>>);

    const CAPACITY: usize = 1 << 20;

    impl Drop for Nowhere {
        fn drop(&mut self) {
            let mut log = self.0.lock().unwrap();
            log.dropped = Some(log.in_kernel);
        }
    }

    // SAFETY: no transfer of these tests is really done, so nothing is accessed.
    unsafe impl Memory for Nowhere {
        fn as_mut_ptr(&mut self) -> *mut u8 {
            std::ptr::without_provenance_mut(4096)
        }

        fn capacity(&self) -> usize {
            CAPACITY
        }
    }

    /// Completes the newest transfer first, with scripted results; records its transfers.
    #[derive(Default)]
    struct Scripted {
        started: Vec<(usize, Transfer)>,
        answers: VecDeque<io::Result<usize>>,
        log: Arc<Mutex<Log>>,
    }

    #[derive(Default)]
    struct Log {
        deepest: usize,
        transfers: Vec<(u64, usize, bool)>,
        waiting: bool,
        in_kernel: usize,
        /// Transfers in the kernel when the memory was dropped.
        dropped: Option<usize>,
    }

    impl Backend for Scripted {
        fn start(&mut self, slot: usize, transfer: Transfer) {
            let mut log = self.log.lock().unwrap();
            log.transfers
                .push((transfer.offset, transfer.len, transfer.unaligned));
            assert!(self.started.iter().all(|(other, _)| *other != slot));
            self.started.push((slot, transfer));
            log.in_kernel = self.started.len();
            log.deepest = log.deepest.max(log.in_kernel);
        }

        fn submit(&mut self) {}

        fn wait(&mut self) {
            assert!(!self.started.is_empty(), "waiting for nothing");
            self.log.lock().unwrap().waiting = true;
        }

        fn take(&mut self) -> Option<Outcome> {
            if !std::mem::take(&mut self.log.lock().unwrap().waiting) {
                return None;
            }
            let (slot, transfer) = self.started.pop()?;
            self.log.lock().unwrap().in_kernel = self.started.len();
            Some((slot, self.answers.pop_front().unwrap_or(Ok(transfer.len))))
        }

        fn engine(&self) -> &'static str {
            "scripted"
        }
    }

    /// A queue of depth 2 with one request.
    fn submitted(
        direction: Direction,
        lengths: &[usize],
        answers: Vec<io::Result<usize>>,
    ) -> (Scheduler<Nowhere>, Arc<Mutex<Log>>) {
        let log = Arc::<Mutex<Log>>::default();
        let backend = Scripted {
            answers: answers.into(),
            log: log.clone(),
            ..Scripted::default()
        };
        let mut queue = Scheduler::new(Box::new(backend), 2, 10_000, None);
        let file = DiskFile::null(Path::new("/some/file"), 1 << 20, None);
        let mut at = 0;
        let segments = lengths.iter().map(|&len| {
            at += len;
            Segment {
                file: file.clone(),
                offset: (at - len) as u64,
                at: at - len,
                len,
            }
        });
        let segments = segments.collect();
        queue.submit(Request {
            direction,
            memory: Nowhere(log.clone()),
            segments,
            tag: 1,
        });
        (queue, log)
    }

    fn run(
        direction: Direction,
        lengths: &[usize],
        answers: Vec<io::Result<usize>>,
    ) -> (Result<usize, DiskError>, Arc<Mutex<Log>>) {
        let (mut queue, log) = submitted(direction, lengths, answers);
        let Completion { memory, result, .. } = queue.wait().unwrap();
        drop(memory);
        assert_eq!(log.lock().unwrap().dropped, Some(0));
        assert!(queue.wait().is_none());
        assert_eq!((queue.outstanding(), queue.in_flight()), (0, 0));
        (result, log)
    }

    #[test]
    fn dropping_awaits_the_kernel_and_only_then_drops_the_memory() {
        let (queue, log) = submitted(Direction::Read, &[81920], Vec::new());
        assert_eq!((queue.outstanding(), queue.in_flight()), (1, 2));
        drop(queue);
        let log = log.lock().unwrap();
        assert_eq!(log.dropped, Some(0));
        // What was not in the kernel never gets there.
        assert_eq!(log.transfers.len(), 2);
    }

    #[test]
    fn cuts_to_the_transfer_size_and_keeps_the_depth() {
        let (result, log) = run(Direction::Write, &[40960, 0, 4096], Vec::new());
        let log = log.lock().unwrap();
        assert_eq!(result.unwrap(), 45056);
        assert_eq!(log.deepest, 2);
        // 10 000 is not aligned: 8192 is the most.
        let expected = (0..5)
            .map(|n| (n * 8192, 8192, false))
            .chain([(40960, 4096, false)]);
        assert_eq!(log.transfers, expected.collect::<Vec<_>>());
    }

    #[test]
    fn continues_aligned_or_through_the_cache() {
        let (result, log) = run(Direction::Write, &[8192], vec![Ok(4096), Ok(100), Ok(3996)]);
        assert_eq!(result.unwrap(), 8192);
        assert_eq!(
            log.lock().unwrap().transfers,
            [(0, 8192, false), (4096, 4096, false), (4196, 3996, true)]
        );
    }

    #[test]
    fn asks_again_when_interrupted() {
        let interrupted = || Err(io::Error::from_raw_os_error(libc::EINTR));
        let (result, log) = run(Direction::Read, &[4096], vec![interrupted(), interrupted()]);
        assert_eq!(result.unwrap(), 4096);
        assert_eq!(log.lock().unwrap().transfers, [(0, 4096, false); 3]);
    }

    #[test]
    fn the_end_of_a_file_ends_only_its_segment() {
        let (result, log) = run(
            Direction::Read,
            &[81920, 4096],
            vec![Ok(0), Ok(4096), Ok(8192)],
        );
        assert_eq!(result.unwrap(), 12288);
        assert_eq!(
            log.lock().unwrap().transfers,
            [(0, 8192, false), (8192, 8192, false), (81920, 4096, false)]
        );
    }

    #[test]
    fn an_error_awaits_what_is_under_way_and_drops_the_rest() {
        let broken = Err(io::Error::from_raw_os_error(libc::EIO));
        let (result, log) = run(Direction::Read, &[81920], vec![Ok(100), broken]);
        let error = result.unwrap_err();
        assert_eq!((error.offset(), error.length()), (Some(8292), 8092));
        assert_eq!(error.path(), Some(Path::new("/some/file")));
        assert_eq!(
            log.lock().unwrap().transfers,
            [(0, 8192, false), (8192, 8192, false), (8292, 8092, true)]
        );
    }

    #[test]
    fn a_write_of_nothing_is_an_error() {
        let (result, _) = run(Direction::Write, &[4096], vec![Ok(0)]);
        assert_eq!(result.unwrap_err().source.kind(), io::ErrorKind::WriteZero);
    }
}
