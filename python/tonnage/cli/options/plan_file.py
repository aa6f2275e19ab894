"""``--plan`` of ``tonnage run JOB --cluster``: what a plan decides, and if the cluster fits it.

A plan decides how many nodes of which machine type run the job, and its durability. Paths and
memory stay the command's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tonnage.base import core, formatting
from tonnage.base.records import RecordError
from tonnage.base.records.durability import Durability
from tonnage.base.records.environment import MACHINE_TYPE, PROVIDER
from tonnage.base.records.plan import Candidate, Plan
from tonnage.cli.options.cluster import JobOptions
from tonnage.cli.options.types import MAX_NODES
from tonnage.cli.options.validate import usage_errors


@dataclass(frozen=True)
class SelectedPlan:
    """A plan, and the candidate that a run follows."""

    path: Path
    plan: Plan
    candidate: Candidate

    @property
    def nodes(self) -> int:
        return self.candidate.nodes

    @property
    def durability(self) -> Durability:
        return self.plan.job.durability

    @property
    def on_objects(self) -> bool:
        """Whether the output was planned to be in object storage."""
        return self.plan.job.output_location == "objects"

    @property
    def summary(self) -> str:
        each = self.candidate
        return (
            f"{each.nodes} x {each.offer} ({each.layout}), {formatting.size(self.plan.bytes)} in "
            f"{self._seconds}"
        )

    @property
    def _seconds(self) -> str:
        seconds = self.candidate.seconds
        if not self.plan.demands_known:
            return f"at least {formatting.seconds(seconds.low)}"
        between = formatting.seconds_between(seconds.low, seconds.high)
        return f"{formatting.seconds(seconds.median)} ({between})"


def selected_plan(
    job: str, options: JobOptions, durability: str | None = None
) -> SelectedPlan | None:
    """The plan that the options give, which no other option contradicts; ``None`` without one."""
    if options.plan is None:
        if options.candidate is None:
            return None
        raise core.UsageError(f"--candidate {options.candidate} needs --plan; add --plan FILE")
    flag = f"--plan {options.plan}"
    selected = SelectedPlan(
        options.plan, *select_candidate(flag, options.plan, options.candidate, job)
    )
    nodes = selected.nodes
    if options.nodes not in (None, nodes):
        raise core.UsageError(
            f"--nodes {options.nodes} conflicts with {flag}, which uses "
            f"{formatting.several(nodes, 'node')}; remove one of them"
        )
    if durability not in (None, selected.durability):
        raise core.UsageError(
            f"--durability {durability} conflicts with {flag}, which uses {selected.durability}; "
            "remove one of them"
        )
    return selected


def select_candidate(
    flag: str, path: Path, number: int | None, job: str | None = None
) -> tuple[Plan, Candidate]:
    """The plan at ``path``, and its ``number``-th candidate; the best without a number."""
    hint = f"use the output of tonnage plan {job or 'JOB'} --json"
    named = flag.replace(f" {path}", "")  # An error of the record names the path.
    with (
        usage_errors(OSError, prefix=f"{flag}: "),
        usage_errors(RecordError, prefix=f"{named} ", hint=f"; {hint}"),
    ):
        plan = Plan.read(path)
    if job not in (None, plan.job.name):
        raise core.UsageError(f"{flag} is a plan for {plan.job.name}; {hint}")
    if not plan.candidates:
        raise core.UsageError(f"{flag} has no candidates; plan again with looser limits")
    if (number or 1) > len(plan.candidates):
        raise core.UsageError(
            f"--candidate {number} does not exist; {flag} has "
            f"{formatting.several(len(plan.candidates), 'candidate')}"
        )
    candidate = plan.candidates[(number or 1) - 1]
    if candidate.nodes > MAX_NODES:
        raise core.UsageError(
            f"{flag}: $.candidates[{(number or 1) - 1}].nodes: expected int <= {MAX_NODES}, got "
            f"{candidate.nodes}; {hint}"
        )
    return plan, candidate


def planned_durability(
    selected: SelectedPlan | None, durability: str | None, urls: Sequence[str]
) -> str | None:
    """The durability of a run: the flag's, else the plan's; ``None`` leaves it to the output."""
    if durability is not None or selected is None or selected.durability == "none":
        return durability
    if urls:
        raise core.UsageError(
            f"--plan {selected.path} uses durability {selected.durability}, but --output "
            f"{urls[0]} is in object storage; plan with --to objects, or use directories for "
            "--output"
        )
    return selected.durability


def refuse_other_cluster(
    selected: SelectedPlan, nodes: Sequence[tuple[str, Mapping[str, str]]]
) -> str | None:
    """Refuses a cluster that is not the planned one; returns a note of what it could not check."""
    candidate, flag = selected.candidate, f"--plan {selected.path}"
    if len(nodes) < candidate.nodes:
        raise core.UsageError(
            f"{flag} needs {formatting.several(candidate.nodes, 'node')}, but the cluster has "
            f"{len(nodes)}; start more nodes, or plan with --nodes {len(nodes)}"
        )
    unlabelled = []
    wanted = {PROVIDER: candidate.provider, MACHINE_TYPE: candidate.offer}
    for name, labels in nodes[: candidate.nodes]:
        for label, planned in wanted.items():
            if labels.get(label, planned) != planned:
                raise core.UsageError(
                    f"{flag} is for {candidate.provider}/{candidate.offer}, but {name} is "
                    f"labelled {label}={labels[label]}; start nodes of the planned type, or plan "
                    "again for this type"
                )
        if MACHINE_TYPE not in labels:
            unlabelled.append(name)
    if not unlabelled:
        return None
    have, are = ("has", "it is") if len(unlabelled) == 1 else ("have", "they are")
    return (
        f"{formatting.listing(unlabelled)} {have} no {MACHINE_TYPE} label, so it is unknown "
        f"whether {are} {candidate.offer}, as planned"
    )
