"""A MapReduce on a cluster of threads gives the result of one machine, or none."""

from __future__ import annotations

import collections
import functools
import importlib.util
import json
import random
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from support.cluster.sorters import SortMachines, Trouble, directories, driver, has_copies
from support.mapreduce import Rows, asked, listed, on_fleet, rows_of
from support.stores.disk import ROOT
from tonnage import Cluster, Input, MapReduce, per_record, sums
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.cluster import ray_adapter as clusters
from tonnage.cluster.code_shipping import _modules_of
from tonnage.cluster.failure_kinds import DeterministicError
from tonnage.cluster.protocol import Step
from tonnage.run.mapreduce.worker import _classified_errors
from tonnage.run.two_pass.driver import run_two_pass
from tonnage.run.two_pass.job_state import STRAGGLER

pytestmark = pytest.mark.slow

EVERY_TROUBLE = ("dies", "dies in the middle", "dies at the end", "fails")

NODES = ("a", "b", "c")
LEAST = 16 << 20


def example(name: str) -> Any:
    """The module of an example."""
    path = ROOT / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def alone(room: Path, job: MapReduce, inputs: Sequence[Input]) -> Rows:
    """What one machine makes of it."""
    job.run(inputs, room / "alone", room / "alone-scratch", memory=LEAST, workers=2)
    parts = sorted((room / "alone").glob("part-*"))
    return [tuple(row.values()) for part in parts for row in pq.read_table(part).to_pylist()]


