//! `sort_rows` makes the same files of units in whatever order these come, on any number of lanes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tonnage_pipeline::{
    Arena, Failure, Graph, MemoryNeed, Node, Port, RunHandle, RunOptions, Stage, StageError,
    StageSpec, WorkerPorts, run,
};
use tonnage_stages::extent::{Extent, FileRef, Piece};
use tonnage_stages::ports::{BLOCKS, PARTITIONS};
use tonnage_stages::totals::Total;
use tonnage_stages::work::{
    FileBlocks, Quota, RowEncoder, RowEncoding, RowFiles, RowUnit, SortRows,
};
use tonnage_tables::{RowBuilder, RowShape};

use crate::common::{Random, seeded};

/// Bytes of a key: the folder, the unit, and the rest.
const KEY_BYTES: usize = 3;
/// Bytes of a key in a file, with what fills it up: so that files have several blocks.
const WIDTH: usize = 64;
/// Bytes of a buffer for a unit, and for a block of a file.
const BUFFER_BYTES: usize = 4096;

type Key = [u8; KEY_BYTES];

fn shape() -> RowShape {
    RowShape::new(Some(KEY_BYTES), false)
}

/// A unit before it has a number.
#[derive(Clone, Debug)]
struct UnitCase {
    keys: Vec<u8>,
    continues: bool,
    files: usize,
    quota: Option<u64>,
}

fn unit_case() -> impl Strategy<Value = UnitCase> {
    let keys = prop::collection::vec(any::<u8>(), 1..60);
    let quota = prop::option::weighted(0.3, 0_u64..40);
    let parts = (keys, any::<bool>(), 1_usize..4, quota);
    parts.prop_map(|(keys, continues, files, quota)| UnitCase {
        keys,
        continues,
        files: if continues { 1 } else { files },
        quota,
    })
}

/// Units whose keys ascend, and their rows.
struct Units {
    units: Vec<RowUnit>,
    rows: Vec<Vec<u8>>,
    keys: Vec<Vec<Key>>,
    lanes: Vec<usize>,
}

impl Units {
    fn new(cases: &[UnitCase]) -> Self {
        let (mut first_file, mut files, mut lane) = (0, 1, 0);
        let mut made = Self {
            units: Vec::new(),
            rows: Vec::new(),
            keys: Vec::new(),
            lanes: Vec::new(),
        };
        for (number, case) in cases.iter().enumerate() {
            let continues = case.continues && number > 0 && files == 1;
            if !continues && number > 0 {
                (first_file, lane) = (first_file + files, lane + 1);
            }
            files = case.files;
            // Folders end within units, and continue in the next one.
            let key = |&rest: &u8| {
                [
                    ((number + usize::from(rest > 128)) / 2) as u8,
                    number as u8,
                    rest,
                ]
            };
            let mut keys: Vec<Key> = case.keys.iter().map(key).collect();
            let mut rows = RowBuilder::new(shape());
            for key in &keys {
                let pushed: Result<(), StageError> = rows.push_whole(key, 0);
                pushed.expect("a row");
            }
            let rows: Vec<u8> = rows.rows().iter().flatten().copied().collect();
            made.units.push(RowUnit {
                extent: Arc::new(Extent {
                    number,
                    offset: 0,
                    in_order: false,
                    pieces: vec![Piece {
                        file: FileRef::Path(Path::new("scratch").into()),
                        offset: 0,
                        len: rows.len(),
                        crc: None,
                    }],
                }),
                first_file,
                files,
                continues,
                quota: case.quota.map(|rows| Arc::new(Quota::new(rows))),
            });
            keys.sort_unstable();
            keys.truncate(case.quota.unwrap_or(u64::MAX) as usize);
            made.rows.push(rows);
            made.keys.push(keys);
            made.lanes.push(lane);
        }
        made
    }
}

/// Gives units in some order.
#[derive(Clone)]
struct Shuffled {
    /// The number, the lane and the rows of each.
    units: Arc<Vec<(usize, usize, Vec<u8>)>>,
}

