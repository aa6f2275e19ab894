//! Read all objects of a folder by concurrent ranges into reused memory, and nothing else.
//!
//!     retrieval-probe BUCKET PREFIX RANGE_BYTES AT_ONCE TIMES
//!
//! Uses `object_store` as documented: one client with its pool of connections, a runtime with a
//! thread for each core, a task for each request in flight. It prints a line of JSON: bytes, seconds
//! and core seconds. Keys and the address come from the environment.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore};
use tokio::runtime::Builder;

fn main() {
    let given: Vec<String> = env::args().skip(1).collect();
    let [bucket, prefix, range_bytes, at_once, times] = given.as_slice() else {
        panic!("give BUCKET PREFIX RANGE_BYTES AT_ONCE TIMES");
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let (range_bytes, at_once, times) = (number(range_bytes), number(at_once), number(times));
    let runtime = Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let store = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_allow_http(true);
        let store = Arc::new(store.build().expect("a store"));
        let listed = store.list(Some(&Path::from(prefix.as_str())));
        let objects: Vec<_> = listed.try_collect().await.expect("a list");
        let mut ranges = Vec::new();
        for _ in 0..times {
            for object in &objects {
                for begin in (0..object.size).step_by(range_bytes) {
                    let end = (begin + range_bytes as u64).min(object.size);
                    ranges.push((object.location.clone(), begin..end));
                }
            }
        }
        let bytes: u64 = ranges
            .iter()
            .map(|(_, range)| range.end - range.start)
            .sum();
        let (ranges, next) = (Arc::new(ranges), Arc::new(AtomicUsize::new(0)));
        let (began, cpu) = (Instant::now(), core_seconds());
        let tasks: Vec<_> = (0..at_once)
            .map(|_| {
                let (store, ranges, next) = (store.clone(), ranges.clone(), next.clone());
                tokio::spawn(async move {
                    let mut memory = vec![0; range_bytes];
                    while let Some((key, range)) = ranges.get(next.fetch_add(1, Relaxed)) {
                        let options = GetOptions {
                            range: Some(GetRange::Bounded(range.clone())),
                            ..GetOptions::default()
                        };
                        let got = store.get_opts(key, options).await.expect("an answer");
                        let (mut body, mut filled) = (got.into_stream(), 0);
                        while let Some(part) = body.next().await {
                            let part = part.expect("a whole body");
                            memory[filled..filled + part.len()].copy_from_slice(&part);
                            filled += part.len();
                        }
                        assert_eq!(filled as u64, range.end - range.start);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("it does not panic");
        }
        let (seconds, cpu) = (began.elapsed().as_secs_f64(), core_seconds() - cpu);
        println!(
            "{}",
            serde_json::json!({"bytes": bytes, "seconds": seconds, "cpu_seconds": cpu})
        );
    });
}

fn core_seconds() -> f64 {
    // SAFETY: zeros are a valid `rusage`, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
