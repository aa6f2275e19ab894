//! The pseudo-random numbers: `x' = a x + c` modulo 2^128, from 0.
//!
//! The multiplier is P. L'Ecuyer's ("Tables of linear congruential generators of different sizes
//! and good lattice structure", Mathematics of Computation 68, 1999). Steps are affine maps and
//! compose to affine maps, so any number of them is taken in as many squarings as the count has
//! bits.

const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;
const INCREMENT: u128 = 0x4A69_6D47_7261_7952_4950_2020_2020_2001;

/// The numbers a record is made from: the one of its own number and the nine after it.
pub(super) type Window = [u128; 10];

/// The sequence, from some record's number on.
pub(super) struct Random(u128);

impl Random {
    /// The sequence whose next number is that of record `number`: the first is one step from 0.
    pub(super) const fn of_record(number: u128) -> Random {
        // Invariant: the steps still to take from `state` are `steps` times the map x -> a x + c.
        let (mut state, mut steps) = (0u128, number);
        let (mut a, mut c) = (MULTIPLIER, INCREMENT);
        while steps > 0 {
            if steps & 1 == 1 {
                state = affine(a, state, c);
            }
            (a, c) = (a.wrapping_mul(a), affine(a, c, c));
            steps >>= 1;
        }
        Random(state)
    }

    /// The next number.
    #[inline]
    pub(super) const fn next(&mut self) -> u128 {
        self.0 = affine(MULTIPLIER, self.0, INCREMENT);
        self.0
    }
}

#[inline]
const fn affine(a: u128, x: u128, c: u128) -> u128 {
    a.wrapping_mul(x).wrapping_add(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn skipping_ahead_is_stepping(number: u128, steps in 0u8..100) {
            let mut stepped = Random::of_record(number);
            for _ in 0..steps {
                stepped.next();
            }
            let mut skipped = Random::of_record(number.wrapping_add(steps.into()));
            prop_assert_eq!(skipped.next(), stepped.next());
        }
    }

    #[test]
    fn the_period_is_the_whole_of_128_bits() {
        assert_eq!(Random::of_record(u128::MAX).next(), 0);
    }
}
