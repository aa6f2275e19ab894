"""The run record of a two-pass job, built from the nodes' reports."""

from collections.abc import Mapping
from typing import Any

from tonnage.base.core import stage_stats
from tonnage.base.records import NodeRun, Phase, RoundRun, RunRecord
from tonnage.base.records.base import to_builtins
from tonnage.cluster.protocol import StepResult
from tonnage.measure.trial import environment
from tonnage.run.storage.object_store import sum_requests
from tonnage.run.two_pass.job_dir import JobDir
from tonnage.run.two_pass.messages import WorkReport
from tonnage.run.two_pass.schedule import Schedule


def step_report(result: StepResult[Any]) -> dict[str, Any]:
    """What the job directory keeps of a step on a node, as JSON values."""
    report = result.value if isinstance(result.value, WorkReport) else WorkReport()
    phases = [_reported(phase) for phase in report.phases]
    requests = getattr(result.value, "requests", {})
    return {
        "seconds": result.seconds,
        "cpu_seconds": result.cpu_seconds,
        "peak_memory_bytes": result.peak_memory_bytes,
        "phases": phases,
        # What users' functions read and write, the core does not see.
        "read_bytes": _of_kind(phases, "read") + report.input_bytes,
        "written_bytes": _of_kind(phases, "write") + report.output_bytes,
        "sent_bytes": sum(link.bytes for link in report.sent),
        "received_bytes": sum(link.bytes for link in report.received),
        "repartitioned_bytes": report.repartitioned_bytes,
        "requests": requests,
    }


def build_run_record(
    kept: JobDir,
    schedule: Schedule,
    command: list[str],
    done: Mapping[str, Any],
    settings: Mapping[str, Any],
    seconds: float,
    lost: Mapping[str, str],
    labels: dict[str, dict[str, str]],
) -> RunRecord:
    """The record of a job that is whole.

    ``done`` says which job it was, and how much it did; ``seconds`` are of this command, not of
    earlier ones that were killed.
    """
    steps: dict[str, list[Mapping[str, Any]]] = {node: [] for node in sorted(schedule.weights)}
    rounds: list[RoundRun] = []
    for event in kept.events:
        for node, of_node in event.get("told", {}).items():
            steps.setdefault(node, []).extend(of_node.values())
        if event["event"] == "round":
            rounds.append(
                RoundRun(
                    number=event["number"],
                    splits=sum(map(len, event["reads"].values())),
                    partitions=len(event["owners"]),
                    bytes=event["bytes"],
                    seconds=event["seconds"],
                )
            )
        elif event["event"] == "lost" and not event["joins"] and rounds:
            rounds[-1].lost[event["node"]] = event["why"]
    nodes = [_node(node, of_node, lost.get(node)) for node, of_node in steps.items()]
    return RunRecord(
        **done,
        began_at=kept.began_at,
        command=command,
        environment=environment.capture([]),
        settings={**settings, "partitions": schedule.partitions},
        seconds=seconds,
        cpu_seconds=sum(node.cpu_seconds for node in nodes),
        peak_memory_bytes=max((node.peak_memory_bytes for node in nodes), default=0),
        repartitioned_bytes=sum(
            step["repartitioned_bytes"] for of_node in steps.values() for step in of_node
        ),
        phases=[],
        nodes=nodes,
        rounds=rounds,
        labels=labels,
        durability=settings["durability"],
        requests=sum_requests(step["requests"] for of_node in steps.values() for step in of_node),
        network_bytes=sum(node.sent_bytes for node in nodes),
        commands=1 + sum(event["event"] == "command" for event in kept.events),
    )


def _node(node: str, steps: list[Mapping[str, Any]], lost: str | None) -> NodeRun:
    return NodeRun(
        node=node,
        phases=[stage_stats.phase_record(phase) for step in steps for phase in step["phases"]],
        read_bytes=sum(step["read_bytes"] for step in steps),
        sent_bytes=sum(step["sent_bytes"] for step in steps),
        received_bytes=sum(step["received_bytes"] for step in steps),
        written_bytes=sum(step["written_bytes"] for step in steps),
        cpu_seconds=sum(step["cpu_seconds"] for step in steps),
        peak_memory_bytes=max((step["peak_memory_bytes"] for step in steps), default=0),
        seconds=sum(step["seconds"] for step in steps),
        lost=lost,
    )


def _reported(phase: Phase) -> dict[str, Any]:
    """A phase as the core reports it, without samples over time."""
    values: dict[str, Any] = to_builtins(phase)
    stages = [stage | {"depth": 0} for stage in values["stages"]]
    return values | {"stages": stages, "timeline": []}


def _of_kind(phases: list[dict[str, Any]], kind: str) -> int:
    return sum(
        stage["bytes"] for phase in phases for stage in phase["stages"] if stage["kind"] == kind
    )
