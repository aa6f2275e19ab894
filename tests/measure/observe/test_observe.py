"""`tonnage observe`: it counts everything that the command did, and leaves nothing behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from support.cli import processes
from support.cli.command import Tonnage
from support.data.copies import replace
from support.stores.disk import ROOT
from tonnage.base import formatting
from tonnage.base.records import Job, Observation, ObservedPhase, Phase, RunRecord, read_table
from tonnage.base.system import cgroups
from tonnage.base.system.processes import read_process
from tonnage.measure.observe.bottleneck import MachineCapacity, find_bottleneck
from tonnage.measure.observe.launch import RunningCommand
from tonnage.measure.observe.phase_boundary import nonnegative_least_squares
from tonnage.measure.observe.phases import split_into_phases
from tonnage.measure.observe.series import DEVICES, SERIES
from tonnage.measure.observe.to_job import find_input_size, to_job

BLKIO = Path("/sys/fs/cgroup/blkio")
SPARK = ROOT / "benches" / ".venv" / "bin" / "python"
PLACES = cgroups.own_groups(
    Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()
)[1]

TWO_PHASES = """
import hashlib, multiprocessing, os, sys, time
def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        hashlib.sha256(bytes(1 << 16)).digest()
if sys.argv[1] == "write":
    with open(sys.argv[2], "wb", buffering=0) as file:
        for _ in range(100):
            file.write(bytes(1 << 20))
            os.fsync(file.fileno())
            time.sleep(0.015)
with multiprocessing.Pool(2) as pool:
    pool.map(work, [2.0, 2.0])
