"""A sort of fixed-length records on a fleet: what its kind says of it, and a machine's part in it.

Boundaries are quantiles of keys that nodes sample; what was written has to have the records, bytes
and sum of CRC-32s of what was read. What a machine does is in ``crates/graphs/src/fleet``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tonnage.base import core
from tonnage.base.core.stage_stats import without_samples
from tonnage.run.sort.local import Layout
from tonnage.run.two_pass import admission, sizing
from tonnage.run.two_pass.job_dir import FatalJobError
from tonnage.run.two_pass.job_spec import REPLICATED, TwoPassJob
from tonnage.run.two_pass.sampling import sample
from tonnage.run.two_pass.schedule import Finished, Round, Schedule, Split, Total
from tonnage.run.two_pass.splits import FileId, cut_splits
from tonnage.run.two_pass.worker import NodeInventory, OnProgress, WorkerConfig, TwoPassWorker

if TYPE_CHECKING:
    from tonnage.run.two_pass.job_state import JobRun


@dataclass(frozen=True, kw_only=True)
class SortJob(TwoPassJob):
    """A sort that is asked of a fleet."""

    JOB = "sort"
    LISTED = "sorted.json"
    COPIED_AS_WRITTEN = True

    layout: Layout

    @property
    def kind_settings(self) -> dict[str, Any]:
        """The layout's."""
        layout = self.layout
        return {
            "record_bytes": layout.record_bytes,
            "key": f"{layout.key_offset}:{layout.key_bytes}",
        }

    def worker_config(self, job: str, node: str) -> SortWorkerConfig:
        """A node's place in the job."""
        return SortWorkerConfig(
            **self.worker_fields(job, node),
            layout=self.layout.to_json(),
        )

    def splits(self, held: Mapping[FileId, tuple[str, ...]]) -> list[Split]:
        """Cuts files at records."""
        return cut_splits(held, self.layout.record_bytes)

    @property
    def _devices(self) -> sizing.Devices:
        own, at_once = len(self.scratch), self.volumes.concurrency
        return sizing.Devices(
            at_once if self.input_urls else 1,
            own,
            at_once if self.output_url else own,
            uploads=self.output_url is not None,
        )

    def check_space(
        self, looks: Mapping[str, NodeInventory], weights: Mapping[str, float], total_bytes: int
    ) -> None:
        """Refuses if a node has too little room: scratch and outputs are as large as the input."""
        copies = 2 if self.durability == REPLICATED else 1
        admission.refuse_full(looks, weights, total_bytes, copies)

    def partitioning(self, job: JobRun, splits: Sequence[Split]) -> dict[str, Any]:
        """Where partitions begin, of keys that nodes sample of their shares."""
        partitions = sizing.partitions(
            splits,
            job.workers,
            self.layout,
            self.memory_bytes,
            self._devices,
            self.connections,
        )
        keys = sample(job, splits, sizing.chunks(partitions))
        with tempfile.TemporaryDirectory(prefix="tonnage-keys-") as directory:
            samples = []
            for number, content in enumerate(keys):
                samples.append(Path(directory) / str(number))
                samples[-1].write_bytes(content["keys"])
            config = {
                "samples": [str(path) for path in samples],
                "layout": self.layout.to_json(),
                "partitions": partitions,
            }
            bounds = core.run("fleet_boundaries", config)
        return bounds | {"partitions": len(bounds["single"])}

    def round(self, job: JobRun, each: Round) -> dict[str, dict[str, Any]]:
        """Boundaries, and the sizes of blocks and scratch."""
        plan = job.dir.plan
        assert plan is not None
        blocks = sizing.block_bytes(
            each,
            job.schedule,
            job.workers,
            self.layout,
            self.memory_bytes,
            self._devices,
            self.connections,
        )
        rooms = sizing.space_needed(each, job.schedule)
        return {
            node: {
                "bounds": plan["bounds"],
                "room_bytes": rooms.get(node, 0),
                "block_bytes": blocks,
            }
            for node in each.nodes
        }

    def check_round(self, each: Round, answers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Nothing: the sums of records at the end say more."""
        return {}

    def pass_two(self, job: JobRun) -> dict[str, Any]:
        """Nothing that a partition does not say."""
        return {}

    def partition(self, job: JobRun, place: int) -> dict[str, Any]:
        """Whether all its keys are equal."""
        plan = job.dir.plan
        assert plan is not None
        return {"single": plan["single"][place]}

    def listing_fields(self, job: JobRun, place: int) -> dict[str, Any]:
        """The boundaries that its keys lie between; ``None`` where there is none."""
        plan = job.dir.plan
        assert plan is not None
        ends = [None, *plan["bounds"], None]
        return {"range": ends[place : place + 2]}

    def is_complete(self, files: Sequence[Finished], line: Mapping[str, Any], came: int) -> bool:
        """When as many bytes were written as came."""
        return sum(file.total.bytes for file in files) == came

    def check_totals(self, schedule: Schedule) -> None:
        """What was written has to be what was read."""
        read, written = schedule.read, schedule.written
        if read != written or read.bytes != schedule.input_bytes:
            raise FatalJobError(
                f"what was written ({_in_words(written)}) is not what was read "
                f"({_in_words(read)}) of {schedule.input_bytes} bytes: nothing is called done; "
                "begin again with another --job-dir"
            )

    def record_fields(self, job: JobRun) -> dict[str, Any]:
        """What was sorted."""
        total = job.schedule.written
        return {
            "records": total.records,
            "bytes": total.bytes,
            "checksum": f"{total.checksum:x}",
        }


def _in_words(total: Total) -> str:
    return f"{total.records} records, {total.bytes} bytes, checksum {total.checksum:x}"


@dataclass(frozen=True, kw_only=True)
class SortWorkerConfig(WorkerConfig):
    """A sort as one of its machines has it."""

    layout: Mapping[str, int]

    def site(self) -> SortWorker:
        """The machine's part."""
        return SortWorker(self)


class SortWorker(TwoPassWorker):
    """A machine's part in a sort."""

    _place: SortWorkerConfig

    def sample(self, asked: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """The keys of chunks of its share of the input."""
        keys = self._rooms[0] / "keys"
        self._refuse_changed(asked["files"])
        splits = [self._split(each) for each in asked["splits"]]
        config = {"splits": splits, "chunks": asked["chunks"], "keys": str(keys)} | self._common
        with self._unchanged(asked["splits"]):
            done = core.run("fleet_sample", config, on_progress)
        content = keys.read_bytes()
        keys.unlink()
        return {"keys": content, "requests": done["requests"]}

    def _gather(self, config: dict[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        return core.run("fleet_pass_one", config | self._common, on_progress)

    def pass_two(self, asked: Mapping[str, Any], on_progress: OnProgress) -> dict[str, Any]:
        """Sorts partitions."""
        self._forget(only={each["number"] for each in asked["partitions"]} | {*asked["keeps"]})
        self._note_listed()
        rounds = [
            {"scratch": [str(path) for path in devices], "index": str(index)}
            for devices, index in map(self._round, asked["rounds"])
        ]
        config = {
            "rounds": rounds,
            "partitions": asked["partitions"],
            "output": self._output,
            "scratch": [str(room) for room in self._rooms],
            "finished": str(self._list),
        }
        if "mesh" in asked:
            config["copies"] = self._copies(asked["mesh"])
        return without_samples(core.run("fleet_pass_two", config | self._common, on_progress))

    def _refuse_input(self, file: FileId) -> None:
        record = self._place.layout["record_bytes"]
        if rest := file.bytes % record:
            raise core.UsageError(
                f"input {file.path}: its {file.bytes} bytes are no multiple of the record's "
                f"{record}; after the last whole record, at offset {file.bytes - rest}, {rest} "
                "bytes are left; cut the file there or set --record-bytes"
            )

    @property
    def _common(self) -> dict[str, Any]:
        place = self._place
        return {
            "layout": dict(place.layout),
            "memory_bytes": place.memory_bytes,
            "requests": place.volumes.concurrency,
        }
