//! A real server for the tests: versitygw, as `tools/setup-tests` has built it.

#![allow(dead_code, reason = "not every test file needs all of it")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tonnage_object::{Keys, Settings};

pub const BUCKET: &str = "tests";

/// A server that ends with the test.
pub struct Server {
    process: Child,
    address: String,
    directory: TempDir,
}

impl Server {
    /// A server with these flags; `None`, said in a line, where it is not built.
    pub fn start(flags: &[&str]) -> Option<Self> {
        let crate_root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let mut above = crate_root.ancestors();
        let root = above.find(|place| place.join("Cargo.lock").exists());
        let program = root.expect("a workspace").join(".tools/s3server");
        if !program.exists() {
            eprintln!("skipped: tools/setup-tests has not built .tools/s3server");
            return None;
        }
        // On a disk, since it keeps what it knows of objects in extended attributes.
        let directory = TempDir::with_prefix_in("s3-", env!("CARGO_TARGET_TMPDIR"));
        let directory = directory.expect("a directory");
        let mut process = Command::new(program)
            .args(["-root".as_ref(), directory.path().as_os_str()])
            .args(["-bucket", BUCKET])
            .args(flags)
            .stdin(Stdio::piped()) // its end is the server's
            .stdout(Stdio::piped())
            .spawn()
            .expect("a server");
        let out = BufReader::new(process.stdout.take().expect("piped"));
        let mut lines = out.lines().map(|line| line.expect("text"));
        let address = lines.find(|line| line.starts_with("http://"));
        Some(Self {
            address: address.expect("an address"),
            process,
            directory,
        })
    }

    /// How to use it.
    pub fn settings(&self) -> Settings {
        Settings {
            bucket: BUCKET.to_owned(),
            endpoint: Some(self.address.clone()),
            keys: Some(Keys {
                id: "tester".to_owned(),
                secret: "a secret for tests".to_owned(),
            }),
            ..Settings::default()
        }
    }

    /// What it keeps of uploads that were neither completed nor given up.
    pub fn unfinished(&self) -> Vec<PathBuf> {
        let uploads = self.directory.path().join(BUCKET).join(".sgwtmp/multipart");
        let objects = fs::read_dir(uploads).into_iter().flatten();
        let of_object = |object: PathBuf| fs::read_dir(object).into_iter().flatten();
        let paths = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").path();
        objects.map(paths).flat_map(of_object).map(paths).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _waited = self.process.wait();
    }
}

/// Bytes that are the same for the same seed, and different everywhere.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}