"""
"""Writes 100 MiB, little by little; then two processes compute."""


def observed(
    tonnage: Tonnage, out: Path, *command: str | Path, options: tuple[str, ...] = ()
) -> Observation:
    """Observe a command that succeeds."""
    tonnage.run("observe", "--output", out, *options, "--", *command, check=True)
    return Observation.read(out / "observation.json")


def left_groups() -> list[Path]:
    return [path for place in PLACES for path in place.glob(f"{cgroups.MONITORED_PREFIX}-*")]


# Control groups.

MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
38 31 0:35 /docker/1 /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""


def test_groups_are_made_inside_our_own_groups() -> None:
    first = "8:pids:/\n7:blkio:/docker/1/a\n2:cpu,cpuacct:/b\n0::/\n"
    mounted = Path("/sys/fs/cgroup")
    assert cgroups.own_groups(first, MOUNTS) == (
        1,
        [mounted / "blkio/a", mounted / "cpu,cpuacct/b", mounted / "unified"],
    )
    assert cgroups.own_groups("0::/user.slice\n", MOUNTS) == (2, [mounted / "unified/user.slice"])
    assert cgroups.own_groups("0::/\n", "") == (2, [])


def test_a_version_2_group_is_read(tmp_path: Path) -> None:
    group = cgroups.MonitoredGroup(2, (tmp_path,))
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert group.usage() == cgroups.GroupUsage(cpu_seconds=2.5)
    (tmp_path / "io.stat").write_text(
        "254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n253:0 \n"
    )
    usage = group.usage()
    assert (usage.reads, usage.writes) == (1, 2)
    assert usage.device_bytes == {"254:0": (4096, 8192), "253:0": (0, 0)}
    (tmp_path / "io.pressure").write_text(
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
    )
    assert group.usage().io_waits_seconds == 1.5


def test_groups_of_killed_processes_are_removed(tmp_path: Path) -> None:
    me = read_process(os.getpid())
    assert me
    mine = tmp_path / f"{cgroups.MONITORED_PREFIX}-{os.getpid()}-{me.started}"
    others = [
        tmp_path / f"{cgroups.MONITORED_PREFIX}-{os.getpid()}-{me.started + 1}",
        tmp_path / f"{cgroups.MONITORED_PREFIX}-4194304-5",
    ]
    foreign = tmp_path / f"{cgroups.MONITORED_PREFIX}-x-y"
    for path in (mine, *others, foreign):
        path.mkdir()
    cgroups.remove_stale_groups(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([mine, foreign])


# Phases of a known series.


def series_of(*parts: dict[str, float], interval: float = 0.1) -> dict[str, list[float]]:
    """A series of parts, each with its rates for a number of ``seconds``."""
    series: dict[str, list[float]] = {name: [0.0] for name in SERIES}
    end = 0.0
    for part in parts:
        began, end = end, end + part["seconds"]
        while series["seconds"][-1] < end - 1e-9:
            before = series["seconds"][-1]
            now = min(round(before / interval + 1) * interval, sum(p["seconds"] for p in parts))
            for name in SERIES:
                series[name].append(series[name][-1])
            series["seconds"][-1] = now
            series["host_busy_seconds"][-1] = now
            series["host_idle_seconds"][-1] = now
            # A sample may overlap two parts.
            for each, (low, high) in zip(parts, ranges(parts), strict=True):
                share = max(min(now, high) - max(before, low), 0.0)
                for name in each.keys() - {"seconds", "memory_bytes"}:
                    series[name][-1] += share * each[name]
            series["memory_bytes"][-1] = part.get("memory_bytes", 0.0)
        assert began < end
    return series


def ranges(parts: tuple[dict[str, float], ...]) -> list[tuple[float, float]]:
    found, end = [], 0.0
    for part in parts:
        found.append((end, end + part["seconds"]))
        end += part["seconds"]
    return found


def phases_of(series: dict[str, list[float]]) -> list[ObservedPhase]:
    devices: dict[str, list[Any]] = {name: [] for name in DEVICES}
    for place, seconds in enumerate(series["seconds"]):
        row = dict.fromkeys(DEVICES, 0.0) | {
            "seconds": seconds,
            "device": "vda",
            "read_bytes": series["read_bytes"][place],
            "written_bytes": series["written_bytes"][place],
            "busy_seconds": 0.9 * seconds,
            "waited_seconds": 1.8 * seconds,
        }
        for name, value in row.items():
            devices[name].append(value)
    return split_into_phases(series, devices, MachineCapacity(cores=2, link_bytes_per_second=None))


READS = {"read_bytes": 1e9, "reads": 1000.0, "cpu_seconds": 0.5}


def test_a_step_within_a_sample_is_apportioned() -> None:
    """Bytes are right to 1 %, although a sample is a tenth of the phase."""
    writes = {"written_bytes": 8e8, "writes": 900.0, "cpu_seconds": 1.0}
    found = phases_of(series_of(READS | {"seconds": 1.03}, writes | {"seconds": 1.5}))
    assert [phase.seconds for phase in found] == pytest.approx([1.03, 1.5], abs=0.01)
    assert [phase.read_bytes for phase in found] == pytest.approx([1.03e9, 0], abs=1e7)
    assert [phase.written_bytes for phase in found] == pytest.approx([0, 1.2e9], abs=1e7)
    assert [phase.bottleneck for phase in found] == ["disk: read", "disk: write"]
    assert "vda was busy 90 % of the time" in found[0].why


def test_overlapping_stages_are_separated_by_transfer_size() -> None:
    """The first phase still writes while the second already reads."""
    large, small = {"read_bytes": 1e9, "reads": 1e3}, {"written_bytes": 1e9, "writes": 1e4}
    late, early = {"written_bytes": 1e9, "writes": 1e3}, {"read_bytes": 1e9, "reads": 1e4}
    found = phases_of(
        series_of(
            large | small | {"seconds": 2.0},
            early | small | {"seconds": 0.1},
            early | late | {"seconds": 2.0},
        )
    )
    assert [phase.read_bytes for phase in found] == pytest.approx([2e9, 2.1e9], rel=0.01)
    assert [phase.written_bytes for phase in found] == pytest.approx([2.1e9, 2e9], rel=0.01)


def test_a_first_look_at_the_input_is_part_of_the_work() -> None:
    """Small reads for 0.1 s, then half speed for a while, do not make a phase."""
    look = {"read_bytes": 1e8, "reads": 9000.0, "cpu_seconds": 0.9, "seconds": 0.1}
    warm = {name: rate / 2 for name, rate in READS.items()} | {"seconds": 0.3}
    start = {"cpu_seconds": 1.0, "seconds": 1.0}
    found = phases_of(series_of(start, look, warm, READS | {"seconds": 4.0}))
    assert [phase.grows for phase in found] == [False, True]
    assert found[1].read_bytes == pytest.approx(4.16e9, rel=0.01)


@pytest.mark.parametrize("lasting", [0.1, 0.2, 0.4, 0.8, 1.6])
def test_even_a_short_burst_is_counted_once(lasting: float) -> None:
    still = {"cpu_seconds": 0.1, "seconds": 2.0}
    found = phases_of(series_of(still, READS | {"seconds": lasting}, still))
    assert sum(phase.read_bytes for phase in found) == pytest.approx(lasting * 1e9, rel=1e-6)
    assert sum(phase.seconds for phase in found) == pytest.approx(4 + lasting)


def test_a_phase_with_cpu_work_but_no_reads_grows() -> None:
    """It uses most of the CPU time, on input in the page cache."""
    work = {"cpu_seconds": 2.0, "seconds": 4.0}
    found = phases_of(series_of(work, {"written_bytes": 1e9, "cpu_seconds": 0.5, "seconds": 2.0}))
    assert [phase.grows for phase in found] == [True, True]
    assert find_input_size(found, None) == (
        pytest.approx(2e9, rel=0.01),
        "the bytes that phase-2 has written",
    )
    some = [replace(found[0], read_bytes=1000), found[1]]
    assert find_input_size(some, None)[1] == "the bytes that phase-2 has written"


@pytest.mark.parametrize(
    ("used", "named"),
    [
        ({"cpu": 0.9, "one core": 1.0, "vda": 0.2}, "cpu"),
        ({"cpu": 0.5, "one core": 0.95, "vda": 0.2}, "one core"),
        ({"cpu": 0.3, "one core": 0.5, "vda": 0.75}, "disk: read"),
        ({"cpu": 0.3, "one core": 0.4, "vda": 0.75, "waits for a core": 2.0}, "disk: read"),
        ({"cpu": 0.1, "one core": 0.2, "vda": 0.2, "waits for I/O": 0.9}, "disk: read"),
        ({"cpu": 0.2, "one core": 0.4, "waits for a core": 0.6}, "one core"),
        ({"cpu": 0.3, "one core": 0.3, "waits for a core": 1.4}, "cpu"),
        ({"cpu": 0.2, "one core": 0.4, "vda": 0.4, "waits for I/O": 0.4}, "none: waits"),
        ({"cpu": 0.2, "one core": 0.4, "network": 0.8}, "network"),
    ],
)
def test_the_most_used_resource_is_the_bottleneck(used: dict[str, float], named: str) -> None:
    counts = {"read_bytes": 1e9, "written_bytes": 0.0}
    assert (
        find_bottleneck({"waits for a core": 0.0} | used, counts, MachineCapacity(2, None))[0]
        == named
    )


def test_the_reason_names_other_resources_that_limit_almost_as_much() -> None:
    used = {"cpu": 0.4, "one core": 0.75, "waits for a core": 0.0, "vda": 0.8}
    _, why = find_bottleneck(
        used, {"read_bytes": 1e9, "written_bytes": 1e9}, MachineCapacity(2, None)
    )
    assert "limiting almost as much: its busiest thread's core" in why
    throttled = {
        "cpu": 0.1,
        "one core": 0.2,
        "waits for a core": 0.0,
        "vda": 0.2,
        "waits for I/O": 0.9,
    }
    _, why = find_bottleneck(
        throttled, {"read_bytes": 1e9, "written_bytes": 0.0}, MachineCapacity(2, None)
    )
    assert "not for the device: a rate limit or a network" in why


def test_the_same_work_at_another_speed_is_the_same_phase() -> None:
    slow = {name: rate / 4 for name, rate in READS.items()}
    (only,) = phases_of(series_of(READS | {"seconds": 2.0}, slow | {"seconds": 4.0}))
    assert only.read_bytes == pytest.approx(3e9)


def test_more_cpu_for_the_same_bytes_is_another_phase() -> None:
    found = phases_of(
        series_of(READS | {"seconds": 2.0}, READS | {"cpu_seconds": 1.5, "seconds": 2.0})
    )
    assert [phase.cpu_seconds for phase in found] == pytest.approx([1.0, 3.0], abs=0.05)


def test_a_beginning_that_moves_nothing_does_not_grow() -> None:
    start = {"cpu_seconds": 0.8, "seconds": 1.0}
    found = phases_of(series_of(start, READS | {"seconds": 2.0}, {"seconds": 1.0}))
    assert [phase.grows for phase in found] == [False, True, False]
    size = find_input_size(found, None)
    assert size == (pytest.approx(2e9, rel=0.01), "the bytes that phase-2 has read")
    assert find_input_size(found, 5)[0] == 5


def test_one_sample_is_one_phase() -> None:
    (only,) = phases_of(series_of({"seconds": 0.01, "cpu_seconds": 1.0}))
    assert (only.bottleneck, only.grows) == ("cpu", True)


# The command.


def test_a_command_that_ends_at_once_is_reported_with_its_start() -> None:
    """A late reader gets both lines in one read."""
    status, release = os.pipe()
    running = RunningCommand(os.getpid(), 4711, status, release, "256")
    assert running.poll() and running.exit_code == 1
    running.close()


def test_exit_code_and_streams_are_those_of_the_command(tonnage: Tonnage, tmp_path: Path) -> None:
    done = subprocess.run(
        [tonnage.path, "observe", "--output", tmp_path / "out", "--", "sh", "-c", "cat; exit 7"],
        input="through",
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (7, "through")
    assert "exit code 7" in done.stderr
    seen = Observation.read(tmp_path / "out" / "observation.json")
    assert seen.exit_code == 7 and seen.command == ["sh", "-c", "cat; exit 7"]
    table = read_table(tmp_path / "out" / "series.parquet")
    assert list(table) == [*SERIES] and table["seconds"][0] == 0
    assert left_groups() == []


def test_only_json_goes_to_standard_output(tonnage: Tonnage, tmp_path: Path) -> None:
    done = tonnage.run(
        "observe", "--output", tmp_path / "out", "--json", "--", "echo", "hello", check=True
    )
    assert Observation.from_json(json.loads(done.stdout)).exit_code == 0
    assert done.stderr == "hello\n"


def test_a_command_that_cannot_run_is_an_error(tonnage: Tonnage, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not a program")
    text.chmod(0o755)
    for command, code, message in (
        ("there-is-none", 127, "there-is-none: command not found"),
        (str(tmp_path), 126, "not an executable file"),
        (str(text), 126, "Exec format error"),
    ):
        done = tonnage.run("observe", "--output", tmp_path / "out", "--", command)
        assert (done.returncode, done.stdout) == (code, "")
        assert message in done.stderr and len(done.stderr.splitlines()) == 1
        assert not (tmp_path / "out").exists()
    assert left_groups() == []


def test_errors_name_the_flag_and_the_fix(tonnage: Tonnage, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for args, message in (
        ([], "use either -- COMMAND or --pid PID..."),
        (["--pid", "4194304"], "--pid: process 4194304 does not exist; specify a running process"),
        (["--output", str(tmp_path / "full"), "--", "true"], "use an empty or new directory"),
        (["--interval", "0", "--", "true"], "not a time from 0.01s to 3600s"),
    ):
        done = tonnage.run("observe", *args, cwd=tmp_path)
        assert done.returncode == 2 and message in done.stderr, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_counters_of_another_user_are_refused() -> None:
    script = (
        "import os; os.setuid(65534)\n"
        "from tonnage.measure.observe import monitor\n"
        f"try: monitor._name_of({os.getpid()})\n"
        "except Exception as why: print(why)\n"
    )
    # Import first: the user nobody may not read the package.
    script = "import tonnage.measure.observe.monitor\n" + script
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert f"no permission to read /proc/{os.getpid()}/io" in said and "as root" in said


def test_results_are_the_same_without_a_control_group(disk: Path, monkeypatch: Any) -> None:
    """As a user who may not make one."""
    script = (
        "import sys\n"
        "from tonnage.base.system import cgroups\n"
        "def refuse(): raise PermissionError(13, 'Permission denied')\n"
        "cgroups.make_monitored_group = refuse\n"
        "from tonnage.cli.main import main\n"
        "main()\n"
    )
    write = f"dd if=/dev/zero of={disk}/file bs=1M count=32 oflag=direct; sleep 0.3"
    out = disk / "out"
    subprocess.run(
        [sys.executable, "-c", script, "observe", "--output", out, "--", "sh", "-c", write],
        check=True,
        capture_output=True,
    )
    seen = Observation.read(out / "observation.json")
    assert seen.control_group == "none: Permission denied"
    assert sum(phase.written_bytes for phase in seen.phases) == pytest.approx(32 << 20, rel=0.02)


def test_every_descendant_is_counted(tonnage: Tonnage, disk: Path) -> None:
    """Short processes; a daemon whose parent has ended; bytes to the page cache."""
    one = "dd if=/dev/zero of={} bs=1M count=8 status=none"
    command = "; ".join(one.format(disk / f"short-{number}") for number in range(4))
    command += f"; (setsid sh -c '{one.format(disk / 'daemon')}; sleep 0.2' &) ; sleep 0.6"
    seen = observed(tonnage, disk / "out", "sh", "-c", command)
    written = sum(phase.written_bytes for phase in seen.phases)
    assert written == pytest.approx(5 * (8 << 20), rel=0.02)


def test_a_signal_is_passed_on_and_the_observation_is_written(
    tonnage: Tonnage, tmp_path: Path
) -> None:
    command = "trap 'echo got it; exit 3' INT; touch ready; while :; do sleep 0.05; done"
    out = tmp_path / "out"
    with processes.started(
        [tonnage.path, "observe", "--output", out, "--", "sh", "-c", command], cwd=tmp_path
    ) as running:
        running.wait_until((tmp_path / "ready").exists)
        code, said, _ = running.end(signal.SIGINT)
    assert (code, said) == (3, "got it\n")
    assert Observation.read(out / "observation.json").exit_code == 3


def test_running_processes_can_be_observed(tonnage: Tonnage, disk: Path) -> None:
    marker = disk / "run while here"
    marker.touch()
    writing = f"dd if=/dev/zero of={disk}/file bs=1M count=4 oflag=direct status=none"
    command = f"while [ -e '{marker}' ]; do {writing}; done"
    with processes.started(["sh", "-c", command]) as job:
        job.wait_until((disk / "file").exists)
        before = read_process(job.pid)
        assert before
        out = disk / "out"
        watching = [tonnage.path, "observe", "--output", out, "--pid", str(job.pid)]
        with processes.started(watching) as running:
            running.wait_until(lambda: (out / "series.csv").exists())
            time.sleep(1.5)
            assert len((out / "series.csv").read_text().splitlines()) > 1  # Written by now.
            code, _, said = running.end(signal.SIGINT)
        assert code == 0, said
        assert job.process.poll() is None
        marker.unlink()
        job.process.wait()  # Its writer ends with it, before the directory is removed.
    seen = Observation.read(out / "observation.json")
    assert seen.exit_code is None and seen.pids == [job.pid]
    assert sum(phase.written_bytes for phase in seen.phases) > 0
    assert "still running when SIGINT ended" in " ".join(seen.notes)


def test_an_observation_ends_with_the_processes(tonnage: Tonnage, tmp_path: Path) -> None:
    with processes.started(["sleep", "1"]) as job:
        done = tonnage.run(
            "observe", "--output", tmp_path / "out", "--pid", str(job.pid), check=True, timeout=60
        )
        assert "no bottleneck on this machine" in done.stderr
        job.process.wait()


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes control groups")
def test_a_killed_observation_leaves_its_series_and_the_next_removes_its_group(
    tonnage: Tonnage, tmp_path: Path
) -> None:
    command = f"echo $$ > {tmp_path}/pid; touch {tmp_path}/ready; sleep 60"
    out = tmp_path / "out"
    with processes.started(
        [tonnage.path, "observe", "--output", out, "--", "sh", "-c", command]
    ) as running:
        running.wait_until((tmp_path / "ready").exists)
        series = out / "series.csv"
        running.wait_until(lambda: series.exists() and series.read_text().count("\n") > 5)
        running.process.kill()
        running.process.wait()
        assert left_groups() != [] or not PLACES
        tonnage.run("observe", "--output", tmp_path / "next", "--", "true", check=True)
        assert left_groups() == []
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_pipe_that_one_core_limits(tonnage: Tonnage, disk: Path) -> None:
    command = f"dd if=/dev/urandom bs=1M count=60 status=none | gzip -9 > {disk}/zipped"
    for number in range(3):  # A stall of the host splits a phase in two.
        out = disk / f"out-{number}"
        seen = observed(tonnage, out, "sh", "-c", command, options=("--data", "60MiB"))
        main = max(seen.phases, key=lambda phase: phase.seconds)
        if main.seconds > 0.8 * seen.seconds:
            break
    assert main.seconds > 0.8 * seen.seconds
    assert main.bottleneck == "one core", main
    assert main.written_bytes == pytest.approx(60 << 20, rel=0.03)
    assert main.network_sent_bytes == main.loopback_bytes == 0  # It holds no socket.
    job = Job.read(out / "job.json")
    assert job.seen_bytes == 60 << 20
    cpu = sum(d.per_byte for p in job.phases for d in p.demands if d.resource == "cpu")
    assert cpu == pytest.approx(sum(p.cpu_seconds for p in seen.phases) / (60 << 20), rel=0.1)


WITHIN = 0.05
"""Where other processes take the cores, some bytes of a pass are counted to what follows it."""


@pytest.mark.slow
def test_the_sort_comes_out_as_its_own_probes_have_it(tonnage: Tonnage, disk: Path) -> None:
    """Each pass's bytes; a test below has the bottleneck, with a throttled disk.

    Both passes read and write at the disk's speed, so operations and CPU tell them apart. The sort
    reads a sample of its input first, which an observer cannot tell from the first pass.
    """
    tonnage.run("gensort", "20000000", disk / "input", check=True)
    for _ in range(3):  # A host that stands still where they meet may hide the border.
        record, seen = observed_sort(tonnage, disk)
        sample, *probed = [phase for phase in record.phases if phase.name != "sort"]
        assert [phase.name for phase in probed] == ["pass_one", "pass_two"]
        one, two = ([probe["read"], probe["write"]] for probe in map(moved, probed))
        one[0] += moved(sample)["read"]
        growing = [phase for phase in seen.phases if phase.grows]
        # A disk that changes its speed makes more phases of a pass: they are its together.
        borders = [
            place
            for place in range(1, len(growing))
            if passed(growing[:place]) == pytest.approx(one, rel=WITHIN)
        ]
        if borders:
            break
        shutil.rmtree(disk / "sorted")
        shutil.rmtree(disk / "out")
    assert borders, seen.phases
    border = borders[0]
    assert passed(growing[border:]) == pytest.approx(two, rel=WITHIN)
    job = Job.read(disk / "out" / "job.json")
    # Before and after its passes a job may wait for the machine, which takes no more for more data.
    kept = [phase for phase in job.phases if not phase.fixed_seconds]
    assert [phase.name for phase in kept] == [phase.name for phase in growing]
    for part in (kept[:border], kept[border:]):
        for resource in ("local read", "local write"):
            demands = [
                demand.per_byte
                for phase in part
                for demand in phase.demands
                if demand.resource == resource
            ]
            assert sum(demands) == pytest.approx(1, rel=WITHIN)


@pytest.mark.slow
@pytest.mark.skipif(
    os.getuid() != 0 or not BLKIO.exists(), reason="only root limits a disk, by blkio"
)
def test_a_sort_that_the_disk_limits(tonnage: Tonnage, disk: Path) -> None:
    """The kernel holds it to a speed that it would exceed: so the truth is known.

    The limit is met in front of the device, and holds in the group that is made inside.
    """
    size, speed = 200_000_000, 60_000_000
    tonnage.run("gensort", str(size // 100), disk / "input", check=True)
    with held_back(disk, speed) as group:
        record, seen = observed_sort(tonnage, disk, "sh", "-c", ENTER, group / "cgroup.procs")
    everything = sum(phase.read_bytes for phase in seen.phases)
    main = [phase for phase in seen.phases if phase.read_bytes > 0.1 * everything]
    assert sum(phase.seconds for phase in main) > 0.75 * 2 * size / speed  # It may begin faster.
    probed = [phase for phase in record.phases if phase.name in ("pass_one", "pass_two")]
    (named,) = {formatting.bottleneck(phase.bottleneck, moved(phase)) for phase in probed}
    assert {formatting.resource(phase.bottleneck) for phase in main} == {named}, main


ENTER = 'echo 0 > "$0"; exec "$@"'
"""Enters a control group before it becomes a command."""


@contextmanager
def held_back(disk: Path, bytes_per_second: int) -> Iterator[Path]:
    """A control group whose members read and write the disk no faster than that."""
    number = os.stat(disk).st_dev
    entry = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    whole = entry.parent if (entry / "partition").exists() else entry
    group = BLKIO / f"tonnage-test-{os.getpid()}"
    group.mkdir()
    try:
        for way in ("read", "write"):
            rule = f"{(whole / 'dev').read_text().strip()} {bytes_per_second}"
            (group / f"blkio.throttle.{way}_bps_device").write_text(rule)
        yield group
    finally:
        group.rmdir()


def observed_sort(
    tonnage: Tonnage, disk: Path, *before: str | Path
) -> tuple[RunRecord, Observation]:
    """A sort of ``disk / "input"``, as its probes and as ``tonnage observe`` saw it."""
    places = ("--output", disk / "sorted", "--scratch", disk / "scratch")
    sort = (tonnage.path, "run", "sort", disk / "input", *places, "--memory", "64MiB", "--json")
    done = subprocess.run(
        [*before, tonnage.path, "observe", "--output", disk / "out", "--", *sort],
        check=True,
        capture_output=True,
        text=True,
    )
    record = RunRecord.from_json(json.loads(done.stdout))
    return record, Observation.read(disk / "out" / "observation.json")


def passed(seen: Sequence[ObservedPhase]) -> list[int]:
    """Bytes that were read and written in all of them."""
    return [sum(each.read_bytes for each in seen), sum(each.written_bytes for each in seen)]


def moved(phase: Phase) -> dict[str, int]:
    """Bytes of each stage."""
    return {stage.name: stage.bytes for stage in phase.stages}


@pytest.mark.slow
def test_phases_of_a_job_of_several_processes(tonnage: Tonnage, disk: Path) -> None:
    script = disk / "two.py"
    script.write_text(TWO_PHASES)
    seen = observed(tonnage, disk / "out", sys.executable, script, "write", disk / "file")
    # The disk may change its speed while writing, which makes several phases.
    writes = [phase.written_bytes > 2 << 20 for phase in seen.phases]
    last = max(place for place, each in enumerate(writes) if each)
    written = sum(phase.written_bytes for phase in seen.phases[: last + 1])
    assert written == pytest.approx(100 << 20, rel=0.03)
    computing = max(seen.phases[last + 1 :], key=lambda phase: phase.cpu_seconds)
    # Where other programs have cores, it gets no more than one of them.
    assert computing.bottleneck in ("cpu", "one core"), seen.phases
    assert computing.seconds > 1


@pytest.mark.skipif(not SPARK.exists(), reason="PySpark is set up by benches/sort_peers/setup.sh")
def test_phases_of_a_pyspark_job(tonnage: Tonnage, disk: Path) -> None:
    """It starts a JVM, reading at most its jars, and then works in the JVM's processes."""
    script = (
        "from pyspark.sql import SparkSession\n"
        "s = SparkSession.builder.master('local[2]').config('spark.local.dir', '.').getOrCreate()\n"
        "s.range(12_000_000).selectExpr('id', 'hash(id) as key').repartition(8, 'key')"
        ".sortWithinPartitions('key').write.parquet('made')\n"
        "s.stop()\n"
    )
    seen = observed(tonnage, disk / "out", "env", "-C", disk, SPARK, "-c", script)
    written = sum(phase.written_bytes - phase.cancelled_bytes for phase in seen.phases)
    files = sum(file.stat().st_size for file in (disk / "made").glob("*.parquet"))
    assert 2 <= len(seen.phases) <= 12, seen.phases
    # The shuffle is written, too, and is larger than the final files.
    assert 0.97 * files <= written <= 6 * files
    assert any(phase.grows for phase in seen.phases)
    busiest = max(seen.phases, key=lambda phase: phase.cpu_seconds)
    assert busiest.cpu_seconds > 1
    assert busiest.peak_memory_bytes > 200 << 20


