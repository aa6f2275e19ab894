"""``tonnage split``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tonnage.base import core, formatting
from tonnage.cli.options.object_store import Endpoint, divided, refuse_endpoint
from tonnage.cli.options.types import Json, whole_number
from tonnage.cli.run.reduce import Dtype, Format
from tonnage.run.storage.object_store import is_url

MOST = 99_999
"""Parts, whose numbers have five digits."""


def split(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="A file, or an object: s3://BUCKET/KEY.")
    ],
    output: Annotated[
        str,
        typer.Option("--output", metavar="DIR", help="A new directory, for the parts."),
    ],
    parts: Annotated[
        int | None,
        typer.Option("--parts", parser=whole_number(1, MOST), metavar="N", help="How many."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            parser=whole_number(1, MOST),
            metavar="N",
            help="As many parts as come out even for so many, of 256 MiB at most.",
        ),
    ] = None,
    format: Format = None,
    dtype: Dtype = None,
    endpoint: Endpoint = None,
    as_json: Json = False,
) -> None:
    """Lay a large file out as several of whole rows: as many as workers can share evenly.

    The file stays as it is. All parts are in the directory at the end, or it is not there.
    """
    from tonnage.run.reduce.split import parts_for
    from tonnage.run.reduce.split import split as split_file
    from tonnage.run.storage.object_store import ObjectStoreOptions
    from tonnage.run.storage.sources import Sources

    if (parts is None) == (workers is None):
        raise core.UsageError("--parts, or --workers: say how many parts, or who they are for")
    if is_url(output):
        raise core.UsageError(
            f"--output {output}: parts are written to a directory here: give one, and copy that to "
            "the store"
        )
    refuse_endpoint(endpoint)
    divided([source])
    sources = Sources(ObjectStoreOptions(endpoint=endpoint), 1)
    files = list(sources.find(source))
    if len(files) != 1 or Path(source).is_dir() or source.endswith("/"):
        raise core.UsageError(f"input {source}: give one file or object, to be cut in several")
    (file,) = files
    count = parts or parts_for(workers or 1, file.bytes)
    if count > MOST:
        raise core.UsageError(f"{count} parts: there are {MOST} at most; give --parts")
    done = 0
    with core.Progress("splitting", file.bytes) as progress:

        def moved(length: int) -> None:
            nonlocal done
            done += length
            progress(done)

        of, written = split_file(file, Path(output), count, sources, format, dtype, moved)
    if as_json:
        told = [{"name": each.name, "bytes": each.bytes, "rows": each.rows} for each in written]
        found = {"input": file.name, "output": output, "bytes": file.bytes}
        print(json.dumps(found | {"format": of.to_json(), "parts": told}))
        return
    sizes = [each.bytes for each in written]
    print(
        f"{output}: {formatting.several(len(written), 'part')}, of {formatting.size(min(sizes))} to "
        f"{formatting.size(max(sizes))}"
    )
