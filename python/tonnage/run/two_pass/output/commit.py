"""How a job on a cluster ends: manifests if the totals agree, the record; nothing else stays."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tonnage.base import core
from tonnage.base.records import RunRecord
from tonnage.run.storage.object_store import is_url
from tonnage.run.two_pass import messages
from tonnage.run.two_pass.job_dir import files_to_json
from tonnage.run.two_pass.job_state import JobRun
from tonnage.run.two_pass.output.manifest import Manifest
from tonnage.run.two_pass.run_record import build_run_record
from tonnage.run.two_pass.schedule import NoNodeLeft, Schedule


def seal(job: JobRun) -> bool:
    """Has all directories get their manifest; whether they have. A node that fails is lost."""
    schedule = job.schedule
    job.spec.check_totals(schedule, job.dir.events)
    files = _files_in_order(job)
    manifest = Manifest(
        format="tonnage.output/1",
        records=schedule.written.records,
        bytes=schedule.written.bytes,
        checksum=f"{schedule.written.checksum:x}",
        parts=[job.spec.output_name(each["node"], each["path"]) for each in files],
    )
    if job.spec.output_url is not None:
        sizes = {each["path"]: each["bytes"] for each in files}
        job.run_on_one(messages.PUBLISH, messages.Publish(manifest, sizes))
        job.dir.append({"event": "publish", "told": job.take_reports()})
        for node in sorted(schedule.keepers - {*job.pool.nodes}):
            job.lose(node, job.why_lost(node))  # What it had put stays.
        job.dir.list_files(files)
        return True
    return _seal_directories(job, manifest, files)


def _seal_directories(job: JobRun, manifest: Manifest, files: Sequence[Mapping[str, Any]]) -> bool:
    schedule, names = job.schedule, _names(job, files)
    copies = [
        (copy.node, job.spec.output_name(copy.node, path))
        for copy in (schedule.copies or {}).values()
        for path in copy.paths
    ]
    requests = {
        node: messages.Seal(
            manifest=manifest,
            output=[*job.parts(node, names)],
            copies=[name for keeper, name in copies if keeper == node],
        )
        for node in job.pool.nodes
        if node in schedule.keepers or node in names
    }
    results = job.pool.run_step(messages.SEAL, requests)
    for node, result in sorted(results.items()):
        if result.failure is not None:
            job.pool.lose(node, result.reason)
            job.lose(node, result.reason)
    if unsealed := [node for node in names if node not in {*requests, *job.surviving_readers}]:
        job.lose(unsealed[0], job.why_lost(unsealed[0]))
        return False
    job.dir.list_files(files)
    return all(result.failure is None for result in results.values())


def complete(job: JobRun) -> RunRecord:
    """Writes the record, and has nodes remove the rest."""
    record = build_run_record(
        job.dir,
        job.schedule,
        job.spec.command,
        {"job": job.spec.JOB} | job.spec.record_fields(job.schedule, job.dir.events),
        job.spec.settings | {"connections": job.connections(len(job.workers))},
        time.monotonic() - job.began,
        job.lost,
        job.pool.labels,
    )
    record.write(job.dir.run)
    leave(job)
    return record


def leave(job: JobRun) -> None:
    """Has nodes remove all but the output; for a lost node, its surviving reader does."""
    if job.dir.is_left:
        return
    pool, files = job.pool, job.dir.files
    sizes: dict[str, dict[str, int]] = {}
    for each in files:
        if not is_url(each["path"]):
            sizes.setdefault(each["node"], {})[each["path"]] = each["bytes"]
    names, again = _names(job, files), True
    while again:
        there = {*pool.nodes}
        job.surviving_readers = {
            node: reader for node, reader in job.surviving_readers.items() if reader in there
        }
        for node in sizes:
            if node not in there and node not in job.surviving_readers:
                job.has_surviving_reader(node, sizes[node])
        requests = {node: messages.Leave(job.parts(node, names)) for node in there}
        for node, result in pool.run_step(messages.LEAVE, requests).items():
            if result.failure is not None:
                pool.lose(node, result.reason)
        again = there > {*pool.nodes}
    keepers = {each["copy"]["node"] for each in files if each["copy"]}
    if job.spec.output_url is not None:
        job.run_on_one(messages.RELEASE, None)
    if {*sizes} | keepers <= {*pool.nodes, *job.surviving_readers}:
        job.dir.leave(pool.nodes)  # Else the same command does it, when they are back.


def abandon(job: JobRun) -> None:
    """Has nodes remove all of a job that cannot be done, and forgets it."""
    nodes = job.pool.nodes
    job.pool.run_step(messages.DROP, {node: messages.Drop([]) for node in nodes})
    job.pool.run_step(messages.LEAVE, {node: messages.Leave() for node in nodes})
    if job.spec.output_url is not None:
        with suppress(core.UsageError, core.RunError, NoNodeLeft):  # Why it ends says more.
            job.run_on_one(messages.CLEAR, messages.Clear(None))
            job.run_on_one(messages.RELEASE, None)
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
            **job.spec.listing_fields(job.plan, place),
            "copy": _copy(schedule, place, number),
        }
        for place in sorted(schedule.finished)
        for number, (path, records, size, checksum) in enumerate(
            files_to_json(schedule.finished[place])
        )
    ]


def _names(job: JobRun, files: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    names: dict[str, set[str]] = {}
    for each in files:
        name = job.spec.output_name(each["node"], each["path"])
        names.setdefault(each["node"], set()).add(name)
    return names


def _copy(schedule: Schedule, place: int, number: int) -> dict[str, str] | None:
    copy = (schedule.copies or {}).get(place)
    return {"node": copy.node, "path": copy.paths[number]} if copy else None
