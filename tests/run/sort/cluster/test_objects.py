"""A sort on a cluster, from object storage to object storage; its machines are threads here."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from support.cli.command import Tonnage
from support.cluster.sorters import SortMachines, Trouble, directories, driver
from support.data.copies import replace
from support.data.records import blob, checksum, cut
from support.stores.s3 import BUCKET, KEYS, Bucket, server
from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.cli.output.run_record import sort_lines
from tonnage.run.sort.cluster.records import SortJob, SortWorker
from tonnage.run.sort.gensort import validate
from tonnage.run.sort.local import Layout
from tonnage.run.storage.object_store import ObjectStoreOptions
from tonnage.run.two_pass.driver import run_two_pass
from tonnage.run.two_pass.messages import Clear
from tonnage.run.two_pass.output.object_store import ObjectStoreSteps

pytestmark = pytest.mark.slow

LAYOUT = Layout()
MEMORY = 64 << 20
NODES = ("a", "b", "c")
IN, OUT = f"s3://{BUCKET}/in/", f"s3://{BUCKET}/out/"


def given(bucket: Bucket, seed: int, count: int, objects: int = 3) -> list[bytes]:
    """Records, in objects."""
    records = cut(blob(seed, count * LAYOUT.record_bytes), LAYOUT.record_bytes)
    for number in range(objects):
        bucket.put(f"in/{number:04}", b"".join(records[number::objects]))
    return records


def asked(room: Path, bucket: Bucket, **more: Any) -> SortJob:
    """A sort from a folder to another one."""
    usual = SortJob(
        inputs=[IN],
        output=[OUT],
        scratch=directories(room, "scratch"),
        layout=LAYOUT,
        memory_bytes=MEMORY,
        connections=1,
        patience_seconds=5.0,
        command=["test"],
        object_store=ObjectStoreOptions(endpoint=bucket.endpoint, requests=4),
    )
    return replace(usual, **more)


def judged(room: Path, bucket: Bucket, records: list[bytes], record: RunRecord) -> None:
    """The output is the input, sorted; nothing else is left, in the bucket or on nodes."""
    content = bucket.content("out")
    manifest = json.loads(content.pop("_tonnage.json"))
    assert sorted(content) == manifest["parts"]
    assert bucket.uploads() == []
    told = (record.records, record.bytes, record.checksum)
    assert told == (len(records), sum(map(len, records)), checksum(records))
    found = validate(
        [OUT], layout=LAYOUT, object_store=ObjectStoreOptions(endpoint=bucket.endpoint)
    )
    assert found["unordered"] == 0
    assert (found["records"], found["checksum"]) == (len(records), checksum(records))
    listed = json.loads((room / "job" / "sorted.json").read_text())
    assert [each["path"] for each in listed] == [f"{OUT}{name}" for name in manifest["parts"]]
    assert record.durability == "none" and record.requests["requests"] > 0
    for node in {each.node for each in record.nodes if each.lost is None}:
        assert list((room / node / "scratch").iterdir()) == []


def sorted_whole(
    room: Path, bucket: Bucket, records: list[bytes], cluster: SortMachines, **more: Any
) -> RunRecord:
    """Sorts the folder."""
    record = run_two_pass(cluster, room / "job", asked(room, bucket, **more))
    judged(room, bucket, records, record)
    return record


@pytest.mark.parametrize("count", [120_000, 1, 0])
def test_what_is_in_object_storage_is_sorted_by_all(disk: Path, s3: Bucket, count: int) -> None:
    records = given(s3, 1, count)
    s3.put("in/_notes", b"no record")
    record = sorted_whole(disk, s3, records, SortMachines(*NODES))
    assert [node.node for node in record.nodes] == list(NODES)
    if count > 1:
        assert all(node.read_bytes and node.written_bytes for node in record.nodes)
        assert len(record.rounds) == 1 and record.requests["errors"] == {}
        assert any("requests to object storage" in line for line in sort_lines(record))
    kept = "".join(path.read_text() for path in (disk / "job").iterdir())
    assert not any(secret in kept for secret in KEYS.values())
    # Done is done; what is there is refused.
    assert run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, s3)) == record
    with pytest.raises(core.UsageError, match=r"is not empty \(it contains _tonnage.json\)"):
        run_two_pass(SortMachines(*NODES), disk / "other", asked(disk, s3))
    assert not (disk / "other").exists()


def test_files_go_to_objects_and_objects_to_files_and_both_are_read(disk: Path, s3: Bucket) -> None:
    records = given(s3, 1, 30_000)
    (disk / "b" / "in").mkdir(parents=True)
    own = blob(2, 100 * 20_000)
    (disk / "b" / "in" / "f").write_bytes(own)
    inputs = [f"{disk}/{{node}}/in", IN]
    record = sorted_whole(disk, s3, records + cut(own, 100), SortMachines(*NODES), inputs=inputs)
    assert sum(node.read_bytes for node in record.nodes) > record.bytes

    back = asked(
        disk, s3, inputs=[OUT], output=directories(disk, "out"), durability="none", command=["b"]
    )
    again = run_two_pass(SortMachines(*NODES), disk / "back", back)
    assert (again.checksum, again.durability) == (record.checksum, "none")
    found = validate([disk / node / "out" for node in NODES], layout=LAYOUT)
    assert (found["unordered"], found["checksum"]) == (0, record.checksum)


DEATHS = [
    pytest.param(step, what, wipes, id=f"{what} in {step}{', with its disks' * wipes}")
    for step in ("sample", "pass_one", "pass_two")
    for what, wipes in (("dies", True), ("dies in the middle", True), ("dies at the end", False))
    if step != "sample" or what != "dies in the middle"
]


@pytest.mark.parametrize(("step", "what", "wipes"), DEATHS)
def test_a_machine_that_dies_is_done_without(
    disk: Path, s3: Bucket, step: str, what: str, wipes: bool
) -> None:
    records = given(s3, 7, 60_000)
    cluster = SortMachines(*NODES, troubles={"b": [Trouble(step, what, wipes=wipes)]})
    record = sorted_whole(disk, s3, records, cluster)
    assert cluster.troubles["b"][0].happened
    lost = {node.node: node.lost for node in record.nodes}
    assert lost["a"] is None and lost["c"] is None and str(lost["b"]).startswith("died")


@pytest.mark.parametrize("step", ["clear", "publish"])
def test_another_one_does_what_one_does_for_all(disk: Path, s3: Bucket, step: str) -> None:
    records = given(s3, 8, 20_000)
    cluster = SortMachines(*NODES, troubles={"a": [Trouble(step, "dies", wipes=True)]})
    record = sorted_whole(disk, s3, records, cluster)
    lost = {node.node: node.lost for node in record.nodes}
    assert lost["b"] is None and lost["c"] is None and cluster.troubles["a"][0].happened
    if step == "publish":
        # What it had put stays, and all see it: nothing is read or sent again.
        assert len(record.rounds) == 1
        listed = json.loads((disk / "job" / "sorted.json").read_text())
        assert "a" in {each["node"] for each in listed}


def test_if_all_are_lost_at_what_one_does_for_all_it_is_told_why(disk: Path, s3: Bucket) -> None:
    given(s3, 8, 5_000)
    troubles = {node: [Trouble("clear", "dies")] for node in NODES}
    named = r"no node is left \(lost: a died: its machine is gone, b died: .* c died: "
    with pytest.raises(core.RunError, match=named):
        run_two_pass(SortMachines(*NODES, troubles=troubles), disk / "job", asked(disk, s3))


@pytest.mark.parametrize("times", [1, 3])
def test_what_the_only_one_asked_cannot_put_another_one_does(
    disk: Path, s3: Bucket, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = given(s3, 8, 1)  # One partition, so one node is asked at a time.
    pass_two, failed = SortWorker.pass_two, list[str]()

    def failing(self: SortWorker, told: Any, on_progress: Any) -> Any:
        if len(failed) < times:
            failed.append(self._config.node)
            raise core.RunError("the store answers 503")
        return pass_two(self, told, on_progress)

    monkeypatch.setattr(SortWorker, "pass_two", failing)
    if times == len(NODES):
        with pytest.raises(core.RunError, match=r"[abc]: the store answers 503"):
            run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, s3))
        assert sorted(failed) == list(NODES)
        return
    record = sorted_whole(disk, s3, records, SortMachines(*NODES))
    assert {node.node: node.lost for node in record.nodes if node.lost} == {
        failed[0]: "the store answers 503"
    }


@pytest.mark.parametrize(
    ("at", "wipes"),
    [
        ("claim", False),
        ("sample", False),
        ("pass_one", True),
        ("clear", False),
        ("pass_two", False),
        ("pass_two", True),
        ("publish", False),
        ("leave", False),
        ("release", False),
    ],
)
def test_a_driver_that_is_killed_goes_on(
    disk: Path, s3: Bucket, at: str, wipes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = given(s3, 9, 40_000)
    cluster = SortMachines(*NODES)
    with driver(dies=at) as first:
        run_two_pass(cluster, disk / "job", asked(disk, s3))
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    unfinished = [name for name in s3.content("out") if name.startswith(".tonnage-unfinished-")]
    if at != "release":
        assert len(unfinished) == 1
        with pytest.raises(core.UsageError, match="contains unfinished output"):
            validate([OUT], layout=LAYOUT, object_store=ObjectStoreOptions(endpoint=s3.endpoint))
    if wipes:
        cluster.sorters["b"].die(wipe=True)
    # A spare takes over: it reads objects as any other does.
    there = ("a", "c", "spare") if wipes else NODES
    with driver() as then:
        record = sorted_whole(disk, s3, records, SortMachines(*there))
    if at == "pass_two" and not wipes:
        assert len(record.rounds) == 1 and [*first, *then].count("pass_two") == 1


def test_parts_and_uploads_of_earlier_tries_are_removed(
    disk: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = given(s3, 10, 40_000)
    publish, clear = ObjectStoreSteps.publish, ObjectStoreSteps.clear
    left: list[str] = []

    def leaving(self: Any, request: Clear, on_progress: Any) -> Any:
        assert request.partitions is not None
        part = f"out/part-{request.partitions[0]:05}"
        # As from a machine that was lost: of a partition that is done again, and of one of several
        # objects that is now one of fewer.
        s3.put(f"{part}-00007", b"x" * 100)
        s3.begin_upload(part)
        done = clear(self, request, on_progress)
        left.extend([*s3.uploads(), *(name for name in s3.content("out") if "7" in name[-1:])])
        return done

    def late(self: Any, told: Any, on_progress: Any) -> Any:
        s3.put("out/part-00001-00009", b"x" * 100)
        s3.begin_upload("out/part-00002")
        return publish(self, told, on_progress)

    monkeypatch.setattr(ObjectStoreSteps, "clear", leaving)
    monkeypatch.setattr(ObjectStoreSteps, "publish", late)
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_two", "dies")]})
    sorted_whole(disk, s3, records, cluster)
    assert left == []


def test_an_output_that_somebody_else_changes_is_no_success(
    disk: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = given(s3, 11, 20_000)
    publish = ObjectStoreSteps.publish

    def meddled(self: Any, told: Any, on_progress: Any) -> Any:
        s3.put("out/part-00000", b"x" * 100)
        return publish(self, told, on_progress)

    monkeypatch.setattr(ObjectStoreSteps, "publish", meddled)
    with pytest.raises(core.RunError, match=r"out/part-00000 was changed by another program"):
        run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, s3))
    assert "_tonnage.json" not in s3.content("out")
    monkeypatch.setattr(ObjectStoreSteps, "publish", publish)
    sorted_whole(disk, s3, records, SortMachines(*NODES))


def test_a_thousand_small_objects(disk: Path, s3: Bucket) -> None:
    records = cut(blob(4, 100 * 1000 * 20), 100)
    random.Random(4).shuffle(records)
    for number in range(1000):
        s3.put(f"in/{number:04}", b"".join(records[20 * number : 20 * (number + 1)]))
    record = sorted_whole(disk, s3, records, SortMachines(*NODES))
    assert 1000 < record.requests["requests"] < 3000


def test_a_tenth_of_requests_may_fail(
    disk: Path, keys: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObjectStoreOptions.store

    def faulty(self: ObjectStoreOptions, bucket: str) -> dict[str, Any]:
        # In addition to the server's faults (500, 503, truncated bodies): resets, also of answers.
        effects = ["cut", "lost"]
        rules = [
            {"method": method, "probability": 0.05, "effect": effect}
            for method in ("GET", "PUT", "POST")
            for effect in effects
        ]
        return store(self, bucket) | {"faults": {"seed": 5, "rules": rules}}

    monkeypatch.setattr(ObjectStoreOptions, "store", faulty)
    with server("-errors", "0.1", "-cuts", "0.1", "-seed", "7") as running:
        bucket = Bucket(running)
        records = given(bucket, 3, 150_000, objects=6)
        cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_two", "dies in the middle")]})
        record = run_two_pass(cluster, disk / "job", asked(disk, bucket))
        monkeypatch.undo()
        for name, value in KEYS.items():
            monkeypatch.setenv(name, value)
        judged(disk, bucket, records, record)
    assert record.requests["retries"] > 10
    assert {"server", "throttled", "broken"} <= set(record.requests["errors"])


def test_an_object_that_is_changed_ends_it_with_its_name(
    disk: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(s3, 1, 20_000)
    from tonnage.run.two_pass import sizing

    blocks = sizing.block_bytes

    def changing(*arguments: Any) -> int:
        s3.put("in/0001", blob(9, 100 * 6_667))
        return blocks(*arguments)

    monkeypatch.setattr(sizing, "block_bytes", changing)
    named = r"s3://tests/in/0001 was changed while it was read"
    retry = "start again with another job directory"
    with pytest.raises(core.RunError, match=f"{named}.*; {retry}"):
        run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, s3))
    assert "_tonnage.json" not in s3.content("out")


def test_what_cannot_be_is_refused(disk: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    given(s3, 1, 1000)

    def refused(said: str, **more: Any) -> None:
        with pytest.raises(core.UsageError, match=said):
            run_two_pass(SortMachines(*NODES), disk / "other", asked(disk, s3, **more))
        assert not (disk / "other").exists()
        assert not [name for name in s3.content("out") if name.startswith(".")]

    refused("no object has this name", inputs=[f"s3://{BUCKET}/nothing/"])
    refused("the bucket does not exist", inputs=["s3://nowhere/in/"])
    refused("not a multiple of the record size .7.", layout=Layout(7, 0, 1))
    refused(
        "endpoint_url: .*:9 cannot be reached",
        object_store=ObjectStoreOptions(endpoint="http://127.0.0.1:9"),
    )
    with monkeypatch.context() as other:
        other.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        refused("AWS_ENDPOINT_URL: .*:9 cannot be reached", object_store=ObjectStoreOptions())
    s3.put("out/mine", b"x")
    refused(r"is not empty \(it contains mine\)")
    s3.put("out/.tonnage-unfinished-other", b"")
    with pytest.raises(core.UsageError, match="an unfinished job owns this place"):
        run_two_pass(SortMachines(*NODES), disk / "other", asked(disk, s3))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(core.UsageError, match="was denied"):
        run_two_pass(SortMachines(*NODES), disk / "other", asked(disk, s3))


def test_flags_that_do_not_fit_are_refused_by_name(tonnage: Tonnage, disk: Path) -> None:
    own = ("--scratch", "/s", "--cluster", "auto")
    for more, said in (
        (
            (IN, "--output", OUT, "--durability", "replicated"),
            "--durability: replicated: the output s3://",
        ),
        (
            ("/in", "--output", "/o", "--durability", "volumes"),
            "--durability volumes is not valid; use one of none, replicated",
        ),
        ((IN, "--output", OUT, "/o"), "--output: use either directories or one URL"),
        (("s3://x-1/{node}/in", "--output", OUT), "a URL is the same for all nodes"),
        ((IN, "--output", f"{IN}x"), "is inside the input"),
        ((IN, IN, "--output", OUT), "is specified twice"),
    ):
        done = tonnage.run("run", "sort", *more, *own, cwd=disk)
        assert done.returncode == 2 and said in done.stderr, done.stderr
        assert re.fullmatch(r"tonnage: [^\n]*\n", done.stderr)
