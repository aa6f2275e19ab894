"""``tonnage run sort``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tonnage.base import core
from tonnage.base.records.base import decode
from tonnage.base.records.durability import DURABILITIES
from tonnage.base.records.io import read_regular
from tonnage.cli.options.cluster import ShuffleOptions, refuse_node_in_urls, refuse_without_ray
from tonnage.cli.options.files import command_line
from tonnage.cli.options.object_store import Locations, StoreOptions, bytes_to_read, locations
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.tables import TableOptions
from tonnage.cli.options.types import (
    Argument,
    Json,
    Key,
    Memory,
    Option,
    RecordBytes,
    Scratch,
    parse_layout,
)
from tonnage.cli.options.validate import (
    refuse_job_directories,
    refuse_job_paths,
    refuse_unknown,
)
from tonnage.cli.output.run_record import print_record_json, sort_lines, table_lines
from tonnage.cli.run.cluster import cluster_run, run_on_cluster
from tonnage.run.storage.object_store import refuse_output_in_input, refuse_overlapping_inputs

if TYPE_CHECKING:
    from tonnage.base.records import RunRecord
    from tonnage.run.sort.local import Layout
    from tonnage.run.sort.tables import TableOrder


RECORDS = (100, "0:10")
"""The defaults of --record-bytes and --key."""


def run_sort(
    *,
    inputs: Annotated[
        list[str],
        Argument(
            "INPUT...",
            "Files, directories, or s3://BUCKET/PREFIX; with --by globs, too. Put them before the "
            "options.",
        ),
    ],
    output: Annotated[
        list[str],
        Option(
            "DIR...",
            "Empty or new output directories, one per device; or one unused s3://BUCKET/PREFIX.",
        ),
    ],
    scratch: Scratch,
    table: TableOptions,
    record_bytes: RecordBytes = default("100"),
    key: Key = "0:10",
    memory: Memory = default("1GiB"),
    options: ShuffleOptions,
    store: StoreOptions,
    faults: Annotated[
        Path | None,
        typer.Option("--faults", help="A JSON file of faults to inject, for tests.", hidden=True),
    ] = None,
    as_json: Json = False,
) -> None:
    """Sort tables by columns (--by), or fixed-length records by key, in two passes.

    Tables are Parquet, Arrow IPC (Feather), CSV or TSV files with the same columns, JSON lines, or
    lines of text (--by line, or by their fields, as --by 2,-3:numeric). Text may be compressed (gz,
    zst, bz2). A minus before a column is descending order; nulls come last, or first with
    COLUMN:nulls-first. -0.0 equals 0.0, and NaN is above all numbers.

    With --cluster, the job runs on many nodes; if one is lost, the others redo its work.

    The output consists of files part-00000, part-00001, ... in key order, and a manifest,
    _tonnage.json. Records with equal keys may come out in any order, unless --stable. Inputs are
    not changed.

    Examples:
        tonnage run sort events --by user,-ts --output sorted --scratch /mnt/tmp
        tonnage run sort a.csv b.csv --by -value --unique --output out --scratch tmp
        tonnage run sort 'in/year=*/*' --by -year,ts --output out --scratch tmp
        tonnage run sort s3://b/in --by ts --output s3://b/out --scratch /mnt/tmp
        tonnage run sort a.json --by t --output-format arrow --output out --scratch s
        tonnage run sort b.jsonl.gz --by user.id,-ms --output out --scratch tmp
        tonnage run sort in --by ts --partition-by year,day --output out --scratch tmp
        tonnage run sort a.txt --by 2,-3:numeric --stable --output out --scratch tmp
        tonnage run sort in --output /mnt/a/out --scratch /mnt/b/scratch --memory 4GiB
        tonnage run sort /mnt/in --output /mnt/out --scratch /mnt/tmp --cluster auto
        tonnage run sort /t --by k --output /mnt/out --scratch /mnt/s --cluster auto
    """
    if table.by is not None:
        if (record_bytes, key) != RECORDS or faults is not None:
            raise core.UsageError(
                "--record-bytes, --key and --faults are for records, not for --by"
            )
        record = _sort_table(inputs, output, scratch, table, memory, options, store)
        print_record_json(record) if as_json else print("\n".join(table_lines(record)))
        return
    table.refuse_without_by()
    layout = parse_layout(record_bytes, key)
    refuse_unknown("--durability", [options.durability], DURABILITIES)
    options.refuse_without_cluster()
    read, written = locations(inputs), locations(output)
    refuse_overlapping_inputs(read.urls)
    refuse_output_in_input(written.urls, read.urls)
    if options.cluster is not None:
        if faults is not None:
            raise core.UsageError("--faults is for one machine")
        record = _sort_on_cluster(read, written, scratch, layout, memory, options, store)
    else:
        record = _sort_here(read, written, scratch, layout, memory, store, faults)
    if as_json:
        print_record_json(record)
    else:
        print("\n".join(sort_lines(record)))


def _sort_on_cluster(
    read: Locations,
    written: Locations,
    scratch: list[Path],
    sorted_by: Layout | TableOrder,
    memory: int,
    options: ShuffleOptions,
    store: StoreOptions,
) -> RunRecord:
    from tonnage.run.sort.local import Layout
    from tonnage.run.two_pass.job_spec import check_node_paths, durability_of

    for setting, paths in (("input", read.paths), ("output", written.paths), ("scratch", scratch)):
        check_node_paths(setting, map(str, paths))
    refuse_node_in_urls([*read.urls, *written.urls])
    if written.urls and len(written.urls) + len(written.paths) > 1:
        raise core.UsageError("--output: use either directories or one URL")
    run = cluster_run("sort", options, written.urls)
    refuse_without_ray()
    from tonnage.run.sort.cluster.records import SortJob
    from tonnage.run.sort.cluster.tables import table_sort_job

    fields: dict[str, Any] = {
        "inputs": [str(each) for each in (*read.paths, *read.urls)],
        "output": [str(each) for each in (*written.paths, *written.urls)],
        "scratch": [str(each) for each in scratch],
        "memory_bytes": memory,
        "connections": run.connections,
        "patience_seconds": run.timeout_seconds,
        "command": command_line(),
        "nodes": run.nodes,
        "weights": run.weights,
        "durability": durability_of(run.durability, written.urls),
        "object_store": store.store,
    }
    if isinstance(sorted_by, Layout):
        return run_on_cluster(SortJob(layout=sorted_by, **fields), run, "sorting")
    return run_on_cluster(table_sort_job(sorted_by, **fields), run, "sorting")


def _sort_here(
    read: Locations,
    written: Locations,
    scratch: list[Path],
    layout: Layout,
    memory: int,
    store: StoreOptions,
    faults: Path | None,
) -> RunRecord:
    from tonnage.base.clock import utc_now
    from tonnage.measure.trial import environment
    from tonnage.run.sort.local import sort

    refuse_job_paths(read.paths, written.paths, scratch)
    began_at = utc_now()
    used = [path if path.exists() else path.parent for path in (*written.paths, *scratch)]
    captured = environment.capture(path for path in used if path.exists())
    with core.Progress("sorting", bytes_to_read(read, store.store)) as progress:
        done = sort(
            [*read.paths, *read.urls],
            [*written.paths, *written.urls],
            scratch,
            layout=layout,
            memory_bytes=memory,
            environment=captured,
            began_at=began_at,
            command=command_line(),
            object_store=store.store,
            faults=decode(read_regular(faults), dict[str, Any], faults) if faults else None,
            on_progress=progress,
        )
    return done.record


def _sort_table(
    inputs: list[str],
    output: list[str],
    scratch: list[Path],
    table: TableOptions,
    memory: int,
    options: ShuffleOptions,
    store: StoreOptions,
) -> RunRecord:
    from tonnage.base.clock import utc_now
    from tonnage.measure.trial import environment
    from tonnage.run.sort.tables import sort_table

    refuse_unknown("--durability", [options.durability], DURABILITIES)
    options.refuse_without_cluster()
    read, written = locations(inputs), locations(output)
    refuse_overlapping_inputs(read.urls)
    refuse_output_in_input(written.urls, read.urls)
    if options.cluster is not None:
        return _sort_on_cluster(read, written, scratch, table.order(), memory, options, store)
    refuse_job_directories(read.paths, written.paths, scratch)
    began_at = utc_now()
    used = [path if path.exists() else path.parent for path in (*written.paths, *scratch)]
    captured = environment.capture(path for path in used if path.exists())
    order = table.order()
    with core.Progress("sorting") as progress:
        return sort_table(
            inputs,
            [*written.paths, *written.urls],
            scratch,
            order=order,
            memory_bytes=memory,
            environment=captured,
            began_at=began_at,
            command=command_line(),
            object_store=store.store,
            on_progress=progress.update,
        )
