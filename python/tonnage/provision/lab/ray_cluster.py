"""Ray on a lab: a head on the first node, a worker on each of the others, as on rented machines.

Ray is started as a program on each node and found by the node's group. The head's address is the
cluster's. Each node has its name and labels of provider and type, as if it was rented. A client
needs the cluster's token, which is in a file that only root may read. Ray takes all nodes for one
host, since they share its processes and files: a command that uses the cluster runs on the head.
"""

import json
import math
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from msgspec import structs

from tonnage.base.records.environment import MACHINE_TYPE, PROVIDER
from tonnage.base.system import Command, RunError, UsageError
from tonnage.base.system.cgroups import kill_all, processes_in
from tonnage.base.system.undo_journal import run_command
from tonnage.catalog.providers.lab import SCHEMA as LAB
from tonnage.provision.lab.enter_node import join_groups, nsenter_command
from tonnage.provision.lab.lifecycle import lab_lock
from tonnage.provision.lab.nodes import Node
from tonnage.provision.lab.record import STATE_DIR, LabRecord, require_up
from tonnage.provision.lab.throttling import controllers, cpu_quota, group_directories

VARIABLE = "TONNAGE_RAY"
"""Names the program, where Ray is in another environment than Tonnage."""
PORT = 6379
OBJECTS_BYTES = 80 << 20
"""Of a node's store of objects: what is measured does not go through it."""
DIRECTORY = "ray-{}"
"""Of a node's sockets and logs: where nodes that start at once share one, two take one socket."""
TOKEN = "ray-token"
RAYLET = "raylet"
"""Ray's process on each node."""
PATIENCE_SECONDS = 180.0
ANSWER_SECONDS = 60.0
"""How long a cluster may take to name its nodes: Python starts for it, on a share of cores."""
PAUSE_SECONDS = 0.5

Run = Callable[[Command], str]
OnWait = Callable[[int, int], None]
"""Told how many nodes are up, and how many there are."""

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # All nodes share the memory of this machine, so none can tell what it has of it.
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
}
COUNT = """
import json, socket, sys, ray
host, port = sys.argv[1].split(":")
socket.create_connection((host, int(port)), 5).close()  # Ray would try for minutes.
ray.init(address=sys.argv[1], logging_level="ERROR", log_to_driver=False)
print(json.dumps([each["NodeManagerAddress"] for each in ray.nodes() if each["Alive"]]))
"""
"""Asks the cluster for its nodes; of Ray's own Python."""


def start_ray(lab: str | None, on_wait: OnWait, room: Path = STATE_DIR) -> LabRecord:
    """Start Ray on all nodes of a lab that lack it, and wait until all are up.

    If a cluster's head is gone, the rest of it and all that runs on the nodes is killed first.

    Raises:
        UsageError: There is no such lab, or no Ray.
        RunError: A node did not come up; what was started is killed.
    """
    with lab_lock(room) as lock:
        record = require_up(room, lab)
        return start_on_nodes(record, record.nodes(room), partial(run_command, lock), on_wait, room)


def start_on_nodes(
    record: LabRecord, nodes: Sequence[Node], run: Run, on_wait: OnWait, room: Path
) -> LabRecord:
    """Start Ray on these nodes, the head first; ``run`` needs the lock of all labs."""
    program, all_nodes = record.ray_program or _program(), record.nodes(room)
    _cap(all_nodes, run)  # A command that was killed may have left them all cores.
    address = f"{nodes[0].address}:{PORT}"
    alive = _alive(record, nodes[0], room) if record.ray_address else []
    # The cluster takes a while to find out that one of its nodes is gone.
    there = [node for node in nodes if node.address in alive and _has_ray(node)]
    missing = [node for node in nodes if node not in there]
    if not missing:
        return record
    if record.ray_address and nodes[0] in missing:
        _end(all_nodes, set())  # What is left of a cluster whose head is gone.
    before = processes_in(_groups(all_nodes))
    made = structs.replace(record, ray_address=address, ray_program=program).save(room)
    if not there:
        _draw_token(room / record.config.name / TOKEN)
    try:
        with _on_all_cores(missing, run):
            _start([node for node in missing if node.number == 0], made, room)
            on_wait(len(nodes) - len(missing) + 1, len(nodes))
            _start([node for node in missing if node.number], made, room)
            _wait(made, nodes, room, on_wait)
    except BaseException:
        _end(all_nodes, before)
        if not there:
            structs.replace(made, ray_address=None, ray_program=None).save(room)
        raise
    return made


def environment(record: LabRecord, room: Path = STATE_DIR) -> dict[str, str]:
    """The variables by which a command on a node finds the lab's cluster."""
    if record.ray_address is None:
        return {}
    return {
        **ENVIRONMENT,
        "RAY_ADDRESS": record.ray_address,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(room / record.config.name / TOKEN),
    }


