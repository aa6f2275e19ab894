"""A sort on a cluster of threads: after any failure the output is complete or absent."""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.cluster.sorters import (
    Killed,
    SortMachines,
    Trouble,
    directories,
    driver,
    has_copies,
    killed,
)
from support.data.copies import replace
from support.data.records import blob, checksum, cut
from tonnage.base import core
from tonnage.base.core.sockets import DESCRIPTORS, sockets
from tonnage.base.records import RunRecord
from tonnage.cli.output.run_record import sort_lines
from tonnage.cluster import protocol
from tonnage.cluster.failure_kinds import InputChanged, InputUnreadable
from tonnage.model.run_comparison.two_pass import compare
from tonnage.run.sort.cluster.records import SortJob, SortWorker
from tonnage.run.sort.gensort import validate
from tonnage.run.sort.local import Layout
from tonnage.run.two_pass import admission
from tonnage.run.two_pass.driver import run_two_pass
from tonnage.run.two_pass.job_dir import FatalJobError
from tonnage.run.two_pass.job_state import STRAGGLER, JobRun
from tonnage.run.two_pass.output import commit
from tonnage.run.two_pass.sizing import usual_connections
from tonnage.run.two_pass.splits import file_id
from tonnage.run.two_pass.worker import TwoPassWorker

pytestmark = pytest.mark.slow

LAYOUT = Layout()
MEMORY = 16 << 20
NODES = ("a", "b", "c")


def shared(room: Path, data: bytes, files: int = 3) -> tuple[str, ...]:
    """An input that all nodes see."""
    place = room / "in"
    place.mkdir()
    records = cut(data, LAYOUT.record_bytes)
    for number in range(files):
        (place / f"f{number}").write_bytes(b"".join(records[number::files]))
    return (str(place),)


def asked(room: Path, inputs: Sequence[str], **more: Any) -> SortJob:
    """A sort of these into directories that each node has of its own."""
    usual = SortJob(
        inputs=inputs,
        output=directories(room, "out"),
        scratch=directories(room, "scratch"),
        layout=LAYOUT,
        memory_bytes=MEMORY,
        connections=1,
        patience_seconds=5.0,
        command=["test"],
    )
    return replace(usual, **more)


def judged(room: Path, data: bytes, record: RunRecord) -> None:
    """The output is the input, sorted; nothing else is left."""
    listed = json.loads((room / "job" / "sorted.json").read_text())
    records = cut(data, LAYOUT.record_bytes)
    told = (record.records, record.bytes, record.checksum)
    assert told == (len(records), len(data), checksum(records))
    places = sorted({str(Path(each["path"]).parent) for each in listed})
    names = {Path(each["path"]).name for each in listed}
    assert len(names) == len(listed)
    for place in places:
        there = {name for name in os.listdir(place) if name.startswith("part-")}
        assert there <= names and ".unfinished" not in "".join(there)
        assert not [name for name in os.listdir(place) if name.startswith(".tonnage-unf")]
    if places:
        found = validate([Path(place) for place in places], layout=LAYOUT)
        assert found["unordered"] == 0
        assert (found["records"], found["checksum"]) == (len(records), checksum(records))
    for node in {each.node for each in record.nodes if each.lost is None}:
        scratch = room / node / "scratch"
        assert not scratch.exists() or list(scratch.iterdir()) == []


def sorted_whole(room: Path, data: bytes, cluster: SortMachines, **more: Any) -> RunRecord:
    """Sorts an input that all nodes see."""
    record = run_two_pass(cluster, room / "job", asked(room, shared(room, data), **more))
    judged(room, data, record)
    return record


def keyed(seed: int, count: int, alphabet: int = 256) -> bytes:
    """Records."""
    return blob(seed, count * LAYOUT.record_bytes, alphabet)


def skewed(seed: int, count: int) -> bytes:
    """Half of the records have one key."""
    draw = random.Random(seed)
    records = cut(keyed(seed, count), LAYOUT.record_bytes)
    return b"".join(b"S" * 10 + each[10:] if draw.random() < 0.5 else each for each in records)


