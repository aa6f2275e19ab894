"""Next steps: commands that lead from a study to a plan for your own data.

A command that would be refused is not suggested.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tonnage.base import core
from tonnage.base.records.cluster_study import ClusterStudy
from tonnage.cli.options.planning import BUILT_IN, load_catalogs, load_profiles

NAME = "tonnage"
PLAN = ("plan", "sort", "--data", "20TB", "--deadline", "2h")
"""With an example size and deadline."""


def program() -> str:
    """The running program, as a shell would call it."""
    called, found = sys.argv[0], shutil.which(NAME)
    if Path(called).name != NAME or (found and os.path.realpath(found) == os.path.realpath(called)):
        return NAME
    return called


def from_study(out: Path) -> Iterator[str]:
    profiles = [*BUILT_IN, str(out)]  # The first have networks, which a study does not measure.
    if is_known(profiles):
        given = [each for name in profiles for each in ("--profile", name)]
        yield f"Next, plan for your own data: {shlex.join([program(), *PLAN, *given])}"
        return
    yield f"Next, plan for your own data: {shlex.join([program(), *PLAN])}"
    of = [program(), "profile", str(out), "--offer", "PROVIDER/TYPE", "--output", "mine.json"]
    yield (
        f"This machine's type is unknown. If you know it, run {shlex.join(of)}, then "
        f"tonnage plan ... --profile {' '.join(BUILT_IN)} mine.json"
    )


def from_cluster_study(
    done: ClusterStudy, out: Path, calibrated: str, catalogs: list[str]
) -> Iterator[str]:
    from tonnage.plan.planner import FAR_BEYOND_RUN

    profile = str(out / calibrated)
    given = [part for name in catalogs for part in ("--catalog", name)]
    if is_known([profile], catalogs):
        given += ["--profile", profile]
        # As much as the study's sorts say something about, and where their data was.
        size = str(FAR_BEYOND_RUN * done.settings["sorted_bytes"])
        plan = [program(), "plan", "sort", "--data", size, "--from", "local", *given]
        yield f"Next, plan for your own data: {shlex.join(plan)}"
        page = [program(), "explore", *given, "--output", str(out / "explore.html")]
        yield f"Or plan on an interactive page: {shlex.join(page)}"


def is_known(profiles: list[str], catalogs: list[str] | None = None) -> bool:
    try:
        load_profiles(profiles, load_catalogs(catalogs))
    except core.UsageError:
        return False
    return True
