//! The headers of pages, as Thrift's compact protocol writes them: as far as they tell how long a
//! page is once it is decompressed, and how many values it has.
//!
//! `parquet` has a reader of headers, too, but keeps it to itself.

/// Nothing in a header is nested deeper.
const DEEPEST: usize = 8;

/// What a header says of its page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageHeader {
    /// Bytes of the header.
    pub header_bytes: u64,
    /// Bytes of the page behind it in the file.
    pub stored_bytes: u64,
    /// Bytes of the page when it is decompressed.
    pub bytes: u64,
    /// Its values, with nulls.
    pub values: u64,
    /// Whether it is a dictionary.
    pub is_dictionary: bool,
}

impl PageHeader {
    /// The header that begins `bytes`; `None` if there is none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut header = Self::default();
        let mut left = Compact(bytes);
        left.fields(DEEPEST, &mut |path, number| match *path {
            [2] => header.bytes = number,
            [3] => header.stored_bytes = number,
            [5 | 8, 1] => header.values = number,
            [7, 1] => (header.values, header.is_dictionary) = (number, true),
            _ => (),
        })?;
        header.header_bytes = (bytes.len() - left.0.len()) as u64;
        Some(header)
    }
}

/// What is left of bytes in the compact protocol.
struct Compact<'a>(&'a [u8]);

impl Compact<'_> {
    /// Reads a struct; gives each number in it with the ids of the fields around it.
    fn fields(&mut self, depth: usize, give: &mut dyn FnMut(&[u64], u64)) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let mut id = 0_u64;
        loop {
            let head = self.byte()?;
            let (delta, kind) = (head >> 4, head & 15);
            if kind == 0 {
                return Some(());
            }
            id = match delta {
                0 => zigzag(self.number()?),
                delta => id.checked_add(delta.into())?,
            };
            self.value(kind, depth, &mut |inner, number| {
                let mut path = vec![id];
                path.extend_from_slice(inner);
                give(&path, number);
            })?;
        }
    }

    fn value(&mut self, kind: u8, depth: usize, give: &mut dyn FnMut(&[u64], u64)) -> Option<()> {
        match kind {
            1 | 2 => (), // a boolean is its kind
            3 => drop(self.byte()?),
            4..=6 => give(&[], zigzag(self.number()?)),
            7 => self.skip(8)?,
            8 => {
                let bytes = self.number()?;
                self.skip(bytes)?;
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.number()?,
                    count => count.into(),
                };
                for _ in 0..count {
                    self.value(head & 15, depth.checked_sub(1)?, &mut |_, _| ())?;
                }
            }
            12 => self.fields(depth, give)?,
            _ => return None,
        }
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// Seven bits a byte, the low ones first.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }
}

/// A number with a sign; no number of a header is negative.
fn zigzag(number: u64) -> u64 {
    number >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_without_its_statistics() {
        // type 0, 1000 bytes, 300 stored, a data page of 77 values with statistics and a boolean
        let header = [
            0x15, 0, 0x15, 0xd0, 0x0f, 0x15, 0xd8, 0x04, 0x2c, 0x15, 0x9a, 0x01, 0x15, 0, 0x3c,
            0x18, 2, b'a', b'b', 0x11, 0, 0, 0, b'x',
        ];
        let found = PageHeader::parse(&header).expect("a header");
        let expected = PageHeader {
            header_bytes: header.len() as u64 - 1,
            stored_bytes: 300,
            bytes: 1000,
            values: 77,
            is_dictionary: false,
        };
        assert_eq!(found, expected);
        for end in 0..header.len() - 1 {
            assert_eq!(PageHeader::parse(&header[..end]), None, "{end}");
        }
    }
}
