"""A plan on the terminal: the best candidates, what limits them, and what to measure next."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from tonnage.base import formatting
from tonnage.base.records.job import START_UP
from tonnage.base.records.plan import (
    NO_CORES,
    UNKNOWN,
    WITHOUT_CORES,
    ExplainedTerm,
    Explanation,
    Plan,
    PlannedPhase,
    SpaceFit,
)
from tonnage.cli.output.candidates import (
    MEETS,
    NO_SLOWER,
    aligned_table,
    candidate_text,
    cost_lines,
    numbered_lines,
    print_candidates,
    print_table_or_lines,
    seconds_range,
    usd,
    usd_range,
)
from tonnage.cli.output.planning.current_cluster import current_cluster_lines
from tonnage.cli.output.planning.no_candidate import common_reason
from tonnage.plan.calibration import describe
from tonnage.plan.candidates import best_of_families
from tonnage.plan.recommendations.next_measurements import within_budget

REQUESTS = "requests"
"""How the names of resources end that are counted, not measured in bytes."""
SECONDS_OF = {"cpu": "core", "task wait": "slot", "longest task": "core", "warm-up": "core"}
"""Resources that are demanded in seconds, and of what."""
BEST = 10
MANY = 3
"""As many phases in a row with one bottleneck are printed as a range."""


def print_plan(plan: Plan, every: bool, no_slower: bool = False) -> None:
    """``no_slower``: the deadline is only what the job takes on today's cluster."""
    shown = best_of_families(plan.candidates, len(plan.candidates) if every else BEST)
    for note in plan.notes:
        print(formatting.sentence(note))
    if plan.without_cores_as_asked:
        shown = [
            (number, structs.replace(each, deadline_probability=None)) for number, each in shown
        ]
    print_candidates(
        shown,
        plan.demands_known or plan.without_cores_as_asked,
        in_time=NO_SLOWER if no_slower else MEETS,
    )
    best = plan.candidates[0]
    lines = list(current_cluster_lines(plan))
    without = "" if plan.demands_known else f", {WITHOUT_CORES}"
    lines.append(f"Cost of {best.offer}{without}: {cost_lines(best.costs)}.")
    if any(phase.bottleneck != UNKNOWN for phase in best.phases):
        lines.append(f"Bottlenecks of {best.offer}: {_bottlenecks(best.phases)}.")
        lines.append(f"{best.offer}: {formatting.sentence(describe(best.calibrated))}")
    lines += [f"{best.offer}: {formatting.sentence(note)}" for note in best.notes]
    if plan.sure and plan.demands_known:
        lines.append(
            f"To {'be no slower' if no_slower else 'meet the deadline'} with 95 % probability: "
            f"{candidate_text(plan.sure)}, "
            f"{usd(plan.sure.cost_usd.median)}."
        )
    elif plan.settings["deadline_seconds"] is not None and plan.demands_known and not no_slower:
        lines.append(
            "No candidate meets the deadline with 95 % probability; use a longer --deadline."
        )
    left = len(plan.candidates) - len(shown)
    more = f"{formatting.several(left, 'more candidate')} (see --all); " if left else ""
    were = "was" if len(plan.excluded) == 1 else "were"
    why = f" (most common reason: {common_reason(plan)[0]})" if plan.excluded else ""
    lines.append(f"{more}{formatting.several(len(plan.excluded), 'offer')} {were} excluded{why}.")
    if plan.survey:
        first = plan.survey[0]
        lines.append(
            f"{formatting.several(len(plan.survey), 'unmeasured offer')} could turn out better, "
            f"like {first.offer} ({usd(first.usd_to_measure)} to measure). To list them: tonnage "
            "plan ... --survey --budget 50USD"
        )
    print("\n".join(lines))


def _bottlenecks(phases: Sequence[PlannedPhase]) -> str:
    """The bottleneck of each phase; several phases in a row with the same one as a range."""
    parts = []
    for bottleneck, some in itertools.groupby(phases, key=lambda phase: phase.bottleneck):
        names = [phase.name for phase in some]
        if len(names) >= MANY:
            names = [f"{names[0]} to {names[-1]}"]
        parts.append(f"{bottleneck} ({', '.join(names)})")
    return ", ".join(parts)