def words(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each word of lines, once."""
    found = pc.list_flatten(pc.utf8_split_whitespace(batch.column("line")))
    return pa.record_batch({"key": found, "n": pa.repeat(1, len(found))})


COUNT = MapReduce(map=words, reduce=sums("n"))


def texts(room: Path, lines: int = 24_000, files: int = 3) -> list[Input]:
    """Lines of words, of which some are frequent, in files that all nodes see."""
    place, draw = room / "in", random.Random(lines)
    place.mkdir()
    for number in range(files):
        found = (
            " ".join(f"word{int(20_000 * draw.random() ** 2)}" for _ in range(12))
            for _ in range(lines // files)
        )
        (place / f"{number}.txt").write_text("\n".join(found))
    return [Input(str(place))]


def counted(inputs: Sequence[Input]) -> dict[str, int]:
    """How often each word is there."""
    files = [path for each in inputs for path in Path(each.path).iterdir()]
    return collections.Counter(word for path in files for word in path.read_text().split())


def word_count(room: Path) -> tuple[MapReduce, list[Input]]:
    return example("word_count").JOB, texts(room)


def sessions(room: Path) -> tuple[MapReduce, list[Input]]:
    draw, at = random.Random(2), 0
    clicks = []
    for _ in range(80_000):
        at += draw.choice([0, 5, 60, 1799])
        clicks.append({"user": f"user {draw.randrange(300)}", "at": at + draw.randrange(9000)})
    pcsv.write_csv(pa.Table.from_pylist(clicks), room / "clicks.csv")
    return example("sessions").JOB, [Input(str(room / "clicks.csv"))]


def inverted_index(room: Path) -> tuple[MapReduce, list[Input]]:
    draw = random.Random(3)
    documents = [
        {"id": number, "text": " ".join(f"w{draw.randrange(3000)}" for _ in range(40))}
        for number in range(9000)
    ]
    lines = "".join(json.dumps(each) + "\n" for each in documents)
    (room / "documents.jsonl").write_text(lines)
    return example("inverted_index").JOB, [Input(str(room / "documents.jsonl"))]


def join(room: Path) -> tuple[MapReduce, list[Input]]:
    draw, module = random.Random(4), example("join")
    users = [{"id": number, "name": f"name {number}"} for number in range(2000)]
    orders = [{"user": draw.randrange(2400), "cents": draw.randrange(9999)} for _ in range(60_000)]
    pq.write_table(pa.Table.from_pylist(users), room / "users.parquet", row_group_size=300)
    with pa.OSFile(str(room / "orders.arrow"), "wb") as file:
        table = pa.Table.from_pylist(orders)
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=5000)
    return module.JOB, [
        Input(str(room / "users.parquet"), map=module.users),
        Input(str(room / "orders.arrow"), map=module.orders),
    ]


def ordered(room: Path) -> tuple[MapReduce, list[Input]]:
    (room / "records").write_bytes(random.Random(5).randbytes(3_000_000))
    return example("sort").JOB, [Input(str(room / "records"), format="records:100")]


JOBS = [word_count, sessions, inverted_index, join, ordered]


@pytest.mark.real
@pytest.mark.parametrize("made", JOBS, ids=lambda made: made.__name__)
def test_a_fleet_makes_what_one_machine_makes(
    disk: Path, made: Callable[[Path], tuple[MapReduce, list[Input]]]
) -> None:
    job, inputs = made(disk)
    record, found = on_fleet(disk, job, inputs, SortMachines(*NODES))
    expected = alone(disk, job, inputs)
    if job.ordered:
        assert found == expected
    else:
        assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert record.job == "mapreduce" and record.network_bytes > 0
    assert record.bytes == sum(each.read_bytes for each in record.nodes) - sum(
        stage.bytes
        for node in record.nodes
        for phase in node.phases
        for stage in phase.stages
        if stage.kind == "read"
    )
    assert len({each["node"] for each in listed(disk)}) == 3
    assert RunRecord.read(disk / "job" / "run.json") == record
    # Done is done.
    assert run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, job, inputs)) == record


@pytest.mark.real
def test_python_has_a_fleet_do_it(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, cluster = texts(disk), SortMachines(*NODES)
    monkeypatch.setattr(clusters, "connect", lambda _: nullcontext(cluster))
    (output,), scratch = directories(disk, "out"), directories(disk, "scratch")
    options = Cluster(disk / "job", nodes=2, durability="replicated")
    record = COUNT.run(inputs, output, scratch, LEAST, 2, cluster=options)
    assert [node.node for node in record.nodes] == ["a", "b"]
    assert {word: n for word, n in rows_of(disk, record)} == counted(inputs)
    has_copies(disk, record, "reduced.json")


@pytest.mark.parametrize(
    ("step", "what"),
    [
        # Sampling and sealing are too short to be interrupted in the middle.
        *((step, what) for step in ("sample", "seal") for what in ("dies", "dies at the end")),
        *((step, what) for step in ("pass_one", "pass_two") for what in EVERY_TROUBLE),
    ],
)
def test_what_a_lost_machine_had_is_done_again(disk: Path, step: str, what: str) -> None:
    inputs = texts(disk)
    job = MapReduce(map=words, reduce=sums("n"), ordered=step == "sample")
    cluster = SortMachines(*NODES, troubles={"b": [Trouble(step, what, wipes=what == "dies")]})
    record, found = on_fleet(disk, job, inputs, cluster)
    assert cluster.troubles["b"][0].happened
    lost = {node.node: node.lost for node in record.nodes}
    assert lost["a"] is None and lost["c"] is None and lost["b"]
    assert len(found) == len(dict(found)) and dict(found) == counted(inputs)


def test_of_what_is_read_again_only_what_is_sent_again_counts(disk: Path) -> None:
    inputs = texts(disk)
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_two", "dies", wipes=True)]})
    record, found = on_fleet(disk, COUNT, inputs, cluster)
    given = sum(counted(inputs).values())
    assert dict(found) == counted(inputs)
    assert given < (record.shuffled_records or 0) < 2 * given


@pytest.mark.parametrize("seed", range(4))
def test_all_but_one_may_be_lost_at_any_time(disk: Path, seed: int) -> None:
    draw, inputs = random.Random(seed), texts(disk)
    troubles = {
        node: [
            Trouble(
                draw.choice(["pass_one", "pass_two"]),
                draw.choice(["dies", "dies in the middle", "dies at the end", "fails"]),
                draw.choice([0, 0, 1]),
                draw.random() < 0.5,
            )
        ]
        for node in "bcd"
    }
    cluster = SortMachines("a", "b", "c", "d", troubles=troubles)
    _, found = on_fleet(disk, COUNT, inputs, cluster)
    assert len(found) == len(dict(found)) and dict(found) == counted(inputs)


@pytest.mark.parametrize("dies", range(1, 7))
def test_a_driver_that_is_killed_goes_on(disk: Path, dies: int) -> None:
    inputs = texts(disk)
    want = asked(disk, COUNT, inputs)
    with driver(dies=dies) as first:
        run_two_pass(SortMachines(*NODES), disk / "job", want)
    with driver() as then:
        record = run_two_pass(SortMachines(*NODES), disk / "job", want)
    found = rows_of(disk, record)
    assert len(found) == len(dict(found)) and dict(found) == counted(inputs)
    if "pass_two" in first:
        assert [*first, *then].count("pass_one") == 1


LISTED = MapReduce(map=words)
"""Each word each time: of parts that are not small."""


def replicated(
    room: Path, job: MapReduce, inputs: Sequence[Input], cluster: SortMachines
) -> tuple[RunRecord, Rows]:
    """What a cluster makes of it, with copies."""
    record, found = on_fleet(room, job, inputs, cluster, durability="replicated")
    has_copies(room, record, "reduced.json")
    return record, found


@pytest.mark.parametrize("more", [{}, {"partitions": 2}], ids=["whole", "divided again"])
def test_each_file_has_a_copy_elsewhere(disk: Path, more: dict[str, int]) -> None:
    inputs = texts(disk, 30_000)
    job = MapReduce(map=words, reduce=sums("n"), **more)
    record, found = replicated(disk, job, inputs, SortMachines(*NODES))
    assert len(found) == len(dict(found)) and dict(found) == counted(inputs)
    assert (record.repartitioned_bytes > 0) == bool(more)


@pytest.mark.parametrize(
    ("step", "what"),
    [
        *((step, what) for step in ("pass_one", "pass_two", "copy") for what in EVERY_TROUBLE[:3]),
        *(("seal", what) for what in ("dies", "dies at the end")),
    ],
)
def test_a_machine_that_dies_is_done_without_and_all_have_copies(
    disk: Path, step: str, what: str
) -> None:
    inputs = texts(disk)
    cluster = SortMachines(*NODES, troubles={"b": [Trouble(step, what, wipes=what == "dies")]})
    record, found = replicated(disk, LISTED, inputs, cluster)
    assert collections.Counter(word for word, _ in found) == counted(inputs)
    lost = {node.node: node.lost for node in record.nodes}
    assert lost["a"] is None and lost["c"] is None and str(lost["b"]).startswith("died")
    if step == "seal":
        # What it had made others have: nothing was read or sent again for it.
        assert len(record.rounds) == 1


def test_slow_machines_get_less_and_all_have_copies(disk: Path) -> None:
    inputs = texts(disk)
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_two", "crawls in the middle")]})
    record, found = replicated(disk, COUNT, inputs, cluster)
    assert len(found) == len(dict(found)) and dict(found) == counted(inputs)
    assert {node.node: node.lost for node in record.nodes} == {"a": None, "b": STRAGGLER, "c": None}
    # What it had finished stays.
    assert "b" in {each["node"] for each in listed(disk)}


@pytest.mark.parametrize("what", ["fails", "is full"])
def test_a_disk_that_fails_while_copies_are_made(disk: Path, what: str) -> None:
    inputs = texts(disk)
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("copy", what)]})
    record, found = replicated(disk, COUNT, inputs, cluster)
    assert len(found) == len(dict(found)) and dict(found) == counted(inputs)
    assert {node.node for node in record.nodes if node.lost} == {"b"}


@pytest.mark.parametrize("at", ["pass_two", "adopt_copies", "copy", "seal"])
def test_a_driver_that_is_killed_goes_on_with_copies(disk: Path, at: str) -> None:
    inputs = texts(disk)
    want = asked(disk, COUNT, inputs, durability="replicated")
    troubles = {"b": [Trouble("copy", "dies at the end", wipes=True)]}
    with driver(dies=at):
        run_two_pass(SortMachines(*NODES, troubles=troubles), disk / "job", want)
    record = run_two_pass(SortMachines("a", "c"), disk / "job", want)
    found = rows_of(disk, record)
    assert len(found) == len(dict(found)) and dict(found) == counted(inputs)
    has_copies(disk, record, "reduced.json")


FAILING = {
    "map": MapReduce(map=lambda batch: 1 // 0, reduce=sums("n")),  # type: ignore[arg-type,return-value]
    "combine": MapReduce(map=words, combine=lambda batch: batch.column("no"), reduce=sums("n")),
    "reduce": MapReduce(map=words, reduce=lambda batch: batch.column("no")),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_function_that_fails_ends_the_job_at_once(
    disk: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tonnage.cluster.worker_pool import WorkerPool

    inputs = texts(disk, 6000)
    do, done = WorkerPool.run_step, list[str]()

    def counting(self: WorkerPool, step: Step[Any, Any], *arguments: Any) -> Any:
        done.append(step.name)
        return do(self, step, *arguments)

    monkeypatch.setattr(WorkerPool, "run_step", counting)
    where = {
        "map": r"in/\d.txt, bytes \d+ to \d+: ZeroDivisionError",
        "combine": r"the rows buffered up to .*in/\d.txt, bytes .*KeyError",
        "reduce": r"partition \d+, keys from 'word\d+' on: KeyError",
    }
    with pytest.raises(core.RunError, match=rf"^[abc]: {name} \(.*failed for .*{where[name]}"):
        run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, FAILING[name], inputs))
    assert done.count("pass_one") == 1 and done.count("pass_two") == (name == "reduce")
    # Nothing is left of it: another one can begin.
    assert not (disk / "job").exists() or not list((disk / "job").iterdir())
    for node in NODES:
        assert not list((disk / node / "out").iterdir())
        assert not list((disk / node / "scratch").iterdir())
    _, found = on_fleet(disk, COUNT, inputs, SortMachines(*NODES))
    assert dict(found) == counted(inputs)


def poisoned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Fails for one line, and takes its time for all others."""
    import time

    if "poison" in batch.column("line").to_pylist():
        raise ValueError("poison")
    time.sleep(0.3)
    return words(batch)


def test_others_do_not_go_on_when_a_function_has_failed(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tonnage.cluster.worker_pool import WorkerPool

    inputs, do, ends = texts(disk), WorkerPool.run_step, dict[str, str | None]()
    first = disk / "in" / "0.txt"
    first.write_text("poison\n" + first.read_text())

    def looking(self: WorkerPool, step: Step[Any, Any], *arguments: Any) -> Any:
        ended = do(self, step, *arguments)
        if step.name == "pass_one":
            ends.update({node: each.failure for node, each in ended.items()})
        return ended

    monkeypatch.setattr(WorkerPool, "run_step", looking)
    with pytest.raises(core.RunError, match="ValueError: poison"):
        job = MapReduce(map=poisoned, reduce=sums("n"))
        run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, job, inputs))
    assert sorted(map(str, ends.values())) == ["deterministic", "stopped", "stopped"]


