//! Decompresses a stream piece by piece, as its pieces arrive.

use std::io::{self, BufRead, Read};

use bytes::Bytes;
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;

use crate::compression::Codec;
use crate::error::FormatError;

/// The shortest window that may be asked for: zstd takes no less.
const SHORTEST_WINDOW: usize = 1 << 10;

/// A stream that is decompressed as far as its bytes have arrived.
pub struct Decompressor {
    codec: Codec,
    decoder: Decoder,
    window_bytes: usize,
}

enum Decoder {
    Gzip(Box<MultiGzDecoder<Arrived>>),
    Zstd(zstd::stream::read::Decoder<'static, Arrived>),
    Bzip2(MultiBzDecoder<Arrived>),
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Decompressor({})", self.codec.name())
    }
}

impl Decompressor {
    /// A stream of which nothing has arrived. Its window is at most `window_bytes`, or rather the
    /// next power of two.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new(codec: Codec, window_bytes: usize) -> Result<Self, FormatError> {
        let window_bytes = window_bytes.max(SHORTEST_WINDOW).next_power_of_two();
        let arrived = Arrived::default();
        let decoder = match codec {
            Codec::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(arrived))),
            Codec::Bzip2 => Decoder::Bzip2(MultiBzDecoder::new(arrived)),
            Codec::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(arrived)?;
                decoder.window_log_max(window_bytes.ilog2())?;
                Decoder::Zstd(decoder)
            }
        };
        Ok(Self {
            codec,
            decoder,
            window_bytes,
        })
    }

    /// The next bytes of the stream have arrived; those before are read by now.
    pub fn arrive(&mut self, bytes: Bytes) {
        let arrived = self.arrived();
        debug_assert!(arrived.bytes.is_empty());
        arrived.bytes = bytes;
    }

    /// There are no more bytes.
    pub fn end(&mut self) {
        self.arrived().is_whole = true;
    }

    /// Reads text; `None` if more bytes have to arrive first, and 0 bytes at the end.
    ///
    /// # Errors
    /// A stream that is damaged or cut off, or whose window is too long.
    pub fn read(&mut self, into: &mut [u8]) -> Result<Option<usize>, FormatError> {
        let read = match &mut self.decoder {
            Decoder::Gzip(decoder) => decoder.read(into),
            Decoder::Zstd(decoder) => decoder.read(into),
            Decoder::Bzip2(decoder) => decoder.read(into),
        };
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(why) => Err(self.refusal(&why)),
        }
    }

    fn refusal(&mut self, why: &io::Error) -> FormatError {
        let (codec, window_bytes) = (self.codec.name(), self.window_bytes);
        let arrived = self.arrived();
        let at = arrived.read_bytes;
        FormatError::Damaged(if arrived.is_whole && arrived.bytes.is_empty() {
            format!("its {codec} stream is cut off at byte {at}; get the whole file")
        } else if why.to_string().contains("too much memory") {
            format!(
                "its {codec} stream has a window of more than {window_bytes} bytes, and with this \
                 memory that is too long; use more memory"
            )
        } else {
            format!("what is at byte {at} is no {codec} stream, or damaged ({why})")
        })
    }

    /// How many bytes of the stream were read.
    pub fn read_bytes(&mut self) -> u64 {
        self.arrived().read_bytes
    }

    fn arrived(&mut self) -> &mut Arrived {
        match &mut self.decoder {
            Decoder::Gzip(decoder) => decoder.get_mut(),
            Decoder::Zstd(decoder) => decoder.get_mut(),
            Decoder::Bzip2(decoder) => decoder.get_mut(),
        }
    }
}

/// Bytes that have arrived, and are not read yet.
#[derive(Debug, Default)]
struct Arrived {
    bytes: Bytes,
    is_whole: bool,
    read_bytes: u64,
}

impl Read for Arrived {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?.len().min(into.len());
        into[..bytes].copy_from_slice(&self.bytes[..bytes]);
        self.consume(bytes);
        Ok(bytes)
    }
}

