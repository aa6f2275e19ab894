"""The steps of the loop on a cluster, one after another; see `tonnage.study.cluster`."""

import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage.base import core, formatting
from tonnage.base.clock import utc_now
from tonnage.base.records import RecordError, RunRecord, write_atomically
from tonnage.base.records.cluster_study import STEPS, ClusterStudy, StudyStep
from tonnage.base.records.plan import Candidate, Plan
from tonnage.cluster.ray_adapter import TYPE_SEPARATOR, connect
from tonnage.measure.trial.session import locked_dir
from tonnage.model.run_comparison.plan_accuracy import plan_accuracy
from tonnage.run.sort.gensort import RECORD_BYTES
from tonnage.run.sort.input_generator import data_generator
from tonnage.run.two_pass.job_dir import RUN
from tonnage.study.cluster.commands import say, tonnage
from tonnage.study.cluster.settings import ClusterStudySettings
from tonnage.study.cluster.survey import REHEARSING, missing_space, survey

STUDY = "study.json"
SORT = "sort"
PROFILE, PLAN, CALIBRATED = "profile.json", "plan.json", "calibrated.json"
DATA_DIR_PREFIX = "tonnage-study-"
MODES = ("rw", "ro", "wo")
ROUNDS = 3
DISK_SECONDS, NET_SECONDS = 4.0, 2.0
DISK_BYTES = 4_000_000_000
"""A disk trial moves a machine's share of the job, up to this."""
REHEARSALS = 2
"""Two show how runs vary; more would take longer than the job."""


def study_cluster(settings: ClusterStudySettings, command: list[str], until: str) -> ClusterStudy:
    """Runs the steps that are left, up to one; gives the study's record, `STUDY` in ``out``.

    Raises:
        UsageError: The cluster or its machines cannot be used, or ``out`` holds another study.
        RunError: A step's command failed; the same command resumes there.
        KeyboardInterrupt: Ctrl-C; files on machines are removed; the same command resumes.
    """
    with locked_dir(settings.out) as held:
        return _Loop(settings, command, held).run(until)


