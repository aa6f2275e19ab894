//! Rows of any table: sorted by their bytes they are in the order of their values, and come back
//! as they were. The model compares values by what their types say, not by bytes.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BinaryViewBuilder, FixedSizeBinaryBuilder, FixedSizeListBuilder, Float64Builder,
    Int32Builder, LargeStringBuilder, ListBuilder, MapBuilder, StringBuilder,
    StringDictionaryBuilder, StringViewBuilder, StructBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, ListArray, NullArray, PrimitiveArray,
    RecordBatch, StructArray,
};
use arrow_buffer::{OffsetBuffer, i256};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use proptest::prelude::*;
use tonnage_tables::{ColumnOrder, RowLayout, RowReader, RowShape, RowWriter};

/// Builds a column from a number a row; `None` is null.
type Build = fn(&[Option<u64>]) -> ArrayRef;
/// Compares two values that are not null.
type Compare = fn(&dyn Array, usize, usize) -> Ordering;

/// Columns of every kind that has an order.
const ORDERED: [(&str, Build, Compare); 21] = [
    ("int8", ints::<Int8Type>, by_number::<Int8Type>),
    ("int16", ints::<Int16Type>, by_number::<Int16Type>),
    ("int32", ints::<Int32Type>, by_number::<Int32Type>),
    ("int64", ints::<Int64Type>, by_number::<Int64Type>),
    ("uint8", ints::<UInt8Type>, by_number::<UInt8Type>),
    ("uint64", ints::<UInt64Type>, by_number::<UInt64Type>),
    ("date", ints::<Date32Type>, by_number::<Date32Type>),
    (
        "nanoseconds",
        ints::<TimestampNanosecondType>,
        by_number::<TimestampNanosecondType>,
    ),
    (
        "decimal128",
        ints::<Decimal128Type>,
        by_number::<Decimal128Type>,
    ),
    ("decimal256", decimals256, by_number::<Decimal256Type>),
    ("float16", floats16, by_float16),
    ("float32", floats32, by_float32),
    ("float64", floats64, by_float64),
    ("boolean", booleans, by_boolean),
    ("utf8", strings, by_bytes),
    ("large_utf8", large_strings, by_bytes),
    ("utf8_view", string_views, by_bytes),
    ("binary", binaries, by_bytes),
    ("binary_view", binary_views, by_bytes),
    ("fixed_binary", fixed_binaries, by_fixed_bytes),
    ("dictionary", dictionaries, by_dictionary),
];

/// Columns that can only be carried along.
const CARRIED: [(&str, Build); 8] = [
    ("lists", lists),
    ("structs", structs),
    ("structs_in_structs", structs_in_structs),
    ("lists_of_structs", lists_of_structs),
    ("maps", maps),
    ("fixed_lists", fixed_lists),
    ("nested_lists", nested_lists),
    ("nulls", nulls),
];

fn ints<T: ArrowPrimitiveType>(seeds: &[Option<u64>]) -> ArrayRef
where
    T::Native: TryFrom<i128> + Default,
{
    let value = |seed: u64| {
        // Few values, or all bits.
        let number = i128::from(if seed.is_multiple_of(2) {
            seed as i64
        } else {
            (seed % 7) as i64 - 3
        });
        (0..128)
            .find_map(|shift| T::Native::try_from(number >> shift).ok())
            .unwrap_or_default()
    };
    let values = seeds.iter().map(|seed| seed.map(value));
    Arc::new(PrimitiveArray::<T>::from_iter(values))
}

fn decimals256(seeds: &[Option<u64>]) -> ArrayRef {
    let value = |seed: u64| i256::from_parts(u128::from(seed) << 64, i128::from(seed as i64) >> 3);
    let values = seeds.iter().map(|seed| seed.map(value));
    Arc::new(PrimitiveArray::<Decimal256Type>::from_iter(values))
}

fn double(seed: u64) -> f64 {
    let few = [
        0.0,
        -0.0,
        1.5,
        -1.5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
    ];
    match seed % 2 {
        0 => f64::from_bits(seed),
        _ => few[(seed / 2 % 8) as usize],
    }
}

