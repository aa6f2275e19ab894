"""A Ray cluster of several nodes on this machine, over loopback, that requires its token."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.cli.processes import PATIENCE_SECONDS

QUICK = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 3,
}
"""A node whose processes are gone is found to be within seconds."""


class RayCluster:
    """The cluster."""

    def __init__(self, cluster: Any, env: dict[str, str]) -> None:
        self._cluster = cluster
        self._nodes: dict[str, Any] = {"head": cluster.head_node}
        self.env = env
        """The environment that a command needs to connect."""
        self.address: str = cluster.address

    def add(self, name: str, labels: dict[str, str], python_path: Path | None = None) -> None:
        """Starts a node; ``python_path`` is where its Python looks first."""
        more = {"env_vars": {"PYTHONPATH": _path(python_path)}} if python_path else {}
        self._nodes[name] = self._cluster.add_node(node_name=name, labels=labels, **more)

    def kill(self, name: str) -> None:
        """Kills a node's raylet, as a machine that loses its power would; its workers follow."""
        os.kill(self.raylet(name), signal.SIGKILL)
        node = self._nodes.pop(name)
        self._cluster.remove_node(node, allow_graceful=False)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while name in self._alive() and time.monotonic() < deadline:
            time.sleep(0.1)

    def _alive(self) -> list[str]:
        table = self._cluster.global_state.node_table()
        return [each["NodeName"] for each in table if each["Alive"]]

    def raylet(self, name: str) -> int:
        """The number of a node's raylet process."""
        (info,) = self._nodes[name].all_processes["raylet"]
        number: int = info.process.pid
        return number

    def agent(self, name: str, kind: str = "MeasureWorker") -> int:
        """The number of the process of the agent on a node, once it has one of this kind."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            for entry in Path("/proc").glob("[0-9]*"):
                try:
                    title = (entry / "cmdline").read_bytes()
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if parent == self.raylet(name) and title.startswith(f"ray::{kind}".encode()):
                    return int(entry.name)
            time.sleep(0.05)
        raise AssertionError(f"no agent on {name}")


@contextmanager
def ray_cluster(room: Path, names: Sequence[str]) -> Iterator[RayCluster]:
    """A cluster whose nodes are the head, called ``head``, and those of these names."""
    token = room / "token"
    token.write_text("a" * 64)
    token.chmod(0o600)
    env = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
    before = dict(os.environ)
    os.environ.update(env, RAY_USAGE_STATS_ENABLED="0")
    from ray._private.authentication_test_utils import reset_auth_token_state
    from ray.cluster_utils import Cluster

    # How it is to be authenticated, Ray has read when it was imported, which another test may have.
    reset_auth_token_state()
    cluster = None
    try:
        cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "node_name": "head",
                "labels": {"machine-type": "large", "ray.io/availability-zone": "a"},
                "include_dashboard": False,
                "_system_config": QUICK,
            },
        )
        made = RayCluster(cluster, env)
        for name in names:
            made.add(name, {"machine-type": "small", "ray.io/availability-zone": "b"})
        yield made
    finally:
        if cluster:
            cluster.shutdown()
        os.environ.clear()
        os.environ.update(before)
        reset_auth_token_state()


def _path(first: Path) -> str:
    return os.pathsep.join(filter(None, (str(first), os.environ.get("PYTHONPATH"))))
