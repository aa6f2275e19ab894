"""How near a run on a fleet came to the plan that stands beside it: time, money, what missed."""

from __future__ import annotations

from tonnage.artifacts import ReductionRecord, RunRecord
from tonnage.artifacts.fleet_study import Came


def came(record: RunRecord | ReductionRecord) -> Came:
    """How near a run came to its plan, which stands beside it."""
    planned = record.compared.planned if record.compared else None
    assert record.compared is not None and planned is not None
    candidate, seconds = planned.candidate, record.seconds
    usd_per_second = candidate.nodes * candidate.usd_per_hour / 3600
    missed = None
    if not planned.inside:
        known = [each for each in record.compared.phases if each.planned_seconds is not None]
        phase = max(
            known,
            key=lambda each: abs((each.came_seconds or each.seconds) - (each.planned_seconds or 0)),
            default=None,
        )
        missed = phase.name if phase else None
    return Came(
        planned=planned.seconds,
        seconds=seconds,
        planned_usd=usd_per_second * planned.seconds.median,
        usd=usd_per_second * seconds,
        error_fraction=abs(planned.seconds.median - seconds) / seconds,
        inside=planned.inside,
        missed=missed,
    )
