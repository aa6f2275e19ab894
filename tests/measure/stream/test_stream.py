"""Sequential files: what is written and read, by how many workers, and what the result states."""

import ctypes
import itertools
import json
import mmap
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from support.cli.command import Tonnage
from support.cli.processes import started
from tonnage.base import core
from tonnage.base.records import Measurement
from tonnage.measure.stream.suite import measure_stream
from tonnage.measure.stream.trial import StreamSettings, drop_cached_pages

MIB = 1 << 20


def settings(**changed: object) -> StreamSettings:
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
    return StreamSettings(**(values | changed))  # type: ignore[arg-type]


def measured(disk: Path, wanted: StreamSettings) -> Measurement:
    """Run a complete measurement."""
    *_, whole = measure_stream(disk, disk / "out", wanted, command=["test"])
    assert isinstance(whole, Measurement)
    return whole


@pytest.mark.parametrize(
    ("shared", "direct", "flush"), list(itertools.product([False, True], repeat=3)), ids=str
)
def test_each_trial_moves_all_data(disk: Path, shared: bool, direct: bool, flush: bool) -> None:
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


def test_read_only_writes_files_first_without_measuring_it(disk: Path) -> None:
    whole = measured(disk, settings(operations=("read",)))
    assert [trial.name for trial in whole.trials] == ["read x2"] * 2


def test_reads_after_a_buffered_write_come_from_the_device(disk: Path) -> None:
    for trial in measured(disk, settings(direct=False)).trials:
        assert trial.activity is not None and trial.reading is not None
        if trial.name == "read x2" and trial.activity.device_read_bytes is not None:
            assert trial.activity.device_read_bytes >= 4 * MIB
            assert trial.reading.cached is None


def test_dropped_pages_are_not_in_memory(disk: Path) -> None:
    (disk / "file").write_bytes(os.urandom(MIB))
    (disk / "file").read_bytes()
    assert resident_pages(disk / "file") == MIB // mmap.PAGESIZE
    drop_cached_pages(disk / "file")
    assert resident_pages(disk / "file") == 0


def test_files_are_not_in_memory_before_they_are_read(
    monkeypatch: pytest.MonkeyPatch, disk: Path
) -> None:
    found: list[int] = []
    run = core.run

    def looking(name: str, config: dict[str, Any], *rest: Any) -> dict[str, Any]:
        if not config["writes"]:
            found.extend(resident_pages(Path(file)) for file in config["files"])
        return run(name, config, *rest)

    monkeypatch.setattr(core, "run", looking)
    measured(disk, settings(direct=False))
    assert found == [0, 0] * 2


def resident_pages(file: Path) -> int:
    """How many pages of a file are in the page cache."""
    with file.open("rb") as opened:
        view = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY)
    pages = (ctypes.c_ubyte * -(-len(view) // mmap.PAGESIZE))()
    begin = ctypes.c_char.from_buffer(view)
    libc = ctypes.CDLL(None, use_errno=True)
    asked = libc.mincore(ctypes.byref(begin), ctypes.c_size_t(len(view)), pages)
    assert asked == 0, os.strerror(ctypes.get_errno())
    return sum(page & 1 for page in pages)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"transfer_bytes": MIB // 4 + 4096},
            r"block: 1048576 bytes are not a multiple of the transfer size",
        ),
        ({"transfer_bytes": 1000, "block_bytes": 1000}, r"not a multiple of 4096"),
        ({"segments": 1 << 40}, r"bytes free, but the test data needs"),
    ],
)
def test_unusable_sizes_are_refused(disk: Path, changed: dict[str, int], message: str) -> None:
    with pytest.raises(core.UsageError, match=message):
        measured(disk, settings(**changed))
    assert list(disk.iterdir()) == []


def test_another_directory_is_refused(disk: Path) -> None:
    measured(disk, settings(repetitions=1))
    (disk / "other").mkdir()
    elsewhere = rf"directory: \S+ was started with directory={disk}, not {disk}/other;"
    with pytest.raises(core.UsageError, match=elsewhere):
        list(measure_stream(disk / "other", disk / "out", settings(repetitions=1), command=[""]))


def test_a_killed_measurement_resumes_and_keeps_its_trials(tonnage: Tonnage, disk: Path) -> None:
    out = disk / "out"
    command: list[Any] = [
        tonnage.path,
        "measure",
        "stream",
        "--dir",
        disk,
        "--output",
        out,
        "--json",
    ]
    command += ["--block", "16MiB", "--processes", "2", "--repetitions", "4"]
    with started(command) as running:
        running.wait_until(lambda: (out / "trial-00002.json").exists())
        code, said, _ = running.end(signal.SIGKILL)
    assert (code, said) == (-9, "")
    kept = {path.name: path.read_bytes() for path in out.glob("trial-*.json")}
    assert 3 <= len(kept) < 8
    found = json.loads(tonnage.run(*command[1:], check=True).stdout)
    steps = [(trial["step"]["round"], trial["step"]["operation"]) for trial in found["trials"]]
    assert steps == [(number, name) for number in range(4) for name in ("write", "read")]
    for name, content in kept.items():
        assert (out / name).read_bytes() == content
    assert [path.name for path in disk.iterdir()] == ["out"]


def test_the_command(tonnage: Tonnage, disk: Path) -> None:
    sizes = ["--block", "1MiB", "--processes", "2", "--transfer", "256KiB", "--repetitions", "1"]
    done = tonnage.run(
        "measure", "stream", "--dir", disk, *sizes, "--output", disk / "out", "--shared", check=True
    )
    assert re.search(r"^write x2: [\d.,]+ [MG]B/s", done.stdout, re.MULTILINE)
    again = tonnage.run(
        *(
            "measure",
            "stream",
            "--dir",
            disk,
            *sizes,
            "--output",
            disk / "out",
            "--shared",
            "--json",
        ),
        check=True,
    )
    assert json.loads(again.stdout)["kind"] == "stream"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "--shared-dir needs --cluster"),
        (["--cluster", "auto", "--until-confidence", "2%"], "use --repetitions instead of"),
    ],
)
def test_a_shared_directory_needs_a_cluster_in_step(
    tonnage: Tonnage, disk: Path, flags: list[str], message: str
) -> None:
    done = tonnage.run("measure", "stream", "--dir", disk, "--shared-dir", *flags, cwd=disk)
    assert done.returncode == 2 and message in done.stderr
