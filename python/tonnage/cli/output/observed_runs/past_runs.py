"""Past runs of a job, in a few lines."""

from tonnage.base import formatting
from tonnage.base.records.past_run import PastRuns, RunDemands
from tonnage.measure.importers.metric import one_line


def past_run_lines(past: PastRuns) -> list[str]:
    own = [run for run in past.runs if run.name == past.job]
    finished = [run for run in own if run.outcome == "ok"]
    types = {(run.provider, run.machine_type) for run in own}
    nodes = sorted({run.nodes for run in own})
    sizes = f"{nodes[0]} to {nodes[-1]}" if len(nodes) > 1 else str(nodes[0])
    runs, kinds = (
        formatting.several(len(own), "run"),
        formatting.several(len(types), "machine type"),
    )
    lines = [
        f"{one_line(past.job)}: {runs}, {len(finished)} finished, on {kinds} with {sizes} nodes"
    ]
    if finished:
        seconds = [run.seconds for run in finished]
        span = dict.fromkeys(map(formatting.duration, (min(seconds), max(seconds))))
        lines.append(f"{'it' if len(finished) == 1 else 'they'} took {' to '.join(span)}")
    if past.demands:
        lines.append(_demand_line(past.demands))
    if past.cached_bytes is not None:
        kept = formatting.size(past.cached_bytes) if past.cached_bytes else "nothing"
        lines.append(f"{kept} is kept in memory, as far as is known")
    others = len(past.runs) - len(own)
    if others:
        lines.append(
            f"{formatting.several(others, 'run')} with other data or parameters tell how it grows"
        )
    return lines


def _demand_line(demands: RunDemands) -> str:
    moved = {
        "disks": demands.disk_bytes,
        "network": demands.network_bytes,
        "object storage": demands.object_bytes,
    }
    parts = [f"{demands.core_seconds / 3600:,.3g} core hours"]
    parts += [f"{name} {formatting.size(count)}" for name, count in moved.items() if count]
    if demands.serial_seconds is not None:
        parts.append(f"{formatting.duration(demands.serial_seconds)} that nodes do not shorten")
    return f"the one on {one_line(demands.machine_type)} took {formatting.listing(parts)}"
