"""A real lab: as fast as it says, with faults, and nothing of it stays behind.

``TONNAGE_LAB_CYCLES`` sets how often it is killed, by turns while it comes up and goes down.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.cli.command import Tonnage
from support.cli.processes import PATIENCE_SECONDS, started
from support.lab import checks
from support.lab.checks import needs_lab
from support.lab.configs import (
    CPUS,
    FILE,
    IOPS,
    READ,
    SLOW_DISK,
    SLOW_LINK,
    TINY,
    WRITE,
)
from tonnage.base.system.cgroups import processes_in
from tonnage.base.system.netns import NAMESPACES
from tonnage.catalog import load_catalog
from tonnage.provision.lab import STATE_DIR
from tonnage.provision.lab.throttling import (
    controllers,
)

MB = 1_000_000

TRUE = 0.03
"""How far a rate may be from what was set."""
CYCLES = int(os.environ.get("TONNAGE_LAB_CYCLES", "20"))


@pytest.fixture
def untouched() -> Iterator[None]:
    """This machine is in the end as it was."""
    with checks.untouched():
        yield


def on(lab: Tonnage, node: str, *command: str | Path, check: bool = True) -> str:
    """What a command prints on a node."""
    done = lab.run("lab", "exec", node, "--", *command, check=check)
    return done.stdout.strip()


def said(lab: Tonnage, *args: str | Path) -> Any:
    """What a lab's command tells as JSON."""
    return json.loads(lab.run("lab", *args, "--json", check=True).stdout)


RECEIVE = """
import socket, sys, time
with socket.create_server(("", 5001)) as server:
    print("ready", flush=True)
    peer, _ = server.accept()
    got, began, marks = 0, None, []
    while data := peer.recv(1 << 20):
        began = began or time.monotonic()
        got += len(data)
        marks.append((time.monotonic(), got))
# The first third fills buckets and windows.
first = next(mark for mark in marks if mark[0] >= began + (marks[-1][0] - began) / 3)
print((marks[-1][1] - first[1]) / (marks[-1][0] - first[0]))
"""
SEND = """
import socket, sys, time
with socket.create_connection((sys.argv[1], 5001)) as peer:
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        peer.sendall(bytes(1 << 18))
"""
DISK = """
import mmap, os, sys, time
path, way, seconds, block_bytes = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
block, count = mmap.mmap(-1, block_bytes), 16
handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
if os.fstat(handle).st_size < count * block_bytes:
    for number in range(count):  # What was never written is read without the device.
        os.pwritev(handle, [block], number * block_bytes)
act = os.pwritev if way == "write" else os.preadv
done, marks, began = 0, [], time.monotonic()
while (now := time.monotonic()) < began + seconds:
    act(handle, [block], done % count * block_bytes)
    done += 1
    marks.append((time.monotonic(), done * block_bytes))
first = next(mark for mark in marks if mark[0] >= began + seconds / 4)
print((marks[-1][1] - first[1]) / (marks[-1][0] - first[0]))
"""
REACH = """
import socket, sys
socket.create_connection((sys.argv[1], 1), 0.7)
"""
"""Is refused if there is a way, since nobody listens."""
BURN = """
import time
began, busy = time.monotonic(), time.process_time()
while time.monotonic() < began + 1.5:
    pass
print((time.process_time() - busy) / (time.monotonic() - began))
"""


def assert_about(measure: Callable[[], float], wanted: float, within: float = TRUE) -> None:
    """A rate is what was set; whatever else this machine does may spoil it twice."""
    seen: list[float] = []
    while not seen or (abs(seen[-1] / wanted - 1) > within and len(seen) < 3):
        seen.append(measure())
    assert seen[-1] == pytest.approx(wanted, rel=within), seen


