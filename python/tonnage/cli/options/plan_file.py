"""``--plan`` of ``tonnage run JOB --cluster``: what a plan decides, and whether this is its fleet.

A plan says how many machines, of which type, and what is promised of the output. Where things lie
on them the paths say, and memory no plan has decided yet: both are the command's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tonnage.base import core, formatting
from tonnage.base.records import RecordError
from tonnage.base.records.environment import MACHINE_TYPE, PROVIDER
from tonnage.base.records.plan import Candidate, Plan

PROMISES = {"none": "none", "replicated": "replicated", "volumes": "none"}
"""What a job promises by itself where a plan does: volumes keep what is on them."""


@dataclass(frozen=True)
class Followed:
    """A plan, and the candidate of it that a run follows."""

    path: Path
    plan: Plan
    candidate: Candidate

    @property
    def nodes(self) -> int:
        """How many machines do it."""
        return self.candidate.nodes

    @property
    def durability(self) -> str:
        """What the run promises of its output."""
        return PROMISES[str(self.plan.job.settings.get("durability", "none"))]

    @property
    def on_objects(self) -> bool:
        """Whether input and output were planned to be objects in a store."""
        return bool(self.plan.job.settings.get("objects"))

    @property
    def said(self) -> str:
        """The candidate, and what is planned of it."""
        each = self.candidate
        return (
            f"{each.nodes} x {each.offer} ({each.layout}), {formatting.size(self.plan.bytes)} in "
            f"{formatting.seconds(each.seconds.median)} "
            f"({formatting.seconds_between(each.seconds.low, each.seconds.high)})"
        )


def follow(
    job: str, path: Path | None, number: int | None, instances: int | None, durability: str | None
) -> Followed | None:
    """The plan at ``path``, which flags do not contradict; ``None`` if none was given.

    Args:
        job: Whose plan it has to be: sort, mapreduce or reduce.
        path: What ``tonnage plan JOB --json`` printed.
        number: Which of its candidates, from 1; ``None`` for the best.
        instances: ``--nodes``, if it was given.
        durability: ``--durability``, if it was given.

    Raises:
        UsageError: It is no plan of this job, or a flag says otherwise than it does.
    """
    if path is None:
        if number is None:
            return None
        raise core.UsageError(f"--candidate {number}: it is one of a plan's: give --plan too")
    flag = f"--plan {path}"
    plan, chosen = chosen_of(flag, path, number, job)
    found = Followed(path, plan, chosen)
    nodes = found.nodes
    if instances not in (None, nodes):
        raise core.UsageError(
            f"--nodes {instances}: {flag} is of {formatting.several(nodes, 'node')}: give one of "
            "the two"
        )
    planned = str(plan.job.settings.get("durability", found.durability))
    if durability not in (None, planned, found.durability):
        raise core.UsageError(
            f"--durability {durability}: {flag} is of {planned}: give one of the two"
        )
    return found


def chosen_of(
    flag: str, path: Path, number: int | None, job: str | None = None
) -> tuple[Plan, Candidate]:
    """The plan at ``path``, and its ``number``-th candidate, from 1; ``None`` for the best.

    Args:
        flag: What gave it.
        path: What ``tonnage plan JOB --json`` printed.
        number: Which candidate.
        job: Whose plan it has to be; ``None``: anyone's.

    Raises:
        UsageError: It is no plan, not of this job, or has no such candidate.
    """
    wants = f"give what tonnage plan {job or 'JOB'} --json printed"
    try:
        plan = Plan.read(path)
    except RecordError as why:
        raise core.UsageError(f"{flag}: {why}: {wants}") from None
    except OSError as why:
        raise core.UsageError(f"{flag}: {why.strerror}") from None
    if job not in (None, plan.job.name):
        raise core.UsageError(f"{flag}: it is of {plan.job.name}: {wants}")
    if not plan.candidates:
        raise core.UsageError(f"{flag}: it has no candidate: plan with other limits")
    wanted = number or 1
    if wanted > len(plan.candidates):
        raise core.UsageError(
            f"--candidate {wanted}: {flag} has {formatting.several(len(plan.candidates), 'candidate')}"
        )
    return plan, plan.candidates[wanted - 1]


def durability_of(
    followed: Followed | None, durability: str | None, folders: Sequence[str]
) -> str | None:
    """What is asked to be promised of an output: by the flag, else by the plan, if there is one.

    Where a plan promises nothing it is left to the output: what goes to object storage is kept.

    Raises:
        UsageError: The plan is of copies, and the output goes to object storage.
    """
    if durability is not None or followed is None or followed.durability == "none":
        return durability
    if folders:
        raise core.UsageError(
            f"--plan {followed.path}: it is of {followed.durability}, and --output {folders[0]} is "
            "in object storage: plan with --objects, or give --output directories"
        )
    return followed.durability


def refuse_other_fleet(
    followed: Followed, machines: Sequence[tuple[str, Mapping[str, str]]]
) -> str | None:
    """Refuses a fleet that is not the planned one; gives what is not known of it, if anything.

    Args:
        followed: The plan.
        machines: Names and labels, in the order in which they are taken.
    """
    candidate, flag = followed.candidate, f"--plan {followed.path}"
    if len(machines) < candidate.nodes:
        raise core.UsageError(
            f"{flag} is of {formatting.several(candidate.nodes, 'node')}, and the fleet has "
            f"{formatting.several(len(machines), 'machine')}: start more, or plan with "
            f"--nodes {len(machines)}"
        )
    silent = []
    wanted = {PROVIDER: candidate.provider, MACHINE_TYPE: candidate.offer}
    for name, labels in machines[: candidate.nodes]:
        for label, planned in wanted.items():
            if labels.get(label, planned) != planned:
                raise core.UsageError(
                    f"{flag} is of {candidate.provider}/{candidate.offer}, and {name} is labelled "
                    f"{label}={labels[label]}: start machines as planned, or plan with these"
                )
        if MACHINE_TYPE not in labels:
            silent.append(name)
    if not silent:
        return None
    return (
        f"whether {formatting.listing(silent)} {'is' if len(silent) == 1 else 'are'} "
        f"{candidate.offer}, as planned, no label tells"
    )