fn floats64(seeds: &[Option<u64>]) -> ArrayRef {
    let values = seeds.iter().map(|seed| seed.map(double));
    Arc::new(PrimitiveArray::<Float64Type>::from_iter(values))
}

fn floats32(seeds: &[Option<u64>]) -> ArrayRef {
    let values = seeds
        .iter()
        .map(|seed| seed.map(|seed| double(seed) as f32));
    Arc::new(PrimitiveArray::<Float32Type>::from_iter(values))
}

fn floats16(seeds: &[Option<u64>]) -> ArrayRef {
    let value = |seed: u64| half::f16::from_f64(double(seed));
    let values = seeds.iter().map(|seed| seed.map(value));
    Arc::new(PrimitiveArray::<Float16Type>::from_iter(values))
}

fn booleans(seeds: &[Option<u64>]) -> ArrayRef {
    let values = seeds.iter().map(|seed| seed.map(|seed| seed % 2 == 1));
    Arc::new(BooleanArray::from_iter(values))
}

/// Short and long values, with zeros, bytes of 255, and common beginnings.
fn bytes(seed: u64) -> Vec<u8> {
    let alphabet = [0, 1, 2, 254, 255, b'a', b'b'];
    let length = [0, 1, 2, 3, 12, 13, 40][(seed % 7) as usize];
    let byte = |place: u32| alphabet[(seed.rotate_right(3 * place) % 7) as usize];
    (0..length).map(byte).collect()
}

fn text(seed: u64) -> String {
    let alphabet = ['\0', '\u{1}', 'a', 'b', 'ä', '\u{ffff}', '𝄞'];
    let length = [0, 1, 2, 3, 12, 13, 40][(seed % 7) as usize];
    let letter = |place: u32| alphabet[(seed.rotate_right(3 * place) % 7) as usize];
    (0..length).map(letter).collect()
}

macro_rules! built {
    ($seeds:expr, $builder:expr, $value:expr) => {{
        let mut builder = $builder;
        for seed in $seeds {
            builder.append_option(seed.map($value));
        }
        Arc::new(builder.finish())
    }};
}

fn strings(seeds: &[Option<u64>]) -> ArrayRef {
    built!(seeds, StringBuilder::new(), text)
}

fn large_strings(seeds: &[Option<u64>]) -> ArrayRef {
    built!(seeds, LargeStringBuilder::new(), text)
}

fn string_views(seeds: &[Option<u64>]) -> ArrayRef {
    built!(seeds, StringViewBuilder::new(), text)
}

fn binaries(seeds: &[Option<u64>]) -> ArrayRef {
    built!(seeds, BinaryBuilder::new(), bytes)
}

fn binary_views(seeds: &[Option<u64>]) -> ArrayRef {
    built!(seeds, BinaryViewBuilder::new(), bytes)
}

fn fixed_binaries(seeds: &[Option<u64>]) -> ArrayRef {
    let mut builder = FixedSizeBinaryBuilder::new(5);
    for seed in seeds {
        match seed {
            Some(seed) => builder
                .append_value(&seed.to_le_bytes()[..5])
                .expect("5 bytes"),
            None => builder.append_null(),
        }
    }
    Arc::new(builder.finish())
}

fn dictionaries(seeds: &[Option<u64>]) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    seeds
        .iter()
        .for_each(|seed| builder.append_option(seed.map(text)));
    Arc::new(builder.finish())
}

/// As many items as the seed says, some of them null.
fn items(seed: u64) -> impl Iterator<Item = Option<u64>> {
    (0..seed % 4).map(move |place| {
        let item = seed.rotate_left(place as u32 * 7);
        (!item.is_multiple_of(3)).then_some(item)
    })
}

fn lists(seeds: &[Option<u64>]) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new());
    for seed in seeds {
        builder.append_option(seed.map(|seed| items(seed).map(|item| item.map(text))));
    }
    Arc::new(builder.finish())
}

