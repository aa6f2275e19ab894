"""A node's part in a two-pass job: what it has of it on its disks, and the steps that it does.

::

    SCRATCH/tonnage-JOB/           in each directory for scratch
        node-NAME                  whose it is
        round-00003.device         what came in a round of pass one
        round-00003.index          where that lies, in the first one; written last
        finished.jsonl             the files of finished partitions, in the first one
    OUTPUT/.tonnage-unfinished-JOB/   until the manifest is there: `tonnage valsort` refuses it
    OUTPUT/part-00012              a partition; part-00012-00001 and so on, if it is several files
    OUTPUT/day=1/part-00012        what it has of a folder, if the output has folders
    OUTPUT/_copies/part-00007      a copy of another node's, if copies are kept (`replication`)
    OUTPUT/_tonnage.json           the manifest, last

What the core does is in ``crates/graphs/src/cluster``; which step is next, the driver says.
"""

import json
import os
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tonnage.base import core
from tonnage.base.records import write_atomically
from tonnage.base.records.base import decode
from tonnage.cluster.failure_kinds import InputChanged, InputUnreadable
from tonnage.cluster.protocol import Step
from tonnage.cluster.step_worker import Handler
from tonnage.run.storage.earlier_output import manifest_parts, refuse_unfinished
from tonnage.run.storage.hive import input_paths
from tonnage.run.storage.object_store import HIDDEN, is_url
from tonnage.run.two_pass import messages
from tonnage.run.two_pass.job_spec import WorkerConfig
from tonnage.run.two_pass.output.names import (
    COPIES,
    MANIFEST,
    UNFINISHED_PREFIX,
    is_part,
    part_files,
    remove_empty_folders,
)
from tonnage.run.two_pass.output.object_store import OTHER_JOB, ObjectStoreSteps, manifest_json
from tonnage.run.two_pass.output.replication_steps import ReplicationSteps
from tonnage.run.two_pass.splits import FileId, file_id, object_id

SCRATCH_PREFIX = "tonnage-"
FINISHED = "finished.jsonl"
OWNER = "node-"

OnProgress = core.OnProgress


