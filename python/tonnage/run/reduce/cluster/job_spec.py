"""A reduction as a job of a cluster."""

import hashlib
import pickle
from dataclasses import dataclass
from typing import Any

from tonnage.cluster.code_shipping import ShippedCode
from tonnage.cluster.time_limits import CHECKPOINT_SECONDS
from tonnage.run.reduce.cluster.worker import ReduceConfig
from tonnage.run.reduce.sampling import FromSample
from tonnage.run.reduce.spec import ReduceSpec
from tonnage.run.storage.object_store import is_url
from tonnage.run.two_pass.job_spec import NODE_PLACEHOLDER


@dataclass(frozen=True, kw_only=True)
class ReduceJob(ReduceSpec):
    """A reduction for a cluster.

    Attributes:
        patience_seconds: How long a node may not answer before it is lost.
        checkpoint_seconds: How often, at most, a worker sends its object so far to the driver.
        nodes: How many nodes run the job; by default all.
    """

    patience_seconds: float
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    nodes: int | None = None

    @property
    def code(self) -> ShippedCode:
        reduction = self.reduction
        return ShippedCode([] if isinstance(reduction, FromSample) else type(reduction).__mro__)

    @property
    def job_settings(self) -> dict[str, Any]:
        """The settings that a command must share to resume the job."""
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
            "instances": self.nodes,
            "endpoint": self.object_store.endpoint,
        }

    @property
    def _state(self) -> str | None:
        """A digest of the reduction's state; ``None`` if it cannot be pickled."""
        reduction = self.reduction
        of = reduction.make if isinstance(reduction, FromSample) else vars(reduction)
        try:
            return hashlib.sha256(pickle.dumps(of)).hexdigest()[:16]
        except Exception:  # Functions without a name, and the like.
            return None

    @property
    def urls(self) -> list[str]:
        return [each for each in self.inputs if is_url(each)]

    def worker_config(self, node: str) -> ReduceConfig:
        own = [each.replace(NODE_PLACEHOLDER, node) for each in self.inputs if not is_url(each)]
        return ReduceConfig(
            node=node,
            inputs=tuple(own),
            urls=tuple(self.urls),
            format=self.format,
            dtype=self.dtype,
            chunk_bytes=self.chunk_bytes,
            memory_bytes=self.memory_bytes,
            workers=self.workers,
            checkpoint_seconds=self.checkpoint_seconds,
            object_store=self.object_store,
            measured=self.measured,
        )
