"""Decompress the streams that Spark's codecs write, recognized by their first bytes.

zstd and gzip are standard files. What Spark calls lz4 and snappy are the block streams of lz4-java
(`LZ4BlockOutputStream`) and snappy-java (`SnappyOutputStream`), whose blocks are decompressed one
by one. An application that has not ended leaves a stream without its end: what was written is read.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from tonnage.measure.importers.metric import UnreadableFile

READ_BYTES = 1 << 20
LARGEST_BLOCK = 64 << 20
"""Bytes of a block; lz4-java allows 32 MiB."""
ZSTD, GZIP, LZ4, SNAPPY, LZF = (
    b"\x28\xb5\x2f\xfd",
    b"\x1f\x8b",
    b"LZ4Block",
    b"\x82SNAPPY\x00",
    b"ZV",
)
LZ4_HEADER, SNAPPY_HEADER = 21, 16
LZ4_STORED = 0x10


class Truncated(Exception):
    """The file ends before its compressed stream does."""


class Stream:
    """A file that is read in pieces of an exact length."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._start = b""
        self.closed = False

    def close(self) -> None:
        self.closed = True

    def peek(self, size: int) -> bytes:
        self._start = self.read(size)
        return self._start

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; fewer only at the end."""
        taken, self._start = self._start[:size], self._start[size:]
        parts = [taken]
        missing = size - len(taken)
        while missing and (more := self._file.read(missing)):
            parts.append(more)
            missing -= len(more)
        return b"".join(parts)

    def exactly(self, size: int) -> bytes:
        data = self.read(size)
        if len(data) < size:
            raise Truncated
        return data


def decompressed(file: BinaryIO) -> Iterator[bytes]:
    """The content of a file, compressed or not, in pieces.

    Raises:
        Truncated: The compressed stream ends early; what it had was given before.
        UnreadableFile: The stream is damaged, or of a codec that cannot be read.
    """
    stream = Stream(file)
    start = stream.peek(SNAPPY_HEADER)
    for magic, read in _READERS.items():
        if start.startswith(magic):
            yield from read(stream)
            return
    if start.startswith(LZF):
        raise UnreadableFile(
            "plain text, zstd, gzip, lz4 or snappy, not lzf; set spark.eventLog.compression.codec"
        )
    while chunk := stream.read(READ_BYTES):
        yield chunk


def _gzip(stream: Stream) -> Iterator[bytes]:
    decoder = zlib.decompressobj(wbits=31)
    while chunk := stream.read(READ_BYTES):
        while chunk:
            if decoder.eof:  # Files may be joined.
                decoder = zlib.decompressobj(wbits=31)
            try:
                yield decoder.decompress(chunk, READ_BYTES)
            except zlib.error:
                raise _damaged("gzip") from None
            chunk = decoder.unconsumed_tail or decoder.unused_data
    if not decoder.eof:
        yield decoder.flush()
        raise Truncated


def _zstd(stream: Stream) -> Iterator[bytes]:
    import pyarrow as pa

    file: Any = stream  # It has what PyArrow uses of a file.
    with pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd") as source:
        while True:
            # A read that fails has filled the buffer up to there. JSON has no zeros.
            buffer = bytearray(READ_BYTES)
            try:
                length = source.readinto(buffer)
            except OSError as why:
                if "truncated" not in str(why).lower():
                    raise _damaged("zstd") from None
                yield bytes(buffer.rstrip(b"\0"))
                raise Truncated from None
            if not length:
                return
            yield bytes(memoryview(buffer)[:length])


def _lz4(stream: Stream) -> Iterator[bytes]:
    """Blocks: magic, method, lengths compressed and not, checksum, data; an empty one ends them."""
    import pyarrow as pa

    codec = pa.Codec("lz4_raw")
    size = 1
    while header := stream.read(LZ4_HEADER):
        if not header.startswith(LZ4[: len(header)]):
            raise _damaged("lz4")
        if len(header) < LZ4_HEADER:
            raise Truncated
        packed, size = (int.from_bytes(header[at : at + 4], "little") for at in (9, 13))
        if packed > LARGEST_BLOCK:
            raise _damaged("lz4")
        if not size:
            continue
        data = stream.exactly(packed)
        is_stored = header[len(LZ4)] & 0xF0 == LZ4_STORED
        yield data if is_stored else _block(codec, data, size, "lz4")
    if size:
        raise Truncated


def _snappy(stream: Stream) -> Iterator[bytes]:
    """Blocks: length and data, after a header that is repeated where streams were joined.

    The stream has no mark of its end, so one that ends between blocks counts as complete.
    """
    import pyarrow as pa

    codec = pa.Codec("snappy")
    while start := stream.read(4):
        if len(start) < 4:
            raise Truncated
        if start == SNAPPY[:4]:
            stream.exactly(SNAPPY_HEADER - 4)
            continue
        length = int.from_bytes(start, "big")
        if length > LARGEST_BLOCK:
            raise _damaged("snappy")
        data = stream.exactly(length)
        yield _block(codec, data, _snappy_size(data), "snappy")


def _snappy_size(data: bytes) -> int:
    """The length that a snappy block states first, seven bits a byte."""
    size = 0
    for place, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    return size


def _block(codec: Any, data: bytes, size: int, name: str) -> bytes:
    if size <= LARGEST_BLOCK:
        try:
            return codec.decompress(data, decompressed_size=size, asbytes=True)  # type: ignore[no-any-return]
        except (OSError, ValueError):
            pass
    raise _damaged(name)


def _damaged(codec: str) -> UnreadableFile:
    return UnreadableFile(f"an undamaged {codec} stream")


_READERS: dict[bytes, Callable[[Stream], Iterator[bytes]]] = {
    ZSTD: _zstd,
    GZIP: _gzip,
    LZ4: _lz4,
    SNAPPY: _snappy,
}
