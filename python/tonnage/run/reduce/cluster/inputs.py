"""The input of all nodes of a cluster: its chunks, and which nodes can read them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tonnage.base import core, formatting
from tonnage.cluster.failure_kinds import Failure
from tonnage.cluster.worker_pool import WorkerPool, first_failure, raise_refusal
from tonnage.run.formats import ChunkFormat
from tonnage.run.formats.format import Chunk
from tonnage.run.reduce.cluster.job_spec import ReduceJob
from tonnage.run.reduce.cluster.messages import INDEX, ChunksFound, FindChunks
from tonnage.run.reduce.index import Index, from_bytes, to_bytes
from tonnage.run.storage.object_store import is_url
from tonnage.run.storage.sources import InputFile
from tonnage.run.two_pass import admission
from tonnage.run.two_pass.job_dir import holders_from_json, holders_to_json
from tonnage.run.two_pass.splits import FileId


@dataclass(frozen=True)
class ClusterInput:
    """What there is to reduce.

    Attributes:
        index: Files, each once, with their chunks.
        files: The same files as they were seen, in order.
        holders: Who can read each; ``None`` for all.
        workers: Threads that reduce, on all nodes that were looked at.
    """

    index: Index
    files: Sequence[FileId]
    holders: Sequence[Collection[str] | None]
    workers: int = 1

    @property
    def chunk_bytes(self) -> int:
        return max((chunk.bytes for chunk in self.index.chunks), default=1)

    def node_with_most(self, nodes: Sequence[str]) -> tuple[str, Index]:
        """The node that can read most, and what it can."""
        if not nodes:
            raise core.RunError("no node is left")
        bytes_ = dict.fromkeys(nodes, 0)
        for chunk in self.index.chunks:
            for node in self.holders[chunk.file] or nodes:
                if node in bytes_:
                    bytes_[node] += chunk.bytes
        best = max(nodes, key=lambda node: bytes_[node])
        readable = [file for file, of in enumerate(self.holders) if of is None or best in of]
        places = {file: place for place, file in enumerate(readable)}
        chunks = [
            chunk._replace(file=places[chunk.file])
            for chunk in self.index.chunks
            if chunk.file in places
        ]
        # Files of other nodes are left out: an index has all chunks of its files.
        files = [self.index.files[file] for file in readable]
        return best, Index(self.index.format, files, chunks)

    def to_json(self) -> dict[str, Any]:
        held = {
            each: tuple(sorted(of or ())) for each, of in zip(self.files, self.holders, strict=True)
        }
        return holders_to_json(held)


def input_from_json(plan: Mapping[str, Any], index: bytes) -> ClusterInput:
    """What `ClusterInput.to_json` made JSON values of, with its index."""
    held = holders_from_json(plan)
    holders = [None if is_url(each.path) else of for each, of in held.items()]
    return ClusterInput(from_bytes(index, "the index"), list(held), holders)


def find_input(crew: WorkerPool, asked: ReduceJob) -> ClusterInput:
    """What all nodes have, and object storage as one sees it; `UsageError` if it cannot be used."""
    nodes = crew.nodes
    if not nodes:
        lost = formatting.listing(f"{each.node} {each.lost}" for each in crew.workers.values())
        raise core.UsageError(f"no node can be used: {lost}; repair them, or use other nodes")
    config = {
        node: FindChunks(asked.urls if node == nodes[0] else [], len(nodes)) for node in nodes
    }
    ended = crew.run_step(INDEX, config)
    raise_refusal(ended)
    if found := first_failure(ended, Failure.LOST, Failure.DISK, Failure.FAILED):
        node, why = found
        raise core.UsageError(
            f"{node} {why.reason}; repair the node or remove it from the cluster; otherwise its "
            "input would be missing"
        )
    chunks = {node: end.value for node, end in ended.items() if end.value}
    absent = {node: each.absent for node, each in chunks.items()}
    admission.refuse_absent([each for each in asked.inputs if not is_url(each)], absent)
    return _merge_indexes(chunks)


def _merge_indexes(answers: Mapping[str, ChunksFound]) -> ClusterInput:
    chunks: dict[FileId, list[Chunk]] = {}
    holders: dict[FileId, list[str]] = {}
    files: dict[FileId, InputFile] = {}
    formats: dict[ChunkFormat, str] = {}
    for node, answer in sorted(answers.items()):
        seen = {each.path: each for each in answer.files}
        if answer.index is None:
            continue
        index = from_bytes(answer.index, "the index")
        formats.setdefault(index.format, node)
        own: dict[int, FileId] = {place: seen[file.name] for place, file in enumerate(index.files)}
        new = {place for place, each in own.items() if each not in files}
        for each in own.values():
            holders.setdefault(each, []).append(node)
            # Two machines may have files of one name that are not the same.
            version: str | None = f"{each.mtime_ns} {each.inode} of {node}"
            if is_url(each.path):
                version = each.etag  # None if the store says none: nothing is made up.
            files.setdefault(each, InputFile(each.path, each.bytes, version))
            chunks.setdefault(each, [])
        for chunk in index.chunks:
            if chunk.file in new:
                chunks[own[chunk.file]].append(chunk)
    if len(formats) > 1:
        told = ", ".join(f"{format.to_json()} on {node}" for format, node in formats.items())
        raise core.UsageError(
            f"the inputs are of several formats ({told}); use one", setting="input_format"
        )
    order = sorted(files, key=lambda each: not chunks[each])  # As an index is read again.
    cut = [chunk._replace(file=place) for place, each in enumerate(order) for chunk in chunks[each]]
    if not formats:
        raise core.UsageError("there is no input")
    index = Index(next(iter(formats)), [files[each] for each in order], cut)
    # As those have it that are sent it.
    index = from_bytes(to_bytes(index), "the index")
    able = [None if is_url(each.path) else holders[each] for each in order]
    workers = sum(answer.workers for answer in answers.values())
    return ClusterInput(index, order, able, workers)
