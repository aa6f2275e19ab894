"""A lab with Ray whose nodes have their own disks, and real faults of its nodes.

Each node's Ray runs in a mount namespace without the others' disks, so a lost node's data is
invisible to all. A disk fails when its loop device is shortened by LOOP_SET_STATUS64 with a size
limit (loop(4)): the kernel answers reads and writes beyond it with EIO, and when that hits the log,
XFS shuts the file system down. Truncating the device's file would not do: a write in flight would
extend it again, with zeros in between.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from support.cli.processes import PATIENCE_SECONDS, RunningCommand
from support.lab.checks import untouched
from tonnage.base.system import RunError
from tonnage.base.system.block_devices import loop_devices, mount_steps
from tonnage.base.system.cgroups import kill_all, processes_in
from tonnage.provision import lab
from tonnage.provision.lab import STATE_DIR
from tonnage.provision.lab.enter_node import join_groups, nsenter_command
from tonnage.provision.lab.faults import FILLER
from tonnage.provision.lab.nodes import Node, switch_namespace
from tonnage.provision.lab.ray_cluster import RAYLET, VARIABLE, environment
from tonnage.provision.lab.throttling import controllers, group_directories

LAB = "test-faults"
NODES = 4
DISK, LINK = 25, 60
"""In MB/s: slow enough that a pass takes a while."""
FILE = f"""
[lab]
name = "{LAB}"
[[machine]]
type = "n"
count = {NODES}
price_usd_per_hour = 1
cpus = 1
link_mb_per_s = {LINK}
disks = [{{ size = "320MiB", read_mb_per_s = {DISK}, write_mb_per_s = {DISK} }}]
"""
QUICK = {
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "5",
}
"""Ray notices a dead node within seconds."""
ALONE = """#!/bin/sh
# Starts Ray on a node, without the disks of the other nodes.
for each; do case $each in --node-name=*) node=${each#*=} ;; esac; done
export node
exec unshare --mount sh -c '
for disk in DISKS/*.disk-*; do
    case ${disk##*/} in "$node".disk-*) continue ;; esac
    if mountpoint -q "$disk"; then umount "$disk"; fi
done
exec PROGRAM "$@"' ray "$@"
"""
SECTOR_BYTES = 512
WRITTEN = 6
"""The index of sectors written in a device's ``stat`` (Documentation/block/stat.rst)."""
AGENT = b"ray::TwoPassWorker"
BLOCK_BYTES = 4096
LOOP_SET_STATUS64, LOOP_GET_STATUS64 = 0x4C04, 0x4C05
LOOP_INFO64 = struct.Struct("5Q4I64s64s32s2Q")
"""``struct loop_info64`` of linux/loop.h."""
LO_SIZELIMIT = 4


