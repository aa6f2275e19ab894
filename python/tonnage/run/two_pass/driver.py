"""The driver of a two-pass job on a cluster: it has nodes do what the schedule says, and tells it
what happened.

::

    prepare, look    each node: what it has of the input, how much space
    sample           each node its share; boundaries here
    pass_one         round after round, until every record lies where its partition is owned
    pass_two         all owners at once; what is lost in it goes through rounds again; where
                     copies are kept, they are sent as partitions are finished
    copy             of finished files that lack one: it was lost, or a MapReduce wrote them
    seal, leave      when the totals agree: manifests, then the rest is removed

    claim, find      in object storage: one node for all; all show that they reach it
    clear            before pass two: of what was begun there, and is done again
    publish, release    instead of seal and leave

Data goes from node to node; here come keys of the sample, counts, and names of files. What happened
is on file before anything relies on it (`job_dir`), so the same command resumes a killed one.
"""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tonnage.base import core, formatting
from tonnage.base.records import RunRecord
from tonnage.cluster.failure_kinds import BadInput, DeterministicError, Failure
from tonnage.cluster.protocol import Step, StepResult
from tonnage.cluster.ray_adapter import Cluster
from tonnage.cluster.worker_pool import WorkerPool
from tonnage.run.two_pass import admission, lost_peers, messages, startup
from tonnage.run.two_pass.job_dir import open_job_dir, round_event
from tonnage.run.two_pass.job_spec import TwoPassJob
from tonnage.run.two_pass.job_state import JobRun
from tonnage.run.two_pass.output import commit
from tonnage.run.two_pass.schedule import InputLost, NoNodeLeft, Outcome, Round
from tonnage.run.two_pass.stragglers import StragglerDetector