impl BufRead for Arrived {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.bytes.is_empty() && !self.is_whole {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => Ok(&self.bytes),
        }
    }

    fn consume(&mut self, bytes: usize) {
        let _consumed = self.bytes.split_to(bytes);
        self.read_bytes += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn compressed(codec: Codec, text: &[u8]) -> Vec<u8> {
        match codec {
            Codec::Gzip => {
                let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                to.write_all(text).and_then(|()| to.finish())
            }
            Codec::Zstd => zstd::encode_all(text, 1),
            Codec::Bzip2 => {
                let mut to = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                to.write_all(text).and_then(|()| to.finish())
            }
        }
        .expect("in memory")
    }

    fn decompressed(codec: Codec, pieces: &[&[u8]]) -> Result<Vec<u8>, FormatError> {
        let mut decompressor = Decompressor::new(codec, 1 << 20)?;
        let (mut text, mut buffer) = (Vec::new(), [0; 50]);
        for piece in pieces.iter().map(Some).chain([None]) {
            match piece {
                Some(piece) => decompressor.arrive(Bytes::copy_from_slice(piece)),
                None => decompressor.end(),
            }
            while let Some(bytes @ 1..) = decompressor.read(&mut buffer)? {
                text.extend_from_slice(&buffer[..bytes]);
            }
        }
        Ok(text)
    }

    fn codecs() -> impl Strategy<Value = Codec> {
        prop::sample::select(vec![Codec::Gzip, Codec::Zstd, Codec::Bzip2])
    }

    proptest! {
        #[test]
        fn text_is_the_same_however_its_members_arrive(
            codec in codecs(),
            members in prop::collection::vec(prop::collection::vec(b'a'..b'd', 0..300), 1..4),
            piece_bytes in 1_usize..200,
        ) {
            let stream: Vec<u8> =
                members.iter().flat_map(|member| compressed(codec, member)).collect();
            let pieces: Vec<&[u8]> = stream.chunks(piece_bytes).collect();
            prop_assert_eq!(Codec::of(&stream), Some(codec));
            prop_assert_eq!(decompressed(codec, &pieces).expect("whole"), members.concat());
        }

        #[test]
        fn a_stream_that_is_cut_off_is_told(codec in codecs(), kept in 4_usize..60) {
            let stream = compressed(codec, &[b'a'; 300].map(|_| b'a'));
            let kept = kept.min(stream.len() - 1);
            let why = decompressed(codec, &[&stream[..kept]]).expect_err("cut off").to_string();
            prop_assert!(why.contains(&format!("cut off at byte {kept}")), "{}", why);
        }

        #[test]
        fn what_is_behind_a_stream_is_told(codec in codecs()) {
            let stream = [compressed(codec, b"text"), b"and what is no stream".to_vec()].concat();
            let why = decompressed(codec, &[&stream]).expect_err("no stream").to_string();
            prop_assert!(why.contains("is no"), "{}", why);
        }
    }

    #[test]
    fn windows_are_those_of_the_frames() {
        let text = vec![b'a'; 3 << 20];
        let known = compressed(Codec::Zstd, &text[..1000]);
        let mut single = zstd::Encoder::new(Vec::new(), 1).expect("in memory");
        single
            .set_pledged_src_size(Some(1000))
            .expect("before text");
        single.write_all(&text[..1000]).expect("in memory");
        let single = single.finish().expect("in memory");
        let mut long = zstd::Encoder::new(Vec::new(), 1).expect("in memory");
        long.window_log(23).expect("in range");
        long.write_all(&text).expect("in memory");
        let long = long.finish().expect("in memory");
        assert_eq!(Codec::Zstd.window_bytes(&long), 8 << 20);
        assert_eq!(Codec::Zstd.window_bytes(&single), 1000);
        assert!(Codec::Zstd.window_bytes(&known) >= 1000);
        let why = decompressed(Codec::Zstd, &[&long]).expect_err("a long window");
        assert!(why.to_string().contains("use more memory"), "{why}");
    }

    #[test]
    fn text_that_looks_nearly_compressed_is_none() {
        for text in [
            &b"BZh9 is how bzip2 begins"[..],
            b"\x1f\x8b",
            b"",
            b"BZh91AY&",
        ] {
            assert_eq!(Codec::of(text), None);
        }
    }
}
