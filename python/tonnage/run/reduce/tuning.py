"""How large chunks are, by the data, and how many requests at once: found while it runs. Pure.

What MATE-EC2 left to who asks. Requests: begun with as many as were enough when the store was
measured (`tonnage measure object`), or else with few, and with several times as many where first
bytes are a good part of what requests take, as from a store that is far away; they are doubled as
long as workers wait for chunks at all and that brings a quarter more in the same time; what brought
a twentieth is kept, but the next doubling would bring less than that, and takes memory. Bytes are
counted as they come: chunks that are fetched side by side are whole together. Then it stays, but
for a store that says that there are too many: then there are half as many. What is retrieved
meanwhile is part of the job, so finding costs only what the smaller numbers are slower by. Chunks:
as long as a request is to be, since whole chunks side by side cost fewer requests than parts of
one, and one is still in the processor's cache when it is reduced; shorter where there is little
memory, or data: each worker gets several, and none waits long for the last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FIRST = 8
"""Requests at once to begin with."""
FAR_SECONDS = 0.02
FAR = 4
"""A store of which no answer begins sooner is asked for so many times as much at once,"""
FAR_SHARE = 0.1
"""if what an answer takes is that in good part: else it waits for bytes, as on a slow link, and so
do all that are asked beside it."""
MOST = 64
"""Requests at once, at most: more connections of one machine seldom give more."""
GAIN = 1.05
"""What twice as many have to bring, or it was enough."""
PROMISE = 1.25
"""What they have to bring for twice as many again to be tried."""
WAITING = 0.05
"""When workers wait for a smaller share of their time, more chunks would wait for them."""
WINDOW_SECONDS = 0.25
"""So long, and so many chunks, make a rate."""
WINDOW_CHUNKS = 4
CHUNKS_A_WORKER = 8
RANGE_BYTES = 8 << 20
"""What a request asks for at most: of a store that takes 40 ms to the first byte and gives 85 MB/s,
two thirds of its time are bytes."""
CHUNK_BYTES = (1 << 20, RANGE_BYTES)
"""The shortest and the longest chunk, where they can be cut anywhere."""


def chunk_bytes(total: int, memory_bytes: int, workers: int) -> int:
    """About how large chunks are to be.

    Args:
        total: Bytes of the input.
        memory_bytes: For chunks.
        workers: Threads that reduce.
    """
    least, most = CHUNK_BYTES
    by_memory = memory_bytes // (4 * workers)
    by_share = -(-total // (CHUNKS_A_WORKER * workers))
    return max(least, min(most, by_memory, by_share))


def why_chunks(chunk: int, asked: int | None) -> str:
    """Why chunks are as large as they are, in words.

    Args:
        chunk: The largest.
        asked: What was asked for.
    """
    if asked is not None:
        return "chunks as asked for"
    if chunk > RANGE_BYTES:
        return "chunks as the index, or the format, has them"
    if chunk > RANGE_BYTES * 99 // 100:  # Rows are whole.
        return "chunks of a request each"
    return (
        "chunks shorter than a request could be: there is little data, or memory, or the index has "
        "them so"
    )


def range_bytes(chunk: int) -> int:
    """What one request asks for of a chunk."""
    return -(-chunk // -(-chunk // RANGE_BYTES))


@dataclass
class Tuner:
    """Finds how many requests at once.

    Args:
        workers: Threads that reduce.
        chunk_bytes: Size of a chunk.
        most: Requests at once, at most.
        measured: As many as were enough when the store was measured.
    """

    workers: int
    chunk_bytes: int
    most: int = MOST
    measured: int | None = None
    at_once: int = field(init=False)
    settled: str | None = None
    """Why it stays, once it does."""
    tried: list[tuple[int, float]] = field(default_factory=list)
    """Requests at once, and bytes a second."""
    _overall: float | None = None
    """Bytes a second of this round so far."""
    _has_leapt: bool = False
    _began_at: float = 0.0
    _throttled: tuple[int, float] = (0, 0.0)
    _begun: tuple[float, int, float] | None = None

    def __post_init__(self) -> None:
        self.at_once = min(self.measured or FIRST, self.most)

    def begin(self, now: float) -> None:
        """A round begins: what is counted begins anew.

        Args:
            now: Seconds since some moment.
        """
        self._began_at, self._throttled, self._begun = now, (0, now), None

    def saw(
        self,
        now: float,
        received: int,
        waited: float,
        first_byte: float | None = None,
        throttled: int = 0,
        is_full: bool = True,
    ) -> int:
        """How many requests there are to be from now on.

        Args:
            now: Seconds since the same moment.
            received: Bytes that have come in this round, of chunks that are not whole yet as well:
                chunks that are fetched side by side come together.
            waited: Seconds that workers have waited for chunks by now, all together.
            first_byte: Seconds to the first byte of an answer, the shortest; ``None`` before any.
            throttled: Requests of this round to which the store said that there are too many.
            is_full: Whether there is something to ask for; else a rate says nothing.
        """
        if throttled > self._throttled[0]:
            self._halve(now, throttled)
        if received and now > self._began_at:
            self._overall = received / (now - self._began_at)
        if self.settled is not None:
            return self.at_once
        if self._begun is None:
            # What came first was waited for as connections were made.
            if received >= FIRST * self.chunk_bytes:
                self._begun = (now, received, waited)
                self._leap(first_byte, now - self._began_at)
            return self.at_once
        if not is_full:
            self._begun = (now, received, waited)
            return self.at_once
        seconds, bytes_, waiting = (
            here - there for here, there in zip((now, received, waited), self._begun, strict=True)
        )
        if seconds < WINDOW_SECONDS or bytes_ < WINDOW_CHUNKS * self.chunk_bytes:
            return self.at_once
        self._begun = (now, received, waited)
        rate, best = bytes_ / seconds, max((each for _, each in self.tried), default=0.0)
        self.tried.append((self.at_once, rate))
        if waiting < WAITING * seconds * self.workers:
            self.settled = "workers wait for next to no chunk"
        elif rate <= GAIN * best:
            self.at_once = self.tried[-2][0]
            self.settled = "more brought no more"
        elif best and rate <= PROMISE * best:
            self.settled = "twice as many again would bring next to no more"
        elif self.at_once >= self.most:
            self.settled = "there may be no more"
        else:
            self.at_once = min(2 * self.at_once, self.most)
        return self.at_once

    def _leap(self, first_byte: float | None, took: float) -> None:
        """The first requests have ended, after so long: if the store is far, more at once."""
        if self._has_leapt or self.measured is not None or first_byte is None:
            return
        self._has_leapt = True
        if first_byte > max(FAR_SECONDS, FAR_SHARE * took):
            self.at_once = min(FAR * FIRST, self.most)

    def _halve(self, now: float, throttled: int) -> None:
        """Half as many requests, once for all that were refused in a window; a worker keeps one."""
        if now - self._throttled[1] < WINDOW_SECONDS:
            self._throttled = (throttled, self._throttled[1])
            return
        self._throttled = (throttled, now)
        self.settled = f"the store said that {self.at_once} are too many"
        self.at_once = min(self.at_once, max(self.at_once // 2, self.workers))

    @property
    def why(self) -> str:
        """What was tried, and why it stayed so, in words."""
        tried = ", ".join(f"{count}: {rate / 1e6:.0f} MB/s" for count, rate in self.tried)
        why = self.settled or "it was over before another number was tried"
        if not self.tried:
            rate = "" if self._overall is None else f", {self._overall / 1e6:.0f} MB/s"
            return f"{self.at_once} requests at once{rate}: {why}"
        return f"requests at once tried: {tried}; {self.settled or 'it was over before more was'}"
