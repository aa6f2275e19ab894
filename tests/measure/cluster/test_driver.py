"""A cluster's driver; its machines are threads here (`support.cluster.machines`)."""

import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from support.cluster.machines import Machines
from support.data.copies import replace
from support.data.measurements import measurement
from tonnage.base import core
from tonnage.base.records import ClusterMeasurement, ClusterNode, Measurement, Trial
from tonnage.cli.measure.cluster import fail_if_missing
from tonnage.cli.options.inputs import load_clusters
from tonnage.cli.output.cluster_measurement import summary
from tonnage.cluster.progress import ClusterProgress, NodeStatus, in_line
from tonnage.measure.cluster.aggregate import aggregate_nodes
from tonnage.measure.cluster.driver import MeasurementRequest, OnStatus, measure_cluster
from tonnage.measure.cluster.measure_worker import FileWritten, MeasureTask, Work
from tonnage.measure.trial.environment import capture
from tonnage.measure.trial.session import open_session
from tonnage.model.analysis.analyse import analyse

HOST = platform.node()
TRIALS = 2


@pytest.fixture(autouse=True)
def _rooms(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each agent its own workspace: real ones differ by process id, these share one."""
    made = tmp_path_factory.mktemp
    monkeypatch.setattr(core, "workspace", lambda *_: nullcontext(made("agent")))


def works(between: Callable[[core.OnProgress], None] = lambda _: None) -> Work:
    """Keeps `TRIALS` trials; something happens before the last."""

    def work(
        out: Path, *, command: list[str], labels: Mapping[str, str], on_progress: core.OnProgress
    ) -> Iterator[Trial | Measurement]:
        with open_session(
            out,
            "ops",
            {},
            command=command,
            environment=capture([], labels),
            stopping_rule="none",
            page_cache="none",
        ) as on_file:
            while len(on_file.trials) < TRIALS:
                if len(on_file.trials) == TRIALS - 1:
                    between(on_progress)
                (trial,) = measurement("made up", {"read4k": [1.0]}).trials
                yield on_file.add(trial)
            yield on_file.finish()

    return work


def moves(seconds: float) -> Callable[[core.OnProgress], None]:
    """What a node does that is well."""

    def move(on_progress: core.OnProgress) -> None:
        until = time.monotonic() + seconds
        done = 0
        while time.monotonic() < until:
            on_progress(done := done + 1)
            time.sleep(0.01)

    return move


def breaks(_: core.OnProgress) -> None:
    """What a node does that does not come to its end."""
    raise core.RunError("it broke")


def measured(
    machines: Machines,
    out: Path,
    of: Mapping[str, Work] | None = None,
    on_rows: OnStatus = lambda _: None,
    **more: Any,
) -> ClusterMeasurement:
    """Measure on these machines, which do this work, by default the usual one."""
    asked = MeasurementRequest(
        kind="ops",
        work=lambda node: (of or {}).get(node, works()),
        settings={},
        command=["test"],
        labels={},
        nodes=None,
        patience_seconds=10.0,
    )
    *_, whole = measure_cluster(machines, out, replace(asked, **more), on_rows)
    assert isinstance(whole, ClusterMeasurement)
    return whole


def hosts(whole: ClusterMeasurement) -> dict[str, str | None]:
    """What the machines are called that measured all."""
    return {row.node: row.host for row in whole.nodes if row.ok}


def test_who_goes_on_alone_is_called_as_it_was_among_others(tmp_path: Path) -> None:
    names = ("fast", "slow")
    apart = {name: f"{HOST}/{name}" for name in names}
    first = measured(Machines(*names), tmp_path, {"slow": works(breaks)})
    assert hosts(first) == {"fast": apart["fast"]}
    assert hosts(measured(Machines(*names), tmp_path)) == apart


def test_who_began_alone_is_called_so_among_others(tmp_path: Path) -> None:
    measured(Machines("slow"), tmp_path, {"slow": works(breaks)})
    assert hosts(measured(Machines("fast", "slow"), tmp_path)) == {
        "fast": f"{HOST}/fast",
        "slow": HOST,
    }
    # A node that joins after all others are done is distinguished from them, too.
    assert hosts(measured(Machines("fast", "late", "slow"), tmp_path))["late"] == f"{HOST}/late"


def test_who_answers_as_late_as_it_may_is_not_given_up_for_it(tmp_path: Path) -> None:
    work = {"a": works(moves(2.0)), "b": works(moves(0.7))}
    whole = measured(Machines(*work), tmp_path, work, patience_seconds=0.5)
    assert [row.why for row in whole.nodes] == [None, None]


def test_who_is_given_up_stops_before_the_next_begins_and_cleans_up(tmp_path: Path) -> None:
    stopped, may_clean, cleaned = threading.Event(), threading.Event(), threading.Event()

    def hangs(on_progress: core.OnProgress) -> None:
        try:
            while True:
                on_progress(0)
                time.sleep(0.01)
        finally:
            stopped.set()
            assert may_clean.wait(10)
            cleaned.set()

    def follows(_: core.OnProgress) -> None:
        assert stopped.wait(10)
        threading.Timer(0.5, may_clean.set).start()

    work = {"a": works(hangs), "b": works(follows)}
    whole = measured(Machines(*work), tmp_path, work, one_at_a_time=True, patience_seconds=0.5)
    a, b = whole.nodes
    assert str(a.why).startswith("hung: no progress for") and b.why is None
    # When the command is over, so is what it began.
    assert cleaned.is_set()


def test_files_are_news_until_the_driver_has_them() -> None:
    # It has a trial that comes after all others by name.
    files = {"begun.json": b"1", "trial-00009.json": b"2"}
    steps = MeasureTask(works(), ["test"], {}, files, "kept/a").steps()
    assert steps.news(0) == []
    written: list[FileWritten] = []
    for name in ("trial-00003.json", "measurement.json"):
        (steps._out / name).write_bytes(name.encode())
        new = steps.news(len(written))
        # An answer may be lost: then it is asked again.
        assert new == steps.news(len(written)) == [FileWritten(name, name.encode())]
        written += new
    assert steps.news(len(written)) == []


def test_trials_of_earlier_commands_are_shown_with_those_that_come(tmp_path: Path) -> None:
    shown: list[int] = []
    measured(Machines("a"), tmp_path, {"a": works(breaks)})
    measured(Machines("a"), tmp_path, on_rows=lambda rows: shown.extend(row.trials for row in rows))
    assert sorted(set(shown) - {0}) == list(range(1, TRIALS + 1)) and shown == sorted(shown)


def test_who_may_not_leave_rays_priority_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nice = threading.local()

    def set_priority(*_: int) -> None:
        if forbidden:
            raise PermissionError
        nice.value = 0

    monkeypatch.setattr(os, "setpriority", set_priority)
    monkeypatch.setattr(os, "getpriority", lambda *_: getattr(nice, "value", 15))
    for forbidden in (True, False):
        whole = measured(Machines("a"), tmp_path / str(forbidden))
        (row,) = whole.nodes
        assert row.measurement and row.measurement.environment
        assert row.measurement.environment.niceness == (15 if forbidden else 0)
        said = "\n".join(summary(whole, tmp_path)), "\n".join(analyse(whole.measurements).warnings)
        assert [
            "Measured at a lower CPU priority than other processes: a (nice 15)" in said[0],
            "low CPU priority" in said[1],
        ] == [forbidden] * 2


def stumbles(_: core.OnProgress) -> None:
    """What a node does of which nobody thought."""
    raise KeyError("what\nis this")


def test_what_nobody_foresaw_is_told_in_a_line_and_kept_whole(tmp_path: Path) -> None:
    whole = measured(Machines("a", "b"), tmp_path, {"a": works(stumbles)})
    (row,) = whole.missing
    assert (row.node, row.why) == ("a", "KeyError: 'what\\nis this'")
    kept_row = ClusterNode.read(tmp_path / "a" / "node.json")
    assert kept_row.error == row.error and row.error
    assert row.error.startswith("Traceback") and "in stumbles" in row.error
    last = summary(whole, tmp_path)[-1]
    assert last == f"Missing: a: {row.why} (details: {tmp_path}/a/node.json)"


def test_what_an_agent_refuses_is_told_of_the_directory_that_was_given(tmp_path: Path) -> None:
    def refuses(out: Path, **_: Any) -> Iterator[Trial | Measurement]:
        yield from ()
        raise core.UsageError(f"--output {out} is full: give another")

    whole = measured(Machines("a", "b"), tmp_path, {"a": refuses})
    (row,) = whole.missing
    assert (row.why, row.error) == (f"--output {tmp_path / 'a'} is full: give another", None)
    assert summary(whole, tmp_path)[-1] == f"Missing: a: {row.why}"


def test_a_missing_node_is_a_failure(tmp_path: Path) -> None:
    well = measured(Machines("a", "b"), tmp_path / "well")
    fail_if_missing(well)
    some = measured(Machines("a", "b", "c"), tmp_path / "some", {"b": works(breaks)})
    with pytest.raises(core.RunError, match=r"^1 of 3 nodes did not return all results: b$"):
        fail_if_missing(well, some)
    none = measured(Machines("a"), tmp_path / "none", {"a": works(breaks)})
    with pytest.raises(core.RunError, match=r"^no node returned results: a it broke$"):
        fail_if_missing(none)


def test_a_report_says_who_is_missing_and_why(tmp_path: Path) -> None:
    whole = measured(Machines("a", "b"), tmp_path / "out", {"b": works(breaks)})
    (cluster,) = load_clusters([tmp_path, tmp_path / "out" / "fleet.json"])
    assert [row.why for row in cluster.missing] == ["it broke"]
    said = analyse(whole.measurements, clusters=[cluster]).warnings[0]
    assert (
        said
        == f"Node b is missing in {whole.id}: it broke. The figures include 1 trial of this node."
    )
    (tmp_path / "out" / "fleet.json").unlink()
    (begun,) = load_clusters([tmp_path])
    assert analyse(whole.measurements, clusters=[begun]).warnings[0] == (
        f"{whole.id} was interrupted, so its missing nodes are unknown."
    )


def test_of_unlike_machines_each_type_has_its_own_middle() -> None:
    rates = {"f1": 100.0, "f2": 120.0, "s1": 10.0}
    rows = [
        ClusterNode(
            node=node,
            machine_type={"f": "fast", "s": "slow"}[node[0]],
            ok=True,
            measurement=measurement(node, {"ro": [rate * 1e6]}),
        )
        for node, rate in rates.items()
    ]
    (found,) = aggregate_nodes(rows)
    assert found.medians_of_types == {"fast": 110e6, "slow": 10e6}
    made = ClusterMeasurement(id="f", kind="disk", began_at="", command=[], settings={}, nodes=rows)
    said = summary(replace(made, across=[found]), Path())[0]
    assert "median nodes of each type 110 MB/s (fast) and 10.0 MB/s (slow)" in said
    alike = aggregate_nodes([row for row in rows if row.machine_type == "fast"])
    assert "median node 110 MB/s" in summary(replace(made, across=alike), Path())[0]


def test_who_waits_for_others_has_no_rate_and_who_is_stalled_has_none_to_show() -> None:
    rows = [NodeStatus(node, "measuring", 0, 0, None) for node in "ab"]
    assert in_line(rows, {"a": None, "b": None}) == "2 nodes: 2 measuring; 0 trials"
    assert in_line(rows, {"a": 5e6, "b": None}) == (
        "2 nodes: 2 measuring; 5.00 MB/s in total; slowest a 5.00 MB/s; 0 trials"
    )
    view, now = ClusterProgress("measuring"), time.monotonic()
    told = [(0, 0, True), (0, 5, False), (10, 10, False), (10, 11, True), (10, 12, False)]
    rates = [
        view._rate(rows[0]._replace(done_bytes=done, waits=waits), now + passed)
        for done, passed, waits in told
    ]
    assert rates == [None, None, 2.0, None, None]
    assert view._rate(rows[0]._replace(done_bytes=10), now + 20) == 0.0


def test_an_environment_tells_the_priority_of_what_measures() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(os.setpriority, os.PRIO_PROCESS, 0, 19).result()
        assert pool.submit(capture, []).result().niceness == 19
