"""A MapReduce from and to object storage, on one machine and on a cluster of threads."""

from __future__ import annotations

import collections
import io
import json
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from support.cli.command import Tonnage
from support.cluster.sorters import SortMachines, Trouble, directories, driver
from support.stores.s3 import BUCKET, KEYS, Bucket, server
from tonnage import Input, MapReduce, reduce, sums
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.run.formats.lines import lines_in
from tonnage.run.mapreduce.cluster import MapReduceJob, map_reduce_job
from tonnage.run.reduce.builtin.histogram import Histograms
from tonnage.run.storage.object_store import ObjectStoreOptions
from tonnage.run.storage.sources import InputFile, Sources
from tonnage.run.two_pass.driver import run_two_pass

pytestmark = pytest.mark.slow

NODES = ("a", "b", "c")
MEMORY = 64 << 20
IN, OUT = f"s3://{BUCKET}/in/", f"s3://{BUCKET}/out/"
Rows = list[tuple[Any, ...]]


def words(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each word of lines, once."""
    found = pc.list_flatten(pc.utf8_split_whitespace(batch.column("line")))
    return pa.record_batch({"key": found, "n": pa.repeat(1, len(found))})


COUNT = MapReduce(map=words, reduce=sums("n"))


def texts(bucket: Bucket, lines: int = 24_000, objects: int = 3) -> collections.Counter[str]:
    """Lines of words, some of them long, in objects; how often each word is there."""
    draw, count = random.Random(lines), collections.Counter[str]()
    for number in range(objects):
        found = [
            [f"word{int(9_000 * draw.random() ** 2)}" for _ in range(draw.choice([9, 12, 4000]))]
            if draw.random() < 0.001
            else [f"word{int(9_000 * draw.random() ** 2)}" for _ in range(12)]
            for _ in range(lines // objects)
        ]
        for line in found:
            count.update(line)
        bucket.put(f"in/{number}.txt", "\n".join(map(" ".join, found)).encode())
    bucket.put("in/_notes", b"\xff no text")
    return count


def asked(room: Path, bucket: Bucket, job: MapReduce = COUNT, **more: Any) -> MapReduceJob:
    """A job from a folder to another one."""
    usual: dict[str, Any] = {
        "inputs": [Input(IN)],
        "format": "parquet",
        "workers": 2,
        "output": [OUT],
        "scratch": directories(room, "scratch"),
        "memory_bytes": MEMORY,
        "connections": 1,
        "patience_seconds": 5.0,
        "command": ["test"],
        "object_store": ObjectStoreOptions(endpoint=bucket.endpoint, requests=4),
    }
    usual |= more
    inputs = usual.pop("inputs")
    return map_reduce_job(job, inputs, **usual)


def rows_of(room: Path, bucket: Bucket, record: RunRecord) -> Rows:
    """What a job wrote to the folder, in the order of its parts; nothing else is left anywhere."""
    content = bucket.content("out")
    manifest = json.loads(content.pop("_tonnage.json"))
    assert sorted(content) == manifest["parts"] and bucket.uploads() == []
    files = json.loads((room / "job" / "reduced.json").read_text())
    assert [each["path"] for each in files] == [f"{OUT}{name}" for name in manifest["parts"]]
    assert [each["bytes"] for each in files] == [len(content[name]) for name in manifest["parts"]]
    assert record.durability == "none" and record.requests["requests"] > 0
    for node in {each.node for each in record.nodes if each.lost is None}:
        assert list((room / node / "scratch").iterdir()) == []
    tables = [pq.read_table(io.BytesIO(content[name])) for name in manifest["parts"]]
    assert [table.num_rows for table in tables] == [each["records"] for each in files]
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def on_fleet(
    room: Path, bucket: Bucket, cluster: SortMachines, **more: Any
) -> tuple[RunRecord, Rows]:
    """What a cluster makes of it."""
    record = run_two_pass(cluster, room / "job", asked(room, bucket, **more))
    return record, rows_of(room, bucket, record)


@pytest.mark.real
def test_what_is_in_object_storage_is_reduced_by_all(disk: Path, s3: Bucket) -> None:
    count = texts(s3)
    record, found = on_fleet(disk, s3, SortMachines(*NODES))
    assert len(found) == len(count) and dict(found) == count
    assert all(node.read_bytes for node in record.nodes) and len(record.rounds) == 1
    assert record.requests["errors"] == {}
    kept = "".join(path.read_text() for path in (disk / "job").iterdir())
    assert not any(secret in kept for secret in KEYS.values())
    # Done is done; what is there is refused.
    assert run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, s3)) == record
    with pytest.raises(core.UsageError, match=r"is not empty \(it contains _tonnage.json\)"):
        run_two_pass(SortMachines(*NODES), disk / "other", asked(disk, s3))


def test_objects_go_to_files_and_files_to_objects(disk: Path, s3: Bucket) -> None:
    count = texts(s3)
    own = directories(disk, "own")
    first = asked(disk, s3, output=own)
    run_two_pass(SortMachines(*NODES), disk / "first", first)
    again = MapReduce(key="key", reduce=sums("n"))
    inputs = [Input(f"{disk}/{{node}}/own"), Input(IN, map=words)]
    _, found = on_fleet(disk, s3, SortMachines(*NODES), job=again, inputs=inputs)
    assert dict(found) == {word: 2 * times for word, times in count.items()}


def test_row_groups_of_parquet_and_columns_of_csv(disk: Path, s3: Bucket) -> None:
    table = pa.table({"key": [f"k{n % 7}" for n in range(60_000)], "n": pa.array([1] * 60_000)})
    for number in range(2):
        sink = io.BytesIO()
        pq.write_table(table, sink, row_group_size=7_000)
        s3.put(f"in/{number}.parquet", sink.getvalue())
    s3.put("in/2.csv", b"key,n\n" + b"k0,1\n" * 50_000)
    _, found = on_fleet(disk, s3, SortMachines(*NODES), job=MapReduce(reduce=sums("n")))
    expected = collections.Counter(table["key"].to_pylist() * 2) + collections.Counter(k0=50_000)
    assert dict(found) == expected


def test_folder_markers_are_passed_over(disk: Path, s3: Bucket) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"key": [1, 2, 1], "n": [1, 1, 1]}), sink)
    for key, content in (("in/pq/", b""), ("in/", b""), ("in/pq/a.parquet", sink.getvalue())):
        s3.put(key, content)
    job = MapReduce(reduce=sums("n"))
    _, found = on_fleet(disk, s3, SortMachines(*NODES), job=job)
    assert sorted(found) == [(1, 2), (2, 1)]
    store = ObjectStoreOptions(endpoint=s3.endpoint)
    record = job.run(IN, disk / "alone", disk / "s", memory=MEMORY, workers=2, object_store=store)
    assert record.records == 3
    assert reduce(Histograms(), IN, endpoint=s3.endpoint, workers=1).record.rows == 3


def test_hive_folders_are_columns(disk: Path, s3: Bucket) -> None:
    for year in (2023, 2024):
        s3.put(f"in/year={year}/a.csv", b"key,n\n1,1\n2,1\n")
    job = MapReduce(key="year", reduce=sums("n", key="year"))
    _, found = on_fleet(disk, s3, SortMachines(*NODES), job=job)
    assert sorted(found) == [(2023, 2), (2024, 2)]
    store = ObjectStoreOptions(endpoint=s3.endpoint)
    job.run(IN, disk / "alone", disk / "s", memory=MEMORY, workers=2, object_store=store)
    tables = [pq.read_table(part) for part in (disk / "alone").glob("part-*")]
    assert sorted(row["year"] for table in tables for row in table.to_pylist()) == [2023, 2024]


def test_nothing_of_something_and_something_of_next_to_nothing(disk: Path, s3: Bucket) -> None:
    s3.put("in/a.txt", b"")
    record, found = on_fleet(disk, s3, SortMachines(*NODES))
    assert (found, record.records) == ([], 0)
    s3.put("in/a.txt", b"one")
    more = {"output": [f"s3://{BUCKET}/one"], "command": ["other"]}
    record = run_two_pass(SortMachines(*NODES), disk / "one", asked(disk, s3, **more))
    assert (record.records, record.written_records) == (1, 1)


@pytest.mark.parametrize(
    ("step", "what"),
    [
        # The other steps are too short to be interrupted in the middle.
        *((step, "dies in the middle") for step in ("pass_one", "pass_two")),
        *(
            (step, what)
            for step in ("sample", "pass_one", "pass_two", "clear", "publish")
            for what in ("dies", "dies at the end")
        ),
    ],
)
def test_a_machine_that_dies_is_done_without(disk: Path, s3: Bucket, step: str, what: str) -> None:
    count = texts(s3)
    who = "a" if step in ("clear", "publish") else "b"
    trouble = Trouble(step, what, wipes=what != "dies at the end")
    cluster = SortMachines(*NODES, troubles={who: [trouble]})
    job = MapReduce(map=words, reduce=sums("n"), ordered=step == "sample")
    record, found = on_fleet(disk, s3, cluster, job=job)
    assert trouble.happened and len(found) == len(count) and dict(found) == count
    lost = {node.node: node.lost for node in record.nodes}
    assert str(lost.pop(who)).startswith("died") and not any(lost.values())


@pytest.mark.parametrize(
    "at", ["claim", "pass_one", "clear", "pass_two", "publish", "leave", "release"]
)
def test_a_driver_that_is_killed_goes_on(disk: Path, s3: Bucket, at: str) -> None:
    count = texts(s3)
    # With so many partitions some are of nothing.
    job = MapReduce(map=words, reduce=lambda rows: rows.slice(0, 0), partitions=6)
    with driver(dies=at) as first:
        run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, s3))
    with driver() as then:
        _, found = on_fleet(disk, s3, SortMachines(*NODES))
    assert len(found) == len(count) and dict(found) == count
    if at == "pass_two":
        assert [*first, *then].count("pass_two") == 1
    nothing = {"job": job, "output": [f"s3://{BUCKET}/nothing"]}
    with driver(dies=at):
        run_two_pass(SortMachines(*NODES), disk / "none", asked(disk, s3, **nothing))
    with driver() as then:
        record = run_two_pass(SortMachines(*NODES), disk / "none", asked(disk, s3, **nothing))
    assert record.written_records == 0
    assert "pass_two" not in then or at not in ("pass_two", "publish")


def test_a_tenth_of_requests_may_fail(
    disk: Path, keys: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObjectStoreOptions.store

    def faulty(self: ObjectStoreOptions, bucket: str) -> dict[str, Any]:
        # The server answers 500, 503 and bodies that end early; these are resets, also of answers.
        rules = [
            {"method": method, "probability": 0.02, "effect": effect}
            for method in ("GET", "PUT", "POST")
            for effect in ("cut", "lost")
        ]
        return store(self, bucket) | {"faults": {"seed": 5, "rules": rules}}

    monkeypatch.setattr(ObjectStoreOptions, "store", faulty)
    with server("-errors", "0.06", "-cuts", "0.06", "-seed", "7") as running:
        bucket = Bucket(running)
        count = texts(bucket, 48_000)
        lines = [f"column word{number % 500}" for number in range(40_000)]
        count.update(word for line in lines for word in line.split())
        sink = io.BytesIO()
        pq.write_table(pa.table({"line": lines[:20_000]}), sink, row_group_size=3_000)
        bucket.put("in/8.parquet", sink.getvalue())
        bucket.put("in/9.csv", "\n".join(["line", *lines[20_000:]]).encode())
        cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_two", "dies at the end")]})
        record, found = on_fleet(disk, bucket, cluster)
    assert len(found) == len(count) and dict(found) == count
    assert record.requests["retries"] > 5 and record.requests["errors"]


def test_an_object_that_is_changed_ends_it_with_its_name(
    disk: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts(s3)
    pass_one = MapReduceJob.pass_one

    def changing(*arguments: Any) -> Any:
        s3.put("in/1.txt", b"other words\n" * 90_000)
        return pass_one(*arguments)

    monkeypatch.setattr(MapReduceJob, "pass_one", changing)
    named = r"s3://tests/in/1.txt was changed while it was read"
    retry = "start again with another job directory"
    with pytest.raises(core.RunError, match=f"{named}.*; {retry}"):
        run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, s3))
    assert "_tonnage.json" not in s3.content("out")


def test_one_that_is_changed_before_it_is_sampled_is_named_too(
    disk: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put("in/1.csv", b"key,n\n" + b"k,1\n" * 90_000)
    divided = MapReduceJob.partitioning

    def changing(*arguments: Any) -> Any:
        s3.put("in/1.csv", b"key,n\n" + b"j,1\n" * 90_000)
        return divided(*arguments)

    monkeypatch.setattr(MapReduceJob, "partitioning", changing)
    job = MapReduce(reduce=sums("n"), ordered=True)
    with pytest.raises(core.RunError, match=r"s3://tests/in/1.csv was changed while it was read"):
        run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, s3, job))


def test_each_input_has_its_own_map(disk: Path, s3: Bucket) -> None:
    s3.put("in/a.txt", b"one two\n")
    s3.put("in/_side/b.txt", b"one two\n")

    def apart(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"key": batch["line"], "n": pa.repeat(10, batch.num_rows)})

    (disk / "own").mkdir()
    (disk / "own" / "c.txt").write_text("two\n")
    inputs = [
        Input(IN, map=words),
        Input(f"s3://{BUCKET}/in/_side/", map=apart),
        Input(f"{disk}//own/../own/", map=words),
    ]
    job = MapReduce(reduce=sums("n"))
    _, found = on_fleet(disk, s3, SortMachines(*NODES), job=job, inputs=inputs)
    assert dict(found) == {"one": 1, "two": 2, "one two": 10}


def test_what_is_no_text_ends_it_and_leaves_nothing(disk: Path, s3: Bucket) -> None:
    texts(s3)
    s3.put("in/9.txt", b"fine\n" * 50_000 + b"\xff\xfe\n")
    with pytest.raises(core.RunError, match=r"s3://tests/in/9.txt, .*line 50001 of the file"):
        run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, s3))
    assert not (disk / "job").exists() and s3.content("out") == {}


def test_what_cannot_be_is_refused(disk: Path, s3: Bucket) -> None:
    texts(s3)
    s3.put("in/9.parquet", b"no parquet")

    def refused(said: str, **more: Any) -> None:
        with pytest.raises(core.UsageError, match=said):
            run_two_pass(SortMachines(*NODES), disk / "other", asked(disk, s3, **more))
        assert not (disk / "other").exists() and s3.content("out") == {}

    refused(r"s3://tests/in/9.parquet is not a valid parquet file")
    refused("no object has this name", inputs=[Input(f"s3://{BUCKET}/nothing/")])
    refused("cannot be inferred from its name", inputs=[Input(f"s3://{BUCKET}/in/_notes")])
    refused(r"33554432 bytes are not enough for 2 workers", memory_bytes=32 << 20)
    refused(r"input s3://tests/in/ is specified twice", inputs=[Input(IN), Input(IN)])
    refused("is inside the input", output=[f"{IN}x"])
    refused(
        "durability: unknown durability replicate; choose none or replicated",
        durability="replicate",
    )


def test_one_machine_reads_objects(disk: Path, s3: Bucket) -> None:
    count = texts(s3)
    reached = ObjectStoreOptions(endpoint=s3.endpoint)
    record = COUNT.run(IN, disk / "out", disk / "scratch", memory=MEMORY, object_store=reached)
    parts = sorted((disk / "out").glob("part-*"))
    found = [tuple(row.values()) for part in parts for row in pq.read_table(part).to_pylist()]
    assert len(found) == len(count) and dict(found) == count
    assert record.requests["requests"] >= 3
    with pytest.raises(core.UsageError, match="only a cluster writes to object storage"):
        COUNT.run(IN, OUT, disk / "scratch", object_store=reached)


def test_the_command_takes_urls(tonnage: Tonnage, disk: Path, s3: Bucket) -> None:
    count = texts(s3)
    (disk / "words.py").write_text(
        "from tonnage import MapReduce, counts\n"
        "import pyarrow as pa, pyarrow.compute as pc\n"
        "def words(rows):\n"
        "    found = pc.list_flatten(pc.utf8_split_whitespace(rows.column('line')))\n"
        "    return pa.record_batch({'key': found})\n"
        "JOB = MapReduce(map=words, reduce=counts())\n"
    )
    places = ("--output", disk / "out", "--scratch", disk / "scratch")
    at = ("--endpoint-url", s3.endpoint)
    done = tonnage.run("run", "mapreduce", "words.py:JOB", IN, *places, *at, "--json", cwd=disk)
    record = json.loads(done.stdout)
    assert record["written_records"] == len(count) and record["requests"]["requests"] >= 3
    for more, said in (
        ((IN, "--output", OUT), "a URL needs --cluster"),
        ((IN, IN, "--output", "x"), "is specified twice"),
        ((IN, "--output", f"{IN}x"), "is inside the input"),
    ):
        given = ("run", "mapreduce", "words.py:JOB", *more, "--scratch", disk / "s")
        refused = tonnage.run(*given, cwd=disk)
        assert refused.returncode == 2 and said in refused.stderr, refused.stderr


LINES = some.lists(some.sampled_from([b"", b"a", b"bb", b"c" * 30, b"d" * 70_000]), max_size=40)


@settings(max_examples=60, deadline=None)
@given(lines=LINES, ends=some.booleans(), step=some.sampled_from([1, 7, 64, 1000, 65_536]))
def test_each_line_is_in_the_split_in_which_it_begins(
    lines: list[bytes], ends: bool, step: int
) -> None:
    text = b"\n".join(lines) + b"\n" * ends
    step = max(step, len(text) // 50)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "lines"
        path.write_bytes(text)
        file, sources = InputFile(str(path), len(text)), Sources(ObjectStoreOptions(), 1)
        found = b""
        for begin in range(0, len(text), step):
            place, own = lines_in(file, begin, min(begin + step, len(text)), sources)
            if own:
                assert place == len(found) and begin <= place < begin + step
            found += own
    assert found == text


@pytest.mark.parametrize(
    ("format", "header", "good", "bad", "many"),
    [
        ("csv", b"user,amount\n", b"u1,3\n", b"u2,xx,4\n", 300_000),
        ("json", b"", b'{"user": "u1"}\n', b'{"user": \n', 150_000),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 97, -2])
@pytest.mark.parametrize("blank", [b"", b"\n"])
def test_the_line_that_cannot_be_read_is_told(
    disk: Path,
    format: str,
    header: bytes,
    good: bytes,
    bad: bytes,
    many: int,
    place: int,
    blank: bytes,
) -> None:
    lines = [good] * many
    lines[place] = blank + bad
    path = disk / "lines"
    path.write_bytes(header + b"".join(lines))
    line = path.read_bytes().split(b"\n").index(bad.rstrip(b"\n")) + 1
    job = MapReduce(map=lambda rows: rows.slice(0, 0), key="user")
    with pytest.raises(core.RunError, match=rf"\(line {line} of the file\)"):
        job.run(path, disk / "out", disk / "scratch", MEMORY, input_format=format)


Move = tuple[str, int]
MOVES = some.lists(
    some.tuples(some.sampled_from(["read", "seek", "line", "end"]), some.integers(0, 700_000)),
    max_size=8,
)


@pytest.fixture(scope="module")
def an_object() -> Any:
    """An object of lines, some longer than what is looked at, and what it holds."""
    draw = random.Random(8)
    with server() as running:
        bucket = Bucket(running)
        content = b"\n".join(
            draw.randbytes(draw.choice([3, 900, 300_000])).replace(b"\n", b" ") for _ in range(20)
        )
        bucket.put("in/object", content)
        yield bucket.endpoint, content


@settings(max_examples=30, deadline=None)
@given(moves=MOVES)
def test_an_object_is_read_as_a_file_is(an_object: tuple[str, bytes], moves: list[Move]) -> None:
    endpoint, content = an_object
    with pytest.MonkeyPatch.context() as patched:
        for name, value in KEYS.items():
            patched.setenv(name, value)
        sources = Sources(ObjectStoreOptions(endpoint=endpoint), 4)
        file = sources.open(InputFile(f"s3://{BUCKET}/in/object", len(content)))
        model = io.BytesIO(content)
        does: dict[str, Callable[[Any, int], Any]] = {
            "read": lambda it, count: it.read(count),
            "seek": lambda it, place: it.seek(place),
            "line": lambda it, _: it.readline(),
            "end": lambda it, back: it.seek(-min(back, len(content)), os.SEEK_END),
        }
        for what, count in moves:
            assert does[what](file, count) == does[what](model, count)
            assert file.tell() == model.tell()
