"""How a job on a fleet ends: manifests, when the sums agree; the record; nothing else stays."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.run.storage.object_store import is_url
from tonnage.run.two_pass.job_dir import files_to_json
from tonnage.run.two_pass.job_state import JobRun
from tonnage.run.two_pass.run_record import build_run_record
from tonnage.run.two_pass.schedule import NoNodeLeft, Schedule


def sealed(job: JobRun) -> bool:
    """Whether all directories have their manifest; who could not write it is lost."""
    schedule = job.schedule
    job.asked.check_totals(schedule)
    written = schedule.written
    files = _files_in_order(job)
    manifest = {
        "format": "tonnage.output/1",
        "records": written.records,
        "bytes": written.bytes,
        "checksum": f"{written.checksum:x}",
        "parts": [Path(each["path"]).name for each in files],
    }
    copies = [
        (copy.node, Path(path).name)
        for copy in (schedule.copies or {}).values()
        for path in copy.paths
    ]
    if job.asked.output_url is not None:
        sizes = {each["path"]: each["bytes"] for each in files}
        job.run_on_one("publish", {"manifest": manifest, "sizes": sizes})
        job.dir.append({"event": "publish", "told": job.take_reports()})
        for node in sorted(schedule.keepers - {*job.pool.nodes}):
            job.lose(node, job.why_gone(node))  # What it had put stays.
        job.dir.list_files(files)
        return True
    names = _names(files)
    asked = {
        node: {
            "manifest": manifest,
            "output": [*job.parts(node, names)],
            "copies": [name for each, name in copies if each == node],
        }
        for node in job.pool.nodes
        if node in schedule.keepers or node in names
    }
    ended = job.pool.run_step("seal", asked)
    for node, end in sorted(ended.items()):
        if end.kind is not None:
            job.pool.lose(node, end.reason)
            job.lose(node, end.reason)
    if unsealed := [node for node in names if node not in {*asked, *job.surviving_readers}]:
        job.lose(unsealed[0], job.why_gone(unsealed[0]))
        return False
    job.dir.list_files(files)
    return all(end.kind is None for end in ended.values())


def whole(job: JobRun) -> RunRecord:
    """Writes the record, and has nodes remove the rest."""
    record = build_run_record(
        job.dir,
        job.schedule,
        job.asked.command,
        {"job": job.asked.JOB} | job.asked.record_fields(job),
        job.asked.settings | {"connections": job.asked.connections},
        time.monotonic() - job.began,
        job.lost,
        job.pool.labels,
    )
    record.write(job.dir.run)
    leave(job)
    return record


def leave(job: JobRun) -> None:
    """Has nodes remove all but the output; for one that is gone, who sees its output does."""
    if job.dir.is_left:
        return
    crew, files = job.pool, job.dir.files
    sizes: dict[str, dict[str, int]] = {}
    for each in files:
        if not is_url(each["path"]):
            sizes.setdefault(each["node"], {})[each["path"]] = each["bytes"]
    names, going = _names(files), True
    while going:
        there = {*crew.nodes}
        job.surviving_readers = {node: other for node, other in job.surviving_readers.items() if other in there}
        for node in sizes:
            if node not in there and node not in job.surviving_readers:
                job.has_surviving_reader(node, sizes[node])
        ended = crew.run_step("leave", {node: job.parts(node, names) for node in there})
        for node, end in ended.items():
            if end.kind is not None:
                crew.lose(node, end.reason)
        going = there > {*crew.nodes}
    keepers = {each["copy"]["node"] for each in files if each["copy"]}
    if job.asked.output_url is not None:
        job.run_on_one("release", None)
    if {*sizes} | keepers <= {*crew.nodes, *job.surviving_readers}:
        job.dir.leave(crew.nodes)  # Else the same command does it, when they are back.


def abandon(job: JobRun) -> None:
    """Has nodes remove all of a job that cannot be done, and forgets it."""
    nodes = job.pool.nodes
    job.pool.run_step("drop", {node: {"keeps": []} for node in nodes})
    job.pool.run_step("leave", {node: {} for node in nodes})
    if job.asked.output_url is not None:
        with suppress(core.UsageError, core.RunError, NoNodeLeft):  # Why it ends says more.
            job.run_on_one("clear", None)
            job.run_on_one("release", None)
    job.dir.forget()


def _files_in_order(job: JobRun) -> list[dict[str, Any]]:
    schedule = job.schedule
    return [
        {
            "node": schedule.owner[place],
            "path": path,
            "records": records,
            "bytes": size,
            "checksum": f"{checksum:x}",
            **job.asked.listing_fields(job, place),
            "copy": _copy(schedule, place, number),
        }
        for place in sorted(schedule.finished)
        for number, (path, records, size, checksum) in enumerate(
            files_to_json(schedule.finished[place])
        )
    ]


def _names(files: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """The names of each node's files."""
    names: dict[str, set[str]] = {}
    for each in files:
        names.setdefault(each["node"], set()).add(Path(each["path"]).name)
    return names


def _copy(schedule: Schedule, place: int, number: int) -> dict[str, str] | None:
    """Where the copy of a partition's file is."""
    copy = (schedule.copies or {}).get(place)
    return {"node": copy.node, "path": copy.paths[number]} if copy else None
