"""Run the whole loop on one machine: measure, predict, sort, validate, compare, report.

Each step's results are written before the next step, so an interrupted study keeps them. The
prediction is written before the sort starts. Data is in a locked directory under each given one and
is removed at the end, however the study ends; the next study removes a killed one's leftovers.
"""

import shutil
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core, formatting
from tonnage.base.clock import utc_now
from tonnage.base.records import (
    ActualPhase,
    ActualTimes,
    Limit,
    Measurement,
    Prediction,
    RecordError,
    RunRecord,
    Study,
    Validation,
    write_table,
)
from tonnage.base.system.block_devices import devices_of
from tonnage.base.system.sampler import MachineSampler
from tonnage.measure.cpu import measure_cpu
from tonnage.measure.disk import DiskSettings, run_disk_rounds, split_read_write
from tonnage.measure.trial import environment as environments
from tonnage.model import two_pass
from tonnage.model.study_findings import bottleneck_reason, findings, warnings
from tonnage.report.study.page import write_report
from tonnage.run.sort import gensort
from tonnage.run.sort.local import Layout, SortOutcome, sort

DATA_PREFIX = ".tonnage-study-"
LAST_STEP = "reported"
TRIAL_SECONDS = (0.3, 2.0)
"""Bounds of a trial's length, which is one second per gigabyte."""
DISK_MODES = ("rw", "ro", "rw", "wo", "headroom")
"""A round of trials; mixed reads and writes matter most, so they run twice."""
ROUNDS_BEFORE = 4
ROUNDS_AFTER = 3
CPU_SECONDS = 1.0
CPU_ROUNDS = 3
REHEARSALS = 2
REHEARSAL_BYTES = 2_000_000_000
"""A rehearsal sorts half of the data, up to this, so that start-up costs do not dominate."""
BENCH_BYTES = 4_000_000_000
"""The disk benchmark's files have the sort's size, up to this."""


@dataclass(frozen=True)
class LocalStudySettings:
    size_bytes: int
    memory_bytes: int
    directories: tuple[Path, ...]
    out: Path

    @property
    def data(self) -> tuple[Path, ...]:
        """Directories of input and output: the first half, or the only one."""
        return split_read_write(self.directories)[0]

    @property
    def scratch(self) -> tuple[Path, ...]:
        """Directories of scratch: the other half, or the only one."""
        return split_read_write(self.directories)[1]


def standalone_measure_command(
    settings: LocalStudySettings, rounds: int, seconds: float, size_bytes: int, *, turned: bool
) -> list[str] | None:
    """The command that measures the disks as the study does, if there is one.

    ``turned`` is pass two: scratch is read, data is written.
    """
    read, write = settings.data, settings.scratch
    if turned:
        read, write = write, read
    directories = read if read == write else (*read, *write)
    if len(read) != (len(directories) + 1) // 2:
        return None  # That command cannot choose the half to read.
    return [
        *("tonnage", "measure", "disk", "--dir", *map(str, directories)),
        *("--mode", *DISK_MODES, "--repetitions", str(rounds)),
        *("--seconds", str(seconds), "--size", str(size_bytes)),
        *("--memory", str(settings.memory_bytes)),
    ]


def run_study(settings: LocalStudySettings, command: list[str]) -> Study:
    """Run the loop and return its record, also written to ``study.json`` in ``settings.out``.

    Raises:
        UsageError: A directory cannot be used or has too little space.
        RunError: A step failed; earlier results are in ``settings.out``.
        KeyboardInterrupt: Ctrl-C; data is removed.
    """
    with ExitStack() as stack:
        data = [
            stack.enter_context(core.workspace("dir", path, DATA_PREFIX)) for path in settings.data
        ]
        scratch = [
            data[settings.data.index(path)]
            if path in settings.data
            else stack.enter_context(core.workspace("dir", path, DATA_PREFIX))
            for path in settings.scratch
        ]
        return _Loop(settings, command, data, scratch).run()


