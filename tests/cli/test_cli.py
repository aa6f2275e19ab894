"""The command line's contract: arguments, help, exit codes, one line for what cannot be used."""

import dataclasses
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import processes
from support.command import Tonnage
from support.disk import ROOT
from support.records import blob, parts
from tonnage.base import core
from tonnage.cli.main import main
from tonnage.cli.measure.options import MOST_ROUNDS
from tonnage.cli.options.parser import flag_of, spread
from tonnage.cli.options.types import parse_memory, parse_size
from tonnage.cli.run.cluster import going_on
from tonnage.measure import disk as measure_disk
from tonnage.measure import over_time
from tonnage.measure import object as store
from tonnage.measure.layouts.compare import LayoutSettings
from tonnage.measure.net.local import NetSettings
from tonnage.measure.random_io import suite
from tonnage.measure.stream.trial import StreamSettings
from tonnage.measure.trial import environment
from tonnage.run.two_pass.job_dir import FatalJobError

Call = Callable[..., tuple[int, str, str]]

ON_A_FLEET = ("--cluster", "--nodes", "--one-at-a-time", "--timeout", "--label")
FLAGS = {
    (): ["--version"],
    ("simulate", "sort"): [
        *("--nodes", "--data", "--offer", "--catalog", "--profile", "--placement", "--memory"),
        *("--cores", "--connections", "--durability", "--input-copies", "--lose", "--slow"),
        *("--even", "--mtbf", "--descriptors", "--per-node", "--seed", "--record-bytes", "--key"),
        "--json",
    ],
    ("launch",): [
        *(
            "--candidate",
            "--purchase",
            "--image",
            "--instance-profile",
            "--subnet",
            "--key",
            "--ssh-from",
            "--ssh",
            "--user",
        ),
        *(
            "--private",
            "--wheel",
            "--lifetime",
            "--budget",
            "--replacements",
            "--screen",
            "--size",
        ),
        *("--seconds", "--timeout", "--catalog", "--dry-run", "--output", "--json"),
    ],
    ("cluster", "status"): ["--region", "--json"],
    ("cluster", "down"): ["--region", "--json"],
    ("study",): [
        *("--data", "--dir", "--memory", "--output", "--cluster", "--durability", "--deadline"),
        *("--catalog", "--until", "--json"),
    ],
    ("run", "sort"): [
        *("--output", "--scratch", "--record-bytes", "--key", "--memory", "--json"),
        *("--cluster", "--job-dir", "--connections", "--timeout", "--nodes", "--capacities"),
        *("--durability", "--endpoint-url", "--requests", "--plan", "--candidate"),
    ],
    ("measure", "disk"): [
        *(
            "--dir",
            "--mode",
            "--size",
            "--seconds",
            "--repetitions",
            "--until-confidence",
            "--memory",
        ),
        *("--output", "--json"),
        *ON_A_FLEET,
    ],
    ("measure", "ops"): [
        *(
            "--dir",
            "--operation",
            "--suite",
            "--queue-depth",
            "--repetitions",
            "--until-confidence",
        ),
        *("--seconds", "--file-size", "--engine", "--submission", "--seed", "--output", "--json"),
        *ON_A_FLEET,
    ],
    ("measure", "stream"): [
        *("--dir", "--operation", "--processes", "--block", "--transfer", "--segments", "--shared"),
        *("--buffered", "--flush", "--repetitions", "--until-confidence", "--output", "--json"),
        "--shared-dir",
        *ON_A_FLEET,
    ],
    ("measure", "over-time"): [
        *("--dir", "--operation", "--queue-depth", "--every", "--for", "--seconds", "--file-size"),
        *("--engine", "--seed", "--output", "--json"),
        *ON_A_FLEET,
    ],
    ("measure", "layouts"): [
        *(
            "--layout",
            "--mode",
            "--file-system",
            "--stripe",
            "--size",
            "--seconds",
            "--repetitions",
        ),
        *("--memory", "--seed", "--destroy", "--label", "--output", "--json"),
    ],
    ("measure", "net"): [
        *("--endpoints", "--connections", "--block", "--seconds", "--repetitions", "--one-way"),
        *("--namespaces", "--rate", "--until-confidence", "--sizes", "--seed", "--cluster"),
        *("--nodes", "--timeout", "--label", "--output", "--json"),
    ],
    ("measure", "object"): [
        *(
            "--endpoint-url",
            "--operation",
            "--chunk-size",
            "--requests",
            "--seconds",
            "--repetitions",
        ),
        *("--until-confidence", "--objects", "--object-size", "--seed", "--output", "--json"),
        *ON_A_FLEET,
    ],
    ("measure", "screen"): [
        *("--cluster", "--dir", "--size", "--seconds", "--memory", "--nodes", "--timeout"),
        *("--label", "--job", "--data", "--catalog", "--output", "--json"),
    ],
    ("import",): ["--output", "--json"],
    ("report",): ["--price", "--catalog", "--output", "--seed", "--json"],
    ("catalog",): [],
    ("catalog", "ls"): [
        *("--provider", "--arch", "--min-vcpus", "--min-memory", "--min-local-disk"),
        *("--min-network", "--max-price", "--sort", "--json"),
    ],
    ("catalog", "show"): ["--catalog", "--json"],
    ("catalog", "diff"): ["--json"],
    ("catalog", "refresh"): ["--region", "--output", "--endpoint-url", "--json"],
    ("gensort",): ["--ascii", "--start", "--skew", "--json"],
    ("valsort",): ["--record-bytes", "--key", "--json", "--endpoint-url", "--requests"],
    ("run",): [],
    ("measure",): [],
}


