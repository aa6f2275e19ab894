"""A cluster's measurement: that of each node, and their summary.

Its directory holds ``fleet-begun.json`` (the record without nodes), a directory for each node, and
``fleet.json`` at the end. A node's directory is that of a measurement
(`tonnage.base.records.discovery`) and ``node.json``, the node's status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from msgspec import field, structs

from tonnage.base.records.base import Amount, Count, Record, Seconds, SignedSeconds, Struct
from tonnage.base.records.measurement import Latency, Measurement

CLUSTER_FILE, CLUSTER_BEGUN_FILE, NODE_FILE = "fleet.json", "fleet-begun.json", "node.json"
UNKNOWN_TYPE = "a type not told"


class ClusterNode(Record, frozen=True, kw_only=True):
    """How it went on one node.

    ``ok`` is whether it measured all that was asked for, with the others; ``why`` says why not in a
    line, ``error`` all that is known of it (a traceback, or what Ray tells), and ``faulty`` whether
    that is its own doing: one that is well lacks what others could not do.
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
    error: str | None = None
    faulty: bool = False
    together: Count = 0
    skew_seconds: SignedSeconds | None = None
    clock_error_seconds: Seconds | None = None
    seconds: Seconds | None = None
    measurement: Measurement | None = None

    @property
    def type(self) -> str:
        """Its machine type, by which nodes are told apart."""
        return self.machine_type or UNKNOWN_TYPE

    @property
    def status(self) -> dict[str, Any]:
        """What there is to say of it beside its measurement, as JSON values."""
        values = structs.replace(self, measurement=None).to_json()
        return {name: values[name] for name in values if name not in ("schema", "measurement")}


class ClusterSummary(Struct, frozen=True, kw_only=True):
    """Trials of one kind on all nodes that are ``ok``.

    ``low``, ``median`` and ``high`` are of the nodes' own medians, ``medians_of_types`` those of
    the nodes of each machine type, ``sum`` is all of these, which was carried at once if nodes
    measured together. ``together`` is the median over rounds of what all carried from the first
    one's beginning to the last one's end, if nodes began each trial at one moment.
    ``latency_seconds`` and ``bins`` are those of all operations of all nodes: histograms are
    merged, percentiles never averaged.
    """

    name: str
    nodes: Count
    slowest_node: str
    low_bytes_per_second: Amount
    median_bytes_per_second: Amount
    high_bytes_per_second: Amount
    sum_bytes_per_second: Amount
    medians_of_types: dict[str, Amount] = field(default_factory=dict)
    together_bytes_per_second: Amount | None = None
    latency_seconds: Latency = field(default_factory=Latency)
    bins: list[tuple[Amount, Count]] | None = None


class NodeRates(Struct, frozen=True):
    """What a node sent and received, in bytes a second; ``None``: not measured."""

    node: str
    send_bytes_per_second: Amount | None
    receive_bytes_per_second: Amount | None

    @property
    def slower_direction(self) -> float:
        """Of the two, which a shuffle waits for."""
        known = (self.send_bytes_per_second, self.receive_bytes_per_second)
        return min((each for each in known if each is not None), default=0.0)


class AllToAllResult(Struct, frozen=True):
    """So many nodes, all to all, over so many ``connections`` from each to each other.

    ``slowest`` is of the middle round, of two the slower one, since each has nodes of its own;
    ``sum`` is the median over rounds of what all received. ``fraction_of_baseline`` is of the
    slowest pair of the same nodes; ``None`` if none of them was measured as a pair.
    """

    nodes: Count
    connections: Count
    slowest_node: str
    slowest_bytes_per_second: Amount
    sum_bytes_per_second: Amount
    per_node: list[NodeRates]
    fraction_of_baseline: Amount | None


class ClusterMeasurement(Record, frozen=True, kw_only=True):
    """The same measured on every node of a fleet, together or one at a time.

    ``skew_seconds`` is from the first node's beginning to the last one's, of the nodes that began
    together, known to within ``clock_error_seconds``. ``first_done_seconds`` and
    ``last_done_seconds`` are from a node's beginning to its end; ``tail_seconds``, between them,
    is how long who waits for all waits for the last.

    Of the network between nodes: ``baseline`` is the median pair's, of two the slower one's;
    ``pairs`` are from, to, bytes a second; ``both_ways_share`` is what a pair carries both ways at
    once over what it carries one way, ``full_duplex`` whether that is twice as much, or nearly so;
    ``links`` is each node alone with all others, or all at once, each sending as much as others
    take; ``sizes`` are all to all; ``rounds`` is how many there were of each of these.
    """

    SCHEMA: ClassVar[str] = "tonnage.fleet/1"

    id: str
    kind: str
    began_at: str
    command: list[str]
    settings: dict[str, Any]
    labels: dict[str, str] = field(default_factory=dict)
    one_at_a_time: bool = False
    nodes: list[ClusterNode] = field(default_factory=list)
    across: list[ClusterSummary] = field(default_factory=list)
    skew_seconds: Seconds | None = None
    clock_error_seconds: Seconds | None = None
    first_done_seconds: Seconds | None = None
    last_done_seconds: Seconds | None = None
    tail_seconds: Seconds | None = None
    baseline_bytes_per_second: Amount | None = None
    pairs: list[tuple[str, str, Amount]] = field(default_factory=list)
    both_ways_share: Amount | None = None
    full_duplex: bool | None = None
    links: list[NodeRates] = field(default_factory=list)
    sizes: list[AllToAllResult] = field(default_factory=list)
    rounds: dict[str, Count] = field(default_factory=dict)

    @classmethod
    def from_json(cls, values: Any) -> Self:
        """Build the record from its JSON values, or from those that a command prints."""
        if isinstance(values, Mapping) and isinstance(values.get("nodes"), list):
            values = {**values, "nodes": [_stored_node(row) for row in values["nodes"]]}
        return super().from_json(values)

    @property
    def slowest_link(self) -> NodeRates | None:
        """The node whose link carries least."""
        return min(self.links, key=lambda each: each.slower_direction, default=None)

    @property
    def types(self) -> list[str]:
        """The machine types of the nodes that measured, each once."""
        return sorted({each.type for each in self.nodes if each.measurement})

    @property
    def measurements(self) -> list[Measurement]:
        """Those of all nodes that have one."""
        return [each.measurement for each in self.nodes if each.measurement]

    @property
    def missing(self) -> list[ClusterNode]:
        """The nodes that did not measure all."""
        return [each for each in self.nodes if not each.ok]


def _stored_node(row: Any) -> Any:
    """Restore a row that ``--json`` printed, where the node's status and measurement are merged."""
    if not isinstance(row, Mapping) or "type" not in row:
        return row
    status = {name: row[name] for name in row if name in ClusterNode.__struct_fields__}
    skipped = {"type", "schema", *Measurement.PRINTED_KEYS, *status}
    measurement = {name: row[name] for name in row if name not in skipped}
    return {**status, "measurement": measurement} if measurement else status