@pytest.mark.real
@pytest.mark.parametrize(
    "data",
    [
        keyed(1, 50_000),
        keyed(2, 20_000, alphabet=2),
        skewed(3, 20_000),
        b"".join(sorted(cut(keyed(4, 20_000), 100))),
        keyed(5, 1),
        b"",
    ],
    ids=["even", "few keys", "skewed", "sorted", "one record", "no record"],
)
def test_what_all_see_is_sorted_by_all(disk: Path, data: bytes) -> None:
    record = sorted_whole(disk, data, SortMachines(*NODES))
    assert [node.node for node in record.nodes] == list(NODES)
    assert record.durability == "none" and all(node.lost is None for node in record.nodes)
    if len(data) > 10**6:
        assert [each.number for each in record.rounds] == [0]
        assert all(node.read_bytes and node.written_bytes for node in record.nodes)
        assert 0 < record.network_bytes <= len(data)
        said = sort_lines(replace(record, compared=compare(record)))
        assert any(line.startswith("pass two: ") and "the slowest node" in line for line in said)
    assert RunRecord.read(disk / "job" / "run.json") == record


def test_what_each_has_alone_and_what_one_has_is_sorted_by_all(disk: Path) -> None:
    parts = [keyed(seed, 8_000) for seed in range(2)]
    for node, data in zip(NODES, parts, strict=False):
        (disk / node / "in").mkdir(parents=True)
        (disk / node / "in" / "f").write_bytes(data)
    inputs = (f"{disk}/{{node}}/in",)
    record = run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, inputs))
    judged(disk, b"".join(parts), record)
    written = {node.node: node.written_bytes for node in record.nodes}
    assert all(written.values()) and not (disk / "c" / "in").exists()


IN_ORDER = sorted(cut(keyed(17, 30_000), LAYOUT.record_bytes))


@pytest.mark.parametrize("durability", ["none", "replicated"])
@pytest.mark.parametrize(
    "parts",
    [
        {"a": keyed(18, 50_000)},
        {"a": skewed(19, 20_000), "b": skewed(20, 20_000), "c": skewed(21, 20_000)},
        {"a": b"S" * 2_000_000, "b": keyed(22, 20_000), "c": b"S" * 100_000},
        {node: b"".join(IN_ORDER[at * 10_000 :][:10_000]) for at, node in enumerate("abc")},
        {node: b"".join(IN_ORDER[at * 10_000 :][:10_000]) for at, node in enumerate("cab")},
        {"a": b"", "b": keyed(23, 20_000)},
        {"a": b"", "b": keyed(24, 1), "c": b""},
        {"a": b"", "c": b""},
    ],
    ids=[
        "one has all",
        "one key is half everywhere",
        "one key is all that some have",
        "each has a range",
        "another range each",
        "one has nothing, one has no directory",
        "one record",
        "no record",
    ],
)
def test_whoever_has_what_it_is_sorted(
    disk: Path, parts: dict[str, bytes], durability: str
) -> None:
    for node, data in parts.items():
        (disk / node / "in").mkdir(parents=True)
        (disk / node / "in" / "f").write_bytes(data)
    want = asked(disk, (f"{disk}/{{node}}/in",), durability=durability)
    record = run_two_pass(SortMachines(*NODES), disk / "job", want)
    judged(disk, b"".join(parts.values()), record)
    assert all(node.lost is None for node in record.nodes)
    if durability == "replicated":
        has_copies(disk, record, "sorted.json")


STEPS = ("sample", "pass_one", "pass_two", "seal")
DEATHS = [
    pytest.param(step, what, wipes, id=f"{what} in {step}{', with its disks' * wipes}")
    for step in STEPS
    for what in ("dies", "dies in the middle", "dies at the end")
    for wipes in (False, True)
    if step.startswith("pass") or what != "dies in the middle"
]


@pytest.mark.parametrize(("step", "what", "wipes"), DEATHS)
def test_a_machine_that_dies_is_done_without(disk: Path, step: str, what: str, wipes: bool) -> None:
    cluster = SortMachines(*NODES, troubles={"b": [Trouble(step, what, wipes=wipes)]})
    record = sorted_whole(disk, keyed(7, 30_000), cluster)
    assert cluster.troubles["b"][0].happened
    lost = {node.node: node.lost for node in record.nodes}
    assert lost["a"] is None and lost["c"] is None
    assert str(lost["b"]).startswith("died")
    assert "Lost: b: died: its machine is gone" in sort_lines(record)