class FaultyLab:
    """The running lab; node 0 is Ray's head."""

    def __init__(self) -> None:
        self.nodes = lab.require_up(STATE_DIR, LAB).nodes(STATE_DIR)
        attached = loop_devices()
        self._devices = {each.name: attached[each.devices[0].image] for each in self.nodes}

    @property
    def disk(self) -> str:
        """The path of a node's disk, with a placeholder for its name."""
        return str(STATE_DIR / LAB / "{node}.disk-0")

    @property
    def written_bytes(self) -> int:
        """The bytes that all disks have written so far."""
        stats = (Path("/sys/block", Path(each).name, "stat") for each in self._devices.values())
        return sum(int(stat.read_text().split()[WRITTEN]) * SECTOR_BYTES for stat in stats)

    @contextmanager
    def start_on_head(self, command: list[str | Path]) -> Iterator[RunningCommand]:
        """Start a command on the head, and kill it at the end if it still runs."""
        head = self.nodes[0]
        process = subprocess.Popen(
            nsenter_command(head, [str(each) for each in command]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment(lab.require_up(STATE_DIR, LAB)),
            preexec_fn=partial(join_groups, _groups(head)),
        )
        with process:
            try:
                yield RunningCommand(process)
            finally:
                process.kill()

    # Faults.

    def kill_agent(self, number: int) -> None:
        """Kill the node's sort worker."""
        os.kill(self._agent(self.nodes[number]), signal.SIGKILL)

    def freeze_agent(self, number: int) -> None:
        """Stop the node's sort worker without ending it."""
        os.kill(self._agent(self.nodes[number]), signal.SIGSTOP)

    def kill_raylet(self, number: int) -> None:
        """Kill the node's Ray process; its workers end when they notice."""
        for process in self._named(self.nodes[number], RAYLET.encode()):
            os.kill(process, signal.SIGKILL)

    def kill_all(self, number: int) -> None:
        """Kill all processes of the node at once."""
        kill_all(_groups(self.nodes[number]))

    def cut(self, number: int) -> None:
        """Take down the node's port of the switch."""
        _run("ip", "-n", switch_namespace(LAB), "link", "set", f"port{number}", "down")

    def cut_pair(self, one: int, other: int) -> None:
        """Cut the connection between two nodes; all others still reach both."""
        for here, there in ((one, other), (other, one)):
            node = self.nodes[here]
            route = ("route", "add", "blackhole", f"{self.nodes[there].address}/32")
            _run("ip", "-n", node.namespace, *route)

    def fill(self, number: int) -> None:
        """Fill the node's disk."""
        lab.inject_fault(LAB, self.nodes[number].name, "fill-disk", None)

    def break_disk(self, number: int, left: float) -> None:
        """Make the node's disk fail beyond a share of its blocks."""
        node = self.nodes[number]
        size = node.devices[0].disk.size_bytes
        _limit(self._devices[node.name], int(size * left) // BLOCK_BYTES * BLOCK_BYTES)

    # Repairs.

    def restore_pair(self, one: int, other: int) -> None:
        """Reconnect two nodes."""
        for here, there in ((one, other), (other, one)):
            with suppress(subprocess.CalledProcessError):
                node = self.nodes[here]
                address = f"{self.nodes[there].address}/32"
                _run("ip", "-n", node.namespace, "route", "delete", "blackhole", address)

    def free(self, number: int) -> None:
        """Free the node's disk."""
        for mount in self.nodes[number].mounts:
            (mount / FILLER).unlink(missing_ok=True)

    def restart(self, number: int) -> None:
        """Restart the node with its link and a new Ray; its disk keeps its data."""
        _run("ip", "-n", switch_namespace(LAB), "link", "set", f"port{number}", "up")
        kill_all(_groups(self.nodes[number]))
        with suppress(RunError):
            return _start_ray()
        _start_ray()  # On a busy machine the first attempt may fail.

    def restore_disk(self, number: int) -> None:
        """Repair the node's disk, with its data; the node is down until `restart`."""
        node = self.nodes[number]
        kill_all(_groups(node))
        (each,) = node.devices
        for _ in range(100):  # Namespaces are removed a little after their processes.
            with suppress(subprocess.CalledProcessError):
                _run("umount", each.mount)
                break
            time.sleep(0.1)
        _limit(self._devices[node.name], 0)
        _, mount = mount_steps(each.disk.file_system, [self._devices[node.name]], each.mount)
        _run(*mount.command)

    # Debugging.

    def thread_stacks(self) -> str:
        """What each worker's threads wait for, to debug a hang."""
        lines = []
        for node in self.nodes:
            for process in self._named(node, AGENT):
                for task in sorted(Path(f"/proc/{process}/task").iterdir()):
                    with suppress(OSError):
                        name, stack = (task / "comm").read_text(), (task / "stack").read_text()
                        top = " < ".join(line.split()[-1] for line in stack.splitlines()[:3])
                        lines.append(f"{node.name} {process} {name.strip()}: {top}")
        return "\n".join(lines)

    def _agent(self, node: Node) -> int:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if found := self._named(node, AGENT):
                return max(found)
            time.sleep(0.01)
        raise AssertionError(f"no agent on {node.name}")

    def _named(self, node: Node, name: bytes) -> list[int]:
        found = []
        for process in sorted(processes_in(_groups(node))):
            with suppress(OSError):
                said = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]
                if Path(os.fsdecode(said)).name.startswith(os.fsdecode(name)):
                    found.append(process)
        return found


@contextmanager
def faulty_lab(room: Path) -> Iterator[FaultyLab]:
    """Run the lab with Ray; its files are in the caller's directory."""
    file, program = room / "lab.toml", room / "ray"
    file.write_text(FILE)
    installed = str(Path(sys.executable).parent / "ray")
    program.write_text(ALONE.replace("DISKS", str(STATE_DIR / LAB)).replace("PROGRAM", installed))
    program.chmod(0o755)
    before = dict(os.environ)
    with untouched():
        try:
            os.environ.update(QUICK, **{VARIABLE: str(program)})
            lab.up(file, lambda *_: None)
            _start_ray()
            yield FaultyLab()
        finally:
            lab.down(LAB)
            os.environ.clear()
            os.environ.update(before)


def _start_ray() -> None:
    lab.start_ray(LAB, lambda *_: None)


def _groups(node: Node) -> list[Path]:
    return group_directories(node, controllers().values())


def _limit(device: str, size_bytes: int) -> None:
    """Set the end of a loop device; 0 is the end of its file."""
    handle = os.open(device, os.O_RDONLY)
    try:
        about = bytearray(LOOP_INFO64.size)
        fcntl.ioctl(handle, LOOP_GET_STATUS64, about)
        values = list(LOOP_INFO64.unpack(about))
        values[LO_SIZELIMIT] = size_bytes
        fcntl.ioctl(handle, LOOP_SET_STATUS64, LOOP_INFO64.pack(*values))
    finally:
        os.close(handle)


def _run(*command: Any) -> str:
    done = subprocess.run(
        [str(each) for each in command], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()
