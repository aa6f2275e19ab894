//! Parquet files in splits: together they are the file, however small they are, and each needs
//! only its ranges.

mod common;

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use common::Memory;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use proptest::prelude::*;
use tonnage_formats::parquet::{Decoder, FileWriter, Output, ParquetFile, RowGroupEncoder};
use tonnage_formats::{Pieces, ReadAt};

fn batch(rows: usize, seed: u64, has_lists: bool) -> RecordBatch {
    let number = |row: usize| (row as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let present = |row: usize| !number(row).is_multiple_of(5);
    let ints = (0..rows).map(|row| present(row).then(|| number(row) as i32 % 100));
    let texts =
        (0..rows).map(|row| present(row + 1).then(|| format!("text {}", number(row) % 1000)));
    let mut strings = StringBuilder::new();
    texts.for_each(|text| strings.append_option(text));
    let floats = Float64Array::from_iter_values((0..rows).map(|row| number(row) as f64));
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("few", Arc::new(Int32Array::from_iter(ints)), true),
        ("text", Arc::new(strings.finish()), true),
        ("float", Arc::new(floats), false),
    ];
    if has_lists {
        let mut lists = ListBuilder::new(Int64Builder::new());
        for row in 0..rows {
            let items = (0..number(row) % 4).map(|item| (item > 0).then_some(item as i64));
            lists.append_option(present(row).then_some(items));
        }
        columns.push(("list", Arc::new(lists.finish()), true));
    }
    RecordBatch::try_from_iter_with_nullable(columns).expect("a batch")
}

/// The rows of all splits.
fn read(file: &Memory, columns: &[usize], most_bytes: u64) -> (SchemaRef, Vec<RecordBatch>, usize) {
    let opened = ParquetFile::open(Arc::new(file.clone())).expect("a Parquet file");
    let projection = opened.projection(columns);
    let splits = opened
        .splits(&projection, most_bytes, |_| true)
        .expect("splits");
    let mut batches = Vec::new();
    for split in &splits {
        let pieces = split
            .ranges
            .iter()
            .map(|range| (range.start, file.read(range.clone()).expect("bytes")));
        let pieces = Pieces::new(pieces.collect());
        let decoder = Decoder::new(split, &projection, pieces, 100).expect("a decoder");
        let decoded: Vec<RecordBatch> = decoder.map(|batch| batch.expect("rows")).collect();
        assert_eq!(
            decoded.iter().map(RecordBatch::num_rows).sum::<usize>(),
            split.rows.len()
        );
        batches.extend(decoded);
    }
    let schema = Arc::new(opened.schema().project(columns).expect("columns"));
    (schema, batches, splits.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn splits_are_the_file(
        rows in 1_usize..3000,
        seed in any::<u64>(),
        group_rows in 1_usize..3000,
        page_rows in 1_usize..500,
        most_bytes in 200_u64..40_000,
        has_index in any::<bool>(),
        is_version_2 in any::<bool>(),
        has_lists in any::<bool>(),
        columns in prop::sample::subsequence(vec![0_usize, 1, 2], 1..=3),
    ) {
        // Lists can be divided with an index, or in version 2.
        let has_lists = has_lists && has_index;
        let batch = batch(rows, seed, has_lists);
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(group_rows))
            .set_data_page_row_count_limit(page_rows)
            .set_write_batch_size(page_rows)
            .set_offset_index_disabled(!has_index)
            .set_statistics_enabled(if has_index { EnabledStatistics::Page } else { EnabledStatistics::None })
            .set_compression(Compression::SNAPPY)
            .set_writer_version(if is_version_2 { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 });
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).expect("a writer");
        writer.write(&batch).expect("rows");
        let file = Memory(writer.into_inner().expect("a file").into());
        let mut columns = columns;
        if has_lists {
            columns.push(3);
        }
        let (schema, batches, splits) = read(&file, &columns, most_bytes);
        let got = concat_batches(&schema, &batches).expect("one schema");
        prop_assert_eq!(got, batch.project(&columns).expect("columns"));
        prop_assert!(splits >= rows.div_ceil(group_rows));
    }
}

#[test]
fn a_giant_row_group_is_divided_and_only_its_pages_are_read() {
    let batch = batch(50_000, 1, false);
    let properties = WriterProperties::builder()
        .set_data_page_row_count_limit(1000)
        .set_write_batch_size(1000)
        .set_column_dictionary_enabled("float".into(), false)
        .set_offset_index_disabled(true)
        .set_statistics_enabled(EnabledStatistics::None);
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build()))
        .expect("a writer");
    writer.write(&batch).expect("rows");
    let file = Memory(writer.into_inner().expect("a file").into());
    let opened = ParquetFile::open(Arc::new(file.clone())).expect("a Parquet file");
    let projection = opened.projection(&[0, 1, 2]);
    let splits = opened
        .splits(&projection, 64 << 10, |_| true)
        .expect("splits");
    assert!(splits.len() >= 6, "{}", splits.len());
    let bytes = |split: &tonnage_formats::parquet::Split| {
        split
            .ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum::<u64>()
    };
    // A page more at each end and the dictionaries, at most.
    assert!(splits.iter().all(|split| bytes(split) < 128 << 10));
}

