"""What commands that measure do with ``--cluster``: the same on every machine of a Ray cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tonnage.base import core, formatting
from tonnage.base.records import (
    ClusterMeasurement,
    ClusterNode,
    ClusterSummary,
    Measurement,
    Metric,
)
from tonnage.base.records.cluster_measurement import NODE_FILE
from tonnage.cli.measure.options import Measure, More, Where, line
from tonnage.cli.options.extras import refuse_without

if TYPE_CHECKING:
    from tonnage.measure.cluster.driver import MeasurementEvents, TrialDone


def measure(
    address: str,
    out: Path,
    kind: str,
    work: Callable[[str | None], Measure],
    settings: Mapping[str, Any],
    at: Where,
    as_json: bool,
    *,
    pause_seconds: float = 0.0,
    in_step: bool = False,
    more: Callable[[Measurement], More] = lambda _: ({}, []),
    in_line: Callable[[Metric], str] = line,
) -> None:
    """Measures on a fleet, and shows of each machine what is shown of one; as `carry_out`.

    Raises:
        UsageError: Ray is not there, or there is no such cluster, or ``out`` cannot be used.
        RunError: A machine is missing; what the others gave is kept and shown by then.
    """
    refuse_without_ray()
    from tonnage.measure.cluster.driver import MeasurementRequest, measure_cluster

    asked = MeasurementRequest(
        kind=kind,
        work=work,
        settings=settings,
        **at.asked,
        one_at_a_time=at.one_at_a_time,
        pause_seconds=pause_seconds,
        in_step=in_step,
    )
    measured = partial(measure_cluster, out=out, asked=asked)
    show(address, out, kind, measured, as_json, more=more, in_line=in_line)


def refuse_without_ray() -> None:
    """Refuses where Ray is not installed."""
    refuse_without("cluster", "--cluster")


def show(
    address: str,
    out: Path,
    kind: str,
    measured: Callable[..., MeasurementEvents],
    as_json: bool,
    *,
    more: Callable[[Measurement], More] = lambda _: ({}, []),
    in_line: Callable[[Metric], str] = line,
    in_lines: Callable[[ClusterMeasurement], Iterable[str]] = lambda _: (),
) -> None:
    """Shows what a fleet measures as it comes; ``measured`` takes a cluster and ``on_rows``.

    ``in_lines`` is what is told of all machines besides.

    Raises:
        UsageError, RunError: As `measure`.
    """
    (whole,) = carried_out(address, kind, measured, as_json, in_line)
    if as_json:
        print(json.dumps(document(whole, more)))
    else:
        print("\n".join([*summary(whole, out, more), *in_lines(whole)]))
        print_place(out)
    fail_if_missing(whole)


def carried_out(
    address: str,
    kind: str,
    measured: Callable[..., MeasurementEvents],
    as_json: bool,
    in_line: Callable[[Metric], str] = line,
) -> list[ClusterMeasurement]:
    """What a fleet measures, each trial and each node shown as it comes; as `show`."""
    from tonnage.cluster.progress import ClusterProgress
    from tonnage.cluster.ray_adapter import connect

    wholes = []
    with (
        connect(address) as cluster,
        ClusterProgress(f"measuring {kind}") as view,
        closing(measured(cluster, on_rows=view)) as found,
    ):
        for each in found:
            if isinstance(each, ClusterMeasurement):
                wholes.append(each)
            elif not as_json:
                print(_line(each, in_line), flush=True)
    return wholes


def print_place(out: Path) -> None:
    """Says where it is kept."""
    print(f"Kept in {out}; a page of it: tonnage report {out}")


def fail_if_missing(*parts: ClusterMeasurement) -> None:
    """Fails if a machine did not measure all, in any part, so that no script takes it for done."""
    rows = [row for whole in parts for row in whole.nodes]
    if not any(row.ok for row in rows):
        reasons = formatting.listing(f"{row.node} {row.why}" for row in rows) or "there is none"
        raise core.RunError(f"no machine measured: {reasons}")
    # Why is told already, of each.
    if missing := sorted({row.node for row in rows if not row.ok}):
        count = formatting.several(len({row.node for row in rows}), "machine")
        names = formatting.listing(missing)
        raise core.RunError(f"{len(missing)} of {count} did not measure all: {names}")


def document(
    whole: ClusterMeasurement,
    more: Callable[[Measurement], More] = lambda _: ({}, []),
) -> dict[str, Any]:
    """The measurement as JSON values: each node's row is how it went and what it measured."""
    values = whole.to_json()
    values["nodes"] = [_row(node, more) for node in whole.nodes]
    return values