class _Loop:
    """The steps in order; each updates and writes the record."""

    def __init__(
        self,
        settings: LocalStudySettings,
        command: list[str],
        data: list[Path],
        scratch: list[Path],
    ) -> None:
        self._settings = settings
        self._command = command
        self._data, self._scratch = data, scratch
        size = settings.size_bytes // gensort.RECORD_BYTES * gensort.RECORD_BYTES
        self._bytes = size
        least, most = TRIAL_SECONDS
        self._trial_seconds = min(max(size / 1e9, least), most)
        self._environment = environments.capture([*data, *scratch])
        self._host: dict[str, list[Any]] = {}  # counters during the sort
        self._study = Study(
            began_at=utc_now(),
            command=command,
            environment=self._environment,
            settings={
                "size_bytes": size,
                "memory_bytes": settings.memory_bytes,
                "directories": {
                    "data": [str(path) for path in settings.data],
                    "scratch": [str(path) for path in settings.scratch],
                },
            },
        )

    def run(self) -> Study:
        self._begin()
        inputs = self._generate()
        before = self._measure(ROUNDS_BEFORE)
        cpu = self._measure_cpu()
        rehearsals = [self._rehearse(number) for number in range(REHEARSALS)]
        prediction = self._predict(before, cpu, rehearsals)
        job = self._sort(inputs)
        validation = self._validate(job.record)
        after = self._measure(ROUNDS_AFTER)
        self._compare(prediction, job.record, validation, before, after)
        self._keep(LAST_STEP, report=str(write_report(self._settings.out)))
        return self._study

    def _begin(self) -> None:
        """Refuse early what would otherwise fail after minutes."""
        out = self._settings.out
        if (out / "study.json").exists():
            raise core.UsageError(
                f"{out} contains an earlier study, {_how_far(out)}; use another directory, or "
                "remove that one",
                setting="output",
            )
        self._shape(self._bytes)  # Refuses too little memory.
        # The sort needs most: input and output here, scratch there. Measurements are no larger
        # than the input, and a rehearsal sorts half of it.
        wanted = [(path, 2 * self._bytes // len(self._data)) for path in self._data]
        wanted += [(path, self._bytes // len(self._scratch)) for path in self._scratch]
        core.require_free_space(wanted, "the study")
        try:
            self._keep("begun")
        except OSError as why:
            raise core.UsageError(
                f"{out}: {why.strerror}; use another directory", setting="output"
            ) from why

    def _generate(self) -> list[Path]:
        _say(f"Generating {formatting.size(self._bytes)} of random records")
        files = [directory / "input" for directory in self._data]
        self._generate_into(files, self._bytes)
        self._keep("generated")
        return files

    def _generate_into(self, files: list[Path], size_bytes: int) -> None:
        with core.Progress("generating", size_bytes) as progress:
            gensort.generate(size_bytes // gensort.RECORD_BYTES, files, on_progress=progress)

    def _measure(self, rounds: int) -> two_pass.DiskMeasurements:
        turns = formatting.several(rounds, "round")
        _say(f"Measuring the disks: {turns} of writing, reading, and both at once")
        one = self._measure_disk(rounds)
        same = self._data == self._scratch
        two = one if same else self._measure_disk(rounds, turned=True)
        self._keep(
            "disks measured",
            measurements=[*self._study.measurements, one, *([] if same else [two])],
        )
        return two_pass.DiskMeasurements(pass_one=[one], pass_two=[two])

    def _measure_disk(self, rounds: int, *, turned: bool = False) -> Measurement:
        """Measure the disks as pass one uses them; ``turned``, as pass two does."""
        read, write = self._data, self._scratch
        if turned:
            read, write = write, read
        size, seconds = min(self._bytes, BENCH_BYTES), self._trial_seconds
        again = standalone_measure_command(self._settings, rounds, seconds, size, turned=turned)
        with core.Progress("measuring", size, rounds * len(DISK_MODES) * seconds) as progress:
            measurement = run_disk_rounds(
                DiskSettings(
                    read=tuple(read),
                    write=tuple(write),
                    modes=tuple(DISK_MODES),
                    rounds=rounds,
                    seconds=seconds,
                    size_bytes=size,
                    memory_bytes=self._settings.memory_bytes,
                ),
                environment=self._environment,
                command=again or self._command,
                on_progress=progress,
            )
        measurement.write(self._settings.out / "measurements" / f"{measurement.id}.json")
        return measurement

    def _measure_cpu(self) -> list[Measurement]:
        _say("Measuring partitioning and sorting on the CPU")
        seconds = min(CPU_SECONDS, self._trial_seconds)
        total = CPU_ROUNDS * len(two_pass.PASSES) * seconds
        with core.Progress("measuring", total_seconds=total) as progress:
            measurement = measure_cpu(
                size_bytes=self._bytes,
                memory_bytes=self._settings.memory_bytes,
                rounds=CPU_ROUNDS,
                seconds=seconds,
                environment=self._environment,
                command=self._command,
                on_progress=progress,
            )
        measurement.write(self._settings.out / "measurements" / f"{measurement.id}.json")
        self._keep("cores measured", measurements=[*self._study.measurements, measurement])
        return [measurement]

    def _rehearse(self, number: int) -> two_pass.Rehearsal:
        """Sort a small part of the data, to observe disks and CPU together."""
        size = min(self._bytes // 2, REHEARSAL_BYTES) // gensort.RECORD_BYTES * gensort.RECORD_BYTES
        _say(f"Rehearsing with {formatting.size(size)}")
        inputs = [directory / "rehearsal" for directory in self._data]
        self._generate_into(inputs, size)
        outputs = [directory / "rehearsed" for directory in self._data]
        record = self._run_sort(inputs, outputs, size).record
        for output in outputs:
            shutil.rmtree(output)
        for path in inputs:
            path.unlink()
        record.write(self._settings.out / f"rehearsal-{number + 1}.json")
        self._keep("rehearsed", rehearsals=[*self._study.rehearsals, record])
        return two_pass.Rehearsal(shape=self._shape(size), record=record)

    def _run_sort(self, inputs: list[Path], outputs: list[Path], size_bytes: int) -> SortOutcome:
        with core.Progress("sorting", size_bytes) as progress:
            return sort(
                inputs,
                outputs,
                self._scratch,
                layout=Layout(),
                memory_bytes=self._settings.memory_bytes,
                spill_all=True,  # The prediction is of two passes through scratch.
                environment=self._environment,
                began_at=utc_now(),
                command=self._command,
                on_progress=progress,
            )

    def _shape(self, size_bytes: int) -> two_pass.SortShape:
        """A sort of this size with the core's division of memory."""
        plan = core.plan(
            {
                "bytes": size_bytes,
                "record_bytes": gensort.RECORD_BYTES,
                "memory_bytes": self._settings.memory_bytes,
                "workers": self._environment.cores,
                "devices": [len(self._data), len(self._scratch), len(self._data)],
            }
        )
        return two_pass.SortShape(
            bytes=size_bytes,
            cores=self._environment.cores,
            open_block_bytes=plan["workers"] * plan["partitions"] * plan["block_bytes"],
            partition_bytes=size_bytes // plan["partitions"],
        )

    def _predict(
        self,
        disks: two_pass.DiskMeasurements,
        cpu: list[Measurement],
        rehearsals: list[two_pass.Rehearsal],
    ) -> Prediction:
        shape = self._shape(self._bytes)
        try:
            prediction = two_pass.predict(shape, disks, cpu, rehearsals, made_at=utc_now())
        except LookupError as error:
            text = f"nothing can be predicted: {error}; give it more data"
            raise core.RunError(text, None, None, None) from error
        prediction.write(self._settings.out / "prediction.json")
        self._keep("predicted", predicted=prediction)
        between = formatting.seconds_between(prediction.low_seconds, prediction.high_seconds)
        by = formatting.several(len(rehearsals), "rehearsal")
        _say(f"Predicted: {formatting.seconds(prediction.seconds)} ({between}), calibrated by {by}")
        return prediction

    def _sort(self, inputs: list[Path]) -> SortOutcome:
        _say("Sorting")
        directories = [*self._data, *self._scratch]
        names = sorted({name for directory in directories for name in devices_of(directory)})
        with MachineSampler(names) as watch:
            outputs = [directory / "output" for directory in self._data]
            job = self._run_sort(inputs, outputs, self._bytes)
        self._host = watch.host
        out = self._settings.out
        job.record.write(out / "run.json")
        files = {"timeline": job.timeline, "devices": watch.devices, "host": watch.host}
        for name, columns in files.items():
            write_table(out / f"{name}.parquet", columns)
        named = {name: f"{name}.parquet" for name in files}
        self._keep("sorted", run=job.record, files=named)
        _say(f"Sorted in {formatting.seconds(job.record.seconds)}")
        return job

    def _validate(self, run: RunRecord) -> Validation:
        _say("Validating the output")
        outputs = [directory / "output" for directory in self._data]
        with core.Progress("validating", self._bytes) as progress:
            found = gensort.validate(outputs, layout=Layout(), on_progress=progress)
        matches = (found["records"], found["checksum"]) == (run.records, run.checksum)
        validation = Validation(
            records=found["records"],
            checksum=found["checksum"],
            unordered=found["unordered"],
            duplicate_keys=found["duplicate_keys"],
            seconds=found["seconds"],
            matches_input=matches,
        )
        self._keep("validated", validation=validation)
        if validation.unordered or not matches:
            raise core.RunError("the output is not a sorted copy of the input", None, None, None)
        # Free the output, so that later disk measurements do not depend on how full the disk is.
        for output in outputs:
            shutil.rmtree(output)
        return validation

    def _compare(
        self,
        prediction: Prediction,
        run: RunRecord,
        validation: Validation,
        before: two_pass.DiskMeasurements,
        after: two_pass.DiskMeasurements,
    ) -> None:
        disks = two_pass.DiskMeasurements(
            pass_one=[*before.pass_one, *after.pass_one],
            pass_two=[*before.pass_two, *after.pass_two],
        )
        seconds = two_pass.limit_seconds(self._bytes, disks)
        limit = Limit(
            seconds=seconds,
            efficiency=seconds / run.seconds,
            rule="each byte read and written twice at the median rate of the rw trials made before "
            "and after the sort (2-IO)",
            measurements=list(dict.fromkeys(m.id for m in [*disks.pass_one, *disks.pass_two])),
        )
        planned = {phase.name: phase for phase in prediction.phases}
        phases = [
            ActualPhase(
                name=phase.name,
                seconds=phase.seconds,
                predicted_seconds=planned[phase.name].seconds if phase.name in planned else None,
                bottleneck=phase.bottleneck,
                why=bottleneck_reason(phase),
            )
            for phase in run.phases
        ]
        error = abs(prediction.seconds - run.seconds) / run.seconds
        actual = ActualTimes(seconds=run.seconds, phases=phases)
        self._keep("compared", actual=actual, limit=limit, error_fraction=error)
        self._keep("explained", findings=findings(self._study))

    def _keep(self, step: str, **results: Any) -> None:
        steps = [*self._study.steps, step]
        self._study = structs.replace(self._study, steps=steps, **results)
        self._study = structs.replace(self._study, warnings=warnings(self._study, self._host))
        self._study.write(self._settings.out / "study.json")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _how_far(out: Path) -> str:
    try:
        steps = Study.read(out / "study.json").steps
    except (RecordError, OSError):
        return "which this version cannot read"
    if LAST_STEP in steps:
        return "which is finished"
    return f"which is not finished (its last step: {steps[-1] if steps else 'none'})"
