"""The driver of a job on a fleet: has the nodes do what the schedule says, and tells it what came.

::

    prepare, look    each node: what it has of the input, how much room
    sample           each node its share; boundaries here
    pass_one         round after round, until every record lies where its partition is owned
    pass_two         all owners at once; what is lost meanwhile goes through rounds again; where
                     copies are kept, they are sent as partitions are sorted
    copy             of finished files that lack one: it was lost, or a MapReduce wrote them
    seal, leave      when the sum of what was written is that of what was read

    claim, find      in object storage: one node for all (`objects`); all show that they reach it
    clear            before pass two: of what was begun there, and is done again
    publish, release    instead of seal and leave

Data goes from node to node; here come keys of the sample, counts, and names of files. What befell
is on file before anything rests on it (`home`), so the same command goes on after one was killed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tonnage.base import core, formatting
from tonnage.base.records import RunRecord
from tonnage.cluster.ray_adapter import Cluster
from tonnage.cluster.step_worker import FAILED, REFUSED, StepResult, StepWorker
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.run.two_pass import admission, startup
from tonnage.run.two_pass.job_dir import open_job_dir, round_event
from tonnage.run.two_pass.job_spec import TwoPassJob
from tonnage.run.two_pass.job_state import JobRun
from tonnage.run.two_pass.output import commit
from tonnage.run.two_pass.schedule import NoNodeLeft, Outcome, Round, Total, InputLost
from tonnage.run.two_pass.splits import split_json
from tonnage.run.two_pass.stragglers import StragglerDetector
from tonnage.run.two_pass.worker import DeterministicError


def run_two_pass(
    cluster: Cluster,
    out: Path,
    asked: TwoPassJob,
    on_progress: Callable[[int, int], None] = lambda *_: None,
    kind: type[StepWorker] = StepWorker,
) -> RunRecord:
    """Sorts on all machines of a cluster, or goes on with what an earlier command began.

    Args:
        cluster: Whose machines.
        out: Where what befell is kept.
        asked: What to sort, and where.
        on_progress: Called with the bytes that both passes have moved, and those there are to move.
        kind: What agents are.

    Raises:
        UsageError: Arguments, a machine, or the input cannot be used.
        RunError: A part of the input cannot be read any more, or no node is left; the same command
            goes on. Or something would fail on any machine: then nothing is left.
        Over: The input is not what it was, or what came out is not what went in: the same command
            would fail, too.
        KeyboardInterrupt: Ctrl-C; nodes have stopped, and the same command goes on.
    """
    with open_job_dir(out, asked.settings, asked.LISTED) as kept:
        if kept.is_left:
            return RunRecord.read(kept.run)
        began = None if kept.plan is None else kept.plan["weights"]
        try:
            machines = admission.machines(cluster, asked.instances, began)
            with WorkerPool(cluster, machines, asked.patience_seconds, kind) as crew:
                return _done(JobRun(kept, crew, asked, on_progress))
        except core.UsageError:
            if kept.plan is None:
                kept.forget()
            raise


def _done(job: JobRun) -> RunRecord:
    """Has a crew do the job, or what there is left of it."""
    kept, crew = job.dir, job.pool
    crew.ready(job.place)
    if kept.run.exists():
        commit.leave(job)
        return RunRecord.read(kept.run)
    try:
        return _sorted(job)
    except core.UsageError:
        if kept.plan is None:
            crew.run_step("leave", {node: {} for node in crew.nodes})
            with suppress(
                core.UsageError, core.RunError, NoNodeLeft
            ):  # It may be what was refused.
                if job.asked.output_url is not None:
                    job.run_on_one("release", None)
        raise
    except DeterministicError as why:
        commit.abandon(job)
        raise core.RunError(*why.args) from why
    except (InputLost, NoNodeLeft) as why:
        lost = [f"{node} {reason}" for node, reason in job.lost.items()]
        because = f" (lost: {formatting.listing(lost)})" if lost else ""
        raise core.RunError(f"{why}{because}") from why


def _sorted(job: JobRun) -> RunRecord:
    """Does what there is left to do."""
    startup.begin(job)
    while True:
        try:
            while each := job.schedule.next_round():
                _round(job, each)
        except InputLost:
            if not job.renewed():
                raise
            continue
        if left := job.schedule.to_sort():
            _pass_two(job, left)
        elif lacking := job.schedule.to_copy():
            _copy(job, lacking)
        elif commit.sealed(job):
            return commit.whole(job)


def _round(job: JobRun, each: Round) -> None:
    schedule, asked = job.schedule, job.asked
    addresses = job.pool.reserve_addresses(each.nodes)
    if gone := [node for node in each.nodes if node not in addresses]:
        for node in gone:
            job.lose(node, job.why_gone(node))
        return
    nodes = each.nodes
    number_of_node = {node: number for number, node in enumerate(nodes)}
    owners: list[int | None] = [None] * schedule.partitions
    for place, node in each.owners.items():
        owners[place] = number_of_node[node]
    mesh = _mesh(job, addresses, asked.connections)
    more = asked.round(job, each)
    config = {
        node: {
            "number": each.number,
            "files": job.files(schedule.splits, each.reads.get(node, ())),
            "mesh": mesh | {"number": number_of_node[node]},
            "splits": [split_json(schedule.splits[one]) for one in each.reads.get(node, ())],
            "owners": owners,
            **more[node],
        }
        for node in nodes
    }
    began = time.monotonic()
    ended = job.run_step("pass_one", config)
    outcomes, blames = {}, {}
    for node, end in ended.items():
        job.refuse_changed(node, end)
        if end.kind is None:
            outcomes[node] = _outcome(end.value, each, node, nodes)
        elif end.kind in (FAILED, REFUSED):
            blames[node] = admission.blamed_peers(end.reason, nodes)
    event = round_event(each, outcomes, blames)
    event |= asked.check_round(each, {node: ended[node].value for node in outcomes})
    event |= {"seconds": time.monotonic() - began, "told": job.take_reports()}
    event["bytes"] = sum(sum(outcome.partitions.values()) for outcome in outcomes.values())
    judged = schedule.round_ended(each, outcomes, blames)
    job.dir.append(event)
    job.lose_all(ended, judged, blames)


def _mesh(job: JobRun, addresses: Mapping[str, str], connections: int) -> dict[str, Any]:
    """How nodes meet, in the order of their names; each is also told its number."""
    return {
        "endpoints": [addresses[node] for node in sorted(addresses)],
        "connections": connections,
        "secret": secrets.token_hex(32),
        "patience_seconds": job.asked.patience_seconds,
        "checked": True,
    }


def _pass_two(job: JobRun, left: Mapping[str, Sequence[int]]) -> None:
    schedule, of_all = job.schedule, job.asked.pass_two(job)
    asked: dict[str, dict[str, Any]] = {}
    for node, places in left.items():
        filled = [place for place in places if schedule.received[place]]
        for place in places:
            job.sums.pop(place, None)
            job.copies.pop(place, None)
            if not schedule.received[place]:
                schedule.partition_finished(place, [])
        if filled:
            asked[node] = {
                "rounds": schedule.scratch[node],
                "keeps": [],
                **of_all,
                "partitions": [
                    {"number": place, **job.asked.partition(job, place)} for place in filled
                ],
            }
    if asked and job.asked.output_url is not None:
        job.run_on_one("clear", [each["number"] for one in asked.values() for each in one["partitions"]])
    copies = schedule.copies is not None and job.asked.COPIED_AS_WRITTEN and bool(asked)
    if copies and not _with_copies(job, asked):
        return
    ended = _done_together(job, "pass_two", asked, copies, _pace(job, asked))
    for node, end in sorted(ended.items()):
        missing = [
            place
            for place in left.get(node, ())
            if place not in schedule.finished and schedule.owner[place] == node
        ]
        if end.kind is None and missing:
            raise core.RunError(
                f"{node}: of partition {missing[0]} {schedule.received[missing[0]]} bytes came, "
                "and others were written: nothing is called done"
            )


def _pace(job: JobRun, asked: Mapping[str, Mapping[str, Any]]) -> StragglerDetector:
    """Who is too slow in pass two; nobody, where others wait for its copies."""
    schedule = job.schedule
    if schedule.copies is not None and job.asked.COPIED_AS_WRITTEN:
        return StragglerDetector()
    shares = {
        node: [schedule.received[each["number"]] for each in one["partitions"]]
        for node, one in asked.items()
        if node in schedule.keepers
    }
    rounds = [event["seconds"] for event in job.dir.events if event["event"] == "round"]
    return StragglerDetector(shares, max(rounds, default=0.0))


def _with_copies(job: JobRun, asked: dict[str, dict[str, Any]]) -> bool:
    """Adds to what nodes are asked for who keeps copies; tells whether all are still there."""
    places = [each["number"] for one in asked.values() for each in one["partitions"]]
    keepers = job.schedule.assign_copies(sorted(places))
    for node in {*keepers.values()} - {*asked}:
        asked[node] = {"rounds": [], "partitions": []}
    for node in asked:
        asked[node]["keeps"] = [place for place, keeper in keepers.items() if keeper == node]
    meshes = _meet(job, sorted(asked))
    numbers = {node: number for number, node in enumerate(sorted(asked))}
    for node, mesh in meshes.items():
        asked[node]["mesh"] = mesh
        for each in asked[node]["partitions"]:
            each["keeper"] = numbers[keepers[each["number"]]]
    return bool(meshes)


def _copy(job: JobRun, lacking: Mapping[int, str]) -> None:
    """Has owners send finished files to those that are to keep copies."""
    schedule = job.schedule
    nodes = sorted({*lacking.values()} | {schedule.owner[place] for place in lacking})
    numbers = {node: number for number, node in enumerate(nodes)}
    if not (meshes := _meet(job, nodes)):
        return
    files: dict[str, list[dict[str, Any]]] = {node: [] for node in nodes}
    for place, keeper in lacking.items():
        files[schedule.owner[place]] += [
            {"path": file.path, "keeper": numbers[keeper]} for file in schedule.finished[place]
        ]
    asked = {
        node: {
            "files": files[node],
            "mesh": meshes[node],
            "keeps": [place for place, keeper in lacking.items() if keeper == node],
        }
        for node in nodes
    }
    _done_together(job, "copy", asked, True)


def _meet(job: JobRun, nodes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """How each of these nodes meets the others for copies; nothing if one of them is lost."""
    addresses = job.pool.reserve_addresses(nodes)
    if gone := [node for node in nodes if node not in addresses]:
        for node in gone:
            job.lose(node, job.why_gone(node))
        return {}
    # One connection a pair: all of a file comes in order.
    mesh = _mesh(job, addresses, 1)
    return {node: mesh | {"number": number} for number, node in enumerate(nodes)}


def _done_together(
    job: JobRun,
    step: str,
    asked: Mapping[str, Mapping[str, Any]],
    meets: bool,
    pace: StragglerDetector | None = None,
) -> dict[str, StepResult]:
    """Has nodes do a step of which each file that is whole counts; loses who is to be lost.

    Raises:
        RunError: A node failed by itself.
    """
    nodes, began = sorted(asked), time.monotonic()
    ended = job.run_step(step, asked, pace)
    event = {"event": step, "seconds": time.monotonic() - began}
    job.dir.append(event | {"told": job.take_reports()})
    pairs: list[tuple[str, str]] = []
    able = {*job.pool.nodes} & job.schedule.keepers
    able -= {node for node, end in ended.items() if end.kind is not None}
    for node, end in sorted(ended.items()):
        others = admission.unreachable_peers(end, nodes) if meets else []
        if end.kind in (FAILED, REFUSED) and not others:
            # One that does not reach an object store is not all of them.
            if job.asked.output_url is None or not able:
                raise core.RunError(f"{node}: {end.reason}")
            job.lose(node, end.reason)
        pairs += [(node, other) for other in others]
    well = {node for node, end in ended.items() if end.kind in (None, FAILED, REFUSED)}
    well &= {*job.pool.nodes}
    job.lose_all(ended, job.schedule.links_failed(pairs, well))
    return ended


def _outcome(told: Mapping[str, Any], each: Round, node: str, nodes: Sequence[str]) -> Outcome:
    """What the core tells of a round, with nodes' names."""
    lost = {nodes[link["peer"]] for link in told["received"] if link["lost"] is not None}
    partitions = {
        place: told["partitions"][place] for place, owner in each.owners.items() if owner == node
    }
    return Outcome(Total(**told["read"]), tuple(sorted(lost)), partitions)
