"""``tonnage run mapreduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tonnage.base import core, formatting
from tonnage.base.records import RunRecord
from tonnage.cli.options.cluster import (
    CONNECTIONS,
    PATIENCE_SECONDS,
    Candidate,
    Capacities,
    Connections,
    Fleet,
    Instances,
    Out,
    Patience,
    Plan,
)
from tonnage.cli.options.files import new_directory
from tonnage.cli.options.object_store import (
    Endpoint,
    Requests,
    bytes_to_read,
    divided,
    reached,
    refuse_of_nodes,
)
from tonnage.cli.options.parser import Command
from tonnage.cli.options.plan_file import durability_of, follow
from tonnage.cli.options.types import Json, Memory, whole_number
from tonnage.cli.options.user_code import held_by
from tonnage.cli.options.validate import (
    refuse_files,
    refuse_inside,
    refuse_non_empty,
    refuse_repeated,
    refuse_repeated_inputs,
    refuse_unknown,
)
from tonnage.cli.run.cluster import in_words as fleet_in_words
from tonnage.cli.run.cluster import measured_at, run_asked, show, weights
from tonnage.cli.run.sort import in_words as phases_in_words
from tonnage.run.storage.object_store import refuse_output_in_input, refuse_overlapping_inputs

if TYPE_CHECKING:
    from tonnage.api.mapreduce import MapReduce

MOST_WORKERS = 1024


class JobFirst(Command):
    """A command whose usage line shows the order that `spread` asks for."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows the command's name in its usage line."""
        return ["MODULE:NAME", "INPUT...", "--output DIR", "--scratch DIR...", "[OPTIONS]"]


def run_mapreduce(
    job: Annotated[
        str,
        typer.Argument(metavar="MODULE:NAME", help="A MapReduce: in a module, or in a file x.py."),
    ],
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Files or directories; objects, s3://BUCKET/KEY, or folders of them; before the "
            "flags.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            metavar="DIR",
            help="An empty or new directory for the parts; with --cluster it may be "
            "s3://BUCKET/PREFIX, under which nothing is.",
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
    memory: Memory = "1GiB",  # type: ignore[assignment]
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            parser=whole_number(1, MOST_WORKERS),
            metavar="N",
            help="Threads; as many as there are cores by default.",
        ),
    ] = None,
    format: Annotated[
        str,
        typer.Option("--output-format", help="What is written: parquet, arrow, csv or json."),
    ] = "parquet",
    input_format: Annotated[
        str,
        typer.Option(
            "--input-format",
            help="lines, csv, json, parquet, arrow, records:N (N bytes each); auto by name.",
        ),
    ] = "auto",
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
            "share is done again while the job runs, and gone afterwards; with replicated another "
            "machine has a copy of each file; with volumes, which is the default if --output is a "
            "url, it is in object storage. Default: none.",
        ),
    ] = None,
    endpoint: Endpoint = None,
    requests: Requests = None,
    as_json: Json = False,
) -> None:
    """Do a MapReduce: functions over Arrow record batches, between the sort's two passes.

    With --cluster on many machines, going on although machines are lost.

    The output is files part-00000, part-00001, ... and a list of them, _tonnage.json. Inputs are
    not changed. What runs is the code in MODULE, with all that you may do.
    """
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
    (paths, urls), (directories, folders) = divided(inputs), divided([output])
    volumes = reached(endpoint, requests)
    refuse_of_nodes([*urls, *folders])
    refuse_overlapping_inputs(urls)
    refuse_output_in_input(folders, urls)
    if fleet is not None:
        from tonnage.api.cluster import Cluster
        from tonnage.api.mapreduce import cluster_job
        from tonnage.run.mapreduce import Input

        if durability is not None:
            refuse_unknown("--durability", [durability], ("none", "replicated", "volumes"))
        followed = follow("mapreduce", plan, candidate, instances, durability)
        measured = measured_at(capacities or ())
        out = out or new_directory("tonnage-mapreduce")
        where = Cluster(
            job_dir=out,
            address=fleet,
            nodes=followed.nodes if followed else instances,
            timeout_seconds=patience or PATIENCE_SECONDS,
            connections=connections or CONNECTIONS,
            weights=weights(measured),
            durability=durability_of(followed, durability, folders),
        )
        asked = cluster_job(
            loaded(job),
            where,
            [Input(place, format=input_format) for place in inputs],
            output,
            [str(path) for path in scratch],
            volumes,
            memory,
            workers,
            format,
        )
        record = run_asked(asked, fleet, out, "mapreduce", measured, followed)
        _show(record, as_json)
        if not as_json:
            print(f"Kept in {out}; the output's files: {out / 'reduced.json'}")
        return
    for flag, given in of_fleet.items():
        if given is not None:
            raise core.UsageError(f"{flag} is for a fleet: give --cluster too")
    if folders:
        raise core.UsageError(
            f"--output {output}: of one machine it goes to a directory: give one, or --cluster, of "
            "which one machine is enough"
        )
    refuse_repeated_inputs(paths)
    for flag, places in (("--output", directories), ("--scratch", scratch)):
        refuse_files(flag, places)
        refuse_repeated(flag, places)
    refuse_non_empty("--output", directories)
    refuse_inside("--output", directories, paths)
    refuse_inside("--scratch", scratch, [*paths, *directories])
    found = loaded(job)
    with core.Progress("mapreduce", bytes_to_read(paths, urls, volumes)) as progress:
        record = found.run(
            inputs,
            output,
            scratch,
            memory,
            workers,
            input_format,
            format,
            on_progress=lambda done, _: progress(done // 2),  # of two passes
            object_store=volumes,
        )
    _show(record, as_json)


def _show(record: RunRecord, as_json: bool) -> None:
    if as_json:
        show(record)
        return
    print("\n".join(in_words(record)))


def loaded(place: str) -> MapReduce:
    """The job that ``MODULE:NAME`` says.

    Raises:
        UsageError: There is none; the message says what is there.
    """
    from tonnage.api.mapreduce import MapReduce

    found = held_by(place, MapReduce, "tonnage.MapReduce")
    if isinstance(found, type):
        raise core.UsageError(f"{place} is a type: name a tonnage.MapReduce")
    job: MapReduce = found
    return job


def in_words(record: RunRecord) -> list[str]:
    """What a MapReduce did, line by line."""
    in_words = fleet_in_words if record.nodes else phases_in_words
    _, *others = in_words(record)  # The first tells of a sort's output.
    sent, written = record.shuffled_bytes or 0, record.written_bytes or 0
    return [
        f"{record.records} records, {record.bytes} bytes read; {record.shuffled_records} records, "
        f"{formatting.size(sent)} shuffled; {record.written_records} records, "
        f"{formatting.size(written)} written",
        *(line.replace(" sorted", " read") for line in others),
    ]
