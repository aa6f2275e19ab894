"""A cluster's measurement: that of each node, and their summary.

Its directory holds ``fleet-begun.json`` (the record without nodes), a directory for each node, and
``fleet.json`` at the end. A node's directory is that of a measurement
(`tonnage.base.records.find_measurements`) and ``node.json``, the node's status.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from msgspec import field, structs

from tonnage.base.records.base import Amount, Count, Record, Seconds, SignedSeconds, Struct
from tonnage.base.records.measurement import Latency, Measurement

CLUSTER_FILE, CLUSTER_BEGUN_FILE, NODE_FILE = "fleet.json", "fleet-begun.json", "node.json"
UNKNOWN_TYPE = "unknown type"


class ClusterNode(Record, frozen=True, kw_only=True):
    """The measurement of one node.

    ``ok``: it measured everything, with the others; ``why`` not, in a line, ``error`` in full, and
    ``faulty`` if it is the cause itself. ``skew_seconds`` is its delay behind the agreed start,
    known to within ``clock_error_seconds``; ``together`` nodes began then. ``measurement`` has all
    results, also of a lost node; in ``node.json`` it is ``None``, since it has its own file.
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
        return self.machine_type or UNKNOWN_TYPE

    @property
    def status(self) -> dict[str, Any]:
        """All but the measurement, as JSON values."""
        values = structs.replace(self, measurement=None).to_json()
        return {name: values[name] for name in values if name not in ("schema", "measurement")}


class ClusterSummary(Struct, frozen=True, kw_only=True):
    """Trials of one kind on all nodes that are ``ok``.

    ``low``, ``median`` and ``high`` are of the nodes' medians, and so are ``medians_of_types``.
    ``together`` is the median over rounds of the rate of all nodes, from the first one's start to
    the last one's end. Latencies come from merged histograms; percentiles are never averaged.
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
    """In bytes a second; ``None``: not measured."""

    node: str
    send_bytes_per_second: Amount | None
    receive_bytes_per_second: Amount | None

    @property
    def slower_direction(self) -> float:
        """The one that a shuffle waits for."""
        known = (self.send_bytes_per_second, self.receive_bytes_per_second)
        return min((each for each in known if each is not None), default=0.0)


class AllToAllResult(Struct, frozen=True):
    """A shuffle of this many nodes, with ``connections`` between each two.

    ``slowest`` is of the median round (the slower one of two). ``sum`` is the median over rounds
    of what all nodes received. ``fraction_of_baseline`` divides by the same nodes' slowest pair.
    """

    nodes: Count
    connections: Count
    slowest_node: str
    slowest_bytes_per_second: Amount
    sum_bytes_per_second: Amount
    per_node: list[NodeRates]
    fraction_of_baseline: Amount | None


class ClusterMeasurement(Record, frozen=True, kw_only=True):
    """The same measured on every node of a cluster, together or one at a time.

    ``skew_seconds`` is from the first node's start to the last one's, known to within
    ``clock_error_seconds``; ``tail_seconds`` is from the first one's end to the last one's.
    Of the network: ``baseline`` is the median pair's; ``pairs`` are from, to, bytes a second;
    ``both_ways_share`` is a pair's rate both ways over its rate one way, ``full_duplex`` if nearly
    2; ``links`` are each node with all others; ``sizes`` are all to all; ``rounds`` of each.
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
        return min(self.links, key=lambda each: each.slower_direction, default=None)

    @property
    def types(self) -> list[str]:
        return sorted({each.type for each in self.nodes if each.measurement})

    @property
    def measurements(self) -> list[Measurement]:
        return [each.measurement for each in self.nodes if each.measurement]

    @property
    def missing(self) -> list[ClusterNode]:
        return [each for each in self.nodes if not each.ok]


def _stored_node(row: Any) -> Any:
    """Restore a row that ``--json`` printed, where the node's status and measurement are merged."""
    if not isinstance(row, Mapping) or "type" not in row:
        return row
    status = {name: row[name] for name in row if name in ClusterNode.__struct_fields__}
    skipped = {"type", "schema", *Measurement.PRINTED_KEYS, *status}
    measurement = {name: row[name] for name in row if name not in skipped}
    return {**status, "measurement": measurement} if measurement else status
