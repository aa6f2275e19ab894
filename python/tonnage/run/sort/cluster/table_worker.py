"""A node's part in a sort of tables; the core's is in ``crates/graphs/src/cluster/tables``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tonnage.base import core
from tonnage.base.records.base import decode
from tonnage.cluster.failure_kinds import DeterministicError
from tonnage.cluster.step_worker import Handler
from tonnage.run.formats.compression import codec_of
from tonnage.run.sort.cluster import table_messages as messages
from tonnage.run.sort.table_input import find_tables
from tonnage.run.sort.tables import TableOrder, format_config
from tonnage.run.storage.sources import InputFile, Sources
from tonnage.run.two_pass.job_spec import WorkerConfig
from tonnage.run.two_pass.messages import (
    FinishedFile,
    Sample,
    SampleResult,
    SplitToRead,
    Sum,
    WorkReport,
)
from tonnage.run.two_pass.schedule import Total
from tonnage.run.two_pass.splits import FileId
from tonnage.run.two_pass.worker import OnProgress, TwoPassWorker

DATA_STAGES = ("sample_rows", "partition_rows", "sort_rows")
"""Stages that fail at what rows have, on any node."""


@dataclass(frozen=True, kw_only=True)
class TableWorkerConfig(WorkerConfig):
    order: TableOrder

    def steps(self) -> TableWorker:
        return TableWorker(self)


class TableWorker(TwoPassWorker):
    SAMPLE = messages.SAMPLE_KEYS
    PASS_ONE, PASS_TWO = messages.PASS_ONE, messages.PASS_TWO
    _config: TableWorkerConfig

    def handlers(self) -> Sequence[Handler[Any, Any]]:
        return (
            *super().handlers(),
            Handler(messages.LOOK_AT_FORMAT, self.look_at_format),
            Handler(messages.LOOK_AT_COLUMNS, self.look_at_columns),
        )

    def look_at_format(self, request: Sample, on_progress: OnProgress) -> SampleResult:
        """The format of the first file, and what is compared as what, as JSON."""
        tables = find_tables([request.splits[0].path], self._config.object_store)
        found = format_config(tables, self._config.order)
        return _as_json(found)

    def look_at_columns(
        self, request: messages.LookAtColumns, on_progress: OnProgress
    ) -> SampleResult:
        """The schemas of its share of the files, as JSON; `UsageError` if one cannot be read."""
        self._refuse_changed(request.files)
        if "columns" not in request.format:
            tables = find_tables([each.path for each in request.files], self._config.object_store)
            for placed in tables.files:
                _refuse_compressed(placed.file, tables.sources)
            return _as_json([])
        whole = [{"path": each.path, "offset": 0, "bytes": each.bytes} for each in request.files]
        config = {
            "files": [{"file": each} for each in whole],
            "input": request.format["columns"]["input"],
        }
        schemas = core.run("fleet_table_schema", config, on_progress)["schemas"]
        return _as_json(
            [each | {"file": f"{each['file']} on {self._config.node}"} for each in schemas]
        )

    def sample(self, request: messages.SampleKeys, on_progress: OnProgress) -> SampleResult:
        sample = self._rooms[0] / "keys"
        self._refuse_changed(request.files)
        config = {
            "splits": self._splits(request.splits),
            "chunks": request.chunks,
            "sample": str(sample),
            "format": request.format,
            "stable": self._config.order.stable,
            "unique": self._config.order.unique,
            "split_bytes": request.split_bytes,
            "memory_bytes": self._config.memory_bytes,
        }
        with _data_errors():
            core.run("fleet_table_sample", config, on_progress)
        content = sample.read_bytes()
        sample.unlink()
        return SampleResult(content, {})

    def _gather(
        self,
        request: messages.TablePassOne,
        devices: Sequence[Path],
        index: Path,
        on_progress: OnProgress,
    ) -> messages.TablePassOneResult:
        config = self._round_config(request, devices, index) | {
            "splits": self._splits(request.splits, request.file_numbers),
            "format": request.format,
            "stable": self._config.order.stable,
            "split_bytes": request.split_bytes,
            "bounds": msgspec.to_builtins(request.bounds),
            "room_bytes": request.room_bytes,
            "block_bytes": request.block_bytes,
            "row_bytes": request.row_bytes,
            "memory_bytes": self._config.memory_bytes,
        }
        with _data_errors():
            done = core.run("fleet_table_pass_one", config, on_progress)
        rows = done["read"]
        split_bytes = sum(each.bytes for each in request.splits)
        read = Sum.of(Total(rows["records"], split_bytes, rows["checksum"]))
        return messages.TablePassOneResult.of(
            done, read=read, partitions=done["partitions"], rows_bytes=rows["bytes"]
        )

    def pass_two(self, request: messages.TablePassTwo, on_progress: OnProgress) -> WorkReport:
        self._forget(only={each.number for each in request.partitions})
        self._note_listed()
        config = {
            "rounds": [
                {"scratch": [str(path) for path in devices], "index": str(index)}
                for devices, index in map(self._round, request.rounds)
            ],
            "partitions": [
                {"number": each.number, "single": each.single} for each in request.partitions
            ],
            "format": request.format,
            "stable": self._config.order.stable,
            "unique": self._config.order.unique,
            "output": list(self._config.output),
            "file_bytes": self._config.order.file_bytes,
            "scratch": [str(room) for room in self._rooms],
            "finished": str(self._list),
            "block_bytes": request.block_bytes,
            "row_bytes": request.row_bytes,
            "memory_bytes": self._config.memory_bytes,
        }
        in_rows = self._in_bytes_of_rows(on_progress)
        with _data_errors():
            return WorkReport.of(core.run("fleet_table_pass_two", config, in_rows))

    def _in_bytes_of_rows(self, on_progress: OnProgress) -> OnProgress:
        """Progress in bytes of rows, which the driver compares with what came, and not of files."""
        size, factor = 0, 1.0

        def report(done: int) -> None:
            nonlocal size, factor
            if self._list.exists() and (now := self._list.stat().st_size) != size:
                size, factor = now, self._rows_per_byte()
            on_progress(int(done * factor))

        return report

    def _rows_per_byte(self) -> float:
        """Bytes of rows for each byte of their files, of what this step has finished."""
        rows = files = 0.0
        for line in self._list.read_bytes().splitlines(keepends=True)[self._listed :]:
            if line.endswith(b"\n"):  # Else it is being written.
                file = decode(line, FinishedFile, self._list)
                rows += (file.taken or 0) / (file.files or 1)
                files += file.bytes
        return rows / files if files else 1.0

    def _refuse_input(self, file: FileId) -> None:
        """Nothing to refuse before the format is known."""

    def _splits(
        self, splits: Sequence[SplitToRead], numbers: Sequence[int] = ()
    ) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [{"file": self._split_config(each)} for each in splits]
        for split, number in zip(found, numbers, strict=False):
            split["number"] = number
        return found


def _as_json(found: Any) -> SampleResult:
    return SampleResult(json.dumps(found).encode(), {})


def _refuse_compressed(file: InputFile, sources: Sources) -> None:
    if codec := codec_of(file, sources):
        raise core.UsageError(
            f"input {file.name} is compressed ({codec}), and a cluster divides text by its bytes; "
            "decompress it, or sort it on one machine"
        )


@contextmanager
def _data_errors() -> Iterator[None]:
    """What rows of any node raise, no machine causes."""
    try:
        yield
    except core.RunError as why:
        if why.stage in DATA_STAGES:
            raise DeterministicError(why.why) from why
        raise