def test_a_job_keeps_fixed_times_and_single_core_limits() -> None:
    seen = Observation.read(
        ROOT / "tests" / "support" / "recorded" / "artifacts" / "observation-1.json"
    )
    work = replace(
        seen.phases[0], name="work", grows=True, seconds=8.0, cpu_seconds=9.0, bottleneck="one core"
    )
    start = replace(work, name="start", grows=False, seconds=3.0)
    end = replace(work, name="end", bottleneck="cpu")
    job = to_job("j", replace(seen, phases=[start, work, end], input_bytes=10**9))
    assert job is not None
    assert [(each.name, each.fixed_seconds, each.most_cores) for each in job.phases] == [
        ("start", 3.0, None),
        ("work", 0.0, 9 / 8),
        ("end", 0.0, None),
    ]
    assert job.phases[0].demands == [] and job.phases[1].demands == job.phases[2].demands


AMOUNTS = st.integers(0, 1_000).map(lambda value: value / 100)


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS), min_size=2, max_size=8))
def test_nonnegative_least_squares_match_scipy(rows: list[tuple[float, ...]]) -> None:
    *columns, wanted = np.array(rows).T
    both = np.column_stack(columns)
    weights, (_, residual) = nonnegative_least_squares(both, wanted), nnls(both, wanted)
    assert np.all(weights >= 0)
    assert np.linalg.norm(both @ weights - wanted) == pytest.approx(residual, rel=1e-6, abs=1e-6)
