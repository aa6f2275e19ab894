"""How a lab is made, step by step, each with what undoes it: the plan that the journal carries out.

Interfaces and rates of links go with their namespaces, limits with their groups, file systems with
their files, so only those have to be undone. Files take their space at once: a disk that is found
full later would be a fault that nobody asked for.
"""

import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path

from tonnage.base.system import Change, Undo
from tonnage.base.system.block_devices import attach_loop_device, mkfs_command, mount_steps
from tonnage.base.system.netns import (
    NAMESPACES,
    bridge_commands,
    link_commands,
    rate_limit_commands,
    wire_rate,
)
from tonnage.provision.lab.nodes import Device, Node, switch_namespace
from tonnage.provision.lab.throttling import (
    Controller,
    create_groups,
    enable_controllers,
    throttle_steps,
)


def steps(
    lab: str,
    nodes: Sequence[Node],
    known: Mapping[str, Controller],
    free_loop: Callable[[], str],
    number_of: Callable[[str], str],
) -> Iterator[Change]:
    """The steps that make a lab, each to be done before the next is asked for.

    ``free_loop`` finds an unused loop device, ``number_of`` its numbers ``major:minor``.
    """
    to = switch_namespace(lab)
    yield _namespace(to)
    yield from map(Change, bridge_commands(to))
    yield from map(Change, enable_controllers(known.values()))
    for node in nodes:
        yield _namespace(node.namespace)
        yield Change(("ip", "-n", node.namespace, "link", "set", "lo", "up"))
        yield from map(Change, link_commands(node.namespace, to, node.number, node.address))
        if node.machine.link_bytes_per_second is not None:
            rate = wire_rate(node.machine.link_bytes_per_second)
            yield from map(Change, rate_limit_commands(node.namespace, to, node.number, rate))
        yield from create_groups(node, known.values())
        for each in node.devices:
            device = yield from _device(each, free_loop)
            if "io" in known:
                number = number_of(device)
                yield from throttle_steps(known["io"], node.group, number, each.disk, 1.0)


def count(nodes: Sequence[Node], known: Mapping[str, Controller]) -> int:
    return sum(1 for _ in steps("x", nodes, known, lambda: "/dev/loop0", lambda _: "7:0"))


def _namespace(name: str) -> Change:
    undo = Undo(
        commands=(("ip", "netns", "delete", name),),
        question=("stat", "--format=%F", str(NAMESPACES / name)),
        answers=("regular empty file", "regular file"),
    )
    return Change(("ip", "netns", "add", name), (undo,))


def _device(each: Device, free_loop: Callable[[], str]) -> Generator[Change, None, str]:
    disk = each.disk
    yield _file(each.image, disk.size_bytes)
    device = free_loop()
    yield attach_loop_device(each.image, device)
    if disk.file_system != "none":
        make = mkfs_command(disk.file_system, str(uuid.uuid4()), discard=False)
        yield Change((*make, device))
        yield from mount_steps(disk.file_system, [device], each.mount)
    return device


def _file(path: Path, size_bytes: int) -> Change:
    undo = Undo(
        commands=(("rm", str(path)),),
        question=("stat", "--format=%F", str(path)),
        answers=("regular file", "regular empty file"),
    )
    return Change(("fallocate", "--length", str(size_bytes), str(path)), (undo,))
