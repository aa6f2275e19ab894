"""How large chunks are, by the data, and how many requests at once: found while it runs. Pure.

What MATE-EC2 left to who asks. Requests: begun with as many as were enough when the store was
measured (`tonnage measure object`), or else with few. Of n requests at once for P bytes each comes
n P / (F + P / b) a second: F to the first byte, b bytes a second each. Both are known as soon as
the first answers have begun; where F is a good part of F + P / b the store is far away, and there
are several times as many at once. They are doubled as long as workers wait for chunks at all and
that brings a quarter more in the same time; what brought a twentieth is kept, but the next doubling
would bring less than that, and takes memory. Bytes are counted as they come: chunks that are
fetched side by side are whole together. What is retrieved meanwhile is part of the job, so finding
costs only what the smaller numbers are slower by.

A store that says that there are too many (503) gets half as many, and again, as long as it says so.
It may say so for a moment only, while it spreads what it holds: when it has said nothing for a
while there are twice as many again, up to what was found, and if finding had not ended it goes on.
Where that is refused as well the next try comes after twice the time, so that a store which means
it is seldom asked (as TCP's senders do: Jacobson, "Congestion Avoidance and Control", 1988).

Chunks: as long as a request is to be, since whole chunks side by side cost fewer requests than
parts of one, and one is still in the processor's cache when it is reduced; shorter where there is
little memory, or data: each worker gets several, and none waits long for the last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

INITIAL_REQUESTS = 8
"""Requests at once to begin with."""
FAR_SECONDS = 0.02
FAR = 4
"""A store of which no answer begins sooner is asked for so many times as much at once,"""
FAR_SHARE = 0.1
"""if what an answer takes is that in good part: else it waits for bytes, as on a slow link, and so
do all that are asked beside it."""
MAX_REQUESTS = 64
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
QUIET_SECONDS = 4.0
"""A store that has refused nothing for so long gets more requests again: longer than most pauses
before what it refused is repeated, which are quiet for that alone."""
MOST_QUIET_SECONDS = 64.0
"""Longer nobody waits with the next try: a store may have come to give more by then."""
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


def explain_chunk_bytes(chunk: int, asked: int | None) -> str:
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
        asked: What they are called: of files they are no requests.
    """

    workers: int
    chunk_bytes: int
    max_requests: int = MAX_REQUESTS
    measured: int | None = None
    noun: str = "requests"
    settled: str | None = None
    """Why it stays, once it does."""
    tried: list[tuple[int, float]] = field(default_factory=list)
    """Requests at once, and bytes a second."""
    _overall: float | None = None
    """Bytes a second of this round so far."""
    _began_at: float = 0.0
    _found: int = field(init=False)
    """As many as there are if the store refuses none."""
    _allowed: int | None = None
    """As many as it may not refuse; ``None`` while nothing says that it would."""
    _refused: dict[int, None] = field(default_factory=dict)
    """So many were too many, in this order."""
    _way: str | None = None
    """How far the store is, in words, as far as that is known."""
    _is_near: bool = False
    """It is; or there are as many as for one that is not."""
    _coming: tuple[float, int] | None = None
    """When the first byte had come, and bytes by then."""
    _seen_at: float = 0.0
    _throttled: int = 0
    _unchanged_seconds: float = WINDOW_SECONDS
    """Of rounds, since it last allowed fewer, or more."""
    _quiet_seconds: float = QUIET_SECONDS
    """It has to refuse nothing for so long to get more."""
    _has_grown: bool = False
    """It allowed more when that last changed."""
    _begun: tuple[float, int, float] | None = None

    def __post_init__(self) -> None:
        self._found = min(self.measured or INITIAL_REQUESTS, self.max_requests)

    @property
    def concurrency(self) -> int:
        """How many requests there are to be."""
        return self._found if self._allowed is None else min(self._found, self._allowed)

    def begin(self, now: float) -> None:
        """A round begins: what is counted begins anew.

        Args:
            now: Seconds since some moment.
        """
        self._began_at = self._seen_at = now
        self._throttled = 0
        self._begun = self._coming = None

    def update(
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
        self._heed(now, throttled)
        if received and now > self._began_at:
            self._overall = received / (now - self._began_at)
        if self.settled is not None or self._allowed is not None:
            return self.concurrency
        if self._begun is None:
            self._leap(now, received, first_byte)
            # What came first was waited for as connections were made.
            if received >= INITIAL_REQUESTS * self.chunk_bytes:
                self._begun, self._is_near = (now, received, waited), True
            return self.concurrency
        if not is_full:
            self._begun = (now, received, waited)
            return self.concurrency
        seconds, bytes_, waiting = (
            here - there for here, there in zip((now, received, waited), self._begun, strict=True)
        )
        if seconds < WINDOW_SECONDS or bytes_ < WINDOW_CHUNKS * self.chunk_bytes:
            return self.concurrency
        self._begun = (now, received, waited)
        rate, best = bytes_ / seconds, max((each for _, each in self.tried), default=0.0)
        self.tried.append((self.concurrency, rate))
        if waiting < WAITING * seconds * self.workers:
            self.settled = "workers wait for next to no chunk"
        elif rate <= GAIN * best:
            self._found = self.tried[-2][0]
            self.settled = "more brought no more"
        elif best and rate <= PROMISE * best:
            self.settled = "twice as many again would bring next to no more"
        elif self._found >= self.max_requests:
            self.settled = "there may be no more"
        else:
            self._found = min(2 * self._found, self.max_requests)
        return self.concurrency

    def _leap(self, now: float, received: int, first_byte: float | None) -> None:
        """While the first chunks come: if the store is far, there are more requests at once."""
        if self._is_near or self.measured is not None or first_byte is None:
            return
        # Connections were made before, which says nothing of bytes a second.
        then, before = self._coming = self._coming or (now, received)
        if now - then < first_byte or received == before:
            return
        each = (received - before) / self._found / (now - then)
        answer = first_byte + min(self.chunk_bytes, RANGE_BYTES) / each
        self._way = f"first bytes after {first_byte * 1e3:.0f} ms, then {each / 1e6:.0f} MB/s each"
        if first_byte > max(FAR_SECONDS, FAR_SHARE * answer):
            self._found, self._is_near = min(FAR * self._found, self.max_requests), True
            self._way += f": the store is far, so {self._found} at once"

    def _heed(self, now: float, throttled: int) -> None:
        """Half as many requests, once for all that the store refuses in a window; more when quiet.

        A worker keeps one.
        """
        self._unchanged_seconds += now - self._seen_at
        self._seen_at = now
        refused, self._throttled = throttled > self._throttled, throttled
        if refused and self._unchanged_seconds >= WINDOW_SECONDS:
            if self._has_grown:
                again = self._unchanged_seconds < self._quiet_seconds
                more = min(2 * self._quiet_seconds, MOST_QUIET_SECONDS)
                self._quiet_seconds = more if again else QUIET_SECONDS
            self._refused[self.concurrency] = None
            self._allowed = min(self.concurrency, max(self.concurrency // 2, self.workers))
        elif self._allowed is not None and self._unchanged_seconds >= self._quiet_seconds:
            more = 2 * self._allowed
            self._allowed = more if more < self._found else None
        else:
            return
        self._has_grown, self._unchanged_seconds = not refused, 0.0
        self._begun = self._coming = None

    @property
    def why(self) -> str:
        """What was tried, and why it stayed so, in words."""
        tried = ", ".join(f"{count}: {rate / 1e6:.0f} MB/s" for count, rate in self.tried)
        parts = [self._way] if self._way else []
        if tried:
            parts.append(f"{self.noun} at once tried: {tried}")
            parts.append(self.settled or "it was over before more was")
        else:
            rate = "" if self._overall is None else f", {self._overall / 1e6:.0f} MB/s"
            settled = self.settled or "it was over before another number was tried"
            parts.append(f"{self._found} {self.noun} at once{rate}: {settled}")
        if self._refused:
            said = ", ".join(map(str, self._refused))
            parts.append(
                f"the store said that there are too many of {said}: now {self.concurrency}"
            )
        return "; ".join(parts)
