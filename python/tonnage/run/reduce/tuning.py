"""The size of chunks, and the number of concurrent requests, which is tuned at run time. Pure.

MATE-EC2 left both to the user. Requests: tuning starts with the number that sufficed when the store
was measured (`tonnage measure object`), or else with few. With n requests for P bytes each the
throughput is n P / (F + P / b): F is the time to the first byte, b the bytes per second of one
request. Both are known once the first answers have begun. If F is a large part of F + P / b, the
store is far away, and the number is multiplied at once. It is doubled while workers wait for chunks
and each doubling brings a quarter more throughput. A doubling that brought a twentieth is kept, but
is the last: the next would bring less, and take memory. Bytes are counted as they arrive, since
concurrent chunks complete together. Tuning is part of the job, so it costs only what smaller
numbers are slower by.

A store that answers 503 gets half as many requests, repeatedly. It may answer so for a moment only,
while it redistributes its data. So after a quiet time the number is doubled, up to the one found,
and unfinished tuning continues. If that is refused as well, the quiet time doubles, so that a store
with a real limit is seldom tested (as in TCP: Jacobson, "Congestion Avoidance and Control", 1988).

Chunks are as long as a request, since whole chunks cost fewer requests than parts, and a chunk is
still in the processor's cache when it is reduced. They are shorter if there is little memory or
data: each worker gets several, and none waits long for the last one.
"""

from dataclasses import dataclass, field

INITIAL_REQUESTS = 8
FAR_SECONDS = 0.02
FAR = 4
"""A store whose first bytes take longer gets `FAR` times as many requests,"""
FAR_SHARE = 0.1
"""if that is a large part of an answer's time. Otherwise the link is slow, for all requests."""
MAX_REQUESTS = 64
"""More connections of one machine seldom give more throughput."""
GAIN = 1.05
"""The gain of a doubling that is kept."""
PROMISE = 1.25
"""The gain of a doubling that is followed by another."""
WAITING = 0.05
"""If workers wait for a smaller share of their time, more requests are of no use."""
WINDOW_SECONDS = 0.25
"""The minimum of time and of chunks to compute a rate."""
WINDOW_CHUNKS = 4
QUIET_SECONDS = 4.0
"""A store that has refused nothing for this time gets more requests: longer than most pauses
before retries, which are quiet anyway."""
MAX_QUIET_SECONDS = 64.0
"""The maximum, since the store may have more capacity by then."""
CHUNKS_A_WORKER = 8
RANGE_BYTES = 8 << 20
"""The largest request: with 40 ms to the first byte and 85 MB/s, bytes take two thirds of it."""
CHUNK_BYTES = (1 << 20, RANGE_BYTES)
"""The shortest and the longest chunk, if files can be cut anywhere."""


