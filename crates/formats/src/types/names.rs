//! Names of types, as PyArrow prints them: `int64`, `timestamp[ms, tz=UTC]`, `decimal128(10, 2)`.

use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};

/// Types without parameters, by their names.
const PLAIN: &[(&str, DataType)] = &[
    ("null", DataType::Null),
    ("bool", DataType::Boolean),
    ("int8", DataType::Int8),
    ("int16", DataType::Int16),
    ("int32", DataType::Int32),
    ("int64", DataType::Int64),
    ("uint8", DataType::UInt8),
    ("uint16", DataType::UInt16),
    ("uint32", DataType::UInt32),
    ("uint64", DataType::UInt64),
    ("halffloat", DataType::Float16),
    ("float", DataType::Float32),
    ("double", DataType::Float64),
    ("string", DataType::Utf8),
    ("large_string", DataType::LargeUtf8),
    ("string_view", DataType::Utf8View),
    ("binary", DataType::Binary),
    ("large_binary", DataType::LargeBinary),
    ("binary_view", DataType::BinaryView),
    ("date32[day]", DataType::Date32),
    ("date64[ms]", DataType::Date64),
    (
        "month_day_nano_interval",
        DataType::Interval(IntervalUnit::MonthDayNano),
    ),
];

const UNITS: [(&str, TimeUnit); 4] = [
    ("s", TimeUnit::Second),
    ("ms", TimeUnit::Millisecond),
    ("us", TimeUnit::Microsecond),
    ("ns", TimeUnit::Nanosecond),
];

/// The name of a type, in messages.
#[must_use]
pub fn name_of(data_type: &DataType) -> String {
    use DataType as T;
    let of_unit = |unit: &TimeUnit| {
        UNITS
            .iter()
            .find(|each| each.1 == *unit)
            .map_or("", |u| u.0)
    };
    if let Some((name, _)) = PLAIN.iter().find(|(_, plain)| plain == data_type) {
        return (*name).to_owned();
    }
    let field = |field: &Field| format!("{}: {}", field.name(), name_of(field.data_type()));
    match data_type {
        T::Timestamp(unit, None) => format!("timestamp[{}]", of_unit(unit)),
        T::Timestamp(unit, Some(zone)) => format!("timestamp[{}, tz={zone}]", of_unit(unit)),
        T::Duration(unit) => format!("duration[{}]", of_unit(unit)),
        T::Time32(unit) => format!("time32[{}]", of_unit(unit)),
        T::Time64(unit) => format!("time64[{}]", of_unit(unit)),
        T::Decimal32(precision, scale) => format!("decimal32({precision}, {scale})"),
        T::Decimal64(precision, scale) => format!("decimal64({precision}, {scale})"),
        T::Decimal128(precision, scale) => format!("decimal128({precision}, {scale})"),
        T::Decimal256(precision, scale) => format!("decimal256({precision}, {scale})"),
        T::FixedSizeBinary(width) => format!("fixed_size_binary[{width}]"),
        T::List(item) => format!("list<{}>", field(item)),
        T::LargeList(item) => format!("large_list<{}>", field(item)),
        T::Struct(fields) => {
            let fields: Vec<String> = fields.iter().map(|each| field(each)).collect();
            format!("struct<{}>", fields.join(", "))
        }
        T::Dictionary(indices, values) => format!(
            "dictionary<values={}, indices={}, ordered=0>",
            name_of(values),
            name_of(indices)
        ),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::Fields;

    use super::*;

    #[test]
    fn names_are_those_that_pyarrow_prints() {
        let item = |of| Field::new_list_field(of, true).into();
        let seconds = DataType::Timestamp(TimeUnit::Second, Some("UTC".into()));
        let fields = vec![
            Field::new("a", DataType::Int64, true),
            Field::new("b", DataType::List(item(seconds)), true),
        ];
        for (data_type, name) in [
            (DataType::Float64, "double"),
            (DataType::Date32, "date32[day]"),
            (DataType::Time64(TimeUnit::Microsecond), "time64[us]"),
            (
                DataType::Timestamp(TimeUnit::Millisecond, None),
                "timestamp[ms]",
            ),
            (DataType::Decimal128(10, 2), "decimal128(10, 2)"),
            (DataType::FixedSizeBinary(16), "fixed_size_binary[16]"),
            (
                DataType::Struct(Fields::from(fields)),
                "struct<a: int64, b: list<item: timestamp[s, tz=UTC]>>",
            ),
            (
                DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
                "dictionary<values=string, indices=int8, ordered=0>",
            ),
        ] {
            assert_eq!(name_of(&data_type), name);
        }
    }
}
