"""Files in order: what is written and read, by how many, and what the result says of it."""

import itertools
import json
import re
from pathlib import Path

import pytest

from support.command import Tonnage
from tonnage import engine
from tonnage.artifacts import Measurement
from tonnage.measure.stream import Settings, measure_stream

MIB = 1 << 20


def settings(**changed: object) -> Settings:
    """Two workers, two segments, small."""
    values = {
        "operations": ("write", "read"),
        "workers": 2,
        "block_bytes": MIB,
        "transfer_bytes": MIB // 4,
        "segments": 2,
        "shared": False,
        "direct": True,
        "flush": True,
        "repetitions": 2,
    }
    return Settings(**(values | changed))  # type: ignore[arg-type]


def measured(disk: Path, wanted: Settings) -> Measurement:
    """The whole measurement."""
    *_, whole = measure_stream(disk, disk / "out", wanted, command=["test"])
    assert isinstance(whole, Measurement)
    return whole


@pytest.mark.parametrize(
    ("shared", "direct", "flush"), list(itertools.product([False, True], repeat=3)), ids=str
)
def test_each_trial_moves_all_of_it(disk: Path, shared: bool, direct: bool, flush: bool) -> None:
    wanted = settings(shared=shared, direct=direct, flush=flush)
    whole = measured(disk, wanted)
    assert [trial.name for trial in whole.trials] == ["write x2", "read x2"] * 2
    for trial in whole.trials:
        assert trial.phase.stages[0].bytes == wanted.bytes == 4 * MIB
        assert trial.reading is not None
        assert trial.reading.direct is direct
        assert trial.reading.details["shared"] is shared
        assert trial.reading.latency_seconds.count == 16
        assert len(trial.each_second) == 2
    assert {figure.trials for figure in whole.figures} == {2}
    assert [path.name for path in disk.iterdir()] == ["out"]


def test_only_reading_writes_first_and_does_not_measure_it(disk: Path) -> None:
    whole = measured(disk, settings(operations=("read",)))
    assert [trial.name for trial in whole.trials] == ["read x2"] * 2


def test_reading_is_what_the_device_did_after_a_buffered_write(disk: Path) -> None:
    for trial in measured(disk, settings(direct=False, operations=("read",))).trials:
        assert trial.beside is not None and trial.reading is not None
        if trial.beside.device_read_bytes is not None:
            assert trial.beside.device_read_bytes >= 4 * MIB or trial.reading.cached


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"transfer_bytes": MIB // 4 + 4096}, r"--block 1048576 is no multiple of --transfer"),
        ({"transfer_bytes": 1000, "block_bytes": 1000}, r"give a multiple of 4096"),
        ({"segments": 1 << 40}, r"bytes free, the files to be written and read needs?"),
    ],
)
def test_unusable_sizes_are_refused(disk: Path, changed: dict[str, int], told: str) -> None:
    with pytest.raises(engine.Refused, match=told):
        measured(disk, settings(**changed))
    assert list(disk.iterdir()) == []


def test_the_command(tonnage: Tonnage, disk: Path) -> None:
    sizes = ["--block", "1MiB", "--processes", "2", "--transfer", "256KiB", "--repetitions", "1"]
    done = tonnage.run(
        "measure", "stream", "--dir", disk, *sizes, "--out", disk / "out", "--shared", check=True
    )
    assert re.search(r"^write x2: [\d.,]+ [MG]B/s", done.stdout, re.MULTILINE)
    again = tonnage.run(
        *("measure", "stream", "--dir", disk, *sizes, "--out", disk / "out", "--shared", "--json"),
        check=True,
    )
    assert json.loads(again.stdout)["kind"] == "stream"