fn nested_lists(seeds: &[Option<u64>]) -> ArrayRef {
    let mut builder = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
    for seed in seeds {
        let inner = |item: u64| items(item).map(|value| value.map(|value| value as i32));
        builder.append_option(seed.map(|seed| items(seed).map(move |item| item.map(inner))));
    }
    Arc::new(builder.finish())
}

fn fixed_lists(seeds: &[Option<u64>]) -> ArrayRef {
    let mut builder = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    for seed in seeds {
        for place in 0..2 {
            let value = seed.map(|seed| (seed >> (place * 8)) as i32);
            builder
                .values()
                .append_option(value.filter(|value| value % 5 > 0));
        }
        builder.append(seed.is_some());
    }
    Arc::new(builder.finish())
}

fn maps(seeds: &[Option<u64>]) -> ArrayRef {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    for seed in seeds {
        for (place, item) in seed.iter().flat_map(|seed| items(*seed)).enumerate() {
            builder.keys().append_value(format!("key {place}"));
            builder.values().append_option(item.map(|item| item as f64));
        }
        builder
            .append(seed.is_some())
            .expect("as many keys as values");
    }
    Arc::new(builder.finish())
}

fn structs(seeds: &[Option<u64>]) -> ArrayRef {
    let fields = vec![
        Field::new("number", arrow_schema::DataType::Int32, true),
        Field::new("text", arrow_schema::DataType::Utf8, true),
    ];
    let mut builder = StructBuilder::from_fields(fields, seeds.len());
    for seed in seeds {
        let number = seed.filter(|seed| seed % 3 > 0).map(|seed| seed as i32);
        let text = seed.filter(|seed| seed % 5 > 0).map(text);
        builder
            .field_builder::<Int32Builder>(0)
            .expect("numbers")
            .append_option(number);
        builder
            .field_builder::<StringBuilder>(1)
            .expect("texts")
            .append_option(text);
        builder.append(seed.is_some());
    }
    Arc::new(builder.finish())
}

/// Structs with a struct, a list, a field that is never null, and a struct without fields; a null
/// struct has values below it.
fn structs_in_structs(seeds: &[Option<u64>]) -> ArrayRef {
    let present: Vec<Option<u64>> = seeds.iter().map(|seed| seed.or(Some(7))).collect();
    let is_present = |seed: &Option<u64>| seed.is_some_and(|seed| seed % 7 > 0);
    let empty = StructArray::new_empty_fields(seeds.len(), None);
    let fields: [(&str, ArrayRef, bool); 4] = [
        ("inner", structs(seeds), true),
        ("items", lists(seeds), true),
        ("number", ints::<Int64Type>(&present), false),
        ("empty", Arc::new(empty), true),
    ];
    let (names, columns): (Vec<Field>, Vec<ArrayRef>) = fields
        .into_iter()
        .map(|(name, array, nullable)| {
            let field = Field::new(name, array.data_type().clone(), nullable);
            (field, array)
        })
        .unzip();
    let nulls = seeds.iter().map(is_present).collect();
    Arc::new(StructArray::new(names.into(), columns, Some(nulls)))
}

fn lists_of_structs(seeds: &[Option<u64>]) -> ArrayRef {
    let lengths = seeds.iter().map(|seed| seed.unwrap_or(0) as usize % 3);
    let offsets = OffsetBuffer::from_lengths(lengths.clone());
    let items: Vec<Option<u64>> = (0..lengths.sum::<usize>() as u64)
        .map(|item| (item % 4 > 0).then_some(item))
        .collect();
    let items = structs(&items);
    let field = Arc::new(Field::new("item", items.data_type().clone(), true));
    let nulls = seeds.iter().map(Option::is_some).collect();
    Arc::new(ListArray::new(field, offsets, items, Some(nulls)))
}

fn nulls(seeds: &[Option<u64>]) -> ArrayRef {
    Arc::new(NullArray::new(seeds.len()))
}

fn by_number<T: ArrowPrimitiveType>(array: &dyn Array, a: usize, b: usize) -> Ordering
where
    T::Native: Ord,
{
    let values = array.as_primitive::<T>();
    values.value(a).cmp(&values.value(b))
}