def start_arguments(node: Node, address: str, directory: Path) -> list[str]:
    """The arguments of ``ray start`` on a node of a cluster; ``directory`` is the lab's."""
    head = ["--head", f"--port={PORT}", "--include-dashboard=false"]
    return [
        "start",
        *(head if node.number == 0 else [f"--address={address}"]),
        f"--temp-dir={directory / DIRECTORY.format(node.number)}",
        f"--node-ip-address={node.address}",
        f"--num-cpus={math.ceil(node.machine.cpus or os.cpu_count() or 1)}",
        f"--object-store-memory={OBJECTS_BYTES}",
        f"--node-name={node.name}",
        f"--labels={PROVIDER}={LAB.provider},{MACHINE_TYPE}={node.machine.type}",
        "--disable-usage-stats",
    ]


def _program() -> str:
    given = os.environ.get(VARIABLE)
    if given:
        found = shutil.which(given)
        if found is None:
            raise UsageError(f"{VARIABLE}={given}: program not found; set the path of ray")
        return os.path.abspath(found)
    next_to_python = Path(sys.executable).parent / "ray"
    found = str(next_to_python) if next_to_python.exists() else shutil.which("ray")
    if found is None:
        raise UsageError(
            "Ray is not installed; install it with Tonnage (pip install 'tonnage[cluster]'), or "
            f"set {VARIABLE}=.../bin/ray"
        )
    return os.path.abspath(found)


@contextmanager
def _on_all_cores(nodes: Sequence[Node], run: Run) -> Iterator[None]:
    """Give nodes all cores for a while: on a small share Ray's own 30 s may not suffice."""
    try:
        _cap(nodes, run, are_free=True)
        yield
    finally:
        _cap(nodes, run)


def _cap(nodes: Sequence[Node], run: Run, *, are_free: bool = False) -> None:
    cpu = controllers().get("cpu")
    for node in nodes:
        if cpu and node.machine.cpus is not None:
            for command in cpu_quota(cpu, node.group, None if are_free else node.machine.cpus):
                run(command)


def _draw_token(file: Path) -> None:
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as token:
        token.write(secrets.token_hex(32))


def _start(nodes: Sequence[Node], record: LabRecord, room: Path) -> None:
    program, address = record.ray_program or "", record.ray_address or ""
    directory = room / record.config.name
    started = [
        (
            node,
            subprocess.Popen(
                nsenter_command(node, [program, *start_arguments(node, address, directory)]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=os.environ | environment(record, room),
                start_new_session=True,
                preexec_fn=partial(join_groups, _groups([node])),
            ),
        )
        for node in nodes
    ]
    failed, deadline = [], time.monotonic() + PATIENCE_SECONDS
    for node, process in started:
        try:
            said, _ = process.communicate(timeout=max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            failed.append(f"{node.name}: no answer within {PATIENCE_SECONDS:g} s")
            continue
        if process.returncode:
            failed.append(f"{node.name}: {' '.join(said.split())[-400:]}")
    if failed:
        raise RunError(f"ray start failed on {'; '.join(failed)}")


def _wait(record: LabRecord, nodes: Sequence[Node], room: Path, on_wait: OnWait) -> None:
    """Wait until each node is up once: a killed one is counted for a while."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        alive = _alive(record, nodes[0], room)
        settled = [node for node in nodes if alive.count(node.address) == 1]
        if len(settled) == len(nodes):
            return
        if time.monotonic() > deadline:
            late = ", ".join(node.name for node in nodes if node not in settled)
            raise RunError(f"Ray did not start on {late} within {PATIENCE_SECONDS:g} s")
        on_wait(len(settled), len(nodes))
        time.sleep(PAUSE_SECONDS)


def _alive(record: LabRecord, head: Node, room: Path) -> list[str]:
    """The address of each node that the cluster counts as alive; none if it does not answer."""
    try:
        done = subprocess.run(
            nsenter_command(
                head, [*_python(record.ray_program or ""), "-c", COUNT, record.ray_address or ""]
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            env=os.environ | environment(record, room),
            start_new_session=True,
            preexec_fn=partial(join_groups, _groups([head])),
        )
        found: list[str] = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return []
    return found


def _has_ray(node: Node) -> bool:
    for process in processes_in(_groups([node])):
        with suppress(FileNotFoundError, ProcessLookupError):
            if Path(f"/proc/{process}/comm").read_text().strip() == RAYLET:
                return True
    return False


def _python(program: str) -> list[str]:
    """The Python that runs the program: in its first line, unless the path is too long for that."""
    first = Path(program).read_bytes().split(b"\n", 1)[0].decode(errors="replace")
    named = shlex.split(first[2:]) if first.startswith("#!") else []
    if any("python" in Path(word).name for word in named):
        return named
    next_to_ray = Path(program).parent / "python"
    return [str(next_to_ray) if next_to_ray.exists() else sys.executable]


def _groups(nodes: Sequence[Node]) -> list[Path]:
    known = list(controllers().values())
    return [path for node in nodes for path in group_directories(node, known)]


def _end(nodes: Sequence[Node], spared: set[int]) -> None:
    kill_all(_groups(nodes), spared)
