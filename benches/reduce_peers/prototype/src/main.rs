//! A bare program for one machine and this benchmark only: an upper bound.
//!
//! Fetching and reducing are fused: each request's bytes are reduced as they arrive from its
//! connection, while they are in the cache, and are never assembled. There is no index, no
//! retry, no choice: object names, their length, columns and k are known, and the compiler knows the
//! last two. `../peers/task.py` describes input and output.

mod fetch;
mod jobs;
mod task;

use std::io::BufRead;
use std::sync::Arc;
use std::time::Instant;

use fetch::Fetcher;
use jobs::{Covariance, Histogram, KMeans, PageRank};
use task::Task;

fn main() {
    let path = std::env::args().nth(1).expect("a task");
    if path == "--version" {
        return println!("{}", env!("CARGO_PKG_VERSION"));
    }
    let task = Task::read(&path);
    let fetcher = Fetcher::new(&task);
    println!("#ready");
    for line in std::io::stdin().lock().lines() {
        line.expect("a line");
        let began = Instant::now();
        let result = once(&task, &fetcher);
        let seconds = began.elapsed().as_secs_f64();
        let bytes: Vec<u8> = result.into_iter().flat_map(f64::to_le_bytes).collect();
        std::fs::write(task.text("result"), bytes).expect("a result");
        println!("#done {seconds:.6}");
    }
}

fn once(task: &Task, fetcher: &Fetcher) -> Vec<f64> {
    match task.text("job") {
        "kmeans" => {
            let job = Arc::new(KMeans::new(&task.centres()));
            job.finish(fetcher.reduced(&job))
        }
        "covariance" => Covariance::finish(fetcher.reduced(&Arc::new(Covariance))),
        "histogram" => {
            let (low, high) = (task.real("low"), task.real("high"));
            let job = Arc::new(Histogram::new(task.number("bins"), low, high));
            fetcher
                .reduced(&job)
                .into_iter()
                .map(|count| count as f64)
                .collect()
        }
        "pagerank" => PageRank::ranks(task, fetcher),
        job => panic!("no job {job}"),
    }
}
