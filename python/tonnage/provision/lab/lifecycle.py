"""A lab is made, told of, and undone.

A lab is on file before anything of it is made, and so is what undoes each step: whenever a process
is killed, `down`, or the next `up`, knows all that there can be. First the limits on devices go,
then all processes, which may be waiting for those devices, then what the journal names.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import formatting
from tonnage.base.system import Change, RunError, UndoJournal, UsageError, locked_room
from tonnage.base.system.block_devices import loop_devices, mounts_below, uses_page_cache
from tonnage.base.system.cgroups import kill_all, processes_in
from tonnage.base.system.undo_journal import run_command
from tonnage.provision.lab import catalog
from tonnage.provision.lab.config import DiskConfig, parse
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
from tonnage.provision.lab.steps import count, steps
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
"""How long one waits for another command, which may start Ray on all of its nodes, or for a program
that a killed one has left."""

OnStep = Callable[[int, int], None]
"""Told how many steps are done, and how many there are."""


def up(file: Path, on_step: OnStep, room: Path = STATE_DIR) -> LabRecord:
    """Makes the lab of a file; what is left of one of its name is undone first.

    One that is up already stays as it is.

    Args:
        file: What the lab is.
        on_step: Shows how far it is.
        room: Where labs are on file.

    Raises:
        UsageError: The file cannot be used, this machine cannot make the lab, or a lab of this name
            and of another file is up.
        RunError: Something could not be made; what was made is undone.
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
                f"{file}: a lab {name} with other machines is up: end it with "
                f"tonnage lab down --lab {name}, or give this one another name"
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
            journal.apply(_told(plan, count(nodes, known), on_step))
            catalog.write(room / name, made.config)
            return structs.replace(made, is_whole=True).save(room)
        except BaseException:
            _clear(room, name, lock)
            raise


def down(name: str | None, room: Path = STATE_DIR) -> str | None:
    """Undoes a lab, whole or not: gives its name, or ``None`` if there was none.

    Args:
        name: Its name; ``None`` for the only one.
        room: Where labs are on file.

    Raises:
        UsageError: There is none of this name, or several.
        RunError: Something could not be undone; it is still on file.
    """
    if not room.is_dir():
        return None
    with lab_lock(room) as lock:
        name = select_lab(room, name)
        if name is not None:
            _clear(room, name, lock)
        return name


def find_node(record: LabRecord, name: str, room: Path = STATE_DIR) -> Node:
    """A node of a lab.

    Raises:
        UsageError: There is none of this name.
    """
    nodes = {node.name: node for node in record.nodes(room)}
    if name not in nodes:
        lab, meant = record.config.name, formatting.did_you_mean(name, nodes)
        raise UsageError(f"lab {lab} has no node {name}{meant}: there are {', '.join(nodes)}")
    return nodes[name]


@contextmanager
def lab_lock(room: Path = STATE_DIR) -> Iterator[int]:
    """Holds the lock of all labs: gives its handle. The room goes with its last lab.

    Raises:
        UsageError: Who asks is not root, or is on a node, with which it would end itself half-way; or
            another process changes a lab.
    """
    if os.geteuid():
        raise UsageError("only root may change a lab: use sudo")
    if f"/{GROUP}." in OWN_GROUPS.read_text():
        raise UsageError("this process is on a lab's node: change labs without lab exec")
    with locked_room(room, OWNER, PATIENCE_SECONDS) as lock:
        try:
            yield lock
        finally:
            with suppress(OSError):
                room.rmdir()


def status(name: str | None, room: Path = STATE_DIR) -> dict[str, Any]:
    """All that is to be known of a lab that is up, as JSON values.

    Raises:
        UsageError: There is none.
    """
    return describe(require_up(room, name), room)


def describe(record: LabRecord, room: Path = STATE_DIR) -> dict[str, Any]:
    """The same of a lab's record."""
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
    limits = {
        limit.name: getattr(each.disk, limit.name)
        for limit in dataclasses.fields(DiskConfig)
        if limit.name.endswith("_second")
    }
    return {
        "path": device if bare else str(each.mount),
        "device": device,
        "file_system": None if bare else each.disk.file_system,
        "size_bytes": each.disk.size_bytes,
        **limits,
    }


def _notes(nodes: list[Node], attached: Mapping[Path, str]) -> list[str]:
    """What keeps the lab from being as it says."""
    found = []
    wanted = sum(node.machine.cpus or 0.0 for node in nodes)
    cores = len(os.sched_getaffinity(0))
    if wanted > cores:
        found.append(
            f"the nodes have {wanted:g} cores in all, this machine has {cores}: busy at once, they "
            "get less"
        )
    devices = [attached.get(each.image) for node in nodes for each in node.devices]
    if any(device and uses_page_cache(device) for device in devices):
        found.append("the disks' files do without direct I/O: this machine's page cache is below")
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as why:
        raise UsageError(f"{file}: {why.strerror}: give a lab's file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is no text: give a lab's file, in TOML") from None


def _journal(room: Path, name: str, lock: int) -> UndoJournal:
    return UndoJournal(room / name / "journal.json", partial(run_command, lock), DOWN)


def _told(plan: Iterator[Change], whole: int, on_step: OnStep) -> Iterator[Change]:
    for done, step in enumerate(plan):
        on_step(done, whole)
        yield step


def _clear(room: Path, name: str, lock: int) -> None:
    """Nothing of a lab any more, whatever there was of it."""
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
                f"{left[0]} is mounted in the lab's directory, and not by the lab: umount it, then "
                f"run {DOWN} --lab {name} again"
            )
        shutil.rmtree(directory)


def _refuse_full(nodes: list[Node], directory: Path) -> None:
    """Refuses disks for which there is no room; what is left of an earlier lab makes room."""
    place = next(path for path in directory.parents if path.is_dir())
    left = sum(path.stat().st_blocks * 512 for path in directory.glob("*.img"))
    free = shutil.disk_usage(place).free + left
    wanted = sum(each.disk.size_bytes for node in nodes for each in node.devices)
    if wanted > free:
        raise UsageError(
            f"the disks take {formatting.size(wanted)} and {place} has {formatting.size(free)} free: give "
            "less with size, or fewer nodes"
        )
