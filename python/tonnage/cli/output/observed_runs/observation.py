"""An observed command, or run of nodes, on the terminal: its phases and their bottlenecks."""

from tonnage.base import formatting
from tonnage.base.records import Observation, ObservedPhase
from tonnage.measure.observe.to_job import STATED


def observation_lines(observation: Observation) -> list[str]:
    phases = observation.phases
    command = formatting.command(observation.command) if observation.command else "processes"
    if nodes := observation.nodes:
        cores = formatting.several(sum(node.cores for node in nodes), "core")
        on = f"{formatting.several(len(nodes), 'node')} with {cores}"
        command = f"{command} on {on}" if observation.command else on
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
            if observation.input_from != STATED
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
    if phase.peak_memory_bytes or not phase.nodes:
        memory = f"peak memory {formatting.memory(phase.peak_memory_bytes)}"
        parts.append(f"{memory} of a node" if len(phase.nodes) > 1 else memory)
    fixed = "" if phase.grows else " (not part of the job, since it has hardly any I/O)"
    limited = (
        "no bottleneck on this machine"
        if phase.bottleneck.startswith("none")
        else f"limited by {formatting.resource(phase.bottleneck)}"
    )
    return f"{phase.name}{fixed}: {', '.join(parts)}; {limited}: {phase.why}{_skew(phase)}"


def _skew(phase: ObservedPhase) -> str:
    """How unequal the nodes were in what limited them, or in their cores if nothing did."""
    if len(phase.nodes) < 2 or phase.skew is None:
        return ""
    busiest = max(phase.nodes, key=lambda node: node.amount(phase.bottleneck))
    return f"; {busiest.node} used {formatting.significant(phase.skew)} times the nodes' median"
