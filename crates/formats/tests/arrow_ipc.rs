//! Arrow IPC files and streams in splits: together they are the file, however small they are, and
//! each needs only its ranges. Damaged files are refused.

mod common;

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray, Float64Array,
    Int32Array, LargeStringArray, NullArray, RecordBatch, StringViewArray, StructArray,
};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Fields};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use common::Memory;
use proptest::prelude::*;
use tonnage_formats::arrow_ipc::{ArrowFile, Decoder, FileWriter};
use tonnage_formats::{FormatError, Pieces, ReadAt};

/// Columns of every shape; `seed` tells the values.
fn batch(rows: usize, seed: u64) -> RecordBatch {
    let number = |row: usize| (row as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
    let some = |row: usize| !number(row).is_multiple_of(5);
    let text = |row: usize| some(row).then(|| "text ".repeat(number(row) as usize % 7));
    let mut lists = ListBuilder::new(ListBuilder::new(Int64Builder::new()));
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    for row in 0..rows {
        for item in 0..number(row) % 4 {
            let items = (0..item).map(|item| (item != 1).then_some(item as i64));
            lists.values().append_option((item != 2).then_some(items));
            maps.keys().append_value(format!("key {item}"));
            maps.values().append_value(item as i64);
        }
        lists.append(some(row));
        maps.append(true).expect("as many keys as values");
    }
    let fields = Fields::from(vec![
        Field::new("flag", DataType::Boolean, true),
        Field::new("text", DataType::LargeUtf8, true),
    ]);
    let flags = BooleanArray::from_iter((0..rows).map(|row| some(row).then_some(row % 2 == 0)));
    let texts = LargeStringArray::from_iter((0..rows).map(text));
    let nulls = (0..rows).map(some).collect::<Vec<_>>().into();
    let within: Vec<ArrayRef> = vec![Arc::new(flags.clone()), Arc::new(texts)];
    let wide = (0..rows).map(|row| some(row).then(|| number(row).to_le_bytes()));
    let decimals = Decimal128Array::from_iter((0..rows).map(|row| Some(number(row) as i128)));
    let words: DictionaryArray<Int32Type> = (0..rows)
        .map(text)
        .collect::<Vec<_>>()
        .iter()
        .map(|word| word.as_deref())
        .collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("flag", Arc::new(flags)),
        ("lists", Arc::new(lists.finish())),
        ("maps", Arc::new(maps.finish())),
        (
            "struct",
            Arc::new(StructArray::new(fields, within, Some(nulls))),
        ),
        (
            "wide",
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(wide, 8).expect("eight")),
        ),
        ("decimals", Arc::new(decimals)),
        ("words", Arc::new(words)),
        (
            "views",
            Arc::new(StringViewArray::from_iter((0..rows).map(text))),
        ),
        ("nothing", Arc::new(NullArray::new(rows))),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .expect("a batch")
}

fn file_of(batches: &[RecordBatch]) -> Result<Memory, FormatError> {
    let mut writer = FileWriter::new(&batches[0].schema(), None, Vec::new())?;
    for batch in batches {
        writer.append(batch)?;
    }
    writer.finish()?;
    Ok(Memory(std::mem::take(writer.inner_mut()).into()))
}

