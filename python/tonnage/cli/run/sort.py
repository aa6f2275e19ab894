"""``tonnage run sort``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tonnage.base import core, formatting
from tonnage.base.records import Phase, RunRecord
from tonnage.cli.options.cluster import (
    Candidate,
    Capacities,
    Connections,
    Fleet,
    Instances,
    Out,
    Patience,
    Plan,
)
from tonnage.cli.options.files import command_line
from tonnage.cli.options.object_store import (
    Endpoint,
    Requests,
    asked_of_stores,
    bytes_to_read,
    divided,
    reached,
)
from tonnage.cli.options.parser import Command
from tonnage.cli.options.types import Json, Key, Memory, RecordBytes, parse_layout
from tonnage.cli.options.validate import (
    refuse_files,
    refuse_inside,
    refuse_non_empty,
    refuse_repeated,
    refuse_repeated_inputs,
    refuse_unknown,
)
from tonnage.model.study_findings import disk_warnings
from tonnage.run.storage.object_store import refuse_output_in_input, refuse_overlapping_inputs

if TYPE_CHECKING:
    from tonnage.run.sort.local import Layout


class InputsFirst(Command):
    """A command whose usage line shows the order that `spread` asks for."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows the command's name in its usage line."""
        return ["INPUT...", "--output DIR...", "--scratch DIR...", "[OPTIONS]"]


def run_sort(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Files or directories, or s3://BUCKET/PREFIX; before the flags.",
        ),
    ],
    output: Annotated[
        list[str],
        typer.Option(
            "--output",
            metavar="DIR...",
            help="Where the output goes: an empty or new directory on each device, or one "
            "s3://BUCKET/PREFIX under which nothing is.",
        ),
    ],
    scratch: Annotated[
        list[Path],
        typer.Option(
            "--scratch",
            metavar="DIR...",
            help="Where scratch goes: a directory on each device.",
        ),
    ],
    record_bytes: RecordBytes = "100",  # type: ignore[assignment]
    key: Key = "0:10",
    memory: Memory = "1GiB",  # type: ignore[assignment]
    fleet: Fleet = None,
    out: Out = None,
    connections: Connections = None,
    patience: Patience = None,
    instances: Instances = None,
    capacities: Capacities = None,
    plan: Plan = None,
    candidate: Candidate = None,
    durability: Annotated[
        str | None,
        typer.Option(
            "--durability",
            metavar="none|replicated|volumes",
            help="With --cluster: what becomes of the output when a machine is lost. With none its "
            "share is sorted again while the sort runs, and gone afterwards; with replicated "
            "another machine has a copy of each file; with volumes, which is the default if "
            "--output is a url, it is in object storage. Default: none.",
        ),
    ] = None,
    endpoint: Endpoint = None,
    requests: Requests = None,
    faults: Annotated[
        Path | None,
        typer.Option("--faults", help="A JSON file of faults to inject, for tests.", hidden=True),
    ] = None,
    as_json: Json = False,
) -> None:
    """Sort fixed-length records by their key, in two passes over the disks.

    With --cluster on many machines, going on although machines are lost.

    The output is files part-00000, part-00001, ... in key order and a list of them, _tonnage.json.
    Records with equal keys come out in no particular order. Inputs are not changed.
    """
    layout = parse_layout(record_bytes, key)
    if durability is not None:
        refuse_unknown("--durability", [durability], ("none", "replicated", "volumes"))
    of_fleet = {
        "--job-dir": out,
        "--connections": connections,
        "--timeout": patience,
        "--nodes": instances,
        "--capacities": capacities,
        "--plan": plan,
        "--candidate": candidate,
        "--durability": durability,
    }
    if fleet is not None:
        if faults is not None:
            raise core.UsageError("--faults is for one machine")
        from tonnage.cli.run.cluster import sort_on_fleet

        sort_on_fleet(
            fleet,
            inputs,
            output,
            scratch,
            reached(endpoint, requests),
            layout,
            memory,
            as_json,
            out,
            connections,
            patience,
            instances,
            capacities or (),
            durability,
            plan,
            candidate,
        )
        return
    for flag, given in of_fleet.items():
        if given is not None:
            raise core.UsageError(f"{flag} is for a fleet: give --cluster too")
    _sort_here(inputs, output, scratch, layout, memory, endpoint, requests, faults, as_json)


def _sort_here(
    inputs: list[str],
    output: list[str],
    scratch: list[Path],
    layout: Layout,
    memory: int,
    endpoint: str | None,
    requests: int | None,
    faults: Path | None,
    as_json: bool,
) -> None:
    from tonnage.measure.trial import environment
    from tonnage.measure.trial.trial import utc_now
    from tonnage.run.sort.local import sort

    (paths, urls), (directories, folders) = divided(inputs), divided(output)
    volumes = reached(endpoint, requests)
    refuse_repeated_inputs(paths)
    refuse_overlapping_inputs(urls)
    refuse_output_in_input(folders, urls)
    for flag, places in (("--output", directories), ("--scratch", scratch)):
        refuse_files(flag, places)
        refuse_repeated(flag, places)
    refuse_non_empty("--output", directories)
    refuse_inside("--output", directories, [*paths, *directories])
    refuse_inside("--scratch", scratch, [*paths, *directories])
    began_at = utc_now()
    used = [path if path.exists() else path.parent for path in (*directories, *scratch)]
    known = environment.capture(path for path in used if path.exists())
    with core.Progress("sorting", bytes_to_read(paths, urls, volumes)) as progress:
        done = sort(
            [*paths, *urls],
            [*directories, *folders],
            scratch,
            layout=layout,
            memory_bytes=memory,
            environment=known,
            began_at=began_at,
            command=command_line(),
            volumes=volumes,
            faults=json.loads(faults.read_text()) if faults else None,
            on_progress=progress,
        )
    if as_json:
        print(json.dumps(done.record.to_json()))
        return
    for line in in_words(done.record):
        print(line)


def in_words(record: RunRecord) -> list[str]:
    """What a sort did, line by line; phases that were done several times in one."""
    seconds, rate = (
        formatting.seconds(record.seconds),
        formatting.rate(record.bytes / record.seconds),
    )
    said = [
        f"{record.records} records, {record.bytes} bytes, checksum {record.checksum}",
        f"{seconds}, {rate} sorted, {formatting.significant(record.cpu_seconds)} core seconds",
    ]
    by_name: dict[str, list[Phase]] = {}
    for phase in record.phases:
        by_name.setdefault(phase.name, []).append(phase)
    for name, phases in by_name.items():
        times = f"{len(phases)} times, " if len(phases) > 1 else ""
        bottlenecks = formatting.listing(dict.fromkeys(phase.bottleneck for phase in phases))
        spent = formatting.seconds(sum(phase.seconds for phase in phases))
        said.append(f"{name}: {times}{spent}, limited by {bottlenecks}")
    if record.requests.get("requests"):
        said.append(asked_of_stores(record.requests))
    if record.repartitioned_bytes:
        again = formatting.size(record.repartitioned_bytes)
        said.append(f"{again} were divided once more, since --memory is small for them: give more")
    return [*said, *disk_warnings(record.phases)]