@pytest.mark.parametrize("again", [False, True], ids=["at the end", "while the driver is dead"])
def test_what_a_machine_left_at_the_end_is_finished_by_who_sees_it(
    disk: Path, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = keyed(13, 20_000)
    want = asked(disk, shared(disk, data))
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("leave", "dies")]})
    if again:
        monkeypatch.setattr(commit, "leave", killed)
        with pytest.raises(Killed):
            run_two_pass(SortMachines(*NODES), disk / "job", want)
        monkeypatch.undo()
    run_two_pass(cluster, disk / "job", want)
    assert cluster.troubles["b"][0].happened
    places = [disk / node / "out" for node in NODES]
    assert validate(places, layout=LAYOUT)["records"] == 20_000


def test_who_cannot_clean_up_is_not_called_done(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    want = asked(disk, shared(disk, keyed(14, 5_000)))
    remove, mine = shutil.rmtree, str(disk / "b" / "out")

    def refusing(path: str, *more: Any, **named: Any) -> None:
        if str(path).startswith(mine):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        remove(path, *more, **named)

    monkeypatch.setattr(shutil, "rmtree", refusing)
    run_two_pass(SortMachines(*NODES), disk / "job", want)
    assert not (disk / "job" / "left.json").exists()
    monkeypatch.undo()
    run_two_pass(SortMachines(*NODES), disk / "job", want)
    assert (disk / "job" / "left.json").exists()
    assert validate([disk / node / "out" for node in NODES], layout=LAYOUT)["records"] == 5_000


@pytest.mark.parametrize("seed", range(6))
def test_all_but_one_may_be_lost_at_any_time(disk: Path, seed: int) -> None:
    draw = random.Random(seed)
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
    sorted_whole(disk, keyed(seed, 20_000), cluster)


@pytest.mark.parametrize("step", ["pass_one", "pass_two"])
def test_a_machine_whose_disk_fails_is_still_read_from(disk: Path, step: str) -> None:
    parts = {node: keyed(seed, 8_000) for seed, node in enumerate(NODES)}
    for node, data in parts.items():
        (disk / node / "in").mkdir(parents=True)
        (disk / node / "in" / "f").write_bytes(data)
    cluster = SortMachines(*NODES, troubles={"c": [Trouble(step, "fails")]})
    inputs = (f"{disk}/{{node}}/in",)
    record = run_two_pass(cluster, disk / "job", asked(disk, inputs))
    judged(disk, b"".join(parts.values()), record)
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    assert {each["node"] for each in listed} == {"a", "b"}
    assert {node.node: node.lost for node in record.nodes}["c"] == "writing a file: (os error 5)"


@pytest.mark.parametrize("what", ["fails", "is full"])
def test_what_a_disk_has_finished_is_believed_if_it_is_full_and_not_if_it_fails(
    disk: Path, what: str
) -> None:
    troubles = {"c": [Trouble("pass_two", f"{what} in the middle")]}
    cluster = SortMachines(*NODES, troubles=troubles)
    sorted_whole(disk, keyed(16, 150_000), cluster, memory_bytes=8 << 20)
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    assert ("c" in {each["node"] for each in listed}) == (what == "is full")


def test_a_list_of_what_is_finished_that_cannot_be_read_is_a_disk_that_fails(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = TwoPassWorker.news

    def failing(self: TwoPassWorker, known: int) -> Any:
        if self._config.node == "c" and self._listed is not None:
            raise OSError(errno.EIO, os.strerror(errno.EIO), "/c/finished.jsonl")
        return finished(self, known)

    monkeypatch.setattr(TwoPassWorker, "news", failing)
    record = sorted_whole(disk, keyed(25, 20_000), SortMachines(*NODES))
    lost = {node.node: node.lost for node in record.nodes}
    assert lost == {"a": None, "b": None, "c": "/c/finished.jsonl: Input/output error"}


def test_an_input_that_cannot_be_looked_at_is_not_one_that_was_changed(disk: Path) -> None:
    site = SortWorker(asked(disk, shared(disk, keyed(26, 100))).worker_config("job", "a"))
    path = disk / "in" / "f0"
    about = file_id(str(path))
    path.unlink()
    with pytest.raises(InputChanged, match="No such file"):
        site._refuse_changed([about])
    path.symlink_to(path)
    with pytest.raises(InputUnreadable, match="symbolic links"):
        site._refuse_changed([about])


def test_who_cannot_read_its_input_is_lost_and_others_read_it(disk: Path) -> None:
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_one", "cannot read")]})
    record = sorted_whole(disk, keyed(9, 10_000), cluster)
    lost = {node.node: node.lost for node in record.nodes}
    assert lost == {"a": None, "b": "reading a file: (os error 5)", "c": None}
    assert {node.node: node.read_bytes for node in record.nodes}["b"] == 0  # It is not asked again.
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    assert {each["node"] for each in listed} == {"a", "c"}


@pytest.mark.parametrize("what", ["crawls", "crawls in the middle"])
def test_who_is_slow_is_not_waited_for_but_read_from(disk: Path, what: str) -> None:
    parts = {node: keyed(seed, 20_000) for seed, node in enumerate(NODES)}
    for node, data in parts.items():
        (disk / node / "in").mkdir(parents=True)
        (disk / node / "in" / "f").write_bytes(data)
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_two", what)]})
    inputs = (f"{disk}/{{node}}/in",)
    record = run_two_pass(cluster, disk / "job", asked(disk, inputs))
    judged(disk, b"".join(parts.values()), record)
    lost = {node.node: node.lost for node in record.nodes}
    assert lost == {"a": None, "b": STRAGGLER, "c": None}
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    # What it had finished stays.
    assert ("b" in {each["node"] for each in listed}) == (what != "crawls")


def test_what_only_the_lost_one_had_is_named(disk: Path) -> None:
    for seed, node in enumerate(NODES):
        (disk / node / "in").mkdir(parents=True)
        (disk / node / "in" / "f").write_bytes(keyed(seed, 5_000))
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_one", "dies in the middle")]})
    inputs = (f"{disk}/{{node}}/in",)
    named = rf"no remaining node can read bytes 0 to 500000 of {disk}/b/in/f on b \(lost: b died"
    with pytest.raises(core.RunError, match=named):
        run_two_pass(cluster, disk / "job", asked(disk, inputs))
    # Back again, it has what it had.
    record = run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, inputs))
    judged(disk, b"".join(keyed(seed, 5_000) for seed in range(3)), record)


