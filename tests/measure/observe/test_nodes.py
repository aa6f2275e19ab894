"""A command on a cluster, all of whose nodes are watched whole.

Nodes are threads here (`support.cluster.machines`), whose counters are made up; one test watches a
real cluster.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.cluster.machines import Machines
from support.cluster.ray_cluster import ray_cluster
from support.stores.disk import disk_dir
from tonnage.base import core
from tonnage.base.records import Job, Observation, read_table
from tonnage.measure.observe.launch import CommandNotStarted
from tonnage.measure.observe.nodes.cluster_run import (
    NODE_DEVICES,
    NODES,
    ClusterRun,
    run_on_cluster,
)
from tonnage.measure.observe.nodes.node_watcher import (
    DiskSample,
    MachineReader,
    MachineSample,
    WatchTask,
)
from tonnage.measure.observe.nodes.observation import ClusterCommand, write_cluster_run
from tonnage.measure.trial.environment import capture

SLEEPS = [sys.executable, "-c", "import time; time.sleep(1.5)"]


class MadeUpReader(MachineReader):
    """A machine of two cores, one of which is busy, that reads 100 MB a second and sends 10."""

    def read(self) -> MachineSample:
        now = time.monotonic()
        return MachineSample(
            seconds=now,
            cores=2,
            link_bytes_per_second=1e9,
            busy_seconds=now,
            waiting_seconds=0.25 * now,
            stolen_seconds=0.0,
            busiest_core=1.0,
            memory_bytes=3 << 30,
            received_bytes=round(1e7 * now),
            sent_bytes=round(1e7 * now),
            disks={"vda": DiskSample(round(1e8 * now), 0, round(100 * now), 0, 0.6 * now, now)},
        )


class BrokenReader(MadeUpReader):
    """Its counters cannot be read after the second sample."""

    def __init__(self) -> None:
        super().__init__()
        self._left = 2

    def read(self) -> MachineSample:
        if not self._left:
            raise FileNotFoundError(2, "No such file or directory", "/proc/stat")
        self._left -= 1
        return super().read()


def watched(
    out: Path, *names: str, task: WatchTask | None = None, command: list[str] = SLEEPS
) -> ClusterRun:
    return run_on_cluster(
        Machines(*names),
        command,
        out,
        interval_seconds=0.1,
        task=task or WatchTask(MadeUpReader),
    )


def written(run: ClusterRun, out: Path, command: list[str] = SLEEPS) -> Observation:
    about = ClusterCommand(command, run.exit_code, capture([]), run.own_cpu_seconds)
    return write_cluster_run(run, out, about, data=None).observation


def enclosed(out: Path, run: ClusterRun, node: str, column: str) -> float:
    """A counter's increase between the samples that enclose the command."""
    table = read_table(out / "nodes.parquet")
    rows = [
        (seconds, value)
        for seconds, name, value in zip(table["seconds"], table["node"], table[column], strict=True)
        if name == node
    ]
    first = max(row for row in rows if row[0] <= run.begin)
    last = min(row for row in rows if row[0] >= run.end)
    return last[1] - first[1]


def test_nodes_are_watched_from_the_start_to_the_end(tmp_path: Path) -> None:
    run = watched(tmp_path, "a", "b")
    seen = written(run, tmp_path)
    assert run.end - run.begin >= 1.5 and run.notes == [] and run.exit_code == 0
    assert [node.name for node in seen.nodes] == ["a", "b"]
    assert [node.cores for node in seen.nodes] == [2, 2]
    (phase,) = seen.phases
    for node in phase.nodes:
        busy = enclosed(tmp_path, run, node.node, "busy_seconds")
        assert node.cpu_seconds == pytest.approx(busy)
        assert node.io_wait_seconds == pytest.approx(busy / 4)
        assert node.read_bytes == pytest.approx(1e8 * busy, rel=1e-6)
        assert node.network_sent_bytes == pytest.approx(1e7 * busy, rel=1e-6)
    assert phase.cpu_seconds == pytest.approx(sum(node.cpu_seconds for node in phase.nodes))
    assert phase.bottleneck == "one core" and "its busiest core was busy 100 %" in phase.why
    assert phase.peak_memory_bytes == 3 << 30
    assert seen.exit_code == 0 and seen.command == SLEEPS and seen.environment
    job = Job.read(tmp_path / "job.json")
    assert job.divisible and job.settings["nodes"] == 2
    assert job.phases[0].most_cores == pytest.approx(phase.cpu_seconds / phase.seconds / 2)


