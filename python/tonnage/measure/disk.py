"""Measure disks with the sort's own first pass, without its work (-> `Measurement`).

The graphs are variants of the job's (``crates/graphs/src/benches/disk.rs``), so queue depth,
transfer sizes and I/O engine are the job's own. Trials of different modes take turns, so that a
drift of the machine affects them all. A trial ends when its time is up or when it has gone through
its data once, since it writes new blocks, as a job does. As in Themis' DiskBench, half the devices
read and half write; a single one does both.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

import tonnage
from tonnage.base import core
from tonnage.base.clock import time_after, utc_now
from tonnage.base.credibility import scorecard
from tonnage.base.records import (
    Environment,
    Measurement,
    Metric,
    Phase,
    Source,
    SystemActivity,
    Trial,
    TrialSpec,
)
from tonnage.base.system import procfs
from tonnage.base.system.activity import activity_during
from tonnage.base.system.block_devices import devices_of
from tonnage.base.system.sampler import MachineSampler
from tonnage.measure.trial import repetition
from tonnage.measure.trial.cache_detection import unproved_detail
from tonnage.measure.trial.environment import capture
from tonnage.measure.trial.repetition import RepetitionPlan
from tonnage.measure.trial.session import open_session
from tonnage.measure.trial.trial import (
    STOPPING_RULE,
    new_id,
    page_cache_use,
    summaries,
    trial_from_phase,
)

MODES = ("wo", "ro", "rw", "headroom")
OPERATIONS = {"wo": "write", "ro": "read", "rw": "readwrite"}
"""The modes in the vocabulary of all tools; the bandwidth of ``rw`` is that of each direction."""


def split_read_write(directories: tuple[Path, ...]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The directories to read and those to write: half each, but a single one does both."""
    half = (len(directories) + 1) // 2
    return directories[:half], directories[half:] or directories


@dataclass(frozen=True)
class DiskSettings:
    read: tuple[Path, ...]
    """Directories to read; like those to write, one per device."""
    write: tuple[Path, ...]
    modes: tuple[str, ...]
    """Of ``MODES``: write only, read only, both at once, neither (the harness alone)."""
    rounds: int
    """How often each mode is tried; with ``until_confidence``, at most."""
    seconds: float
    """A trial ends after this time, or once it has read or written ``size_bytes``."""
    size_bytes: int
    """Also the size of the data that is written, before the first trial, to be read."""
    memory_bytes: int
    until_confidence: float | None = None

    def for_node(self, node: str) -> DiskSettings:
        """The settings for one node of a cluster, with its own order of the modes."""
        order = random.Random(node).sample(self.modes, len(self.modes))
        return dataclasses.replace(self, modes=tuple(order))

    @property
    def recorded(self) -> dict[str, Any]:
        places = {
            name: [str(path.resolve()) for path in paths]
            for name, paths in (("read", self.read), ("write", self.write))
        }
        return dataclasses.asdict(self) | places | {"modes": [*self.modes]}

    @property
    def repetition_plan(self) -> RepetitionPlan:
        return RepetitionPlan(self.rounds, self.until_confidence)


def measure_disk(
    out: Path,
    settings: DiskSettings,
    *,
    command: list[str],
    labels: Mapping[str, str] | None = None,
    on_progress: core.OnProgress | None = None,
) -> Iterator[Trial | Measurement]:
    """Yield the missing trials, round by round: each round writes anew what it reads."""
    with open_session(
        out,
        "disk",
        settings.recorded,
        command=command,
        environment=capture([*settings.read, *settings.write], labels),
        stopping_rule=f"{STOPPING_RULE}; {repetition.stopping_rule(settings.repetition_plan)}",
        page_cache="bypassed where a result states direct",
    ) as session:
        progress = on_progress
        for number in range(settings.rounds):
            if modes := _remaining_modes(settings, session.trials, number):
                for trial in _run_trials(settings, modes, number, progress):
                    yield session.add(trial)
                progress = core.offset_progress(settings.size_bytes, on_progress)
        yield session.finish(page_cache=_page_cache(session.trials))