@pytest.mark.parametrize("durability", ["none", "replicated"])
@pytest.mark.parametrize("step", ["pass_one", "pass_two"])
@pytest.mark.parametrize("what", ["loses its agent", "hangs"])
def test_who_has_input_alone_gets_a_new_agent(
    disk: Path, what: str, step: str, durability: str
) -> None:
    for seed, node in enumerate(NODES):
        (disk / node / "in").mkdir(parents=True)
        (disk / node / "in" / "f").write_bytes(keyed(seed, 5_000))
    cluster = SortMachines(*NODES, troubles={"b": [Trouble(step, what)]})
    want = asked(disk, (f"{disk}/{{node}}/in",), durability=durability, patience_seconds=2.0)
    record = run_two_pass(cluster, disk / "job", want)
    judged(disk, b"".join(keyed(seed, 5_000) for seed in range(3)), record)
    assert cluster.troubles["b"][0].happened
    assert all(node.lost is None for node in record.nodes)


def test_an_agent_that_dies_again_and_again_is_no_loop(disk: Path) -> None:
    for seed, node in enumerate(NODES):
        (disk / node / "in").mkdir(parents=True)
        (disk / node / "in" / "f").write_bytes(keyed(seed, 5_000))
    troubles = {"b": [Trouble("pass_one", "loses its agent") for _ in range(5)]}
    with pytest.raises(
        core.RunError, match=r"no remaining node can read bytes 0 to 500000 of \S+ on b "
    ):
        run_two_pass(
            SortMachines(*NODES, troubles=troubles),
            disk / "job",
            asked(disk, (f"{disk}/{{node}}/in",)),
        )
    assert sum(each.happened for each in troubles["b"]) == 2


def test_a_machine_that_hangs_is_given_up(disk: Path) -> None:
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_one", "hangs")]})
    record = sorted_whole(disk, keyed(8, 10_000), cluster, patience_seconds=2.0)
    lost = {node.node: node.lost for node in record.nodes}
    assert lost == {"a": None, "b": "hung: no answer for 2 s", "c": None}


def test_who_is_silent_and_whose_connections_are_broken_is_soon_given_up(disk: Path) -> None:
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_one", "dies unheard")]})
    record = sorted_whole(disk, keyed(8, 30_000), cluster, patience_seconds=60.0)
    lost = {node.node: node.lost for node in record.nodes}
    assert lost == {"a": None, "b": "hung: no answer for 3 s", "c": None}