class TwoPassWorker(ObjectStoreSteps, ReplicationSteps):
    """A node's part in a job; how it reads, sends and writes, its kind of job says."""

    SAMPLE: Step[Any, messages.SampleResult] = messages.SAMPLE
    PASS_ONE: Step[Any, Any]
    PASS_TWO: Step[Any, messages.WorkReport]
    READS_BELOW = False
    """Whether directories of the input are read at any depth."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._rooms = [Path(each) / f"{SCRATCH_PREFIX}{config.job}" for each in config.scratch]
        self._list = self._rooms[0] / FINISHED
        self._listed: int | None = None  # lines that were there when the step began to finish some

    def handlers(self) -> Sequence[Handler[Any, Any]]:
        return (
            Handler(messages.PREPARE, self.prepare),
            Handler(messages.LOOK, self.take_inventory),
            Handler(messages.SEES, self.sees),
            Handler(self.SAMPLE, self.sample),
            Handler(self.PASS_ONE, self.pass_one),
            Handler(self.PASS_TWO, self.pass_two),
            Handler(messages.COPY, self.copy),
            Handler(messages.ADOPT, self.adopt_copies),
            Handler(messages.DROP, self.drop),
            Handler(messages.SEAL, self.seal),
            Handler(messages.LEAVE, self.leave),
            *self.store_handlers(),
        )

    def prepare(self, _: None, on_progress: OnProgress) -> None:
        """Make the node's directories; `UsageError` if one is unusable, or holds other files."""
        config = self._config
        for setting, directories in (("output", config.output), ("scratch", config.scratch)):
            for directory in directories:
                self._refuse_inside(setting, directory)
                try:
                    Path(directory).mkdir(parents=True, exist_ok=True)
                except OSError as why:
                    raise core.UsageError(f"{directory}: {why.strerror}", setting=setting) from why
            if len({os.path.realpath(each) for each in directories}) < len(directories):
                raise core.UsageError(
                    "the same directory is listed twice; list each once", setting=setting
                )
        for directory in config.output:
            self._refuse_filled(directory)
        for setting, home in self._homes:
            try:
                home.mkdir(exist_ok=True)
                (home / f"{OWNER}{config.node}").touch()
            except OSError as why:
                raise core.UsageError(
                    f"{home.parent}: {why.strerror}; use a directory that can be written to",
                    setting=setting,
                ) from why

    def take_inventory(self, _: None, on_progress: OnProgress) -> messages.NodeInventory:
        """What is here, when all nodes are prepared; `UsageError` if an input cannot be used."""
        config = self._config
        files: dict[str, FileId] = {}
        absent, parts = [], []
        for path in config.inputs:
            paths = list(self._input(path))
            if not paths and not os.path.exists(path):
                absent.append(path)
            parts += manifest_parts(path)
            for number, each in enumerate(paths):
                about = self._readable(each)
                if (real := os.path.realpath(each)) in files:
                    raise core.UsageError(
                        f"input {each} is specified twice; specify each file once"
                    )
                files[real] = about
                on_progress(number)
        others = {
            name.removeprefix(OWNER): f"{setting} {home.parent}"
            for setting, home in self._homes
            for name in os.listdir(home)
            if name.startswith(OWNER) and name != f"{OWNER}{config.node}"
        }
        return messages.NodeInventory(
            workers=core.workers(),
            files=sorted(files.values()),
            absent=absent,
            parts=parts,
            others=others,
            devices=list(self._free()),
            rounds=list(self._whole_rounds()),
            finished=list(self._lines()),
        )

    @abstractmethod
    def sample(self, request: Any, on_progress: OnProgress) -> messages.SampleResult:
        """Samples its share of the input."""

    def pass_one(
        self, request: messages.PassOne, on_progress: OnProgress
    ) -> messages.PassOneResult:
        self._refuse_changed(request.files)
        if request.mesh.number not in request.owners:
            # A node that only reads may have no disk that can be written to.
            with tempfile.TemporaryDirectory(prefix="tonnage-") as directory:
                device, index = Path(directory) / "device", Path(directory) / "index"
                return self._round_in([device], index, request, on_progress)
        return self._round_in(*self._round(request.number), request, on_progress)

    def _round_in(
        self,
        devices: Sequence[Path],
        index: Path,
        request: messages.PassOne,
        on_progress: OnProgress,
    ) -> messages.PassOneResult:
        for path in (index, *devices):
            path.unlink(missing_ok=True)
        inputs = {each.path for each in request.files}
        try:
            with self._unchanged(request.splits):
                result = self._gather(request, devices, index, on_progress)
            self._refuse_changed(request.files)
        except BaseException as why:
            for path in (index, *devices):
                path.unlink(missing_ok=True)
            if isinstance(why, core.RunError) and inputs & {str(why.stage), str(why.file)}:
                raise InputUnreadable(why.why) from why
            raise
        return result

    @abstractmethod
    def _gather(
        self, request: Any, devices: Sequence[Path], index: Path, on_progress: OnProgress
    ) -> messages.PassOneResult:
        """Reads its splits, sends what is in them, and writes what comes to these files."""

    def _round_config(
        self, request: messages.PassOne, devices: Sequence[Path], index: Path
    ) -> dict[str, Any]:
        return {
            "mesh": self._mesh_config(request.mesh),
            "owners": request.owners,
            "splits": [self._split_config(each) for each in request.splits],
            "scratch": [str(path) for path in devices],
            "index": str(index),
        }

    @abstractmethod
    def pass_two(self, request: Any, on_progress: OnProgress) -> messages.WorkReport:
        """Finishes partitions; files are listed when they are whole."""

    def sees(self, request: messages.Paths, on_progress: OnProgress) -> messages.FilesThere:
        files = []
        for number, path in enumerate(request.paths):
            if os.path.isfile(path):
                files.append(file_id(path))
            on_progress(number)
        return messages.FilesThere(files)

    def drop(self, request: messages.Drop, on_progress: OnProgress) -> None:
        """Removes what a lost node had, but finished partitions that are kept."""
        keeps = {*request.keeps}
        if request.output is not None:
            self._remove_parts(request.output, but=keeps)
            return
        self._forget(but=keeps)
        for room in self._rooms:
            for path in room.glob("round-*"):
                path.unlink(missing_ok=True)

    def seal(self, request: messages.Seal, on_progress: OnProgress) -> None:
        for directory in self._copied_to:
            _remove_others(directory, request.copies)
        content = manifest_json(request.manifest)
        for output in request.output:
            write_atomically(Path(output) / MANIFEST, content)

    def leave(self, request: messages.Leave, on_progress: OnProgress) -> None:
        for room in self._rooms:
            shutil.rmtree(room, ignore_errors=True)
        for directory in {*self._config.output, *request.parts}:
            home = Path(directory) / f"{UNFINISHED_PREFIX}{self._config.job}"
            if directory in request.parts and home.exists():  # Else it may be another job's.
                _remove_others(Path(directory), request.parts[directory])
            with suppress(FileNotFoundError):
                shutil.rmtree(home)  # While it is there nobody takes the output for whole.
        for copies in self._copied_to:
            with suppress(OSError):
                copies.rmdir()  # If it keeps none.

    def _note_listed(self) -> None:
        self._listed = sum(1 for _ in self._lines())

    def _add_lines(self, lines: Iterable[Mapping[str, Any]]) -> None:
        with self._list.open("a") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())

    def begin_step(self) -> None:
        self._listed = None

    def news(self, known: int) -> list[messages.FinishedFile]:
        listed = self._listed
        return [] if listed is None else list(self._lines(listed + known))

    def _lines(self, first: int = 0) -> Iterator[messages.FinishedFile]:
        try:
            lines = self._list.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return
        for line in lines[first:]:
            if not line.endswith(b"\n"):
                return  # It is being written.
            file = decode(line, messages.FinishedFile, self._list)
            about: FileId | None
            try:
                about = (
                    object_id(file.path, file.bytes) if is_url(file.path) else file_id(file.path)
                )
            except OSError:
                about = None
            whole = about is not None and about.bytes == file.bytes
            yield msgspec.structs.replace(file, file_id=about if whole else None)

    @property
    def _homes(self) -> list[tuple[str, Path]]:
        name = f"{UNFINISHED_PREFIX}{self._config.job}"
        output = [("output", Path(each) / name) for each in self._config.output]
        return [*(("scratch", room) for room in self._rooms), *output]

    def _round(self, number: int) -> tuple[list[Path], Path]:
        name = f"round-{number:05}"
        return [room / f"{name}.device" for room in self._rooms], self._rooms[0] / f"{name}.index"

    def _whole_rounds(self) -> Iterator[int]:
        for path in sorted(self._rooms[0].glob("round-*.index")):
            number = int(path.stem.removeprefix("round-"))
            if all(device.is_file() for device in self._round(number)[0]):
                yield number

    def _free(self) -> Iterator[messages.DeviceSpace]:
        counts: dict[int, list[int]] = {}
        free: dict[int, int] = {}
        for kind, directories in enumerate((self._config.output, self._config.scratch)):
            for directory in directories:
                about, device = os.statvfs(directory), os.stat(directory).st_dev
                counts.setdefault(device, [0, 0])[kind] += 1
                if about.f_blocks:
                    free[device] = about.f_bavail * about.f_frsize
        for device, size in free.items():
            yield messages.DeviceSpace(device, size, *counts[device])

    def _input(self, path: str) -> Iterator[str]:
        if not os.path.isdir(path):
            if os.path.exists(path):
                yield path
            return
        names = sorted(os.listdir(path))
        refuse_unfinished(path, names)
        if self.READS_BELOW:
            yield from map(str, input_paths(Path(path)))
            return
        yield from (os.path.join(path, name) for name in names if not name.startswith(HIDDEN))

    def _readable(self, path: str) -> FileId:
        try:
            if not os.path.isfile(path):
                raise core.UsageError(
                    f"input {path} is not a regular file; use regular files, or directories of "
                    "regular files"
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
                raise InputChanged(f"input {each.path} has changed since the job began")

    def _refuse_inside(self, setting: str, directory: str) -> None:
        inside = Path(os.path.realpath(directory))
        for path in self._config.inputs:
            holder = Path(os.path.realpath(path))
            if holder == inside or (
                holder in inside.parents
                and not inside.relative_to(holder).parts[0].startswith(HIDDEN)
            ):
                raise core.UsageError(
                    f"{directory} is inside input {path} and would itself be read as input; use "
                    "a directory elsewhere",
                    setting=setting,
                )

    def _refuse_filled(self, directory: str) -> None:
        names = sorted(os.listdir(directory))
        if f"{UNFINISHED_PREFIX}{self._config.job}" in names:
            return  # Its own.
        for name in names:
            if name.startswith(UNFINISHED_PREFIX):
                raise core.UsageError(
                    f"{directory}: {OTHER_JOB}, or, to discard it, delete {name} and all part-* "
                    "files",
                    setting="output",
                )
            has_copies = name == COPIES and any(Path(directory, name).iterdir())
            if has_copies or name == MANIFEST or not name.startswith(HIDDEN):
                raise core.UsageError(
                    f"{directory} is not empty (it contains {name}); use an empty or new directory",
                    setting="output",
                )

    def _remove_parts(
        self,
        directories: Iterable[str],
        *,
        only: Collection[int] | None = None,
        but: Collection[int] = (),
    ) -> None:
        for directory in directories:
            for place in (Path(directory), Path(directory, COPIES)):
                for path in part_files(place):
                    if is_part(path.name, only, but):
                        path.unlink(missing_ok=True)
                remove_empty_folders(place)

    def _forget(self, *, only: Collection[int] | None = None, but: Collection[int] = ()) -> None:
        if self._list.exists():
            lines = self._list.read_text().splitlines(keepends=True)
            stays = [
                line
                for line in lines
                if line.endswith("\n")
                and not is_part(decode(line, messages.FinishedFile, self._list).path, only, but)
            ]
            if len(stays) < len(lines):
                write_atomically(self._list, "".join(stays).encode())
        self._remove_parts(self._config.output, only=only, but=but)


def _remove_others(directory: Path, parts: Collection[str]) -> None:
    """Removes other parts, which do not count: the node that was to drop them may have died."""
    for path in part_files(directory):
        if str(path.relative_to(directory)) not in parts:
            path.unlink()
    remove_empty_folders(directory)


def is_system_error(why: BaseException | None) -> bool:
    """Whether the system raised it; what decodes broken data raises errors without a number."""
    return isinstance(why, OSError) and why.errno is not None