impl StageSpec for Shuffled {
    fn kind(&self) -> &'static str {
        "shuffled"
    }

    fn config(&self) -> Value {
        json!({})
    }

    fn input(&self) -> Option<Port> {
        None
    }

    fn output(&self) -> Option<Port> {
        Some(PARTITIONS)
    }

    fn workers(&self) -> usize {
        1
    }

    fn memory(&self) -> MemoryNeed {
        MemoryNeed {
            buffers: self.units.len(),
            buffer_bytes: BUFFER_BYTES,
            private_bytes: 0,
        }
    }

    fn start(&self, _worker: usize, _ports: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(self.clone()))
    }
}

impl Stage for Shuffled {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        for (number, lane, rows) in self.units.iter() {
            let mut buffer = ports.buffer()?;
            buffer.append(rows);
            (buffer.number, buffer.lane) = (*number, *lane);
            ports.send(buffer)?;
        }
        Ok(())
    }
}

/// Blocks of files by number and offset, and the numbers of those that have ended.
type Content = (BTreeMap<(usize, u64), Vec<u8>>, BTreeSet<usize>);

/// Keeps the blocks of files.
#[derive(Clone, Default)]
struct Blocks(Arc<Mutex<Content>>);

impl StageSpec for Blocks {
    fn kind(&self) -> &'static str {
        "blocks"
    }

    fn config(&self) -> Value {
        json!({})
    }

    fn input(&self) -> Option<Port> {
        Some(BLOCKS)
    }

    fn output(&self) -> Option<Port> {
        None
    }

    fn workers(&self) -> usize {
        1
    }

    fn start(&self, _worker: usize, _ports: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(self.clone()))
    }
}

impl Stage for Blocks {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        while let Some(block) = ports.receive()? {
            let (blocks, ended) = &mut *self.0.lock().expect("no panic");
            assert!(!ended.contains(&block.number), "a file has ended already");
            blocks.insert((block.number, block.offset), block.payload().to_vec());
            if block.is_last {
                ended.insert(block.number);
            }
        }
        Ok(())
    }
}

/// Writes nothing but the rows' keys.
#[derive(Debug)]
struct KeysOnly;

struct KeysOfFile<'a>(FileBlocks<'a>);

impl RowEncoding for KeysOnly {
    fn begin<'a>(&self, file: FileBlocks<'a>) -> Result<Box<dyn RowEncoder + 'a>, StageError> {
        Ok(Box::new(KeysOfFile(file)))
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

impl RowEncoder for KeysOfFile<'_> {
    fn push(&mut self, rows: &[&[u8]]) -> Result<(), StageError> {
        rows.iter().try_for_each(|row| {
            let mut wide = [0; WIDTH];
            wide[..KEY_BYTES].copy_from_slice(shape().key(row));
            self.0.append(&wide)
        })
    }

    fn finish(mut self: Box<Self>) -> Result<(), StageError> {
        self.0.end()
    }
}

/// Files by number: the folder, if there are any, and the place.
#[derive(Debug)]
struct Files {
    has_folders: bool,
    begun: Mutex<Vec<(Vec<u8>, usize)>>,
    rows: Mutex<[u64; 2]>,
    ended: Mutex<Vec<usize>>,
}

impl RowFiles for Files {
    fn folder<'r>(&self, row: &'r [u8]) -> Result<&'r [u8], StageError> {
        Ok(&shape().key(row)[..usize::from(self.has_folders)])
    }

    fn is_in(&self, folder: &[u8], row: &[u8]) -> bool {
        shape().key(row).starts_with(folder)
    }

    fn begin(&self, _unit: usize, place: usize, row: &[u8]) -> Result<usize, StageError> {
        let mut begun = self.begun.lock().expect("no panic");
        begun.push((self.folder(row)?.to_vec(), place));
        Ok(begun.len() - 1)
    }

    fn count(&self, _unit: usize, file: Option<usize>, rows: &Total, left_out: &Total) {
        let [all, others] = &mut *self.rows.lock().expect("no panic");
        *all += rows.records;
        *others += left_out.records;
        assert!(file.is_some() || rows.records == left_out.records);
    }

    fn end_unit(&self, unit: usize) -> Result<(), StageError> {
        self.ended.lock().expect("no panic").push(unit);
        Ok(())
    }
}