def rate_between(lab: Tonnage, source: str, to: str, address: str, seconds: float = 2.0) -> float:
    """MB/s of TCP payload from one node to another."""
    receiving = [lab.path, "lab", "exec", to, "--", sys.executable, "-c", RECEIVE]
    with started(receiving) as receiver:
        assert receiver.process.stdout is not None
        assert receiver.process.stdout.readline() == "ready\n"
        on(lab, source, sys.executable, "-c", SEND, address, str(seconds))
        out, _ = receiver.process.communicate(timeout=PATIENCE_SECONDS)
    return float(out) / MB


def disk_rate(lab: Tonnage, node: str, path: Path, way: str, block: int = 1 << 20) -> float:
    """MB/s of a node's disk, past the page cache."""
    args = [str(path), way, "3", str(block)]
    return float(on(lab, node, sys.executable, "-c", DISK, *args)) / MB


@pytest.fixture
def lab(tonnage: Tonnage, tmp_path: Path, untouched: None) -> Iterator[dict[str, Any]]:
    """The lab of FILE, as `lab up` prints it."""
    file = tmp_path / "lab.toml"
    file.write_text(FILE)
    made = said(tonnage, "up", file)
    try:
        yield made
    finally:
        assert said(tonnage, "down") == {"name": "test-lab"}
    assert tonnage.run("lab", "down", check=True).stdout == "No lab was running.\n"
    assert tonnage.run("lab", "status").returncode == 2


@needs_lab
def test_nodes_run_commands_until_a_fault_and_after_it(
    tonnage: Tonnage, tmp_path: Path, lab: dict[str, Any]
) -> None:
    fast, slow = lab["nodes"]
    _assert_known(tonnage, tmp_path / "lab.toml", lab)
    _assert_commands_run_there(tonnage, fast)
    _assert_faults_are_made_and_mended(tonnage, fast, slow)


@needs_lab
@pytest.mark.slow
def test_rates_are_as_set_before_during_and_after_a_fault(
    tonnage: Tonnage, lab: dict[str, Any]
) -> None:
    fast, slow = lab["nodes"]
    _assert_as_fast_as_set(tonnage, fast, slow)
    _assert_faults_slow_down_by_their_factor(tonnage, fast, slow)


def _assert_known(tonnage: Tonnage, file: Path, made: dict[str, Any]) -> None:
    assert said(tonnage, "up", file) == said(tonnage, "status") == made
    other = file.with_name("other.toml")
    other.write_text(FILE.replace("cpus = 0.5", "cpus = 0.6"))
    again = tonnage.run("lab", "up", other)
    assert (again.returncode, again.stdout) == (2, "")
    assert "a different lab named test-lab is running" in again.stderr
    assert [(each["node"], each["price_usd_per_hour"]) for each in made["nodes"]] == [
        ("fast-0", 1.0),
        ("slow.2x-0", 0.25),
    ]
    assert [offer.type for offer in load_catalog(Path(made["catalog"])).offers] == [
        "fast",
        "slow.2x",
    ]
    listed = tonnage.run("catalog", "ls", made["catalog"], check=True).stdout
    assert "slow.2x" in listed
    sorts = ["plan", "sort", "--data", "1GB", "--catalog", made["catalog"], "--survey", "--json"]
    assert tonnage.run(*sorts, check=True).stdout


def _assert_commands_run_there(tonnage: Tonnage, fast: dict[str, Any]) -> None:
    here = on(tonnage, "fast-0", "ip", "-4", "-brief", "address", "show", "eth0")
    assert f"{fast['address']}/24" in here
    for command, code in (
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -TERM $$"], -signal.SIGTERM),
        (["no-such-program"], 127),
        ([fast["disks"][0]["path"] + "/"], 126),
    ):
        done = tonnage.run("lab", "exec", "fast-0", "--", *command)
        assert done.returncode == code, done.stderr
    assert (
        "lab test-lab has no node fast-1"
        in tonnage.run("lab", "exec", "fast-1", "--", "true").stderr
    )
    burn = [sys.executable, "-c", BURN]
    assert_about(lambda: float(on(tonnage, "fast-0", *burn)), CPUS, 0.05)


