"""What disks carry: the sort's own first pass without its work (-> `Measurement`).

The graphs are edits of the job's (``crates/graphs/src/disk_bench.rs``), so depth, sizes and engine
are the job's own. Trials of different modes take turns, so that a drift of the machine meets all
of them. A trial ends when its time is up or when its data has been gone through once, since what
it writes are new blocks, as a job's are. It follows Themis' DiskBench: half the devices read and
half write, one does both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tonnage
from tonnage import engine
from tonnage.artifacts import Environment, Measurement, Reading, Source, Trial
from tonnage.cloud_truth import scorecard
from tonnage.measure.trials import (
    STOPPING_RULE,
    figures,
    new_id,
    now,
    stated_page_cache,
    trial,
)

MODES = ("wo", "ro", "rw", "headroom")
OPERATIONS = {"wo": "write", "ro": "read", "rw": "readwrite"}
"""The modes in the vocabulary of all tools; of ``rw`` the bandwidth is that of each way."""


def measure_disk(
    read: Sequence[Path],
    write: Sequence[Path],
    *,
    modes: Sequence[str],
    rounds: int,
    seconds: float,
    size_bytes: int,
    memory_bytes: int,
    environment: Environment,
    command: list[str],
    on_progress: engine.OnProgress | None = None,
) -> Measurement:
    """Runs ``rounds`` rounds of trials of each of ``modes``, at most ``seconds`` each.

    Args:
        read: Directories that are read, one for each device.
        write: Directories that are written, one for each device.
        modes: Of ``MODES``: write only, read only, both at once, neither (the harness alone).
        rounds: How often each mode is tried.
        seconds: After this a trial ends.
        size_bytes: After this, read or written, a trial ends too; so much is laid out to be read
            before the first one.
        memory_bytes: Memory as the sort would have it.
        environment: Where it is done.
        command: How it can be repeated.
        on_progress: Called with bytes; the first ``size_bytes`` are those that are laid out.

    Raises:
        Refused: A directory cannot be used, or has too little room.
        Failed: A device failed.
    """
    settings: dict[str, Any] = {
        "read": [str(path) for path in read],
        "write": [str(path) for path in write],
        "bytes": size_bytes,
        "trials": [{"mode": mode, "seconds": seconds} for _ in range(rounds) for mode in modes],
        "memory_bytes": memory_bytes,
    }
    each = [(half, size_bytes // max(len(half), 1)) for half in (read, write)]
    engine.refuse_full(((path, share) for half, share in each for path in half), "measuring")
    began = now()
    outcome = engine.run("disk_bench", settings, on_progress)
    phases = [phase for phase in outcome["phases"] if phase["name"] != "prepare"]
    trials = [_read(trial(phase, seconds)) for phase in phases]
    measurement = Measurement(
        id=new_id("disk"),
        kind="disk",
        began_at=began,
        command=command,
        environment=environment,
        settings=settings,
        stopping_rule=STOPPING_RULE,
        page_cache=stated_page_cache(phases),
        figures=figures(trials),
        trials=trials,
    )
    return dataclasses.replace(measurement, scorecard=scorecard([measurement]))


def _read(trial: Trial) -> Trial:
    """The trial with its reading; the harness alone has none."""
    if trial.name not in OPERATIONS:
        return trial
    modes = trial.phase.disk_modes
    reading = Reading(
        source=Source(tool="tonnage", version=tonnage.__version__),
        operation=OPERATIONS[trial.name],
        block_bytes=_transfer_bytes(trial),
        direct=all(mode["direct"] for mode in modes) if modes else None,
        bandwidth_bytes_per_second=trial.bytes_per_second,
        details={"mode": trial.name},
    )
    return dataclasses.replace(trial, reading=reading)


def _transfer_bytes(trial: Trial) -> int | None:
    """What one system call moves at most."""
    configs = [stage.config["disk"] for stage in trial.phase.stages if "disk" in stage.config]
    return max((config["transfer_bytes"] for config in configs), default=None)