def chunk_bytes(total: int, memory_bytes: int, workers: int) -> int:
    """The approximate size of chunks of ``total`` bytes."""
    least, most = CHUNK_BYTES
    by_memory = memory_bytes // (4 * workers)
    by_share = -(-total // (CHUNKS_A_WORKER * workers))
    return max(least, min(most, by_memory, by_share))


def explain_chunk_bytes(chunk: int, given: int | None) -> str:
    """Why the largest chunk has its size; ``given`` is the size in the settings."""
    if given is not None:
        return "chunks as given"
    if chunk > RANGE_BYTES:
        return "chunks of the index or the format"
    if chunk > RANGE_BYTES * 99 // 100:  # Rows are not cut.
        return "a request for each chunk"
    return (
        "chunks shorter than a request could be: there is little data or memory, or the index has "
        "such chunks"
    )


def range_bytes(chunk: int) -> int:
    return -(-chunk // -(-chunk // RANGE_BYTES))


@dataclass
class Tuner:
    """Tunes the number of concurrent requests.

    Args:
        measured: The number that sufficed when the store was measured.
        noun: The word for requests: files have reads.
    """

    workers: int
    chunk_bytes: int
    max_requests: int = MAX_REQUESTS
    measured: int | None = None
    noun: str = "requests"
    settled: str | None = None
    """Why tuning has ended, once it has."""
    tried: list[tuple[int, float]] = field(default_factory=list)
    """Numbers of requests, with their bytes per second."""
    _overall: float | None = None
    """Bytes per second of this round."""
    _began_at: float = 0.0
    _found: int = field(init=False)
    """The tuned number, without the store's limit."""
    _allowed: int | None = None
    """The limit after refusals; ``None`` without refusals."""
    _refused: dict[int, None] = field(default_factory=dict)
    """Numbers that the store refused, in order."""
    _way: str | None = None
    """The distance of the store, in words, once known."""
    _is_near: bool = False
    """The store is near, or the number is already adapted to its distance."""
    _coming: tuple[float, int] | None = None
    """When the first byte had arrived, and the bytes by then."""
    _seen_at: float = 0.0
    _throttled: int = 0
    _unchanged_seconds: float = WINDOW_SECONDS
    """The time in rounds since the limit last changed."""
    _quiet_seconds: float = QUIET_SECONDS
    """The time without refusals until the limit is raised."""
    _has_grown: bool = False
    """The last change of the limit raised it."""
    _begun: tuple[float, int, float] | None = None

    def __post_init__(self) -> None:
        self._found = min(self.measured or INITIAL_REQUESTS, self.max_requests)

    @property
    def concurrency(self) -> int:
        return self._found if self._allowed is None else min(self._found, self._allowed)

    def begin(self, now: float) -> None:
        """Begin a round; ``now`` is a monotonic time in seconds."""
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
        """Note the progress of the round; gives the number of requests from now on.

        Args:
            now: The monotonic time.
            received: Bytes received in this round, including parts of chunks.
            waited: Seconds that all workers have waited for chunks in total.
            first_byte: The shortest time to a first byte; ``None`` before any answer.
            throttled: Requests of this round that the store refused with 503.
            is_full: Whether there were enough chunks to request; otherwise rates mean nothing.
        """
        self._heed(now, throttled)
        if received and now > self._began_at:
            self._overall = received / (now - self._began_at)
        if self.settled is not None or self._allowed is not None:
            return self.concurrency
        if self._begun is None:
            self._leap(now, received, first_byte)
            # The first answers include the time to connect.
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
            self.settled = "workers hardly wait for chunks"
        elif rate <= GAIN * best:
            self._found = self.tried[-2][0]
            self.settled = "more requests brought no gain"
        elif best and rate <= PROMISE * best:
            self.settled = "another doubling would bring little gain"
        elif self._found >= self.max_requests:
            self.settled = "the maximum is reached"
        else:
            self._found = min(2 * self._found, self.max_requests)
        return self.concurrency

    def _leap(self, now: float, received: int, first_byte: float | None) -> None:
        """Use more requests at once if the first chunks show that the store is far away."""
        if self._is_near or self.measured is not None or first_byte is None:
            return
        # Measured from the first byte, since connecting comes before.
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
        """Halve the limit once for all refusals in a window; raise it after a quiet time.

        Each worker keeps one request.
        """
        self._unchanged_seconds += now - self._seen_at
        self._seen_at = now
        refused, self._throttled = throttled > self._throttled, throttled
        if refused and self._unchanged_seconds >= WINDOW_SECONDS:
            if self._has_grown:
                again = self._unchanged_seconds < self._quiet_seconds
                more = min(2 * self._quiet_seconds, MAX_QUIET_SECONDS)
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
        """What was tried, and why tuning ended, in words."""
        tried = ", ".join(f"{count}: {rate / 1e6:.0f} MB/s" for count, rate in self.tried)
        parts = [self._way] if self._way else []
        if tried:
            parts.append(f"concurrent {self.noun} tried: {tried}")
            parts.append(self.settled or "the job ended before more were tried")
        else:
            rate = "" if self._overall is None else f", {self._overall / 1e6:.0f} MB/s"
            settled = self.settled or "the job ended before another number was tried"
            parts.append(f"{self._found} concurrent {self.noun}{rate}: {settled}")
        if self._refused:
            refused = ", ".join(map(str, self._refused))
            parts.append(f"the store refused {refused} requests at once: now {self.concurrency}")
        return "; ".join(parts)