def test_a_machine_that_moves_nothing_is_given_up_and_those_that_wait_for_it_are_not(
    disk: Path,
) -> None:
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_one", "stalls")]})
    record = sorted_whole(disk, keyed(8, 10_000), cluster, patience_seconds=2.0)
    lost = {node.node: node.lost for node in record.nodes}
    assert lost["a"] is None and lost["c"] is None
    assert str(lost["b"]).startswith("hung: no progress for")


def test_what_a_machine_could_not_send_it_sends_again(disk: Path) -> None:
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_one", "is cut off")]})
    record = sorted_whole(disk, keyed(12, 30_000), cluster)
    assert all(node.lost is None for node in record.nodes)
    assert [each.number for each in record.rounds] == [0, 1]
    assert record.rounds[1].bytes < record.rounds[0].bytes


def test_a_machine_that_others_twice_cannot_hear_is_lost(disk: Path) -> None:
    cut_off = [Trouble("pass_one", "is cut off") for _ in range(2)]
    cluster = SortMachines(*NODES, troubles={"b": cut_off})
    for seed, node in enumerate(NODES):
        (disk / node / "in").mkdir(parents=True)
        (disk / node / "in" / "f").write_bytes(keyed(seed, 20_000))
    # What nobody else can send.
    inputs = (f"{disk}/{{node}}/in",)
    named = r"b/in/f on b \(lost: b others cannot exchange data with it\)"
    with pytest.raises(core.RunError, match=named):
        run_two_pass(cluster, disk / "job", asked(disk, inputs))


@pytest.mark.parametrize("seed", range(8))
def test_a_driver_that_is_killed_goes_on(disk: Path, seed: int) -> None:
    data = keyed(seed, 20_000)
    want = asked(disk, shared(disk, data))
    dies = random.Random(seed).randint(1, 7)
    with driver(dies=dies, before=bool(seed % 2)) as first:
        run_two_pass(SortMachines(*NODES), disk / "job", want)
    troubles = {"b": [Trouble("pass_two", "dies", wipes=True)]} if seed % 4 == 3 else {}
    with driver() as done:
        record = run_two_pass(SortMachines(*NODES, troubles=troubles), disk / "job", want)
    judged(disk, data, record)
    if "pass_two" in first and not troubles:
        assert "pass_one" not in done and "sample" not in done
    # Done is done.
    assert run_two_pass(SortMachines(*NODES), disk / "job", want) == record


