"""What to do next: commands that lead from what was measured to a plan for data of one's own.

None is suggested that would be refused: what a plan would be told is read before.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tonnage.base import core
from tonnage.cli.options.planning import BUILT_IN, catalogs_of, known_of

NAME = "tonnage"
PLAN = ("plan", "sort", "--data", "20TB", "--deadline", "2h")
"""A size and a deadline to put one's own in place of."""


def program() -> str:
    """What a shell has to be told to run the program that runs."""
    called, found = sys.argv[0], shutil.which(NAME)
    if Path(called).name != NAME or (found and os.path.realpath(found) == os.path.realpath(called)):
        return NAME
    return called


def from_study(out: Path) -> Iterator[str]:
    """Lines that follow a study of one machine.

    Args:
        out: Where its results are.
    """
    profiles = [BUILT_IN, str(out)]  # The former tells of networks, which a study has none of.
    if is_known(profiles):
        given = [each for name in profiles for each in ("--profile", name)]
        yield f"Next, for data of your own: {shlex.join([program(), *PLAN, *given])}"
        return
    yield f"Next, for data of your own: {shlex.join([program(), *PLAN])}"
    of = [program(), "profile", str(out), "--offer", "PROVIDER/TYPE", "--output", "mine.json"]
    yield (
        f"It does not say what machine this was rented as. If you know: {shlex.join(of)}, which "
        f"tonnage plan takes by --profile {BUILT_IN} --profile mine.json"
    )


def from_fleet_study(out: Path, calibrated: str, catalogs: list[str]) -> Iterator[str]:
    """Lines that follow a study of a fleet.

    Args:
        out: Where its results are.
        calibrated: What its profile is called there.
        catalogs: Those that have its machines, if they were given.
    """
    profile = str(out / calibrated)
    given = [part for name in catalogs for part in ("--catalog", name)]
    if is_known([profile], catalogs):
        given += ["--profile", profile]
        yield f"Next, for data of your own: {shlex.join([program(), *PLAN, *given])}"
        page = [program(), "explore", *given, "--output", str(out / "explore.html")]
        yield f"Or a page that plans: {shlex.join(page)}"


def is_known(profiles: list[str], catalogs: list[str] | None = None) -> bool:
    """Whether a plan can be made with these."""
    try:
        known_of(profiles, catalogs_of(catalogs, ()))
    except core.UsageError:
        return False
    return True
