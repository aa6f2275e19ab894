"""Made-up cluster runs for tests: bytes and busy times of nodes."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from support.data.measurements import ENVIRONMENT, measurement
from tonnage.base.records import (
    ClusterMeasurement,
    ClusterNode,
    Metric,
    NodeRun,
    Phase,
    RoundRun,
    RunRecord,
    Source,
    Stage,
    TrialSpec,
)
from tonnage.base.records.cluster_measurement import AllToAllResult, NodeRates
from tonnage.base.records.durability import Durability
from tonnage.base.records.network_rounds import NET
from tonnage.base.records.plan import Candidate, Plan, PlannedPhase, Range, SpaceFit
from tonnage.model.jobs.mapreduce import sort_job

GB = 1e9
NODES = ("n-0", "n-1", "n-2", "n-3")


def phase(
    name: str,
    seconds: float,
    moved: Mapping[str, float],
    at_work: Mapping[str, float],
    cpu_seconds: float = 1.0,
) -> Phase:
    """A phase of these stages, in order; ``at_work`` is the share of its time of each."""
    stages = [
        Stage(
            name=kind,
            kind=kind,
            workers=2,
            bytes=int(size),
            records=int(size / 100),
            busy_seconds=2 * seconds * at_work.get(kind, 0.1),
            starved_seconds=0.0,
            blocked_seconds=0.0,
            cpu_seconds=cpu_seconds,
            memory_bytes=1 << 20,
            config={},
        )
        for kind, size in moved.items()
    ]
    return Phase(
        name=name,
        graph=" -blocks-> ".join(f"{stage.kind} x2" for stage in stages),
        began_seconds=0.1,
        seconds=seconds,
        bottleneck=stages[0].name,
        memory_bytes=1 << 28,
        disk_modes=[],
        stages=stages,
    )


def pass_one(seconds: float = 27.1, **more: float) -> Phase:
    """As each of four nodes of a lab did it, with 2 GB each."""
    moved = {
        "read": 2 * GB,
        "partition": 2 * GB,
        "send": 1.5 * GB,
        "receive": 1.5 * GB,
        "write": 2 * GB,
    }
    return phase("pass_one", seconds, moved, {"send": 0.6, "receive": 0.74, "write": 0.4} | more)


def pass_two(seconds: float = 17.4, **more: float) -> Phase:
    """The same, without copies."""
    moved = {"read": 2 * GB, "sort": 2 * GB, "write": 2 * GB}
    return phase("pass_two", seconds, moved, {"read": 0.97, "write": 0.9} | more)


def record(nodes: Mapping[str, list[Phase]], seconds: float = 50.8, **more: object) -> RunRecord:
    """A sort of these nodes' phases, 8 GB."""
    runs = [
        NodeRun(
            node=node,
            phases=phases,
            read_bytes=4_000_000_000,
            sent_bytes=1_500_000_000,
            received_bytes=1_500_000_000,
            written_bytes=4_000_000_000,
            cpu_seconds=9.0,
            peak_memory_bytes=1 << 29,
            seconds=sum(phase.seconds for phase in phases),
        )
        for node, phases in nodes.items()
    ]
    made = RunRecord(
        job="sort",
        began_at="2026-11-22T03:46:43+00:00",
        command=["tonnage", "run", "sort"],
        environment=ENVIRONMENT,
        settings={"inputs": ["/in"], "output": ["/out"], "memory_bytes": 1 << 30},
        records=80_000_000,
        bytes=8_000_000_000,
        checksum="2625aaff8446303",
        seconds=seconds,
        cpu_seconds=36.0,
        peak_memory_bytes=1 << 29,
        phases=[],
        nodes=runs,
        rounds=[RoundRun(number=0, splits=68, partitions=176, bytes=8_000_000_000, seconds=27.4)],
        durability="none",
        network_bytes=6_000_000_000,
    )
    return structs.replace(made, **more)


