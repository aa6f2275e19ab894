"""Tuning of concurrent requests, against a simulated store."""

from __future__ import annotations

import itertools

import pytest

from tonnage.run.reduce.tuning import (
    CHUNK_BYTES,
    MAX_QUIET_SECONDS,
    MAX_REQUESTS,
    QUIET_SECONDS,
    WINDOW_SECONDS,
    Tuner,
    chunk_bytes,
    explain_chunk_bytes,
    range_bytes,
)

CHUNK = 8 << 20


def tuned(
    each: float,
    cap: float,
    processed: float,
    most: int = MAX_REQUESTS,
    first: float = 0.0,
    measured: int | None = None,
) -> Tuner:
    """What is found where a request gives ``each``, all no more than ``cap``, and workers take
    ``processed`` bytes a second; first bytes come after ``first`` seconds."""
    tuner, now, moved, waited = Tuner(2, CHUNK, most, measured), 100.0, 0.0, 0.0
    tuner.begin(now)
    tuner.update(now, 0, waited)
    while tuner.settled is None and now < 200:
        rate = min(each * tuner.concurrency, cap)
        taken = min(rate, processed)
        moved += taken * 0.05
        waited += 2 * 0.05 * (1 - taken / processed)
        now += 0.05
        tuner.update(now, int(moved), waited, first)
    return tuner


@pytest.mark.parametrize(
    ("each", "cap", "processed", "found"),
    [
        (85e6, 700e6, 5e9, {8, 16}),  # A cap of the store.
        (85e6, 1e12, 5e9, {64}),  # None: as many as there may be.
        (85e6, 1e12, 300e6, {8}),  # Workers are busy.
        (2.4e9, 2.4e9, 5e9, {8}),  # One alone gives all that there is.
    ],
)
def test_as_many_as_bring_more(each: float, cap: float, processed: float, found: set[int]) -> None:
    tuner = tuned(each, cap, processed)
    assert tuner.settled and tuner.concurrency in found, tuner.why
    assert min(each * tuner.concurrency, cap, processed) >= 0.95 * min(
        each * MAX_REQUESTS, cap, processed
    )
    assert str(tuner.tried[0][0]) in tuner.why and tuner.settled in tuner.why


def test_what_brings_little_is_kept_but_not_doubled() -> None:
    tuner = tuned(85e6, 750e6, 5e9)
    assert [count for count, _ in tuner.tried] == [8, 16]
    assert tuner.concurrency == 16


def test_a_store_that_is_far_is_asked_for_several_times_as_much() -> None:
    near, far = (tuned(85e6, 3e9, 5e9, first=first) for first in (0.004, 0.04))
    assert [count for count, _ in near.tried] == [8, 16, 32, 64]
    assert [count for count, _ in far.tried] == [32, 64]
    assert tuned(85e6, 3e9, 5e9, most=12, first=0.04).concurrency == 12
    assert "first bytes after 40 ms, then" in far.why and "far, so 32 at once" in far.why
    assert "first bytes after 4 ms, then" in near.why and "far" not in near.why


def test_how_far_a_store_is_is_known_before_the_first_chunks_are_whole() -> None:
    """The shaped store: 40 ms to the first byte, then 85 MB/s each."""
    tuner = Tuner(2, CHUNK)
    tuner.begin(0.0)
    counts = [
        tuner.update(
            now, int(8 * 85e6 * max(now - 0.04, 0.0)), 2 * now, 0.04 if now > 0.04 else None
        )
        for now in (0.03, 0.05, 0.1)
    ]
    assert counts == [8, 8, 32]
    assert tuner.tried == [] and "40 ms, then 85 MB/s each: the store is far" in tuner.why


def test_connections_that_take_long_to_be_made_are_no_slow_link() -> None:
    tuner = Tuner(2, CHUNK)
    tuner.begin(0.0)
    for now in (0.5, 1.05, 1.1):  # Half of them are after a second.
        received = int(4 * 85e6 * max(now - 1.0, 0.0))
        at_once = tuner.update(now, received, 2 * now, 0.04 if received else None)
    assert at_once == 32, tuner.why


def test_a_slow_link_on_which_answers_wait_for_each_other_is_not_far() -> None:
    assert tuned(2.5e6, 20e6, 5e9, first=0.03).tried[0][0] == 8


def test_of_a_time_without_anything_to_ask_for_nothing_is_concluded() -> None:
    tuner = Tuner(2, CHUNK)
    tuner.begin(0.0)
    received = 8 * CHUNK
    tuner.update(1.0, received, 1.0)
    for tenth in range(20):
        received += CHUNK // 100
        tuner.update(1.1 + tenth / 10, received, 1.0 + tenth / 5, is_full=False)
    assert tuner.tried == []
    tuner.update(4.0, received + 100 * CHUNK, 5.0)
    assert [rate for _, rate in tuner.tried] == [pytest.approx(100 * CHUNK / 1.0, rel=0.01)]


