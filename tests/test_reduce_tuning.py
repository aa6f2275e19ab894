"""How many requests at once: found of what a store gives, which is simulated here."""

from __future__ import annotations

import pytest

from tonnage.run.reduce.tuning import CHUNK_BYTES, MOST, Tuner, chunk_bytes, range_bytes, why_chunks

CHUNK = 8 << 20


def tuned(
    each: float,
    cap: float,
    processed: float,
    most: int = MOST,
    first: float = 0.0,
    measured: int | None = None,
) -> Tuner:
    """What is found where a request gives ``each``, all no more than ``cap``, and workers take
    ``processed`` bytes a second; first bytes come after ``first`` seconds."""
    tuner, now, moved, waited = Tuner(2, CHUNK, most, measured), 100.0, 0.0, 0.0
    tuner.begin(now)
    tuner.saw(now, 0, waited)
    while tuner.settled is None and now < 200:
        rate = min(each * tuner.at_once, cap)
        taken = min(rate, processed)
        moved += taken * 0.05
        waited += 2 * 0.05 * (1 - taken / processed)
        now += 0.05
        tuner.saw(now, int(moved), waited, first)
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
    assert tuner.settled and tuner.at_once in found, tuner.why
    assert min(each * tuner.at_once, cap, processed) >= 0.95 * min(each * MOST, cap, processed)
    assert str(tuner.tried[0][0]) in tuner.why and tuner.settled in tuner.why


def test_what_brings_little_is_kept_but_not_doubled() -> None:
    tuner = tuned(85e6, 750e6, 5e9)
    assert [count for count, _ in tuner.tried] == [8, 16]
    assert tuner.at_once == 16


def test_a_store_that_is_far_is_asked_for_several_times_as_much() -> None:
    near, far = (tuned(85e6, 3e9, 5e9, first=first) for first in (0.004, 0.04))
    assert [count for count, _ in near.tried] == [8, 16, 32, 64]
    assert [count for count, _ in far.tried] == [32, 64]
    assert tuned(85e6, 3e9, 5e9, most=12, first=0.04).at_once == 12


def test_a_slow_link_on_which_answers_wait_for_each_other_is_not_far() -> None:
    assert tuned(2.5e6, 20e6, 5e9, first=0.03).tried[0][0] == 8


def test_of_a_time_without_anything_to_ask_for_nothing_is_concluded() -> None:
    tuner = Tuner(2, CHUNK)
    tuner.begin(0.0)
    received = 8 * CHUNK
    tuner.saw(1.0, received, 1.0)
    for tenth in range(20):
        received += CHUNK // 100
        tuner.saw(1.1 + tenth / 10, received, 1.0 + tenth / 5, is_full=False)
    assert tuner.tried == []
    tuner.saw(4.0, received + 100 * CHUNK, 5.0)
    assert [rate for _, rate in tuner.tried] == [pytest.approx(100 * CHUNK / 1.0, rel=0.01)]


def test_a_store_that_asks_for_fewer_gets_half_as_many_once_a_window() -> None:
    tuner = Tuner(2, CHUNK)
    tuner.begin(0.0)
    counts = [
        tuner.saw(now, 0, 0.0, throttled=throttled)
        for now, throttled in [(1.0, 3), (1.1, 9), (1.5, 9), (1.9, 9), (2.5, 12), (3.0, 13)]
    ]
    assert counts == [4, 4, 4, 4, 2, 2]  # A worker keeps one.
    assert "too many" in tuner.why
    tuner.begin(4.0)
    assert tuner.saw(4.5, CHUNK, 0.0) == 2


def test_what_was_enough_when_the_store_was_measured_is_begun_with() -> None:
    assert tuned(85e6, 700e6, 5e9, first=0.04, measured=12).tried[0][0] == 12
    assert tuned(85e6, 1e12, 5e9, most=8, measured=12).tried[0][0] == 8


def test_never_more_than_are_allowed() -> None:
    assert tuned(1e6, 1e12, 5e9, most=8).at_once == 8


@pytest.mark.parametrize(
    ("chunk", "asked", "why"),
    [
        (CHUNK, None, "chunks of a request each"),
        (CHUNK // 24 * 24 - 24, None, "chunks of a request each"),
        (CHUNK // 2, None, "chunks shorter than a request could be"),
        (2 * CHUNK, None, "chunks as the index"),
        (CHUNK, CHUNK, "chunks as asked for"),
    ],
)
def test_why_chunks_are_so_large_is_told(chunk: int, asked: int | None, why: str) -> None:
    assert why_chunks(chunk, asked).startswith(why)


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
    assert tuner.why == "8 requests at once: it was over before another number was tried"
    tuner.begin(10.0)
    tuner.saw(10.5, 3_000_000, 0.1)
    assert tuner.why == "8 requests at once, 6 MB/s: it was over before another number was tried"