def run_two_pass(
    cluster: Cluster,
    out: Path,
    spec: TwoPassJob,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> RunRecord:
    """Runs a job on a cluster, or resumes one that an earlier command began.

    Args:
        on_progress: Called with the bytes that both passes have moved, and those there are to move.

    Raises:
        UsageError: Arguments, a machine, or the input cannot be used.
        RunError: A part of the input cannot be read any more, or no node is left: the same command
            resumes the job. Or it would fail on any machine: then nothing of it is left.
        FatalJobError: The input was changed, or what was written is not what was read: the same
            command would fail, too.
        KeyboardInterrupt: Ctrl-C; nodes have stopped, and the same command resumes the job.
    """
    with open_job_dir(out, spec.settings, spec.LISTED) as job_dir:
        if job_dir.is_left:
            return RunRecord.read(job_dir.run)
        began_with = None if job_dir.plan is None else job_dir.plan["weights"]
        try:
            machines = admission.machines(cluster, spec.nodes, began_with)
            with WorkerPool(cluster, machines, spec.patience_seconds, "TwoPassWorker") as pool:
                return _run(JobRun(job_dir, pool, spec, on_progress))
        except core.UsageError:
            if job_dir.plan is None:
                job_dir.forget()
            raise


def _run(job: JobRun) -> RunRecord:
    job_dir, pool = job.dir, job.pool
    pool.ready(job.worker_config)
    if job_dir.run.exists():
        commit.leave(job)
        return RunRecord.read(job_dir.run)
    try:
        return _run_schedule(job)
    except core.UsageError:
        if job_dir.plan is None:
            pool.run_step(messages.LEAVE, {node: messages.Leave() for node in pool.nodes})
            if job.spec.output_url is not None:
                # The store may be what was refused.
                with suppress(core.UsageError, core.RunError, NoNodeLeft):
                    job.run_on_one(messages.RELEASE, None)
        raise
    except DeterministicError as why:
        commit.abandon(job)
        error = core.UsageError if isinstance(why, BadInput) else core.RunError
        raise error(*why.args) from why
    except (InputLost, NoNodeLeft) as why:
        lost = [f"{node} {reason}" for node, reason in job.lost.items()]
        because = f" (lost: {formatting.listing(lost)})" if lost else ""
        raise core.RunError(f"{why}{because}") from why


def _run_schedule(job: JobRun) -> RunRecord:
    startup.begin(job)
    while True:
        try:
            while each := _next_round(job):
                _run_round(job, each)
        except InputLost:
            if not job.restart_lost():
                raise
            continue
        if left := job.schedule.to_sort():
            _run_pass_two(job, left)
        elif lacking := job.schedule.to_copy():
            _copy(job, lacking)
        elif commit.seal(job):
            return commit.complete(job)


def _next_round(job: JobRun) -> Round | None:
    schedule = job.schedule
    schedule.wanted = job.spec.wanted_partitions(job.plan, schedule, job.dir.events)
    return schedule.next_round()


def _run_round(job: JobRun, each: Round) -> None:
    schedule, spec, nodes = job.schedule, job.spec, each.nodes
    if not (meshes := _connect(job, nodes, job.connections(len(nodes)))):
        return
    endpoints = {node: number for number, node in enumerate(nodes)}
    owners: list[int | None] = [None] * schedule.partitions
    for place, node in each.owners.items():
        owners[place] = endpoints[node]
    requests = {
        node: messages.PassOne(
            number=each.number,
            files=job.files(schedule.splits, each.reads.get(node, ())),
            splits=[
                messages.SplitToRead.of(schedule.splits[one]) for one in each.reads.get(node, ())
            ],
            owners=owners,
            mesh=meshes[node],
        )
        for node in nodes
    }
    began = time.monotonic()
    results = job.run_step(
        spec.PASS_ONE, spec.pass_one(each, requests, job.plan, schedule, job.workers)
    )
    outcomes, blames = {}, {}
    for node, result in results.items():
        job.refuse_changed(node, result)
        if result.value is not None:
            outcomes[node] = _outcome(result.value, each, node, nodes)
        elif result.failure in (Failure.FAILED, Failure.REFUSED):
            blames[node] = lost_peers.blamed_peers(result.reason, nodes)
    event = round_event(each, outcomes, blames)
    event |= spec.check_round(each, {node: results[node].value for node in outcomes})
    event |= {"seconds": time.monotonic() - began, "told": job.take_reports()}
    event["bytes"] = sum(sum(outcome.partitions.values()) for outcome in outcomes.values())
    unreachable = schedule.round_ended(each, outcomes, blames)
    job.dir.append(event)
    job.lose_all(results, unreachable, blames)


def _run_pass_two(job: JobRun, left: Mapping[str, Sequence[int]]) -> None:
    schedule, spec = job.schedule, job.spec
    requests: dict[str, messages.PassTwo] = {}
    for node, places in left.items():
        filled = [place for place in places if schedule.received[place]]
        for place in places:
            job.partition_files.pop(place, None)
            job.copies.pop(place, None)
            if not schedule.received[place]:
                schedule.partition_finished(place, [])
        if filled:
            partitions = [
                messages.PartitionToFinish(place, spec.has_single_key(job.plan, place))
                for place in filled
            ]
            requests[node] = messages.PassTwo(
                rounds=schedule.scratch[node], partitions=partitions, keeps=[]
            )
    if requests and spec.output_url is not None:
        again = [each.number for one in requests.values() for each in one.partitions]
        job.run_on_one(messages.CLEAR, messages.Clear(again))
    copies = schedule.copies is not None and spec.COPIED_AS_WRITTEN and bool(requests)
    if copies and not (requests := _with_copies(job, requests)):
        return
    results = _run_together(
        job,
        spec.PASS_TWO,
        spec.pass_two(requests, job.plan, job.dir.events),
        copies,
        _straggler_detector(job, requests),
    )
    for node, result in sorted(results.items()):
        missing = [
            place
            for place in left.get(node, ())
            if place not in schedule.finished and schedule.owner[place] == node
        ]
        if result.failure is None and missing:
            raise core.RunError(
                f"{node}: the bytes written for partition {missing[0]} differ from the "
                f"{schedule.received[missing[0]]} bytes received: the output is not valid"
            )


def _straggler_detector(job: JobRun, requests: Mapping[str, messages.PassTwo]) -> StragglerDetector:
    """Finds stragglers of pass two; none, where others wait for their copies."""
    schedule = job.schedule
    if schedule.copies is not None and job.spec.COPIED_AS_WRITTEN:
        return StragglerDetector()
    shares = {
        node: [schedule.received[each.number] for each in request.partitions]
        for node, request in requests.items()
        if node in schedule.keepers
    }
    rounds = [event["seconds"] for event in job.dir.events if event["event"] == "round"]
    return StragglerDetector(shares, max(rounds, default=0.0))


def _with_copies(
    job: JobRun, requests: Mapping[str, messages.PassTwo]
) -> dict[str, messages.PassTwo]:
    """The requests with the nodes that keep copies; none if one of those is lost."""
    places = [each.number for one in requests.values() for each in one.partitions]
    keepers = job.schedule.assign_copies(sorted(places))
    idle = messages.PassTwo(rounds=[], partitions=[], keeps=[])
    nodes = sorted({*requests, *keepers.values()})
    meshes = _connect(job, nodes)
    endpoints = {node: number for number, node in enumerate(nodes)}
    with_copies = {}
    for node, mesh in meshes.items():
        request = requests.get(node, idle)
        with_copies[node] = msgspec.structs.replace(
            request,
            keeps=[place for place, keeper in keepers.items() if keeper == node],
            mesh=mesh,
            partitions=[
                msgspec.structs.replace(each, keeper=endpoints[keepers[each.number]])
                for each in request.partitions
            ],
        )
    return with_copies


def _copy(job: JobRun, lacking: Mapping[int, str]) -> None:
    schedule = job.schedule
    nodes = sorted({*lacking.values()} | {schedule.owner[place] for place in lacking})
    endpoints = {node: number for number, node in enumerate(nodes)}
    if not (meshes := _connect(job, nodes)):
        return
    files: dict[str, list[messages.FileToCopy]] = {node: [] for node in nodes}
    for place, keeper in lacking.items():
        owner = schedule.owner[place]
        for file in schedule.finished[place]:
            name = job.spec.output_name(owner, file.path)
            files[owner].append(messages.FileToCopy(file.path, name, endpoints[keeper]))
    requests = {
        node: messages.CopyFiles(
            files=files[node],
            mesh=meshes[node],
            keeps=[place for place, keeper in lacking.items() if keeper == node],
        )
        for node in nodes
    }
    _run_together(job, messages.COPY, requests, True)


def _connect(job: JobRun, nodes: Sequence[str], connections: int = 1) -> dict[str, messages.Mesh]:
    """How these nodes connect with each other; nothing if one of them is lost.

    With one connection a pair, all of a file comes in order. The secret is new each time.
    """
    addresses = job.pool.reserve_addresses(nodes)
    if lost := [node for node in nodes if node not in addresses]:
        for node in lost:
            job.lose(node, job.why_lost(node))
        return {}
    endpoints, secret = [addresses[node] for node in nodes], secrets.token_hex(32)
    patience = job.spec.patience_seconds
    return {
        node: messages.Mesh(endpoints, connections, secret, patience, number)
        for number, node in enumerate(nodes)
    }


def _run_together(
    job: JobRun,
    step: Step[Any, Any],
    requests: Mapping[str, Any],
    connects: bool,
    stragglers: StragglerDetector | None = None,
) -> dict[str, StepResult[Any]]:
    """Run a step that lists files; lose nodes that failed, but raise what one failed at alone."""
    nodes, began = sorted(requests), time.monotonic()
    results = job.run_step(step, requests, stragglers)
    event = {"event": step.name, "seconds": time.monotonic() - began}
    job.dir.append(event | {"told": job.take_reports()})
    pairs: list[tuple[str, str]] = []
    able = {*job.pool.nodes} & job.schedule.keepers
    able -= {node for node, result in results.items() if result.failure is not None}
    failed_here = (Failure.FAILED, Failure.REFUSED)
    for node, result in sorted(results.items()):
        others = lost_peers.unreachable_peers(result, nodes) if connects else []
        if result.failure in failed_here and not others:
            # If one node does not reach an object store, others may.
            if job.spec.output_url is None or not able:
                raise core.RunError(f"{node}: {result.reason}")
            job.lose(node, result.reason)
        pairs += [(node, other) for other in others]
    well = {node for node, each in results.items() if each.failure in (None, *failed_here)}
    well &= {*job.pool.nodes}
    job.lose_all(results, job.schedule.links_failed(pairs, well))
    return results


def _outcome(
    result: messages.PassOneResult, each: Round, node: str, nodes: Sequence[str]
) -> Outcome:
    lost = {nodes[link.peer] for link in result.received if link.lost is not None}
    partitions = {
        place: result.partitions[place] for place, owner in each.owners.items() if owner == node
    }
    return Outcome(result.read.total, tuple(sorted(lost)), partitions)
