"""Ends that nobody wished for: signals, full devices, failing devices. Nothing half-made is kept.

What is interrupted is stalled by injected faults, so that it is known where it is.
"""

import errno
import gzip
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cli.command import Tonnage
from support.cli.processes import RunningCommand, started
from tonnage.run.sort.gensort import generate

RECORDS = 200_000
MEMORY = "--memory=16MiB"
UNFINISHED = ".tonnage-unfinished-*"
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}

# The sort is stalled in each pass by making its writes there slow; there are hundreds of them.
WHERE = {"pass one": "(scratch)", "pass two": "/part-"}


class Sort:
    """A sort whose input, output and scratch lie in directories of their own."""

    def __init__(self, tonnage: Tonnage, disk: Path) -> None:
        self.tonnage = tonnage
        self.input, self.output, self.scratch = disk / "in", disk / "out", disk / "scratch"
        self.faults = disk / "faults.json"
        generate(RECORDS, [self.input])
        self.before = self.input.read_bytes()

    def args(self, *rules: dict[str, Any]) -> list[str | Path]:
        """The command's arguments, with faults if there are rules for them."""
        self.faults.write_text(json.dumps({"rules": rules}))
        places = ["--output", self.output, "--scratch", self.scratch]
        faults = ["--faults", self.faults] if rules else []
        return ["run", "sort", self.input, *places, MEMORY, *faults]

    @contextmanager
    def stalled(self, where: str) -> Iterator[RunningCommand]:
        """The command, under way in a pass."""
        args = self.args(stall("write", WHERE[where], milliseconds=250))
        with started([self.tonnage.path, *args]) as running:
            if where == "pass one":
                running.wait_until(lambda: self.scratch.is_dir())
                running.wait_until(lambda: _blocks(running.open_files(self.scratch)) > 0)
            else:
                running.wait_until(lambda: bool(list(self.output.glob(f"{UNFINISHED}/part-*"))))
            yield running

    def assert_nothing_is_kept(self) -> None:
        """The input is as it was, output and scratch hold nothing."""
        assert self.input.read_bytes() == self.before
        assert not self.output.exists() or list(self.output.iterdir()) == []
        assert not self.scratch.exists() or list(self.scratch.iterdir()) == []

    def assert_it_succeeds_now(self) -> None:
        """The next sort into the same directories is whole and has cleaned them."""
        self.tonnage.run(*self.args(), check=True)
        self.tonnage.run("valsort", self.output, check=True)
        left = {re.sub(r"\d{5}$", "N", path.name) for path in self.output.iterdir()}
        assert left == {"part-N", "_tonnage.json"}
        assert list(self.scratch.iterdir()) == []
        manifest = json.loads((self.output / "_tonnage.json").read_text())
        assert manifest["records"] == RECORDS
        assert self.input.read_bytes() == self.before


def _blocks(files: list[os.stat_result]) -> int:
    return sum(about.st_blocks for about in files)


def stall(operation: str, path: str, milliseconds: int) -> dict[str, Any]:
    """Makes an operation on certain files slow."""
    effect = {"stall": {"milliseconds": milliseconds}}
    return {"operation": operation, "path_contains": path, "effect": effect}


def fail(operation: str, path: str, number: int, **conditions: int) -> dict[str, Any]:
    """Makes an operation on certain files fail."""
    effect = {"error": {"errno": number}}
    return {"operation": operation, "path_contains": path, "effect": effect, **conditions}


@pytest.fixture
def sort(tonnage: Tonnage, disk: Path) -> Sort:
    """A sort of 20 MB, with its input."""
    return Sort(tonnage, disk)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupted_sort_cleans_up(sort: Sort, where: str, number: signal.Signals) -> None:
    with sort.stalled(where) as running:
        code, out, err = running.end(number)
    assert (code, out) == (CODES[number], "")
    *progress, last = err.splitlines()
    assert all(line.startswith("sorting: ") for line in progress)
    assert re.fullmatch(r"tonnage: interrupted; .*removed", last)
    sort.assert_nothing_is_kept()


@pytest.mark.parametrize("where", WHERE)
def test_a_killed_sort_looks_unfinished_until_the_next(
    sort: Sort, tonnage: Tonnage, where: str
) -> None:
    with sort.stalled(where) as running:
        # Scratch has no name while it is used, so that the kernel frees it with the process.
        scratch = running.open_files(sort.scratch)
        assert [about.st_nlink for about in scratch] == [0]
        assert scratch[0].st_blocks * 512 >= len(sort.before)
        assert list(sort.scratch.iterdir()) == []

        # While it runs, another sort cannot write to the same place, nor disturb it.
        said = tonnage.run(*sort.args())
        assert said.returncode == 2
        assert re.fullmatch(r"tonnage: --output: another job [^\n]+\n", said.stderr)
        code, _, err = running.end(signal.SIGKILL)
    assert code == CODES[signal.SIGKILL]
    assert "tonnage:" not in err

    assert sort.input.read_bytes() == sort.before
    assert list(sort.scratch.iterdir()) == []
    assert [path.name.rstrip("0123456789") for path in sort.output.iterdir()] == [UNFINISHED[:-1]]
    said = tonnage.run("valsort", sort.output)
    assert said.returncode == 2
    assert re.fullmatch(
        r"tonnage: \S+ contains unfinished output.*run the job again\n", said.stderr
    )
    sort.assert_it_succeeds_now()


