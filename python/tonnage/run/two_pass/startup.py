"""How a job on a cluster begins or is resumed: what each node has, and the schedule of that.

Nothing is decided before every node was looked at: a node that cannot take part may be the only one
that has a part of the input.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from tonnage.base import core
from tonnage.cluster.failure_kinds import Failure
from tonnage.cluster.protocol import Step, StepResult
from tonnage.cluster.worker_pool import first_failure, raise_refusal
from tonnage.run.storage.object_store import is_url, split_url
from tonnage.run.two_pass import admission, messages
from tonnage.run.two_pass.job_dir import (
    FatalJobError,
    holders_from_json,
    holders_to_json,
    new_owners_from_json,
    replay,
)
from tonnage.run.two_pass.job_spec import NODE_PLACEHOLDER
from tonnage.run.two_pass.job_state import JobRun
from tonnage.run.two_pass.schedule import Finished, Schedule, Split, assign_splits
from tonnage.run.two_pass.splits import find_holders

Q = TypeVar("Q")
R = TypeVar("R")


def begin(job: JobRun) -> None:
    """Make the job's schedule.

    `UsageError` if a node or the input cannot be used; `FatalJobError` if the input was changed
    since the job began; `InputLost` if a part of it cannot be read any more.
    """
    nodes = _look_at_nodes(job)
    _look_at_store(job, [*nodes])
    if job.dir.plan is None:
        _plan(job, nodes)
    else:
        _resume(job, nodes)


def _look_at_nodes(job: JobRun) -> dict[str, messages.NodeInventory]:
    """What is on each node, all of which can be used."""
    _run_on_all(job, messages.PREPARE, None)
    results = _run_on_all(job, messages.LOOK, None)
    nodes = {node: result.value for node, result in results.items() if result.value}
    for node, inventory in nodes.items():
        if others := {each: where for each, where in inventory.others.items() if each != node}:
            other, where = next(iter(others.items()))
            raise core.UsageError(
                f"{where} is the same (shared) directory on {node} and {other}; include "
                f"{NODE_PLACEHOLDER} in the path"
            )
    job.workers = {node: inventory.workers for node, inventory in nodes.items()}
    return nodes


def _run_on_all(job: JobRun, step: Step[Q, R], request: Q) -> dict[str, StepResult[R]]:
    """Has all nodes do a step; a new job needs all of them."""
    pool, is_new = job.pool, job.dir.plan is None
    results = job.run_step(step, dict.fromkeys(pool.workers if is_new else pool.nodes, request))
    raise_refusal(results)
    failures = (Failure.LOST, Failure.DISK, Failure.FULL, Failure.FAILED)
    if is_new and (first := first_failure(results, *failures)):
        node, result = first
        raise core.UsageError(
            f"{node} {result.reason}; repair the node or remove it from the cluster; otherwise "
            "its input would be missing"
        )
    for node, result in results.items():
        if result.failure is not None:
            pool.lose(node, result.reason)
    return results


def _look_at_store(job: JobRun, nodes: Sequence[str]) -> None:
    """Has one node list what is in object storage, and all prove that they have access to it."""
    spec, plan = job.spec, job.dir.plan
    if plan is not None:
        job.holders = holders_from_json(plan)
    elif spec.input_urls:
        objects = job.run_on_one(messages.FIND, messages.Paths(spec.input_urls)).objects
        job.holders = dict.fromkeys(objects, tuple(sorted(nodes)))
    of_buckets = {split_url(each.path)[0]: each.path for each in job.holders if is_url(each.path)}
    urls = list(of_buckets.values())
    if spec.output_url is not None:
        claimed = job.run_on_one(messages.CLAIM, None)
        job.stored = claimed.sizes
        urls.append(claimed.marker)
    if urls:
        _run_on_all(job, messages.REACH, messages.Paths(urls))


def _plan(job: JobRun, nodes: Mapping[str, messages.NodeInventory]) -> None:
    spec = job.spec
    admission.refuse_absent(spec.inputs, {node: each.absent for node, each in nodes.items()})
    admission.refuse_parts(nodes)
    weights = admission.weights(sorted(nodes), spec.weights)
    job.holders = find_holders({node: each.files for node, each in nodes.items()}) | job.holders
    splits = spec.splits(job.holders)
    if spec.durability == "replicated" and len(nodes) < 2:
        raise core.UsageError(
            "replicated: a copy needs a second node, but there is only one; add nodes",
            setting="durability",
        )
    spec.check_space(nodes, weights, sum(split.bytes for split in splits))
    partitioning = spec.partitioning(job.workers, splits, partial(_sample, job, splits))
    job.dir.begin(holders_to_json(job.holders) | partitioning | {"weights": weights})
    job.schedule = _schedule(job, splits)
    for node, why in list(job.lost.items()):
        job.lose(node, why)


def _sample(
    job: JobRun,
    splits: Sequence[Split],
    chunks: int,
    step: Step[Any, messages.SampleResult] = messages.SAMPLE,
    numbers: Sequence[int] | None = None,
    of_splits: Mapping[str, Sequence[Any]] | None = None,
    **more: Any,
) -> list[bytes]:
    """A `job_spec.Sampler`: what nodes find in their shares of the splits."""
    left = list(range(len(splits)) if numbers is None else numbers)
    total = sum(splits[number].bytes for number in left)
    sampled: list[bytes] = []
    while left:
        shares = assign_splits(splits, left, {*job.pool.nodes})
        requests = {
            node: step.request(
                splits=[messages.SplitToRead.of(splits[number]) for number in share],
                chunks=-(-chunks * sum(splits[each].bytes for each in share) // total) or 1,
                files=job.files(splits, share),
                **more,
                **{
                    name: [all_[each] for each in share] for name, all_ in (of_splits or {}).items()
                },
            )
            for node, share in shares.items()
        }
        done: set[int] = set()
        results = job.run_step(step, requests)
        raise_refusal(results)
        for node, result in results.items():
            if result.value is not None:
                sampled.append(result.value.sampled)
                done.update(shares[node])
            else:
                job.refuse_changed(node, result)
                job.lost[node] = result.reason
                job.pool.lose(node, result.reason)
        left = [number for number in left if number not in done]
    return sampled


def _resume(job: JobRun, nodes: Mapping[str, messages.NodeInventory]) -> None:
    everybody = tuple(sorted({*job.plan["weights"], *nodes}))
    splits = [
        replace(split, holders=everybody) if is_url(split.path) else split
        for split in job.spec.splits(job.holders)
    ]
    schedule = job.schedule = _schedule(job, splits)
    job.dir.append({"event": "command"})
    new_owners: dict[int, tuple[str, Sequence[Finished]]] = {}
    for event in job.dir.events:
        try:
            replay(schedule, event)
        except (LookupError, AssertionError, ValueError) as why:
            raise core.UsageError(
                "rounds.json and plan.json are of different jobs; use another directory",
                setting="job_dir",
            ) from why
        if event["event"] == "lost":
            new_owners |= new_owners_from_json(event)
            job.lost.pop(event["node"], None)
            if not event["joins"]:
                job.lost[event["node"]] = event["why"]
    for node, inventory in nodes.items():
        _note_finished(job, node, inventory)
    job.vanished = {
        file.path
        for files in schedule.finished.values()
        for file in files
        if is_url(file.path) and job.stored.get(file.path) != file.total.bytes
    }
    # The command may have ended before they had.
    job.adopt_copies(
        {
            place: (node, files)
            for place, (node, files) in new_owners.items()
            if node in nodes
            and schedule.owner[place] == node
            and schedule.finished.get(place) == files
        }
    )
    for node in sorted(schedule.readers | {*nodes}):
        if node not in nodes:
            if node in schedule.readers or node in schedule.keepers:
                job.lose(node, job.why_lost(node))
            continue
        intact = job.intact_files(node)
        rounds = {*schedule.scratch.get(node, ())}  # A node that is new has none.
        has_all = rounds <= {*nodes[node].rounds} and len(intact) == len(job.files_of(node))
        if node not in schedule.keepers or not has_all:
            job.lose(node, "had lost its data", joins=True, intact=intact)
    for node in sorted(job.lost):
        job.find_surviving_reader(node)


def _note_finished(job: JobRun, node: str, inventory: messages.NodeInventory) -> None:
    """Notes what a node has finished, if its input is as it was."""
    files = {*inventory.files}
    for each, holders in job.holders.items():
        if node in holders and each not in files and not is_url(each.path):
            raise FatalJobError(
                f"input {each.path} on {node} has changed since the job began; start again with "
                "another job directory"
            )
    for file in inventory.finished:
        # A part without rows has no object.
        if not is_url(file.path) or job.stored.get(file.path, 0) == file.bytes:
            job.note_finished(node, file)


def _schedule(job: JobRun, splits: Sequence[Split]) -> Schedule:
    copies = job.spec.durability == "replicated"
    return Schedule(splits, job.plan["partitions"], job.plan["weights"], copies=copies)