@pytest.fixture
def records(disk: Path) -> Path:
    """A file of 1000 records."""
    (disk / "in").write_bytes(blob(1, 100_000))
    return disk / "in"


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """The command within this process, which spares its start; gives exit code, output, errors."""

    def run(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tonnage", *args])
        with pytest.raises(SystemExit) as ending:
            main()
        said = capsys.readouterr()
        assert isinstance(ending.value.code, int)
        return ending.value.code, said.out, said.err

    before = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("command", FLAGS, ids=" ".join)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_flag(call: Call, command: tuple[str, ...], flag: str) -> None:
    code, out, err = call(*command, flag)
    assert (code, err) == (0, "")
    assert out.startswith(" ".join(["Usage: tonnage", *command]))
    options = out.partition("Options:\n")[2].partition("\n\n")[0]
    listed = re.findall(r"^  (?:-h, )?(--[a-z-]+)", options, re.MULTILINE)
    assert sorted(listed) == sorted([*FLAGS[command], "--help"])


def test_help_tells_the_exit_codes_and_the_order(tonnage: Tonnage) -> None:
    said = " ".join(tonnage.run("--help", check=True).stdout.split())
    for told in ("0 done", "1 failed", "2 unusable", "130 on Ctrl-C", "143 on SIGTERM"):
        assert told in said
    usage = tonnage.run("run", "sort", "--help", check=True).stdout.splitlines()[0]
    assert usage == "Usage: tonnage run sort INPUT... --output DIR... --scratch DIR... [OPTIONS]"


def test_version(tonnage: Tonnage) -> None:
    assert re.fullmatch(r"tonnage \d+\.\d+\.\d+\n", tonnage.run("--version", check=True).stdout)


# What is said of arguments that cannot be used: the command, then what its one line has to hold.
# In a directory with a file `in` of 1000 records, one `cut` short, an empty directory `dir`, and a
# directory `filled` that holds another, `below`, one `full` that holds `records`, a `link` to `in`.
SORT = ("run", "sort", "in", "--output", "out", "--scratch", "scratch")
UNUSABLE: list[tuple[tuple[str, ...], str]] = [
    ((), r"give a command: .*sort|give a command: .*study"),
    (("run",), r"give a command: sort"),
    (("measure",), r"give a command: disk"),
    (("catalog",), r"give a command: ls"),
    (("catalog", "ls", "aws-2014"), r"no catalog aws-2014 \(did you mean aws-us-east-1-2014"),
    (("catalog", "ls", "in"), r"in, row 1: no column instance_type or machine_type|in: expected a"),
    (("catalog", "ls", "--min-local-disk", "1TX"), r"'1TX' is no size"),
    (("catalog", "ls", "--min-network", "10"), r"'10': write it like 200Mbit"),
    (("catalog", "ls", "--max-price", "-1"), r"'-1' is no amount of money"),
    (("catalog", "ls", "--arch", "x86"), r"--arch x86: there are arm64, .*x86_64"),
    (("catalog", "ls", "--provider", "ibm"), r"--provider ibm: there are aws, azure, gcp"),
    (("catalog", "ls", "--sort", "speed"), r"--sort speed: there are price, type"),
    (("catalog", "show", "i4i.4xlage"), r"no offer i4i.4xlage \(did you mean i4i.4xlarge\?\)"),
    (("catalog", "diff", "aws-us-east-1-2026", "gcp-us-central1-2026"), r"one provider"),
    (("catalog", "refresh", "gcp"), r"gcp: only aws can be refreshed"),
    (("catalog", "refresh", "aws", "--region", "us"), r"--region us: write it like us-east-1"),
    (
        ("catalog", "refresh", "aws", "--output", "dir"),
        r"--output dir: name a file that ends in .csv",
    ),
    (("xyzzy",), r"No such command 'xyzzy': there are run, measure, .*valsort \(see"),
    (("run", "short"), r"No such command 'short' \(did you mean sort\?\) \(see --help\)"),
    ((*SORT, "--speed", "9"), r"No such option: --speed \(see --help\)"),
    ((*SORT, "--memry", "9"), r"No such option: --memry \(did you mean --memory\?\)"),
    ((*SORT, "--fault", "f"), r"No such option: --fault \(see|--fault \(did you mean --(?!faults)"),
    (("report", "nope"), r"nope: there is no such file or directory: give what"),
    (("run", "reduce"), r"Missing argument 'JOB'"),
    (("run", "reduce", "kmean", "x"), r"kmean: there are kmeans, .* \(did you mean kmeans\?\)"),
    (("run", "reduce", "pca"), r"URL\.\.\. is missing: give files or folders"),
    (("index",), r"URL\.\.\. is missing: give files or folders"),
    ((*SORT, "--memory"), r"'--memory' requires an argument"),
    (("run", "sort", "in", "--output", "out"), r"Missing option '--scratch'"),
    (("run", "sort", "in", "--scratch", "scratch"), r"Missing option '--output'"),
    (("run", "sort", "--output", "out", "--scratch", "dir", "in"), r"INPUT\.\.\. .*before"),
    (("run", "reduce"), r"Missing argument 'JOB'"),
    (
        ("run", "reduce", "kmean", "x"),
        r"kmean: there are kmeans, .*MODULE:NAME \(did you mean kmeans\?\)",
    ),
    (("run", "reduce", "pca"), r"URL\.\.\. is missing: give files or folders"),
    (("index",), r"URL\.\.\. is missing: give files or folders"),
    (("run", "sort", "none", *SORT[3:]), r"none: No such file .*name a file or a directory"),
    (("run", "sort", "cut", *SORT[3:]), r"cut: .*99950 .*record's 100.* offset 99900, 50 bytes"),
    ((*SORT, "--record-bytes", "64"), r"in: .* offset 99968, 32 bytes .*--record-bytes"),
    ((*SORT, "--record-bytes", "0"), r"'--record-bytes': '0': give a whole number from 1 to"),
    ((*SORT, "--record-bytes", "-7"), r"'--record-bytes': '-7': give a whole number from 1 to"),
    ((*SORT, "--record-bytes", "ten"), r"'--record-bytes': 'ten': give a whole number from 1 to"),
    ((*SORT, "--record-bytes", "9" * 30), r"'--record-bytes': '9+': give a whole number from 1 to"),
    ((*SORT, "--key", "0-10"), r"--key 0-10: write OFFSET:LENGTH"),
    ((*SORT, "--key", "-1:10"), r"--key -1:10: write OFFSET:LENGTH"),
    ((*SORT, "--key", "91:10"), r"--key 91:10 .*record of 100 bytes.*within --record-bytes"),
    ((*SORT, "--key", "5:0"), r"--key 5:0 .*OFFSET:LENGTH"),
    ((*SORT, "--memory", "lots"), r"'--memory': 'lots' is no size: write it like 4GB"),
    ((*SORT, "--memory", "1XB"), r"'--memory': '1XB' is no size"),
    ((*SORT, "--memory", "-1GB"), r"'--memory': '-1GB' is no size"),
    ((*SORT, "--memory", "9" * 400), r"'--memory': .* is too large"),
    ((*SORT, "--memory", "8EiB"), r"'--memory': '8EiB' is too large: give less than 9EB"),
    ((*SORT, "--memory", "8EB"), r"--memory 8EB is more than the \S+ [MG]iB that this .*give less"),
    (("study", "--memory", "1PiB"), r"--memory 1PiB is more than the \S+ [MG]iB .*give less"),
    (("measure", "disk", "--memory", "1PiB"), r"--memory 1PiB is more than the \S+ [MG]iB "),
    (("run", "sort", "in", "./in", *SORT[3:]), r"input in is given twice: give each file once"),
    (
        ("run", "sort", "full", "full/records", *SORT[3:]),
        r"input full/records is given twice, also by full: give each file once",
    ),
    (("run", "sort", "link", "in", *SORT[3:]), r"input in is given twice, also by link: give"),
    ((*SORT, "--memory", "100kB"), r"--memory .*100000 bytes is too small .*at least \d+ ?MiB"),
    ((*SORT, "--memory", "0"), r"--memory .*0 bytes is too small .*at least \d+ ?MiB"),
    (
        ("run", "sort", "in", "--output", "cut", "--scratch", "dir"),
        r"--output cut: cut is a file: give",
    ),
    (
        ("run", "sort", "in", "--output", "out", "--scratch", "cut"),
        r"--scratch cut: cut is a file: give",
    ),
    (
        ("run", "sort", "in", "--output", "cut/x", "--scratch", "dir"),
        r"--output cut/x: cut is a file",
    ),
    (
        ("run", "sort", "in", "--output", ".", "--scratch", "dir"),
        r"--output \. is not empty .* cut",
    ),
    (("run", "sort", "in", "--output", "out", "./out", "--scratch", "dir"), r"out is given twice"),
    (("run", "sort", "in", "--output", "out", "--scratch", "dir", "dir"), r"dir is given twice"),
    (
        ("run", "sort", "in", "--output", "filled", "--scratch", "dir"),
        r"--output filled is not empty .* below\)",
    ),
    ((*SORT[:5], "--scratch", "out/s"), r"--scratch out/s lies in \S+/out .*elsewhere"),
    ((*SORT[:5], "out/o", "--scratch", "dir"), r"--output out/o lies in \S+/out .*elsewhere"),
    (
        ("run", "sort", "dir", "--output", "out", "--scratch", "dir/x/y"),
        r"--scratch dir/x/y lies in \S+/dir .*elsewhere",
    ),
    (
        ("run", "sort", "dir", "--output", "dir/out", "--scratch", "scratch"),
        r"--output dir/out lies in \S+/dir .*elsewhere",
    ),
    (("gensort",), r"Missing argument 'N'"),
    (("gensort", "5"), r"Missing argument 'FILE\.\.\.'"),
    (("gensort", "-5", "new"), r"-5: give a number from 0 up"),
    (("gensort", "five", "new"), r"'N': 'five': give a whole number from 0 to"),
    (("gensort", "9" * 30, "new"), r"'N': '9+': give a whole number from 0 to"),
    (("gensort", str(10**15), "new"), r"bytes free, generating needs 100000000000000000 there"),
    (("gensort", "5", "new", "--start", "-1"), r"'--start': '-1': give a whole number from 0 to"),
    (("gensort", "5", "new", "--start", str(1 << 128)), rf"'--start': .* to {(1 << 128) - 1} "),
    (("gensort", "5", "new", "--start", "²"), r"'--start': '²': give a whole number"),
    (("gensort", "5", "dir"), r"dir is there and no regular file: give the name of a file"),
    (("gensort", "5", "none/new"), r"none/new: there is no directory none: make it first"),
    (("gensort", "5", "new", "new"), r"new is given twice"),
    (("valsort",), r"Missing argument 'FILE_OR_DIR\.\.\.'"),
    (("valsort", "none"), r"none: No such file .*name a file or a directory"),
    (("valsort", "cut"), r"cut: .* offset 99900, 50 bytes"),
    (("valsort", "in", "--key", "100:1"), r"--key 100:1 .*within --record-bytes"),
    (("measure", "disk", "--dir", "none"), r"--dir none: there is no such directory; make it"),
    (("measure", "disk", "--dir", "dir", "in"), r"--dir in: in is a file: give a directory"),
    (("measure", "disk", "--dir", "dir", "./dir"), r"--dir dir is given twice"),
    (("measure", "disk", "--mode", "up"), r"--mode up: there are wo, ro, rw, headroom"),
    (("measure", "disk", "--size", "5"), r"'--size': '5': give at least 1MB"),
    (("measure", "disk", "--size", "8EiB"), r"'--size': '8EiB' is too large"),
    (("measure", "disk", "--size", "900TB"), r"bytes free, measuring needs 1800000000000000 there"),
    (
        ("measure", "disk", "--seconds", "0"),
        r"'--seconds': '0': give a number from 0\.1 to 1000000",
    ),
    (("measure", "disk", "--seconds", "inf"), r"'--seconds': 'inf': give a number from 0\.1"),
    (("measure", "disk", "--seconds", "nan"), r"'--seconds': 'nan': give a number from 0\.1"),
    (("measure", "disk", "--seconds", "soon"), r"'--seconds': 'soon': give a number from 0\.1"),
    (
        ("measure", "disk", "--repetitions", "0"),
        r"'--repetitions': '0': give a whole number from 1 to",
    ),
    (
        ("measure", "disk", "--repetitions", "1.5"),
        r"'--repetitions': '1\.5': give a whole number from 1",
    ),
    (("measure", "ops", "--operation", "read5k"), r"--operation read5k: there are read4k, read4m"),
    (("measure", "ops", "--suite", "all"), r"--suite all: there are explore, steady"),
    (("measure", "ops", "--engine", "fast"), r"--engine fast: there are ring, sync"),
    (("measure", "ops", "--submission", "x"), r"--submission x: there are single, batched"),
    (("measure", "ops", "--until-confidence", "2"), r"'--until-confidence': '2': give a perc"),
    (("measure", "ops", "--dir", "none"), r"--dir none: there is no such directory; make it"),
    (("measure", "ops", "--file-size", "900TB"), r"bytes free, the file to be operated on needs"),
    (("measure", "over-time", "--every", "soon"), r"'--every': 'soon' is no time: write it like"),
    (("measure", "over-time", "--for", "0"), r"'--for': '0' is no time"),
    (("measure", "stream", "--operation", "x"), r"--operation x: there are write, read"),
    (("measure", "stream", "--block", "1"), r"--block 1 is no multiple of --transfer 1048576"),
    (("measure", "stream", "--transfer", "0"), r"'--transfer': '0': give a multiple of 4096"),
    (("measure", "stream", "--transfer", "1000"), r"'--transfer': '1000': give a multiple of"),
    (("measure", "stream", "--block", "0"), r"--block 0 is no multiple of --transfer"),
    (("import", "none"), r"none: expected a file that can be read \(No such file"),
    (("import", "in"), r"in: expected "),
    (("measure", "disk", "--memory", "10kB"), r"--memory .*10000 bytes is too small"),
    (("study", "--data", "1kB"), r"'--data': '1kB': give at least 1MB"),
    (("study", "--data", "1.5"), r"'--data': '1\.5': give at least 1MB"),
    (("study", "--dir", "dir", "none"), r"--dir none: there is no such directory; make it first"),
    (("study", "--data", "big"), r"'--data': 'big' is no size"),
    (("study", "--dir", "in"), r"--dir in: in is a file: give a directory"),
    (("study", "--dir", "dir", "full", "dir"), r"--dir dir is given twice"),
    (("study", "--output", "in"), r"--output in: in is a file: give a directory"),
    (("study", "--output", "in/x"), r"--output in/x: in is a file: give a directory"),
    (("study", "now"), r"unexpected extra argument"),
    (("study", "--until", "plan"), r"--until is for a fleet: give --cluster too"),
    (("study", "--until", "pla"), r"--until pla: there are survey, measure"),
    (("study", "--cluster", "auto"), r"--cluster: give --dir, a directory on each of a machine's"),
    (
        ("study", "--cluster", "auto", "--dir", "dir"),
        r"--dir dir: with --cluster give a path from /",
    ),
    (
        ("study", "--cluster", "auto", "--dir", "/a", "--durability", "volumes"),
        r"--durability volumes: ",
    ),
]


@pytest.mark.parametrize(("args", "told"), UNUSABLE, ids=lambda value: str(value)[:60])
def test_unusable_arguments_get_one_line_that_says_how_to_mend_them(
    call: Call,
    disk: Path,
    records: Path,
    monkeypatch: pytest.MonkeyPatch,
    args: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.chdir(disk)
    (disk / "cut").write_bytes(records.read_bytes()[:-50])
    (disk / "dir").mkdir()
    (disk / "filled" / "below").mkdir(parents=True)
    (disk / "full").mkdir()
    (disk / "full" / "records").write_bytes(records.read_bytes())
    (disk / "link").symlink_to("in")
    before = {path: path.read_bytes() for path in (records, disk / "cut")}
    code, out, err = call(*args)
    assert (code, out) == (2, ""), err
    assert re.fullmatch(r"tonnage: [^\n]+\n", err)
    assert re.search(told, err), err
    assert {path: path.read_bytes() for path in before} == before
    known = {"in", "cut", "dir", "filled", "below", "full", "records", "link"}
    left = {path.name for path in disk.rglob("*")} - known
    assert left <= {"scratch"}, left  # An empty directory that was asked for.


def test_the_command_itself_says_so_too(tonnage: Tonnage, disk: Path) -> None:
    said = tonnage.run("valsort", "none", cwd=disk)
    assert (said.returncode, said.stdout) == (2, "")
    assert re.fullmatch(r"tonnage: input none: No such file [^\n]+\n", said.stderr)


def test_a_directory_that_cannot_be_written_is_named(call: Call, disk: Path, records: Path) -> None:
    # Where nobody can make a file, root neither.
    place = "/proc/tonnage"
    for flag in ("--output", "--scratch"):
        directories = {"--output": disk / "out", "--scratch": disk / "scratch"} | {flag: place}
        args = map(str, itertools.chain(*directories.items()))
        code, _, err = call("run", "sort", str(records), *args)
        assert code == 2
        assert re.fullmatch(rf"tonnage: {flag} {place}: [^\n]+\n", err)
    code, _, err = call("study", "--data", "1MB", "--dir", "/proc", "--output", str(disk / "study"))
    assert code == 2
    assert re.fullmatch(r"tonnage: --dir: /proc: [^\n]+; choose a writable directory\n", err)


def test_an_earlier_output_is_not_overwritten(call: Call, disk: Path, records: Path) -> None:
    where = (str(records), "--output", f"{disk}/out", "--scratch", f"{disk}/scratch")
    assert call("run", "sort", *where)[0] == 0
    kept = {path.name: path.read_bytes() for path in (disk / "out").iterdir()}
    code, _, err = call("run", "sort", *where)
    assert code == 2
    assert re.fullmatch(r"tonnage: --output \S+/out holds an earlier output .*\n", err)
    assert {path.name: path.read_bytes() for path in (disk / "out").iterdir()} == kept


def test_scratch_may_lie_where_it_is_not_seen(call: Call, disk: Path, records: Path) -> None:
    # In the output's own directory it has no name; a hidden directory is no part of the output.
    for number, scratch in enumerate(("out-0", "out-1/.scratch")):
        output = disk / f"out-{number}"
        output.mkdir()
        where = ("--output", str(output), "--scratch", str(disk / scratch))
        assert call("run", "sort", str(records), *where)[0] == 0
        assert call("valsort", str(output))[0] == 0


def test_a_name_that_is_no_text_is_refused_in_one_line(call: Call, disk: Path) -> None:
    name = os.fsdecode(os.fsencode(disk) + b"/in-\xff")
    Path(name).write_bytes(bytes(100))
    code, _, err = call("valsort", name)
    assert code == 2
    assert re.fullmatch(r"tonnage: [^\n]*no UTF-8[^\n]*rename it\n", err)


def test_json_is_one_document_and_alone(tonnage: Tonnage, disk: Path, records: Path) -> None:
    made = _json(tonnage, "gensort", "10", disk / "made")
    assert (made["records"], made["bytes"]) == (10, 1000)
    found = _json(tonnage, "valsort", disk / "made", code=1)
    assert {"records", "checksum", "unordered", "duplicate_keys"} <= set(found)
    done = _json(
        tonnage, "run", "sort", records, "--output", disk / "out", "--scratch", disk / "scratch"
    )
    assert (done["records"], done["bytes"]) == (1000, 100_000)
    assert done["seconds"] > 0 and done["peak_memory_bytes"] > 0
    assert done["checksum"] == _json(tonnage, "valsort", disk / "out")["checksum"]
    assert [phase["name"] for phase in done["phases"]] == ["sample", "pass_one", "pass_two"]
    for phase in done["phases"]:
        assert phase["seconds"] > 0
        assert phase["bottleneck"] in [stage["name"] for stage in phase["stages"]]
        for stage in phase["stages"]:
            figures = [
                "bytes",
                *(f"{kind}_seconds" for kind in ("busy", "starved", "blocked", "cpu")),
            ]
            assert all(stage[figure] >= 0 for figure in figures)
    for phase in done["phases"][1:]:
        assert [stage["bytes"] for stage in phase["stages"]] == [100_000] * 3


def test_measure_disk_tries_each_mode_in_turn(tonnage: Tonnage, disk: Path, tmp_path: Path) -> None:
    trials = ("--size", "4MB", "--seconds", "0.2", "--repetitions", "2", "--memory", "64MiB")
    where = ("--dir", disk, *trials, "--output")
    done = _json(tonnage, "measure", "disk", *where, tmp_path / "all")
    assert done["schema"] == "tonnage.measurement/1"
    assert [trial["name"] for trial in done["trials"]] == ["wo", "ro", "rw", "headroom"] * 2
    assert [trial["step"]["round"] for trial in done["trials"]] == [0] * 4 + [1] * 4
    assert all(trial["bytes_per_second"] > 0 for trial in done["trials"])
    assert all(trial["beside"]["device_read_bytes"] is not None for trial in done["trials"])
    assert done["page_cache"].startswith("bypassed: ")
    assert list(disk.iterdir()) == []

    only = ("--mode", "ro")
    said = tonnage.run("measure", "disk", *where, tmp_path / "ro", *only, check=True)
    first, second, figure, rule, *scorecard, kept_in = said.stdout.splitlines()
    assert first.startswith("ro: ") and second.startswith("ro: ")
    assert len(done["scorecard"]) == 6
    short = [rule for rule in done["scorecard"] if rule["verdict"] != "pass"]
    assert scorecard[0] == f"Keeps {6 - len(short)} of the 6 rules of Cloud Truth."
    brief = scorecard[1 + len(short) :]
    assert [line.startswith("Less than a second of a trial counted") for line in brief] == [True]
    assert any(line.startswith("Less than a second") for line in done["warnings"])
    assert figure.startswith("ro: ") and figure.endswith(
        ", 2 trials; the median's 95 % interval takes 4 trials more)"
    )
    assert done["page_cache"] in rule and done["stopping_rule"] in rule
    assert kept_in.startswith(f"Kept in {tmp_path}/ro; ")
    (kept,) = [each for each in done["figures"] if each["name"] == "ro"]
    rates = [each["bytes_per_second"] for each in done["trials"] if each["name"] == "ro"]
    assert (kept["low_bytes_per_second"], kept["high_bytes_per_second"]) == (min(rates), max(rates))


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_measure_disk_goes_on_where_it_was_killed(call: Call, disk: Path, kept: int) -> None:
    out, name = disk / "out", "trial-{:05}.json".format
    where = ("--dir", str(disk), "--output", str(out))
    # As a study has it, one mode comes twice in a round.
    args = ("--mode", "rw", "ro", "rw", "--size", "4MB", "--seconds", "0.1", "--memory", "64MiB")
    args = ("measure", "disk", *where, *args, "--repetitions", "2", "--json")
    whole = json.loads(call(*args)[1])
    assert json.loads(call(*args)[1]) == whole
    before = [(out / name(number)).read_bytes() for number in range(kept)]
    (out / "measurement.json").unlink()
    for number in range(kept, 6):
        (out / name(number)).unlink()
    again = json.loads(call(*args)[1])
    assert [trial["name"] for trial in again["trials"]] == ["rw", "ro", "rw"] * 2
    assert [trial["step"]["round"] for trial in again["trials"]] == [0] * 3 + [1] * 3
    assert again["id"] == whole["id"]
    assert [(out / name(number)).read_bytes() for number in range(kept)] == before
    (disk / "other").mkdir()
    code, _, err = call(*args[:3], str(disk / "other"), *args[4:])
    assert code == 2
    assert f"begun with read ['{disk}'], not ['{disk}/other']: give the same --dir" in err


def test_measure_disk_ends_when_the_median_is_known_well_enough(call: Call, disk: Path) -> None:
    where = ("--dir", str(disk), "--output", str(disk / "out"), "--mode", "headroom")
    short = ("--size", "4MB", "--seconds", "0.1", "--memory", "64MiB")
    args = ("measure", "disk", *where, *short, "--until-confidence", "99%", "--json")
    done = json.loads(call(*args)[1])
    # Six are the fewest from which a median has an interval; a machine that is busy may need more.
    assert 6 <= len(done["trials"]) < MOST_ROUNDS
    assert done["figures"][0]["wanted_share"] == 0.99


def test_measure_disk_keeps_to_little_memory(tonnage: Tonnage, disk: Path) -> None:
    memory = 64 << 20
    trials = ("--size", "400MB", "--seconds", "0.3", "--repetitions", "1", f"--memory={memory}")
    where = ("--dir", disk, "--output", disk / "out")
    used = processes.used([tonnage.path, "measure", "disk", *where, *trials, "--json"])
    assert used.returncode == 0
    moved = [trial["phase"]["stages"][-1]["bytes"] for trial in json.loads(used.out)["trials"]]
    assert min(moved) > 0 and max(moved) > 2 * memory
    assert used.peak_memory_bytes <= memory + processes.MOST_OVERHEAD_BYTES


def test_several_directories_follow_one_flag_or_several(
    tonnage: Tonnage, disk: Path, records: Path
) -> None:
    once = ("--output", "a", "b", "--scratch", "c", "d", "e")
    each = ("--output", "f", "--output=g", "--scratch", "c", "--scratch", "d", "--scratch", "e")
    for flags, (first, second) in ((once, "ab"), (each, "fg")):
        args = ("run", "sort", "in", *flags, "--memory", "64MiB", "--json")
        done = json.loads(tonnage.run(*args, cwd=disk, check=True).stdout)
        assert done["settings"]["output"] == [first, second]
        assert done["settings"]["scratch"] == ["c", "d", "e"]
        for directory in (disk / first, disk / second):
            assert (directory / "_tonnage.json").exists()
        assert parts(disk / first, disk / second)

    args = (
        "--size",
        "4MB",
        "--seconds",
        "0.1",
        "--repetitions",
        "1",
        "--mode",
        "rw",
        "ro",
        "--json",
    )
    done = json.loads(
        tonnage.run("measure", "disk", "--dir", "a", "b", "c", *args, cwd=disk).stdout
    )
    both = (done["settings"]["read"], done["settings"]["write"])
    assert both == ([f"{disk}/a", f"{disk}/b"], [f"{disk}/c"])
    assert (disk / "tonnage-disk-1" / "measurement.json").exists()
    assert [trial["name"] for trial in done["trials"]] == ["rw", "ro"]


WORDS = st.sampled_from(["a", "b", "1GiB", "-", "--json", "--memory", "--dir", "--dir=a", "--"])


SEVERAL = ("--output", "--scratch", "--dir")


@given(st.lists(WORDS | st.sampled_from(SEVERAL)))
@settings(derandomize=True)
def test_spreading_only_adds_flags(words: list[str]) -> None:
    done = spread(words, SEVERAL)
    assert spread(done, SEVERAL) == done
    kept = iter(done)
    assert all(word in kept for word in words)  # All are there, in this order.
    assert set(done) <= set(words) | {word.partition("=")[0] for word in words}
    if "--" in words:
        assert done[done.index("--") :] == words[words.index("--") :]


@pytest.mark.parametrize(
    ("words", "done"),
    [
        ("study --dir a b --json", "study --dir a --dir b --json"),
        ("in --output a b --scratch c", "in --output a --output b --scratch c"),
        ("in --output=a b", "in --output=a --output b"),
        ("--memory 1 in", "--memory 1 in"),
        ("--output a -- b", "--output a -- b"),
    ],
)
def test_values_are_spread(words: str, done: str) -> None:
    assert spread(words.split(), SEVERAL) == done.split()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1000000", 1_000_000),
        ("4GB", 4_000_000_000),
        ("1GiB", 1 << 30),
        ("1.5 kB", 1500),
        ("0.5kib", 512),
        ("2TiB", 2 << 40),
        ("8EB", 8 * 10**18),
        ("9007199254740993", 9007199254740993),  # More than a float holds.
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("size", "told"),
    [("1.5GiB", r"--out \S+ holds earlier"), ("4XB", "'4XB' is no size: write it")],
)
def test_the_io_bench_takes_sizes_as_commands_do(tmp_path: Path, size: str, told: str) -> None:
    bench = ROOT / "benches" / "io_peers" / "bench.py"
    (tmp_path / "earlier").touch()
    args = [sys.executable, bench, "--size", size, "--out", tmp_path / "earlier"]
    done = subprocess.run(args, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert re.search(told, done.stderr), done.stderr


def _json(tonnage: Tonnage, *args: str | Path, code: int = 0) -> dict[str, Any]:
    said = tonnage.run(*args, "--json")
    assert said.returncode == code, said.stderr
    document: dict[str, Any] = json.loads(said.stdout)
    return document


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("ops", "--operation", "read4m", "--queue-depth", "4", "257"), "--queue-depth so many"),
        (("over-time", "--queue-depth", "257"), "--queue-depth so many"),
        (
            ("stream", "--transfer", "16MiB", "--processes", "65", "--block", "16MiB"),
            "--transfer 16 MiB for each of --processes",
        ),
    ],
    ids=lambda value: value[0],
)
def test_buffers_beyond_memory_are_refused(
    call: Call, monkeypatch: pytest.MonkeyPatch, disk: Path, args: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(disk)
    monkeypatch.setattr(environment, "physical_memory", lambda: 1 << 30)
    monkeypatch.setattr(environment, "memory_limit", lambda: None)
    code, _, err = call("measure", *args)
    assert code == 2
    assert re.fullmatch(rf"tonnage: {told} needs \S+ MiB, more than the 1 GiB .*: give .*\n", err)
    assert list(disk.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("ops", suite.RandomIoSettings),
        ("stream", StreamSettings),
        ("over-time", over_time.OverTimeSettings),
        ("net", NetSettings),
        ("layouts", LayoutSettings),
        ("disk", measure_disk.DiskSettings),
        ("object", store.ObjectSettings),
    ],
)
def test_each_setting_has_a_flag(command: str, kind: type) -> None:
    known = SimpleNamespace(opts=FLAGS["measure", command], secondary_opts=[])
    shown = SimpleNamespace(params=[known])
    arguments = {"devices", "bucket", "prefix"}
    fields = {field.name for field in dataclasses.fields(kind)} - arguments
    assert all(flag_of(name, shown) for name in fields)


