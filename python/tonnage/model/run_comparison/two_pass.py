"""Compare a two-pass run on a cluster with its plan and its limit, phase by phase.

**The limit** is the model of all plans, ``max over nodes, max over resources of demand /
capacity``, with each node's own demands, counted by its probes, and its own measured capacities
(Themis on EC2, equations 1, 3 and 8, node by node). In pass one a node reads, sends, receives and
writes; in pass two it reads and writes, with replication it also sends and receives. Bytes from an
object store count as received, too, and bytes to it as sent.

**The bottleneck** is found without capacities. Stages that read, compute or write do not wait for
other nodes while they are busy. One that was busy for most of the slowest node's time is the
bottleneck. Network stages are also busy while a peer has nothing for them, so the network is the
bottleneck if there is no such stage, with the node whose network took longest.

**The plan** is scaled to the bytes that were read. Planned seconds assume the planned
selectivities; a note says if the actual ones differ.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from tonnage.base import formatting
from tonnage.base.records import (
    FollowedPlan,
    Limit,
    NodePhase,
    Phase,
    PhaseComparison,
    ReductionRecord,
    ResourceUse,
    RunComparison,
    RunRecord,
    Stage,
)
from tonnage.base.records.plan import Candidate, Plan, Range
from tonnage.model.node_capacity import ClusterCapacity, NodeCapacity
from tonnage.model.two_pass import CPU
from tonnage.model.two_pass import DISK as BOTH_WAYS

READ, WRITE = "disk: read", "disk: write"
SEND, RECEIVE = "network: send", "network: receive"
GET, PUT = "object get", "object put"
STAGE_RESOURCES = {"read": READ, "write": WRITE, "send": SEND, "receive": RECEIVE}
"""The resource of each kind of stage; all others use cores."""
NETWORK = (SEND, RECEIVE)
EQUIVALENT = {
    READ: (READ, BOTH_WAYS),
    WRITE: (WRITE, BOTH_WAYS),
    **dict.fromkeys(NETWORK, NETWORK),
    GET: (GET, RECEIVE),
    PUT: (PUT, SEND),
    CPU: (CPU,),
}
"""The resources that a bottleneck may mean: a stage that waits for one also waits for the other."""
PASSES = ("pass_one", "pass_two")
COPY = "copy"  # Replication of pass two's output, where it did not overlap with it
PLANNED_AS = {"pass_one": "map and shuffle", "pass_two": "sort and reduce", COPY: "copy"}
"""The phases of a plan by those of a run."""
PLAN_RESOURCES = {
    **dict.fromkeys((READ, WRITE, BOTH_WAYS), ("local disks", "volumes")),
    **dict.fromkeys(NETWORK, ("network",)),
    **dict.fromkeys((GET, PUT), ("object storage", "volumes")),
    CPU: ("cpu",),
}
"""The names of these resources in plans."""
BUSY_SHARE = 0.7  # A stage that was busy for this share of a phase is its bottleneck
TIE = 0.05  # Resources that need as long as the limit within this share are limits, too
TOLERANCE = 0.01
"""Relative difference of sizes and selectivities from which on the plan was for others."""
RULE = (
    "for each phase, the longest time of any node and resource, which is the bytes that the node "
    "moved divided by the median of its measured rates"
)


def compare(
    record: RunRecord,
    measured: ClusterCapacity | None = None,
    plan: Plan | None = None,
    candidate: Candidate | None = None,
) -> RunComparison:
    """Compare a run on a cluster with its nodes' capacities, and with a candidate of its plan."""
    of_nodes = measured.nodes if measured else {}
    names = dict.fromkeys(phase.name for node in record.nodes for phase in node.phases)
    phases = [_phase(name, record, of_nodes) for name in names]
    planned = None
    if plan and candidate:
        planned = followed_plan(record, plan, candidate, record.bytes / plan.bytes)
        scale = planned.seconds.median / _run_seconds(candidate).median
        copies = next((each for each in phases if each.name == COPY), None)
        phases = [_with_plan(each, candidate, scale, copies) for each in phases]
    seconds = sum(phase.seconds for phase in phases)
    is_one = record.commands == 1 and record.seconds >= seconds
    other = record.seconds - seconds if is_one else None
    least = [phase.limit_seconds for phase in phases]
    limits = [each for each in least if each is not None]
    limit, share = None, None
    if limits and len(limits) == len(least) and seconds and measured:
        share = sum(limits) / seconds
        limit = Limit(
            seconds=sum(limits),
            efficiency=share if other is None else sum(limits) / record.seconds,
            rule=RULE,
            measurements=list(measured.measurements),
        )
    return RunComparison(
        phases=phases,
        phase_seconds=seconds,
        other_seconds=other,
        limit=limit,
        phase_efficiency=share,
        planned=planned,
        notes=[
            *_notes(record, phases, other, measured, planned),
            *(_selectivity_notes(record, plan) if plan and planned else ()),
        ],
    )


