"""Turn an observation into a job: its phases' demands per byte of input; pure."""

from tonnage.base.records import Demand, Job, JobPhase, Observation, ObservedPhase, SpaceDemand
from tonnage.base.records.base import Number
from tonnage.base.records.job import Resource

NEGLIGIBLE = 0.001
"""Less than this per byte of input (for cores: of the phase's time) is not a demand."""
INPUT_SHARE = 0.05
"""The first phase with this share of all bytes read is assumed to read the input. If the bytes read
are less than this share of those written, the input was in the page cache, or generated."""

MIN_INPUT_BYTES = 1_000_000
"""Fewer bytes are not an input: starting up reads them."""
STATED = "as stated"


def find_input_size(phases: list[ObservedPhase], stated: int | None) -> tuple[int | None, str]:
    """The size of the input and how it is known; ``stated`` is what the user gave."""
    if stated is not None:
        return stated, STATED
    read, written = (
        [getattr(phase, f"{way}_bytes") for phase in phases] for way in ("read", "written")
    )
    is_read = sum(read) >= INPUT_SHARE * sum(written)
    way, moved = ("read", read) if is_read else ("written", written)
    for phase, amount in zip(phases, moved, strict=True):
        if amount and amount >= INPUT_SHARE * sum(moved):
            if amount < MIN_INPUT_BYTES:
                break
            return amount, f"the bytes that {phase.name} has {way}"
    return None, "almost nothing was read or written, and no data size was specified"


def to_job(name: str, observation: Observation) -> Job | None:
    data = observation.input_bytes
    if not data:
        return None
    growing = [phase for phase in observation.phases if phase.grows]
    written = sum(phase.written_bytes - phase.cancelled_bytes for phase in growing)
    nodes = len(observation.nodes)
    is_shared = nodes > 1
    run: dict[str, Number | str | bool] = {}
    if nodes:
        run = {"nodes": nodes, "cores": sum(node.cores for node in observation.nodes)}
    return Job(
        name=name,
        phases=[_phase(phase, observation, data) for phase in _own_phases(observation)],
        room=[
            SpaceDemand(where="local", what="input", per_byte=1.0),
            SpaceDemand(
                where="local",
                what="everything written, if nothing is deleted before the end",
                per_byte=max(written, 0) / data,
            ),
            *(_memory(observation, data) if is_shared else ()),
        ],
        least_memory_bytes=None
        if is_shared
        else max(phase.peak_memory_bytes for phase in observation.phases),
        seen_bytes=data,
        divisible=is_shared,  # A command that ran on one machine need not divide.
        settings={
            **run,
            "observation": observation.id,
            "input_from": observation.input_from,
            "seconds": observation.seconds,
            "waits_seconds": sum(
                phase.seconds for phase in observation.phases if phase.bottleneck.startswith("none")
            ),
        },
    )


def _own_phases(observation: Observation) -> list[ObservedPhase]:
    """The phases of the run: nodes that another tool sampled were idle before and after it."""
    if observation.nodes and not observation.command:
        return [phase for phase in observation.phases if phase.grows] or observation.phases
    return observation.phases


def _phase(phase: ObservedPhase, observation: Observation, data: int) -> JobPhase:
    if not phase.grows:
        return JobPhase(name=phase.name, demands=[], fixed_seconds=phase.seconds)
    # More cores do not speed up what one core limits.
    nodes = max(len(phase.nodes), 1)
    cores = phase.cpu_seconds / phase.seconds / nodes if phase.bottleneck == "one core" else None
    demands = _demands(phase, data, observation.id)
    return JobPhase(name=phase.name, demands=demands, most_cores=cores)


def _memory(observation: Observation, data: int) -> list[SpaceDemand]:
    """What the run added to all nodes' memory together, which more nodes can share."""
    before = sum(node.least_memory_bytes for node in observation.nodes)
    peaks = (sum(node.peak_memory_bytes for node in phase.nodes) for phase in observation.phases)
    added = max(peaks) - before
    what = "the memory that the run added on its nodes, without the page cache"
    is_demand = added >= NEGLIGIBLE * data
    return [SpaceDemand(where="memory", what=what, per_byte=added / data)] if is_demand else []


def _demands(phase: ObservedPhase, data: int, source: str) -> list[Demand]:
    moved: dict[Resource, int] = {
        "local read": phase.read_bytes,
        "local write": phase.written_bytes,
    }
    demands = [
        Demand(resource=resource, per_byte=amount / data, source=source)
        for resource, amount in moved.items()
        if amount >= NEGLIGIBLE * data
    ]
    demands += _network(phase, data, source)
    if phase.cpu_seconds >= NEGLIGIBLE * phase.seconds:
        demands.append(Demand(resource="cpu", per_byte=phase.cpu_seconds / data, source=source))
    return demands


def _network(phase: ObservedPhase, data: int, source: str) -> list[Demand]:
    """What goes from node to node, which each of N keeps 1/N of, and what goes in or out.

    Nodes of a run together send what they receive from each other; the rest is the world's. A
    single node counts the larger of both ways.
    """
    ways = phase.network_sent_bytes, phase.network_received_bytes
    nodes = len(phase.nodes)
    inside = min(ways) * nodes / (nodes - 1) if nodes > 1 else 0.0
    outside = max(ways) - (min(ways) if nodes > 1 else 0)
    return [
        Demand(resource="network", per_byte=amount / data, source=source, shuffled=shuffled)
        for amount, shuffled in ((inside, True), (float(outside), False))
        if amount >= NEGLIGIBLE * data
    ]