@pytest.mark.parametrize(
    ("physical", "limit", "told"),
    [
        (2 << 30, None, "2 GiB that this machine has"),
        (2 << 30, 1 << 30, "1 GiB that this control group may have"),
        (2 << 30, 64 << 30, "2 GiB that this machine has"),
    ],
)
def test_memory_is_what_this_process_may_have(
    monkeypatch: pytest.MonkeyPatch, physical: int, limit: int | None, told: str
) -> None:
    monkeypatch.setattr(environment, "physical_memory", lambda: physical)
    monkeypatch.setattr(environment, "memory_limit", lambda: limit)
    most = min(physical, limit or physical)
    assert parse_memory(str(most)) == most
    with pytest.raises(core.UsageError) as refused:
        parse_memory("3GiB")
    assert str(refused.value) == f"--memory 3GiB is more than the {told}: give less"


@pytest.mark.parametrize(
    ("why", "begun", "goes_on"),
    [
        (core.RunError("no node is left"), True, True),
        (KeyboardInterrupt(), True, True),
        (KeyboardInterrupt(), False, False),
        (core.RunError("a function failed"), False, False),
        (FatalJobError("input f was changed: begin again with another --output"), True, False),
    ],
)
def test_that_the_same_command_goes_on_is_said_where_it_does(
    why: BaseException,
    begun: bool,
    goes_on: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if begun:
        (tmp_path / "job.json").touch()
    with pytest.raises(type(why)) as raised, going_on(tmp_path):
        raise why
    # Of an interrupt the entry point says it, in the one line that it has.
    said = capsys.readouterr().err + str(raised.value)
    assert ("the same command goes on" in said) == goes_on
