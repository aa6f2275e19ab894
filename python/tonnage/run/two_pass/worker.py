"""What one machine has of a job on a fleet, on its disks, and what it does with it.

::

    SCRATCH/tonnage-JOB/           a room in each directory for scratch
        node-NAME                  whose room it is
        round-00003.device         what came in a round of pass one
        round-00003.index          where that lies, in the first room; last: if it is there, all is
        finished.jsonl             the files of sorted partitions, in the first room
    OUTPUT/.tonnage-unfinished-JOB/   until the manifest is there: `tonnage valsort` refuses it
    OUTPUT/part-00012              a partition; part-00012-00001 and so on, if it is several files
    OUTPUT/_copies/part-00007      a copy of another machine's, if copies are kept (`copies`)
    OUTPUT/_tonnage.json           the manifest, last

What the core does is in ``crates/graphs/src/fleet``; what is done when, the driver says.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.base.core.stage_stats import without_samples
from tonnage.base.records import write_atomically
from tonnage.base.records.base import RecordError, decode
from tonnage.run.storage.object_store import HIDDEN, ObjectStoreOptions, is_url
from tonnage.run.two_pass.job_files import Manifest
from tonnage.run.two_pass.output.names import COPIES, MANIFEST, UNFINISHED_PREFIX, is_part
from tonnage.run.two_pass.output.object_store import InputChanged, ObjectStoreSteps
from tonnage.run.two_pass.output.replication import ReplicationSteps
from tonnage.run.two_pass.splits import FileId, file_id, object_id

ROOM_PREFIX = "tonnage-"
FINISHED = "finished.jsonl"
OWNER = "node-"

OnProgress = core.OnProgress

STEPS = (
    "prepare",
    "claim",
    "look",
    "find",
    "reach",
    "sample",
    "pass_one",
    "clear",
    "pass_two",
    "copy",
    "inherit",
    "sees",
    "drop",
    "seal",
    "publish",
    "leave",
    "release",
)
"""What a driver can ask of a site, one after another."""


@dataclass(frozen=True, kw_only=True)
class WorkerConfig(ABC):
    """A job as one of its machines has it."""

    job: str
    node: str
    inputs: tuple[str, ...]
    output: tuple[str, ...]
    scratch: tuple[str, ...]
    memory_bytes: int
    folder: str | None = None
    """Where in object storage the output goes, if not to directories."""
    volumes: ObjectStoreOptions = field(default_factory=ObjectStoreOptions)

    @abstractmethod
    def site(self) -> TwoPassWorker:
        """The machine's part."""


@dataclass(frozen=True)
class DeviceSpace:
    """How much is free on a device, and which of the job's directories are there."""

    device: int
    free_bytes: int
    output: int
    """How many directories for the output."""
    scratch: int


@dataclass(frozen=True)
class NodeInventory:
    """What is on a machine."""

    workers: int
    files: tuple[FileId, ...]
    absent: tuple[str, ...]
    """Inputs that are not there."""
    parts: tuple[str, ...]
    """What manifests among the inputs say that there is."""
    others: Mapping[str, str]
    """Other machines that have made themselves at home in a directory of this one."""
    rooms: tuple[DeviceSpace, ...]
    rounds: tuple[int, ...]
    """The rounds that are whole here."""
    finished: tuple[Mapping[str, Any], ...] = field(default=())
    """The lines of files that are whole here."""


