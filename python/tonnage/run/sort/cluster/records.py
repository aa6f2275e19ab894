"""A sort of fixed-length records on a cluster: its kind of two-pass job, and its worker.

Boundaries are quantiles of keys that nodes sample. What was written has to have the records, bytes
and sum of CRC-32s of what was read. The core's part is in ``crates/graphs/src/cluster``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tonnage.base import core
from tonnage.run.sort.local import Layout
from tonnage.run.two_pass import admission, messages, sizing
from tonnage.run.two_pass.job_dir import FatalJobError
from tonnage.run.two_pass.job_dir.schemas import Bound
from tonnage.run.two_pass.job_spec import Event, Plan, TwoPassJob, WorkerConfig
from tonnage.run.two_pass.schedule import Finished, Round, Schedule, Split, Total
from tonnage.run.two_pass.splits import FileId, cut_splits
from tonnage.run.two_pass.worker import OnProgress, TwoPassWorker


class SortPassOne(messages.PassOne, frozen=True, kw_only=True):
    bounds: list[Bound]
    room_bytes: int
    """About how much comes to the node."""
    block_bytes: int


@dataclass(frozen=True, kw_only=True)
class SortJob(TwoPassJob):
    JOB = "sort"
    LISTED = "sorted.json"
    COPIED_AS_WRITTEN = True
    PASS_ONE = messages.pass_one_step(SortPassOne, messages.PassOneResult)
    PASS_TWO = messages.pass_two_step(messages.PassTwo)

    layout: Layout

    @property
    def kind_settings(self) -> dict[str, Any]:
        layout = self.layout
        return {
            "record_bytes": layout.record_bytes,
            "key": f"{layout.key_offset}:{layout.key_bytes}",
        }

    def worker_config(self, job: str, node: str) -> SortWorkerConfig:
        return SortWorkerConfig(**self.worker_fields(job, node), layout=self.layout.to_json())

    def splits(self, holders: Mapping[FileId, tuple[str, ...]]) -> list[Split]:
        return cut_splits(holders, self.layout.record_bytes)

    @property
    def _node(self) -> sizing.NodeResources:
        directories = len(self.scratch)
        return sizing.NodeResources(
            self.layout,
            self.memory_bytes,
            self.connections,
            (1, directories, directories),
            self.object_store.requests,
            downloads=bool(self.input_urls),
            uploads=self.output_url is not None,
        )

    def check_space(
        self,
        nodes: Mapping[str, messages.NodeInventory],
        weights: Mapping[str, float],
        total_bytes: int,
    ) -> None:
        """Refuses a node with too little space: scratch and output are as large as the input."""
        outputs = 2 if self.durability == "replicated" else 1
        admission.refuse_full(nodes, weights, total_bytes, outputs)

    def partitioning(
        self,
        workers: Mapping[str, int],
        splits: Sequence[Split],
        sample: Callable[[int], list[bytes]],
    ) -> dict[str, Any]:
        """The first key of each partition, from keys that nodes sample of their shares."""
        partitions = sizing.partitions(splits, workers, self._node)
        with tempfile.TemporaryDirectory(prefix="tonnage-keys-") as directory:
            samples = []
            for number, keys in enumerate(sample(sizing.chunks(partitions))):
                samples.append(Path(directory) / str(number))
                samples[-1].write_bytes(keys)
            config = {
                "samples": [str(path) for path in samples],
                "layout": self.layout.to_json(),
                "partitions": partitions,
            }
            bounds = core.run("fleet_boundaries", config)
        return bounds | {"partitions": len(bounds["single"])}

    def pass_one(
        self,
        each: Round,
        requests: Mapping[str, messages.PassOne],
        plan: Plan,
        schedule: Schedule,
        workers: Mapping[str, int],
    ) -> Mapping[str, messages.PassOne]:
        blocks = sizing.block_bytes(each, schedule, workers, self._node)
        room = sizing.space_needed(each, schedule)
        bounds = [Bound(**bound) for bound in plan["bounds"]]
        return {
            node: SortPassOne(
                **msgspec.structs.asdict(request),
                bounds=bounds,
                room_bytes=room.get(node, 0),
                block_bytes=blocks,
            )
            for node, request in requests.items()
        }

    def has_single_key(self, plan: Plan, place: int) -> bool:
        single: bool = plan["single"][place]
        return single

    def listing_fields(self, plan: Plan, place: int) -> dict[str, Any]:
        """The boundaries that its keys lie between; None where there is none."""
        ends = [None, *plan["bounds"], None]
        return {"range": ends[place : place + 2]}

    def is_complete(
        self, files: Sequence[Finished], last: messages.FinishedFile, received_bytes: int
    ) -> bool:
        return sum(file.total.bytes for file in files) == received_bytes

    def check_totals(self, schedule: Schedule, events: Sequence[Event]) -> None:
        read, written = schedule.read, schedule.written
        if read != written or read.bytes != schedule.input_bytes:
            raise FatalJobError(
                f"the records written ({_in_words(written)}) do not match the records read "
                f"({_in_words(read)}) from {schedule.input_bytes} bytes of input: the output is "
                "not valid; start again with another job directory"
            )

    def record_fields(self, schedule: Schedule, events: Sequence[Event]) -> dict[str, Any]:
        total = schedule.written
        return {"records": total.records, "bytes": total.bytes, "checksum": f"{total.checksum:x}"}


def _in_words(total: Total) -> str:
    return f"{total.records} records, {total.bytes} bytes, checksum {total.checksum:x}"


@dataclass(frozen=True, kw_only=True)
class SortWorkerConfig(WorkerConfig):
    layout: Mapping[str, int]

    def steps(self) -> SortWorker:
        return SortWorker(self)


class SortWorker(TwoPassWorker):
    PASS_ONE, PASS_TWO = SortJob.PASS_ONE, SortJob.PASS_TWO
    _config: SortWorkerConfig

    def sample(self, request: messages.Sample, on_progress: OnProgress) -> messages.SampleResult:
        keys = self._rooms[0] / "keys"
        self._refuse_changed(request.files)
        splits = [self._split_config(each) for each in request.splits]
        config = {"splits": splits, "chunks": request.chunks, "keys": str(keys)} | self._common
        with self._unchanged(request.splits):
            done = core.run("fleet_sample", config, on_progress)
        content = keys.read_bytes()
        keys.unlink()
        return messages.SampleResult(content, done["requests"])

    def _gather(
        self, request: SortPassOne, devices: Sequence[Path], index: Path, on_progress: OnProgress
    ) -> messages.PassOneResult:
        config = self._round_config(request, devices, index) | {
            "bounds": msgspec.to_builtins(request.bounds),
            "room_bytes": request.room_bytes,
            "block_bytes": request.block_bytes,
        }
        done = core.run("fleet_pass_one", config | self._common, on_progress)
        read = messages.Sum.of(Total(**done["read"]))
        return messages.PassOneResult.of(done, read=read, partitions=done["partitions"])

    def pass_two(self, request: messages.PassTwo, on_progress: OnProgress) -> messages.WorkReport:
        self._forget(only={each.number for each in request.partitions} | {*request.keeps})
        self._note_listed()
        rounds = [
            {"scratch": [str(path) for path in devices], "index": str(index)}
            for devices, index in map(self._round, request.rounds)
        ]
        partitions = [
            {"number": each.number, "single": each.single}
            | ({} if each.keeper is None else {"keeper": each.keeper})
            for each in request.partitions
        ]
        config = {
            "rounds": rounds,
            "partitions": partitions,
            "output": self._output,
            "scratch": [str(room) for room in self._rooms],
            "finished": str(self._list),
        }
        if request.mesh is not None:
            config["copies"] = self._copies(request.mesh)
        return messages.WorkReport.of(
            core.run("fleet_pass_two", config | self._common, on_progress)
        )

    def _refuse_input(self, file: FileId) -> None:
        record = self._config.layout["record_bytes"]
        if rest := file.bytes % record:
            raise core.UsageError(
                f"input {file.path}: its size ({file.bytes} bytes) is not a multiple of the "
                f"record size ({record}): {rest} extra bytes at offset {file.bytes - rest}. "
                "Truncate the file there, or set another record size",
                setting="record_bytes",
            )

    @property
    def _common(self) -> dict[str, Any]:
        config = self._config
        return {
            "layout": dict(config.layout),
            "memory_bytes": config.memory_bytes,
            "requests": config.object_store.concurrency,
        }
