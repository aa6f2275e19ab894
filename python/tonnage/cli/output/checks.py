"""The checks of ``tonnage doctor`` as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tonnage.cli.setup.checks import Check

WIDTH = 80


def table(checks: Sequence[Check]) -> str:
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
    lines.append(f"{len(checks) - len(limited)} of {len(checks)} checks are ok.")
    return "\n".join(lines)