def test_a_sort_killed_while_naming_its_parts_is_taken_back(sort: Sort, tonnage: Tonnage) -> None:
    # As seal.rs leaves it: parts that are listed, of which some have their names already.
    tonnage.run(*sort.args(), check=True)
    (sort.output / "_tonnage.json").unlink()
    names = sorted(path.name for path in sort.output.iterdir())
    assert len(names) > 1
    hidden = sort.output / UNFINISHED.replace("*", "1")
    hidden.mkdir()
    (hidden / "parts.json").write_text(json.dumps(names))
    (sort.output / names[-1]).rename(hidden / names[-1])

    assert tonnage.run("valsort", sort.output).returncode == 2
    sort.assert_it_succeeds_now()


def test_a_part_of_a_finished_output_is_never_taken_back(sort: Sort, tonnage: Tonnage) -> None:
    # As when it is killed between the manifest and the end of cleaning up.
    tonnage.run(*sort.args(), check=True)
    kept = {path.name: path.read_bytes() for path in sort.output.iterdir()}
    hidden = sort.output / UNFINISHED.replace("*", "1")
    hidden.mkdir()
    (hidden / "parts.json").write_text(json.dumps(sorted(set(kept) - {"_tonnage.json"})))

    said = tonnage.run(*sort.args())
    assert said.returncode == 2
    assert "contains an earlier output" in said.stderr
    assert {path.name: path.read_bytes() for path in sort.output.iterdir()} == kept
    tonnage.run("valsort", sort.output, check=True)


