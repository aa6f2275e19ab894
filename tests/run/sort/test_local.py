"""`run sort`: what comes out is what went in, in order, however skewed; and within its memory."""

import hashlib
import json
import random
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cli import processes
from support.cli.command import Tonnage
from support.data.copies import replace
from support.data.records import blob, checksum, content, cut, key_of, parts
from support.stores.disk import ROOT, disk_dir
from tonnage.base.records import RunRecord
from tonnage.cli.options.cluster import Timeout
from tonnage.cli.output.run_record import sort_lines
from tonnage.cluster.time_limits import ACCUSED_SECONDS
from tonnage.measure.trial import environment
from tonnage.run.sort.gensort import validate
from tonnage.run.sort.local import Layout, sort

MIB = 1 << 20


def in_process(
    inputs: list[Path],
    disk: Path,
    layout: Layout,
    memory: int,
    outputs: int = 1,
    scratches: int = 1,
) -> tuple[RunRecord, list[Path]]:
    """Sort without the command's start; gives the record and the output directories."""
    output = [disk / f"out-{number}" for number in range(outputs)]
    scratch = [disk / f"scratch-{number}" for number in range(scratches)]
    done = sort(
        inputs,
        output,
        scratch,
        layout=layout,
        memory_bytes=memory,
        environment=environment.capture([disk]),
        began_at="now",
        command=["test"],
    )
    assert [path for directory in scratch for path in directory.iterdir()] == []
    return done.record, output


def check(record: RunRecord, output: list[Path], records: list[bytes], layout: Layout) -> None:
    """The output is the records, in the order of their keys, and all who count agree."""
    data = content(parts(*output))
    found = cut(data, layout.record_bytes) if data else []
    assert sorted(found) == sorted(records)
    keys = [key_of(each, layout) for each in found]
    assert keys == sorted(keys)
    assert (record.records, record.bytes) == (len(records), len(data))
    assert record.checksum == checksum(records)
    judged = validate(output, layout=layout)
    assert (judged["records"], judged["checksum"]) == (record.records, record.checksum)
    assert judged["unordered"] == 0
    assert judged["duplicate_keys"] == len(keys) - len(set(keys))
    for directory in output:
        manifest = json.loads((directory / "_tonnage.json").read_text())
        assert manifest["parts"] == [path.name for path in parts(*output)]
        assert (manifest["records"], manifest["checksum"]) == (record.records, record.checksum)


@settings(max_examples=20, derandomize=True)
@given(
    record_bytes=st.integers(1, 300),
    counts=st.lists(st.integers(0, 3000), min_size=1, max_size=4),
    alphabet=st.sampled_from([1, 2, 16, 256]),
    memory=st.sampled_from([16 * MIB, 64 * MIB]),
    outputs=st.integers(1, 3),
    scratches=st.integers(1, 3),
    seed=st.integers(0, 1 << 30),
    key=st.data(),
)
def test_whatever_goes_in_comes_out_in_order(
    record_bytes: int,
    counts: list[int],
    alphabet: int,
    memory: int,
    outputs: int,
    scratches: int,
    seed: int,
    key: st.DataObject,
) -> None:
    offset = key.draw(st.integers(0, record_bytes - 1), label="key offset")
    length = key.draw(st.integers(1, record_bytes - offset), label="key length")
    layout = Layout(record_bytes=record_bytes, key_offset=offset, key_bytes=length)
    with disk_dir() as disk:
        inputs = [disk / f"in-{number}" for number in range(len(counts))]
        for number, (path, count) in enumerate(zip(inputs, counts, strict=True)):
            path.write_bytes(blob(seed + number, count * record_bytes, alphabet))
        before = [path.read_bytes() for path in inputs]
        record, output = in_process(inputs, disk, layout, memory, outputs, scratches)
        assert [path.read_bytes() for path in inputs] == before
        check(record, output, cut(content(inputs), record_bytes), layout)


def _zipf(count: int, draw: random.Random) -> list[bytes]:
    """Keys of which the k-th is k times as rare as the first."""
    kinds = [draw.randbytes(10) for _ in range(1000)]
    return draw.choices(kinds, [1 / (rank + 1) for rank in range(1000)], k=count)


def _one_hot(count: int, draw: random.Random) -> list[bytes]:
    """One key is half of all."""
    return [b"hot hot ho" if draw.random() < 0.5 else draw.randbytes(10) for _ in range(count)]