def run_disk_rounds(
    settings: DiskSettings,
    *,
    environment: Environment,
    command: list[str],
    on_progress: core.OnProgress | None = None,
) -> Measurement:
    """Run all rounds at once, as part of something else; nothing is written to file."""
    began = utc_now()
    trials = _run_trials(settings, [*settings.modes] * settings.rounds, 0, on_progress)
    measurement = Measurement(
        id=new_id("disk"),
        kind="disk",
        began_at=began,
        command=command,
        environment=environment,
        settings=settings.recorded,
        stopping_rule=STOPPING_RULE,
        page_cache=_page_cache(trials),
        figures=summaries(trials),
        trials=trials,
    )
    return structs.replace(measurement, scorecard=scorecard([measurement]))


def queue_depth(phase: Phase) -> int:
    """The most transfers in flight, over all file systems and both directions."""
    return sum(
        stage.workers * stage.config["disk"]["depth"]
        for stage in phase.stages
        if "disk" in stage.config
    )


def _remaining_modes(settings: DiskSettings, completed: Sequence[Trial], number: int) -> list[str]:
    """The modes left to try in a round, in order; a mode may occur twice."""
    earlier = [trial for trial in completed if trial.step and trial.step.round < number]
    share = settings.until_confidence
    modes = [
        mode
        for mode in settings.modes
        if not repetition.is_precise([trial for trial in earlier if trial.name == mode], share)
    ]
    return modes[len(completed) - len(earlier) :]


def _run_trials(
    settings: DiskSettings, modes: Sequence[str], number: int, on_progress: core.OnProgress | None
) -> list[Trial]:
    """Try each of ``modes``, in round ``number`` and those that follow it."""
    config = {
        "read": [str(path) for path in settings.read],
        "write": [str(path) for path in settings.write],
        "bytes": settings.size_bytes,
        "trials": [{"mode": mode, "seconds": settings.seconds} for mode in modes],
        "memory_bytes": settings.memory_bytes,
    }
    halves = (settings.read, settings.write)
    needs = [(path, settings.size_bytes // len(half)) for half in halves for path in half]
    core.require_free_space(needs, "the measurement")
    devices = sorted({device for half in halves for path in half for device in devices_of(path)})
    began = utc_now()
    with MachineSampler(devices) as sampler:
        outcome = core.run("disk_bench", config, on_progress)
    phases = [phase for phase in outcome["phases"] if phase["name"] != "prepare"]
    trials = []
    for place, phase in enumerate(phases):
        trial = trial_from_phase(phase, settings.seconds)
        activity = _activity(trial.phase, devices, sampler)
        trials.append(
            structs.replace(
                _with_metric(trial, activity),
                began_at=time_after(began, trial.phase.began_seconds),
                step=TrialSpec(
                    operation=OPERATIONS.get(trial.name, trial.name),
                    outstanding=queue_depth(trial.phase),
                    round=number + place // len(settings.modes),
                    suite="disk",
                    until_confidence=settings.until_confidence,
                ),
                activity=activity,
            )
        )
    return trials


def _activity(phase: Phase, devices: Sequence[str], sampler: MachineSampler) -> SystemActivity:
    """The activity during one trial; of its devices only if the kernel counts all of them."""
    if procfs.disk_totals(devices):
        return activity_during(phase, devices, sampler)
    without_devices = activity_during(phase, [], sampler)
    return structs.replace(
        without_devices,
        device=", ".join(devices),
        device_read_bytes=None,
        device_written_bytes=None,
    )


def _page_cache(trials: Sequence[Trial]) -> str:
    return page_cache_use([{"disk_modes": trial.phase.disk_modes} for trial in trials])


def _with_metric(trial: Trial, activity: SystemActivity) -> Trial:
    if trial.name not in OPERATIONS:
        return trial
    modes = trial.phase.disk_modes
    metric = Metric(
        source=Source(tool="tonnage", version=tonnage.__version__),
        operation=OPERATIONS[trial.name],
        block_bytes=_transfer_bytes(trial),
        direct=all(mode["direct"] for mode in modes) if modes else None,
        bandwidth_bytes_per_second=trial.bytes_per_second,
        details={"mode": trial.name, **unproved_detail(activity)},
    )
    return structs.replace(trial, reading=metric)


def _transfer_bytes(trial: Trial) -> int | None:
    configs = [stage.config["disk"] for stage in trial.phase.stages if "disk" in stage.config]
    return max((config["transfer_bytes"] for config in configs), default=None)
