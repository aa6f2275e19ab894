"""Single blocks of a file at random: the operations of a systematic look at EC2 I/O.

``read4k``, ``read4m``, ``write4k``, ``write4m`` (each write durable before it counts) and
``write4k-64`` (one write in 64, at random, is), with T operations outstanding all the time. Trials
of all T come in a random, seeded order, so that a drift of the machine meets all of them. Each is
written when it is done; the same command goes on where a killed one stopped.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tonnage import engine
from tonnage.artifacts import Environment, Latency, Measurement, Step, Trial
from tonnage.engine import probes
from tonnage.measure import beside, environment
from tonnage.measure.trials import figures, new_id, now

RECORD_BYTES = 100
DATA_PREFIX = ".tonnage-ops-"
WARM_UP_SHARE = 0.1
"""Of each trial, not counted; at most a second."""


@dataclass(frozen=True)
class Operation:
    """What is done again and again, and for how many at once the fleet study did it."""

    name: str
    writes: bool
    block_bytes: int
    durable_one_in: int
    sweep: tuple[int, ...]


SMALL = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
LARGE = (1, 2, 3, 4, 6, 8, 12, 16)
OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("read4k", False, 4 << 10, 0, SMALL),
        Operation("read4m", False, 4 << 20, 0, LARGE),
        Operation("write4k", True, 4 << 10, 1, LARGE),
        Operation("write4m", True, 4 << 20, 1, LARGE),
        Operation("write4k-64", True, 4 << 10, 64, LARGE),
    )
}


@dataclass(frozen=True)
class Settings:
    """How to measure."""

    operations: tuple[str, ...]
    outstanding: tuple[int, ...] | None
    """How many at once; ``None`` for each operation's own sweep."""
    rounds: int
    seconds: float
    file_bytes: int
    blocking: bool
    """A thread for each operation, which blocks, instead of one ring for all."""
    batched: bool
    """All that are found done are replaced with one system call, instead of each with its own."""
    seed: int


def steps(settings: Settings) -> list[Step]:
    """The trials in their order: round after round, each shuffled by the seed."""
    shuffle = random.Random(settings.seed).shuffle
    found = []
    for number in range(settings.rounds):
        of_round = [
            Step(operation=name, outstanding=outstanding, round=number)
            for name in settings.operations
            for outstanding in settings.outstanding or OPERATIONS[name].sweep
        ]
        shuffle(of_round)
        found += of_round
    return found


def measure_ops(
    directory: Path,
    out: Path,
    settings: Settings,
    *,
    command: list[str],
    on_progress: engine.OnProgress | None = None,
) -> Iterator[Trial | Measurement]:
    """Runs the trials that ``out`` does not have yet: gives each, and at last the measurement.

    Raises:
        Refused: ``out`` holds trials of other settings, or ``directory`` cannot be used.
        Failed: The device failed; the trials that were done are in ``out``.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    planned = steps(settings)
    kept = _resume(out, settings, command, environment.capture([directory]))
    trials: list[Trial] = []
    missing = [number for number in range(len(planned)) if not _path(out, number).exists()]
    if missing:
        with engine.workspace("--dir", directory, DATA_PREFIX) as room:
            file = _lay_out(room, settings.file_bytes, on_progress)
            device = environment.device_name(directory)
            for number in missing:
                trial = _run(file, device, planned[number], settings, number, on_progress)
                trial.write(_path(out, number))
                yield trial
    trials = [Trial.read(_path(out, number)) for number in range(len(planned))]
    measurement = dataclasses.replace(kept, trials=trials, figures=figures(trials))
    measurement.write(out / "measurement.json")
    yield measurement


def _path(out: Path, number: int) -> Path:
    return out / f"trial-{number:05}.json"


def _resume(out: Path, settings: Settings, command: list[str], known: Environment) -> Measurement:
    """The measurement without its trials: begun now, or when ``out`` was begun."""
    wanted = dataclasses.asdict(settings)
    path = out / "begun.json"
    if path.exists():
        begun = Measurement.read(path)
        if begun.settings != _plain(wanted):
            raise engine.Refused(
                f"--out {out} holds trials of other settings: give the same ones to go on with "
                "them, or another directory"
            )
        return begun
    begun = Measurement(
        id=new_id("ops"),
        kind="ops",
        began_at=now(),
        command=command,
        environment=known,
        settings=_plain(wanted),
        stopping_rule=f"each trial runs for {settings.seconds} s, of which the first "
        f"{warm_up(settings.seconds)} s are not counted; {settings.rounds} of each",
        page_cache="bypassed where a trial's disk mode says direct; its device counters tell",
        trials=[],
    )
    begun.write(path)
    return begun


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """As JSON gives it back."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }


