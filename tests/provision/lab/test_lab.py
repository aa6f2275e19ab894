"""A lab: what its file may say, that it is as fast as it says, and that nothing of it stays behind.

``TONNAGE_LAB_CYCLES`` sets how often it is killed, by turns while it comes up and goes down.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.cli.command import Tonnage
from support.cli.processes import PATIENCE_SECONDS, started
from support.data.copies import replace
from support.lab import checks
from support.lab.checks import needs_lab
from tonnage.base import core
from tonnage.base.system import block_devices
from tonnage.base.system.cgroups import processes_in
from tonnage.base.system.netns import NAMESPACES, rate_limit_commands, wire_rate
from tonnage.catalog import load_catalog
from tonnage.provision.lab import STATE_DIR, faults, lifecycle, preflight, ray_cluster, record
from tonnage.provision.lab.catalog import write
from tonnage.provision.lab.config import DiskConfig, LabConfig, parse
from tonnage.provision.lab.nodes import Node, lab_nodes
from tonnage.provision.lab.ray_cluster import start_arguments
from tonnage.provision.lab.steps import steps
from tonnage.provision.lab.throttling import (
    Controller,
    controllers,
    cpu_quota,
    create_groups,
    enable_controllers,
    throttle_steps,
)

MB = 1_000_000
LINK, SLOW_LINK = 40, 20
READ, WRITE, SLOW_DISK, IOPS = 60, 40, 30, 200
CPUS = 0.5
TRUE = 0.03
"""How far a rate may be from what was set."""
CYCLES = int(os.environ.get("TONNAGE_LAB_CYCLES", "20"))

FILE = f"""
[lab]
name = "test-lab"

[[machine]]
type = "fast"
price_usd_per_hour = 1.0
cpus = {CPUS}
link_mb_per_s = {LINK}
disks = [{{ size = "320MiB", read_mb_per_s = {READ}, write_mb_per_s = {WRITE} }}]

[[machine]]
type = "slow.2x"
count = 1
price_usd_per_hour = 0.25
link_mb_per_s = {SLOW_LINK}
disks = [{{ size = "64MiB", read_mb_per_s = {SLOW_DISK}, write_iops = {IOPS}, fs = "ext4" }},
         {{ size = "16MiB", fs = "none" }}]
