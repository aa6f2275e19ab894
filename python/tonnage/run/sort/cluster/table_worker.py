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
from tonnage.cluster.failure_kinds import BadInput, DeterministicError
from tonnage.cluster.step_worker import Handler
from tonnage.run.sort.cluster import table_messages as messages
from tonnage.run.sort.table_input import TableInput
from tonnage.run.sort.tables import TableOrder, format_config
from tonnage.run.storage.hive import folder_values
from tonnage.run.storage.input_places import PlacedFile, is_glob, matching_paths
from tonnage.run.storage.object_store import is_url, sum_requests
from tonnage.run.storage.sources import InputFile, Sources, containing_input
from tonnage.run.two_pass.job_spec import WorkerConfig
from tonnage.run.two_pass.messages import (
    FinishedFile,
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
    roots: tuple[str, ...]
    """Places below which folders are columns."""

    def steps(self) -> TableWorker:
        return TableWorker(self)


class TableWorker(TwoPassWorker):
    SAMPLE = messages.SAMPLE_KEYS
    PASS_ONE, PASS_TWO = messages.PASS_ONE, messages.PASS_TWO
    READS_BELOW = True
    _config: TableWorkerConfig

    def handlers(self) -> Sequence[Handler[Any, Any]]:
        return (
            *super().handlers(),
            Handler(messages.LOOK_AT_FORMAT, self.look_at_format),
            Handler(messages.LOOK_AT_COLUMNS, self.look_at_columns),
            Handler(messages.COUNT_QUOTES, self.count_quotes),
        )

    def look_at_format(
        self, request: messages.LookAtFormat, on_progress: OnProgress
    ) -> SampleResult:
        """The format of the first file, and what is compared as what, as JSON."""
        splits = [*request.splits, *request.others]
        tables = self._tables(splits)
        with self._unchanged(splits):
            return _as_json(format_config(tables, self._config.order), *tables.requests)

    def look_at_columns(
        self, request: messages.LookAtColumns, on_progress: OnProgress
    ) -> SampleResult:
        """The schemas of its share of the files, as JSON; `UsageError` if one cannot be read."""
        self._refuse_changed(request.files)
        tables = self._tables(request.splits)
        if "columns" not in request.format:
            tables.refuse_folders("text")
            return _as_json([], *tables.requests)
        config = {
            "files": tables.to_json(),
            "input": request.format["columns"]["input"],
            "requests": self._config.object_store.concurrency,
        }
        with self._unchanged(request.splits):
            found = core.run("fleet_table_schema", config, on_progress)
        schemas = [
            each
            if is_url(each["file"])
            else each | {"file": f"{each['file']} on {self._config.node}"}
            for each in found["schemas"]
        ]
        return _as_json(schemas, found["requests"])

    def count_quotes(self, request: messages.CountQuotes, on_progress: OnProgress) -> SampleResult:
        """The numbers of its splits that have an odd number of quotes, as JSON."""
        self._refuse_changed(request.files)
        config = {
            "splits": self._splits(request.splits),
            "format": request.format,
            "split_bytes": request.split_bytes,
        }
        with self._unchanged(request.splits):
            done = core.run("fleet_table_quotes", config | self._common, on_progress)
        odd = [
            number for number, is_odd in zip(request.numbers, done["odd"], strict=True) if is_odd
        ]
        return _as_json(odd, done["requests"])

    def sample(self, request: messages.SampleKeys, on_progress: OnProgress) -> SampleResult:
        sample = self._rooms[0] / "keys"
        self._refuse_changed(request.files)
        config = {
            "splits": self._splits(request.splits, request.places),
            "chunks": request.chunks,
            "sample": str(sample),
            "format": request.format,
            "stable": self._config.order.stable,
            "unique": self._config.order.unique,
            "split_bytes": request.split_bytes,
        }
        with self._unchanged(request.splits), _data_errors():
            done = core.run("fleet_table_sample", config | self._common, on_progress)
        content = sample.read_bytes()
        sample.unlink()
        return SampleResult(content, done["requests"])

    def _gather(
        self,
        request: messages.TablePassOne,
        devices: Sequence[Path],
        index: Path,
        on_progress: OnProgress,
    ) -> messages.TablePassOneResult:
        config = self._round_config(request, devices, index) | {
            "splits": self._splits(request.splits, request.places),
            "format": request.format,
            "stable": self._config.order.stable,
            "split_bytes": request.split_bytes,
            "bounds": msgspec.to_builtins(request.bounds),
            "room_bytes": request.room_bytes,
            "block_bytes": request.block_bytes,
            "row_bytes": request.row_bytes,
        }
        with _data_errors():
            done = core.run("fleet_table_pass_one", config | self._common, on_progress)
        rows = done["read"]
        split_bytes = sum(each.bytes for each in request.splits)
        read = Sum.of(Total(rows["records"], split_bytes, rows["checksum"]))
        counted = done["partition_rows"] if self._config.order.limit is not None else []
        return messages.TablePassOneResult.of(
            done,
            read=read,
            partitions=done["partitions"],
            rows_bytes=rows["bytes"],
            partition_rows=[Sum.of(Total(**each)) for each in counted],
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
            "output": self._output,
            "file_bytes": self._config.order.file_bytes,
            "scratch": [str(room) for room in self._rooms],
            "finished": str(self._list),
            "block_bytes": request.block_bytes,
            "row_bytes": request.row_bytes,
            "last_share": request.last_share,
        }
        in_rows = self._in_bytes_of_rows(on_progress)
        with _data_errors():
            return WorkReport.of(core.run("fleet_table_pass_two", config | self._common, in_rows))

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

    def _input(self, path: str) -> Iterator[str]:
        for each in matching_paths(path) if is_glob(path) else [path]:
            yield from super()._input(each)

    @property
    def _common(self) -> dict[str, Any]:
        config = self._config
        return {
            "memory_bytes": config.memory_bytes,
            "requests": config.object_store.concurrency,
        }

    def _folders(self, path: str) -> dict[str, str | None]:
        root = self._config.roots[containing_input(self._config.roots, path)]
        return folder_values(root, path)

    def _tables(self, splits: Sequence[SplitToRead]) -> TableInput:
        """The whole files of splits."""
        files = {each.path: InputFile(each.path, each.file_bytes, each.etag) for each in splits}
        placed = [PlacedFile(file, self._folders(path)) for path, file in files.items()]
        store = self._config.object_store
        return TableInput(placed, Sources(store, core.workers()), store)

    def _splits(
        self, splits: Sequence[SplitToRead], places: Sequence[messages.SplitPlace] = ()
    ) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [
            {"file": self._split_config(each), "folders": list(self._folders(each.path).items())}
            for each in splits
        ]
        for split, place in zip(found, places, strict=False):
            split["number"] = place.file_number
            split["quoted"] = (place.begins_quoted, place.ends_quoted)
        return found


def _as_json(found: Any, *requests: dict[str, Any]) -> SampleResult:
    return SampleResult(json.dumps(found).encode(), sum_requests(requests))


@contextmanager
def _data_errors() -> Iterator[None]:
    """What rows of any node raise, no machine causes."""
    try:
        yield
    except core.UsageError as why:
        raise BadInput(str(why)) from why
    except core.RunError as why:
        if why.stage in DATA_STAGES:
            raise DeterministicError(why.why) from why
        raise
