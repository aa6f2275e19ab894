"""What the cores carry of the sort's own work, without a disk (-> `Measurement`).

The graphs are the job's with their disks taken off (``crates/graphs/src/cpu_bench.rs``): generate
-> partition -> discard, and generate -> sort -> discard.
"""

from __future__ import annotations

from typing import Any

from tonnage import engine
from tonnage.artifacts import Environment, Measurement
from tonnage.measure.trials import STOPPING_RULE, figures, new_id, now, trial, warm_up


def measure_cpu(
    *,
    size_bytes: int,
    memory_bytes: int,
    rounds: int,
    seconds: float,
    environment: Environment,
    command: list[str],
) -> Measurement:
    """Runs ``rounds`` rounds of a trial of each pass's work, ``seconds`` each.

    Args:
        size_bytes: Size of the sort that is meant; it decides the sizes of partitions.
        memory_bytes: Its memory.
        rounds: How often each is tried.
        seconds: Length of a trial.
        environment: Where it is done.
        command: How it can be repeated.
    """
    settings: dict[str, Any] = {
        "bytes": size_bytes,
        "memory_bytes": memory_bytes,
        "seconds": seconds,
    }
    began = now()
    outcomes = [engine.run("cpu_bench", settings) for _ in range(rounds)]
    trials = [trial(phase, seconds) for outcome in outcomes for phase in outcome["phases"]]
    return Measurement(
        id=new_id("cpu"),
        kind="cpu",
        began_at=began,
        command=command,
        environment=environment,
        settings=settings,
        warm_up_seconds=warm_up(seconds),
        stopping_rule=STOPPING_RULE,
        page_cache="no file is read or written",
        figures=figures(trials),
        trials=trials,
    )