class _Loop:
    """The steps; each adds to the record and writes it."""

    def __init__(self, settings: ClusterStudySettings, command: list[str], held: int) -> None:
        self._settings, self._out, self._lock = settings, settings.out, held
        self._commands: list[list[str]] = []  # of the step that is being done
        self._study = self._begun(command)

    def _begun(self, command: list[str]) -> ClusterStudy:
        """The study of an earlier command, or a new one."""
        place = self._out / STUDY
        if not place.exists():
            made = DATA_DIR_PREFIX + secrets.token_hex(4)
            return ClusterStudy(
                began_at=utc_now(), command=command, settings=self._settings.recorded, place=made
            )
        try:
            found = ClusterStudy.read(place)
        except RecordError as why:
            raise core.UsageError(
                f"{self._out} contains other files ({why}); use another directory",
                setting="output",
            ) from None
        kept = self._settings.recorded
        is_planned = any(step.name == "plan" for step in found.steps)
        for name, value in kept.items():
            is_free = name == "deadline_seconds" and not is_planned
            if not is_free and (earlier := found.settings.get(name)) != value:
                raise core.UsageError(
                    f"{self._out} contains a study with other settings ({name} was {earlier}, now "
                    f"{value}); use the same settings, or another directory",
                    setting="output",
                )
        return structs.replace(found, settings=found.settings | kept)

    def run(self, until: str) -> ClusterStudy:
        done = {step.name for step in self._study.steps}
        for name, do in STEP_METHODS.items():
            if name not in done:
                self._commands, began = [], time.monotonic()
                found = do(self)
                seconds = time.monotonic() - began
                step = StudyStep(name=name, commands=self._commands, seconds=seconds)
                self._keep(steps=[*self._study.steps, step], **found)
            if name == until:
                break
        return self._study

    def survey(self) -> dict[str, Any]:
        say("Looking at the machines")
        machines, size = survey(self._settings)
        say(f"To sort: {formatting.size(size)}")
        return {"machines": machines, "settings": self._study.settings | {"sorted_bytes": size}}

    def measure(self) -> dict[str, Any]:
        """Disks and network of each type, and rehearsals of the sort on two machines."""
        for kind in self._types:
            say(f"Measuring the disks of {kind}, all at once")
            self._tonnage(
                *("measure", "disk", *self._on(kind)),
                *("--dir", *map(str, self._settings.directories), "--mode", *MODES),
                *("--repetitions", str(ROUNDS), "--seconds", f"{DISK_SECONDS:g}"),
                *("--size", str(min(self._share(kind), DISK_BYTES)), "--memory", self._memory),
                *("--output", str(self._disk(kind))),
            )
            say(f"Measuring the network between {kind}")
            self._tonnage(
                *("measure", "net", *self._on(kind), "--connections", "1"),
                *("--repetitions", str(ROUNDS), "--seconds", f"{NET_SECONDS:g}"),
                *("--output", str(self._net(kind))),
            )
        for kind in self._types:
            for place in self._rehearsals(kind):
                self._rehearse(kind, place)
        return {}

    def model(self) -> dict[str, Any]:
        self._profile(self._measured(), self._out / PROFILE)
        return {}

    def plan(self) -> dict[str, Any]:
        deadline = self._settings.deadline_seconds
        aim = ("--objective", "time")
        if deadline is not None:
            aim = ("--deadline", f"{deadline}s")
        done = self._tonnage(
            *("plan", "sort", "--data", str(self._size), "--from", "local"),
            *("--durability", self._settings.durability, "--startup", "0"),
            *(*aim, "--max-nodes", str(max(map(self._count, self._types)))),
            *(
                "--measured",
                "--every-size",
                *self._catalogs(),
                "--profile",
                str(self._out / PROFILE),
            ),
            "--json",
            is_kept=True,
        )
        write_atomically(self._out / PLAN, done.encode())
        made = Plan.read(self._out / PLAN)
        fits = (
            (number, each)
            for number, each in enumerate(made.candidates, start=1)
            if self._can_be(each)
        )
        number, chosen = next(fits, (0, None))
        if chosen is None:
            raise core.RunError(
                f"no candidate of {self._out / PLAN} fits these machines; use a longer "
                "deadline, or less data with a new output directory"
            )
        seconds = chosen.seconds
        between = formatting.seconds_between(seconds.low, seconds.high)
        say(
            f"Planned: {chosen.nodes} x {chosen.offer}, {formatting.seconds(seconds.median)} "
            f"({between}), {formatting.usd(round(chosen.cost_usd.median, 4))}"
        )
        return {"candidate": chosen, "number": number}

    def run_job(self) -> dict[str, Any]:
        """The sort as planned, and the plan's accuracy."""
        chosen = self._study.candidate
        assert chosen is not None
        self._sort(
            *("--plan", str(self._out / PLAN), "--candidate", str(self._study.number)),
            *("--capacities", str(self._disk(chosen.offer)), str(self._net(chosen.offer))),
            kind=chosen.offer,
            nodes=chosen.nodes,
            size=self._size,
            out=self._out / SORT,
        )
        return {"came": plan_accuracy(RunRecord.read(self._out / SORT / RUN))}

    def report(self) -> dict[str, Any]:
        """Pages of the run and of the machines; and a profile that includes the run."""
        page = self._out / "report.html"
        measured = [*map(self._disk, self._types), *map(self._net, self._types)]
        self._profile([*self._measured(), self._out / SORT], self._out / CALIBRATED)
        self._tonnage("report", *map(str, measured), "--output", str(self._out / "machines.html"))
        self._tonnage("report", str(self._out / SORT), "--output", str(page))
        return {"report": str(page)}

    def _rehearse(self, kind: str, out: Path) -> None:
        say(f"Rehearsing on {REHEARSING} x {kind}")
        size = self._share(kind) * REHEARSING
        flags = ("--nodes", str(REHEARSING), "--durability", self._settings.durability)
        self._sort(*flags, kind=kind, nodes=REHEARSING, size=size, out=out)

    def _sort(self, *flags: str, kind: str, nodes: int, size: int, out: Path) -> None:
        """Sorts on the first machines of a type, which have the input only during the sort."""
        place = self._study.place
        inputs, output = (
            [str(each / place / name) for each in self._settings.data] for name in ("in", "out")
        )
        command = [
            *("run", "sort", *inputs, *self._on(kind), "--output", *output),
            *("--scratch", *(str(each / place / "scratch") for each in self._settings.scratch)),
            *("--memory", self._memory, *flags, "--job-dir", str(out)),
        ]
        names = [each.node for each in self._study.machines if each.type == kind][:nodes]
        record = out / RUN
        try:
            if not record.exists():
                shutil.rmtree(out, ignore_errors=True)
                self._lay_out(kind, names, size, inputs)
            # If an earlier command has sorted, this one does what that left, and prints it again.
            self._tonnage(*command)
            sorted_bytes = RunRecord.read(record).bytes
            if sorted_bytes != size // RECORD_BYTES * RECORD_BYTES:
                record.unlink()
                raise core.RunError(
                    f"only {formatting.size(sorted_bytes)} of {formatting.size(size)} were "
                    "sorted: some participating nodes contain none of the input"
                )
        finally:
            if not record.exists():
                shutil.rmtree(
                    out, ignore_errors=True
                )  # Its input is removed, so it cannot be resumed.
            self._remove(names)

    def _lay_out(self, kind: str, names: list[str], size: int, directories: Sequence[str]) -> None:
        self._remove(names)  # A study that was killed left it.
        records, nodes = size // RECORD_BYTES, len(names)
        ends = [records * (number + 1) // nodes for number in range(nodes)]
        shares = {
            name: end - begin for name, begin, end in zip(names, [0, *ends], ends, strict=False)
        }
        with connect(self._at(kind)) as cluster:
            first = cluster.machines[:nodes]
            if [each.name for each in first] != names:
                there = formatting.listing(each.name for each in first)
                raise core.RunError(
                    f"the first {nodes} nodes of type {kind} are now {there}, but the survey "
                    f"used {formatting.listing(names)}; restore those nodes, or use another "
                    "output directory"
                )
            with (
                data_generator(cluster, first) as generator,
                core.Progress("generating", size) as progress,
            ):
                generator.generate(shares, directories, progress)

    def _remove(self, names: Sequence[str]) -> None:
        """Removes the study's data where it can, and says where it may remain."""
        try:
            with connect(self._settings.cluster) as cluster:
                there = [each for each in cluster.machines if each.name in names]
                gone = {*names} - {each.name for each in there}
                stays = dict.fromkeys(gone, "it left the cluster")
                with data_generator(cluster, there) as generator:
                    stays |= generator.remove(self._places)
        except (core.UsageError, core.RunError) as failed:
            # Only a warning: an error that ended the step matters more.
            stays = dict.fromkeys(names, str(failed))
        for node, why in sorted(stays.items()):
            say(f"{node} may still have {formatting.listing(self._places)}: {why}")

    def _profile(self, measured: Sequence[Path], out: Path) -> None:
        paths = map(str, measured)
        self._tonnage("profile", *paths, *self._catalogs(), "--output", str(out))

    def _measured(self) -> list[Path]:
        """All measurements that profiles are made of, without the job itself."""
        rehearsed = [place for kind in self._types for place in self._rehearsals(kind)]
        return [*map(self._disk, self._types), *map(self._net, self._types), *rehearsed]

    def _tonnage(self, *arguments: str, is_kept: bool = False) -> str:
        self._commands.append(["tonnage", *arguments])
        return tonnage(arguments, self._lock, is_kept=is_kept)

    def _keep(self, **found: Any) -> None:
        self._study = structs.replace(self._study, **found)
        self._study.write(self._out / STUDY)

    @property
    def _types(self) -> list[str]:
        return sorted({each.type for each in self._study.machines})

    @property
    def _size(self) -> int:
        return int(self._study.settings["sorted_bytes"])

    @property
    def _memory(self) -> str:
        return str(self._settings.memory_bytes)

    @property
    def _places(self) -> list[str]:
        return [str(each / self._study.place) for each in self._settings.directories]

    def _count(self, kind: str) -> int:
        return sum(each.type == kind for each in self._study.machines)

    def _share(self, kind: str) -> int:
        """Each machine's share of the job if all of this type do it."""
        return self._size // self._count(kind)

    def _disk(self, kind: str) -> Path:
        return self._out / f"disk-{kind}"

    def _net(self, kind: str) -> Path:
        return self._out / f"net-{kind}"

    def _rehearsals(self, kind: str) -> list[Path]:
        return [self._out / f"rehearsal-{kind}-{number + 1}" for number in range(REHEARSALS)]

    def _on(self, kind: str) -> list[str]:
        return ["--cluster", self._at(kind)]

    def _at(self, kind: str) -> str:
        return f"{kind}{TYPE_SEPARATOR}{self._settings.cluster.rpartition(TYPE_SEPARATOR)[2]}"

    def _catalogs(self) -> list[str]:
        return [part for name in self._settings.catalogs for part in ("--catalog", name)]

    def _can_be(self, candidate: Candidate) -> bool:
        """Whether a candidate uses the study's machines, and they have space for it."""
        of = candidate.provider, candidate.offer
        machines = [each for each in self._study.machines if (each.provider, each.type) == of]
        share = self._size // candidate.nodes
        first = machines[: candidate.nodes]
        return len(machines) >= candidate.nodes and not any(
            missing_space(self._settings, each, share) for each in first
        )


STEP_METHODS: dict[str, Callable[[_Loop], dict[str, Any]]] = dict(
    zip(
        STEPS,
        (_Loop.survey, _Loop.measure, _Loop.model, _Loop.plan, _Loop.run_job, _Loop.report),
        strict=True,
    )
)
"""The method of each step, which gives what the step adds to the record."""
