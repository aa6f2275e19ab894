"""An observation as a job: its phases' demands for each byte of input; pure."""

from __future__ import annotations

from tonnage.base.records import Demand, Job, JobPhase, Observation, ObservedPhase, SpaceDemand
from tonnage.base.records.job import Resource

SOME = 0.001
"""Less than this for each byte of input (of cores: of the phase's time) is no demand."""
FIRST = 0.05
"""The first phase that reads such a share of all that is read is the one that reads the input. Less
than this share of what is written is no input: that came from the page cache, or was made."""

LEAST = 1_000_000
"""Less is no input: a start has read it."""


def find_input_size(phases: list[ObservedPhase], given: int | None) -> tuple[int | None, str]:
    """How large the input was, and from where that is known; None if nothing tells."""
    if given is not None:
        return given, "--data"
    read, written = (
        [getattr(phase, f"{what}_bytes") for phase in phases] for what in ("read", "written")
    )
    is_read = sum(read) >= FIRST * sum(written)
    what, moved = ("read", read) if is_read else ("written", written)
    for phase, each in zip(phases, moved, strict=True):
        if each and each >= FIRST * sum(moved):
            if each < LEAST:
                break
            return each, f"what {phase.name} has {what}"
    return None, "next to nothing was read or written, and no --data given"


def to_job(name: str, observation: Observation) -> Job | None:
    """The job; None if its input is not known."""
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
                what="all that is written, if none of it is deleted before the end",
                per_byte=max(written, 0) / data,
            ),
        ],
        least_memory_bytes=memory,
        seen_bytes=data,
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
    # What one core limits is not made faster by others.
    cores = phase.cpu_seconds / phase.seconds if phase.bottleneck == "one core" else None
    return JobPhase(name=phase.name, demands=_demands(phase, data, source), most_cores=cores)


def _demands(phase: ObservedPhase, data: int, source: str) -> list[Demand]:
    moved: dict[Resource, int] = {
        "local read": phase.read_bytes,
        "local write": phase.written_bytes,
        # What a node sends is what it receives, all to all; one node alone has the larger of both.
        "network": max(phase.network_sent_bytes, phase.network_received_bytes),
    }
    demands = [
        Demand(resource=resource, per_byte=amount / data, source=source)
        for resource, amount in moved.items()
        if amount >= SOME * data
    ]
    if phase.cpu_seconds >= SOME * phase.seconds:
        demands.append(Demand(resource="cpu", per_byte=phase.cpu_seconds / data, source=source))
    return demands
