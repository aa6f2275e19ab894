"""Spark's own standalone cluster on the machines of a lab, and programs that run on it.

A worker on each machine has one executor with one slot, as every type has less than a core. The
master and the driver have a machine of their own. Shuffled and spilled data is on a machine's disk.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tonnage.provision.lab import STATE_DIR

HERE = Path(__file__).resolve().parent
TONNAGE = (sys.executable, "-m", "tonnage")
LAB = "spark-jobs"
DRIVER = "driver"
PORT = 7077
START_SECONDS, RUN_SECONDS = 60, 900
DRIVER_CORES = 0.5
"""With four machines of any type no more than this machine's two cores, so that none waits for
another."""
HEAP_SHARE = 0.5
"""Of a machine's memory; the rest is for the JVM itself, the worker, and the page cache."""


@dataclass(frozen=True)
class Type:
    """A type of machine: MB/s of disk and link, share of a core, MiB of memory, dollars an hour."""

    name: str
    disk: int
    link: int
    cores: float
    memory: int
    usd: float

    def text(self, count: int) -> str:
        """Return it as a section of a lab's file."""
        return (
            f'[[machine]]\ntype = "{self.name}"\ncount = {count}\n'
            f"price_usd_per_hour = {self.usd}\ncpus = {self.cores}\n"
            f'memory = "{self.memory}MiB"\nlink_mb_per_s = {self.link}\n'
            f'disks = [{{ size = "3GiB", read_mb_per_s = {self.disk}, '
            f'write_mb_per_s = {self.disk}, fs = "xfs" }}]\n'
        )

    @property
    def heap_mib(self) -> int:
        return int(self.memory * HEAP_SHARE)


def lab_text(types: Sequence[Type], count: int) -> str:
    head = f'[lab]\nname = "{LAB}"\n'
    driver = f'[[machine]]\ntype = "{DRIVER}"\nprice_usd_per_hour = 1\ncpus = {DRIVER_CORES}\n'
    return head + "".join(each.text(count) for each in types) + driver


@contextmanager
def standing(kinds: Sequence[Type], count: int) -> Iterator[dict[str, str]]:
    """Start so many machines of each type and the driver's; yields addresses by name."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(lab_text(kinds, count))
        file.flush()
        subprocess.run([*TONNAGE, "lab", "up", file.name], check=True, stdout=subprocess.DEVNULL)
    try:
        said = subprocess.run(
            [*TONNAGE, "lab", "status", "--lab", LAB, "--json"], check=True, stdout=subprocess.PIPE
        )
        yield {each["node"]: each["address"] for each in json.loads(said.stdout)["nodes"]}
    finally:
        subprocess.run([*TONNAGE, "lab", "down", "--lab", LAB], check=True)


class Cluster:
    """A master, and a worker on each of some machines."""

    def __init__(self, spark_home: Path, kind: Type, addresses: dict[str, str], nodes: int) -> None:
        self._home, self._kind, self._addresses = spark_home, kind, addresses
        self._stack = ExitStack()
        self._nodes = [f"{kind.name}-{each}" for each in range(nodes)]

    def __enter__(self) -> Cluster:
        host = self._addresses[f"{DRIVER}-0"]
        master = ("org.apache.spark.deploy.master.Master", "--host", host, "--port", str(PORT))
        self._start(f"{DRIVER}-0", master)
        _wait_for_port(host)
        for node in self._nodes:
            memory = f"{self._kind.heap_mib + 64}m"
            worker = ("org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", memory)
            where = ("--host", self._addresses[node], "--work-dir", f"{disk(node)}/work")
            self._start(node, (*worker, *where, f"spark://{host}:{PORT}"))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        for node in self._nodes:
            for name in ("work", "local"):
                shutil.rmtree(f"{disk(node)}/{name}", ignore_errors=True)

    def _start(self, node: str, command: tuple[str, ...]) -> None:
        line = (str(self._home / "bin" / "spark-class"), *command)
        process = subprocess.Popen(
            [*TONNAGE, "lab", "exec", "--lab", LAB, node, "--", *line],
            env={
                **os.environ,
                "SPARK_HOME": str(self._home),
                "SPARK_DAEMON_MEMORY": "160m",
                "SPARK_LOCAL_DIRS": _local(node),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)

    def run(self, program: str, scale: float, out: Path) -> None:
        """Run a program, whose event log is then a file ``out``."""
        host = self._addresses[f"{DRIVER}-0"]
        with tempfile.TemporaryDirectory() as logs:
            settings = {
                "spark.master": f"spark://{host}:{PORT}",
                "spark.driver.host": host,
                "spark.driver.memory": "1g",
                "spark.executor.memory": f"{self._kind.heap_mib}m",
                "spark.executor.cores": "1",
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": f"file://{logs}",
                "spark.eventLog.rolling.enabled": "false",
                "spark.eventLog.compress": "false",
                "spark.ui.enabled": "false",
                "spark.sql.shuffle.partitions": "24",
                "spark.sql.autoBroadcastJoinThreshold": "-1",
                "spark.scheduler.minRegisteredResourcesRatio": "1.0",
                "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
                "spark.log.level": "ERROR",
            }
            asked = [part for each in settings.items() for part in ("--conf", "=".join(each))]
            submit = (str(self._home / "bin" / "spark-submit"), *asked)
            line = (*submit, str(HERE / "programs.py"), program, str(scale))
            environment = {
                **os.environ,
                "SPARK_HOME": str(self._home),
                "PYSPARK_PYTHON": str(self._home.parents[3] / "bin" / "python"),
                "SPARK_LOCAL_IP": host,
            }
            subprocess.run(
                [*TONNAGE, "lab", "exec", "--lab", LAB, f"{DRIVER}-0", "--", *line],
                env=environment,
                check=True,
                timeout=RUN_SECONDS,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            (log,) = Path(logs).iterdir()
            out.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(log, out.with_suffix(".part"))
            out.with_suffix(".part").rename(out)


def disk(node: str) -> Path:
    return Path(f"{STATE_DIR}/{LAB}/{node}.disk-0")


def _local(node: str) -> str:
    return f"{disk(node)}/local" if disk(node).exists() else tempfile.gettempdir()


def _wait_for_port(host: str) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection((host, PORT), 1).close()
            return
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(f"no master at {host}:{PORT}")
