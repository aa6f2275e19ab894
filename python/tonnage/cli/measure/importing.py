"""``tonnage import``: what other tools measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tonnage.base import core
from tonnage.base.records.base import to_builtins
from tonnage.cli.measure.options import kept_rules, line
from tonnage.cli.options.files import command_line
from tonnage.cli.options.types import Json


def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="What a tool wrote, also compressed with zstd."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Where each file's measurement is kept, to be reported. Default: nowhere.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Read results of fio, IOR, mdtest, bonnie++, iozone, hdparm, iperf3, sysstat, elbencho, warp.

    Which tool wrote a file is found in its content. All files are read before anything is kept: a
    file that is truncated or foreign ends it.
    """
    from tonnage.measure.importers import Unreadable, imported, read

    try:
        found = [imported(file, read(file), command=command_line()) for file in files]
    except Unreadable as why:
        raise core.UsageError(str(why)) from None
    for measurement in found:
        if out:
            measurement.write(out / f"{measurement.id}.json")
    readings = [reading for measurement in found for reading in measurement.readings]
    if as_json:
        print(json.dumps({"measurements": [to_builtins(reading) for reading in readings]}))
        return
    for reading in readings:
        tool = f"{reading.source.tool} {reading.source.version or ''}".strip()
        block = f" of {reading.block_bytes} bytes" if reading.block_bytes else ""
        at_once = f" x{reading.concurrency}" if reading.concurrency else ""
        print(f"{tool} {reading.operation}{block}{at_once}: {line(reading)}")
    for file, measurement in zip(files, found, strict=True):
        print(f"{file}: {kept_rules(measurement)}")
