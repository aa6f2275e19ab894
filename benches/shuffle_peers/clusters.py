"""Ray and Spark clusters on the nodes, which start before the clock; their CPU counts from then on.

Each run has a new cluster, within the nodes' control groups, which ends with them. The command runs
on its first node. A secret of the run protects it, because others may use this machine.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from groups import Groups
from nodes import Node, NodeSet

TIMEOUT_SECONDS = 120.0
TAIL_LINES = 12
SPARK_DAEMON = "org.apache.spark.deploy.{0}.{1}"
REGISTERED = "Successfully registered with master"
RAY_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # All nodes share this machine's memory, so none can monitor its own.
    "RAY_memory_monitor_refresh_ms": "0",
    # Tasks run at the priority of the other systems.
    "RAY_worker_niceness": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
}


class NotUp(Exception):
    """A cluster did not start; the message is its last output."""


@dataclass(frozen=True)
class Site:
    """Where a cluster starts: the nodes, their groups, a directory for logs and sockets."""

    node_set: NodeSet
    groups: Mapping[str, Groups]
    room: Path
    slots: int
    """Concurrent tasks on a node."""

    def start(
        self, node: Node, command: Sequence[str | Path], environment: Mapping[str, str], log: Path
    ) -> subprocess.Popen[bytes]:
        """Start a command on a node, with a log for its output."""
        place = {
            "SHUFFLE_PEERS_OUTPUT": str(node.output),
            "SHUFFLE_PEERS_NODE": node.name,
        }
        with log.open("wb") as output:
            return subprocess.Popen(
                node.command(self.groups[node.name], [str(word) for word in command]),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment, **place},
                start_new_session=True,
            )


def ray(
    site: Site, program: Path, store_bytes: int, environment: Mapping[str, str]
) -> dict[str, str]:
    """Start Ray on all nodes.

    Args:
        site: The nodes and directories.
        program: ``ray`` of the environment in which its tasks run.
        store_bytes: Size of each node's object store, which spills to the node's disk.
        environment: Environment variables of tasks.

    Returns:
        The environment variables with which a command uses it.

    Raises:
        NotUp: A node did not start.
    """
    token = site.room / "token"
    token.touch(0o600)
    token.write_text(secrets.token_hex(32))
    head = site.node_set.nodes[0]
    address = f"{head.address}:{_free_port()}"
    known = {
        **RAY_ENVIRONMENT,
        **environment,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
    }

    def started(nodes: Sequence[Node]) -> None:
        running = [
            (
                site.room / f"ray-{node.name}.log",
                site.start(
                    node,
                    [program, *_ray_arguments(site, node, address, store_bytes)],
                    known,
                    site.room / f"ray-{node.name}.log",
                ),
            )
            for node in nodes
        ]
        deadline = time.monotonic() + TIMEOUT_SECONDS
        for log, process in running:
            try:
                code = process.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                code = None
            if code != 0:
                raise NotUp(tail(log))

    started([head])
    started(site.node_set.nodes[1:])
    return {**known, "RAY_ADDRESS": address}


def _ray_arguments(site: Site, node: Node, address: str, store_bytes: int) -> list[str]:
    head = node is site.node_set.nodes[0]
    here = (
        ["--head", f"--port={address.rpartition(':')[2]}", "--include-dashboard=false"]
        if head
        else [f"--address={address}"]
    )
    return [
        "start",
        *here,
        # Short: the kernel allows 107 characters for a socket's name.
        f"--temp-dir={site.room / node.name}",
        f"--node-ip-address={node.address}",
        f"--node-name={node.name}",
        f"--num-cpus={site.slots}",
        f"--object-store-memory={store_bytes}",
        f"--object-spilling-directory={node.scratch}",
        # Workers without a lab share their ports.
        "--min-worker-port=0",
        "--max-worker-port=0",
        "--dashboard-agent-listen-port=0",
        "--disable-usage-stats",
    ]


def spark(
    site: Site, home: Path, heap_bytes: int, daemon_heap_bytes: int, properties: Mapping[str, str]
) -> dict[str, str]:
    """Start Spark's own master on the first node, and a worker on each.

    Args:
        site: The nodes and directories.
        home: Spark's directory.
        heap_bytes: Heap of an executor, and all that a worker offers.
        daemon_heap_bytes: Heap of the master, and of each worker.
        properties: Properties of the application.

    Returns:
        The environment variables with which a command uses it.

    Raises:
        NotUp: A worker did not find the master.
    """
    first = site.node_set.nodes[0]
    port = _free_port()
    master = f"spark://{first.address}:{port}"
    settings = site.room / "conf"
    settings.mkdir()
    defaults = settings / "spark-defaults.conf"
    defaults.touch(0o600)
    own = {
        "spark.master": master,
        "spark.authenticate": "true",
        "spark.authenticate.secret": secrets.token_hex(32),
        "spark.driver.host": first.address,
        "spark.driver.bindAddress": first.address,
        "spark.ui.enabled": "false",
    }
    lines = [f"{name} {value}\n" for name, value in {**own, **properties}.items()]
    defaults.write_text("".join(lines))
    known = {
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(settings),
        "SPARK_DAEMON_MEMORY": f"{daemon_heap_bytes >> 20}m",
    }

    def daemon(node: Node, kind: str, arguments: Sequence[str | Path]) -> Path:
        log = site.room / f"{kind}-{node.name}.log"
        name = SPARK_DAEMON.format(kind.lower(), kind)
        command = [str(home / "bin/spark-class"), name, "--host", node.address, "--webui-port", "0"]
        place = {"SPARK_LOCAL_IP": node.address, "SPARK_LOCAL_DIRS": str(node.scratch)}
        site.start(node, [*command, *arguments], {**known, **place}, log)
        return log

    daemon(first, "Master", ["--port", f"{port}"])
    resources = ["--cores", f"{site.slots}", "--memory", f"{heap_bytes >> 20}M"]
    logs = [
        daemon(node, "Worker", [*resources, "--work-dir", str(node.scratch / "work"), master])
        for node in site.node_set.nodes
    ]
    _wait_for(REGISTERED, logs)
    return {**known, "SPARK_LOCAL_IP": first.address, "SPARK_LOCAL_DIRS": str(first.scratch)}


def tail(log: Path) -> str:
    """Return a command's last output, without the frames of Java's stacks, which hide it."""
    lines = log.read_text(errors="replace").splitlines()
    return "\n".join([line for line in lines if not line.startswith("\tat ")][-TAIL_LINES:])


def _wait_for(text: str, logs: Sequence[Path]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while left := [log for log in logs if text not in log.read_text(errors="replace")]:
        if time.monotonic() > deadline:
            raise NotUp(tail(left[0]))
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        port: int = found.getsockname()[1]
        return port
