"""Several nodes use one directory at once: which files they write and read, and what is left."""

import dataclasses
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.data.copies import replace
from tonnage.base import core
from tonnage.base.core import directory_lease
from tonnage.base.records import ClusterNode, Measurement, Trial
from tonnage.base.records.network_rounds import LATE, NODES
from tonnage.cluster.barrier import BarrierResult
from tonnage.measure.cluster.aggregate import aggregate_nodes
from tonnage.measure.stream.suite import measure_stream
from tonnage.measure.stream.trial import StreamSettings

MIB = 1 << 20
SETTINGS = StreamSettings(
    operations=("write", "read"),
    workers=2,
    block_bytes=MIB,
    transfer_bytes=MIB // 4,
    segments=2,
    shared=False,
    direct=True,
    flush=True,
    repetitions=2,
    shared_dir=True,
)
NODES_BY_NAME = ("a", "b", "c")
PREFIX = ".tonnage-test-"


class Table:
    """A barrier of threads that stand for nodes; those that have left are not waited for."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._there = set(names)
        self._says: dict[str, Any] = {}
        self._met = BarrierResult({}, 0.0)
        self._change = threading.Condition()
        self.meetings = 0

    def meet(self, name: str, says: Any) -> BarrierResult:
        """Wait for all that have not left."""
        with self._change:
            mine = self.meetings
            self._says[name] = says
            self._close()
            assert self._change.wait_for(lambda: self.meetings > mine, timeout=60)
            return self._met

    def leave(self, name: str) -> None:
        with self._change:
            self._there.discard(name)
            self._says.pop(name, None)
            self._close()

    def _close(self) -> None:
        if self._there and self._says.keys() == self._there:
            self._met = BarrierResult(dict(sorted(self._says.items())), time.monotonic())
            self._says = {}
            self.meetings += 1
            self._change.notify_all()


@dataclasses.dataclass(frozen=True)
class Seat:
    """A node's place at the barrier."""

    node: str
    table: Table

    def wait(self, says: Any) -> BarrierResult:
        return self.table.meet(self.node, says)


def measured(
    disk: Path,
    settings: StreamSettings,
    directories: Mapping[str, Path] | None = None,
    on_trial: Callable[[str, Trial], None] = lambda *_: None,
) -> dict[str, Measurement | Exception]:
    """Each node's measurement, or its error."""
    (disk / "shared").mkdir(exist_ok=True)
    where = directories or dict.fromkeys(NODES_BY_NAME, disk / "shared")
    table = Table(tuple(where))

    def work(node: str) -> Measurement | Exception:
        try:
            out = disk / f"out-{node}"
            seat = Seat(node, table)
            for each in measure_stream(where[node], out, settings, command=["test"], barrier=seat):
                if isinstance(each, Measurement):
                    return each
                on_trial(node, each)
            raise AssertionError("it ends with the measurement")
        except Exception as why:
            return why
        finally:
            table.leave(node)

    with ThreadPoolExecutor() as pool:
        return dict(zip(where, pool.map(work, where), strict=True))


def whole(found: Mapping[str, Measurement | Exception]) -> dict[str, Measurement]:
    """Require that all nodes measured."""
    for each in found.values():
        if isinstance(each, Exception):
            raise each
    return {node: each for node, each in found.items() if isinstance(each, Measurement)}


def rows_of(found: Mapping[str, Measurement]) -> list[ClusterNode]:
    """The rows of a cluster with these measurements."""
    return [ClusterNode(node=node, ok=True, measurement=each) for node, each in found.items()]


def together(found: Mapping[str, Measurement]) -> dict[str, float | None]:
    """The combined rate of all nodes, by kind of trial."""
    return {each.name: each.together_bytes_per_second for each in aggregate_nodes(rows_of(found))}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The core's configuration of each run, with the holes of files that were read."""
    found: list[dict[str, Any]] = []
    run = core.run

    def looking(name: str, config: dict[str, Any], *rest: Any) -> dict[str, Any]:
        holes = None
        if not config["writes"]:
            content = [Path(file).read_bytes() for file in config["files"]]
            holes = [each.count(bytes(4096)) for each in content]
        found.append(config | {"holes": holes})
        return run(name, config, *rest)

    monkeypatch.setattr(core, "run", looking)
    return found


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "buffered"])
@pytest.mark.parametrize("shared", [True, False], ids=["one file", "a file each"])
def test_each_node_writes_its_part_and_reads_that_of_the_next(
    disk: Path, runs: list[dict[str, Any]], shared: bool, direct: bool
) -> None:
    settings = replace(SETTINGS, shared=shared, direct=direct, flush=direct)
    found = whole(measured(disk, settings))
    for place, (node, each) in enumerate(found.items()):
        assert [trial.name for trial in each.trials] == ["write x2", "read x2"] * 2
        for trial in each.trials:
            assert trial.phase.stages[0].bytes == settings.bytes == 4 * MIB
            details = trial.reading.details if trial.reading else {}
            assert details[NODES] == 3 and details["shared"] is shared and details[LATE] > -0.01
            if trial.name == "read x2":
                assert details["read_of"] == NODES_BY_NAME[(place + 1) % 3] != node
    # Only written data was read, and each part once in each round.
    reads = [each for each in runs if not each["writes"]]
    assert len(reads) == 6 and all(count == 0 for each in reads for count in each["holes"])
    assert len({tuple(each["files"]) for each in runs}) == (1 if shared else 3)
    if shared:
        among = [each["segments"]["among"] for each in reads]
        assert sorted(each["first"] for each in among) == [0, 0, 2, 2, 4, 4]
        assert {each["parts"] for each in among} == {6}
    assert list((disk / "shared").iterdir()) == []