SKEWS = {
    "all equal": lambda count, draw: [b"same same "] * count,
    "two": lambda count, draw: [draw.choice([b"\0" * 10, b"\xff" * 10]) for _ in range(count)],
    "one hot": _one_hot,
    "zipf": _zipf,
    "in order": lambda count, draw: sorted(draw.randbytes(10) for _ in range(count)),
    "reversed": lambda count, draw: sorted(draw.randbytes(10) for _ in range(count))[::-1],
    "one prefix": lambda count, draw: [b"prefixed" + draw.randbytes(2) for _ in range(count)],
    "last byte": lambda count, draw: [b"prefixed-" + draw.randbytes(1) for _ in range(count)],
    # What no sample of the beginning, or of every n-th record, would show.
    "late": lambda count, draw: [
        (b"\0" if place < count * 0.98 else b"\xff") + draw.randbytes(9) for place in range(count)
    ],
}


@pytest.mark.parametrize("skew", SKEWS)
def test_skewed_keys_are_sorted_in_little_memory(disk: Path, skew: str) -> None:
    draw = random.Random(skew)
    keys = SKEWS[skew](150_000, draw)
    records = [key + draw.randbytes(90) for key in keys]
    (disk / "in").write_bytes(b"".join(records))
    layout = Layout()
    record, output = in_process([disk / "in"], disk, layout, 8 * MIB, outputs=2, scratches=2)
    check(record, output, records, layout)
    if skew == "zipf":
        # Its frequent keys' neighbours are more than memory holds, so they are divided again.
        assert "pass_one_again" in [phase.name for phase in record.phases]


@pytest.mark.parametrize("count", [1, 2, 3, 100, 1000])
def test_few_records_are_sorted(disk: Path, count: int) -> None:
    # Fewer than are worth dividing by their first bits, in which the least and the greatest differ.
    records = [bytes(100), *cut(blob(5, 100 * (count - 1)), 100)]
    (disk / "in").write_bytes(b"".join(records))
    record, output = in_process([disk / "in"], disk, Layout(), 64 * MIB)
    check(record, output, records, Layout())


def test_files_and_directories_through_the_command(tonnage: Tonnage, disk: Path) -> None:
    (disk / "more").mkdir()
    files = [disk / "first", disk / "more" / "b", disk / "more" / "a"]
    tonnage.run("gensort", "30000", *files, "--skew", check=True)
    (disk / "more" / "_list").write_bytes(b"no record")
    (disk / "more" / ".hidden").write_bytes(b"no record")
    before = _fingerprints(disk)

    flags = ["--output", disk / "o1", disk / "o2", "--scratch", disk / "s1", disk / "s2"]
    args = ("run", "sort", disk / "first", disk / "more", *flags, "--memory", "8MiB")
    said = tonnage.run(*args, "--json", check=True)
    record = RunRecord.from_json(json.loads(said.stdout))
    output = [disk / "o1", disk / "o2"]
    check(record, output, cut(content(files), 100), Layout())
    assert before.items() <= _fingerprints(disk).items()

    judged = json.loads(tonnage.run("valsort", *output, "--json", check=True).stdout)
    assert (judged["records"], judged["checksum"]) == (30_000, record.checksum)
    # Every byte of input was read once and written once in each pass.
    for phase in record.phases[1:]:
        assert [stage.bytes for stage in phase.stages] == [3_000_000] * 3


def test_records_and_keys_of_another_shape_through_the_command(
    tonnage: Tonnage, disk: Path
) -> None:
    (disk / "in").write_bytes(blob(3, 64 * 9001, 4))
    shape = ("--record-bytes", "64", "--key", "7:33")
    where = ("--output", disk / "out", "--scratch", disk / "scratch", "--memory", "4MiB")
    said = tonnage.run("run", "sort", disk / "in", *where, *shape, "--json", check=True)
    layout = Layout(record_bytes=64, key_offset=7, key_bytes=33)
    records = cut((disk / "in").read_bytes(), 64)
    check(RunRecord.from_json(json.loads(said.stdout)), [disk / "out"], records, layout)
    tonnage.run("valsort", disk / "out", *shape, check=True)


def test_words_say_what_json_says(tonnage: Tonnage, disk: Path) -> None:
    tonnage.run("gensort", "1000", disk / "in", check=True)
    where = ("--output", disk / "out", "--scratch", disk / "scratch")
    said = tonnage.run("run", "sort", disk / "in", *where, check=True).stdout
    manifest = json.loads((disk / "out" / "_tonnage.json").read_text())
    assert f"1000 records, 100000 bytes, checksum {manifest['checksum']}\n" in said
    for phase in ("sample", "pass_one", "pass_two"):
        assert f"\n{phase}: " in said