FAILURES = {
    "input unreadable": (fail("read", "/in", errno.EIO, at_offset=9_999_900), r"/in at offset \d+"),
    "input gone": (fail("open", "/in", errno.ENOENT), r"/in: "),
    "scratch full at once": (fail("create", "(scratch)", errno.ENOSPC), r"/scratch/\(scratch\): "),
    "scratch full": (
        fail("write", "(scratch)", errno.ENOSPC, after_bytes=10_000_000),
        r"/scratch/\(scratch\) at offset \d+: No space left",
    ),
    "scratch unreadable": (fail("read", "(scratch)", errno.EIO), r"/scratch/\(scratch\) at offset"),
    "output full at once": (fail("create", "/part-", errno.ENOSPC), r"/out/\S+/part-\d+: No space"),
    "output full": (
        fail("write", "/part-", errno.ENOSPC, after_bytes=10_000_000),
        r"/out/\S+/part-\d+ at offset \d+: No space left",
    ),
    "output not durable": (fail("sync", "/part-00003", errno.EIO), r"/out/\S+/part-00003: Input/"),
    "scratch corrupt": (
        {"operation": "read", "path_contains": "(scratch)", "effect": "corrupt"},
        r"the sorted output does not match the input",
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_sort_says_where_and_keeps_nothing(
    sort: Sort, tonnage: Tonnage, failure: str
) -> None:
    rule, told = FAILURES[failure]
    said = tonnage.run(*sort.args(rule), "--json")
    assert (said.returncode, said.stdout) == (1, "")
    *progress, last = said.stderr.splitlines()
    assert all(line.startswith("sorting: ") for line in progress)
    assert last.startswith("tonnage: ")
    assert re.search(told, last), last
    sort.assert_nothing_is_kept()


@contextmanager
def small_device(place: Path, size: int) -> Iterator[bool]:
    """A file system of so many bytes at a place, where that can be had: it takes root."""
    place.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "tonnage-test", place]
    if os.geteuid() or subprocess.run(["mount", *options], capture_output=True).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("flag", ["scratch", "output"])
def test_a_device_without_room_for_the_last_bytes(sort: Sort, tonnage: Tonnage, flag: str) -> None:
    # Space for the data itself, which is all that can be predicted, but not for the unused ends of
    # blocks and parts.
    place = getattr(sort, flag)
    page = os.sysconf("SC_PAGE_SIZE")
    with small_device(place, -(-len(sort.before) // page) * page) as real:
        named = "(scratch)" if flag == "scratch" else "/part-"
        rules = [] if real else [fail("create", named, errno.ENOSPC)]
        said = tonnage.run(*sort.args(*rules))
        assert said.returncode == 1
        assert re.search(rf"tonnage: \S.* {place}/\S+: No space left on device .*\n$", said.stderr)
        sort.assert_nothing_is_kept()


def test_a_device_that_is_too_small_is_foreseen(tonnage: Tonnage, disk: Path) -> None:
    about = os.statvfs(disk)
    free = about.f_bavail * about.f_frsize
    with (disk / "in").open("wb") as file:
        file.truncate(free // 100 * 100 + 1_000_000_000)  # Sparse, so it takes no room itself.
    where = ("--output", disk / "out", "--scratch", disk / "scratch")
    said = tonnage.run("run", "sort", disk / "in", *where)
    assert said.returncode == 2
    assert re.fullmatch(
        rf"tonnage: {disk}/\S+ has only \d+ bytes free, but .* needs about \d+ .*free some.*\n",
        said.stderr,
    )
    assert not list(disk.glob("out/*")) and not list(disk.glob("scratch/*"))


def test_compressed_tables_need_less_room_than_their_rows(tonnage: Tonnage, disk: Path) -> None:
    table = pa.table({"k": range(20_000), "text": ["x" * 500] * 20_000})
    pq.write_table(table, disk / "a.parquet")
    arguments = ["run", "sort", disk / "a.parquet", "--by=-k", "--memory=64MiB"]
    arguments += ["--output", disk / "out", "--scratch", disk / "scratch"]
    with small_device(disk / "out", 4 << 20) as real:
        if not real:
            pytest.skip("a small file system takes root")
        said = tonnage.run(*arguments)
        assert said.returncode == 0, said.stderr
        for name in (disk / "out").iterdir():
            name.unlink()
        refused = tonnage.run(*arguments, "--output-format=arrow")
    assert refused.returncode == 2 and "bytes free" in refused.stderr


@pytest.mark.parametrize("full", ["out", "scratch"])
def test_compressed_text_that_finds_no_room_keeps_nothing(
    tonnage: Tonnage, disk: Path, full: str
) -> None:
    """How long it is shows only while it is written."""
    lines = b"".join(b"%09d %s\n" % (number, b"x" * 100) for number in range(300_000))
    (disk / "a.log.gz").write_bytes(gzip.compress(lines, 1))
    arguments = ["run", "sort", disk / "a.log.gz", "--by=-line", "--memory=24MiB"]
    arguments += ["--output", disk / "out", "--scratch", disk / "scratch"]
    with small_device(disk / full, 16 << 20) as real:
        if not real:
            pytest.skip("a small file system takes root")
        said = tonnage.run(*arguments)
        told = r"tonnage: \S.*/\S+: No space left on device .*; free some space there, .*"
        assert said.returncode == 1 and re.fullmatch(told, said.stderr.splitlines()[-1])
        for directory in ("out", "scratch"):
            assert not list((disk / directory).glob("*"))


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
def test_gensort_leaves_no_part_of_a_file(
    tonnage: Tonnage, disk: Path, number: signal.Signals
) -> None:
    (disk / "in").write_bytes(b"old")
    unfinished = disk / ".in.unfinished"
    # Some seconds' worth of writing.
    with started([tonnage.path, "gensort", "30000000", disk / "in"]) as running:
        running.wait_until(unfinished.exists)
        code, out, err = running.end(number)
    assert (code, out) == (CODES[number], "")
    assert (disk / "in").read_bytes() == b"old"
    if number != signal.SIGKILL:
        assert re.search(r"(^|\n)tonnage: interrupted; .*removed\n$", err)
        assert not unfinished.exists()
    tonnage.run("gensort", "10", disk / "in", check=True)
    assert [path.name for path in disk.iterdir()] == ["in"]
    assert (disk / "in").stat().st_size == 1000


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
def test_measuring_leaves_nothing(
    tonnage: Tonnage, disk: Path, tmp_path: Path, number: signal.Signals
) -> None:
    command = [tonnage.path, "measure", "disk", "--dir", disk, "--size", "20MB", "--seconds", "60"]
    command += ["--output", tmp_path / "out"]
    with started(command) as running:
        running.wait_until(lambda: bool(running.open_files(disk)))
        assert {about.st_nlink for about in running.open_files(disk)} == {0}
        code, out, _ = running.end(number)
    assert (code, out) == (CODES[number], "")
    assert list(disk.iterdir()) == []


EARLY = """
import os, sys
class Watcher:
    def find_spec(self, name, *_):
        if name == "typer":
            os.kill(os.getpid(), int(sys.argv.pop()))
sys.meta_path.insert(0, Watcher())
from tonnage.cli.main import main
assert "typer" not in sys.modules
main()
"""
"""The command, sent a signal when it has only begun to read its own code."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_command_that_has_hardly_begun_ends_in_one_line(number: signal.Signals) -> None:
    command = [sys.executable, "-c", EARLY, "study", str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (CODES[number], "")
    assert re.fullmatch(r"tonnage: interrupted; .*removed\n", done.stderr)


def test_python_runs_the_command_as_a_module(tonnage: Tonnage) -> None:
    command = [sys.executable, "-m", "tonnage", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == tonnage.run("--version").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_that_comes_where_nothing_can_be_raised_is_not_lost(number: int) -> None:
    """Python drops exceptions of ``__del__``, a signal's too: the command would have gone on."""
    script = f"""
import os, sys, time
from tonnage.cli.main import main
from tonnage.cli import commands

class Gone:
    def __del__(self):
        os.kill(os.getpid(), {int(number)})
        for _ in range(1000): pass

def call(arguments):
    Gone()
    while True: time.sleep(0.01)

commands.call = call
main()
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert ended.returncode == CODES[number]
    assert b"Traceback" not in ended.stderr and b"ignored" not in ended.stderr