def _phase(name: str, record: RunRecord, carried: Mapping[str, NodeCapacity]) -> PhaseComparison:
    ran = {
        node.node: several
        for node in record.nodes
        if (several := [phase for phase in node.phases if phase.name == name])
    }
    nodes = [
        NodePhase(
            node=node,
            seconds=sum(phase.seconds for phase in several),
            uses=resource_uses(_demands(several, record), carried.get(node, NodeCapacity())),
        )
        for node, several in ran.items()
    ]
    slowest = max(nodes, key=lambda each: (each.seconds, each.node))
    bottleneck, whose = _bottleneck(ran, nodes, slowest.seconds, record)
    needed = [
        (use.seconds, use.resource, each.node)
        for each in nodes
        for use in each.uses
        if use.seconds is not None
    ]
    limit = max(needed, default=None)
    alike = EQUIVALENT[bottleneck]
    needs = max((seconds for seconds, resource, _ in needed if resource in alike), default=None)
    met = None
    if limit and needs is not None:
        met = needs >= (1 - TIE) * limit[0]
    return PhaseComparison(
        name=name,
        seconds=slowest.seconds,
        median_seconds=statistics.median(each.seconds for each in nodes),
        slowest_node=slowest.node,
        bottleneck=bottleneck,
        bottleneck_node=whose,
        limit_seconds=limit[0] if limit else None,
        limit=limit[1] if limit else None,
        limit_node=limit[2] if limit else None,
        efficiency=limit[0] / slowest.seconds if limit and slowest.seconds else None,
        as_limited=met,
        nodes=nodes,
    )


def resource_uses(demands: Mapping[str, float], carried: NodeCapacity) -> list[ResourceUse]:
    """The time of each resource in a phase; demands are bytes, of cores core seconds."""
    rates = {
        READ: carried.read,
        WRITE: carried.write,
        SEND: carried.send,
        RECEIVE: carried.receive,
        GET: carried.get,
        PUT: carried.put,
    }
    found = [
        ResourceUse(
            resource=resource,
            amount=amount,
            unit="core seconds" if resource == CPU else "bytes",
            capacity=rate,
            seconds=amount / rate if rate else None,
        )
        for resource, amount in demands.items()
        for rate in (rates.get(resource),)
    ]
    read, written = demands.get(READ, 0.0), demands.get(WRITE, 0.0)
    if carried.is_shared and read and written:
        seconds = carried.mixed_seconds(read, written)
        whole = read + written
        found.append(
            ResourceUse(
                resource=BOTH_WAYS,
                amount=whole,
                unit="bytes",
                capacity=whole / seconds,
                seconds=seconds,
            )
        )
    return found


def _demands(several: Iterable[Phase], record: RunRecord) -> dict[str, float]:
    found: dict[str, float] = {}
    cores = 0.0
    for phase in several:
        for stage in phase.stages:
            resource = _resource(stage, phase.name, record)
            if resource != CPU:
                found[resource] = found.get(resource, 0.0) + stage.bytes
            cores += stage.cpu_seconds
    for of_object, way in ((GET, RECEIVE), (PUT, SEND)):
        if of_object in found:
            found[way] = found.get(way, 0.0) + found[of_object]
    return found | {CPU: cores}


def _resource(stage: Stage, phase: str, record: RunRecord) -> str:
    """The resource of a stage: input and output may be in an object store, scratch is not."""
    found = STAGE_RESOURCES.get(stage.kind, CPU)
    where = {(READ, PASSES[0]): ("inputs", GET), (WRITE, PASSES[1]): ("output", PUT)}
    name, of_object = where.get((found, phase), ("", found))
    return of_object if any("://" in path for path in record.settings.get(name, ())) else found


def _bottleneck(
    ran: Mapping[str, Sequence[Phase]],
    nodes: Sequence[NodePhase],
    seconds: float,
    record: RunRecord,
) -> tuple[str, str]:
    busy_seconds: dict[tuple[str, str, str], float] = {}
    wired = False
    for node, several in ran.items():
        for phase in several:
            for stage in phase.stages:
                resource = _resource(stage, phase.name, record)
                if resource in NETWORK:
                    wired = wired or stage.bytes > 0  # A single node sends nothing.
                    continue
                key = resource, node, stage.name
                busy_seconds[key] = busy_seconds.get(key, 0.0) + stage.busy_seconds / stage.workers
    most = max(busy_seconds, key=lambda key: (busy_seconds[key], key), default=None)
    if most and (not wired or busy_seconds[most] >= BUSY_SHARE * seconds):
        return most[0], most[1]
    carried = [
        (use.seconds or 0.0, use.amount, use.resource, each.node)
        for each in nodes
        for use in each.uses
        if use.resource in NETWORK
    ]
    *_, resource, node = max(carried)
    return resource, node