def warm_up(seconds: float) -> float:
    """How much of a trial of this length is not counted."""
    return min(1.0, WARM_UP_SHARE * seconds)


def _lay_out(room: Path, file_bytes: int, on_progress: engine.OnProgress | None) -> Path:
    """A file of so many bytes, all of it written."""
    engine.refuse_full([(room, file_bytes)], "the file to be operated on")
    file = room / "file"
    config = {
        "records": file_bytes // RECORD_BYTES,
        "start": "0",
        "encoding": "binary",
        "skew": False,
        "files": [str(file)],
    }
    engine.run("gensort", config, on_progress)
    return file


def _run(
    file: Path,
    device: str,
    step: Step,
    settings: Settings,
    number: int,
    on_progress: engine.OnProgress | None,
) -> Trial:
    operation = OPERATIONS[step.operation]
    config: dict[str, Any] = {
        "files": [str(file)],
        "writes": operation.writes,
        "durable_one_in": operation.durable_one_in,
        "block_bytes": operation.block_bytes,
        "outstanding": step.outstanding,
        "blocking": settings.blocking,
        "batched": settings.batched,
        "seconds": settings.seconds,
        "warm_up_seconds": warm_up(settings.seconds),
        "seed": settings.seed + number,
    }
    began_at = now()
    with beside.Watch(device) as watch:
        outcome = engine.run("ops_bench", config, on_progress)
    return _trial(outcome, config, began_at, step, watch)


def _trial(
    outcome: dict[str, Any],
    config: dict[str, Any],
    began_at: str,
    step: Step,
    watch: beside.Watch,
) -> Trial:
    """A trial from the core's report."""
    phase = probes.phase(outcome["phases"][0])
    latency = latency_of(outcome["latency"])
    stage = phase.stages[0]
    rate = outcome["operations_per_second"]
    cpu = stage.cpu_seconds / stage.records if stage.records else 0.0
    each_second = [worker["each_second"] for worker in outcome["workers"]]
    return Trial(
        name=f"{step.operation} x{step.outstanding}",
        bytes_per_second=rate * config["block_bytes"],
        cpu_seconds_per_byte=cpu / config["block_bytes"],
        warm_up_seconds=config["warm_up_seconds"],
        rates=[
            float(sum(seconds)) * config["block_bytes"]
            for seconds in zip_longest(*each_second, fillvalue=0)
        ],
        phase=phase,
        began_at=began_at,
        step=step,
        settings={name: value for name, value in config.items() if name != "files"},
        operations_per_second=rate,
        cpu_seconds_per_operation=cpu,
        latency=latency,
        each_second=each_second,
        beside=watch.beside,
    )


def latency_of(reported: dict[str, Any]) -> Latency:
    """Latencies as the core reports them, in seconds."""
    found = {f"{percent:g}": value / 1e9 for percent, value in reported["percentiles"]}
    return Latency(
        count=reported["count"],
        mean=_seconds(reported["mean"]),
        p50=found.get("50"),
        p90=found.get("90"),
        p99=found.get("99"),
        p999=found.get("99.9"),
        max=_seconds(reported["max"]),
        error_bound=reported["error_bound"],
        bins=[[value / 1e9, count] for value, count in reported["bins"]],
    )


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9