def test_input_that_is_none_of_its_format_is_told_with_its_line(disk: Path) -> None:
    (disk / "in.jsonl").write_text('{"key": 1}\n' * 5000 + "{broken\n")
    inputs = [Input(str(disk / "in.jsonl"))]
    with pytest.raises(
        core.RunError, match=r"^[abc]: cannot read .*in.jsonl.*line 5001 of the file"
    ):
        run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, MapReduce(), inputs))


def test_maps_that_do_not_go_together_are_told(disk: Path) -> None:
    (disk / "1.csv").write_text("key,a\nx,1\n")
    (disk / "2.csv").write_text("key,a\nx,word\n")
    inputs = [Input(str(disk / f"{number}.csv")) for number in (1, 2)]
    named = r"map returned columns of different types for .*csv.* on [abc] and for .*csv"
    with pytest.raises(core.RunError, match=named):
        run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, MapReduce(), inputs))


@pytest.mark.parametrize("lines", [[], ["once"]], ids=["no record", "one record"])
def test_next_to_nothing(disk: Path, lines: list[str]) -> None:
    (disk / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    record, found = on_fleet(disk, COUNT, [Input(str(disk / "in.txt"))], SortMachines(*NODES))
    assert found == [(line, 1) for line in lines]
    assert (record.records, record.shuffled_records) == (len(lines), len(lines))


def test_partitions_of_which_nothing_is_made_have_no_files(disk: Path) -> None:
    inputs = texts(disk, 3000)
    few = MapReduce(map=words, reduce=only_one)
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_two", "dies at the end")]})
    record, found = on_fleet(disk, few, inputs, cluster)
    assert dict(found) == {"word7": counted(inputs)["word7"]}
    assert len(listed(disk)) == 1 < record.settings["partitions"]


def only_one(batch: pa.RecordBatch) -> pa.RecordBatch:
    """How often one word is there."""
    counts = sums("n")(batch)
    return counts.filter(pc.equal(counts.column("key"), "word7"))


def test_a_hot_key_is_combined_or_named(disk: Path) -> None:
    place = disk / "in"
    place.mkdir()
    for number in range(3):
        lines = [" ".join(["hot"] * 7_000)] * 100
        (place / f"{number}.txt").write_text("\n".join([*lines, f"word{number}"]))
    inputs = [Input(str(place))]
    combined = MapReduce(map=words, combine=sums("n"), reduce=sums("n"))
    _, found = on_fleet(disk, combined, inputs, SortMachines(*NODES))
    assert dict(found) == counted(inputs)
    room = disk / "not combined"
    with pytest.raises(core.RunError, match=r"the rows of key 'hot' take \d+ bytes"):
        run_two_pass(SortMachines(*NODES), room / "job", asked(room, COUNT, inputs))


def test_partitions_larger_than_memory_are_divided_again(disk: Path) -> None:
    inputs = texts(disk, 30_000)
    job = MapReduce(map=words, reduce=sums("n"), partitions=2)
    record, found = on_fleet(disk, job, inputs, SortMachines(*NODES))
    assert record.repartitioned_bytes > 0 and len(listed(disk)) > 2
    assert len(found) == len(dict(found)) and dict(found) == counted(inputs)


def test_plain_functions_reach_machines(disk: Path) -> None:
    inputs = texts(disk, 300)
    job = MapReduce(
        **per_record(
            map=lambda record: [(word, 1) for word in record["line"].split()],
            reduce=lambda key, values: [{"key": key, "n": sum(values)}],
        )
    )
    _, found = on_fleet(disk, job, inputs, SortMachines(*NODES))
    assert dict(found) == counted(inputs)


def test_what_each_has_alone_is_read_by_it(disk: Path) -> None:
    for number, node in enumerate(NODES[:2]):
        (disk / node / "in").mkdir(parents=True)
        (disk / node / "in" / "f.txt").write_text(f"here there{number}\n" * 1000)
    inputs = [Input(f"{disk}/{{node}}/in")]
    _, found = on_fleet(disk, COUNT, inputs, SortMachines(*NODES))
    assert dict(found) == {"here": 2000, "there0": 1000, "there1": 1000}


def test_what_cannot_be_is_refused(disk: Path) -> None:
    inputs = texts(disk, 30)

    def refused(
        said: str,
        job: MapReduce = COUNT,
        given: Any = inputs,
        nodes: Sequence[str] = NODES,
        **more: Any,
    ) -> None:
        with pytest.raises(core.UsageError, match=said):
            run_two_pass(SortMachines(*nodes), disk / "other", asked(disk, job, given, **more))
        assert not (disk / "other").exists()
        for left in (*disk.glob("*/scratch/*"), *disk.glob("**/.tonnage-unfinished-*")):
            pytest.fail(f"{left} is left")

    refused("unknown durability volumes; choose none or replicated", durability="volumes")
    refused("durability: replicated: a copy needs a second", nodes="a", durability="replicated")
    refused("output_format: xml", format="xml")
    refused("are not enough for 2 workers", memory_bytes=1 << 20)
    refused("cannot send .*cannot pickle", MapReduce(map=threading.Lock()))  # type: ignore[arg-type]
    (disk / "in.what").write_text("x")
    refused("cannot be inferred from its name", given=[Input(str(disk / "in.what"))])
    (disk / "in.parquet").write_text("x")
    refused("is not a valid parquet file", given=[Input(str(disk / "in.parquet"))])
    refused("is specified twice", given=[*inputs, *inputs])


def test_other_functions_do_not_go_on_with_what_was_begun(disk: Path) -> None:
    inputs = texts(disk, 30)
    on_fleet(disk, COUNT, inputs, SortMachines(*NODES))
    other = MapReduce(map=words, reduce=sums("n"), ordered=True)
    with pytest.raises(
        core.UsageError, match=r"was started with functions .* use the original value to resume"
    ):
        run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, other, inputs))