def _with_plan(
    phase: PhaseComparison, candidate: Candidate, scale: float, copies: PhaseComparison | None
) -> PhaseComparison:
    """The phase, compared with the plan's; earlier plans have copying as a part of pass two."""
    phases = {each.name: each for each in candidate.job_phases}
    planned = phases.get(PLANNED_AS.get(phase.name, ""))
    if planned is None:
        return phase
    came, bottleneck = phase.seconds, phase.bottleneck
    if copies and PLANNED_AS[COPY] not in phases and phase.name == PASSES[-1]:
        came += copies.seconds
        bottleneck = max((phase, copies), key=lambda each: each.seconds).bottleneck
    return structs.replace(
        phase,
        planned_seconds=planned.seconds * scale,
        planned_bottleneck=planned.bottleneck,
        as_planned=planned.bottleneck in PLAN_RESOURCES.get(bottleneck, ()),
        came_seconds=came,
    )


def _run_seconds(candidate: Candidate) -> Range:
    """Without the start of the machines, which run before the job does."""
    return candidate.run_seconds or candidate.seconds


def followed_plan(
    record: RunRecord | ReductionRecord, plan: Plan, candidate: Candidate, scale: float
) -> FollowedPlan:
    """The candidate that a run followed, with its seconds times ``scale``."""
    between = _run_seconds(candidate)
    seconds = Range(
        low=between.low * scale, median=between.median * scale, high=between.high * scale
    )
    return FollowedPlan(
        candidate=candidate,
        made_at=plan.made_at,
        bytes=plan.bytes,
        seconds=seconds,
        inside=seconds.low <= record.seconds <= seconds.high,
    )


def _notes(
    record: RunRecord,
    phases: Sequence[PhaseComparison],
    other: float | None,
    measured: ClusterCapacity | None,
    planned: FollowedPlan | None,
) -> Iterable[str]:
    if record.commands > 1:
        yield (
            f"the job took {record.commands} commands: the total time is that of the last one, "
            "while the phases cover all of them"
        )
    read = sum(
        use.amount
        for phase in phases
        if phase.name == PASSES[0]
        for node in phase.nodes
        for use in node.uses
        if use.resource in (READ, GET)
    )
    if read > record.bytes * (1 + TOLERANCE):
        again = formatting.size(read - record.bytes)
        yield f"{again} were read again after a node was lost; the limit counts them as demand"
    lacking: dict[str, dict[str, None]] = {}
    for phase in phases if measured else ():
        for node in phase.nodes:
            for use in node.uses:
                if use.resource != CPU and use.amount and use.capacity is None:
                    lacking.setdefault(formatting.resource(use.resource), {})[node.node] = None
    for resource, nodes in lacking.items():
        yield f"the limit omits {resource}, which was not measured on {formatting.listing(nodes)}"
    if measured and record.job == "mapreduce":
        yield "the limit omits the input and the output, which functions read and write"
    if record.job == "mapreduce":
        counted = sum(
            use.amount
            for phase in phases
            for node in phase.nodes
            for use in node.uses
            if use.resource == CPU
        )
        yield (
            f"core seconds of phases exclude user functions: {formatting.significant(counted)} "
            f"of {formatting.significant(record.cpu_seconds)}"
        )
    if planned and abs(record.bytes / planned.bytes - 1) > TOLERANCE:
        yield (
            f"the plan was for {formatting.size(planned.bytes)}; its seconds are scaled to "
            f"{formatting.size(record.bytes)}"
        )
    if planned and any(phase.name == COPY and not phase.planned_seconds for phase in phases):
        yield "replication after pass two is planned and compared as part of pass two"


def _selectivity_notes(record: RunRecord, plan: Plan) -> Iterable[str]:
    if not record.bytes or not record.shuffled_bytes or record.written_bytes is None:
        return
    made = {
        "map_share": record.shuffled_bytes / record.bytes,
        "reduce_share": record.written_bytes / record.shuffled_bytes,
    }
    for name, share in made.items():
        wanted = float(plan.job.settings.get(name, 1.0))
        if abs(share / wanted - 1) > TOLERANCE:
            again = ", including repeated rounds" if len(record.rounds) > 1 else ""
            yield (
                f"the plan assumed a {name.replace('_', ' ')} of {wanted:g}, but the actual one is "
                f"{formatting.significant(share)}{again}; the planned seconds are for {wanted:g}"
            )
