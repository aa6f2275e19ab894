//! The jobs, each a loop over rows.

use std::sync::Arc;

use crate::fetch::{Fetcher, Job};
use crate::task::Task;

const K: usize = 16;
const COLUMNS: usize = 8;
type Point = [f64; COLUMNS];

/// Points from bytes.
fn points(rows: &[u8]) -> impl Iterator<Item = Point> {
    rows.chunks_exact(8 * COLUMNS).map(|row| {
        std::array::from_fn(|at| f64::from_le_bytes(row[8 * at..][..8].try_into().expect("eight")))
    })
}

/// A round of Lloyd's algorithm.
pub struct KMeans {
    centres: Vec<f64>,
    /// Column by column, so that a point's distances to all centres are computed side by side.
    by_column: [[f64; K]; COLUMNS],
}

pub struct Sums {
    sums: [Point; K],
    counts: [f64; K],
    inertia: f64,
}

impl KMeans {
    pub fn new(centres: &[f64]) -> Self {
        assert_eq!(
            centres.len(),
            K * COLUMNS,
            "the k and columns it is built for"
        );
        Self {
            centres: centres.into(),
            by_column: std::array::from_fn(|at| std::array::from_fn(|k| centres[k * COLUMNS + at])),
        }
    }

    /// The next centres, how many points the old ones have, the inertia.
    pub fn finish(&self, whole: Sums) -> Vec<f64> {
        let mut found = self.centres.clone();
        for k in (0..K).filter(|&k| whole.counts[k] > 0.0) {
            for at in 0..COLUMNS {
                found[k * COLUMNS + at] = whole.sums[k][at] / whole.counts[k];
            }
        }
        found.extend(whole.counts);
        found.push(whole.inertia);
        found
    }
}

impl Job for KMeans {
    type Partial = Sums;
    const BYTES: usize = 8 * COLUMNS;

    fn empty(&self) -> Sums {
        Sums {
            sums: [[0.0; COLUMNS]; K],
            counts: [0.0; K],
            inertia: 0.0,
        }
    }

    fn add(&self, rows: &[u8], into: &mut Sums) {
        for point in points(rows) {
            let mut distances = [0.0; K];
            for (at, centres) in point.iter().zip(&self.by_column) {
                for (distance, centre) in distances.iter_mut().zip(centres) {
                    let apart = at - centre;
                    *distance += apart * apart;
                }
            }
            let (mut nearest, mut least) = (0, distances[0]);
            for (k, &distance) in distances.iter().enumerate() {
                if distance < least {
                    (nearest, least) = (k, distance);
                }
            }
            for (sum, at) in into.sums[nearest].iter_mut().zip(point) {
                *sum += at;
            }
            into.counts[nearest] += 1.0;
            into.inertia += least;
        }
    }

    fn merge(&self, mut one: Sums, other: Sums) -> Sums {
        for k in 0..K {
            for at in 0..COLUMNS {
                one.sums[k][at] += other.sums[k][at];
            }
            one.counts[k] += other.counts[k];
        }
        one.inertia += other.inertia;
        one
    }
}

/// Mean and covariance. Sums of products are of differences from a thread's first row, which loses no
/// digits as long as that row resembles the others.
pub struct Covariance;

pub struct Moments {
    shift: Option<Point>,
    rows: f64,
    sums: Point,
    products: [Point; COLUMNS],
}

impl Moments {
    /// Mean, and sums of products of differences from it.
    fn centred(&self) -> (Point, [Point; COLUMNS]) {
        let shift = self.shift.expect("some rows");
        let mean = std::array::from_fn(|at| shift[at] + self.sums[at] / self.rows);
        let scatter = std::array::from_fn(|one| {
            std::array::from_fn(|other| {
                self.products[one][other] - self.sums[one] * self.sums[other] / self.rows
            })
        });
        (mean, scatter)
    }
}

impl Covariance {
    pub fn finish(whole: Moments) -> Vec<f64> {
        let (mean, scatter) = whole.centred();
        let covariance = scatter
            .as_flattened()
            .iter()
            .map(|each| each / (whole.rows - 1.0));
        mean.into_iter().chain(covariance).collect()
    }
}

impl Job for Covariance {
    type Partial = Moments;
    const BYTES: usize = 8 * COLUMNS;

    fn empty(&self) -> Moments {
        Moments {
            shift: None,
            rows: 0.0,
            sums: [0.0; COLUMNS],
            products: [[0.0; COLUMNS]; COLUMNS],
        }
    }