def _assert_as_fast_as_set(tonnage: Tonnage, fast: dict[str, Any], slow: dict[str, Any]) -> None:
    # In either direction, the slower link counts.
    for source, to in ((fast, slow), (slow, fast)):
        ends = (source["node"], to["node"], to["address"])
        assert_about(partial(rate_between, tonnage, *ends), SLOW_LINK)
    file = Path(fast["disks"][0]["path"]) / "data"
    for way, rate in (("write", WRITE), ("read", READ)):
        assert_about(partial(disk_rate, tonnage, "fast-0", file, way), rate)
    other = Path(slow["disks"][0]["path"])
    of_slow = partial(disk_rate, tonnage, "slow.2x-0")
    assert_about(partial(of_slow, other / "data", "read"), SLOW_DISK)
    small = IOPS * 4096 / MB
    assert_about(partial(of_slow, other / "small", "write", 4096), small)
    bare = Path(slow["disks"][1]["path"])
    assert bare.is_block_device() and of_slow(bare, "read") > READ


def _assert_faults_are_made_and_mended(
    tonnage: Tonnage, fast: dict[str, Any], slow: dict[str, Any]
) -> None:
    mount = Path(fast["disks"][0]["path"])
    reach = [sys.executable, "-c", REACH, slow["address"]]
    refused = "ConnectionRefusedError"
    assert refused in tonnage.run("lab", "exec", "fast-0", "--", *reach).stderr

    said(tonnage, "fault", "fast-0", "cut-link")
    assert refused not in tonnage.run("lab", "exec", "fast-0", "--", *reach).stderr
    said(tonnage, "fault", "fast-0", "slow-disk", "--factor", "3")
    said(tonnage, "fault", "fast-0", "fill-disk")
    with pytest.raises(OSError, match="No space left"):
        (mount / "more").write_bytes(bytes(1 << 20))
    with started([tonnage.path, "lab", "exec", "fast-0", "--", "sleep", "600"]) as sleeper:
        sleeper.wait_until(lambda: said(tonnage, "status")["nodes"][0]["processes"] == 1)
        told = said(tonnage, "fault", "fast-0", "kill")
        assert sleeper.process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    assert told["processes"] == 0
    assert [(each["fault"], each["factor"]) for each in told["faults"]] == [
        ("cut-link", None),
        ("slow-disk", 3.0),
        ("fill-disk", None),
        ("kill", None),
    ]

    assert said(tonnage, "heal", "fast-0")["faults"] == []
    assert refused in tonnage.run("lab", "exec", "fast-0", "--", *reach).stderr
    (mount / "more").write_bytes(bytes(1 << 20))
    for args, why in (
        (("fast-0", "melt"), "unknown fault melt"),
        (("fast-0", "kill", "--factor=2"), "--factor: only slow-disk and slow-link have a factor"),
        (("none-0", "kill"), "has no node none-0"),
    ):
        done = tonnage.run("lab", "fault", *args)
        assert done.returncode == 2 and why in done.stderr


def _assert_faults_slow_down_by_their_factor(
    tonnage: Tonnage, fast: dict[str, Any], slow: dict[str, Any]
) -> None:
    file = Path(fast["disks"][0]["path"]) / "data"
    of_fast = partial(disk_rate, tonnage, "fast-0", file, "read")
    said(tonnage, "fault", "fast-0", "slow-disk", "--factor", "3")
    assert_about(of_fast, READ / 3)
    said(tonnage, "heal", "fast-0")
    assert_about(of_fast, READ)

    between = partial(rate_between, tonnage, "fast-0", "slow.2x-0", slow["address"])
    said(tonnage, "fault", "slow.2x-0", "slow-link", "--factor", "2")
    assert_about(between, SLOW_LINK / 2)
    said(tonnage, "heal", "slow.2x-0")
    assert_about(between, SLOW_LINK)