def test_a_store_that_asks_for_fewer_gets_half_as_many_once_a_window() -> None:
    tuner = Tuner(2, CHUNK)
    tuner.begin(0.0)
    counts = [
        tuner.update(now, 0, 0.0, throttled=throttled)
        for now, throttled in [(1.0, 3), (1.1, 9), (1.5, 9), (1.9, 9), (2.5, 12), (3.0, 13)]
    ]
    assert counts == [4, 4, 4, 4, 2, 2]  # A worker keeps one.
    assert "the store refused" in tuner.why
    tuner.begin(4.0)
    assert tuner.update(4.5, CHUNK, 0.0) == 2


class Store:
    """A store that says of more than so many requests, for so long, that they are too many."""

    def __init__(self, allows: int, until: float) -> None:
        self._allows, self._until = allows, until
        self.now, self.received, self.throttled = 0.0, 0, 0
        self.tuner = Tuner(2, CHUNK)
        self.tuner.begin(self.now)
        self.counts: list[int] = []

    def give(self, seconds: float) -> None:
        """So much time passes, and workers wait for all that comes in it."""
        for _ in range(round(seconds / 0.05)):
            at_once = self.tuner.concurrency
            refused = self.now < self._until and at_once > self._allows
            self.throttled += refused
            self.received += 0 if refused else int(min(at_once, 32) * 85e6 * 0.05)
            self.now += 0.05
            self.counts.append(
                self.tuner.update(self.now, self.received, 2 * self.now, throttled=self.throttled)
            )


def test_after_a_burst_of_refusals_there_come_to_be_as_many_as_without_one() -> None:
    store = Store(allows=0, until=2.0)
    store.give(2.0)
    assert store.counts[-1] == 2
    store.give(30.0)
    assert store.tuner.concurrency == tuned(85e6, 32 * 85e6, 5e9).concurrency == 32
    assert "refused 8, 4, 2 requests at once: now 32" in store.tuner.why
    assert store.tuner.settled == "more requests brought no gain"


def test_what_was_found_is_come_back_to_in_rounds_that_are_short() -> None:
    tuner = tuned(85e6, 700e6, 5e9)
    found, now = tuner.concurrency, 300.0
    tuner.begin(now)
    assert tuner.update(now + 0.3, CHUNK, 0.0, throttled=1) < found
    for _ in range(100):  # Of what is quiet between rounds nothing is concluded.
        now += 100.0
        tuner.begin(now)
        for tick in range(1, 9):
            at_once = tuner.update(now + tick / 20, CHUNK, 0.0)
        if at_once == found:
            break
    assert tuner.concurrency == found and now > 300.0 + 9 * 100.0


def test_a_store_that_means_it_is_seldom_asked_for_more() -> None:
    store = Store(allows=4, until=1e9)
    store.give(600.0)
    assert {*store.counts[-4000:]} <= {4, 8}
    tries = sum(one < other for one, other in itertools.pairwise(store.counts))
    assert 600 / (QUIET_SECONDS + WINDOW_SECONDS) / 4 > tries > 600 / MAX_QUIET_SECONDS / 2


def test_what_was_enough_when_the_store_was_measured_is_begun_with() -> None:
    assert tuned(85e6, 700e6, 5e9, first=0.04, measured=12).tried[0][0] == 12
    assert tuned(85e6, 1e12, 5e9, most=8, measured=12).tried[0][0] == 8


def test_never_more_than_are_allowed() -> None:
    assert tuned(1e6, 1e12, 5e9, most=8).concurrency == 8


@pytest.mark.parametrize(
    ("chunk", "asked", "why"),
    [
        (CHUNK, None, "a request for each chunk"),
        (CHUNK // 24 * 24 - 24, None, "a request for each chunk"),
        (CHUNK // 2, None, "chunks shorter than a request could be"),
        (2 * CHUNK, None, "chunks of the index"),
        (CHUNK, CHUNK, "chunks as given"),
    ],
)
def test_why_chunks_are_so_large_is_told(chunk: int, asked: int | None, why: str) -> None:
    assert explain_chunk_bytes(chunk, asked).startswith(why)


@pytest.mark.parametrize("total", [0, 1, 10**6, 10**9, 10**13])
@pytest.mark.parametrize("workers", [1, 2, 64])
def test_chunks_fit_memory_and_are_enough_for_all(total: int, workers: int) -> None:
    memory = 256 << 20
    chunk = chunk_bytes(total, memory, workers)
    least, most = CHUNK_BYTES
    assert least <= chunk <= most
    assert chunk == least or 2 * workers * chunk <= memory
    assert chunk == least or total / chunk >= 4 * workers
    assert range_bytes(chunk) <= max(chunk, least)


def test_a_run_that_is_over_soon_tells_its_rate() -> None:
    tuner = Tuner(workers=2, chunk_bytes=1_000_000)
    assert tuner.why == "8 concurrent requests: the job ended before another number was tried"
    tuner.begin(10.0)
    tuner.update(10.5, 3_000_000, 0.1)
    assert (
        tuner.why == "8 concurrent requests, 6 MB/s: the job ended before another number was tried"
    )
