"""``tonnage lab``: a small cluster emulated on this machine."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tonnage.base import core, formatting
from tonnage.cli.options.types import Argument, Json, Option, number
from tonnage.cli.output import print_result

STARTING_RAY = "starting Ray on nodes"

Lab = Annotated[
    str | None, Option("NAME", "Name of the lab, if several are running.", flag="--lab")
]
NodeName = Annotated[
    str, Argument("NODE", "Name of a node, like fast-0; tonnage lab status lists all nodes.")
]


def up(
    file: Annotated[Path, Argument("FILE", "Description of the lab, in TOML.")],
    as_json: Json = False,
) -> None:
    """Start the lab that a file describes: a small cluster on this machine. Needs root.

    Nodes are network namespaces connected by a virtual switch, with the links, disks and CPU shares
    that FILE specifies. If the lab is already running, nothing changes; leftovers of a killed
    command are removed first.

    Examples:
        sudo tonnage lab up lab.toml
    """
    from tonnage.provision import lab

    with core.Progress("starting the lab") as progress:
        made = lab.up(file, progress)
    _show(lab.describe(made), as_json)


def status(name: Lab = None, as_json: Json = False) -> None:
    """Show a running lab: nodes, addresses, disks, prices, faults. Needs root.

    Examples:
        sudo tonnage lab status
    """
    from tonnage.provision import lab

    _show(lab.status(name), as_json)


def execute(
    node: NodeName,
    command: Annotated[
        list[str], Argument("-- COMMAND...", "The command to run on the node, after --.")
    ],
    name: Lab = None,
) -> None:
    """Run a command on a node, with the node's network, CPU share and disk rates. Needs root.

    The command's stdin, stdout, signals and exit code pass through unchanged; exit codes 126 and
    127 have their usual shell meanings. If Ray runs in the lab, RAY_ADDRESS is set.

    Examples:
        sudo tonnage lab exec fast-0 -- tonnage doctor
    """
    from tonnage.provision import lab
    from tonnage.provision.lab.ray_cluster import environment

    record = lab.require_up(lab.STATE_DIR, name)
    known = record.config.name
    try:
        lab.exec_on_node(
            lab.find_node(record, node),
            command,
            environment(record),
            lambda: lab.require_up(lab.STATE_DIR, known),
        )
    except lab.NotStarted as why:
        print(f"tonnage: {why}", file=sys.stderr)
        raise typer.Exit(why.code) from None


def ray(name: Lab = None, as_json: Json = False) -> None:
    """Start Ray on all nodes of a lab, wait until they have joined, and print its address. Needs
    root.

    The ray program is the one that TONNAGE_RAY specifies, otherwise the one next to tonnage,
    otherwise the one in PATH. tonnage lab down stops Ray. Commands that use the Ray cluster must
    run on its first node, with tonnage lab exec.

    Examples:
        sudo tonnage lab ray
    """
    from tonnage.provision import lab

    with core.Progress(STARTING_RAY) as progress:
        record = lab.start_ray(name, progress)
    found = {"address": record.ray_address, "head": lab.describe(record)["nodes"][0]["node"]}
    print_result(found, [str(record.ray_address)], as_json)


def fault(
    node: NodeName,
    what: Annotated[str, Argument("FAULT", "cut-link, slow-disk, slow-link, fill-disk or kill.")],
    factor: Annotated[
        float | None,
        Option(
            "FACTOR", "Slowdown factor; 4 means a quarter of the speed. Default: 4.", number(1, 1e6)
        ),
    ] = None,
    name: Lab = None,
    as_json: Json = False,
) -> None:
    """Inject a fault into a node, until tonnage lab heal. Needs root.

    cut-link: the node's link carries nothing. slow-disk, slow-link: all its disks, or its link in
    both directions, run at 1/FACTOR of their speed. fill-disk: its disks have no space left. kill:
    its processes are killed.

    Examples:
        sudo tonnage lab fault slow-1 slow-disk --factor 10
    """
    from tonnage.provision import lab

    _show_node(lab.describe(lab.inject_fault(name, node, what, factor)), node, as_json)


def heal(node: NodeName, name: Lab = None, as_json: Json = False) -> None:
    """Clear all injected faults on a node; if Ray has stopped there, restart it. Needs root.

    If the node was Ray's head, all nodes join a new Ray cluster, and jobs of the old one end. If
    the node's link was cut for more than 20 s, the command waits until Ray has decided whether to
    keep the node.

    Examples:
        sudo tonnage lab heal slow-1
    """
    from tonnage.provision import lab

    with core.Progress(STARTING_RAY) as progress:
        healed = lab.heal_node(name, node, progress)
    _show_node(lab.describe(healed), node, as_json)


def down(name: Lab = None, as_json: Json = False) -> None:
    """Stop a lab and remove all its resources, even after a crash or a reboot. Needs root.

    Examples:
        sudo tonnage lab down
    """
    from tonnage.provision import lab

    undone = lab.down(name)
    line = f"Lab {undone} was stopped." if undone else "No lab was running."
    print_result({"name": undone}, [line], as_json)


def _show(told: dict[str, Any], as_json: bool) -> None:
    ray_at = f", Ray at {told['ray_address']}" if told["ray_address"] else ""
    lines = [
        f"Lab {told['name']} is up{ray_at}; its catalog: {told['catalog']}",
        *(line for node in told["nodes"] for line in _node(node)),
        *(f"Note: {note}" for note in told["notes"]),
    ]
    print_result(told, lines, as_json)


def _show_node(told: dict[str, Any], name: str, as_json: bool) -> None:
    [node] = [each for each in told["nodes"] if each["node"] == name]
    print_result(node, _node(node), as_json)


def _processes(number: int) -> str:
    return f"{number} process{'' if number == 1 else 'es'}"


def _node(node: dict[str, Any]) -> list[str]:
    link, cpus = node["link_bytes_per_second"], node["cpus"]
    rate = (
        f"{formatting.significant(link / 1e6)} MB/s in each direction"
        if link
        else "a link without a limit"
    )
    lines = [
        f"{node['node']}: {node['address']}, "
        f"{'all cores' if cpus is None else '1 core' if cpus == 1 else f'{cpus:g} cores'}, "
        f"{rate}, "
        f"{node['price_usd_per_hour']:g} USD per hour, "
        f"{_processes(node['processes'])}"
    ]
    for disk in node["disks"]:
        rates = [
            f"{formatting.significant(disk[f'{way}_bytes_per_second'] / 1e6)} MB/s {verb}"
            for way, verb in (("read", "read"), ("write", "written"))
            if disk[f"{way}_bytes_per_second"]
        ] + [
            f"{disk[f'{way}_operations_per_second']:,} {way}s/s"
            for way in ("read", "write")
            if disk[f"{way}_operations_per_second"]
        ]
        kind = disk["file_system"] or "no file system"
        limits = ", ".join(rates) or "no limit"
        lines.append(f"  {disk['path']}: {kind}, {formatting.memory(disk['size_bytes'])}, {limits}")
    lines += [
        f"  fault: {each['fault']}" + (f", factor {each['factor']:g}" if each["factor"] else "")
        for each in node["faults"]
    ]
    return lines
