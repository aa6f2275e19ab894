"""Turn an observation into a job: its phases' demands per byte of input; pure."""

from tonnage.base.records import Demand, Job, JobPhase, Observation, ObservedPhase, SpaceDemand
from tonnage.base.records.job import Resource

NEGLIGIBLE = 0.001
"""Less than this per byte of input (for cores: of the phase's time) is not a demand."""
INPUT_SHARE = 0.05
"""The first phase with this share of all bytes read is assumed to read the input. If the bytes read
are less than this share of those written, the input was in the page cache, or generated."""

MIN_INPUT_BYTES = 1_000_000
"""Fewer bytes are not an input: starting up reads them."""


def find_input_size(phases: list[ObservedPhase], stated: int | None) -> tuple[int | None, str]:
    """The size of the input and how it is known; ``stated`` is what the user gave."""
    if stated is not None:
        return stated, "as stated"
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
    memory = max(phase.peak_memory_bytes for phase in observation.phases)
    return Job(
        name=name,
        phases=[_phase(phase, data, observation.id) for phase in observation.phases],
        room=[
            SpaceDemand(where="local", what="input", per_byte=1.0),
            SpaceDemand(
                where="local",
                what="everything written, if nothing is deleted before the end",
                per_byte=max(written, 0) / data,
            ),
        ],
        least_memory_bytes=memory,
        seen_bytes=data,
        divisible=False,  # What was watched ran on one machine.
        settings={
            "observation": observation.id,
            "input_from": observation.input_from,
            "seconds": observation.seconds,
            "waits_seconds": sum(
                phase.seconds for phase in observation.phases if phase.bottleneck.startswith("none")
            ),
        },
    )


def _phase(phase: ObservedPhase, data: int, source: str) -> JobPhase:
    if not phase.grows:
        return JobPhase(name=phase.name, demands=[], fixed_seconds=phase.seconds)
    # More cores do not speed up what one core limits.
    cores = phase.cpu_seconds / phase.seconds if phase.bottleneck == "one core" else None
    return JobPhase(name=phase.name, demands=_demands(phase, data, source), most_cores=cores)


def _demands(phase: ObservedPhase, data: int, source: str) -> list[Demand]:
    moved: dict[Resource, int] = {
        "local read": phase.read_bytes,
        "local write": phase.written_bytes,
        # In an all-to-all a node sends what it receives; a single node counts the larger of both.
        "network": max(phase.network_sent_bytes, phase.network_received_bytes),
    }
    demands = [
        Demand(resource=resource, per_byte=amount / data, source=source)
        for resource, amount in moved.items()
        if amount >= NEGLIGIBLE * data
    ]
    if phase.cpu_seconds >= NEGLIGIBLE * phase.seconds:
        demands.append(Demand(resource="cpu", per_byte=phase.cpu_seconds / data, source=source))
    return demands