def print_survey(plan: Plan, budget: float | None, as_json: bool) -> None:
    rows = within_budget(plan, budget)
    if as_json:
        print(json.dumps(plan.to_json() | {"survey": rows}))
        return
    if not rows:
        within = " within the budget" if budget is not None else ""
        print(f"Nothing to measure: no unmeasured offer could turn out better{within}.")
        return
    right = ("nodes", "required", "as fast", "to measure")
    cells = [
        [
            row["offer"],
            row["layout"],
            str(row["nodes"]),
            formatting.rate(least) if (least := row["least_bytes_per_second"]) else "any",
            "?" if row["share_of_known"] is None else formatting.percent(row["share_of_known"]),
            usd(row["usd_to_measure"]),
        ]
        for row in rows
    ]
    lines = (
        line for number, row in enumerate(cells, start=1) for line in _survey_lines(number, row)
    )
    print_table_or_lines(aligned_table(["offer", "layout", *right], right, cells), lines)
    total = sum(row["usd_to_measure"] for row in rows)
    print(
        f"Cost of {formatting.several(len(rows), 'screening')} (two nodes, ten minutes each): "
        f"{usd(total)}."
    )
    print(f"As fast: {rows[0]['rule']}; ? if no such disks are known.")
    profiles = "".join(f"--profile {name} " for name in plan.profiles)
    print(
        "On each node, run tonnage measure disk --dir DIR... --output results/NODE, then plan "
        f"again with {profiles}--profile results. If results do not state the machine type, see "
        "tonnage profile --help."
    )


def _survey_lines(number: int, cells: Sequence[str]) -> Iterator[str]:
    offer, layout, nodes, required, share, cost = cells
    parts = [f"required {required}", f"as fast {share}", f"{cost} to measure"]
    yield from numbered_lines(number, f"{nodes} x {offer} ({layout})", parts)


def explanation_lines(explanation: Explanation) -> list[str]:
    best = explanation.candidate
    lines = [
        f"{candidate_text(best)}, {formatting.size(explanation.bytes)}",
        "",
        "Time: demand / nodes / capacity of the slowest node. Terms for the same resource or limit",
        "are added; a phase takes as long as its slowest resource, plus fixed times.",
    ]
    for phase in best.phases:
        lines.append(
            f"  {phase.name}: {formatting.seconds(phase.seconds)}, limited by {phase.bottleneck}"
        )
        for term in explanation.terms:
            if term.phase != phase.name:
                continue
            lines.append(
                f"    {term.limit and f'{term.limit}, '}{term.resource}: "
                f"{_division(term, best.nodes)} = {formatting.seconds(term.seconds)}"
            )
            lines.append(f"      demand: {term.demand_source}")
            lines.append(f"      capacity, {term.evidence}: {term.capacity_source}")
            low, high = term.low_capacity, term.high_capacity
            lines.append(
                f"      90 %: {_rate(term, low)} to {_rate(term, high)}, {term.spread_source}"
            )
    lines += ["", "Cost"]
    lines += [f"  {price}" for price in explanation.prices]
    known = explanation.demands_known
    lines.append(
        f"  {usd_range(best.cost_usd, known)} for {seconds_range(best.seconds, known)}"
        f"{'' if known else f': {NO_CORES}'}"
    )
    lines.append(f"  {'' if known else f'{WITHOUT_CORES}: '}{cost_lines(best.costs)}")
    lines.append("")
    lines.append(f"Disk space: {_fit(best.capacity, formatting.size)}")
    if best.memory:
        lines.append(f"Memory for data: {_fit(best.memory, formatting.memory)}")
    lines.append(formatting.sentence(describe(best.calibrated)))
    lines += [formatting.sentence(note) for note in best.notes]
    return lines


def _fit(space: SpaceFit, text: Callable[[int], str]) -> str:
    return f"{text(space.needed_bytes)} needed, {text(space.have_bytes)} available"


def _division(term: ExplainedTerm, nodes: int) -> str:
    if term.phase == START_UP:
        return f"the slowest of {formatting.several(nodes, 'machine')}"
    amount, rate = _amount(term.resource, term.demand), _rate(term, term.capacity)
    return f"{amount} / {nodes} / {rate}"


def _amount(resource: str, value: float) -> str:
    if resource.endswith(REQUESTS):
        return f"{formatting.count(round(value))} requests"
    if resource in SECONDS_OF:
        return f"{value:.4g} {SECONDS_OF[resource]} s"
    return formatting.size(value)


def _rate(term: ExplainedTerm, value: float) -> str:
    resource = term.resource
    if term.phase == START_UP:
        return formatting.seconds(1 / value)
    if resource.endswith(REQUESTS):
        return f"{formatting.count(round(value))}/s"
    if resource in SECONDS_OF:
        return f"{value:.3g} {SECONDS_OF[resource]}s"
    return formatting.rate(value)