/// NaN above all numbers, and one zero.
fn by_value(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn by_float64(array: &dyn Array, a: usize, b: usize) -> Ordering {
    let values = array.as_primitive::<Float64Type>();
    by_value(values.value(a), values.value(b))
}

fn by_float32(array: &dyn Array, a: usize, b: usize) -> Ordering {
    let values = array.as_primitive::<Float32Type>();
    by_value(values.value(a).into(), values.value(b).into())
}

fn by_float16(array: &dyn Array, a: usize, b: usize) -> Ordering {
    let values = array.as_primitive::<Float16Type>();
    by_value(values.value(a).into(), values.value(b).into())
}

fn by_boolean(array: &dyn Array, a: usize, b: usize) -> Ordering {
    let values = array.as_boolean();
    values.value(a).cmp(&values.value(b))
}

fn by_bytes(array: &dyn Array, a: usize, b: usize) -> Ordering {
    let binary = arrow_cast::cast(array, &arrow_schema::DataType::LargeBinary).expect("bytes");
    let values = binary.as_binary::<i64>();
    values.value(a).cmp(values.value(b))
}

fn by_fixed_bytes(array: &dyn Array, a: usize, b: usize) -> Ordering {
    let values = array.as_fixed_size_binary();
    values.value(a).cmp(values.value(b))
}

fn by_dictionary(array: &dyn Array, a: usize, b: usize) -> Ordering {
    let strings = arrow_cast::cast(array, &arrow_schema::DataType::Utf8).expect("strings");
    by_bytes(&strings, a, b)
}

/// A table, the order to sort it by, and how its columns compare.
#[derive(Clone, Debug)]
struct Table {
    batch: RecordBatch,
    order: Vec<ColumnOrder>,
    keys: Vec<usize>, // of ORDERED, by column of the order
}

impl Table {
    fn compare(&self, a: usize, b: usize) -> Ordering {
        let columns = self.order.iter().zip(&self.keys).map(|(order, &key)| {
            let array = self.batch.column_by_name(&order.name).expect("a column");
            let (null_a, null_b) = (array.is_null(a), array.is_null(b));
            match (null_a, null_b) {
                (true, true) => Ordering::Equal,
                (true, false) if order.nulls_first => Ordering::Less,
                (true, false) => Ordering::Greater,
                (false, true) if order.nulls_first => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => {
                    let compared = ORDERED[key].2(array, a, b);
                    if order.descending {
                        compared.reverse()
                    } else {
                        compared
                    }
                }
            }
        });
        columns.fold(Ordering::Equal, Ordering::then)
    }
}

fn tables() -> impl Strategy<Value = Table> {
    let keys = prop::collection::vec((0..ORDERED.len(), any::<bool>(), any::<bool>()), 1..4);
    let others = prop::collection::vec(0..ORDERED.len() + CARRIED.len(), 0..4);
    (keys, others, 0_usize..60, 0_u32..4).prop_flat_map(|(keys, others, rows, nulls)| {
        let seed = (any::<u64>(), 0_u32..10)
            .prop_map(move |(seed, draw)| (draw >= 2 * nulls).then_some(seed));
        let columns = keys.len() + others.len();
        let seeds = prop::collection::vec(prop::collection::vec(seed, rows), columns);
        (Just(keys), Just(others), seeds).prop_map(table)
    })
}

#[allow(clippy::type_complexity)]
fn table(
    (keys, others, seeds): (Vec<(usize, bool, bool)>, Vec<usize>, Vec<Vec<Option<u64>>>),
) -> Table {
    let kinds = keys.iter().map(|key| key.0).chain(others);
    let built: Vec<(String, ArrayRef)> = kinds
        .zip(&seeds)
        .enumerate()
        .map(|(place, (kind, seeds))| match ORDERED.get(kind) {
            Some((name, build, _)) => (format!("{name}{place}"), build(seeds)),
            None => {
                let (name, build) = CARRIED[kind - ORDERED.len()];
                (format!("{name}{place}"), build(seeds))
            }
        })
        .collect();
    let order = keys
        .iter()
        .zip(&built)
        .map(|(&(_, descending, nulls_first), (name, _))| ColumnOrder {
            name: name.clone(),
            descending,
            nulls_first,
        });
    Table {
        order: order.collect(),
        keys: keys.iter().map(|key| key.0).collect(),
        batch: batch(&built),
    }
}

fn batch(columns: &[(String, ArrayRef)]) -> RecordBatch {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
        .collect();
    let columns = columns.iter().map(|(_, array)| array.clone()).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("a batch")
}

/// The rows of a table, written in strides.
fn rows(table: &Table, layout: &Arc<RowLayout>, stride: usize) -> Vec<Vec<u8>> {
    let mut writer = RowWriter::new(layout);
    writer.open(&table.batch).expect("an open batch");
    let mut rows = Vec::new();
    for first in (0..table.batch.num_rows()).step_by(stride) {
        let range = first..(first + stride).min(table.batch.num_rows());
        let written = writer.write(range, first as u64).expect("rows");
        rows.extend(written.iter().map(<[u8]>::to_vec));
    }
    rows
}

/// Each value, whatever is below nulls.
fn values_shown(array: &ArrayRef) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let shown = ArrayFormatter::try_new(array, &options).expect("a type that is shown");
    (0..array.len())
        .map(|row| shown.value(row).to_string())
        .collect()
}

