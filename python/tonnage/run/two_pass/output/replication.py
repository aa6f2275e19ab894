"""What a machine does with copies of files that are whole: its own for others, and others' here.

::

    OUTPUT/_copies/part-00007      a copy of another machine's

A sort has its copies made while partitions are sorted (`Asked.COPIED_AS_WRITTEN`); what lacks one
afterwards, since a machine was lost, and all that a MapReduce writes, is read from disk once more.
When an owner is lost who keeps the copy takes its place: it only renames it.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tonnage.base import core
from tonnage.base.core.stage_stats import without_samples
from tonnage.base.records import fsync_directory
from tonnage.run.two_pass.output.names import COPIES

if TYPE_CHECKING:
    from tonnage.run.two_pass.worker import WorkerConfig

OnProgress = core.OnProgress


class ReplicationSteps(ABC):
    """A machine's part in a job, as far as copies are concerned."""

    _place: WorkerConfig
    _list: Path

    def copy(self, asked: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """Copies finished files to other machines, and keeps theirs: what the core tells of it.

        Args:
            asked: ``files``, of each its ``path`` and ``keeper``, an endpoint's number; ``keeps``,
                the partitions of which copies come; ``mesh``, who takes part.
            on_progress: Called with bytes done.
        """
        self._forget(only={*asked["keeps"]})
        self._note_listed()
        config = {
            "files": asked["files"],
            "copies": self._copies(asked["mesh"]),
            "memory_bytes": self._place.memory_bytes,
        }
        return without_samples(core.run("fleet_copy", config, on_progress))

    def inherit(self, files: Sequence[Sequence[Any]], on_progress: OnProgress) -> None:
        """Has copies be its own output; those that are so already stay.

        Args:
            files: Path, records, bytes and checksum of each, as its own.
            on_progress: Called after each.
        """
        self._note_listed()
        for number, (path, records, size, checksum) in enumerate(files):
            own = Path(path)
            if (copy := own.parent / COPIES / own.name).exists():
                copy.rename(own)
                fsync_directory(own.parent)
            about = {"records": records, "bytes": size, "checksum": f"{checksum:x}"}
            if os.stat(own).st_size != size:
                raise OSError(errno.EIO, "it is not whole", path)
            self._add_lines([{"path": path} | about])
            on_progress(number)

    def _copies(self, mesh: Mapping[str, Any]) -> dict[str, Any]:
        """Where it keeps copies, as the core is told."""
        output = [str(directory) for directory in self._copied_to]
        return {"mesh": mesh, "output": output, "finished": str(self._list)}

    @property
    def _copied_to(self) -> list[Path]:
        return [Path(directory) / COPIES for directory in self._place.output]

    @abstractmethod
    def _note_listed(self) -> None:
        """Notes what is listed so far: what comes after it this step has finished."""

    @abstractmethod
    def _add_lines(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Lists files that are whole, durably."""

    @abstractmethod
    def _forget(self, *, only: Collection[int] | None = None, but: Collection[int] = ()) -> None:
        """Removes partitions with their lines in the list of what is finished."""
