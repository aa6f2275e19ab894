//! PageRank's passes over edges (Brin and Page, "The Anatomy of a Large-Scale Hypertextual Web
//! Search Engine", 1998): an edge is a pair of node numbers, from and to.
//!
//! Each edge reads a number at its origin and adds to one at its target, both at random places of
//! arrays with a number per node. The processor waits for these and not for the edges, which come
//! in order. So nothing is converted or gathered before.

/// A node's number, as edges have it.
pub trait Node: Copy {
    /// Its index in arrays; the largest number if it is negative.
    fn place(self) -> usize;
}

impl Node for i32 {
    fn place(self) -> usize {
        usize::try_from(self).unwrap_or(usize::MAX)
    }
}

impl Node for i64 {
    fn place(self) -> usize {
        usize::try_from(self).unwrap_or(usize::MAX)
    }
}

/// Counts the edges that leave each node, and marks the targets of edges.
///
/// # Errors
/// The index of the first edge with an unknown node. Edges before it were counted.
pub fn count<N: Node>(edges: &[N], out: &mut [i64], reached: &mut [u8]) -> Result<(), usize> {
    each(edges, |origin, target| {
        let (leave, mark) = (out.get_mut(origin)?, reached.get_mut(target)?);
        *leave += 1;
        *mark = 1;
        Some(())
    })
}

/// Adds each origin's share to the rank of the edge's target.
///
/// # Errors
/// The index of the first edge with an unknown node. Edges before it were added.
pub fn give<N: Node>(edges: &[N], share: &[f64], rank: &mut [f64]) -> Result<(), usize> {
    each(edges, |origin, target| {
        *rank.get_mut(target)? += *share.get(origin)?;
        Some(())
    })
}

fn each<N: Node>(
    edges: &[N],
    mut with: impl FnMut(usize, usize) -> Option<()>,
) -> Result<(), usize> {
    let (edges, _) = edges.as_chunks::<2>();
    for (place, [origin, target]) in edges.iter().enumerate() {
        with(origin.place(), target.place()).ok_or(place)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn edges_give_and_are_counted(
            edges in prop::collection::vec((0_i32..40, 0_i32..40), 0..300), half in 0_usize..300,
        ) {
            let half = half.min(edges.len());
            let flat: Vec<i32> = edges.iter().flat_map(|&(from, to)| [from, to]).collect();
            let wide: Vec<i64> = flat.iter().copied().map(i64::from).collect();
            // Powers of two: sums are exact in any order.
            let share: Vec<f64> = (0..40).map(|node| f64::from(1 << (node % 20))).collect();
            let (mut out, mut reached, mut rank) = (vec![0; 40], vec![0; 40], vec![0.0; 40]);
            prop_assert_eq!(count(&flat[..2 * half], &mut out, &mut reached), Ok(()));
            prop_assert_eq!(count(&wide[2 * half..], &mut out, &mut reached), Ok(()));
            prop_assert_eq!(give(&wide[..2 * half], &share, &mut rank), Ok(()));
            prop_assert_eq!(give(&flat[2 * half..], &share, &mut rank), Ok(()));
            for node in 0..40_i32 {
                let here = node as usize;
                let leaving = edges.iter().filter(|edge| edge.0 == node).count();
                let coming: Vec<_> = edges.iter().filter(|edge| edge.1 == node).collect();
                prop_assert_eq!(out[here], leaving as i64);
                prop_assert_eq!(reached[here], u8::from(!coming.is_empty()));
                let given: f64 = coming.iter().map(|edge| share[edge.0 as usize]).sum();
                prop_assert_eq!(rank[here], given);
            }
        }
    }

    #[test]
    fn a_node_without_a_number_is_named() {
        let (share, mut rank) = ([1.0, 2.0], [0.0, 0.0]);
        for bad in [-1, 2, i64::MAX, i64::MIN] {
            for edge in [[0, bad], [bad, 0]] {
                let edges = [[0, 1], edge].concat();
                assert_eq!(give(&edges, &share, &mut rank), Err(1));
                assert_eq!(count(&edges, &mut [0, 0], &mut [0, 0]), Err(1));
            }
        }
        assert_eq!(rank, [0.0, 8.0]);
    }
}
