"""Why a plan has no candidate: which limits are not kept, by how much, and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tonnage.base import formatting
from tonnage.base.records.job import START_UP
from tonnage.base.records.plan import UNKNOWN, WITHOUT_CORES, Candidate, Plan
from tonnage.cli.options.types import MAX_NODES
from tonnage.cli.output.candidates import candidate_text, usd
from tonnage.model.past_runs.choice import IN_TIME
from tonnage.plan.past_runs.clusters import FARTHEST, STEP

DEADLINE, BUDGET = "--deadline", "--budget"
NO_SLOWER = "is no slower than today's cluster"


def common_reason(plan: Plan) -> tuple[str, int]:
    """Why most offers are excluded, and how many are."""
    # Without the figure of each offer: "too slow: at least 81 s".
    reasons = Counter(each.why.partition(": ")[0] for each in plan.excluded)
    return (reasons.most_common(1) or [("no offer matches", 0)])[0]


def why_no_candidate(plan: Plan, no_slower: bool = False) -> str:
    """One line. ``no_slower``: the deadline is only what the job takes on today's cluster."""
    near, most = plan.nearest, plan.settings["most_nodes"]
    if near is None:
        return _no_usable_offer(plan)
    if near.nodes > 1 and not plan.job.divisible:
        return (
            f"no machine holds the job's data alone ({candidate_text(near)} would), and the job is "
            "not known to divide; add --divisible if machines can share its input"
        )
    if near.nodes > MAX_NODES:
        return (
            f"the job would need {formatting.count(near.nodes)} x {near.offer}; the maximum is "
            f"{formatting.count(MAX_NODES)} nodes; reduce --data"
        )
    if near.nodes > most:
        missed = f"meets {_node_limit(plan)}"
    else:
        missed = " and ".join(_missed_limits(plan, near, no_slower)) + _size_limits(plan, near)
    return (
        f"no offer {missed}; nearest: {candidate_text(near)}, "
        f"{formatting.duration(near.seconds.median)}, {usd(near.cost_usd.median)}"
        f"{'' if plan.demands_known else f' {WITHOUT_CORES}'}{''.join(_hints(plan, near))}"
    )


def _no_usable_offer(plan: Plan) -> str:
    why, count = common_reason(plan)
    hint = "; --survey shows which offers to measure" if plan.survey else ""
    if "object storage" in why:
        hint = "; for data on the nodes' own disks, use --from local"
    return (
        f"no offer is usable. Most common reason: {why} ({count} of "
        f"{formatting.several(len(plan.excluded), 'offer')}){hint}"
    )


def _missed_limits(plan: Plan, near: Candidate, no_slower: bool) -> Iterator[str]:
    deadline, budget = plan.settings["deadline_seconds"], plan.settings["budget_usd"]
    is_late = deadline is not None and _is_late(near, deadline)
    is_dear = budget is not None and near.cost_usd.median > budget
    neither = not is_late and not is_dear
    sure = f" (with {formatting.percent(IN_TIME)} probability)" if _is_of_past_runs(near) else ""
    flags = []
    if deadline is not None and (is_late or neither):
        if no_slower:
            yield f"{NO_SLOWER}{sure}"
        else:
            flags.append(f"{DEADLINE}{sure}")
    if budget is not None and (is_dear or neither):
        flags.append(BUDGET)
    if flags:
        yield f"meets {' and '.join(flags)}"


def _is_late(near: Candidate, deadline: float) -> bool:
    if _is_of_past_runs(near):
        return (near.deadline_probability or 0.0) < IN_TIME
    return near.seconds.median > deadline


def _is_of_past_runs(candidate: Candidate) -> bool:
    return all(each.bottleneck == UNKNOWN for each in candidate.phases)


def _node_limit(plan: Plan) -> str:
    most = plan.settings["most_nodes"]
    exactly = plan.settings["least_nodes"] == most > 1
    return f"{'--nodes' if exactly else '--max-nodes'} {most}"


def _size_limits(plan: Plan, near: Candidate) -> str:
    """The limits of a cluster's size, as far as they matter."""
    quota = plan.settings.get("quota_vcpus")
    limits = [] if _is_cut_by_runs(plan, near) else [_node_limit(plan)]
    limits += [f"--quota-vcpus {quota}"] if quota else []
    return f" with {' and '.join(limits)}" if limits else ""


def _is_cut_by_runs(plan: Plan, near: Candidate) -> bool:
    """Whether more nodes are allowed, but none of its runs tells what they would do."""
    return _is_of_past_runs(near) and near.nodes * STEP <= plan.settings["most_nodes"]


def _hints(plan: Plan, near: Candidate) -> Iterator[str]:
    deadline = plan.settings["deadline_seconds"]
    if deadline is None:
        return
    if _is_of_past_runs(near) and near.deadline_probability is not None:
        yield f", in time with {formatting.percent(near.deadline_probability)}"
        if _is_cut_by_runs(plan, near):
            yield f"; more than {FARTHEST:g} times the vCPUs of the runs are not planned"
    start = sum(each.seconds for each in near.phases if each.name == START_UP)
    if start >= deadline:
        yield (
            f"; the start of its machines alone takes {formatting.duration(start)} (--startup 0 "
            "for machines that stay up)"
        )
