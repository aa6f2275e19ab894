"""What the cores carry of the sort's own work, without a disk (-> `Measurement`).

The graphs are the job's with their disks taken off (``crates/graphs/src/cpu_bench.rs``): generate
-> partition -> discard, and generate -> sort -> discard.
"""

from __future__ import annotations

from typing import Any

from tonnage.base import core
from tonnage.base.records import Environment, Measurement
from tonnage.measure.trial.trial import (
    STOPPING_RULE,
    new_id,
    page_cache_use,
    summaries,
    trial_from_phase,
    utc_now,
)


def measure_cpu(
    *,
    size_bytes: int,
    memory_bytes: int,
    rounds: int,
    seconds: float,
    environment: Environment,
    command: list[str],
    on_progress: core.OnProgress | None = None,
) -> Measurement:
    """Runs ``rounds`` rounds of a trial of each pass's work, ``seconds`` each.

    Args:
        size_bytes: Size of the sort that is meant; it decides the sizes of partitions.
        memory_bytes: Its memory.
        rounds: How often each is tried.
        seconds: How long a trial lasts at most.
        environment: Where it is done.
        command: How it can be repeated.
        on_progress: Called with the bytes of the round that runs.
    """
    settings: dict[str, Any] = {
        "bytes": size_bytes,
        "memory_bytes": memory_bytes,
        "seconds": seconds,
    }
    began = utc_now()
    outcomes = [core.run("cpu_bench", settings, on_progress) for _ in range(rounds)]
    phases = [phase for outcome in outcomes for phase in outcome["phases"]]
    trials = [trial_from_phase(phase, seconds) for phase in phases]
    return Measurement(
        id=new_id("cpu"),
        kind="cpu",
        began_at=began,
        command=command,
        environment=environment,
        settings=settings,
        stopping_rule=STOPPING_RULE,
        page_cache=page_cache_use(phases),
        figures=summaries(trials),
        trials=trials,
    )
