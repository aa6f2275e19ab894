"""A MapReduce as a two-pass job of a cluster; `worker` is a node's part in it.

A split is a span of a file's bytes, whatever its format (`inputs.splits_in`). Partitions are by
hash, or ranges of sampled keys. The output has no order to check at the end, so checksums are
compared where blocks go: what nodes sent of a partition has to be what its owner received, and the
owner compares that with what it reads back. A function that fails would fail on any node: the job
ends and leaves nothing.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from tonnage.base import core
from tonnage.cluster.code_shipping import ShippedCode
from tonnage.cluster.failure_kinds import DeterministicError
from tonnage.run.mapreduce import blocks, messages
from tonnage.run.mapreduce.inputs import Input, input_of
from tonnage.run.mapreduce.local import Functions, check_settings
from tonnage.run.mapreduce.messages import (
    MapReducePassOne,
    MapReducePassOneResult,
    MapReducePassTwo,
)
from tonnage.run.mapreduce.reducer import bounds_of, first_rows
from tonnage.run.mapreduce.shuffle import MemoryBudget
from tonnage.run.mapreduce.worker import MapReduceConfig, schema_from_base64, to_base64, to_ipc
from tonnage.run.storage.object_store import (
    is_url,
    refuse_output_in_input,
    refuse_overlapping_inputs,
)
from tonnage.run.two_pass import sizing
from tonnage.run.two_pass.job_dir import FatalJobError
from tonnage.run.two_pass.job_spec import NODE_PLACEHOLDER, Event, Plan, TwoPassJob, durability_of
from tonnage.run.two_pass.messages import NodeInventory, PassOne, PassTwo
from tonnage.run.two_pass.schedule import Round, Schedule, Split
from tonnage.run.two_pass.splits import FileId

MAX_PARTITIONS = 1 << 15
"""Partition numbers have 16 bits."""
SAMPLES = 64
"""Splits to sample, at least; more if there are more partitions."""


@dataclass(frozen=True, kw_only=True)
class MapReduceJob(TwoPassJob):
    """A MapReduce for a cluster; `map_reduce_job` makes it.

    Attributes:
        given: The inputs, whose paths are `inputs`.
        job: Functions and inputs, pickled for the nodes.
        code: A digest of the functions' files; with other code it is another job.
    """

    JOB = "mapreduce"
    LISTED = "reduced.json"
    COPIED_AS_WRITTEN = False
    PASS_ONE, PASS_TWO = messages.PASS_ONE, messages.PASS_TWO

    functions: Functions
    given: Sequence[Input]
    job: bytes
    code: str
    format: str
    workers: int | None

    @property
    def kind_settings(self) -> dict[str, Any]:
        functions = self.functions
        return {
            "code": self.code,
            "functions": [list(functions.keys), functions.ordered, functions.partitions],
            "input_formats": [[each.format, each.encoding] for each in self.given],
            "format": self.format,
            "workers": self.workers,
        }

    def worker_config(self, job: str, node: str) -> MapReduceConfig:
        return MapReduceConfig(
            **self.worker_fields(job, node),
            packed=self.job,
            places=tuple(each.replace(NODE_PLACEHOLDER, node) for each in self.inputs),
            format=self.format,
            workers=self.workers,
        )

    def splits(self, held: Mapping[FileId, tuple[str, ...]]) -> list[Split]:
        """Cut files at any byte, or between records of a fixed width."""
        nodes = {node for each in held.values() for node in each}
        total = sum(each.bytes for each in held)
        splits = []
        for each, holders in held.items():
            if not each.bytes:
                continue
            inputs = [
                replace(given, path=path.replace(NODE_PLACEHOLDER, holders[0]))
                for given, path in zip(self.given, self.inputs, strict=True)
            ]
            format = input_of(inputs, each.path).format_of(each.path)
            length = sizing.stride(total, len(nodes), format.row_bytes)
            splits += [
                Split(
                    each.path,
                    offset,
                    min(length, each.bytes - offset),
                    holders,
                    each.etag,
                    each.bytes,
                )
                for offset in range(0, each.bytes, length)
            ]
        return splits

    def check_space(
        self, nodes: Mapping[str, NodeInventory], weights: Mapping[str, float], total_bytes: int
    ) -> None:
        """Nothing to check: how much the functions write is not known yet."""

    def partitioning(
        self,
        workers: Mapping[str, int],
        splits: Sequence[Split],
        sample: Callable[[int], list[bytes]],
    ) -> dict[str, Any]:
        """How many partitions, and if they are ranges, the rows whose keys they begin with."""
        nodes, threads = len(workers), self.workers or max(workers.values())
        share = -(-sum(split.bytes for split in splits) // nodes)
        shares = MemoryBudget(self.memory_bytes, threads, len(self.scratch))
        usual = shares.partitions(share) * nodes
        partitions = self.functions.partitions or min(usual, MAX_PARTITIONS)
        if not self.functions.ordered:
            return {"partitions": partitions, "firsts": None}
        streams = sample(max(SAMPLES, partitions))
        samples = [rows for stream in streams for rows in blocks.batches(stream)]
        firsts = first_rows(samples, self.functions.keys, partitions)
        if firsts is None:
            return {"partitions": 1, "firsts": None}
        bounds = bounds_of(firsts, self.functions.keys)
        return {"partitions": len(bounds) + 1, "firsts": to_base64(to_ipc(firsts))}

    def pass_one(
        self,
        each: Round,
        requests: Mapping[str, PassOne],
        plan: Plan,
        schedule: Schedule,
        workers: Mapping[str, int],
    ) -> Mapping[str, PassOne]:
        """How rows are divided, and how many connections and devices hold a block at once."""
        nodes = len(each.nodes)
        connections = self.connections or sizing.usual_connections(nodes, max(workers.values()))
        links = (nodes - 1) * connections + len(self.scratch)
        return {
            node: MapReducePassOne(
                **msgspec.structs.asdict(request),
                partitions=plan["partitions"],
                first_rows=plan["firsts"],
                links=links,
            )
            for node, request in requests.items()
        }

    def check_round(
        self, each: Round, results: Mapping[str, MapReducePassOneResult]
    ) -> dict[str, Any]:
        """What came of a partition has to be what nodes sent, unless one of them was lost."""
        nodes = each.nodes
        for owner, result in results.items():
            lost = {nodes[link.peer] for link in result.received if link.lost is not None}
            if not ({*each.reads} - lost) <= {*results}:
                continue
            senders = [results[node].given for node in each.reads if node not in lost]
            for place in (place for place, node in each.owners.items() if node == owner):
                came, given = result.came[place], [of[place] for of in senders]
                sums = messages.Blocks(
                    sum(one.records for one in given),
                    sum(one.bytes for one in given),
                    sum(one.checksum for one in given),
                )
                if sums != came:
                    raise core.RunError(
                        f"{owner} received {came.bytes} bytes of partition {place} that differ "
                        f"from those sent: {blocks.CORRUPT}"
                    )
        return {
            "rows": sum(result.rows for result in results.values()),
            "given_bytes": sum(of.bytes for result in results.values() for of in result.given),
            "schemas": [
                [text, f"{where} on {node}"]
                for node, result in results.items()
                for text, where in result.schemas
            ],
        }

    def pass_two(
        self, requests: Mapping[str, PassTwo], plan: Plan, events: Sequence[Event]
    ) -> Mapping[str, PassTwo]:
        schemas = blocks.ObservedSchemas("combine" if self.functions.combine else "map")
        try:
            for event in events:
                for text, where in event.get("schemas", ()):
                    schemas.note(schema_from_base64(text), where)
        except core.RunError as why:
            raise DeterministicError(why.args[0]) from why
        schema = to_base64(schemas.unified().serialize().to_pybytes())
        return {
            node: MapReducePassTwo(**msgspec.structs.asdict(request), schema=schema)
            for node, request in requests.items()
        }

    def check_totals(self, schedule: Schedule, events: Sequence[Event]) -> None:
        """Check that all splits were read: nodes report the bytes of splits, not of reads."""
        if schedule.read.bytes != schedule.input_bytes:
            raise FatalJobError(
                f"only {schedule.read.bytes} of {schedule.input_bytes} bytes were read, so no "
                "output was written; if an input has changed, use another job directory"
            )

    def record_fields(self, schedule: Schedule, events: Sequence[Event]) -> dict[str, Any]:
        return {
            "records": schedule.read.records,
            "bytes": schedule.read.bytes,
            "checksum": f"{schedule.written.checksum:x}",
            "shuffled_records": sum(event.get("rows", 0) for event in events),
            "shuffled_bytes": sum(event.get("given_bytes", 0) for event in events),
            "written_records": schedule.written.records,
            "written_bytes": schedule.written.bytes,
        }


def map_reduce_job(
    functions: Functions,
    inputs: Sequence[Input],
    *,
    format: str,
    workers: int | None,
    durability: str | None = None,
    **fields: Any,
) -> MapReduceJob:
    """A MapReduce for a cluster.

    Args:
        functions: The functions. Their modules are sent along unless they are installed; what those
            import has to be installed on the nodes.
        format: ``parquet``, ``arrow``, ``csv`` or ``json``.
        durability: What protects the output; by default by its place.

    Raises:
        UsageError: No node could run it.
    """
    scratch = fields["scratch"]
    budget = MemoryBudget(fields["memory_bytes"], workers or 1, len(scratch))
    check_settings(functions, scratch, budget, format)
    inputs = [replace(each, path=_normalized(str(each.path))) for each in inputs]
    refuse_overlapping_inputs([str(each.path) for each in inputs if is_url(str(each.path))])
    refuse_output_in_input(
        [each for each in fields["output"] if is_url(each)],
        [str(each.path) for each in inputs if is_url(str(each.path))],
    )
    callables = [functions.map, functions.combine, functions.reduce, *(each.map for each in inputs)]
    code = ShippedCode(callables)
    return MapReduceJob(
        inputs=[str(each.path) for each in inputs],
        functions=functions,
        given=inputs,
        job=code.pickled((functions, list(inputs))),
        code=code.digest,
        format=format,
        workers=workers,
        durability=durability_of(durability, fields["output"]),
        **fields,
    )


def _normalized(place: str) -> str:
    """A path as listing a directory gives it; a url as it is."""
    return place if is_url(place) else os.path.normpath(place)