def test_the_combined_rate_is_from_the_first_start_to_the_last_end(disk: Path) -> None:
    found = whole(measured(disk, SETTINGS))
    rows = rows_of(found)
    for each in aggregate_nodes(rows):
        together = each.together_bytes_per_second
        # A node that ends first carries nothing while the others continue.
        assert together is not None and together <= each.sum_bytes_per_second * 1.001
        assert together > each.low_bytes_per_second
    # A round of three nodes is not a round of two.
    for each in aggregate_nodes(rows[:2]):
        assert each.together_bytes_per_second is None


def test_a_directory_that_differs_on_some_node_is_refused(disk: Path) -> None:
    places = {name: disk / name for name in NODES_BY_NAME} | {"b": disk / "a"}
    for path in places.values():
        path.mkdir(exist_ok=True)
    found = measured(disk, SETTINGS, places)
    for node, why in found.items():
        assert isinstance(why, core.UsageError)
        assert str(why) == (
            f"dir: {places[node]} is not shared by all nodes: a directory that a created in it "
            "is not "
            "visible to c"
        )
    assert [list(path.iterdir()) for path in places.values()] == [[], [], []]


def test_a_trial_missing_on_one_node_is_repeated_by_all_who_keep_their_first(disk: Path) -> None:
    first = whole(measured(disk, SETTINGS))
    for number in (2, 3):
        (disk / "out-b" / f"trial-{number:05}.json").unlink()
    for path in disk.glob("out-*/measurement.json"):
        path.unlink()
    again = whole(measured(disk, SETTINGS))
    assert again["a"].trials == first["a"].trials and again["c"].trials == first["c"].trials
    assert again["b"].trials[:2] == first["b"].trials[:2] and len(again["b"].trials) == 4
    assert again["b"].trials[2:] != first["b"].trials[2:]
    # In the second round the others have the first attempt, which b did not take part in.
    assert together(again) == together(
        {node: replace(each, trials=each.trials[:2]) for node, each in again.items()}
    )
    assert None not in together(again).values()
    # Now all trials are recorded, and no node writes.
    (disk / "shared").rmdir()
    assert whole(measured(disk, SETTINGS)) == again


@pytest.mark.parametrize("shared", [True, False], ids=["one file", "a file each"])
def test_a_failed_node_is_neither_awaited_nor_read(disk: Path, shared: bool) -> None:
    def fail(node: str, trial: Trial) -> None:
        if node == "b" and trial.name == "write x2":
            raise core.RunError("it broke")

    found = measured(disk, replace(SETTINGS, shared=shared), on_trial=fail)
    assert isinstance(found.pop("b"), core.RunError)
    for node, each in whole(found).items():
        details = [trial.reading.details for trial in each.trials if trial.reading]
        assert [each[NODES] for each in details] == [3, 2, 2, 2]
        assert details[1]["read_of"] == ("c" if node == "a" else "a")
    assert list((disk / "shared").iterdir()) == []


def test_the_last_holder_removes_the_directory(disk: Path) -> None:
    room = directory_lease.create_leased_dir("dir", disk, PREFIX, lambda: None)
    with directory_lease.hold_lease(room, "a") as first:
        with directory_lease.hold_lease(room, "b"):
            (room / "file").touch()
        assert (room / "file").exists()
        # A killed holder leaves its lease behind.
        (room / f"{directory_lease.PREFIX}c").touch()
        first.known_holders = {"a", "b"}
    assert list(disk.iterdir()) == []


def test_holders_that_leave_at_once_leave_nothing_and_do_not_fail(disk: Path) -> None:
    at_once = threading.Barrier(3, timeout=60)

    def use(room: Path, holder: str) -> None:
        with directory_lease.hold_lease(room, holder):
            (room / holder).touch()
            at_once.wait()

    with ThreadPoolExecutor() as pool:
        for _ in range(200):
            room = directory_lease.create_leased_dir("dir", disk, PREFIX, lambda: None)
            list(pool.map(use, [room] * 3, NODES_BY_NAME))
            assert list(disk.iterdir()) == []


def test_expired_directories_are_removed_and_those_in_use_stay(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_lease, "EXPIRE_SECONDS", 2.0)
    monkeypatch.setattr(directory_lease, "RENEW_SECONDS", 0.1)
    monkeypatch.setattr(directory_lease, "POLL_SECONDS", 0.05)
    for name in ("old", "young"):
        (disk / f"{PREFIX}{name}").mkdir()
        (disk / f"{PREFIX}{name}" / f"{directory_lease.PREFIX}0").touch()
    old = disk / f"{PREFIX}old"
    for path in (old / f"{directory_lease.PREFIX}0", old):
        os.utime(path, (1, 1))
    waits: list[bool] = []
    used = directory_lease.create_leased_dir("dir", disk, PREFIX, lambda: waits.append(True))
    # Only after a while was it clear that the young one had expired.
    assert list(disk.iterdir()) == [used] and waits
    with directory_lease.hold_lease(used, "0"):
        lease = used / f"{directory_lease.PREFIX}0"
        os.utime(lease, (1, 1))
        while lease.stat().st_mtime < 2:  # Until it is renewed.
            time.sleep(0.01)
        other = directory_lease.create_leased_dir("dir", disk, PREFIX, lambda: None)
        assert set(disk.iterdir()) == {used, other}
    shutil.rmtree(other)
    assert list(disk.iterdir()) == []


def test_an_unwritable_directory_is_refused(disk: Path) -> None:
    with pytest.raises(core.UsageError, match=r"dir: \S+/none: No such file or directory; choose"):
        directory_lease.create_leased_dir("dir", disk / "none", PREFIX, lambda: None)
