"""``tonnage gensort`` and ``tonnage valsort``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tonnage.base import core, formatting
from tonnage.cli.options.object_store import Endpoint, Requests, bytes_to_read, divided, reached
from tonnage.cli.options.types import LARGEST, Json, Key, RecordBytes, parse_layout, whole_number


def gensort(
    records: Annotated[
        int,
        typer.Argument(
            parser=whole_number(0, LARGEST // 100), metavar="N", help="How many records."
        ),
    ],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="They share the records.")],
    ascii_records: Annotated[
        bool, typer.Option("--ascii", help="ASCII instead of binary.")
    ] = False,
    start: Annotated[
        int,
        typer.Option(
            "--start",
            parser=whole_number(0, (1 << 128) - 1),
            metavar="N",
            help="Number of the first record.",
        ),
    ] = "0",  # type: ignore[assignment]
    skew: Annotated[bool, typer.Option("--skew", help="Skewed keys.")] = False,
    as_json: Json = False,
) -> None:
    """Write the sort benchmark's records, the same bytes as its own gensort 1.5 makes."""
    from tonnage.run.sort.gensort import RECORD_BYTES, generate

    with core.Progress("generating", records * RECORD_BYTES) as progress:
        done = generate(
            records,
            files,
            start=start,
            ascii_records=ascii_records,
            skew=skew,
            on_progress=progress,
        )
    if as_json:
        print(json.dumps(done))
    else:
        print(
            f"{done['records']} records, {done['bytes']} bytes, {formatting.seconds(done['seconds'])}"
        )


def valsort(
    places: Annotated[list[str], typer.Argument(metavar="FILE_OR_DIR...")],
    record_bytes: RecordBytes = "100",  # type: ignore[assignment]
    key: Key = "0:10",
    endpoint: Endpoint = None,
    requests: Requests = None,
    as_json: Json = False,
) -> None:
    """Tell whether records are in order, as the sort benchmark's valsort 1.5; exit 1 if not.

    Several files are one sequence in the order given; files of directories in that of their names;
    so are objects, s3://BUCKET/KEY, or those of a folder of a bucket.
    """
    from tonnage.run.sort.gensort import validate

    layout = parse_layout(record_bytes, key)
    (paths, urls), volumes = divided(places), reached(endpoint, requests)
    with core.Progress("validating", bytes_to_read(paths, urls, volumes)) as progress:
        done = validate([*paths, *urls], layout=layout, volumes=volumes, on_progress=progress)
    if as_json:
        print(json.dumps(done))
    else:
        print(f"Records: {done['records']}")
        print(f"Checksum: {done['checksum']}")
        print(f"Duplicate keys: {done['duplicate_keys']}")
        if done["unordered"]:
            print(f"First unordered record is record {done['first_unordered']}")
            print(f"NOT SORTED: {done['unordered']} unordered records")
        else:
            print("SUCCESS: all records are in order")
    if done["unordered"]:
        raise typer.Exit(1)
