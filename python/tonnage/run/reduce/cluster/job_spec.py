"""A reduction that is asked of a fleet."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tonnage.cluster.code_shipping import ShippedCode
from tonnage.run.reduce.chunk_pool import SELECTIVE
from tonnage.run.reduce.cluster.worker import ReduceConfig
from tonnage.run.reduce.reduction import Reduction
from tonnage.run.reduce.sampling import FromSample
from tonnage.run.storage.object_store import ObjectStoreOptions, is_url
from tonnage.run.two_pass.job_spec import NODE_PLACEHOLDER

KEEP_SECONDS = 5.0
"""How often the driver gets what workers have so far."""


@dataclass(frozen=True, kw_only=True)
class ReduceJob:
    """What is asked of a fleet.

    Attributes:
        reduction: What to do.
        named: What it is called, with what it was told, by name.
        inputs: Paths on the nodes, with `NODE` in them, and urls.
        memory_bytes: Of each node, for chunks.
        workers: Threads that reduce on each; by default as many as it has cores.
        chunk_bytes: About how large chunks are; by default as the index, or the input, has it.
        format: Of files; by default by their names.
        dtype: Of rows of a size.
        assignment: ``selective`` or ``sequential``.
        patience_seconds: How long a node may say nothing.
        keep_seconds: How often at most the driver gets what a worker has so far.
        instances: On so many nodes; by default on all.
        command: How it can be repeated.
        volumes: How nodes reach object storage.
        measured: Requests at once that were enough when the store was measured.
    """

    reduction: Reduction[Any] | FromSample
    named: tuple[str, Mapping[str, Any]]
    inputs: Sequence[str]
    memory_bytes: int
    patience_seconds: float
    command: list[str]
    workers: int | None = None
    chunk_bytes: int | None = None
    format: str | None = None
    dtype: str | None = None
    assignment: str = SELECTIVE
    keep_seconds: float = KEEP_SECONDS
    instances: int | None = None
    volumes: ObjectStoreOptions = field(default_factory=ObjectStoreOptions)
    measured: int | None = None

    @property
    def code(self) -> ShippedCode:
        """What is sent along with its objects."""
        reduction = self.reduction
        return ShippedCode([] if isinstance(reduction, FromSample) else type(reduction).__mro__)

    @property
    def settings(self) -> dict[str, Any]:
        """What has to be the same for the same command to go on."""
        name, flags = self.named
        return {
            "reduction": [name, self.code.digest],
            "of_reduction": dict(flags),
            "state": self._state,
            "inputs": list(self.inputs),
            "memory_bytes": self.memory_bytes,
            "workers": self.workers,
            "chunk_bytes": self.chunk_bytes,
            "format": self.format,
            "dtype": self.dtype,
            "instances": self.instances,
            "endpoint": self.volumes.endpoint,
        }

    @property
    def _state(self) -> str | None:
        """A digest of what the reduction was given; ``None`` if that cannot be told."""
        reduction = self.reduction
        of = reduction.make if isinstance(reduction, FromSample) else vars(reduction)
        try:
            return hashlib.sha256(pickle.dumps(of)).hexdigest()[:16]
        except Exception:  # Functions without a name, and the like.
            return None

    @property
    def urls(self) -> list[str]:
        """Objects, and folders of them, among the inputs."""
        return [each for each in self.inputs if is_url(each)]

    def place(self, node: str) -> ReduceConfig:
        """A node's place."""
        own = [each.replace(NODE_PLACEHOLDER, node) for each in self.inputs if not is_url(each)]
        return ReduceConfig(
            node=node,
            inputs=tuple(own),
            format=self.format,
            dtype=self.dtype,
            chunk_bytes=self.chunk_bytes,
            memory_bytes=self.memory_bytes,
            workers=self.workers,
            keep_seconds=self.keep_seconds,
            volumes=self.volumes,
            measured=self.measured,
        )