proptest! {
    #![proptest_config(seeded(60))]

    #[test]
    fn units_in_any_order_become_the_same_files(
        cases in prop::collection::vec(unit_case(), 1..20),
        workers in 1_usize..4,
        has_folders in any::<bool>(),
        is_unique in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let Units { units, rows, keys, lanes } = Units::new(&cases);
        let mut order: Vec<usize> = (0..units.len()).collect();
        let mut random = Random(seed);
        for place in (1..order.len()).rev() {
            order.swap(place, random.below(place + 1));
        }
        let shuffled = order.iter().map(|&unit| (unit, lanes[unit], rows[unit].clone()));
        let source = Shuffled { units: Arc::new(shuffled.collect()) };
        let files = Arc::new(Files {
            has_folders,
            begun: Mutex::default(),
            rows: Mutex::default(),
            ended: Mutex::default(),
        });
        let sort = SortRows {
            units: Arc::new(units.clone()),
            shape: shape(),
            is_unique,
            encoding: Arc::new(KeysOnly),
            files: Arc::clone(&files) as Arc<_>,
            most_rows: 60,
            workers,
            lanes: 1,
            buffers: 2 * workers,
            buffer_bytes: BUFFER_BYTES,
        };
        let blocks = Blocks::default();
        let graph = Graph::chain([
            Node::new("source", source),
            Node::new("sort_rows", sort),
            Node::new("blocks", blocks.clone()),
        ]);
        let options = RunOptions {
            memory: Arc::new(Arena::map(graph.memory_bytes()).expect("memory")),
            duration: None,
            sample_every: Duration::from_secs(1),
        };
        run(&graph, &options, &RunHandle::default()).expect("sorted");

        let begun = files.begun.lock().expect("no panic").clone();
        let (content, ended) = std::mem::take(&mut *blocks.0.lock().expect("no panic"));
        prop_assert!(ended.iter().copied().eq(0..begun.len()));
        let mut found: BTreeMap<(Vec<u8>, usize), Vec<u8>> = BTreeMap::new();
        for ((number, _), bytes) in content {
            found.entry(begun[number].clone()).or_default().extend(bytes);
        }
        // Each place of a folder has one file at most, with rows, which are those of its folder.
        prop_assert_eq!(found.len(), begun.len());
        for ((folder, _), bytes) in &found {
            prop_assert!(!bytes.is_empty());
            prop_assert!(bytes.chunks(WIDTH).all(|key| key.starts_with(folder)));
        }
        // One behind the other, they are the rows in order.
        let mut wanted = keys.concat();
        if is_unique {
            wanted.dedup();
        }
        let whole = found.values().flat_map(|bytes| bytes.chunks(WIDTH));
        let sorted: Vec<&[u8]> = whole.map(|key| &key[..KEY_BYTES]).collect();
        prop_assert_eq!(sorted, wanted.iter().map(|key| &key[..]).collect::<Vec<_>>());
        // A unit of one file has one in each of its folders, which those that continue it have, too.
        for (unit, keys) in units.iter().zip(&keys) {
            let folders: BTreeSet<&[u8]> =
                keys.iter().map(|key| &key[..usize::from(has_folders)]).collect();
            for folder in folders {
                let places = unit.first_file..unit.first_file + unit.files;
                let of_unit = places.filter(|&place| found.contains_key(&(folder.to_vec(), place)));
                prop_assert!((1..=unit.files).contains(&of_unit.count()));
            }
        }
        let [all, left_out] = *files.rows.lock().expect("no panic");
        prop_assert_eq!(all, cases.iter().map(|case| case.keys.len() as u64).sum::<u64>());
        prop_assert_eq!(all - left_out, wanted.len() as u64);
        let mut units_ended = files.ended.lock().expect("no panic").clone();
        units_ended.sort_unstable();
        prop_assert!(units_ended.into_iter().eq(0..units.len()));
    }
}
