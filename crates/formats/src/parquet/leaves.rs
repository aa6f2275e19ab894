//! The leaves of nested columns, in the order of Parquet's columns.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// The arrays that an array nests, or itself: those of a list hold what its rows have.
pub fn leaves(array: &ArrayRef) -> Vec<ArrayRef> {
    let children: Vec<ArrayRef> = match array.data_type() {
        DataType::Struct(_) => array.as_struct().columns().to_vec(),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            vec![listed_values(list.values(), list.value_offsets())]
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            vec![listed_values(list.values(), list.value_offsets())]
        }
        DataType::Map(_, _) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            vec![listed_values(&entries, map.value_offsets())]
        }
        DataType::FixedSizeList(_, _) => vec![array.as_fixed_size_list().values().clone()],
        _ => return vec![ArrayRef::clone(array)],
    };
    children.iter().flat_map(leaves).collect()
}

/// The values between the first offset and the last.
fn listed_values<O: TryInto<usize> + Copy>(values: &ArrayRef, offsets: &[O]) -> ArrayRef {
    let at = |offset: Option<&O>| offset.and_then(|&offset| offset.try_into().ok());
    match (at(offsets.first()), at(offsets.last())) {
        (Some(first), Some(last)) => values.slice(first, last - first),
        _ => values.slice(0, 0),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Int32Builder, ListBuilder};
    use arrow_array::types::Int32Type;
    use arrow_array::{Int32Array, StructArray};
    use arrow_schema::Field;

    use super::*;

    #[test]
    fn a_slice_has_its_own_values_only() {
        let mut lists = ListBuilder::new(Int32Builder::new());
        for row in 0..6 {
            lists.append_value((0..row).map(Some));
        }
        let lists: ArrayRef = Arc::new(lists.finish());
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(10..16));
        let field = |name: &str, array: &ArrayRef| {
            Arc::new(Field::new(name, array.data_type().clone(), true))
        };
        let both = StructArray::from(vec![
            (field("lists", &lists), Arc::clone(&lists)),
            (field("numbers", &numbers), numbers),
        ]);
        let both: ArrayRef = Arc::new(both);
        let found = leaves(&both.slice(2, 2));
        let values = |array: &ArrayRef| array.as_primitive::<Int32Type>().values().to_vec();
        assert_eq!(
            found.iter().map(values).collect::<Vec<_>>(),
            [vec![0, 1, 0, 1, 2], vec![12, 13],]
        );
    }
}
