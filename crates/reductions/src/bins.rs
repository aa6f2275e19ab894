//! Counts values in the bins of a histogram: a bin contains its lower edge, the last one both.
//!
//! If bins are about equally wide, a value's bin is guessed from its distance to the lowest edge
//! and corrected by the edges, so that rounding misplaces nothing. Otherwise it is found by binary
//! search.

/// Counts values in the bins between edges; values outside, and NaN, are left out.
///
/// # Panics
/// If there is not one more edge than counts.
pub fn count(edges: &[f64], values: impl Iterator<Item = f64>, counts: &mut [i64]) {
    assert_eq!(edges.len(), counts.len() + 1, "an edge more than bins");
    let (Some(&low), Some(&high), Some(last)) =
        (edges.first(), edges.last(), counts.len().checked_sub(1))
    else {
        return;
    };
    let inside = values.filter(|value| low <= *value && *value <= high);
    if let Some(scale) = even(edges) {
        for value in inside {
            // Truncates a share that is not negative.
            let mut bin = (((value - low) * scale) as usize).min(last);
            while value < edges[bin] {
                bin -= 1;
            }
            while bin < last && value >= edges[bin + 1] {
                bin += 1;
            }
            counts[bin] += 1;
        }
    } else {
        for value in inside {
            let above = edges.partition_point(|edge| *edge <= value);
            counts[(above - 1).min(last)] += 1;
        }
    }
}

/// Bins per distance, if all are about equally wide.
fn even(edges: &[f64]) -> Option<f64> {
    let (low, bins) = (edges[0], (edges.len() - 1) as f64);
    let width = (edges[edges.len() - 1] - low) / bins;
    let near = |(place, edge): (usize, &f64)| {
        (edge - (width.mul_add(place as f64, low))).abs() <= width / 2.0
    };
    let is_even = width.is_finite() && (1.0 / width).is_finite();
    (is_even && edges.iter().enumerate().all(near)).then_some(1.0 / width)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_value_is_in_the_bin_of_its_edges(
            low in -1e3_f64..1e3, width in 1e-3_f64..10.0, bins in 1_usize..40, uneven in any::<bool>(),
            inside in prop::collection::vec(-0.2_f64..1.2, 0..200),
        ) {
            let grow = |place: usize| if uneven { (place * place) as f64 } else { place as f64 };
            let edges: Vec<f64> = (0..=bins).map(|place| low + width * grow(place)).collect();
            prop_assume!(edges.windows(2).all(|pair| pair[0] < pair[1]));
            // Between edges, and on each of them.
            let span = edges[bins] - low;
            let mut values: Vec<f64> = inside.iter().map(|share| low + share * span).collect();
            values.extend(&edges);
            let mut counts = vec![0; bins];
            count(&edges, values.iter().copied(), &mut counts);
            for (bin, counted) in counts.iter().enumerate() {
                let is_here = |value: &&f64| {
                    **value >= edges[bin]
                        && (**value < edges[bin + 1] || bin + 1 == bins && **value == edges[bins])
                };
                prop_assert_eq!(*counted, values.iter().filter(is_here).count() as i64);
            }
        }
    }

    #[test]
    fn what_is_no_number_or_outside_is_in_no_bin_and_infinities_are_edges() {
        let mut counts = [0; 2];
        let values = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            -1.0,
            3.0,
            2.0,
            0.0,
        ];
        count(&[0.0, 1.0, 2.0], values.into_iter(), &mut counts);
        assert_eq!(counts, [1, 1]);
        let mut counts = [0; 3];
        let edges = [f64::NEG_INFINITY, 0.0, 1.0, f64::INFINITY];
        count(&edges, values.into_iter(), &mut counts);
        assert_eq!(counts, [2, 1, 3]);
    }
}
