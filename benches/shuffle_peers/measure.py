"""One run of one system, measured: seconds, CPU, memory, how it ended, whether it sorted."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusters import NotUp, Site, tail
from groups import Groups, grouped
from nodes import NodeSet
from roster import System, Task

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "sort_peers"))

from validate import Summary, Verdict, validate


@dataclass(frozen=True)
class Sample:
    """A run's measurements. Without an ``exit_code`` its cluster did not start."""

    exit_code: int | None
    timed_out: bool
    wall_seconds: float
    """From the command's start to its end."""
    wall_with_sync_seconds: float
    """The same, until all written data is on the disks."""
    cpu_seconds: float
    """CPU of all processes on the nodes, from the command's start until all was written."""
    peak_bytes: dict[str, int]
    """Peak memory of each node, page cache counted."""
    oom_kills: int
    last_output: str
    """Output of a failed command."""


@dataclass(frozen=True)
class Run:
    """One sample, and the validation of its output."""

    system: str
    round: int
    load_before: float
    sample: Sample
    verdict: Verdict

    @property
    def counts(self) -> bool:
        """Whether its time can be compared."""
        return self.sample.exit_code == 0 and self.verdict.valid


@dataclass(frozen=True)
class Rules:
    """Settings that are the same for all runs."""

    tonnage: Path
    limit_bytes: int
    slots: int
    timeout_seconds: float
    expected: Summary


def run_once(system: System, number: int, node_set: NodeSet, rules: Rules) -> Run:
    """Run a system once, cold, on a new cluster, and validate its output."""
    node_set.clear()
    load = os.getloadavg()[0]
    has = {node.name: node.groups for node in node_set.nodes}
    # Sockets are there, whose names must be short.
    with (
        tempfile.TemporaryDirectory(prefix="sp-", ignore_cleanup_errors=True) as room,
        grouped(has, rules.limit_bytes) as groups,
    ):
        site = Site(node_set, groups, Path(room), rules.slots)
        sample = _timed(system, Task(site, rules.tonnage, rules.limit_bytes), rules)
    with tempfile.TemporaryDirectory() as links:
        verdict = _validated(node_set, Path(links), rules)
    node_set.clear()
    return Run(system.name, number, load, sample, verdict)


def _timed(system: System, task: Task, rules: Rules) -> Sample:
    groups, log = task.site.groups, task.site.room / "command.log"
    try:
        call = system.ready(task)
    except NotUp as why:
        return Sample(None, False, 0.0, 0.0, 0.0, _peaks(groups), _kills(groups), str(why))
    task.site.node_set.start_cold()
    before = _cpu_seconds(groups)
    began = time.perf_counter()
    process = task.site.start(task.site.node_set.nodes[0], call.command, call.environment, log)
    try:
        process.wait(rules.timeout_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        timed_out = True
    else:
        timed_out = False
    ended = time.perf_counter()
    os.sync()
    synced = time.perf_counter()
    return Sample(
        exit_code=process.returncode,
        timed_out=timed_out,
        wall_seconds=ended - began,
        wall_with_sync_seconds=synced - began,
        cpu_seconds=_cpu_seconds(groups) - before,
        peak_bytes=_peaks(groups),
        oom_kills=_kills(groups),
        last_output=tail(log) if process.returncode else "",
    )


def _validated(node_set: NodeSet, links: Path, rules: Rules) -> Verdict:
    """Validate all nodes' files as one sequence, in the order of their names."""
    for node in node_set.nodes:
        for file in node.output.rglob("*"):
            # Such files are unfinished, or not records.
            if file.is_file() and not file.name.startswith((".", "_")):
                try:
                    (links / file.name).symlink_to(file)
                except FileExistsError:
                    return Verdict(False, f"two nodes wrote {file.name}")
    return validate(rules.tonnage, links, rules.expected)


def _cpu_seconds(groups: Mapping[str, Groups]) -> float:
    return sum(each.cpu_seconds() for each in groups.values())


def _peaks(groups: Mapping[str, Groups]) -> dict[str, int]:
    return {name: each.peak_bytes() for name, each in groups.items()}


def _kills(groups: Mapping[str, Groups]) -> int:
    return sum(each.oom_kills() for each in groups.values())
