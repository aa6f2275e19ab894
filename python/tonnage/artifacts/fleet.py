"""What a fleet measured: each node's own measurement, and what all of them come to.

A directory that a fleet was measured into holds ``fleet-begun.json`` (the record without nodes), a
directory for each node, and ``fleet.json`` at the end. A node's directory is like one that was
measured into on that machine (`tonnage.artifacts.gathering`), with ``node.json``: how it went.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tonnage.artifacts.artifact import Artifact
from tonnage.artifacts.measurement import Latency, Measurement

FLEET, FLEET_BEGUN, NODE = "fleet.json", "fleet-begun.json", "node.json"


@dataclass(frozen=True, kw_only=True)
class FleetNode(Artifact):
    """How it went on one node.

    ``ok`` is whether it measured all that was asked for, with the others; ``why`` says why not, and
    ``faulty`` whether that is its own doing: one that is well lacks what others could not do.
    ``skew_seconds`` is how much later than agreed it began, known to within
    ``clock_error_seconds``; ``together`` how many began at that moment. ``seconds`` is from there
    to its end. ``measurement`` is all that came of it, also of a node that died; in ``node.json``
    it is ``None``, since it lies beside.
    """

    SCHEMA: ClassVar[str] = "tonnage.node/1"

    node: str
    host: str | None = None
    provider: str | None = None
    machine_type: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    ok: bool
    why: str | None = None
    faulty: bool = False
    together: int = 0
    skew_seconds: float | None = None
    clock_error_seconds: float | None = None
    seconds: float | None = None
    measurement: Measurement | None = None

    @property
    def told(self) -> dict[str, Any]:
        """What there is to say of it beside its measurement, as JSON values."""
        values = dataclasses.replace(self, measurement=None).to_json()
        return {name: values[name] for name in values if name not in ("schema", "measurement")}


@dataclass(frozen=True, kw_only=True)
class Across:
    """Trials of one kind on all nodes that are ``ok``.

    ``low``, ``median`` and ``high`` are of the nodes' own medians, ``sum`` is all of these, which
    was carried at once if nodes measured together. ``together`` is the median over rounds of what
    all carried from the first one's beginning to the last one's end, if nodes began each trial at
    one moment. ``latency_seconds`` and ``bins`` are those of
    all operations of all nodes: histograms are merged, percentiles never averaged.
    """

    name: str
    nodes: int
    slowest_node: str
    low_bytes_per_second: float
    median_bytes_per_second: float
    high_bytes_per_second: float
    sum_bytes_per_second: float
    together_bytes_per_second: float | None = None
    latency_seconds: Latency = field(default_factory=Latency)
    bins: list[tuple[float, int]] | None = None


@dataclass(frozen=True, kw_only=True)
class FleetMeasurement(Artifact):
    """The same measured on every node of a fleet, together or one at a time.

    ``skew_seconds`` is from the first node's beginning to the last one's, of the nodes that began
    together, known to within ``clock_error_seconds``. ``first_done_seconds`` and
    ``last_done_seconds`` are from a node's beginning to its end; ``tail_seconds``, between them,
    is how long who waits for all waits for the last.
    """

    SCHEMA: ClassVar[str] = "tonnage.fleet/1"

    id: str
    kind: str
    began_at: str
    command: list[str]
    settings: dict[str, Any]
    labels: dict[str, str] = field(default_factory=dict)
    one_at_a_time: bool = False
    nodes: list[FleetNode] = field(default_factory=list)
    across: list[Across] = field(default_factory=list)
    skew_seconds: float | None = None
    clock_error_seconds: float | None = None
    first_done_seconds: float | None = None
    last_done_seconds: float | None = None
    tail_seconds: float | None = None

    @property
    def measurements(self) -> list[Measurement]:
        """Those of all nodes that have one."""
        return [each.measurement for each in self.nodes if each.measurement]

    @property
    def missing(self) -> list[FleetNode]:
        """The nodes that did not measure all."""
        return [each for each in self.nodes if not each.ok]
