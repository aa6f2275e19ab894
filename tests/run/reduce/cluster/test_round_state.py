"""A round's result is stored without pickle: it is read back the same, or refused."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import pickle
import random
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from tonnage.base import core
from tonnage.run.reduce.builtin.kmeans import Centres
from tonnage.run.reduce.cluster.job_dir import ROUND, SAMPLE, open_job_dir
from tonnage.run.reduce.cluster.round_state import NotStorable, RoundStateCodec

CODEC = RoundStateCodec([__name__])


class Point(NamedTuple):
    x: int
    y: object


@dataclass(frozen=True)
class Own:
    a: int
    b: Any


@dataclass(slots=True)
class Slotted:
    a: int


class OwnDict(dict[str, int]):
    pass


class Removes:
    def __del__(self) -> None:
        pass


class Runs:
    def __reduce__(self) -> Any:
        return print, ("no",)


VALUES = [
    *(None, True, 1, 2**70, -(2**63) - 1, 1.5, float("inf"), "x", b"y", [1, (2, {3})]),
    *({1: 2, (1, 2): "z"}, frozenset([1]), np.float64(2), np.datetime64("2020-01-01")),
    np.arange(3.0),
    np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    np.array(["a", "bb"]),
    pa.record_batch({"a": [1, 2]}),
    pa.table({"x": ["a", None]}),
    datetime.datetime(2020, 1, 1, 2, 3, 4, 5),
    datetime.timedelta(days=3, microseconds=1),
    decimal.Decimal("1.20"),
    SimpleNamespace(a=1, b=Own(1, [2])),
    Own(1, Own(2, 3)),
    Point(1, "y"),
    Centres(np.zeros((2, 2)), np.zeros(2, np.uint64), 0.5, 1.0),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_read_as_they_were(value: Any) -> None:
    found = CODEC.decode(CODEC.encode(value))
    assert type(found) is type(value) and repr(found) == repr(value)


@pytest.mark.parametrize(
    "value",
    [Slotted(1), OwnDict(a=1), Removes(), Runs(), print, np.array([object()]), object(), pickle],
    ids=lambda value: type(value).__name__,
)
def test_what_could_run_code_is_not_stored(value: Any) -> None:
    with pytest.raises(NotStorable):
        CODEC.encode([value])


def test_only_classes_of_the_job_are_made() -> None:
    stored = CODEC.encode(Own(1, 2))
    with pytest.raises(ValueError, match="is not a class in the job's modules"):
        RoundStateCodec(["another"]).decode(stored)
    with pytest.raises(ValueError, match="is not a class in the job's modules"):
        CODEC.decode(stored.replace(b"Own", b"Run"))


def test_damage_is_refused_or_harmless() -> None:
    """Whatever byte changes: a value of the same kinds, or a ValueError."""
    content = CODEC.encode([np.arange(3.0), VALUES[17], Own(1, Point(1, 2)), 2**70])
    generator = random.Random(1)
    for _ in range(2000):
        place = generator.randrange(len(content))
        changed = content[:place] + bytes([generator.randrange(256)]) + content[place + 1 :]
        with contextlib.suppress(ValueError):
            CODEC.decode(changed if generator.random() < 0.9 else content[:place])


def test_no_pickle_is_read_from_a_job_directory(tmp_path: Path) -> None:
    with open_job_dir(tmp_path / "job", {}) as opened:
        opened.write_state(ROUND, CODEC, (1, Own(1, 2), True))
        assert opened.read_state(ROUND, CODEC) == (1, Own(1, 2), True)
        opened.write_state(ROUND, CODEC, (2, Removes(), False))
        assert opened.read_state(ROUND, CODEC) is None  # Not what an earlier round came to.
        for name in (ROUND, SAMPLE):
            opened.write(name, pickle.dumps(Runs()))
            with pytest.raises(core.UsageError, match=rf"job_dir: .*/{name}: .*another directory"):
                opened.read_state(name, CODEC)
    (tmp_path / "job" / "round.pickle").write_bytes(pickle.dumps(Runs()))
    with (
        pytest.raises(core.UsageError, match=r"round\.pickle"),
        open_job_dir(tmp_path / "job", {}),
    ):
        pass


@pytest.mark.parametrize("value", [(0, None, True), (1, None), ("1", None, True), (1, None, 1), 7])
def test_what_is_of_no_round_is_refused(value: Any, tmp_path: Path) -> None:
    with open_job_dir(tmp_path / "job", {}) as opened:
        opened.write(ROUND, CODEC.encode(value))
        with pytest.raises(core.UsageError, match=rf"{ROUND}: "):
            opened.read_state(ROUND, CODEC)
