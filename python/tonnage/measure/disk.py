"""What disks carry: the sort's own first pass without its work (-> `Measurement`).

The graphs are edits of the job's (``crates/graphs/src/disk_bench.rs``), so depth, sizes and engine
are the job's own. Trials of different modes take turns, so that a drift of the machine meets all
of them. A trial ends when its time is up or when its data has been gone through once, since what
it writes are new blocks, as a job's are. It follows Themis' DiskBench: half the devices read and
half write, one does both.
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
    time_after,
    trial_from_phase,
    utc_now,
)

MODES = ("wo", "ro", "rw", "headroom")
OPERATIONS = {"wo": "write", "ro": "read", "rw": "readwrite"}
"""The modes in the vocabulary of all tools; of ``rw`` the bandwidth is that of each way."""


def split_read_write(directories: tuple[Path, ...]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Directories that are read and those that are written: one does both, several share it out."""
    half = (len(directories) + 1) // 2
    return directories[:half], directories[half:] or directories


@dataclass(frozen=True)
class DiskSettings:
    """How to measure."""

    read: tuple[Path, ...]
    """Directories that are read, one for each device."""
    write: tuple[Path, ...]
    """Directories that are written, one for each device."""
    modes: tuple[str, ...]
    """Of ``MODES``: write only, read only, both at once, neither (the harness alone)."""
    rounds: int
    """How often each mode is tried; at most, if that ends when it is known well enough."""
    seconds: float
    """After this a trial ends."""
    size_bytes: int
    """After this, read or written, a trial ends too; so much is laid out to be read before the
    first one."""
    memory_bytes: int
    """Memory as the sort would have it."""
    until_confidence: float | None = None
    """As `tonnage.measure.trial.repetition`."""

    def for_node(self, node: str) -> DiskSettings:
        """The same for one node of a fleet, modes in an order of its own."""
        order = random.Random(node).sample(self.modes, len(self.modes))
        return dataclasses.replace(self, modes=tuple(order))

    @property
    def recorded(self) -> dict[str, Any]:
        """What is kept of them."""
        places = {
            name: [str(path.resolve()) for path in paths]
            for name, paths in (("read", self.read), ("write", self.write))
        }
        return dataclasses.asdict(self) | places | {"modes": [*self.modes]}

    @property
    def repetition_plan(self) -> RepetitionPlan:
        """How often each mode is tried."""
        return RepetitionPlan(self.rounds, self.until_confidence)


