//! Ranges of objects, fetched by lanes that reduce bytes as they arrive.
//!
//! A lane has one request in flight. A thread that has a piece of a body takes one of the job's
//! partial results for as long as it reduces it, so there are only as many of those as threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ClientOptions, GetOptions, GetRange, ObjectStore};
use tokio::runtime::{Builder, Runtime};

use crate::task::Task;

const LANES: usize = 16;
const RANGE_BYTES: usize = 4 << 20;

/// A reduction of rows.
pub trait Job: Send + Sync + 'static {
    type Partial: Send;
    /// Bytes of a row.
    const BYTES: usize;
    fn empty(&self) -> Self::Partial;
    /// Adds whole rows.
    fn add(&self, rows: &[u8], into: &mut Self::Partial);
    fn merge(&self, one: Self::Partial, other: Self::Partial) -> Self::Partial;
}

pub struct Fetcher {
    runtime: Runtime,
    source: Arc<Source>,
}

/// Objects of one length.
struct Source {
    store: AmazonS3,
    folder: String,
    objects: usize,
    object_bytes: usize,
}

/// One pass over all rows.
struct Round<J: Job> {
    source: Arc<Source>,
    job: Arc<J>,
    next: AtomicUsize,
    partials: Mutex<Vec<J::Partial>>,
}

impl Fetcher {
    pub fn new(task: &Task) -> Self {
        let folder = if task.text("job") == "pagerank" {
            "edges"
        } else {
            "points"
        };
        let store = AmazonS3Builder::from_env()
            .with_bucket_name(task.text("bucket"))
            .with_endpoint(task.text("endpoint"))
            .with_client_options(ClientOptions::new().with_allow_http(true))
            .build()
            .expect("a store");
        Self {
            runtime: Builder::new_multi_thread()
                .worker_threads(task.number("workers"))
                .enable_all()
                .build()
                .expect("threads"),
            source: Arc::new(Source {
                store,
                folder: task.text(folder).into(),
                objects: task.number("objects"),
                object_bytes: task.number("object_bytes"),
            }),
        }
    }

    /// Reduces all rows.
    pub fn reduced<J: Job>(&self, job: &Arc<J>) -> J::Partial {
        let round = Arc::new(Round {
            source: self.source.clone(),
            job: job.clone(),
            next: AtomicUsize::new(0),
            partials: Mutex::default(),
        });
        self.runtime.block_on(async {
            let lanes: Vec<_> = (0..LANES)
                .map(|_| tokio::spawn(Arc::clone(&round).lane()))
                .collect();
            for lane in lanes {
                lane.await.expect("a lane that ends well");
            }
        });
        let partials = std::mem::take(&mut *round.partials.lock().expect("no panic"));
        partials
            .into_iter()
            .reduce(|one, other| job.merge(one, other))
            .expect("some rows")
    }
}

impl Source {
    fn range(&self, number: usize) -> Option<(usize, usize)> {
        let of_object = self.object_bytes.div_ceil(RANGE_BYTES);
        let (object, place) = (number / of_object, number % of_object);
        (object < self.objects).then_some((object, place * RANGE_BYTES))
    }
}

impl<J: Job> Round<J> {
    async fn lane(self: Arc<Self>) {
        while let Some((object, begin)) =
            self.source.range(self.next.fetch_add(1, Ordering::Relaxed))
        {
            self.reduce(object, begin).await;
        }
    }

    async fn reduce(&self, object: usize, begin: usize) {
        let source = &self.source;
        let end = (begin + RANGE_BYTES).min(source.object_bytes);
        let path = Path::from(format!("{}/{object:02}.bin", source.folder));
        let options = GetOptions {
            range: Some(GetRange::Bounded(begin as u64..end as u64)),
            ..Default::default()
        };
        let answer = source
            .store
            .get_opts(&path, options)
            .await
            .expect("an answer");
        let (mut pieces, mut come) = (answer.into_stream(), 0);
        let mut cut = Vec::with_capacity(J::BYTES); // The row that the end of a piece cuts.
        while let Some(piece) = pieces.next().await {
            let piece = piece.expect("bytes");
            come += piece.len();
            let taken = self.partials.lock().expect("no panic").pop();
            let mut partial = taken.unwrap_or_else(|| self.job.empty());
            let mut rest = &piece[..];
            if !cut.is_empty() {
                let (head, tail) = rest.split_at(rest.len().min(J::BYTES - cut.len()));
                cut.extend_from_slice(head);
                rest = tail;
            }
            if cut.len() == J::BYTES {
                self.job.add(&cut, &mut partial);
                cut.clear();
            }
            let (whole, tail) = rest.split_at(rest.len() / J::BYTES * J::BYTES);
            self.job.add(whole, &mut partial);
            cut.extend_from_slice(tail);
            self.partials.lock().expect("no panic").push(partial);
        }
        assert_eq!((come, cut.len()), (end - begin, 0), "the whole range");
    }
}