def test_what_is_not_what_came_is_no_success(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tonnage.run.mapreduce.worker import MapReduceWorker

    left = MapReduceWorker._spilled

    def other(self: MapReduceWorker, *arguments: Any) -> Any:
        found = left(self, *arguments)
        if self._config.node == "b":
            place = next(place for place, each in enumerate(found.blocks) if each.bytes)
            found.blocks[place] = found.blocks[place]._replace(checksum=0)
        return found

    monkeypatch.setattr(MapReduceWorker, "_spilled", other)
    inputs = texts(disk, 3000)
    record, found = on_fleet(disk, COUNT, inputs, SortMachines(*NODES))
    # A device of b gives back what was not put there: what b owned others do again.
    assert "is corrupting data" in str({node.node: node.lost for node in record.nodes}["b"])
    assert dict(found) == counted(inputs)


@pytest.mark.parametrize(
    ("stage", "cause", "kind"),
    [
        ("map", ValueError("no number"), DeterministicError),
        ("read", pa.ArrowInvalid("no Parquet"), DeterministicError),
        ("read", OSError("Corrupt snappy compressed data"), DeterministicError),
        ("read", OSError(5, "Input/output error"), core.RunError),
        ("read", None, core.RunError),  # The core's, of scratch.
        ("write", None, core.RunError),
        ("to_host", None, OSError),
    ],
)
def test_what_would_fail_anywhere_is_told_from_what_is_a_machines(
    stage: str, cause: Exception | None, kind: type[Exception]
) -> None:
    with pytest.raises(kind), _classified_errors():
        raise core.RunError("it failed", stage, Path("/a/file"), 0) from cause


def test_the_modules_of_functions_that_enclose_themselves_or_wrap_others() -> None:
    def outer() -> Callable[..., Any]:
        def walk(depth: int) -> int:
            return walk(depth - 1) if depth else 0

        return walk

    assert {*_modules_of(outer())} == {__name__, "builtins"}
    assert json.__name__ in {*_modules_of(functools.partial(json.loads))}