/// The rows of all splits, and how many these are.
fn read(
    file: &Memory,
    columns: &[usize],
    most_bytes: u64,
) -> Result<(Vec<RecordBatch>, usize), FormatError> {
    let opened = ArrowFile::open(Arc::new(file.clone()))?;
    let projection = opened.projection(columns)?;
    let splits = opened.splits(&projection, most_bytes)?;
    let mut batches = Vec::new();
    for split in &splits {
        let pieces = split.ranges.iter();
        let pieces = pieces.map(|range| Ok((range.start, file.read(range.clone())?)));
        let pieces = Pieces::new(pieces.collect::<Result<_, FormatError>>()?);
        for batch in Decoder::new(split, &projection, pieces, 100)? {
            batches.push(batch?);
        }
    }
    Ok((batches, splits.len()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn all_splits_together_are_the_file(
        rows in prop::collection::vec(0_usize..900, 1..4),
        seed in any::<u64>(),
        most_bytes in 1000_u64..200_000,
        columns in prop::sample::subsequence((0..9_usize).collect::<Vec<_>>(), 1..9).prop_shuffle(),
    ) {
        let batches: Vec<RecordBatch> = rows.iter().map(|&rows| batch(rows, seed)).collect();
        let file = file_of(&batches).expect("a file");
        let (found, _) = read(&file, &columns, most_bytes).expect("rows");
        let schema = Arc::new(batches[0].schema().project(&columns).expect("columns"));
        let expected = concat_batches(&batches[0].schema(), &batches).expect("rows");
        let expected = expected.project(&columns).expect("columns");
        let found = concat_batches(&schema, &found).expect("rows");
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn damaged_files_are_refused_or_read_but_no_panic(
        rows in 0_usize..200,
        place in any::<prop::sample::Index>(),
        bit in 0_u32..8,
        kept in prop_oneof![Just(None), any::<prop::sample::Index>().prop_map(Some)],
        is_stream in any::<bool>(),
        most_bytes in 1000_u64..20_000,
    ) {
        let batches = [batch(rows, 1), batch(rows, 2)];
        let mut bytes = match is_stream {
            true => stream_of(&batches[..1]),
            false => file_of(&batches).expect("a file").0.to_vec(),
        };
        let place = place.index(bytes.len());
        bytes[place] ^= 1_u8 << bit;
        if let Some(kept) = kept {
            bytes.truncate(kept.index(bytes.len()));
        }
        if let Err(why) = read(&Memory(bytes.into()), &[0, 1, 2, 3, 4, 5, 6, 7, 8], most_bytes) {
            prop_assert!(!why.to_string().contains('\n'), "{why}");
        }
    }
}

fn stream_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).expect("a stream");
    for batch in batches {
        writer.write(batch).expect("a batch");
    }
    writer.into_inner().expect("a stream")
}

#[test]
fn a_large_batch_is_divided_by_its_rows() {
    let whole = batch(10_000, 7);
    let file = file_of(std::slice::from_ref(&whole)).expect("a file");
    let columns = [0, 1, 2, 3, 4, 5, 8];
    let most_bytes = file.len() / 20;
    let (found, splits) = read(&file, &columns, most_bytes).expect("rows");
    assert!((15..40).contains(&splits), "{splits} splits");
    let expected = whole.project(&columns).expect("columns");
    assert_eq!(
        concat_batches(&expected.schema(), &found).expect("rows"),
        expected
    );

    let opened = ArrowFile::open(Arc::new(file)).expect("a file");
    let projection = opened.projection(&columns).expect("columns");
    for split in opened.splits(&projection, most_bytes).expect("splits") {
        let bytes: u64 = split
            .ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum();
        // Values differ in length, and what lies between buffers may be read, too.
        assert!(bytes < 2 * most_bytes, "{bytes} bytes");
        let row = (split.rows.start + split.rows.end) / 2;
        let again = opened
            .split_at(&projection, row, most_bytes)
            .expect("a split");
        assert_eq!(again.expect("a split").rows, split.rows);
    }
}

#[test]
fn a_stream_is_read_as_a_file_is() {
    let batches = [batch(300, 1)];
    let mut bytes = stream_of(&batches);
    for end in [0, 8] {
        bytes.truncate(bytes.len() - end); // some writers leave out the end of a stream
        let stream = Memory(Bytes::from(bytes.clone()));
        let (found, _) = read(&stream, &[0, 6], u64::MAX).expect("rows");
        let expected = batches[0].project(&[0, 6]).expect("columns");
        assert_eq!(
            concat_batches(&expected.schema(), &found).expect("rows"),
            expected
        );
    }
}

#[test]
fn batches_append_to_one_dictionary() {
    let words = |words: &[&str]| -> RecordBatch {
        let column: DictionaryArray<Int8Type> = words.iter().copied().collect();
        RecordBatch::try_from_iter([("word", Arc::new(column) as ArrayRef)]).expect("a batch")
    };
    let batches = [words(&["a", "b"]), words(&["c", "a"]), words(&["b", "b"])];
    let file = file_of(&batches).expect("a file");
    let (found, _) = read(&file, &[0], u64::MAX).expect("rows");
    let expected = words(&["a", "b", "c", "a", "b", "b"]);
    let found = concat_batches(&batches[0].schema(), &found).expect("rows");
    assert_eq!(found, expected);
    let reader = FileReader::try_new(Cursor::new(file.0), None).expect("a file");
    let others: Vec<RecordBatch> = reader.map(|batch| batch.expect("rows")).collect();
    let values = others
        .iter()
        .map(|batch| batch.column(0).as_dictionary::<Int8Type>().values());
    assert!(values.into_iter().all(|values| values.len() == 3));
    let others = concat_batches(&batches[0].schema(), &others).expect("rows");
    assert_eq!(others, expected);

    let many: Vec<String> = (0..200).map(|number| format!("word {number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let why = file_of(&[words(&many[..100]), words(&many[100..])])
        .err()
        .expect("too many");
    assert!(why.to_string().contains("more different values"), "{why}");
}

#[test]
fn other_files_are_refused_in_a_line() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]));
    let table = RecordBatch::try_from_iter([("n", numbers), ("f", floats)]).expect("a batch");
    let file = file_of(&[table]).expect("a file").0;
    let cases: [(Bytes, &str); 5] = [
        (Bytes::new(), "it is no Arrow IPC file"),
        (Bytes::from_static(b"a,b\n1,2\n"), "it is no Arrow IPC file"),
        (
            Bytes::from_static(b"FEA1 and so on"),
            "Feather of version 1",
        ),
        (file.slice(..12), "it ends early"),
        (file.slice(..file.len() - 1), "it ends early"),
    ];
    for (bytes, message) in cases {
        let why = ArrowFile::open(Arc::new(Memory(bytes)))
            .err()
            .expect("a refusal");
        assert!(why.to_string().contains(message), "{why}");
    }
}