def test_what_began_with_so_many_machines_goes_on_with_fewer(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = keyed(15, 20_000)
    want = asked(disk, shared(disk, data), nodes=3)
    from tonnage.run.two_pass import driver as sorting

    monkeypatch.setattr(sorting, "_run_pass_two", killed)
    with pytest.raises(Killed):
        run_two_pass(SortMachines("b", "c", "d", "e"), disk / "job", want)
    monkeypatch.undo()
    record = run_two_pass(SortMachines("a", "c"), disk / "job", want)
    judged(disk, data, record)
    lost = {node.node for node in record.nodes if node.lost}
    assert lost == {"b", "d"}


def test_of_many_machines_those_that_began_go_on() -> None:
    cluster = SortMachines("a", "b", "c", "d")
    found = admission.machines(cluster, 2, began_with={"c", "d", "x"})
    assert [machine.name for machine in found] == ["c", "d"]


def test_who_is_back_without_its_data_gets_it_again(disk: Path) -> None:
    data = keyed(11, 20_000)
    want = asked(disk, shared(disk, data))
    troubles = {node: [Trouble("pass_two", "dies", wipes=node == "b")] for node in NODES}
    with pytest.raises(core.RunError, match="no remaining node can store data"):
        run_two_pass(SortMachines(*NODES, troubles=troubles), disk / "job", want)
    record = run_two_pass(SortMachines(*NODES), disk / "job", want)
    judged(disk, data, record)


def test_a_wrong_sum_is_no_success(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tonnage.run.two_pass import driver as sorting
    from tonnage.run.two_pass.schedule import Total

    outcome = sorting._outcome

    def wrong(*arguments: Any) -> Any:
        found = outcome(*arguments)
        return replace(found, read=replace(found.read, checksum=found.read.checksum + 1))

    monkeypatch.setattr(sorting, "_outcome", wrong)
    with pytest.raises(
        FatalJobError, match=r"do not match the records read.*with another job directory"
    ):
        sorted_whole(disk, keyed(1, 5_000), SortMachines(*NODES))
    assert Total(1) + Total(2) == Total(3)
    for node in NODES:
        assert not (disk / node / "out" / "_tonnage.json").exists()
        with pytest.raises(core.UsageError, match="unfinished output"):
            validate([disk / node / "out"], layout=LAYOUT)


def test_a_changed_input_is_no_success(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = keyed(1, 5_000)
    want = asked(disk, shared(disk, data))
    cluster = SortMachines(*NODES)

    from tonnage.run.two_pass import sizing

    blocks = sizing.block_bytes

    def changing(*arguments: Any) -> int:
        (disk / "in" / "f0").write_bytes(b"x" * 100)
        return blocks(*arguments)

    monkeypatch.setattr(sizing, "block_bytes", changing)
    with pytest.raises(FatalJobError, match=r"in/f0 has changed since the job began"):
        run_two_pass(cluster, disk / "job", want)
    monkeypatch.undo()
    with pytest.raises(FatalJobError, match="has changed since the job began"):
        run_two_pass(SortMachines(*NODES), disk / "job", want)


def test_what_cannot_be_is_refused(disk: Path) -> None:
    inputs = shared(disk, keyed(1, 100))

    def refused(said: str, **more: Any) -> None:
        wanted = {"inputs": inputs} | more
        with pytest.raises(core.UsageError, match=said):
            run_two_pass(SortMachines(*NODES), disk / "other", asked(disk, **wanted))
        assert not (disk / "other").exists()
        for left in (*disk.glob("*/scratch/*"), *disk.glob("**/.tonnage-unfinished-*")):
            pytest.fail(f"{left} is left")

    refused(
        "is the same .shared. directory on .* include {node} in the path", output=(f"{disk}/out",)
    )
    refused("does not exist on any node", inputs=(f"{disk}/nothing",))
    refused("would itself be read as input", output=(f"{disk}/in/out-{{node}}",))
    refused("the cluster has 3;", nodes=4)
    refused("not a multiple of the record size .7.", layout=Layout(7, 0, 1))
    refused("have no measurement of node b", weights={"a": 1.0, "c": 1.0})
    (disk / "a" / "out").mkdir(parents=True, exist_ok=True)
    (disk / "a" / "out" / "mine").touch()
    refused("is not empty .it contains mine.")
    (disk / "a" / "out" / "mine").unlink()
    record = run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, inputs))
    judged(disk, keyed(1, 100), record)
    with pytest.raises(
        core.UsageError, match="was started with memory 16777216, not 33554432; use the original"
    ):
        run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, inputs, memory_bytes=32 << 20))
    refused("is not empty|earlier output")


def test_copies_of_an_earlier_job_are_not_touched(disk: Path) -> None:
    inputs = shared(disk, keyed(1, 100))
    copies = disk / "b" / "out" / "_copies"
    copies.mkdir(parents=True)
    record = run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, inputs))
    judged(disk, keyed(1, 100), record)
    assert not copies.exists()  # Nor is an empty directory left.
    copies.mkdir()
    (copies / "part-00007").write_bytes(b"another job's")
    other = asked(disk, inputs, output=directories(disk, "out"))
    for path in disk.glob("*/out/*"):
        if path != copies:
            path.unlink()
    with pytest.raises(core.UsageError, match=r"is not empty \(it contains _copies\)"):
        run_two_pass(SortMachines(*NODES), disk / "other", other)
    assert (copies / "part-00007").read_bytes() == b"another job's"


def test_the_list_of_files_tells_between_which_keys_they_lie(disk: Path) -> None:
    sorted_whole(disk, keyed(3, 30_000), SortMachines(*NODES))
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    ends = [each["range"] for each in listed]
    assert len(ends) > 2 and ends[0][0] is None and ends[-1][1] is None
    assert all(one[1] == next[0] for one, next in itertools.pairwise(ends))
    for each, (begin, end) in zip(listed, ends, strict=True):
        data = Path(each["path"]).read_bytes()
        keys = [data[at : at + 10].hex() for at in range(0, len(data), 100)]
        assert begin is None or begin["key"] <= keys[0]
        assert end is None or keys[-1] <= end["key"]


