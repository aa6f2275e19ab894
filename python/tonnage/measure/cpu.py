"""Measure the cores with the sort's own work, without disks (-> `Measurement`).

The graphs are the job's without their disks (``crates/graphs/src/benches/cpu.rs``): generate ->
partition -> discard, and generate -> sort -> discard.
"""

from typing import Any

from tonnage.base import core
from tonnage.base.clock import utc_now
from tonnage.base.records import Environment, Measurement
from tonnage.measure.trial.trial import (
    STOPPING_RULE,
    new_id,
    page_cache_use,
    summaries,
    trial_from_phase,
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
    """Run a trial of each pass's work in each round, at most ``seconds`` long.

    ``size_bytes`` and ``memory_bytes`` are those of the intended sort: they decide the sizes of its
    partitions. ``on_progress`` is called with the bytes of the current round.
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