def disks(of_nodes: Mapping[str, Mapping[str, list[float]]]) -> ClusterMeasurement:
    """What `measure disk --cluster` keeps: by node and trial, rates."""
    rows = [
        ClusterNode(node=node, ok=True, measurement=measurement(node, rates))
        for node, rates in of_nodes.items()
    ]
    return ClusterMeasurement(
        id="disks", kind="disk", began_at="", command=[], settings={}, nodes=rows
    )


def network(
    rates: Mapping[str, float], alone: Mapping[str, float] | None = None, types: int = 1
) -> ClusterMeasurement:
    """What `measure net --cluster` keeps: rates of each node all to all, and alone with all."""
    rows = [
        ClusterNode(
            node=node,
            ok=True,
            machine_type=f"type-{number % types}",
            measurement=measurement(node, {}),
        )
        for number, node in enumerate(rates)
    ]
    per_node = [NodeRates(node, rate, rate) for node, rate in rates.items()]
    size = AllToAllResult(
        nodes=len(rates),
        connections=1,
        slowest_node=min(rates, key=lambda node: rates[node]),
        slowest_bytes_per_second=min(rates.values()),
        sum_bytes_per_second=sum(rates.values()),
        per_node=per_node,
        fraction_of_baseline=None,
    )
    return ClusterMeasurement(
        id="net",
        kind=NET,
        began_at="",
        command=[],
        settings={},
        nodes=rows,
        sizes=[size],
        links=[NodeRates(node, rate, rate) for node, rate in (alone or {}).items()],
    )


def store(rates: Mapping[str, float], threads: int = 16) -> ClusterMeasurement:
    """A result of `measure object --cluster`: each of four nodes' get and put rates."""
    trials = [
        structs.replace(
            measurement("m", {operation: [rate]}).trials[0],
            name=f"{operation} x{threads}",
            step=TrialSpec(operation=operation, outstanding=threads, round=0),
            reading=Metric(source=Source(tool="tonnage"), operation=operation, block_bytes=1 << 22),
        )
        for operation, rate in rates.items()
    ]
    rows = [
        ClusterNode(
            node=node,
            ok=True,
            measurement=structs.replace(measurement(node, {}), trials=trials),
        )
        for node in NODES
    ]
    return ClusterMeasurement(
        id=f"store-{threads}", kind="object", began_at="", command=[], settings={}, nodes=rows
    )


RATES = {"ro": [119e6, 120e6, 121e6], "wo": [120e6], "rw": [120e6, 119e6]}


def lab() -> list[ClusterMeasurement]:
    """A lab of four nodes: disks of 120 MB/s each way, links of 60."""
    return [disks(dict.fromkeys(NODES, RATES)), network(dict.fromkeys(NODES, 60e6))]


def plan_of(
    nodes: int = 4, size: int = 8_000_000_000, durability: Durability = "none", offer: str = "n"
) -> Plan:
    """A plan whose one candidate is so many nodes of the lab."""
    candidate = Candidate(
        catalog="lab",
        provider="lab",
        offer=offer,
        layout="local",
        placement=False,
        nodes=nodes,
        seconds=Range(low=40.0, median=42.0, high=51.0),
        cost_usd=Range(low=0.1, median=0.2, high=0.3),
        usd_per_hour=1.0,
        phases=[
            PlannedPhase(name="map and shuffle", seconds=25.0, bottleneck="network"),
            PlannedPhase(name="sort and reduce", seconds=17.0, bottleneck="local disks"),
        ],
        capacity=SpaceFit(needed_bytes=3, have_bytes=4),
        evidence="measured",
        deadline_probability=None,
    )
    return Plan(
        job=sort_job(durability),
        bytes=size,
        settings={
            "deadline_seconds": None,
            "budget_usd": None,
            "least_nodes": 1,
            "most_nodes": 100,
        },
        made_at="2026-11-22T00:00:00+00:00",
        catalogs=["lab"],
        profiles=[],
        confidence=0.9,
        interval_rule="",
        candidates=[candidate],
        pareto=[],
        excluded=[],
        survey=[],
    )