"""
TINY = """
[lab]
name = "test-tiny"
[[machine]]
type = "a"
count = 2
price_usd_per_hour = 1
cpus = 1
link_mb_per_s = 10
disks = [{ size = "16MiB", read_mb_per_s = 10, write_mb_per_s = 10, fs = "ext4" }]
"""

FIRST = {
    "cpu": Controller("cpu", 1, Path("/cg/cpu")),
    "io": Controller("io", 1, Path("/cg/blkio")),
}
SECOND = {name: Controller(name, 2, Path("/cg")) for name in ("cpu", "io")}


def described(text: str = FILE) -> LabConfig:
    return parse(text, "lab.toml")


def nodes(text: str = FILE, network: int = 0) -> list[Node]:
    return lab_nodes(described(text), network, Path("/room/test-lab"))


def test_a_file_is_machines_with_defaults() -> None:
    lab = described()
    fast, slow = lab.machines
    assert (lab.name, fast.type, fast.count, fast.cpus) == ("test-lab", "fast", 1, CPUS)
    assert fast.link_bytes_per_second == LINK * MB
    assert fast.disks == (DiskConfig(320 << 20, "xfs", READ * MB, WRITE * MB),)
    assert (slow.cpus, slow.price_usd_per_hour) == (None, 0.25)
    assert slow.disks == (
        DiskConfig(64 << 20, "ext4", SLOW_DISK * MB, write_operations_per_second=200),
        DiskConfig(16 << 20, "none"),
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[lab]", "[lab", r"lab.toml: .*line 2.*: fix the TOML"),
        ('name = "test-lab"', "", r'lab.name: is missing: write name = "..."'),
        ('"test-lab"', '"a.b"', r"lab.name: 'a.b' is not a name: use letters"),
        ('"test-lab"', '"ends-in-"', r"lab.name: 'ends-in-' is not a name"),
        ('"test-lab"', '"../../etc"', r"lab.name: .* is not a name"),
        ('"test-lab"', '"a-name-of-13l"', r"lab.name: .* is too long: the limit is 12"),
        ("[lab]", "[lap]", r"lab: is missing: add a table \[lab\]"),
        ("price_usd_per_hour = 1.0", "", r"machine\[0\].price_usd_per_hour: is missing"),
        (
            "price_usd_per_hour = 1.0",
            "price_usd_per_hour = 0",
            r"price_usd_per_hour: 0 is out of range",
        ),
        (f"cpus = {CPUS}", 'cpus = "all"', r"machine\[0\].cpus: 'all' is not a number"),
        (f"cpus = {CPUS}", "cpus = nan", r"machine\[0\].cpus: nan is not a number"),
        (f"cpus = {CPUS}", "cpus = true", r"machine\[0\].cpus: True is not a number"),
        (f"cpus = {CPUS}", "cpu = 1", r"machine\[0\].cpu: unknown key \(did .* cpus\?\)"),
        ("count = 1", "count = 1.5", r"machine\[1\].count: 1.5 is not a whole number"),
        ("count = 1", "count = 0", r"machine\[1\].count: 0 is out of range: 1 to"),
        ("count = 1", "count = 200", r"machine: 201 nodes in total"),
        ("slow.2x", "fast", r"machine\[1\].type: fast appears twice"),
        ("320MiB", "32MiB", r"machine\[0\].disks\[0\].size: xfs needs at least 300 MiB"),
        ("320MiB", "lots", r"disks\[0\].size: 'lots' is not a size: write it like"),
        ('fs = "ext4"', 'fs = "fat"', r"disks\[0\].fs: 'fat' is unknown: write one of xfs"),
        ('fs = "none"', 'fs = "none", sizes = 1', r"sizes: unknown key .*mean size\?"),
        ('disks = [{ size = "320MiB"', 'disks = [3, { size = "1"', r"is not a list of tables"),
        ("write_iops = 200", "write_iops = -1", r"disks\[0\].write_iops: -1 is out of range: 1 to"),
    ],
)
def test_a_mistake_names_the_key_and_what_to_write(old: str, new: str, told: str) -> None:
    assert old in FILE
    with pytest.raises(core.UsageError, match=told) as why:
        described(FILE.replace(old, new, 1))
    assert "\n" not in str(why.value) and str(why.value).startswith("lab.toml: ")


def test_a_lab_has_machines() -> None:
    with pytest.raises(core.UsageError, match=r"machine: is missing: add a \[\[machine\]\]"):
        described('[lab]\nname = "empty"')


def test_labs_and_nodes_have_names_of_their_own() -> None:
    first = nodes()
    assert [node.name for node in first] == ["fast-0", "slow.2x-0"]
    assert [node.address for node in first] == ["198.18.0.1", "198.18.0.2"]
    assert first[1].mounts == [Path("/room/test-lab/slow.2x-0.disk-0")]
    others = nodes(FILE.replace("test-lab", "test").replace("fast", "lab-fast"), network=1)
    names = [
        {node.namespace for node in each}
        | {node.group for node in each}
        | {node.address for node in each}
        for each in (first, others)
    ]
    assert not names[0] & names[1]


def test_a_rate_is_of_payload() -> None:
    # A full packet of 1500 bytes has 1448 of payload, and Ethernet's 14 come on top.
    assert wire_rate(1448) == 8 * 1514
    ends = rate_limit_commands("node", "switch", 3, wire_rate(40e6))
    assert [(each[2], each[6]) for each in ends] == [("node", "eth0"), ("switch", "port3")]
    assert {each[each.index("rate") + 1] for each in ends} == {f"{wire_rate(40e6)}bit"}


def test_limits_of_both_versions() -> None:
    disk = DiskConfig(1 << 30, "xfs", 60 * MB, 40 * MB, write_operations_per_second=200)
    second = [line(step.command) for step in throttle_steps(SECOND["io"], "g", "7:1", disk, 2.0)]
    assert second == ["7:1 rbps=30000000 wbps=20000000 wiops=100 > /cg/g/io.max"]
    first = [line(step.command) for step in throttle_steps(FIRST["io"], "g", "7:1", disk, 1.0)]
    assert first == [
        "7:1 60000000 > /cg/blkio/g/blkio.throttle.read_bps_device",
        "7:1 40000000 > /cg/blkio/g/blkio.throttle.write_bps_device",
        "7:1 40000000 > /cg/blkio/blkio.throttle.write_bps_device",
        "7:1 200 > /cg/blkio/g/blkio.throttle.write_iops_device",
        "7:1 200 > /cg/blkio/blkio.throttle.write_iops_device",
    ]
    assert [line(each) for each in cpu_quota(SECOND["cpu"], "g", 0.5)] == [
        "10000 20000 > /cg/g/cpu.max"
    ]
    assert [line(each) for each in cpu_quota(FIRST["cpu"], "g", 1.5)] == [
        "20000 > /cg/cpu/g/cpu.cfs_period_us",
        "30000 > /cg/cpu/g/cpu.cfs_quota_us",
    ]
    assert line(cpu_quota(SECOND["cpu"], "g", None)[0]) == "max 20000 > /cg/g/cpu.max"
    assert line(cpu_quota(FIRST["cpu"], "g", None)[1]) == "-1 > /cg/cpu/g/cpu.cfs_quota_us"
    # No group is made twice where one hierarchy has both.
    groups = create_groups(nodes()[0], SECOND.values())
    assert [step.command[0] for step in groups] == ["mkdir", "sh"]


def line(command: Sequence[str]) -> str:
    """What a command writes where."""
    *_, text, file = command
    return f"{text} > {file}"


def test_controllers_of_either_version_are_found(tmp_path: Path) -> None:
    top = tmp_path / "unified"
    top.mkdir()
    (top / "cgroup.controllers").write_text("cpu io memory\n")
    second = f"41 31 0:38 / {top} rw,relatime - cgroup2 cgroup2 rw\n"
    first = "38 31 0:35 / /cg/blkio rw - cgroup cgroup rw,blkio\n"
    assert controllers(second) == {
        name: Controller(name, 2, top) for name in ("cpu", "io", "memory")
    }
    assert [line(each) for each in enable_controllers(controllers(second).values())] == [
        f"+{name} > {top}/cgroup.subtree_control" for name in ("cpu", "io", "memory")
    ]
    (top / "cgroup.controllers").write_text("cpu hugetlb\n")
    assert controllers(second + first) == {
        "cpu": Controller("cpu", 2, top),
        "io": Controller("io", 1, Path("/cg/blkio")),
    }
    assert controllers("") == {}


def test_a_limit_that_stands_is_found_in_the_top_group(tmp_path: Path) -> None:
    top, disk = Controller("io", 1, tmp_path), DiskConfig(1 << 30, "xfs", None, 40 * MB)
    [undo] = [undo for step in throttle_steps(top, "g", "7:1", disk, 1.0) for undo in step.undos]
    for limits, said in (("7:1 40000000\n7:11 3\n", "7:1\n"), ("7:11 40000000\n", ""), ("", "")):
        (tmp_path / "blkio.throttle.write_bps_device").write_text(limits)
        done = subprocess.run(undo.question, capture_output=True, text=True, check=True)
        assert done.stdout == said
    assert undo.answers == ("7:1",)


@pytest.mark.parametrize("known", [FIRST, SECOND])
def test_whatever_outlasts_the_lab_is_undone(known: dict[str, Controller]) -> None:
    loops = iter(f"/dev/loop{number}" for number in range(9))
    plan = list(steps("test-lab", nodes(), known, lambda: next(loops), lambda device: device[-1]))
    for step in plan:
        made = step.command[:3] == ("ip", "netns", "add") or step.command[0] in (
            *("fallocate", "losetup", "mkdir", "mount"),
        )
        of_the_top = step.command[-1].startswith("/cg/blkio/blkio.")
        assert bool(step.undos) == (made or of_the_top), step.command
    made_file_systems = [step.command for step in plan if step.command[0].startswith("mkfs.")]
    assert [each[0] for each in made_file_systems] == ["mkfs.xfs", "mkfs.ext4"]
    # A discard would give back the space that the files have taken.
    assert "-K" in made_file_systems[0] and "nodiscard" in made_file_systems[1][-2]
    # Limits come last: a file system is made as fast as the machine can.
    first = [step.command[0] for step in plan].index("mkfs.xfs")
    assert not any(
        "throttle" in step.command[-1] or "io.max" in step.command[-1] for step in plan[:first]
    )


def test_its_machines_are_offers(tmp_path: Path) -> None:
    catalog = load_catalog(write(tmp_path, described()))
    assert (catalog.provider, catalog.region) == ("lab", "test-lab")
    fast, slow = catalog.offers
    assert fast.on_demand and fast.on_demand.usd_per_hour == 1.0
    assert (fast.vcpus, fast.network.baseline_bytes_per_second) == (CPUS, LINK * MB)
    assert fast.disks and fast.disks[0].read_bytes_per_second == READ * MB
    assert fast.local_bytes == 320 << 20
    assert slow.disks and (slow.disks[0].count, slow.disks[0].bytes_each) == (2, None)
    assert (slow.local_bytes, slow.vcpus) == (80 << 20, None)


def test_ray_tells_each_node_apart() -> None:
    head, worker = (start_arguments(node, "198.18.0.1:6379", Path("/ray")) for node in nodes())
    assert "--head" in head and "--address=198.18.0.1:6379" in worker
    assert "--num-cpus=1" in head
    assert "--node-name=slow.2x-0" in worker
    assert "--labels=provider=lab,machine-type=slow.2x" in worker
    assert not {each for each in head if "/ray" in each} & set(worker)


def test_all_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preflight.os, "geteuid", lambda: 0)
    monkeypatch.setattr(preflight.shutil, "which", lambda name: None if "mkfs" in name else name)
    with pytest.raises(
        core.UsageError, match=r"mkfs.xfs is missing \(install xfsprogs\); mkfs.ext4"
    ):
        preflight.check_machine(nodes(), FIRST)
    monkeypatch.setattr(preflight, "_fails", lambda command: "no" if "bridge" in command else "")
    monkeypatch.setattr(preflight, "LOOP_CONTROL", Path("/dev/none"))
    monkeypatch.setattr(preflight, "KERNEL_MOUNTS", tmp_path / "filesystems")
    (tmp_path / "filesystems").write_text("nodev\tproc\n\text4\n")
    module = tmp_path / "modprobe"
    module.write_text("#!/bin/sh\nexit 1\n")
    module.chmod(0o755)
    monkeypatch.setattr(preflight.shutil, "which", lambda name: str(tmp_path / name))
    with pytest.raises(core.UsageError) as why:
        preflight.check_machine(nodes(), {"cpu": SECOND["cpu"]})
    for told in ("CONFIG_BRIDGE", "limits device rates", "/dev/none is missing", "CONFIG_XFS_FS"):
        assert told in str(why.value)
    for fine in ("CONFIG_VETH", "CFS_BANDWIDTH", "CONFIG_EXT4_FS"):
        assert fine not in str(why.value)
    module.write_text('#!/bin/sh\n[ "$*" = "--dry-run --quiet fs-xfs" ]\n')
    with pytest.raises(core.UsageError) as why:
        preflight.check_machine(nodes(), {"cpu": SECOND["cpu"]})
    assert "CONFIG_XFS_FS" not in str(why.value)
    with pytest.raises(core.UsageError, match="no control groups are mounted"):
        preflight.check_machine(nodes(), {})
    monkeypatch.setattr(preflight.os, "geteuid", lambda: 1000)
    with pytest.raises(core.UsageError, match="only root may create a lab"):
        preflight.check_machine(nodes(), FIRST)


def test_a_lab_of_before_a_reboot_does_not_stand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record.LabRecord(FILE, 0, record.this_boot(), is_whole=True).save(tmp_path)
    assert record.require_up(tmp_path, None).config == described()
    assert record.free_network(tmp_path) == 1
    monkeypatch.setattr(record, "this_boot", lambda: "another")
    with pytest.raises(core.UsageError, match="went with a reboot"):
        record.require_up(tmp_path, None)
    record.LabRecord(TINY, 1, "another").save(tmp_path)
    with pytest.raises(core.UsageError, match="labs test-lab, test-tiny are up: say which"):
        record.require_up(tmp_path, None)
    with pytest.raises(core.UsageError, match="test-tiny is not whole"):
        record.require_up(tmp_path, "test-tiny")
    with pytest.raises(core.UsageError, match="--lab none: there is no such lab"):
        record.require_up(tmp_path, "none")


def test_what_somebody_else_has_mounted_is_not_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lifecycle.os, "geteuid", lambda: 0)
    monkeypatch.setattr(lifecycle, "controllers", dict)  # Nor is a lab of this name that is up.
    room = tmp_path / "room"
    record.LabRecord(TINY, 0, record.this_boot()).save(room)
    theirs = room / "test-tiny" / "their own"
    theirs.mkdir()
    mounts = tmp_path / "mounts"
    mounts.write_text(f"7 1 0:3 / {str(theirs).replace(' ', chr(92) + '040')} rw - tmpfs none rw\n")
    monkeypatch.setattr(block_devices, "MOUNT_INFO", mounts)
    with pytest.raises(core.RunError, match=f"{theirs} is mounted in the lab's directory"):
        lifecycle.down("test-tiny", room)
    assert theirs.is_dir()
    mounts.write_text("7 1 0:3 / /elsewhere rw - tmpfs none rw\n")
    assert lifecycle.down("test-tiny", room) == "test-tiny" and not room.exists()


def test_who_is_on_a_node_changes_no_lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lifecycle.os, "geteuid", lambda: 0)
    monkeypatch.setattr(lifecycle, "OWN_GROUPS", tmp_path / "cgroup")
    (tmp_path / "cgroup").write_text("4:cpu:/tonnage-lab.test-tiny.a-0\n0::/\n")
    room = tmp_path / "room"
    room.mkdir()
    with pytest.raises(core.UsageError, match="is on a lab's node"):
        lifecycle.down(None, room)
    (tmp_path / "cgroup").write_text("4:cpu:/\n0::/\n")
    assert lifecycle.down(None, room) is None and not room.exists()


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
    assert tonnage.run("lab", "down", check=True).stdout == "No lab was up.\n"
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
    assert "a lab test-lab with other machines is up" in again.stderr
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
        (("fast-0", "melt"), "there is no such fault"),
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
        assert "say which with --lab" in tonnage.run("lab", "status").stderr
        assert said(tonnage, "status", "--lab", "test-other") == ups[1]
        # As if the machine had been started anew: what is up is made again, whole.
        noted = STATE_DIR / "test-tiny" / "lab.json"
        values = json.loads(noted.read_text())
        noted.write_text(json.dumps(values | {"boot": "before"}))
        assert (
            "went with a reboot"
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


@pytest.mark.slow
def test_while_ray_starts_a_node_has_all_cores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = TINY.replace("cpus = 1", "cpus = 0.5")
    (tmp_path / "test-tiny").mkdir()
    quota: dict[str, str] = {}

    def run(command: Sequence[str]) -> str:
        if "quota" in (file := command[-1]):
            quota[Path(file).parent.name.rpartition(".")[2]] = command[-2]
        return ""

    seen = []

    def start(some: Sequence[Node], *_: object) -> None:
        seen.append([quota[node.name] for node in some])
        if some[0].number:
            raise KeyboardInterrupt

    monkeypatch.setattr(ray_cluster, "controllers", lambda: {"cpu": FIRST["cpu"]})
    monkeypatch.setattr(ray_cluster, "_program", lambda: "/ray")
    monkeypatch.setattr(ray_cluster, "_start", start)
    there = record.LabRecord(text, 0, record.this_boot(), is_whole=True)
    with pytest.raises(KeyboardInterrupt):
        ray_cluster.start_on_nodes(
            there, there.nodes(tmp_path), run, lambda done, of: None, tmp_path
        )
    assert seen == [["-1"], ["-1"]]
    assert quota == {"a-0": "10000", "a-1": "10000"}


def cut_and_healed(
    monkeypatch: pytest.MonkeyPatch, room: Path, noted: record.LabRecord, cut_seconds: float
) -> tuple[list[str], float]:
    """The nodes on which Ray is to run after a node is healed, and how long that waited."""
    found: list[str] = []
    waited: list[float] = []

    def start_on_nodes(
        noted: record.LabRecord, nodes: Sequence[Node], *_: object
    ) -> record.LabRecord:
        found.extend(node.name for node in nodes)
        return noted

    noted.write(room)
    monkeypatch.setattr(lifecycle.os, "geteuid", lambda: 0)
    monkeypatch.setattr(faults, "execute", lambda lock, command: "")
    monkeypatch.setattr(faults, "controllers", dict)
    monkeypatch.setattr(ray_cluster, "start_on_nodes", start_on_nodes)
    monkeypatch.setattr(faults, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    faults.inject_fault(None, "a-1", "cut-link", None, room)

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        with lifecycle.lab_lock(room):
            pass  # The lock is free while this waits.

    clock = SimpleNamespace(monotonic=lambda: 1000.0 + cut_seconds, sleep=sleep)
    monkeypatch.setattr(faults, "time", clock)
    healed = faults.heal_node(None, "a-1", lambda done, of: None, room)
    assert "a-1" not in healed.faults and healed.cut_since == {}
    return found, sum(waited)


@pytest.mark.slow
def test_a_cluster_may_give_a_node_up_after_its_link_is_healed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    healed = partial(cut_and_healed, monkeypatch, tmp_path / "room")
    there = record.LabRecord(
        TINY, 0, record.this_boot(), is_whole=True, ray_address="198.18.0.1:6379"
    )
    for cut_seconds, waited in ((5.0, 0.0), (40.0, 35.0), (90.0, 0.0)):
        assert healed(there, cut_seconds) == (["a-0", "a-1"], waited)
    # Without Ray there is nothing to wait for, nor while its head is gone.
    assert healed(replace(there, ray_address=None), 40.0) == ([], 0.0)
    assert healed(replace(there, faults={"a-0": {"kill": None}}), 40.0) == ([], 0.0)
    of_three = replace(
        there, text=TINY.replace("count = 2", "count = 3"), faults={"a-2": {"kill": None}}
    )
    assert healed(of_three, 5.0) == (["a-0", "a-1"], 0.0)


def test_without_ray_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster.shutil, "which", lambda name: None)
    monkeypatch.setenv("TONNAGE_RAY", "/no/ray")
    with pytest.raises(core.UsageError, match="TONNAGE_RAY=/no/ray: there is no such program"):
        ray_cluster._program()
    monkeypatch.delenv("TONNAGE_RAY")
    monkeypatch.setattr(ray_cluster.sys, "executable", "/no/python")
    with pytest.raises(core.UsageError, match="there is no ray: install it"):
        ray_cluster._program()


def test_rays_own_python_is_found(tmp_path: Path) -> None:
    program = tmp_path / "ray"
    program.write_text("#!/usr/bin/env python3\nimport ray\n")
    assert ray_cluster._python(str(program)) == ["/usr/bin/env", "python3"]
    # What pip writes where the path of the environment is too long for a first line.
    program.write_text("#!/bin/sh\n'''exec' /long/python\n' '''\nimport ray\n")
    assert ray_cluster._python(str(program)) == [sys.executable]
    (tmp_path / "python").touch()
    assert ray_cluster._python(str(program)) == [str(tmp_path / "python")]


def test_a_cluster_that_does_not_answer_has_no_nodes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "ray"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setattr(ray_cluster, "nsenter_command", lambda node, command: ["sleep", "600"])
    monkeypatch.setattr(ray_cluster, "join_groups", lambda groups: None)
    monkeypatch.setattr(ray_cluster, "ANSWER_SECONDS", 0.1)
    there = record.LabRecord(TINY, 0, "", ray_address="198.18.0.1:6379", ray_program=str(program))
    assert ray_cluster._alive(there, nodes(TINY)[0], tmp_path) == []