    fn add(&self, rows: &[u8], into: &mut Moments) {
        for point in points(rows) {
            let shift = into.shift.get_or_insert(point);
            let apart: Point = std::array::from_fn(|at| point[at] - shift[at]);
            for (products, one) in into.products.iter_mut().zip(apart) {
                for (product, other) in products.iter_mut().zip(apart) {
                    *product += one * other;
                }
            }
            for (sum, at) in into.sums.iter_mut().zip(apart) {
                *sum += at;
            }
            into.rows += 1.0;
        }
    }

    fn merge(&self, one: Moments, other: Moments) -> Moments {
        if one.rows == 0.0 {
            return other;
        }
        if other.rows == 0.0 {
            return one;
        }
        let ((mean, scatter), (other_mean, other_scatter)) = (one.centred(), other.centred());
        let rows = one.rows + other.rows;
        let apart: Point = std::array::from_fn(|at| other_mean[at] - mean[at]);
        Moments {
            shift: Some(std::array::from_fn(|at| {
                mean[at] + apart[at] * (other.rows / rows)
            })),
            rows,
            sums: [0.0; COLUMNS],
            products: std::array::from_fn(|i| {
                std::array::from_fn(|j| {
                    let between = apart[i] * apart[j] * (one.rows * other.rows / rows);
                    scatter[i][j] + other_scatter[i][j] + between
                })
            }),
        }
    }
}

/// How many values of each column are in each bin.
pub struct Histogram {
    bins: usize,
    low: f64,
    scale: f64,
}

impl Histogram {
    pub fn new(bins: usize, low: f64, high: f64) -> Self {
        Self {
            bins,
            low,
            scale: bins as f64 / (high - low),
        }
    }
}

impl Job for Histogram {
    type Partial = Vec<u64>;
    const BYTES: usize = 8 * COLUMNS;

    fn empty(&self) -> Vec<u64> {
        vec![0; COLUMNS * self.bins]
    }

    fn add(&self, rows: &[u8], into: &mut Vec<u64>) {
        let last = (self.bins - 1) as f64;
        for point in points(rows) {
            for (counts, at) in into.chunks_exact_mut(self.bins).zip(point) {
                counts[((at - self.low) * self.scale).clamp(0.0, last) as usize] += 1;
            }
        }
    }

    fn merge(&self, one: Vec<u64>, other: Vec<u64>) -> Vec<u64> {
        one.into_iter()
            .zip(other)
            .map(|(here, more)| here + more)
            .collect()
    }
}

/// Sums over edges: each node gives its share to the target of each of its edges.
pub struct PageRank {
    nodes: usize,
    /// None in the round that counts the outgoing edges of each node.
    share: Option<Vec<f64>>,
}

impl PageRank {
    /// All rounds.
    pub fn ranks(task: &Task, fetcher: &Fetcher) -> Vec<f64> {
        let (nodes, damping) = (task.number("nodes"), task.real("damping"));
        let count = nodes as f64;
        let out = fetcher.reduced(&Arc::new(Self { nodes, share: None }));
        let mut ranks = vec![1.0 / count; nodes];
        for _ in 0..task.number("rounds") {
            let share = ranks
                .iter()
                .zip(&out)
                .map(|(rank, edges)| rank / edges.max(1.0))
                .collect();
            let given = fetcher.reduced(&Arc::new(Self {
                nodes,
                share: Some(share),
            }));
            let lost: f64 = ranks
                .iter()
                .zip(&out)
                .filter(|(_, edges)| **edges == 0.0)
                .map(|(rank, _)| rank)
                .sum();
            ranks = given
                .into_iter()
                .map(|rank| (1.0 - damping) / count + damping * (rank + lost / count))
                .collect();
        }
        ranks
    }
}

impl Job for PageRank {
    type Partial = Vec<f64>;
    const BYTES: usize = 8;

    fn empty(&self) -> Vec<f64> {
        vec![0.0; self.nodes]
    }

    fn add(&self, rows: &[u8], into: &mut Vec<f64>) {
        for edge in rows.chunks_exact(8) {
            let end =
                |at: usize| u32::from_le_bytes(edge[at..at + 4].try_into().expect("four")) as usize;
            match &self.share {
                None => into[end(0)] += 1.0,
                Some(share) => into[end(4)] += share[end(0)],
            }
        }
    }

    fn merge(&self, mut one: Vec<f64>, other: Vec<f64>) -> Vec<f64> {
        for (here, more) in one.iter_mut().zip(other) {
            *here += more;
        }
        one
    }
}