def test_words_are_few_however_often_a_phase_came() -> None:
    record = RunRecord.read(ROOT / "tests" / "support" / "recorded" / "artifacts" / "run-1.json")
    mode = {"engine": "io_uring", "registered": True, "direct": True, "why": None}
    phase = replace(record.phases[0], disk_modes=[mode], seconds=0.025)
    again = [
        replace(phase, name="pass_one_again", bottleneck=each)
        for each in ("write", "write", "read")
    ]
    once = replace(record, phases=[phase], seconds=2.0, bytes=100 * 10**6)
    _, rate, only = sort_lines(once)
    assert rate.startswith("2.00 s, 50.0 MB/s sorted, ")
    assert only == f"{phase.name}: 0.0250 s, limited by {phase.bottleneck}"
    refused = replace(
        phase, disk_modes=[mode | {"direct": False, "why": "no"}, mode | {"engine": "threads"}]
    )
    twice = replace(once, phases=[phase, *again, refused], repartitioned_bytes=500 * 10**6)
    first, several, *more = sort_lines(twice)[2:]
    assert first.startswith(f"{phase.name}: 2 times, 0.0500 s, ")
    assert several == "pass_one_again: 3 times, 0.0750 s, limited by write and read"
    assert more == [
        "500 MB had to be partitioned a second time, since --memory is small; raise --memory",
        "Files went through the page cache because O_DIRECT was refused (no).",
        "Files were read and written by threads because io_uring was refused.",
    ]


def test_no_records_make_a_whole_and_empty_output(tonnage: Tonnage, disk: Path) -> None:
    (disk / "in").touch()
    where = ("--output", disk / "out", "--scratch", disk / "scratch")
    said = tonnage.run("run", "sort", disk / "in", *where, "--json", check=True)
    record = RunRecord.from_json(json.loads(said.stdout))
    assert (record.records, record.bytes, record.checksum) == (0, 0, "0")
    check(record, [disk / "out"], [], Layout())


def test_memory_is_kept_with_six_hundred_megabytes(tonnage: Tonnage, disk: Path) -> None:
    tonnage.run("gensort", "6000000", disk / "in", check=True)
    _sort_within(tonnage, disk, 128 * MIB)


def test_memory_is_kept_with_equal_keys(tonnage: Tonnage, disk: Path) -> None:
    with (disk / "in").open("wb") as file:
        for seed in range(30):
            payload = blob(seed, 90 * 1000)
            records = b"".join(b"same same " + each for each in cut(payload, 90))
            for _ in range(100):
                file.write(records)
    _sort_within(tonnage, disk, 64 * MIB)


def _sort_within(tonnage: Tonnage, disk: Path, memory: int) -> None:
    """Sort the file `in` and look at what the process had at most, as the kernel says."""
    where = ("--output", disk / "out", "--scratch", disk / "scratch")
    command = [tonnage.path, "run", "sort", disk / "in", *where, f"--memory={memory}", "--json"]
    used = processes.run_with_usage(command)
    assert used.returncode == 0
    record: dict[str, Any] = json.loads(used.out)
    assert record["bytes"] == (disk / "in").stat().st_size > 2 * memory
    assert used.peak_memory_bytes <= memory + processes.MAX_OVERHEAD_BYTES
    # What it says of itself; the report is made after the peak.
    assert record["peak_memory_bytes"] <= used.peak_memory_bytes
    assert record["peak_memory_bytes"] >= 0.9 * used.peak_memory_bytes
    judged = json.loads(tonnage.run("valsort", disk / "out", "--json", check=True).stdout)
    assert (judged["records"], judged["checksum"]) == (record["records"], record["checksum"])


def _fingerprints(directory: Path) -> dict[Path, tuple[str, int]]:
    return {
        path: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_how_soon_a_machine_that_others_accuse_is_lost_is_told() -> None:
    _, option = get_args(Timeout)
    assert f"broken and it reports nothing for {ACCUSED_SECONDS:g}s" in option.help
    told = (ROOT / "docs" / "concepts" / "cluster-sort.md").read_text()
    assert (
        f"broken connections to a node, it counts as lost after {ACCUSED_SECONDS:g} s"
        in " ".join(told.split())
    )
