"""Create, describe and remove labs.

The record and the undo of each step are written before the step: after a crash, `down` or the next
`up` knows everything that may exist. Removal first lifts device limits, then kills all processes,
which may wait for those devices, then undoes the journal.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import formatting
from tonnage.base.records.io import read_regular
from tonnage.base.system import Change, RunError, UndoJournal, UsageError, locked_room
from tonnage.base.system.block_devices import loop_devices, mounts_below, uses_page_cache
from tonnage.base.system.cgroups import kill_all, processes_in
from tonnage.base.system.undo_journal import run_command
from tonnage.provision.lab import catalog
from tonnage.provision.lab.build_steps import count, steps
from tonnage.provision.lab.config import parse
from tonnage.provision.lab.nodes import GROUP, Device, Node, group_pattern, lab_nodes
from tonnage.provision.lab.preflight import check_machine
from tonnage.provision.lab.record import (
    STATE_DIR,
    LabRecord,
    free_network,
    read_record,
    require_up,
    select_lab,
    this_boot,
)
from tonnage.provision.lab.throttling import (
    controllers,
    device_number,
    group_directories,
    remove_throttles,
)

OWN_GROUPS = Path("/proc/self/cgroup")
OWNER = "tonnage lab"
DOWN = "tonnage lab down"
PATIENCE_SECONDS = 60.0
"""How long to wait for another command, which may be starting Ray on all nodes."""

OnStep = Callable[[int, int], None]
"""Called with the number of finished steps and of all steps."""


def up(file: Path, on_step: OnStep, room: Path = STATE_DIR) -> LabRecord:
    """Create a lab, after removing leftovers of the same name; keep it if it is up already.

    Raises:
        UsageError: The file is invalid, this machine cannot create the lab, or a different lab of
            this name is up.
        RunError: A step failed; the lab is removed.
    """
    text = _text(file)
    wanted = parse(text, str(file))
    name = wanted.name
    with lab_lock(room) as lock:
        found = read_record(room, name)
        if found and found.is_up:
            if found.config == wanted:
                return found
            raise UsageError(
                f"{file}: a different lab named {name} is running; remove that lab with "
                "tonnage lab down, or rename this one"
            )
        known, network = controllers(), free_network(room)
        nodes = lab_nodes(wanted, network, room / name)
        check_machine(nodes, known)
        _refuse_full(nodes, room / name)
        _clear(room, name, lock)
        made = LabRecord(text, network, this_boot()).save(room)
        journal = _journal(room, name, lock)
        plan = steps(
            name, nodes, known, lambda: journal.execute(("losetup", "--find")), device_number
        )
        try:
            journal.apply(_reporting(plan, count(nodes, known), on_step))
            catalog.write(room / name, made.config)
            return structs.replace(made, is_whole=True).save(room)
        except BaseException:
            _clear(room, name, lock)
            raise


def down(name: str | None, room: Path = STATE_DIR) -> str | None:
    """Remove a lab, complete or not; return its name, or ``None`` if there was none.

    Raises:
        UsageError: There is none of this name, or several and no name.
        RunError: A step could not be undone; it stays in the journal.
    """
    if not room.is_dir():
        return None
    with lab_lock(room) as lock:
        name = select_lab(room, name)
        if name is not None:
            _clear(room, name, lock)
        return name


def find_node(record: LabRecord, name: str, room: Path = STATE_DIR) -> Node:
    """Find a node by name.

    Raises:
        UsageError: There is none of this name.
    """
    nodes = {node.name: node for node in record.nodes(room)}
    if name not in nodes:
        lab, meant = record.config.name, formatting.did_you_mean(name, nodes)
        raise UsageError(f"lab {lab} has no node {name}{meant}; its nodes are {', '.join(nodes)}")
    return nodes[name]


@contextmanager
def lab_lock(room: Path = STATE_DIR) -> Iterator[int]:
    """Hold the lock of all labs, and yield its handle; remove an empty directory at the end.

    Raises:
        UsageError: This process is not root, or runs on a node and would kill itself; or another
            process changes a lab.
    """
    if os.geteuid():
        raise UsageError("changing a lab requires root; use sudo")
    if f"/{GROUP}." in OWN_GROUPS.read_text():
        raise UsageError(
            "this command is running inside a lab node; run it outside tonnage lab exec"
        )
    with locked_room(room, OWNER, PATIENCE_SECONDS) as lock:
        try:
            yield lock
        finally:
            with suppress(OSError):
                room.rmdir()


def status(name: str | None, room: Path = STATE_DIR) -> dict[str, Any]:
    """Describe a running lab as JSON values.

    Raises:
        UsageError: There is none.
    """
    return describe(require_up(room, name), room)


def describe(record: LabRecord, room: Path = STATE_DIR) -> dict[str, Any]:
    lab = record.config.name
    known, attached = controllers().values(), loop_devices()
    nodes = record.nodes(room)
    return {
        "name": lab,
        "catalog": str(catalog.catalog_file(room / lab, lab)),
        "ray_address": record.ray_address,
        "notes": _notes(nodes, attached),
        "nodes": [
            {
                "node": node.name,
                "type": node.machine.type,
                "price_usd_per_hour": node.machine.price_usd_per_hour,
                "address": node.address,
                "cpus": node.machine.cpus,
                "memory_bytes": node.machine.memory_bytes,
                "link_bytes_per_second": node.machine.link_bytes_per_second,
                "disks": [_device(each, attached.get(each.image)) for each in node.devices],
                "processes": len(processes_in(group_directories(node, known))),
                "faults": [
                    {"fault": fault, "factor": factor}
                    for fault, factor in record.faults.get(node.name, {}).items()
                ],
            }
            for node in nodes
        ],
    }


def _device(each: Device, device: str | None) -> dict[str, Any]:
    bare = each.disk.file_system == "none"
    return {
        "path": device if bare else str(each.mount),
        "device": device,
        "file_system": None if bare else each.disk.file_system,
        "size_bytes": each.disk.size_bytes,
        **each.disk.limits,
    }


def _notes(nodes: list[Node], attached: Mapping[Path, str]) -> list[str]:
    """Reasons why the lab is slower than configured."""
    found = []
    wanted = sum(node.machine.cpus or 0.0 for node in nodes)
    cores = len(os.sched_getaffinity(0))
    if wanted > cores:
        found.append(
            f"the nodes have {wanted:g} cores in total, but this machine has {cores}; under full "
            "load the nodes get less"
        )
    devices = [attached.get(each.image) for node in nodes for each in node.devices]
    if any(device and uses_page_cache(device) for device in devices):
        found.append(
            "the disks' files do not support direct I/O, so they use this machine's page cache"
        )
    return found


def _text(file: Path) -> str:
    try:
        return read_regular(file).decode()
    except OSError as why:
        raise UsageError(f"{file}: {why.strerror}; specify the file of a lab") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not text; specify the file of a lab, in TOML") from None


def _journal(room: Path, name: str, lock: int) -> UndoJournal:
    return UndoJournal(room / name / "journal.json", partial(run_command, lock), DOWN)


def _reporting(plan: Iterator[Change], whole: int, on_step: OnStep) -> Iterator[Change]:
    for done, step in enumerate(plan):
        on_step(done, whole)
        yield step


def _clear(room: Path, name: str, lock: int) -> None:
    with suppress(UsageError):  # It is of another version.
        if found := read_record(room, name):
            structs.replace(found, is_whole=False).save(room)
    directory, pattern, known = room / name, group_pattern(name), controllers()
    devices = [device for file, device in loop_devices().items() if file.parent == directory]
    if "io" in known:
        remove_throttles(known["io"], pattern, map(device_number, devices))
    kill_all(path for each in known.values() for path in each.top.glob(pattern))
    if directory.is_dir():
        _journal(room, name, lock).undo()
        if left := mounts_below(directory):
            raise RunError(
                f"{left[0]} is mounted in the lab's directory but not by the lab; unmount it, then "
                f"run {DOWN} again"
            )
        shutil.rmtree(directory)


def _refuse_full(nodes: list[Node], directory: Path) -> None:
    """Refuse disks that do not fit, counting the space of an earlier lab as free."""
    place = next(path for path in directory.parents if path.is_dir())
    left = sum(path.stat().st_blocks * 512 for path in directory.glob("*.img"))
    free = shutil.disk_usage(place).free + left
    wanted = sum(each.disk.size_bytes for node in nodes for each in node.devices)
    if wanted > free:
        raise UsageError(
            f"the disks need {formatting.size(wanted)}, but {place} has only "
            f"{formatting.size(free)} free; use smaller disks or fewer nodes"
        )
