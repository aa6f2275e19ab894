"""A sort of tables on a cluster: its kind of two-pass job; `table_worker` is a node's part in it.

A split is a span of a file's bytes, whatever its format; the core says which rows are in it. Nodes
first look at their files: one infers the format from the first file, all tell the types of their
columns, and what these have in common is what every node reads. Then keys are sampled. What was
written has to have the hashes of the rows that were read.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from tonnage.base import core
from tonnage.run.sort.cluster import first_rows
from tonnage.run.sort.cluster import table_messages as messages
from tonnage.run.sort.cluster.split_places import (
    file_numbers,
    first_splits,
    is_whole,
    quoted_splits,
    split_places,
)
from tonnage.run.sort.cluster.table_worker import TableWorkerConfig
from tonnage.run.sort.table_input import input_format
from tonnage.run.sort.tables import TableOrder
from tonnage.run.storage.input_places import input_root, is_glob
from tonnage.run.storage.object_store import is_url, usual_requests
from tonnage.run.storage.suffixes import without_suffix
from tonnage.run.two_pass import sizing
from tonnage.run.two_pass.job_dir import FatalJobError
from tonnage.run.two_pass.job_dir.schemas import Bound
from tonnage.run.two_pass.job_spec import (
    NODE_PLACEHOLDER,
    Event,
    Plan,
    Sampler,
    TwoPassJob,
)
from tonnage.run.two_pass.messages import NodeInventory, PassOne, PassTwo, SplitToRead
from tonnage.run.two_pass.schedule import Round, Schedule, Split, Total
from tonnage.run.two_pass.splits import FileId, cut_splits

PLACES_PER_NODE = 16
PLACES = 64
"""Places to sample: so many on each node, and so many at least."""


@dataclass(frozen=True, kw_only=True)
class TableSortJob(TwoPassJob):
    """A sort of tables for a cluster; `table_sort_job` makes it.

    Attributes:
        order: What the rows are sorted by, and what becomes of them.
    """

    JOB = "sort"
    LISTED = "sorted.json"
    COPIED_AS_WRITTEN = False
    SAMPLE = messages.SAMPLE_KEYS
    PASS_ONE, PASS_TWO = messages.PASS_ONE, messages.PASS_TWO

    order: TableOrder

    @property
    def kind_settings(self) -> dict[str, Any]:
        return asdict(self.order)

    def worker_config(self, job: str, node: str) -> TableWorkerConfig:
        return TableWorkerConfig(
            **self.worker_fields(job, node), order=self.order, roots=self._roots(node)
        )

    def splits(self, holders: Mapping[FileId, tuple[str, ...]]) -> list[Split]:
        """Cut files at any byte, but for compressed ones, of which one node has to read all.

        Where a name does not tell that a file is compressed, it belongs to the split where it
        begins.
        """
        whole = {each: nodes for each, nodes in holders.items() if _is_compressed(Path(each.path))}
        cut = cut_splits({each: holders[each] for each in holders if each not in whole}, 1)
        return cut + [
            Split(each.path, 0, each.bytes, nodes, each.etag, each.bytes)
            for each, nodes in whole.items()
            if each.bytes
        ]

    def check_space(
        self, nodes: Mapping[str, NodeInventory], weights: Mapping[str, float], total_bytes: int
    ) -> None:
        """Nothing to check: how many bytes rows have is not known yet."""

    def partitioning(
        self, workers: Mapping[str, int], splits: Sequence[Split], sample: Sampler
    ) -> dict[str, Any]:
        """Ranges of keys that nodes sample, and how all nodes read files and divide memory."""
        if not splits:
            return {"partitions": 1, "bounds": [], "single": [False], "table": _NO_TABLE}
        threads = max(workers.values())
        table_format, split_bytes = self._reading(splits, threads, sample)
        reading: dict[str, Any] = {"format": table_format, "split_bytes": split_bytes}
        quoted = _quoted(splits, sample, reading)
        sampled = sample(
            max(PLACES, PLACES_PER_NODE * len(workers)),
            messages.SAMPLE_KEYS,
            of_splits={"places": self._places(splits, quoted)},
            **reading,
        )
        ranges = self._ranges(sampled, len(workers), threads)
        return {
            "partitions": len(ranges["single"]),
            "bounds": ranges["bounds"],
            "single": ranges["single"],
            "table": {
                **reading,
                "quoted": quoted,
                "block_bytes": ranges["block_bytes"],
                "row_bytes": ranges["row_bytes"],
                "rows_bytes": ranges["rows_bytes"],
                "wanted": ranges["wanted"],
            },
        }

    def _reading(
        self, splits: Sequence[Split], threads: int, sample: Sampler
    ) -> tuple[dict[str, Any], int]:
        """The format with the columns that all files have, and bytes of what is read at once."""
        first, *others = first_splits(splits, self._file_numbers(splits))
        input_format([splits[each].path for each in (first, *others)], self.order.format)
        alike = [splits[each] for each in others if splits[each].holders == splits[first].holders]
        others_to_read = [SplitToRead.of(split) for split in alike]
        looked_at = sample(1, messages.LOOK_AT_FORMAT, [first], others=others_to_read)
        table_format: dict[str, Any] = json.loads(looked_at[0])
        # The first file's columns come first, in their order.
        looked = [
            *sample(1, messages.LOOK_AT_COLUMNS, [first], format=table_format),
            *sorted(sample(1, messages.LOOK_AT_COLUMNS, format=table_format)),
        ]
        columns = table_format.get("columns", {})
        config = {
            "schemas": [schema for found in looked for schema in json.loads(found)],
            "columns": columns.get("columns"),
            "declared": columns.get("schema"),
            "memory_bytes": self.memory_bytes,
            "workers": threads,
            "downloads": self._requests(threads)["downloads"],
        }
        reading = core.run("fleet_table_reading", config)
        if columns:
            known = {"known_schema": reading["schema"], "columns": None, "schema": None}
            table_format = {"columns": columns | known}
        return table_format, reading["split_bytes"]

    def _ranges(self, sampled: Sequence[bytes], nodes: int, threads: int) -> dict[str, Any]:
        """Ranges of the sampled keys, and sizes that are the same on all nodes."""
        with tempfile.TemporaryDirectory(prefix="tonnage-keys-") as directory:
            samples = []
            for number, keys in enumerate(sampled):
                samples.append(Path(directory) / str(number))
                samples[-1].write_bytes(keys)
            config = {
                "samples": [str(path) for path in samples],
                "unique": self.order.unique,
                "limit": self.order.limit,
                "memory_bytes": self.memory_bytes,
                "workers": threads,
                "endpoints": nodes,
                "connections": self.connections or sizing.usual_connections(nodes, threads),
                "devices": [len(self.scratch), len(self.output)],
                "requests": self._requests(threads),
            }
            ranges: dict[str, Any] = core.run("fleet_table_boundaries", config)
        return ranges

    def pass_one(
        self,
        each: Round,
        requests: Mapping[str, PassOne],
        plan: Plan,
        schedule: Schedule,
        workers: Mapping[str, int],
    ) -> Mapping[str, messages.TablePassOne]:
        table = plan["table"]
        room = sizing.space_needed(each, schedule)
        growth = table["rows_bytes"] / max(schedule.input_bytes, 1)
        bounds = [Bound(**bound) for bound in plan["bounds"]]
        places = self._places(schedule.splits, plan["table"]["quoted"])
        return {
            node: messages.TablePassOne(
                **msgspec.structs.asdict(request),
                format=table["format"],
                split_bytes=table["split_bytes"],
                block_bytes=table["block_bytes"],
                row_bytes=table["row_bytes"],
                bounds=bounds,
                room_bytes=int(growth * room.get(node, 0)),
                places=[places[one] for one in each.reads.get(node, ())],
            )
            for node, request in requests.items()
        }

    def check_round(
        self, each: Round, results: Mapping[str, messages.TablePassOneResult]
    ) -> dict[str, Any]:
        """Rows and their bytes, for the record; those of each partition, if not all are wanted."""
        told = {
            "rows": sum(result.read.records for result in results.values()),
            "given_bytes": sum(result.rows_bytes for result in results.values()),
        }
        if self.order.limit is None:
            return told
        counts = ([rows.total for rows in result.partition_rows] for result in results.values())
        totals = first_rows.sum_by_partition(counts)
        return told | {"partition_rows": [list(vars(rows).values()) for rows in totals]}

    def wanted_partitions(self, plan: Plan, schedule: Schedule, events: Sequence[Event]) -> int:
        """Those that have the first rows: as a sample tells, or, once all are counted, exactly."""
        if self.order.limit is None:
            return schedule.partitions
        if schedule.read.bytes < schedule.input_bytes:
            wanted: int = plan["table"]["wanted"]
            return wanted
        return first_rows.first_partitions(first_rows.partition_rows(events), self.order.limit)

    def pass_two(
        self, requests: Mapping[str, PassTwo], plan: Plan, events: Sequence[Event]
    ) -> Mapping[str, messages.TablePassTwo]:
        table, limit = plan["table"], self.order.limit
        rows = [] if limit is None else first_rows.partition_rows(events)
        return {
            node: messages.TablePassTwo(
                **msgspec.structs.asdict(request),
                format=table["format"],
                block_bytes=table["block_bytes"],
                row_bytes=table["row_bytes"],
                last_share=None if limit is None else first_rows.last_share(rows, limit),
            )
            for node, request in requests.items()
        }

    def has_single_key(self, plan: Plan, place: int) -> bool:
        single: bool = plan["single"][place]
        return single

    def check_totals(self, schedule: Schedule, events: Sequence[Event]) -> None:
        """Check that all splits were read, and that the rows that were read are those written.

        With a limit, these are the rows of the partitions that have the first ones.
        """
        read, written, limit = schedule.read, schedule.written, self.order.limit
        wanted = read
        if limit is not None:
            rows = first_rows.partition_rows(events)[: schedule.wanted]
            wanted = replace(sum(rows, Total()), records=min(read.records, limit))
        lacks = wanted.records != written.records and not self.order.unique
        if read.bytes != schedule.input_bytes or wanted.checksum != written.checksum or lacks:
            raise FatalJobError(
                f"the rows written ({written.records}, checksum {written.checksum:x}) do not match "
                f"those wanted of the rows read ({wanted.records}, checksum {wanted.checksum:x}) "
                f"from {read.bytes} of {schedule.input_bytes} bytes of input: the output is not "
                "valid; start again with another job directory"
            )

    def record_fields(self, schedule: Schedule, events: Sequence[Event]) -> dict[str, Any]:
        return {
            "records": schedule.read.records,
            "bytes": schedule.read.bytes,
            "checksum": f"{schedule.read.checksum:x}",
            "shuffled_records": sum(event.get("rows", 0) for event in events),
            "shuffled_bytes": sum(event.get("given_bytes", 0) for event in events),
            "written_records": schedule.written.records,
            "written_bytes": schedule.written.bytes,
        }

    def _file_numbers(self, splits: Sequence[Split]) -> list[int]:
        return file_numbers(splits, self._roots)

    def _places(self, splits: Sequence[Split], quoted: Sequence[int]) -> list[messages.SplitPlace]:
        numbers = self._file_numbers(splits) if self.order.stable else None
        return split_places(splits, {*quoted}, numbers)

    def _roots(self, node: str) -> tuple[str, ...]:
        roots = (input_root(each) for each in self.inputs)
        return tuple(each.replace(NODE_PLACEHOLDER, node) for each in roots)

    def _requests(self, threads: int) -> dict[str, int]:
        """Concurrent requests of a node to stores, where input or output are there."""
        requests = self.object_store.requests or usual_requests(threads)
        return {
            "downloads": requests if self.input_urls else 0,
            "uploads": requests if self.output_url else 0,
        }


def _quoted(splits: Sequence[Split], sample: Sampler, reading: Mapping[str, Any]) -> list[int]:
    """The splits that begin within quotes; those of files that are cut are read for it."""
    parts = [number for number, split in enumerate(splits) if not is_whole(split)]
    if "columns" in reading["format"] or not parts:
        return []
    numbers = {"numbers": range(len(splits))}
    counted = sample(1, messages.COUNT_QUOTES, parts, of_splits=numbers, **reading)
    return quoted_splits(splits, {number for odd in counted for number in json.loads(odd)})


def _is_compressed(path: Path) -> bool:
    return without_suffix(path) != path


_NO_TABLE: dict[str, Any] = {
    "format": {},
    "split_bytes": 0,
    "block_bytes": 0,
    "row_bytes": 0,
    "rows_bytes": 0,
    "wanted": 1,
    "quoted": [],
}
"""Of an input without a byte, which has no rows."""


def table_sort_job(order: TableOrder, **fields: Any) -> TableSortJob:
    """A sort of tables for a cluster.

    Raises:
        UsageError: It needs what only a sort on one machine has.
    """
    if url := next((each for each in fields["inputs"] if is_url(each) and is_glob(each)), None):
        raise core.UsageError(
            f"input {url}: a cluster reads whole folders of a store; specify the folder"
        )
    return TableSortJob(order=order, **fields)
