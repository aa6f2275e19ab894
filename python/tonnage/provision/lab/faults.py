"""Inject faults into a node of a lab, and heal them.

    cut-link    the switch's port is down, as if the cable were out
    slow-link   the link has a fraction of its rate, both ways
    slow-disk   all disks have a fraction of their rates
    fill-disk   a file fills the node's file systems
    kill        all processes are killed

Faults accumulate, and healing removes all of them. Ray is restarted where it was killed or ended
during a long cut. If the head of a cluster is lost, all nodes get a new cluster.
"""

import errno
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import cast

from msgspec import structs

from tonnage.base.system import Command, RunError, UsageError
from tonnage.base.system.block_devices import loop_devices
from tonnage.base.system.cgroups import kill_all
from tonnage.base.system.netns import (
    forget_neighbours_command,
    rate_limit_commands,
    wire_rate,
)
from tonnage.base.system.undo_journal import run_command
from tonnage.provision.lab import ray_cluster
from tonnage.provision.lab.lifecycle import find_node, lab_lock
from tonnage.provision.lab.nodes import Node, switch_namespace
from tonnage.provision.lab.record import STATE_DIR, FaultKind, LabRecord, require_up
from tonnage.provision.lab.throttling import (
    controllers,
    device_number,
    group_directories,
    throttle_steps,
)

FAULTS = ("cut-link", "slow-disk", "slow-link", "fill-disk", "kill")
SLOWDOWNS = ("slow-disk", "slow-link")
"""Faults with a factor."""
GONE = {"cut-link", "kill"}
"""With one of these the cluster gives the node up."""
BRIEF_SECONDS = 20.0
"""After so short a cut TCP retransmits before the node is given up."""
VERDICT_SECONDS = 75.0
"""By then Ray has decided: it probes five times with a timeout of 10 s."""
FACTOR = 4.0
FILLER = ".tonnage-fill"
MIN_FILL_BYTES = 4096


def inject_fault(
    lab: str | None, name: str, kind: str, factor: float | None, room: Path = STATE_DIR
) -> LabRecord:
    """Inject a fault into a node and return the lab's record.

    ``factor`` says how many times slower a fault of `SLOWDOWNS` makes it, `FACTOR` by default.

    Raises:
        UsageError: There is no such lab, node or fault, or the fault does not apply to the node.
        RunError: It failed.
    """
    if kind not in FAULTS:
        raise UsageError(f"unknown fault {kind}; use one of {', '.join(FAULTS)}")
    if factor is not None and kind not in SLOWDOWNS:
        raise UsageError(
            f"only {' and '.join(SLOWDOWNS)} have a factor, but {kind} has none", setting="factor"
        )
    with lab_lock(room) as lock:
        record = require_up(room, lab)
        node = find_node(record, name, room)
        _refuse_nothing_to(kind, node)
        times = (factor or FACTOR) if kind in SLOWDOWNS else None
        of_node = dict(record.faults.get(name, {}))
        of_node[cast(FaultKind, kind)] = times
        cut: dict[str, float] = {name: time.monotonic()} if kind == "cut-link" else {}
        # Record first: a recorded fault that is not there does less harm than the opposite.
        record = structs.replace(
            record, faults={**record.faults, name: of_node}, cut_since=cut | record.cut_since
        ).save(room)
        _apply(kind, node, record.config.name, times or 1.0, partial(run_command, lock))
        return record


