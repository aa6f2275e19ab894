"""How long a provider's clusters take to start, from finished launches.

A launch that got ready took from its request until its last node had passed the screening: booting,
installing, starting Ray and screening, replaced nodes included. So its time is that of a cluster,
and one draw holds for all nodes of another.
"""

import statistics
from collections.abc import Iterable, Sequence
from datetime import datetime
from math import log

from tonnage.base import formatting
from tonnage.base.records.launch import Launch
from tonnage.base.records.profile import (
    CapacityDistribution,
    Mode,
    ProviderStart,
    UnusedMeasurements,
)
from tonnage.model.capacity import MIN_SPREAD, UNKNOWN_SPREAD
from tonnage.model.profiles.offer_matching import unused

START = "start"


def provider_starts(
    launches: Sequence[Launch],
) -> tuple[list[ProviderStart], list[UnusedMeasurements]]:
    """Each provider's distribution, in clusters a second, and the launches that say nothing."""
    times: dict[str, list[tuple[float, Launch]]] = {}
    left_out = []
    for launch in launches:
        seconds = _start_seconds(launch)
        if seconds is None:
            why = "a launch that does not say when it was ready"
            if launch.ready_at is not None:
                why = f"ready at {launch.ready_at}, which is no time after {launch.began_at}"
            left_out.append(unused(launch.name, why))
        else:
            times.setdefault(launch.candidate.provider, []).append((seconds, launch))
    found = [
        ProviderStart(provider=provider, law=_fitted(of_provider))
        for provider, of_provider in sorted(times.items())
    ]
    return found, left_out


def _start_seconds(launch: Launch) -> float | None:
    if launch.ready_at is None:
        return None
    try:
        began, ready = map(datetime.fromisoformat, (launch.began_at, launch.ready_at))
        seconds = (ready - began).total_seconds()
    except (ValueError, TypeError):
        return None
    return seconds if seconds > 0 else None


def _fitted(times: Sequence[tuple[float, Launch]]) -> CapacityDistribution:
    logs = [log(seconds) for seconds, _ in times]
    few = len(times) < 2
    spread = UNKNOWN_SPREAD if few else max(statistics.stdev(logs), MIN_SPREAD)
    nodes = _range(launch.candidate.nodes for _, launch in times)
    assumed = "; the variation of launches is assumed" if few else ""
    return CapacityDistribution(
        resource=START,
        modes=[
            Mode(
                median=1 / statistics.median(seconds for seconds, _ in times),
                spread=spread,
                instances=len(times),
            )
        ],
        of_fleet=True,
        evidence="measured",
        source=f"launches {', '.join(launch.name for _, launch in times)}",
        spread_source=f"{formatting.several(len(times), 'start')} of {nodes} nodes; other "
        f"numbers of nodes are assumed to take as long{assumed}",
    )


def _range(numbers: Iterable[int]) -> str:
    found = sorted({*numbers})
    return f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"
