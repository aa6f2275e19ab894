"""How a job on a fleet begins, or goes on: what each node has, and the schedule that follows.

Nothing is decided before every node was looked at: a node that cannot take part may be the only one
that has a part of the input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tonnage.base import core
from tonnage.cluster.step_worker import DISK, FAILED, FULL, REFUSED, StepResult
from tonnage.cluster.worker_pool import LOST, first_failure, raise_refusal
from tonnage.run.storage.object_store import is_url, split_url
from tonnage.run.two_pass import admission
from tonnage.run.two_pass.job_dir import (
    FatalJobError,
    holders_from_json,
    holders_to_json,
    new_owners_from_json,
    replay,
)
from tonnage.run.two_pass.job_spec import NODE_PLACEHOLDER, REPLICATED
from tonnage.run.two_pass.job_state import JobRun
from tonnage.run.two_pass.schedule import Finished, Schedule, Split
from tonnage.run.two_pass.splits import find_holders
from tonnage.run.two_pass.worker import NodeInventory


def begin(job: JobRun) -> None:
    """Makes the job's schedule.

    Raises:
        UsageError: A node, or the input, cannot be used.
        Over: The input is not what it was when the job began.
        Unreadable: A part of the input cannot be read any more.
    """
    looks = _looked(job)
    _reached(job, looks)
    if job.dir.plan is None:
        _plan(job, looks)
    else:
        _go_on(job, looks)


def _looked(job: JobRun) -> dict[str, NodeInventory]:
    """What is on each node, all of which can be used."""
    _by_all(job, "prepare", None)
    ended = _by_all(job, "look", None)
    looks: dict[str, NodeInventory] = {
        node: each.value for node, each in ended.items() if each.value
    }
    for node, look in looks.items():
        if others := {each: where for each, where in look.others.items() if each != node}:
            other, where = next(iter(others.items()))
            raise core.UsageError(
                f"{where} is one directory on {node} and {other}: write {NODE_PLACEHOLDER} in its path"
            )
    job.workers = {node: look.workers for node, look in looks.items()}
    return looks


def _by_all(job: JobRun, step: str, asked: Any) -> dict[str, StepResult]:
    """Has all nodes do a step, without which none takes part."""
    crew, fresh = job.pool, job.dir.plan is None
    ended = job.run_step(step, dict.fromkeys(crew.workers if fresh else crew.nodes, asked))
    raise_refusal(ended, REFUSED)
    if fresh and (found := first_failure(ended, LOST, DISK, FULL, FAILED)):
        node, why = found
        raise core.UsageError(
            f"{node} {why.reason}: mend it, or take it out of the cluster, before its input is missed"
        )
    for node in ended:
        if ended[node].kind is not None:
            crew.lose(node, ended[node].reason)
    return ended


def _reached(job: JobRun, looks: Mapping[str, NodeInventory]) -> None:
    """Has one node look at what is in object storage, and all show that they are let in there."""
    asked, plan = job.asked, job.dir.plan
    if plan is not None:
        job.holders = holders_from_json(plan)
    elif asked.input_urls:
        nodes = tuple(sorted(looks))
        job.holders = dict.fromkeys(job.run_on_one("find", asked.input_urls)["objects"], nodes)
    of_buckets = {split_url(each.path)[0]: each.path for each in job.holders if is_url(each.path)}
    wanted = list(of_buckets.values())
    if asked.output_url is not None:
        claimed = job.run_on_one("claim", None)
        job.stored = claimed["there"]
        wanted.append(claimed["marker"])
    if wanted:
        _by_all(job, "reach", wanted)


def _plan(job: JobRun, looks: Mapping[str, NodeInventory]) -> None:
    asked = job.asked
    admission.refuse_absent(asked.inputs, {node: look.absent for node, look in looks.items()})
    admission.refuse_parts({node: look for node, look in looks.items()})
    weights = admission.weights(sorted(looks), asked.weights)
    job.holders = find_holders({node: look.files for node, look in looks.items()}) | job.holders
    splits = asked.splits(job.holders)
    if asked.durability == REPLICATED and len(looks) < 2:
        raise core.UsageError(
            "--durability replicated: a copy takes a second machine, and there is one: add some"
        )
    asked.check_space(looks, weights, sum(split.bytes for split in splits))
    plan = holders_to_json(job.holders) | asked.partitioning(job, splits) | {"weights": weights}
    job.dir.begin(plan)
    job.schedule = _schedule(job, splits)
    for node, why in list(job.lost.items()):
        job.lose(node, why)


def _go_on(job: JobRun, looks: Mapping[str, NodeInventory]) -> None:
    """Takes up what an earlier command left: what is on file, as far as nodes still have it."""
    plan = job.dir.plan
    assert plan is not None
    everybody = tuple(sorted({*plan["weights"], *looks}))
    splits = [
        replace(split, holders=everybody) if is_url(split.path) else split
        for split in job.asked.splits(job.holders)
    ]
    schedule = job.schedule = _schedule(job, splits)
    job.dir.append({"event": "command"})
    heirs: dict[int, tuple[str, Sequence[Finished]]] = {}
    for event in job.dir.events:
        try:
            replay(schedule, event)
        except (LookupError, AssertionError, ValueError) as why:
            raise core.UsageError(
                "rounds.json is not of the job that plan.json says: give another directory",
                setting="job_dir",
            ) from why
        if event["event"] == "lost":
            heirs |= new_owners_from_json(event)
            job.lost.pop(event["node"], None)
            if not event["joins"]:
                job.lost[event["node"]] = event["why"]
    for node, look in looks.items():
        there = set(look.files)
        for each, nodes in job.holders.items():
            if node in nodes and each not in there and not is_url(each.path):
                raise FatalJobError(
                    f"input {each.path} on {node} is not what it was when the job began: "
                    "begin again with another --job-dir"
                )
        for line in look.finished:
            # Of nothing there is no object.
            if not is_url(line["path"]) or job.stored.get(line["path"], 0) == line["bytes"]:
                job.finish(node, line)
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
            for place, (node, files) in heirs.items()
            if node in looks
            and schedule.owner[place] == node
            and schedule.finished.get(place) == files
        }
    )
    for node in sorted(schedule.readers | set(looks)):
        if node not in looks:
            if node in schedule.readers or node in schedule.keepers:
                job.lose(node, job.why_gone(node))
            continue
        still = job.intact_files(node)
        rounds = {*schedule.scratch.get(node, ())}  # A spare has none.
        has_all = rounds <= {*looks[node].rounds} and len(still) == len(job.files_of(node))
        if node not in schedule.keepers or not has_all:
            job.lose(node, "had lost what it held", joins=True, there=still)
    for node in sorted(job.lost):
        job.find_surviving_reader(node)


def _schedule(job: JobRun, splits: Sequence[Split]) -> Schedule:
    plan = job.dir.plan
    assert plan is not None
    copies = job.asked.durability == REPLICATED
    return Schedule(splits, plan["partitions"], plan["weights"], copies=copies)
