"""A MapReduce on a fleet: what its kind says of it; a machine's part in it is in `map_site`.

A split is a span of a file's bytes, whatever the file is (`run.map_reduce.inputs.splits_of`).
Partitions are a hash's, or ranges of keys that nodes sampled. Rows are in no order that could be
compared at the end, so sums are compared where blocks go: what nodes gave of a partition has to be
what came to its owner, which compares it with what it reads again. A function that fails would fail
anywhere: the job ends, and leaves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tonnage.base import core
from tonnage.cluster.code_shipping import ShippedCode
from tonnage.run.mapreduce import blocks
from tonnage.run.mapreduce.inputs import Input, input_of
from tonnage.run.mapreduce.local import Functions, check_settings
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
from tonnage.run.two_pass.job_spec import NODE_PLACEHOLDER, TwoPassJob, durability_of
from tonnage.run.two_pass.sampling import sample
from tonnage.run.two_pass.schedule import Finished, Round, Schedule, Split
from tonnage.run.two_pass.splits import FileId
from tonnage.run.two_pass.worker import DeterministicError, NodeInventory

if TYPE_CHECKING:
    from tonnage.run.two_pass.job_state import JobRun

MAX_PARTITIONS = 1 << 15
"""At most: numbers of partitions have 16 bits."""
SAMPLES = 64
"""Beginnings of splits that are sampled, at least; more if there are more partitions."""


@dataclass(frozen=True, kw_only=True)
class MapReduceJob(TwoPassJob):
    """A MapReduce that is asked of a fleet; made by `asked_of`."""

    JOB = "mapreduce"
    LISTED = "reduced.json"
    COPIED_AS_WRITTEN = False

    functions: Functions
    given: Sequence[Input]
    """What `inputs` are."""
    job: bytes
    """Functions and inputs, as they are sent."""
    code: str
    """A digest of the files that functions are in: with others it is another job."""
    format: str
    workers: int | None

    @property
    def kind_settings(self) -> dict[str, Any]:
        """The functions, and what is read and written."""
        functions = self.functions
        return {
            "code": self.code,
            "functions": [list(functions.keys), functions.ordered, functions.partitions],
            "input_formats": [each.format for each in self.given],
            "format": self.format,
            "workers": self.workers,
        }

    def worker_config(self, job: str, node: str) -> MapReduceConfig:
        """A node's place in the job."""
        return MapReduceConfig(
            **self.worker_fields(job, node),
            packed=self.job,
            places=tuple(each.replace(NODE_PLACEHOLDER, node) for each in self.inputs),
            format=self.format,
            workers=self.workers,
        )

    def splits(self, held: Mapping[FileId, tuple[str, ...]]) -> list[Split]:
        """Cuts files anywhere; those of records of a size at these."""
        nodes = {node for each in held.values() for node in each}
        total = sum(each.bytes for each in held)
        found = []
        for each, holders in held.items():
            inputs = [
                replace(given, path=path.replace(NODE_PLACEHOLDER, holders[0]))
                for given, path in zip(self.given, self.inputs, strict=True)
            ]
            format = input_of(inputs, each.path).format_of(each.path)
            length = sizing.stride(total, len(nodes), format.row_bytes)
            found += [
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
        return found

    def check_space(
        self, looks: Mapping[str, NodeInventory], weights: Mapping[str, float], total_bytes: int
    ) -> None:
        """Nothing: how much functions make of the input is known when they have."""

    def partitioning(self, job: JobRun, splits: Sequence[Split]) -> dict[str, Any]:
        """How many partitions, and if they are ranges, the rows whose keys they begin with."""
        nodes, workers = len(job.workers), self.workers or max(job.workers.values())
        share = -(-sum(split.bytes for split in splits) // nodes)
        shares = MemoryBudget(self.memory_bytes, workers, len(self.scratch))
        usual = shares.partitions(share) * nodes
        partitions = self.functions.partitions or min(usual, MAX_PARTITIONS)
        if not self.functions.ordered:
            return {"partitions": partitions, "firsts": None}
        answers = sample(job, splits, max(SAMPLES, partitions))
        samples = [rows for answer in answers for rows in blocks.batches(answer["rows"])]
        firsts = first_rows(samples, self.functions.keys, partitions)
        if firsts is None:
            return {"partitions": 1, "firsts": None}
        bounds = bounds_of(firsts, self.functions.keys)
        return {"partitions": len(bounds) + 1, "firsts": to_base64(to_ipc(firsts))}

    def round(self, job: JobRun, each: Round) -> dict[str, dict[str, Any]]:
        """How rows are dealt, and how many connections and devices have a block in their hands."""
        plan = job.dir.plan
        assert plan is not None
        links = (len(each.nodes) - 1) * self.connections + len(self.scratch)
        more = {
            "dealing": {"partitions": plan["partitions"], "firsts": plan["firsts"]},
            "links": links,
        }
        return dict.fromkeys(each.nodes, more)

    def check_round(self, each: Round, answers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """What came of a partition has to be what nodes gave; of those that died nobody knows."""
        nodes = each.nodes
        for owner, told in answers.items():
            lost = {nodes[link["peer"]] for link in told["received"] if link["lost"] is not None}
            if not ({*each.reads} - lost) <= {*answers}:
                continue
            given = [answers[node]["given"] for node in each.reads if node not in lost]
            for place in (place for place, node in each.owners.items() if node == owner):
                came = told["came"][place]
                if any(sum(of[place][name] for of in given) != came[name] for name in came):
                    raise core.RunError(
                        f"of partition {place} {came['bytes']} bytes came to {owner}, and others "
                        f"were sent: {blocks.CORRUPT}"
                    )
        own = [each["given"] for each in answers.values()]
        return {
            "rows": sum(each["rows"] for each in answers.values()),
            "given_bytes": sum(place["bytes"] for given in own for place in given),
            "schemas": [
                [text, f"{where} on {node}"]
                for node, told in answers.items()
                for text, where in told["schemas"]
            ],
        }

    def pass_two(self, job: JobRun) -> dict[str, Any]:
        """All columns that map gave anywhere."""
        schemas = blocks.ObservedSchemas()
        try:
            for event in job.dir.events:
                for text, where in event.get("schemas", ()):
                    schemas.note(schema_from_base64(text), where)
        except core.RunError as why:
            raise DeterministicError(why.args[0]) from why
        return {"schema": to_base64(schemas.unified().serialize().to_pybytes())}

    def partition(self, job: JobRun, place: int) -> dict[str, Any]:
        """Nothing."""
        return {}

    def listing_fields(self, job: JobRun, place: int) -> dict[str, Any]:
        """Nothing."""
        return {}

    def is_complete(self, files: Sequence[Finished], line: Mapping[str, Any], came: int) -> bool:
        """When all are there, and all that came was read for them.

        Lines of what was inherited do not say so: it was whole before.
        """
        return (len(files), came) == (line.get("files"), line.get("taken"))

    def check_totals(self, schedule: Schedule) -> None:
        """All splits have to have been read: nodes tell the bytes of those, not what they got."""
        if schedule.read.bytes != schedule.input_bytes:
            raise FatalJobError(
                f"{schedule.read.bytes} bytes of {schedule.input_bytes} were read: nothing is "
                "called done; begin again with another --job-dir"
            )

    def record_fields(self, job: JobRun) -> dict[str, Any]:
        """What was read, shuffled, what was sent again too, and written."""
        schedule, events = job.schedule, job.dir.events
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
    **more: Any,
) -> MapReduceJob:
    """What is asked of a fleet that is to do a MapReduce.

    Args:
        functions: What to do. The modules that they are in are sent along, unless they are
            installed; what those import has to be there.
        inputs: What to read; paths on the nodes.
        format: ``parquet``, ``arrow``, ``csv`` or ``json``.
        workers: Threads on each node; by default as many as it has cores.
        durability: What is promised of the output; by default what goes with where it is.
        more: What any job has (`Asked`).

    Raises:
        UsageError: No node could do it.
    """
    scratch = more["scratch"]
    shares = MemoryBudget(more["memory_bytes"], workers or 1, len(scratch))
    check_settings(functions, scratch, shares, format)
    inputs = [replace(each, path=_plain(str(each.path))) for each in inputs]
    refuse_overlapping_inputs([str(each.path) for each in inputs if is_url(str(each.path))])
    refuse_output_in_input(
        [each for each in more["output"] if is_url(each)],
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
        durability=durability_of(durability, more["output"]),
        **more,
    )


def _plain(place: str) -> str:
    """A path as who lists a directory has it; a url as it is."""
    return place if is_url(place) else os.path.normpath(place)
