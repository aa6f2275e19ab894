"""Files that ``tonnage import`` reads, given where what it writes is wanted."""

from __future__ import annotations

import shlex
from pathlib import Path

from tonnage.base import core
from tonnage.cli.measure.importing.event_logs import is_event_log
from tonnage.cli.measure.importing.run_tables import is_run_table
from tonnage.run.storage.object_store import is_url


def refuse_not_imported(place: str, flag: str = "") -> None:
    """Refuses an event log or a table of past runs, and says how to import it.

    ``flag`` is what the file was given as.
    """
    if not Path(place).exists():
        return
    refuse_event_log(place, flag)
    if is_run_table(place):
        _refuse(place, flag, "is a table of past runs, for tonnage plan")


def refuse_event_log(place: str, flag: str = "") -> None:
    """Refuses an event log, and says how to import it; not a URL, which would have to be read."""
    if not is_url(place) and is_event_log(place):
        _refuse(place, flag, "is an event log of Spark")


def _refuse(place: str, flag: str, what: str) -> None:
    from tonnage.measure.importers.metric import one_line

    name = one_line(place)
    raise core.UsageError(
        f"{flag and f'{flag} '}{name} {what}; first tonnage import {shlex.quote(name)} --output "
        "job.json"
    )
