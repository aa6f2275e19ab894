"""``tonnage gensort``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tonnage.base import core, formatting
from tonnage.cli.options.groups import default
from tonnage.cli.options.types import LARGEST, Json, whole_number


def gensort(
    records: Annotated[
        int,
        typer.Argument(
            parser=whole_number(0, LARGEST // 100), metavar="RECORDS", help="Number of records."
        ),
    ],
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files that share the records.")
    ],
    ascii_records: Annotated[
        bool, typer.Option("--ascii", help="ASCII records instead of binary ones.")
    ] = False,
    start: Annotated[
        int,
        typer.Option(
            "--start",
            parser=whole_number(0, (1 << 128) - 1),
            metavar="N",
            help="Number of the first record.",
        ),
    ] = default("0"),
    skew: Annotated[
        bool, typer.Option("--skew", help="Skewed keys instead of uniform ones.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Generate records of the sort benchmark, the same bytes as its gensort 1.5.

    Examples:
        tonnage gensort 10000000 in/a in/b
    """
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
