//! k-means: adds each row to the nearest centre (Lloyd, "Least Squares Quantization in PCM", 1982).
//!
//! Several rows at a time are transposed, so that their distances to a centre, and the nearest
//! centre, are computed side by side. The inner loops run over these rows, and the compiler
//! vectorises them for the processor's width. Rows and sums are touched once.
#![allow(unsafe_code)] // One call: of the same code for a processor that has wider vectors.

/// Rows that are processed side by side.
const LANES: usize = 16;
/// Rows transposed before distances are computed: the processor cannot load as a whole what was
/// just stored in parts until it has reached the cache.
const TURNED: usize = 4 * LANES;

/// Centres of one round.
#[derive(Clone, Debug)]
pub struct Centres {
    columns: usize,
    centres: Vec<f64>,
}

/// The sum and the number of each centre's rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// Of each centre, column by column.
    pub sums: Vec<f64>,
    /// Rows of each centre.
    pub rows: Vec<u64>,
    /// Sum of the squared distances of rows to their centres.
    pub inertia: f64,
}

impl Centres {
    /// Centres of so many columns, one after another.
    ///
    /// # Panics
    /// When there is none, or the last is cut short.
    #[must_use]
    pub fn new(centres: &[f64], columns: usize) -> Self {
        let count = centres.len() / columns.max(1);
        assert!(
            count > 0 && count * columns == centres.len(),
            "whole centres"
        );
        Self {
            columns,
            centres: centres.to_vec(),
        }
    }

    /// Empty sums.
    #[must_use]
    pub fn sums(&self) -> Sums {
        Sums {
            sums: vec![0.0; self.centres.len()],
            rows: vec![0; self.centres.len() / self.columns],
            inertia: 0.0,
        }
    }

    /// Adds each row to its nearest centre; among equally near ones, to the first.
    ///
    /// # Errors
    /// The index of the first row with a number that is not finite. Rows before it were added.
    ///
    /// # Panics
    /// When the last row is cut short.
    pub fn add(&self, rows: &[f64], into: &mut Sums) -> Result<(), usize> {
        assert!(rows.len().is_multiple_of(self.columns), "whole rows");
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: this processor has what it takes.
            return unsafe { self.add_wide(rows, into) };
        }
        self.add_each::<false>(rows, into)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn add_wide(&self, rows: &[f64], into: &mut Sums) -> Result<(), usize> {
        self.add_each::<true>(rows, into)
    }

    #[inline(always)]
    fn add_each<const FUSED: bool>(&self, rows: &[f64], into: &mut Sums) -> Result<(), usize> {
        let columns = self.columns;
        let mut turned = vec![[0.0; LANES]; TURNED / LANES * columns];
        for (number, some) in rows.chunks(TURNED * columns).enumerate() {
            for (rows, turned) in some
                .chunks(LANES * columns)
                .zip(turned.chunks_exact_mut(columns))
            {
                let last = rows.len() - columns;
                for (column, lanes) in turned.iter_mut().enumerate() {
                    for lane in 0..LANES {
                        lanes[lane] = rows[(lane * columns).min(last) + column];
                    }
                }
            }
            for (group, (rows, turned)) in some
                .chunks(LANES * columns)
                .zip(turned.chunks_exact(columns))
                .enumerate()
            {
                // With fewer rows the last lanes repeat the last row, and are ignored.
                let (nearest, least) = self.nearest::<FUSED>(turned);
                for (lane, row) in rows.chunks_exact(columns).enumerate() {
                    if !least[lane].is_finite() {
                        return Err(number * TURNED + group * LANES + lane);
                    }
                    let centre = nearest[lane] as usize;
                    let sums = &mut into.sums[centre * columns..][..columns];
                    for (sum, &at) in sums.iter_mut().zip(row) {
                        *sum += at;
                    }
                    into.rows[centre] += 1;
                }
                into.inertia += least[..rows.len() / columns].iter().sum::<f64>();
            }
        }
        Ok(())
    }

    /// The nearest centre of each row (the first of equally near ones), and its squared distance.
    #[inline(always)]
    fn nearest<const FUSED: bool>(&self, rows: &[[f64; LANES]]) -> ([u64; LANES], [f64; LANES]) {
        let (mut nearest, mut least) = ([0; LANES], [f64::INFINITY; LANES]);
        for (number, centre) in (0_u64..).zip(self.centres.chunks_exact(self.columns)) {
            let mut distances = [0.0; LANES];
            for (lanes, &centre) in rows.iter().zip(centre) {
                for lane in 0..LANES {
                    let apart = lanes[lane] - centre;
                    distances[lane] = if FUSED {
                        apart.mul_add(apart, distances[lane])
                    } else {
                        apart * apart + distances[lane] // Where it is no instruction, fusing takes long.
                    };
                }
            }
            for lane in 0..LANES {
                let nearer = distances[lane] < least[lane];
                least[lane] = if nearer { distances[lane] } else { least[lane] };
                nearest[lane] = if nearer { number } else { nearest[lane] };
            }
        }
        (nearest, least)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, a row and a centre at a time.
    fn plainly(rows: &[f64], centres: &[f64], columns: usize) -> Sums {
        let count = centres.len() / columns;
        let mut found = Sums {
            sums: vec![0.0; centres.len()],
            rows: vec![0; count],
            inertia: 0.0,
        };
        for row in rows.chunks_exact(columns) {
            let apart = |centre: &[f64]| -> f64 {
                row.iter()
                    .zip(centre)
                    .map(|(at, to)| (at - to) * (at - to))
                    .sum()
            };
            let distances: Vec<f64> = centres.chunks_exact(columns).map(apart).collect();
            let nearest =
                (0..count).min_by(|&one, &other| distances[one].total_cmp(&distances[other]));
            let nearest = nearest.expect("a centre");
            for (column, at) in row.iter().enumerate() {
                found.sums[nearest * columns + column] += at;
            }
            found.rows[nearest] += 1;
            found.inertia += distances[nearest];
        }
        found
    }

    proptest! {
        #[test]
        fn rows_go_to_the_nearest_centre(
            columns in 1_usize..12, count in 1_usize..30, numbers in prop::collection::vec(-9_i32..9, 1..2000),
        ) {
            // Small whole numbers: sums are exact in any order, and many distances are equal.
            let numbers: Vec<f64> = numbers.into_iter().map(f64::from).collect();
            prop_assume!(numbers.len() >= columns * count);
            let (centres, rest) = numbers.split_at(columns * count);
            let rows = &rest[..rest.len() / columns * columns];
            let made = Centres::new(centres, columns);
            let mut sums = made.sums();
            let half = rows.len() / columns / 2 * columns;
            prop_assert_eq!(made.add(&rows[..half], &mut sums), Ok(()));
            prop_assert_eq!(made.add(&rows[half..], &mut sums), Ok(()));
            prop_assert_eq!(sums, plainly(rows, centres, columns));
        }
    }

    #[test]
    fn a_row_that_is_no_point_is_named() {
        for bad in [f64::NAN, f64::INFINITY] {
            let made = Centres::new(&[0.0, 0.0, 1.0, 1.0], 2);
            let mut sums = made.sums();
            let rows = [0.0, 0.1, 1.0, 0.9, 3.0, bad, 0.0, 0.0];
            assert_eq!(made.add(&rows, &mut sums), Err(2));
            assert_eq!(sums.rows, [1, 1]);
        }
    }
}