def test_weights_say_how_much_each_sorts(disk: Path) -> None:
    weights = {"a": 3.0, "b": 1.0, "c": 1.0}
    data = keyed(1, 150_000)
    record = sorted_whole(disk, data, SortMachines(*NODES), weights=weights, memory_bytes=8 << 20)
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    share = sum(each["bytes"] for each in listed if each["node"] == "a") / record.bytes
    assert 0.5 < share < 0.7


def test_a_foreign_jobs_scratch_is_not_touched(disk: Path) -> None:
    foreign = disk / "a" / "scratch" / "tonnage-other" / "round-00000.device"
    foreign.parent.mkdir(parents=True)
    foreign.write_bytes(b"other")
    inputs = shared(disk, keyed(1, 1000))
    run_two_pass(SortMachines(*NODES), disk / "job", asked(disk, inputs))
    assert foreign.read_bytes() == b"other"
    assert os.listdir(disk / "a" / "scratch") == ["tonnage-other"]


def replicated(room: Path, data: bytes, cluster: SortMachines) -> RunRecord:
    """Sorts an input that all nodes see, with copies."""
    record = sorted_whole(room, data, cluster, durability="replicated")
    has_copies(room, record, "sorted.json")
    return record


@pytest.mark.real
@pytest.mark.parametrize("data", [keyed(1, 50_000), skewed(3, 20_000), keyed(5, 1), b""])
def test_each_file_has_a_copy_elsewhere(disk: Path, data: bytes) -> None:
    record = replicated(disk, data, SortMachines(*NODES))
    # What was sorted and where it was copied from: nothing is read twice for it.
    assert sum(node.written_bytes for node in record.nodes) == 3 * len(data)
    assert sum(node.read_bytes for node in record.nodes) <= 2 * len(data) + (1 << 20)


@pytest.mark.parametrize(
    ("step", "what", "wipes"), [each for each in DEATHS if "sample" not in each.values]
)
def test_a_machine_that_dies_is_done_without_and_all_have_copies(
    disk: Path, step: str, what: str, wipes: bool
) -> None:
    cluster = SortMachines(*NODES, troubles={"b": [Trouble(step, what, wipes=wipes)]})
    record = replicated(disk, keyed(7, 30_000), cluster)
    lost = {node.node: node.lost for node in record.nodes}
    assert lost["a"] is None and lost["c"] is None and str(lost["b"]).startswith("died")
    if step == "seal":
        # What it had sorted others have: nothing was read or sent again for it.
        assert len(record.rounds) == 1


@pytest.mark.parametrize("seed", range(6))
def test_all_but_two_may_be_lost_at_any_time_with_copies(disk: Path, seed: int) -> None:
    draw = random.Random(seed)
    kinds = ["dies", "dies in the middle", "dies at the end", "fails"]
    troubles = {
        node: [
            Trouble(
                draw.choice(["pass_one", "pass_two", "copy"]),
                draw.choice(kinds),
                draw.choice([0, 0, 1]),
                draw.random() < 0.5,
            )
        ]
        for node in "cd"
    }
    replicated(disk, keyed(seed, 20_000), SortMachines("a", "b", "c", "d", troubles=troubles))


def test_a_copy_takes_a_second_machine(disk: Path) -> None:
    with pytest.raises(core.UsageError, match="durability: replicated: a copy needs a second"):
        replicated(disk, keyed(1, 5_000), SortMachines("a"))


def test_a_copy_takes_a_second_machine_to_the_end(disk: Path) -> None:
    troubles = {node: [Trouble("pass_one", "dies")] for node in "bc"}
    with pytest.raises(core.RunError, match="no second node remains that could store a copy"):
        replicated(disk, keyed(1, 5_000), SortMachines(*NODES, troubles=troubles))


@pytest.mark.parametrize("at", ["pass_two", "adopt_copies", "copy", "seal"])
def test_a_driver_that_is_killed_goes_on_with_copies(disk: Path, at: str) -> None:
    data = keyed(3, 20_000)
    want = asked(disk, shared(disk, data), durability="replicated")
    troubles = {"b": [Trouble("pass_two", "dies at the end", wipes=True)]}
    with driver(dies=at):
        run_two_pass(SortMachines(*NODES, troubles=troubles), disk / "job", want)
    record = run_two_pass(SortMachines("a", "c"), disk / "job", want)
    judged(disk, data, record)
    has_copies(disk, record, "sorted.json")
    assert record.commands == 2
    assert "for the last of 2 commands, " in sort_lines(record)[1]