def heal_node(
    lab: str | None, name: str, on_wait: ray_cluster.OnWait, room: Path = STATE_DIR
) -> LabRecord:
    """Heal all faults of a node and return the lab's record.

    Raises:
        UsageError: There is no such lab or node.
        RunError: It failed.
    """
    with lab_lock(room) as lock:
        record = require_up(room, lab)
        node = find_node(record, name, room)
        of_lab, run = record.config.name, partial(run_command, lock)
        _link(node, of_lab, "up", run)
        for each in record.nodes(room):
            # Who tried to reach a node over the cut link would still fail for seconds.
            run(forget_neighbours_command(each.namespace))
        if node.machine.link_bytes_per_second is not None:
            _slow_link(node, of_lab, 1.0, run)
        _slow_disk(node, 1.0, run)
        for mount in node.mounts:
            (mount / FILLER).unlink(missing_ok=True)
        others = {each: faults for each, faults in record.faults.items() if each != name}
        cuts = {each: since for each, since in record.cut_since.items() if each != name}
        healed = structs.replace(record, faults=others, cut_since=cuts).save(room)
        there = _with_ray(healed, room)
    if not there:
        return healed
    if name in record.cut_since:
        # Without the lock, for other labs: wait until the cluster has decided about the node.
        cut_seconds = time.monotonic() - record.cut_since[name]
        if cut_seconds > BRIEF_SECONDS:
            time.sleep(max(VERDICT_SECONDS - cut_seconds, 0.0))
    with lab_lock(room) as lock:
        healed = require_up(room, of_lab)
        if there := _with_ray(healed, room):
            run = partial(run_command, lock)
            return ray_cluster.start_on_nodes(healed, there, run, on_wait, room)
        return healed


def _with_ray(record: LabRecord, room: Path) -> list[Node]:
    """The nodes that should run Ray: none if the lab has none, or while its head is gone."""
    nodes = record.nodes(room)
    there = [each for each in nodes if not GONE & record.faults.get(each.name, {}).keys()]
    return there if record.ray_address and nodes[0] in there else []


def _refuse_nothing_to(what: str, node: Node) -> None:
    if what == "slow-link" and node.machine.link_bytes_per_second is None:
        raise UsageError(
            f"{node.name} has no link_mb_per_s, so its link cannot be slowed; set it in the "
            "lab file"
        )
    if what == "slow-disk" and not node.has_limited_disks:
        raise UsageError(
            f"{node.name} has no disk with rates, so no disk can be slowed; set read_mb_per_s or "
            "write_mb_per_s in the lab file"
        )
    if what == "fill-disk" and not node.mounts:
        raise UsageError(
            f"{node.name} has no disk with a file system to fill; set fs of a disk in the lab file"
        )


def _apply(what: str, node: Node, lab: str, factor: float, run: Callable[[Command], str]) -> None:
    if what == "cut-link":
        _link(node, lab, "down", run)
    elif what == "slow-link":
        _slow_link(node, lab, factor, run)
    elif what == "slow-disk":
        _slow_disk(node, factor, run)
    elif what == "fill-disk":
        for mount in node.mounts:
            _fill(mount / FILLER)
    else:
        kill_all(group_directories(node, controllers().values()))


def _link(node: Node, lab: str, state: str, run: Callable[[Command], str]) -> None:
    run(("ip", "-n", switch_namespace(lab), "link", "set", f"port{node.number}", state))


def _slow_link(node: Node, lab: str, factor: float, run: Callable[[Command], str]) -> None:
    rate = wire_rate((node.machine.link_bytes_per_second or 0.0) / factor)
    switch = switch_namespace(lab)
    for command in rate_limit_commands(node.namespace, switch, node.number, max(rate, 1)):
        run(command)


def _slow_disk(node: Node, factor: float, run: Callable[[Command], str]) -> None:
    io, attached = controllers().get("io"), loop_devices()
    for each in node.devices:
        device = attached.get(each.image)
        if io is None or device is None:
            continue
        for step in throttle_steps(io, node.group, device_number(device), each.disk, factor):
            run(step.command)


def _fill(file: Path) -> None:
    """Allocate a file of all the free space without writing it."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        about = os.fstatvfs(handle)
        size, more = os.fstat(handle).st_size, about.f_bfree * about.f_frsize
        while more >= MIN_FILL_BYTES:
            try:
                os.posix_fallocate(handle, size, more)
                size += more
            except OSError as why:
                if why.errno != errno.ENOSPC:
                    raise RunError(f"cannot fill {file}: {why.strerror}") from why
                more //= 2
    finally:
        with suppress(OSError):
            os.fsync(handle)
        os.close(handle)