def summary(
    whole: ClusterMeasurement,
    out: Path,
    more: Callable[[Measurement], More] = lambda _: ({}, []),
) -> list[str]:
    """What all nodes come to, in lines, kept in ``out``; what is missing comes last."""
    lines = [_across(each) for each in whole.across]
    if whole.skew_seconds is not None:
        error = formatting.latency(whole.clock_error_seconds or 0.0)
        lines.append(
            f"All began within {formatting.latency(whole.skew_seconds)} of each other (clocks known to "
            f"within {error})"
        )
    if whole.first_done_seconds is not None and whole.last_done_seconds is not None:
        lines.append(
            f"First done after {formatting.seconds(whole.first_done_seconds)}, last after "
            f"{formatting.seconds(whole.last_done_seconds)}"
        )
    lines += _yielding(whole)
    lines += [
        f"{each.node}: {said}"
        for each in whole.nodes
        if each.measurement
        for said in more(each.measurement)[1]
    ]
    ok = len(whole.nodes) - len(whole.missing)
    lines.append(f"{whole.id}: {ok} of {formatting.several(len(whole.nodes), 'node')}")
    return lines + [_missing(each, out) for each in whole.missing]


def _missing(row: ClusterNode, out: Path) -> str:
    from tonnage.measure.cluster.store import node_directory

    whole = f" (in full: {out / node_directory(row.node) / NODE_FILE})" if row.error else ""
    return f"Missing: {row.node}: {row.why}{whole}"


def _row(node: ClusterNode, more: Callable[[Measurement], More]) -> dict[str, Any]:
    single = node.measurement
    values = single.to_json() | more(single)[0] if single else {}
    told = node.status
    return {"node": node.node, "type": node.machine_type, **told, **_besides(values, told)}


def _besides(values: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in told}


def _line(each: TrialDone | ClusterNode, in_line: Callable[[Metric], str]) -> str:
    if isinstance(each, ClusterNode):
        if each.ok:
            return f"{each.node}: done in {formatting.seconds(each.seconds or 0.0)}"
        return f"{each.node}: {each.why}"
    said = (
        in_line(each.trial.reading)
        if each.trial.reading
        else formatting.rate(each.trial.bytes_per_second)
    )
    return f"{each.node}: {each.trial.name}: {said}"


def _yielding(whole: ClusterMeasurement) -> list[str]:
    """Who measured at a low priority, since Ray's processes have one and it may not leave that."""
    nodes = {
        each.node: each.measurement.environment.niceness
        for each in whole.nodes
        if each.measurement and each.measurement.environment
    }
    nice = [f"{node} (nice {value})" for node, value in nodes.items() if value and value > 0]
    if not nice:
        return []
    return [
        f"Measured while all else there went first: {formatting.listing(nice)}; start Ray as root, or "
        "with RAY_worker_niceness=0"
    ]


def _across(each: ClusterSummary) -> str:
    parts = [f"{formatting.rate(each.median_bytes_per_second)} is the median node's"]
    if len(types := each.medians_of_types) > 1:
        # Of unlike machines the middle one is like none of them.
        medians = formatting.listing(
            f"{formatting.rate(rate)} ({name})" for name, rate in types.items()
        )
        parts = [f"{medians} are the median nodes' of each type"]
    if each.nodes > 1:
        low, high = map(formatting.rate, (each.low_bytes_per_second, each.high_bytes_per_second))
        parts.append(f"{low} ({each.slowest_node}) to {high}")
        parts.append(f"{formatting.rate(each.sum_bytes_per_second)} in all")
    if each.together_bytes_per_second is not None:
        together = formatting.rate(each.together_bytes_per_second)
        parts.insert(0, f"{together} together, from the first beginning to the last end")
    latency = each.latency_seconds
    known = {"half": latency.p50, "99 %": latency.p99, "all": latency.max}
    if within := [
        f"{share} {formatting.latency(value)}" for share, value in known.items() if value
    ]:
        parts.append(f"of all operations within: {', '.join(within)}")
    return f"{each.name}: {'; '.join(parts)}"