def test_two_machines_that_die_with_what_they_keep_for_each_other(disk: Path) -> None:
    troubles = {node: [Trouble("pass_two", "dies at the end")] for node in "cd"}
    replicated(disk, keyed(3, 20_000), SortMachines("a", "b", "c", "d", troubles=troubles))


def test_what_a_driver_believes_finished_is_looked_for_when_it_goes_on(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = keyed(13, 20_000)
    want = asked(disk, shared(disk, data))
    cluster = SortMachines(*NODES, troubles={"b": [Trouble("pass_two", "dies at the end")]})
    monkeypatch.setattr(commit, "seal", killed)
    with pytest.raises(Killed):
        run_two_pass(cluster, disk / "job", want)
    monkeypatch.undo()
    for part in (disk / "b" / "out").glob("part-*"):
        part.unlink()
    record = run_two_pass(SortMachines(*NODES), disk / "job", want)
    judged(disk, data, record)
    assert all(node.lost is None for node in record.nodes)


@pytest.mark.parametrize("who", ["takes part again", "is only read from"])
def test_parts_that_count_for_nothing_do_not_stay_if_nobody_dropped_them(
    disk: Path, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, troubles = keyed(16, 150_000), {}
    want = asked(disk, shared(disk, data), memory_bytes=8 << 20)
    if who == "is only read from":
        troubles = {"c": [Trouble("pass_two", "fails in the middle")]}
    else:
        # Others did again what it had, and nobody saw that it was there.
        dies = {"c": [Trouble("pass_two", "dies in the middle")]}
        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(commit, "seal", killed)
            patched.setattr(JobRun, "_visible_elsewhere", lambda *_: set())
            run_two_pass(SortMachines(*NODES, troubles=dies), disk / "job", want)
    monkeypatch.setattr(TwoPassWorker, "drop", lambda *_: None)
    record = run_two_pass(SortMachines(*NODES, troubles=troubles), disk / "job", want)
    judged(disk, data, record)
    listed = json.loads((disk / "job" / "sorted.json").read_text())
    there = {str(path) for path in disk.glob("*/out/part-*")}
    assert there == {each["path"] for each in listed}


def test_what_a_lost_machine_left_is_finished_although_the_driver_died_first(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = keyed(27, 20_000)
    want = asked(disk, shared(disk, data))
    troubles = {"b": [Trouble("seal", "dies")]}
    monkeypatch.setattr(commit, "leave", killed)
    with pytest.raises(Killed):
        run_two_pass(SortMachines(*NODES, troubles=troubles), disk / "job", want)
    monkeypatch.undo()
    record = run_two_pass(SortMachines("a", "c"), disk / "job", want)
    # Its files stayed, since another one sees them.
    assert len(record.rounds) == 1 and any((disk / "b" / "out").glob("part-*"))
    judged(disk, data, record)


def test_a_step_that_got_lost_on_its_way_is_asked_for_again(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from support.cluster.sorters import SorterActor

    send, lost = SorterActor.send, []

    def losing(self: SorterActor, message: bytes, attached: Any = None) -> Any:
        decoded = protocol.decode(message, protocol.Request)
        if isinstance(decoded, protocol.Begin) and decoded.step == "pass_two" and not lost:
            lost.append(decoded)
            message = protocol.encode(protocol.Ping())
        return send(self, message, attached)

    monkeypatch.setattr(SorterActor, "send", losing)
    record = sorted_whole(disk, keyed(14, 10_000), SortMachines(*NODES))
    assert lost and all(node.lost is None for node in record.nodes)


def test_connections_are_as_many_in_all_as_threads() -> None:
    """So that no flow of TCP has to carry a fast link alone."""
    assert [usual_connections(nodes, 96) for nodes in (1, 2, 3, 4, 97, 1_000)] == [
        *(32, 32, 32, 32, 1, 1)
    ]
    assert [usual_connections(nodes, 2) for nodes in (2, 3, 4)] == [2, 1, 1]


def test_connections_of_many_threads_leave_half_of_what_a_process_may_open() -> None:
    assert [usual_connections(nodes, 448) for nodes in (9, 15, 129, 130, 257)] == [32, 18, 2, 1, 1]
    for nodes in range(2, 258):
        most = max(sockets(usual_connections(nodes, each) * (nodes - 1)) for each in (192, 1_920))
        assert most <= DESCRIPTORS // 2
