"""``tonnage study --cluster``: the loop on a fleet, and how near its plan came."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tonnage.base import core, formatting
from tonnage.base.records.cluster_study import STEPS, ClusterStudy
from tonnage.cli.measure.cluster import refuse_without_ray
from tonnage.cli.options.files import command_line, new_directory
from tonnage.cli.options.validate import refuse_files
from tonnage.cli.output.next_steps import from_fleet_study


def study_on_fleet(
    address: str,
    directories: Sequence[Path],
    size_bytes: int | None,
    memory_bytes: int,
    durability: str,
    deadline_seconds: float | None,
    catalogs: list[str],
    out: Path | None,
    until: str,
    as_json: bool,
) -> None:
    """Does the steps up to ``until`` that are left, and shows what came.

    Raises:
        UsageError: Ray is not there, or arguments, or machines, cannot be used.
        RunError: A step failed; the same command goes on.
        KeyboardInterrupt: Ctrl-C; the same command goes on.
    """
    from tonnage.run.two_pass.job_spec import check_node_paths

    if not directories:
        raise core.UsageError("--cluster: give --dir, a directory on each of a machine's devices")
    check_node_paths("--dir", map(str, directories))
    if len(set(directories)) < len(directories):
        raise core.UsageError("--dir: one is given twice")
    refuse_files("--output", [out] if out else [])
    refuse_without_ray()
    from tonnage.study.cluster import CALIBRATED, ClusterStudySettings, study_cluster

    where = out or new_directory("tonnage-study")
    settings = ClusterStudySettings(
        fleet=address,
        directories=tuple(directories),
        size_bytes=size_bytes,
        memory_bytes=memory_bytes,
        durability=durability,
        deadline_seconds=deadline_seconds,
        catalogs=tuple(catalogs),
        out=where,
    )
    print(f"Kept in {where}", file=sys.stderr)
    onward = f"the same command goes on, with --output {where}"
    try:
        done = study_cluster(settings, command_line(), until)
    except KeyboardInterrupt as why:
        why.args = (f"interrupted: what was on machines is removed; {onward}",)
        raise
    except core.RunError as why:
        raise core.RunError(f"{why}; {onward}") from why
    if as_json:
        print(json.dumps(done.to_json()))
        return
    for line in in_words(done):
        print(line)
    if done.report:
        print("\n".join(from_fleet_study(where, CALIBRATED, catalogs)))
    else:
        left = STEPS[len(done.steps) :]
        print(f"Left: {', '.join(left)}. The same command, with --output {where}, goes on")


def in_words(study: ClusterStudy) -> Iterator[str]:
    """What is known so far, line by line."""
    counts = Counter(f"{each.provider}/{each.type}" for each in study.machines)
    if counts:
        yield f"Machines: {', '.join(f'{counts[name]} x {name}' for name in sorted(counts))}"
    if chosen := study.candidate:
        seconds = chosen.seconds
        yield (
            f"Planned: {chosen.nodes} x {chosen.offer} ({chosen.layout}), "
            f"{formatting.seconds(seconds.median)} "
            f"({formatting.seconds_between(seconds.low, seconds.high)})"
        )
    if came := study.came:
        of = "inside" if came.inside else "outside"
        missed = f"; {came.missed} missed most" if came.missed else ""
        yield (
            f"Came: {formatting.seconds(came.seconds)}, the plan {formatting.percent(came.error_fraction)} "
            f"off, {of} its interval{missed}; {formatting.usd(came.planned_usd)} planned, "
            f"{formatting.usd(came.usd)} came"
        )
    if study.report:
        yield f"Report: {study.report}"
