"""A node's steps with copies of finished files: its own for other nodes, and others' here.

::

    OUTPUT/_copies/part-00007      a copy of another node's file

A sort has its copies made while partitions are sorted (`TwoPassJob.COPIED_AS_WRITTEN`). A file that
lacks one afterwards, since a node was lost, is read from disk once more; so is all that a MapReduce
writes. When an owner is lost, the node with the copy takes its place: it only renames the copy.
"""

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tonnage.base import core
from tonnage.base.records import fsync_directory
from tonnage.run.two_pass.job_spec import WorkerConfig
from tonnage.run.two_pass.messages import AdoptCopies, CopyFiles, Mesh, WorkReport
from tonnage.run.two_pass.output.names import COPIES, name_below

OnProgress = core.OnProgress


class ReplicationSteps(ABC):
    _config: WorkerConfig
    _list: Path

    def copy(self, request: CopyFiles, on_progress: OnProgress) -> WorkReport:
        self._forget(only={*request.keeps})
        self._note_listed()
        config = {
            "files": [msgspec.structs.asdict(each) for each in request.files],
            "copies": self._copies(request.mesh),
            "memory_bytes": self._config.memory_bytes,
        }
        return WorkReport.of(core.run("fleet_copy", config, on_progress))

    def adopt_copies(self, request: AdoptCopies, on_progress: OnProgress) -> None:
        """Makes copies the node's own output; those that are so already stay."""
        self._note_listed()
        for number, file in enumerate(request.files):
            own, name = Path(file.path), name_below(file.path, self._config.output)
            output = own.parents[name.count("/")]
            if (copy := output / COPIES / name).exists():
                own.parent.mkdir(parents=True, exist_ok=True)
                copy.rename(own)
                for folder in own.parents[: name.count("/") + 1]:
                    fsync_directory(folder)
            if os.stat(own).st_size != file.sum.bytes:
                raise OSError(errno.EIO, "the file is incomplete", file.path)
            about = {"records": file.sum.records, "bytes": file.sum.bytes}
            self._add_lines([{"path": file.path, **about, "checksum": file.sum.checksum}])
            on_progress(number)

    def _copies(self, mesh: Mesh) -> dict[str, Any]:
        output = [str(directory) for directory in self._copied_to]
        return {"mesh": self._mesh_config(mesh), "output": output, "finished": str(self._list)}

    @property
    def _copied_to(self) -> list[Path]:
        return [Path(directory) / COPIES for directory in self._config.output]

    def _mesh_config(self, mesh: Mesh) -> dict[str, Any]:
        return mesh.to_json()

    @abstractmethod
    def _note_listed(self) -> None:
        """Notes what is listed so far: what comes after it this step has finished."""

    @abstractmethod
    def _add_lines(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Lists files that are whole, durably."""

    @abstractmethod
    def _forget(self, *, only: Collection[int] | None = None, but: Collection[int] = ()) -> None:
        """Removes partitions with their lines in the list of what is finished."""
