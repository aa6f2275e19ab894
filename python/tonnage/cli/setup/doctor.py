"""``tonnage doctor``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from tonnage.cli.options.types import Json, Option
from tonnage.cli.output.checks import table
from tonnage.cli.setup.checks import examine


def doctor(
    directory: Annotated[
        Path, Option("DIR", "Directory for data and scratch. Default: here.", flag="--dir")
    ] = Path(),
    as_json: Json = False,
) -> None:
    """Check what works on this machine, and what each missing thing costs.

    Nothing is sent anywhere: credentials are only looked for. The exit code is 1 if something
    essential is missing.

    Examples:
        tonnage doctor --dir /mnt/nvme0
        tonnage doctor --json
    """
    checks = examine(directory)
    if as_json:
        print(json.dumps({"checks": [dataclasses.asdict(each) for each in checks]}))
    else:
        print(table(checks))
    if any(each.status == "missing" for each in checks):
        raise typer.Exit(1)
