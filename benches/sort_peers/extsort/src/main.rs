//! The extsort crate sorting raw 100-byte records: INPUT OUTPUT_DIR SCRATCH_DIR MEMORY_MB.
//!
//! Half of the memory holds one segment of records, counted with their share of the allocator and
//! of the parallel sort; the page cache of the segment files has the rest.

use std::env;
use std::fs::File;
use std::io::{BufReader, BufWriter, Error, ErrorKind, Read, Result, Write};
use std::path::Path;

use extsort::{ExternalSorter, Sortable};

const RECORD: usize = 100;
const KEY: usize = 10;
/// A record, its allocator's rounding, a pointer to it, and the sort's copy of that pointer.
const HELD: usize = RECORD + 12 + 2 * size_of::<Record>();
const BUFFER: usize = 4 << 20;

struct Record(Box<[u8; RECORD]>);

impl Sortable for Record {
    fn encode<W: Write>(&self, writer: &mut W) -> Result<()> {
        writer.write_all(&self.0[..])
    }

    fn decode<R: Read>(reader: &mut R) -> Result<Record> {
        let mut bytes = Box::new([0; RECORD]);
        reader.read_exact(&mut bytes[..])?;
        Ok(Record(bytes))
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [input, output, scratch, memory] = arguments.as_slice() else {
        return Err(usage("usage: extsort-peer INPUT OUTPUT_DIR SCRATCH_DIR MEMORY_MB"));
    };
    let memory_mb: usize = memory.parse().map_err(|_| usage("MEMORY_MB must be a whole number"))?;

    let file = File::open(input)?;
    let count = file.metadata()?.len() / RECORD as u64;
    let mut reader = BufReader::with_capacity(BUFFER, file);
    let records = (0..count).map(|_| Record::decode(&mut reader).expect("the input is readable"));
    let sorted = ExternalSorter::new()
        .with_segment_size((memory_mb << 20) / 2 / HELD)
        .with_sort_dir(scratch.into())
        .with_parallel_sort()
        .sort_by(records, |a: &Record, b: &Record| a.0[..KEY].cmp(&b.0[..KEY]))?;

    let mut writer = BufWriter::with_capacity(BUFFER, File::create(Path::new(output).join("sorted"))?);
    for record in sorted {
        record?.encode(&mut writer)?;
    }
    writer.flush()
}

fn usage(message: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
