//! Sequential throughput of a disk through one queue, or a reading and a writing one
//! at once: to compare with other programs, and to choose depth and transfer size.
//!
//! `throughput <directory> <read|write|rewrite|both> [gigabytes] [depth] [transfer KiB] [engine]
//! [file to read]`
//!
//! Without a file to read, one is written first: a disk still busy with that reads
//! more slowly.
//! Prints GB/s, CPU seconds per GB, and how it was done.

#[path = "../tests/suite/common/mod.rs"]
mod common;

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use common::Arena;
use tonnage_disk::{Direction, Disk, DiskFile, Engine, Mode, Queue, Request, Segment};

/// Moves a whole file, with twice as many requests outstanding as the depth.
fn stream(disk: &Disk, file: &Arc<DiskFile>, direction: Direction) -> Result<Mode, String> {
    let len = disk.transfer_bytes;
    let arena = Arena::new(disk.depth * 2 * len);
    let mut queue = disk
        .queue(&[arena.region()])
        .map_err(|error| error.to_string())?;
    let mut blocks: Vec<_> = (0..disk.depth * 2).map(|_| arena.block(len)).collect();
    for offset in (0..file.len()).step_by(len) {
        let memory = match blocks.pop() {
            Some(block) => block,
            None => next_memory(&mut *queue)?,
        };
        let segments = vec![Segment {
            file: file.clone(),
            offset,
            at: 0,
            len,
        }];
        queue.submit(Request {
            direction,
            memory,
            segments,
            tag: offset,
        });
    }
    while queue.outstanding() > 0 {
        next_memory(&mut *queue)?;
    }
    Ok(queue.mode())
}

fn next_memory<M: tonnage_disk::Memory>(queue: &mut dyn Queue<M>) -> Result<M, String> {
    let completion = queue.wait().expect("something is outstanding");
    completion.result.map_err(|error| error.to_string())?;
    Ok(completion.memory)
}

/// User and system time of this process and its threads, from the kernel's count in
/// hundredths of a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| {
        arguments
            .get(index)
            .map_or(Ok(default), |argument| argument.parse())
    };
    let [dir, what, ..] = arguments.as_slice() else {
        return Err("throughput <directory> <read|write|rewrite|both> [gigabytes] [depth] [transfer KiB] [engine] [file to read]".into());
    };
    let bytes = number(2, 4)? as u64 * 1_000_000_000 / 4_194_304 * 4_194_304;
    let engine = match arguments.get(5).map_or("uring", String::as_str) {
        "threads" => Engine::Threads,
        "null" => Engine::Null,
        _ => Engine::Uring,
    };
    let disk = Disk {
        engine,
        depth: number(3, 8)?,
        transfer_bytes: number(4, 1024)? << 10,
        ..Disk::default()
    };
    let old = match arguments.get(6) {
        Some(path) => disk.open_read(path)?,
        None => disk.scratch(dir, bytes)?,
    };
    if what != "write" && arguments.get(6).is_none() {
        stream(&disk, &old, Direction::Write)?;
    }
    let new = disk.scratch(dir, bytes)?;
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let mode = std::thread::scope(|scope| {
        let write = match what.as_str() {
            "write" | "both" => Some(&new),
            "rewrite" => Some(&old),
            _ => None,
        };
        let writing = write.map(|file| scope.spawn(|| stream(&disk, file, Direction::Write)));
        let read =
            matches!(what.as_str(), "read" | "both").then(|| stream(&disk, &old, Direction::Read));
        let written = writing.map(|thread| thread.join().expect("no panic"));
        read.or(written).unwrap_or(Err(format!("what is {what}?")))
    })?;
    let read = if matches!(what.as_str(), "read" | "both") {
        old.len()
    } else {
        0
    };
    let written = if what == "read" { 0 } else { bytes };
    let moved = (read + written) as f64 / 1e9;
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    println!(
        "{what}: {:.3} GB/s, {:.3} CPU s/GB, depth {}, {} KiB, {mode:?}",
        moved / seconds,
        cpu / moved,
        disk.depth,
        disk.transfer_bytes >> 10
    );
    Ok(())
}
