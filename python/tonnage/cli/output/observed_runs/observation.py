"""An observed command on the terminal: its phases and their bottlenecks."""

from tonnage.base import formatting
from tonnage.base.records import Observation, ObservedPhase


def observation_lines(observation: Observation) -> list[str]:
    phases = observation.phases
    command = formatting.command(observation.command) if observation.command else "processes"
    read, written = (
        sum(getattr(phase, f"{kind}_bytes") for phase in phases) for kind in ("read", "written")
    )
    lines = [
        f"{command}: {formatting.seconds(observation.seconds)}, "
        f"{formatting.significant(sum(phase.cpu_seconds for phase in phases))} core seconds, "
        f"{formatting.size(read)} read, {formatting.size(written)} written"
        + (f", exit code {observation.exit_code}" if observation.exit_code else ""),
        *(_phase(phase) for phase in phases),
    ]
    if observation.input_bytes:
        lines.append(
            f"input: {formatting.size(observation.input_bytes)} ({observation.input_from}); "
            "if this is wrong, add --data"
            if observation.input_from != "--data"
            else f"input: {formatting.size(observation.input_bytes)}"
        )
    return [*lines, *observation.notes]


def _phase(phase: ObservedPhase) -> str:
    parts = [formatting.seconds(phase.seconds)]
    for verb, amount in (
        ("read", phase.read_bytes),
        ("written", phase.written_bytes),
        ("sent", phase.network_sent_bytes),
        ("received", phase.network_received_bytes),
    ):
        if amount >= 1e6:
            parts.append(f"{formatting.size(amount)} {verb}")
    parts.append(f"{formatting.significant(phase.cpu_seconds)} core seconds")
    parts.append(f"peak memory {formatting.memory(phase.peak_memory_bytes)}")
    fixed = "" if phase.grows else " (not part of the job, since it has hardly any I/O)"
    limited = (
        "no bottleneck on this machine"
        if phase.bottleneck.startswith("none")
        else f"limited by {formatting.resource(phase.bottleneck)}"
    )
    return f"{phase.name}{fixed}: {', '.join(parts)}; {limited}: {phase.why}"
