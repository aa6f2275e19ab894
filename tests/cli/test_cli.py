"""The command line's contract: exit codes, JSON, directories, what is kept and what is removed."""

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Call
from support.cli import processes
from support.cli.command import Tonnage
from support.data.records import parts
from support.stores.disk import ROOT
from tonnage.base import core
from tonnage.base.system import cgroups
from tonnage.cli.measure.options import MAX_REPETITIONS
from tonnage.cli.options.types import parse_memory
from tonnage.cli.run.cluster import resumable
from tonnage.measure.trial import environment
from tonnage.run.two_pass.job_dir import FatalJobError


def test_version(tonnage: Tonnage) -> None:
    assert re.fullmatch(r"tonnage \d+\.\d+\.\d+\n", tonnage.run("--version", check=True).stdout)


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
        assert re.fullmatch(rf"tonnage: {flag}: {place}: [^\n]+\n", err)
    code, _, err = call("study", "--data", "1MB", "--dir", "/proc", "--output", str(disk / "study"))
    assert code == 2
    assert re.fullmatch(r"tonnage: --dir: /proc: [^\n]+; choose a writable directory\n", err)


def test_an_earlier_output_is_not_overwritten(call: Call, disk: Path, records: Path) -> None:
    where = (str(records), "--output", f"{disk}/out", "--scratch", f"{disk}/scratch")
    assert call("run", "sort", *where)[0] == 0
    kept = {path.name: path.read_bytes() for path in (disk / "out").iterdir()}
    code, _, err = call("run", "sort", *where)
    assert code == 2
    assert re.fullmatch(r"tonnage: --output: \S+/out contains an earlier output .*\n", err)
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
    assert re.fullmatch(r"tonnage: [^\n]*not UTF-8[^\n]*rename it\n", err)


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
    assert scorecard[0] == f"Meets {6 - len(short)} of the 6 rules of Cloud Truth."
    brief = scorecard[1 + len(short) :]
    assert [line.startswith("Less than a second of a trial was counted") for line in brief] == [
        True
    ]
    assert any(line.startswith("Less than a second") for line in done["warnings"])
    assert figure.startswith("ro: ") and figure.endswith(
        ", 2 trials; the 95 % interval of the median needs 4 more trials)"
    )
    assert done["page_cache"] in rule and done["stopping_rule"] in rule
    assert kept_in == f"Results: {tmp_path}/ro. For an HTML report: tonnage report {tmp_path}/ro"
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
    assert re.search(rf"--dir: .*\['{disk}'\].*\['{disk}/other'\]", err), err


def test_measure_disk_ends_when_the_median_is_known_well_enough(call: Call, disk: Path) -> None:
    where = ("--dir", str(disk), "--output", str(disk / "out"), "--mode", "headroom")
    short = ("--size", "4MB", "--seconds", "0.1", "--memory", "64MiB")
    args = ("measure", "disk", *where, *short, "--until-confidence", "99%", "--json")
    done = json.loads(call(*args)[1])
    # Six are the fewest from which a median has an interval; a machine that is busy may need more.
    assert 6 <= len(done["trials"]) < MAX_REPETITIONS
    assert done["figures"][0]["wanted_share"] == 0.99


def test_measure_disk_keeps_to_little_memory(tonnage: Tonnage, disk: Path) -> None:
    memory = 64 << 20
    trials = ("--size", "400MB", "--seconds", "0.3", "--repetitions", "1", f"--memory={memory}")
    where = ("--dir", disk, "--output", disk / "out")
    used = processes.run_with_usage([tonnage.path, "measure", "disk", *where, *trials, "--json"])
    assert used.returncode == 0
    moved = [trial["phase"]["stages"][-1]["bytes"] for trial in json.loads(used.out)["trials"]]
    assert min(moved) > 0 and max(moved) > 2 * memory
    assert used.peak_memory_bytes <= memory + processes.MAX_OVERHEAD_BYTES


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


@pytest.mark.parametrize(
    ("size", "told"),
    [("1.5GiB", r"--out \S+ holds earlier"), ("4XB", "'4XB' is not a size; use")],
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
        (("ops", "--operation", "read4m", "--queue-depth", "4", "257"), "--queue-depth"),
        (("over-time", "--queue-depth", "257"), "--queue-depth"),
        (
            ("stream", "--transfer", "16MiB", "--processes", "65", "--block", "16MiB"),
            "--transfer 16 MiB for all --processes",
        ),
    ],
    ids=lambda value: value[0],
)
def test_buffers_beyond_memory_are_refused(
    call: Call, monkeypatch: pytest.MonkeyPatch, disk: Path, args: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(disk)
    monkeypatch.setattr(environment, "physical_memory", lambda: 1 << 30)
    monkeypatch.setattr(cgroups, "memory_limit", lambda: None)
    code, _, err = call("measure", *args)
    assert code == 2
    assert re.fullmatch(
        rf"tonnage: {told} needs \S+ MiB(?: of buffers)?, more than the 1 GiB .*; lower .*\n", err
    )
    assert list(disk.iterdir()) == []


@pytest.mark.parametrize(
    ("physical", "limit", "told"),
    [
        (2 << 30, None, "2 GiB that this machine has"),
        (2 << 30, 1 << 30, "1 GiB that this process's control group allows"),
        (2 << 30, 64 << 30, "2 GiB that this machine has"),
    ],
)
def test_memory_is_what_this_process_may_have(
    monkeypatch: pytest.MonkeyPatch, physical: int, limit: int | None, told: str
) -> None:
    monkeypatch.setattr(environment, "physical_memory", lambda: physical)
    monkeypatch.setattr(cgroups, "memory_limit", lambda: limit)
    most = min(physical, limit or physical)
    assert parse_memory(str(most)) == most
    with pytest.raises(core.UsageError) as refused:
        parse_memory("3GiB")
    assert str(refused.value) == f"--memory 3GiB is more than the {told}; lower --memory"


@pytest.mark.parametrize(
    ("error", "begun", "can_resume"),
    [
        (core.RunError("no node is left"), True, True),
        (KeyboardInterrupt(), True, True),
        (KeyboardInterrupt(), False, False),
        (core.RunError("a function failed"), False, False),
        (FatalJobError("input f was changed: begin again with another --output"), True, False),
    ],
)
def test_how_to_resume_is_printed_where_that_is_possible(
    error: BaseException,
    begun: bool,
    can_resume: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if begun:
        (tmp_path / "job.json").touch()
    with pytest.raises(type(error)) as raised, resumable(tmp_path):
        raise error
    # For an interrupt the entry point prints it, in its one line.
    said = capsys.readouterr().err + str(raised.value)
    assert ("to resume the job" in said) == can_resume