proptest! {
    #[test]
    fn rows_sort_by_their_bytes_and_come_back(
        table in tables(), is_stable in any::<bool>(), stride in 1_usize..70,
    ) {
        let layout = RowLayout::new(table.batch.schema_ref(), &table.order, is_stable).expect("a layout");
        let layout = Arc::new(layout);
        let rows = rows(&table, &layout, stride);
        prop_assert!(rows.iter().all(|row| RowShape::row_bytes(row) == Some(row.len())));
        let mut places: Vec<usize> = (0..rows.len()).collect();
        places.sort_by(|&a, &b| layout.shape().key(&rows[a]).cmp(layout.shape().key(&rows[b])).then(a.cmp(&b)));
        let mut expected: Vec<usize> = (0..rows.len()).collect();
        expected.sort_by(|&a, &b| table.compare(a, b)); // stable
        prop_assert_eq!(&places, &expected);
        for pair in places.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|place| layout.shape().order_of(layout.shape().key(&rows[place])));
            prop_assert_eq!(a.cmp(b), table.compare(pair[0], pair[1]));
        }
        let mut reader = RowReader::new(&layout, 8);
        let mut batches = Vec::new();
        for (count, &place) in places.iter().enumerate() {
            reader.push(&[&rows[place]]).expect("a row");
            if count % 23 == 22 {
                batches.push(reader.finish().expect("a batch"));
            }
        }
        batches.push(reader.finish().expect("a batch"));
        let sorted = concat_batches(table.batch.schema_ref(), &batches).expect("one schema");
        let indices = PrimitiveArray::<UInt64Type>::from_iter_values(expected.iter().map(|&place| place as u64));
        let expected = take_record_batch(&table.batch, &indices).expect("rows");
        for (place, field) in expected.schema_ref().fields().iter().enumerate() {
            let [one, other] = [sorted.column(place), expected.column(place)];
            prop_assert_eq!(one.data_type(), other.data_type());
            let shown = [one, other].map(values_shown);
            prop_assert_eq!(&shown[0], &shown[1], "{}", field.name());
        }
    }
}

#[test]
fn what_is_refused() {
    let columns = [
        ("list".to_owned(), lists(&[Some(3)])),
        ("number".to_owned(), ints::<Int32Type>(&[Some(3)])),
    ];
    let schema = batch(&columns).schema();
    let refusal = |name: &str| {
        let order = [ColumnOrder {
            name: name.to_owned(),
            descending: false,
            nulls_first: false,
        }];
        RowLayout::new(&schema, &order, false)
            .expect_err("no layout")
            .to_string()
    };
    assert_eq!(
        refusal("nosuch"),
        "there is no column \"nosuch\"; the columns are list, number"
    );
    assert!(refusal("list").contains("cannot be a sort key"));
}
