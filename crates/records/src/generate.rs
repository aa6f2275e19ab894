//! The records of `gensort` 1.5, the sort benchmark's generator (TeraGen is Hadoop's).
//!
//! Record `n` is made from the pseudo-random numbers `n` to `n + 9` of one 128-bit linear
//! congruential sequence (and, in the ASCII encoding, from `n` itself), so a record depends on its
//! number alone: generation starts anywhere and runs in parallel. Record numbers have 128 bits,
//! and the first record follows the last.

mod ascii;
mod binary;
mod random;
mod record;
mod skew;

use serde::{Deserialize, Serialize};

use random::{Random, Window};
use record::Record;

/// What the bytes of a record are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Pseudo-random bytes throughout.
    Binary,
    /// Printable text, one line a record (`gensort -a`).
    Ascii,
}

/// A source of records: what `gensort` writes, from a chosen record number on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    encoding: Encoding,
    skewed: bool,
    start: u128,
}

impl Generator {
    /// The records from number `start` (`gensort -b`), with skewed keys or not (`gensort -s`).
    pub fn new(encoding: Encoding, skewed: bool, start: u128) -> Generator {
        Generator {
            encoding,
            skewed,
            start,
        }
    }

    /// Fills `out` with consecutive records, the first of them numbered `start + first`.
    ///
    /// # Panics
    ///
    /// When `out` is not a whole number of records.
    pub fn fill(&self, first: u64, out: &mut [u8]) {
        let (records, rest) = out.as_chunks_mut();
        assert!(rest.is_empty(), "a record is cut short");
        let number = self.start.wrapping_add(first.into());
        // One loop for each kind of record: the choice is made once, not at every record.
        match (self.encoding, self.skewed) {
            (Encoding::Binary, false) => each(number, records, binary::write),
            (Encoding::Ascii, false) => each(number, records, ascii::write),
            (Encoding::Binary, true) => each(number, records, |record, number, window| {
                binary::write(record, number, window);
                skew::binary(record, number, window[0]);
            }),
            (Encoding::Ascii, true) => each(number, records, |record, number, window| {
                ascii::write(record, number, window);
                skew::ascii(record, number, window[0]);
            }),
        }
    }
}