#[test]
fn lists_without_an_index_are_one_split() {
    let batch = batch(5000, 1, true);
    let properties = WriterProperties::builder()
        .set_offset_index_disabled(true)
        .set_statistics_enabled(EnabledStatistics::None);
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build()))
        .expect("a writer");
    writer.write(&batch).expect("rows");
    let file = Memory(writer.into_inner().expect("a file").into());
    let opened = ParquetFile::open(Arc::new(file)).expect("a Parquet file");
    let projection = opened.projection(&[0, 1, 2, 3]);
    let splits = opened.splits(&projection, 1 << 10, |_| true);
    let splits = splits.expect("splits");
    assert_eq!(splits.len(), 1);
    assert_eq!(splits[0].rows, 0..5000);
}

#[test]
fn what_is_no_parquet_file() {
    for bytes in [&b""[..], b"PAR1", b"a,b\n1,2\n", &[0; 100]] {
        assert!(ParquetFile::open(Arc::new(Memory(Bytes::from_static(bytes)))).is_err());
    }
}

#[test]
fn row_groups_of_several_encoders_become_one_file() {
    let batches = [batch(5000, 1, true), batch(3000, 2, true)];
    let schema = batches[0].schema();
    let order = [
        ("few".to_owned(), true, false),
        ("text".to_owned(), false, true),
    ];
    let output = Output::new(&schema, Compression::SNAPPY, &order).expect("an output");
    let output = Arc::new(output);
    let mut writer = FileWriter::new(&output, Vec::new()).expect("a file");
    for batch in &batches {
        let mut encoder = RowGroupEncoder::new(&output);
        encoder.write(&batch.slice(0, 1000)).expect("rows");
        encoder
            .write(&batch.slice(1000, batch.num_rows() - 1000))
            .expect("rows");
        writer
            .append(encoder.finish().expect("a row group"))
            .expect("appended");
    }
    writer.finish().expect("a file");
    let file = Memory(std::mem::take(writer.inner_mut()).into());
    let (schema, got, _) = read(&file, &[0, 1, 2, 3], 1 << 20);
    let got = concat_batches(&schema, &got).expect("one schema");
    assert_eq!(got, concat_batches(&schema, &batches).expect("one schema"));
}

#[test]
fn repeated_values_are_decoded_in_batches_of_some_megabytes() {
    let rows = 4000; // of 32 and 40 MB
    let mut lists = ListBuilder::new(Int64Builder::new());
    let mut texts = StringBuilder::new();
    for _ in 0..rows {
        lists.append_value((0..1000).map(Some));
        texts.append_value("long".repeat(2500));
    }
    let lists = Arc::new(lists.finish()) as ArrayRef;
    let texts = Arc::new(texts.finish()) as ArrayRef;
    // Short values on average, but the last are long: of a dictionary, and as they are.
    let last_are_long = |long: &dyn Fn(usize) -> String| {
        let text = |row: usize| match row < rows - 300 {
            true => String::from("short"),
            false => long(row),
        };
        Arc::new(StringArray::from_iter_values((0..rows).map(text))) as ArrayRef
    };
    let repeated = last_are_long(&|_| "long".repeat(20_000));
    let distinct = last_are_long(&|row| format!("{row:08}").repeat(10_000));
    let columns = [
        ("list", lists),
        ("text", texts),
        ("repeated", repeated),
        ("distinct", distinct),
    ];
    for (name, column) in columns {
        let batch = RecordBatch::try_from_iter([(name, column)]).expect("a batch");
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).expect("a writer");
        writer.write(&batch).expect("rows");
        let bytes: Bytes = writer.into_inner().expect("a file").into();
        let file = Memory(bytes.clone());
        let opened = ParquetFile::open(Arc::new(file)).expect("a Parquet file");
        let projection = opened.projection(&[0]);
        let splits = opened
            .splits(&projection, u64::MAX, |_| true)
            .expect("splits");
        let pieces = Pieces::new(vec![(0, bytes)]);
        let decoder = Decoder::new(&splits[0], &projection, pieces, rows).expect("a decoder");
        let decoded = decoder.map(|batch| batch.expect("rows"));
        let decoded: Vec<RecordBatch> = decoded.collect();
        let sizes = decoded.iter().map(RecordBatch::get_array_memory_size);
        let largest = sizes.max().expect("a batch");
        assert!(largest < 8 << 20, "{name}: {largest} bytes in a batch");
        let decoded = concat_batches(batch.schema_ref(), &decoded).expect("one schema");
        assert_eq!(decoded, batch, "{name}");
    }
}