class TwoPassWorker(ObjectStoreSteps, ReplicationSteps):
    """A machine's part in a job; what it reads, and makes of it, its kind of job says."""

    STEPS = STEPS

    def __init__(self, place: WorkerConfig) -> None:
        self._place = place
        self._rooms = [Path(each) / f"{ROOM_PREFIX}{place.job}" for each in place.scratch]
        self._list = self._rooms[0] / FINISHED
        self.on_news: Callable[[], None] = lambda: None
        self._listed: int | None = None  # lines that were there when pass two began

    def prepare(self, _: None, on_progress: OnProgress) -> None:
        """Makes itself at home.

        Raises:
            UsageError: A directory cannot be used, or holds something else.
        """
        place = self._place
        for flag, directories in (("--output", place.output), ("--scratch", place.scratch)):
            for directory in directories:
                self._refuse_inside(flag, directory)
                try:
                    Path(directory).mkdir(parents=True, exist_ok=True)
                except OSError as why:
                    raise core.UsageError(f"{flag} {directory}: {why.strerror}") from why
        if len({os.path.realpath(each) for each in place.output}) < len(place.output):
            raise core.UsageError("--output names a directory twice: give each once")
        if len({os.path.realpath(each) for each in place.scratch}) < len(place.scratch):
            raise core.UsageError("--scratch names a directory twice: give each once")
        for directory in place.output:
            self._refuse_filled(directory)
        for flag, home in self._homes:
            try:
                home.mkdir(exist_ok=True)
                (home / f"{OWNER}{place.node}").touch()
            except OSError as why:
                raise core.UsageError(
                    f"{flag} {home.parent}: {why.strerror}: give a directory to write to"
                ) from why

    def look(self, _: None, on_progress: OnProgress) -> NodeInventory:
        """What is here; all machines have prepared themselves by then.

        Raises:
            UsageError: An input cannot be used.
        """
        place = self._place
        files: dict[str, FileId] = {}
        absent, parts = [], []
        for path in place.inputs:
            found = list(self._input(path))
            if not found and not os.path.exists(path):
                absent.append(path)
            parts += _manifest_parts(path)
            for number, each in enumerate(found):
                about = self._readable(each)
                if (known := os.path.realpath(each)) in files:
                    raise core.UsageError(f"input {each} is given twice: give each file once")
                files[known] = about
                on_progress(number)
        others = {
            name.removeprefix(OWNER): f"{flag} {home.parent}"
            for flag, home in self._homes
            for name in os.listdir(home)
            if name.startswith(OWNER) and name != f"{OWNER}{place.node}"
        }
        return NodeInventory(
            workers=core.workers(),
            files=tuple(sorted(files.values())),
            absent=tuple(absent),
            parts=tuple(parts),
            others=others,
            rooms=tuple(self._free()),
            rounds=tuple(self._whole_rounds()),
            finished=tuple(self._lines()),
        )

    @abstractmethod
    def sample(self, asked: Mapping[str, Any], on_progress: OnProgress) -> Any:
        """What tells how its share of the input is to be divided.

        Args:
            asked: ``splits``, ``chunks``, and ``files`` as they are to be.
            on_progress: Called with bytes done.
        """

    def pass_one(self, asked: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """Its part in a round: what the core tells of it.

        Args:
            asked: ``number`` and ``files``, and what `_gather` is given.
            on_progress: Called with bytes done.
        """
        self._refuse_changed(asked["files"])
        if asked["mesh"]["number"] not in asked["owners"]:
            # Who only reads may have no disk that can be written to.
            with tempfile.TemporaryDirectory(prefix="tonnage-") as directory:
                device, index = Path(directory) / "device", Path(directory) / "index"
                return self._round_in([device], index, asked, on_progress)
        return self._round_in(*self._round(asked["number"]), asked, on_progress)

    def _round_in(
        self,
        devices: Sequence[Path],
        index: Path,
        asked: Mapping[str, Any],
        on_progress: OnProgress,
    ) -> dict[str, Any]:
        """A round with what comes in these files."""
        for path in (index, *devices):
            path.unlink(missing_ok=True)
        config = {name: asked[name] for name in asked if name not in ("number", "files")}
        config |= {"splits": [self._split(each) for each in asked["splits"]]}
        config |= {"scratch": [str(path) for path in devices], "index": str(index)}
        inputs = {each.path for each in asked["files"]}
        try:
            with self._unchanged(asked["splits"]):
                done = self._gather(config, on_progress)
            self._refuse_changed(asked["files"])
        except BaseException as why:
            for path in (index, *devices):
                path.unlink(missing_ok=True)
            if isinstance(why, core.RunError) and inputs & {str(each) for each in why.args[1:]}:
                raise InputUnreadable(why.args[0]) from why
            raise
        return without_samples(done)

    @abstractmethod
    def _gather(self, config: dict[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """Reads its splits, sends what is in them, and keeps what comes: what the core tells of it.

        Args:
            config: ``mesh``, ``splits``, ``owners``, ``scratch`` and ``index``, and what its kind
                of job says (`Asked.round`).
            on_progress: Called with bytes done.
        """

    @abstractmethod
    def pass_two(self, asked: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """Finishes partitions: what the core tells of it; files are listed when they are whole.

        Args:
            asked: ``rounds``, their numbers, and ``partitions``, of each its ``number`` and what
                its kind of job says (`Asked.partition`); ``mesh`` if copies are kept, and
                ``keeps``, the partitions of which here.
            on_progress: Called with bytes done.
        """

    def sees(self, paths: Sequence[str], on_progress: OnProgress) -> list[FileId]:
        """Those of these files that it sees."""
        found = []
        for number, path in enumerate(paths):
            if os.path.isfile(path):
                found.append(file_id(path))
            on_progress(number)
        return found

    def drop(self, asked: Mapping[str, Any], on_progress: OnProgress) -> None:
        """Removes what a lost machine had, but finished partitions that are kept.

        Args:
            asked: ``keeps``, their numbers; ``output``, the directories if they are not its own.
            on_progress: Not called.
        """
        keeps = set(asked["keeps"])
        if "output" in asked:
            self._remove_parts(asked["output"], but=keeps)
            return
        self._forget(but=keeps)
        for room in self._rooms:
            for path in room.glob("round-*"):
                path.unlink(missing_ok=True)

    def seal(self, asked: Mapping[str, Any], on_progress: OnProgress) -> None:
        """Writes the manifest: from then on the output is whole.

        Args:
            asked: ``manifest``; ``output``: the directories in which it is missing, its own and
                others; ``copies``: the names of those that are kept here.
            on_progress: Not called.
        """
        for directory in self._copied_to:
            for path in directory.glob("*"):
                if path.name not in asked["copies"]:
                    path.unlink()
        content = json.dumps(asked["manifest"], indent=1).encode() + b"\n"
        for directory in asked["output"]:
            write_atomically(Path(directory) / MANIFEST, content)

    def leave(self, parts: Mapping[str, Collection[str]], on_progress: OnProgress) -> None:
        """Removes all of the job but its output.

        Args:
            parts: By directory for output, others that it sees, too, the names of the parts that
                stay; of its own that are not named all stay.
            on_progress: Not called.
        """
        for room in self._rooms:
            shutil.rmtree(room, ignore_errors=True)
        for directory in {*self._place.output, *parts}:
            home = Path(directory) / f"{UNFINISHED_PREFIX}{self._place.job}"
            if directory in parts and home.exists():  # Else what is there may be another job's.
                self._remove_others(directory, parts[directory])
            with suppress(FileNotFoundError):
                shutil.rmtree(home)  # While it is there nobody takes the output for whole.
        for copies in self._copied_to:
            with suppress(OSError):
                copies.rmdir()  # If it keeps none.

    def _remove_others(self, directory: str, parts: Collection[str]) -> None:
        """Removes other parts, which count for nothing: whoever was to drop them may have died."""
        for path in Path(directory).glob("part-*"):
            if is_part(path.name) and path.name not in parts:
                path.unlink()

    def _note_listed(self) -> None:
        self._listed = sum(1 for _ in self._lines())

    def _add_lines(self, lines: Iterable[Mapping[str, Any]]) -> None:
        with self._list.open("a") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())

    def begin(self) -> None:
        """Has a step begin: it has finished nothing yet."""
        self._listed = None

    def finished(self, known: int) -> list[dict[str, Any]]:
        """The files that its step has finished, after so many of them."""
        listed = self._listed
        return [] if listed is None else list(self._lines(listed + known))

    def _lines(self, first: int = 0) -> Iterator[dict[str, Any]]:
        """The list from a line on; each with its file as it is seen, ``None`` if it is gone."""
        try:
            lines = self._list.read_text().splitlines(keepends=True)
        except FileNotFoundError:
            return
        for line in lines[first:]:
            if not line.endswith("\n"):
                return  # It is being written.
            told = json.loads(line)
            about: FileId | None
            try:
                about = (
                    object_id(told["path"], told["bytes"])
                    if is_url(told["path"])
                    else file_id(told["path"])
                )
            except OSError:
                about = None
            whole = about is not None and about.bytes == told["bytes"]
            yield told | {"seen": about if whole else None}

    @property
    def _homes(self) -> list[tuple[str, Path]]:
        name = f"{UNFINISHED_PREFIX}{self._place.job}"
        output = [("--output", Path(each) / name) for each in self._place.output]
        return [*(("--scratch", room) for room in self._rooms), *output]

    def _round(self, number: int) -> tuple[list[Path], Path]:
        name = f"round-{number:05}"
        return [room / f"{name}.device" for room in self._rooms], self._rooms[0] / f"{name}.index"

    def _whole_rounds(self) -> Iterator[int]:
        for path in sorted(self._rooms[0].glob("round-*.index")):
            number = int(path.stem.removeprefix("round-"))
            if all(device.is_file() for device in self._round(number)[0]):
                yield number

    def _free(self) -> Iterator[DeviceSpace]:
        counts: dict[int, list[int]] = {}
        free: dict[int, int] = {}
        for kind, directories in enumerate((self._place.output, self._place.scratch)):
            for directory in directories:
                about, device = os.statvfs(directory), os.stat(directory).st_dev
                counts.setdefault(device, [0, 0])[kind] += 1
                if about.f_blocks:
                    free[device] = about.f_bavail * about.f_frsize
        for device, size in free.items():
            yield DeviceSpace(device, size, *counts[device])

    def _input(self, path: str) -> Iterator[str]:
        """The files of an input, in the order of their names."""
        if not os.path.isdir(path):
            if os.path.exists(path):
                yield path
            return
        names = sorted(os.listdir(path))
        if unfinished := [name for name in names if name.startswith(UNFINISHED_PREFIX)]:
            raise core.UsageError(
                f"input {path} holds the output of a job that has not finished ({unfinished[0]}): "
                "wait for it, or run it again"
            )
        yield from (os.path.join(path, name) for name in names if not name.startswith(HIDDEN))

    def _readable(self, path: str) -> FileId:
        try:
            if not os.path.isfile(path):
                raise core.UsageError(
                    f"input {path} is no regular file: give files, or directories of files"
                )
            about = file_id(path)
            with open(path, "rb"):
                pass
        except OSError as why:
            raise core.UsageError(f"input {path}: {why.strerror}") from why
        self._refuse_input(about)
        return about

    def _refuse_changed(self, files: Iterable[FileId]) -> None:
        for each in files:
            try:
                now = file_id(each.path)
            except FileNotFoundError as why:
                raise InputChanged(f"input {each.path}: {why.strerror}") from why
            except OSError as why:
                raise InputUnreadable(f"input {each.path}: {why.strerror}") from why
            if now != each:
                raise InputChanged(f"input {each.path} was changed since the job began")

    def _refuse_inside(self, flag: str, directory: str) -> None:
        inside = Path(os.path.realpath(directory))
        for path in self._place.inputs:
            holder = Path(os.path.realpath(path))
            if holder == inside or (
                holder in inside.parents
                and not inside.relative_to(holder).parts[0].startswith(HIDDEN)
            ):
                raise core.UsageError(
                    f"{flag} {directory} lies in {path} and would be taken for records there: give "
                    "a directory elsewhere"
                )

    def _refuse_filled(self, directory: str) -> None:
        names = sorted(os.listdir(directory))
        if f"{UNFINISHED_PREFIX}{self._place.job}" in names:
            return  # Its own.
        for name in names:
            if name.startswith(UNFINISHED_PREFIX):
                raise core.UsageError(
                    f"--output {directory}: another job writes there, or was interrupted: wait for "
                    "it, go on with it (the same command with --job-dir of the first), or remove "
                    f"{name} and the parts"
                )
            has_copies = name == COPIES and any(Path(directory, name).iterdir())
            if has_copies or name == MANIFEST or not name.startswith(HIDDEN):
                raise core.UsageError(
                    f"--output {directory} is not empty (it holds {name}): give an empty or new "
                    "directory"
                )

    def _remove_parts(
        self,
        directories: Iterable[str],
        *,
        only: Collection[int] | None = None,
        but: Collection[int] = (),
    ) -> None:
        """Removes partitions' files, and copies of them."""
        for directory in directories:
            for path in (*Path(directory).glob("part-*"), *Path(directory, COPIES).glob("part-*")):
                if is_part(path.name, only, but):
                    path.unlink(missing_ok=True)

    def _forget(self, *, only: Collection[int] | None = None, but: Collection[int] = ()) -> None:
        """Removes partitions with their lines in the list of what is finished."""
        if self._list.exists():
            lines = self._list.read_text().splitlines(keepends=True)
            stays = [
                line
                for line in lines
                if line.endswith("\n")
                and not is_part(os.path.basename(json.loads(line)["path"]), only, but)
            ]
            if len(stays) < len(lines):
                write_atomically(self._list, "".join(stays).encode())
        self._remove_parts(self._place.output, only=only, but=but)


class InputUnreadable(Exception):
    """An input cannot be read here."""


class DeterministicError(Exception):
    """What would fail on any machine, as often as it is tried."""


def is_system_error(why: BaseException | None) -> bool:
    """Whether the system says so; who decodes what is broken has no number for it."""
    return isinstance(why, OSError) and why.errno is not None


def _manifest_parts(path: str) -> list[str]:
    try:
        content = Path(path, MANIFEST).read_bytes()
    except OSError:
        return []
    try:
        return decode(content, Manifest, Path(path, MANIFEST)).parts
    except RecordError as why:
        raise core.UsageError(f"input {why}") from why