def measure_disk(
    out: Path,
    settings: DiskSettings,
    *,
    command: list[str],
    labels: Mapping[str, str] | None = None,
    on_progress: core.OnProgress | None = None,
) -> Iterator[Trial | Measurement]:
    """Runs the trials that ``out`` does not have yet: gives each, and at last the measurement.

    They are kept round by round: what is read is laid out anew for each.

    Args:
        out: Where trials are kept; see `tonnage.measure.trial.session`.
        settings: What to do.
        command: How it can be repeated.
        labels: What else is known of where it is done, like its region.
        on_progress: Called with bytes; the first ``size_bytes`` are those that are laid out.

    Raises:
        UsageError: ``out`` holds trials of other settings, or a directory cannot be used.
        RunError: A device failed; the rounds that were done are in ``out``.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    with open_session(
        out,
        "disk",
        settings.recorded,
        command=command,
        environment=capture([*settings.read, *settings.write], labels),
        stopping_rule=f"{STOPPING_RULE}; {repetition.stopping_rule(settings.repetition_plan)}",
        page_cache="bypassed where a reading says direct",
    ) as trials:
        watched = on_progress
        for number in range(settings.rounds):
            if modes := _left(settings, trials.trials, number):
                for each in _tried(settings, modes, number, watched):
                    yield trials.add(each)
                watched = core.offset_progress(settings.size_bytes, on_progress)
        yield trials.finish(page_cache=_page_cache(trials.trials))


def run_disk_rounds(
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
    on_progress: core.OnProgress | None = None,
) -> Measurement:
    """Runs ``rounds`` rounds of trials of each of ``modes`` in one go, as part of something else.

    Args:
        read: As in `Settings`, and so are all up to ``memory_bytes``.
        write: Likewise.
        modes: Likewise.
        rounds: Likewise.
        seconds: Likewise.
        size_bytes: Likewise.
        memory_bytes: Likewise.
        environment: Where it is done.
        command: How it can be repeated.
        on_progress: Called with bytes; the first ``size_bytes`` are those that are laid out.

    Raises:
        UsageError: A directory cannot be used, or has too little room.
        RunError: A device failed.
    """
    settings = DiskSettings(
        read=tuple(read),
        write=tuple(write),
        modes=tuple(modes),
        rounds=rounds,
        seconds=seconds,
        size_bytes=size_bytes,
        memory_bytes=memory_bytes,
    )
    began = utc_now()
    trials = _tried(settings, [*modes] * rounds, 0, on_progress)
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


def _left(settings: DiskSettings, done: Sequence[Trial], number: int) -> list[str]:
    """The modes that a round is still to try, in their order; one may be among them twice."""
    earlier = [each for each in done if each.step and each.step.round < number]
    share = settings.until_confidence
    modes = [
        mode
        for mode in settings.modes
        if not repetition.is_precise([each for each in earlier if each.name == mode], share)
    ]
    return modes[len(done) - len(earlier) :]


def _tried(
    settings: DiskSettings,
    modes: Sequence[str],
    number: int,
    on_progress: core.OnProgress | None,
) -> list[Trial]:
    """A trial of each of ``modes``, of the round ``number`` and those that follow it."""
    config = {
        "read": [str(path) for path in settings.read],
        "write": [str(path) for path in settings.write],
        "bytes": settings.size_bytes,
        "trials": [{"mode": mode, "seconds": settings.seconds} for mode in modes],
        "memory_bytes": settings.memory_bytes,
    }
    halves = (settings.read, settings.write)
    each = [(half, settings.size_bytes // max(len(half), 1)) for half in halves]
    core.require_free_space(((path, share) for half, share in each for path in half), "measuring")
    names = sorted({name for half in halves for path in half for name in devices_of(path)})
    began = utc_now()
    with MachineSampler(names) as watch:
        outcome = core.run("disk_bench", config, on_progress)
    phases = [phase for phase in outcome["phases"] if phase["name"] != "prepare"]
    done = [trial_from_phase(phase, settings.seconds) for phase in phases]
    return [
        structs.replace(
            _read(each, happened := _beside(each.phase, names, watch)),
            began_at=time_after(began, each.phase.began_seconds),
            step=_step(each, number + place // len(settings.modes), settings.until_confidence),
            beside=happened,
        )
        for place, each in enumerate(done)
    ]


def _step(trial: Trial, number: int, until_confidence: float | None) -> TrialSpec:
    return TrialSpec(
        operation=OPERATIONS.get(trial.name, trial.name),
        outstanding=queue_depth(trial.phase),
        round=number,
        suite="disk",
        until_confidence=until_confidence,
    )


def queue_depth(phase: Phase) -> int:
    """Transfers at once at most, of all file systems and both ways."""
    return sum(
        stage.workers * stage.config["disk"]["depth"]
        for stage in phase.stages
        if "disk" in stage.config
    )


def _beside(phase: Phase, names: Sequence[str], watch: MachineSampler) -> SystemActivity:
    """What happened during one trial, cut out of what was seen of all; its devices, if counted."""
    if procfs.disk_totals(names):
        return activity_during(phase, names, watch)
    unknown = activity_during(phase, [], watch)
    return structs.replace(
        unknown, device=", ".join(names), device_read_bytes=None, device_written_bytes=None
    )


def _page_cache(trials: Sequence[Trial]) -> str:
    return page_cache_use([{"disk_modes": each.phase.disk_modes} for each in trials])


def _read(trial: Trial, happened: SystemActivity) -> Trial:
    """The trial with its reading; the harness alone has none."""
    if trial.name not in OPERATIONS:
        return trial
    modes = trial.phase.disk_modes
    reading = Metric(
        source=Source(tool="tonnage", version=tonnage.__version__),
        operation=OPERATIONS[trial.name],
        block_bytes=_transfer_bytes(trial),
        direct=all(mode["direct"] for mode in modes) if modes else None,
        bandwidth_bytes_per_second=trial.bytes_per_second,
        details={"mode": trial.name, **unproved_detail(happened)},
    )
    return structs.replace(trial, reading=reading)


def _transfer_bytes(trial: Trial) -> int | None:
    """What one system call moves at most."""
    configs = [stage.config["disk"] for stage in trial.phase.stages if "disk" in stage.config]
    return max((config["transfer_bytes"] for config in configs), default=None)
