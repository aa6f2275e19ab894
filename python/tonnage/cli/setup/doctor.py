"""``tonnage doctor``."""

import dataclasses
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tonnage.cli.options.types import Json, Option
from tonnage.cli.output import print_result
from tonnage.cli.setup.checks import Check, examine

WIDTH = 80


def doctor(
    directory: Annotated[
        Path, Option("DIR", "Directory to check, for data and scratch.", flag="--dir")
    ] = Path(),
    as_json: Json = False,
) -> None:
    """Check this machine, and say which features each missing dependency disables.

    Nothing is sent anywhere; credentials are detected but not used. The exit code is 1 if an
    essential dependency is missing.

    Examples:
        tonnage doctor --dir /mnt/nvme0
        tonnage doctor --json
    """
    checks = examine(directory)
    document = {"checks": [dataclasses.asdict(each) for each in checks]}
    print_result(document, _lines(checks), as_json)
    if any(each.status == "missing" for each in checks):
        raise typer.Exit(1)


def _lines(checks: Sequence[Check]) -> list[str]:
    status = max(len(each.status) for each in checks)
    name = max(len(each.name) for each in checks)
    lines = []
    for each in checks:
        lines.append(f"{each.status:<{status}}  {each.name:<{name}}  {each.found}")
        if each.cost:
            indent = " " * (status + 2)
            lines += textwrap.wrap(
                each.cost, WIDTH, initial_indent=f"{indent}-> ", subsequent_indent=f"{indent}   "
            )
    limited = [each for each in checks if each.status != "ok"]
    return [*lines, f"{len(checks) - len(limited)} of {len(checks)} checks are ok."]