/// Gives `write` every record, with its number and its pseudo-random numbers.
#[inline]
fn each(mut number: u128, records: &mut [Record], write: impl Fn(&mut Record, u128, &Window)) {
    let mut random = Random::of_record(number);
    let mut window: Window = std::array::from_fn(|_| random.next());
    for record in records {
        write(record, number, &window);
        number = number.wrapping_add(1);
        window.copy_within(1.., 0);
        window[window.len() - 1] = random.next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::checksum;
    use Encoding::{Ascii, Binary};
    use md5::{Digest, Md5};
    use proptest::prelude::*;

    const RECORDS: usize = 10_000;

    /// MD5 and checksum of 10,000 records of `gensort` 1.5, the starts placed so that the run
    /// crosses every edge of the number: 60, 64, 124, 127 and 128 bits (the last back to 0).
    #[rustfmt::skip]
    const KNOWN: [(Encoding, bool, u128, &str, u128); 24] = [
        (Binary, false, 0,                  "d18d9972df1922134968cd37626b9eef", 0x1392_d240_ca76),
        (Binary, false, (1 << 60) - 5_000,  "6522ab5710e015b9c15066ab19772878", 0x139d_3973_ce54),
        (Binary, false, (1 << 64) - 5_000,  "31236ffb35d2ceb5a4430a8ea4e70662", 0x133e_4e37_2267),
        (Binary, false, (1 << 124) - 5_000, "997003eaf02618d34cbb4dbfefc3b83b", 0x139c_ca59_a387),
        (Binary, false, (1 << 127) - 5_000, "d6f948e29d0edd71868a726dad51ecb4", 0x1396_7dab_6eb6),
        (Binary, false, u128::MAX - 4_999,  "75fce223c0e9a977872ff301d099faf9", 0x1383_4165_2d1e),
        (Ascii,  false, 0,                  "f681a471e13167f6ce40d310feb55875", 0x1380_05ce_70eb),
        (Ascii,  false, (1 << 60) - 5_000,  "4ca619fa4adcf23849de77754282ed5c", 0x13aa_afa5_81ea),
        (Ascii,  false, (1 << 64) - 5_000,  "b19695c8fd55522dcc40ff49c528c6bb", 0x1378_6019_0bdd),
        (Ascii,  false, (1 << 124) - 5_000, "c9ceee207d024a195b898894fd539861", 0x136a_c28c_eaab),
        (Ascii,  false, (1 << 127) - 5_000, "599187346a903e03b29cb9a048857bc7", 0x1393_10cf_0f27),
        (Ascii,  false, u128::MAX - 4_999,  "b748a368b34d9503b52a063bc1dfadb5", 0x139b_93df_2ae0),
        (Binary, true,  0,                  "afc0fae12461078a1ecaca9994db35d3", 0x1394_90c2_a1d7),
        (Binary, true,  (1 << 60) - 5_000,  "d9c10da8314d824c85c2cc7df5d87fdc", 0x139b_e471_8cf3),
        (Binary, true,  (1 << 64) - 5_000,  "6a0015f064e17aad7cde60b7b8f1542b", 0x1381_421e_89f0),
        (Binary, true,  (1 << 124) - 5_000, "6bf8012de827c40a7ab2f161d8b2fb5b", 0x1365_79dd_d291),
        (Binary, true,  (1 << 127) - 5_000, "6f18239d0481e539ad9884392482e253", 0x137a_07c5_a042),
        (Binary, true,  u128::MAX - 4_999,  "9d11aac3e0faecd855485cebc7ac8356", 0x1372_9a6e_ffb1),
        (Ascii,  true,  0,                  "2b1596ccf835571293c9afec5daa8b75", 0x1386_2d0d_93f4),
        (Ascii,  true,  (1 << 60) - 5_000,  "45d69b7c6a5198d15c9276bb61a73304", 0x137b_5a55_2de8),
        (Ascii,  true,  (1 << 64) - 5_000,  "5120679da81cf78e2164dde6caf1fd0a", 0x1385_5ced_561e),
        (Ascii,  true,  (1 << 124) - 5_000, "6b350e945ede607a2f255335ddb15a59", 0x1374_62c1_b1ab),
        (Ascii,  true,  (1 << 127) - 5_000, "28690193dfaf16f39cc34fece0a07e8d", 0x1399_5eb8_19b1),
        (Ascii,  true,  u128::MAX - 4_999,  "5cff8bb020dbf069939a8e80755dd79a", 0x1374_920f_99d5),
    ];

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_records_are_those_of_gensort() {
        for (encoding, skewed, start, digest, sum) in KNOWN {
            let mut records = vec![0; RECORDS * size_of::<Record>()];
            Generator::new(encoding, skewed, start).fill(0, &mut records);
            let kind = format!("{encoding:?}, skewed {skewed}, from {start}");
            assert_eq!(hex(&Md5::digest(&records)), digest, "{kind}");
            assert_eq!(checksum(&records, size_of::<Record>()), sum, "{kind}");
        }
    }

    /// MD5 of 16 records of `gensort` 1.5 from each power of two, one after the other: every
    /// magnitude of the number, so every prefix of skewed keys.
    #[test]
    fn the_records_of_every_magnitude_are_those_of_gensort() {
        for (encoding, skewed, digest) in [
            (Binary, false, "fa8c7786a9f190a821419f9f8ae3bcc0"),
            (Ascii, false, "cf92cf31ccb105469f72bde0c1a5c9d1"),
            (Binary, true, "bfbc4c44b98356da43ddfb80a04b754b"),
            (Ascii, true, "298f9ac44e54b2fb8a2bb153757088c3"),
        ] {
            let mut hasher = Md5::new();
            for power in 0..128 {
                let mut records = [0; 16 * size_of::<Record>()];
                Generator::new(encoding, skewed, 1 << power).fill(0, &mut records);
                hasher.update(records);
            }
            assert_eq!(
                hex(&hasher.finalize()),
                digest,
                "{encoding:?}, skewed {skewed}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "cut short")]
    fn a_record_cut_short_is_refused() {
        Generator::new(Binary, false, 0).fill(0, &mut [0; 199]);
    }

    fn any_generator() -> impl Strategy<Value = Generator> {
        (
            prop_oneof![Just(Binary), Just(Ascii)],
            any::<bool>(),
            any::<u128>(),
        )
            .prop_map(|(encoding, skewed, start)| Generator::new(encoding, skewed, start))
    }

    proptest! {
        #[test]
        fn parts_are_the_whole(generator in any_generator(), first: u32, records in 0usize..60, cut in 0usize..60) {
            let first = u64::from(first);
            let cut = cut.min(records);
            let mut whole = vec![0; records * size_of::<Record>()];
            generator.fill(first, &mut whole);
            let mut parts = vec![0; whole.len()];
            let (left, right) = parts.split_at_mut(cut * size_of::<Record>());
            generator.fill(first + cut as u64, right);
            generator.fill(first, left);
            prop_assert_eq!(parts, whole);
        }

        #[test]
        fn a_later_start_is_a_later_first(generator in any_generator(), first: u64) {
            let later = Generator { start: generator.start.wrapping_add(first.into()), ..generator };
            let (mut expected, mut found) = ([0; 300], [0; 300]);
            later.fill(0, &mut expected);
            generator.fill(first, &mut found);
            prop_assert_eq!(found, expected);
        }
    }
}