def test_samples_are_kept_as_tables(tmp_path: Path) -> None:
    watched(tmp_path, "a", "b")
    samples = read_table(tmp_path / "nodes.parquet")
    assert list(samples) == [*NODES] and {*samples["node"]} == {"a", "b"}
    assert list(read_table(tmp_path / "node_devices.parquet")) == [*NODE_DEVICES]
    assert not list(tmp_path.glob("*.csv"))


def test_samples_are_on_file_while_the_command_runs(tmp_path: Path) -> None:
    looks = (
        "import sys, time\n"
        "end = time.monotonic() + 60\n"
        "while len(open(sys.argv[1]).readlines()) < 5:\n"
        "    assert time.monotonic() < end\n"
        "    time.sleep(0.05)\n"
    )
    command = [sys.executable, "-c", looks, str(tmp_path / "nodes.csv")]
    assert watched(tmp_path, "a", command=command).exit_code == 0


def test_a_node_that_breaks_keeps_its_samples_and_the_others_go_on(tmp_path: Path) -> None:
    readers = iter([BrokenReader, MadeUpReader])
    run = watched(tmp_path, "a", "b", task=WatchTask(lambda: next(readers)()))
    seen = written(run, tmp_path)
    assert sum("/proc/stat" in note for note in seen.notes) == 1
    assert sorted(node.samples > 2 for node in seen.nodes) == [False, True]


def test_a_cluster_that_cannot_be_watched_does_not_run_the_command(tmp_path: Path) -> None:
    class NeverReader(MadeUpReader):
        def read(self) -> MachineSample:
            raise PermissionError(13, "Permission denied", "/proc/stat")

    mark = tmp_path / "ran"
    with pytest.raises(core.RunError, match=r"no node could be watched: a .*Permission denied"):
        watched(tmp_path, "a", task=WatchTask(NeverReader), command=["touch", str(mark)])
    assert not mark.exists()


def test_a_program_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandNotStarted) as why:
        watched(tmp_path, "a", command=["does-not-exist"])
    assert why.value.code == 127


def test_more_nodes_than_there_are_is_refused(tmp_path: Path) -> None:
    with pytest.raises(core.UsageError, match="3 nodes were requested, but the cluster has only 1"):
        run_on_cluster(Machines("a"), SLEEPS, tmp_path, interval_seconds=0.1, nodes=3)


def test_an_interrupted_command_is_written(tmp_path: Path) -> None:
    """SIGTERM is sent to the command, whose exit code is a shell's."""
    before = signal.getsignal(signal.SIGTERM)
    mark = tmp_path / "ran"
    command = ["sh", "-c", f"touch {mark}; exec sleep 60"]

    def terminate() -> None:
        while not mark.exists():
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=terminate)
    thread.start()
    run = watched(tmp_path, "a", command=command)
    thread.join()
    assert run.exit_code == 128 + signal.SIGTERM and 0.5 <= run.end - run.begin < 30
    assert written(run, tmp_path, command).phases
    assert signal.getsignal(signal.SIGTERM) == before


def test_this_machine_is_read() -> None:
    reader = MachineReader()
    first, second = reader.read(), reader.read()
    assert first.cores == os.cpu_count() and first.memory_bytes > 0
    assert second.busy_seconds >= first.busy_seconds > 0 and second.seconds > first.seconds
    assert 0 <= second.busiest_core <= 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--nodes", "2", "--", "true"), "--nodes needs --cluster"),
        (("--cluster", "auto", "--pid", "1"), "with --cluster, use -- COMMAND"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tonnage: Tonnage, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    done = tonnage.run("observe", *options, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and not list(tmp_path.iterdir())


# A real cluster.


@pytest.fixture
def room() -> Iterator[Path]:
    with disk_dir("test-observe-") as directory:
        yield directory


@pytest.mark.slow
def test_a_real_cluster_is_watched(tonnage: Tonnage, room: Path) -> None:
    """Its nodes are this machine, so each sees what the command did."""
    work = (
        "import hashlib, time\n"
        "end = time.monotonic() + 3\n"
        "while time.monotonic() < end:\n"
        "    hashlib.sha256(bytes(1 << 16)).digest()\n"
    )
    with ray_cluster(room, ["beta"]) as cluster:
        options = ("--cluster", cluster.address, "--output", room / "out", "--data", "1GB")
        done = tonnage.run(
            "observe", *options, "--", sys.executable, "-c", work, env=cluster.env, check=True
        )
    assert "2 nodes with" in done.stderr
    seen = Observation.read(room / "out" / "observation.json")
    assert [node.name for node in seen.nodes] == ["beta", "head"] and seen.exit_code == 0
    for name in range(2):
        assert sum(phase.nodes[name].cpu_seconds for phase in seen.phases) > 2
    assert Job.read(room / "out" / "job.json").settings["nodes"] == 2
