"""``tonnage valsort``."""

from typing import Annotated

import typer

from tonnage.base import core
from tonnage.cli.options.object_store import StoreOptions, bytes_to_read, locations
from tonnage.cli.options.option_groups import default
from tonnage.cli.options.types import Argument, Json, Key, RecordBytes, parse_layout
from tonnage.cli.output import print_result


def valsort(
    *,
    inputs: Annotated[
        list[str],
        Argument(
            "FILE_OR_DIR...",
            "Files in key order, directories, or objects: s3://BUCKET/KEY or "
            "s3://BUCKET/PREFIX/. Put them before the options.",
        ),
    ],
    record_bytes: RecordBytes = default("100"),
    key: Key = "0:10",
    store: StoreOptions,
    as_json: Json = False,
) -> None:
    """Check that records are sorted, like valsort 1.5 from the Sort Benchmark. The exit code is 1
    if they are unsorted.

    Several files are checked as one sequence, in the order of the command line; files of a
    directory, in the order of their names.

    Examples:
        tonnage valsort out
    """
    from tonnage.run.sort.gensort import validate

    layout = parse_layout(record_bytes, key)
    read = locations(inputs)
    with core.Progress("validating", bytes_to_read(read, store.store)) as progress:
        done = validate(
            [*read.paths, *read.urls], layout=layout, object_store=store.store, on_progress=progress
        )
    lines = [
        f"Records: {done['records']}",
        f"Checksum: {done['checksum']}",
        f"Duplicate keys: {done['duplicate_keys']}",
    ]
    if done["unordered"]:
        lines.append(f"First unordered record is record {done['first_unordered']}")
        lines.append(f"NOT SORTED: {done['unordered']} unordered records")
    else:
        lines.append("SUCCESS: all records are in order")
    print_result(done, lines, as_json)
    if done["unordered"]:
        raise typer.Exit(1)