@pytest.mark.slow
@needs_lab
def test_killed_at_any_moment_nothing_stays_behind(
    tonnage: Tonnage, tmp_path: Path, untouched: None
) -> None:
    before, tops = checks.machine(), list(controllers().values())
    file = tmp_path / "lab.toml"
    file.write_text(TINY)
    began = time.monotonic()
    tonnage.run("lab", "up", file, check=True)
    up_seconds = time.monotonic() - began
    began = time.monotonic()
    tonnage.run("lab", "down", check=True)
    seconds = {"up": up_seconds, "down": time.monotonic() - began}
    dice = random.Random(5)
    for cycle in range(CYCLES):
        verb = ("up", "down")[cycle % 2]
        if verb == "down":
            tonnage.run("lab", "up", file, check=True)
            holder = subprocess.Popen([tonnage.path, "lab", "exec", "a-1", "--", "sleep", "600"])
            groups = [each.top / "tonnage-lab.test-tiny.a-1" for each in tops]
            while holder.pid not in processes_in(groups[:1]) & processes_in(groups[-1:]):
                assert holder.poll() is None
                time.sleep(0.01)
        args = [tonnage.path, "lab", verb, *([file] if verb == "up" else [])]
        with started(args) as running:
            time.sleep(dice.uniform(0.0, seconds[verb]))
            running.end(signal.SIGKILL)
        tonnage.run("lab", "down", check=True)
        assert checks.machine() == before, (cycle, verb)
        if verb == "down":
            assert holder.wait(PATIENCE_SECONDS) == -signal.SIGKILL


@pytest.mark.slow
@needs_lab
def test_interrupted_it_undoes_what_it_made(
    tonnage: Tonnage, tmp_path: Path, untouched: None
) -> None:
    file = tmp_path / "lab.toml"
    file.write_text(TINY)
    with started([tonnage.path, "lab", "up", file]) as running:
        running.wait_until(lambda: (NAMESPACES / "lab.test-tiny.a-0").exists())
        code, out, err = running.end(signal.SIGINT)
    assert (code, out) == (130, "") and "interrupted" in err
    assert not STATE_DIR.exists()


@pytest.mark.slow
@needs_lab
def test_two_labs_and_one_that_a_crash_has_cut_short(
    tonnage: Tonnage, tmp_path: Path, untouched: None
) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text(TINY)
    second.write_text(TINY.replace("test-tiny", "test-other"))
    ups = [said(tonnage, "up", file) for file in (first, second)]
    try:
        addresses = [{node["address"] for node in up["nodes"]} for up in ups]
        assert not addresses[0] & addresses[1]
        assert "several labs are running" in tonnage.run("lab", "status").stderr
        assert said(tonnage, "status", "--lab", "test-other") == ups[1]
        # As if the machine had been started anew: what is up is made again, whole.
        noted = STATE_DIR / "test-tiny" / "lab.json"
        values = json.loads(noted.read_text())
        noted.write_text(json.dumps(values | {"boot": "before"}))
        assert (
            "was lost in a reboot"
            in tonnage.run("lab", "exec", "--lab", "test-tiny", "a-0", "--", "true").stderr
        )
        again = said(tonnage, "up", first)
        assert [node["node"] for node in again["nodes"]] == ["a-0", "a-1"]
        assert said(tonnage, "status", "--lab", "test-tiny") == again
    finally:
        for name in ("test-tiny", "test-other"):
            tonnage.run("lab", "down", "--lab", name, check=True)


@pytest.mark.slow
@needs_lab
def test_ray_is_on_every_node(tonnage: Tonnage, tmp_path: Path, untouched: None) -> None:
    file = tmp_path / "lab.toml"
    file.write_text(TINY.replace("cpus = 1\n", ""))
    tonnage.run("lab", "up", file, check=True)
    try:
        told = said(tonnage, "ray")
        assert told == {"address": "198.18.0.1:6379", "head": "a-0"}
        assert said(tonnage, "ray") == told
        # A worker comes back to its cluster; with the head there is a new one.
        for node in ("a-1", "a-0"):
            said(tonnage, "fault", node, "kill")
            said(tonnage, "heal", node)
            assert said(tonnage, "ray") == told
        assert all(node["processes"] > 1 for node in said(tonnage, "status")["nodes"])
    finally:
        tonnage.run("lab", "down", check=True)
