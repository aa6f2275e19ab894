"""The plans of docs/concepts/planned-examples.md, and the arithmetic that the page shows of each.

After each command of the page stands, as `text`, what this module makes of the command's JSON: the
answer, its limiting resource phase by phase, the bill, and what else was possible. When catalogs
change, this writes the page again:

    PYTHONPATH=tests .venv/bin/python -m support.cli.planned_examples
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isclose

from typer.testing import CliRunner

from support.stores.disk import ROOT
from tonnage.base import formatting
from tonnage.base.records.job import START_UP
from tonnage.base.records.plan import Candidate, ExplainedTerm, Explanation, Plan, PlannedPhase
from tonnage.cli.commands import app
from tonnage.cli.output.candidates import candidate_text, cost_lines, seconds_range, usd, usd_range
from tonnage.plan.demand import RESOURCE_CLASSES

PAGE = ROOT / "docs" / "concepts" / "planned-examples.md"
EXAMPLE = re.compile(r"^    tonnage plan ([^\n]+)\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_ASKED_OF_OTHERS = ("--deadline", "--nodes", "--max-nodes")
MANY_PHASES = 5
ROUNDING = 1e-6


@dataclass(frozen=True)
class Example:
    """A command of the page without its first two words, and what stands below it."""

    arguments: str
    shown: str

    def __str__(self) -> str:
        return self.arguments


def examples() -> list[Example]:
    return [Example(*found) for found in EXAMPLE.findall(PAGE.read_text())]


def arithmetic(arguments: str) -> str:
    """What the page shows of a command."""
    asked = shlex.split(arguments)
    if "--explain" in asked:
        explained = Explanation.from_json(_answer(asked))
        return "".join(f"{line}\n" for line in _argued(explained))
    made = Plan.from_json(_answer(asked))
    return "".join(f"{line}\n" for line in _lines(made, asked))


def _lines(made: Plan, asked: Sequence[str]) -> Iterator[str]:
    best = made.candidates[0]
    offer = f"{best.provider}/{best.offer}"
    explained = Explanation.from_json(_answer([*asked, "--explain", offer]))
    assert explained.candidate.layout == best.layout and explained.candidate.nodes == best.nodes
    yield from _argued(explained)
    others = [each for each in made.candidates if each.own_disks != best.own_disks]
    if others and (best.own_disks or best.volumes):
        where = "on volumes" if best.own_disks else "on own disks"
        yield f"  {where}: {_compared(others[0], best)}"
    for name, nodes in (("half", best.nodes // 2), ("twice", 2 * best.nodes)):
        if nodes and "--nodes" not in asked:
            yield f"  {name} the nodes: {_with_nodes(asked, offer, nodes, best)}"


def _argued(explained: Explanation) -> Iterator[str]:
    """The answer, its phases and its bill."""
    best = explained.candidate
    yield _summary(best)
    phases = best.phases
    for phase in phases if len(phases) <= MANY_PHASES else phases[:2]:
        yield f"  {_phase(phase, [each for each in explained.terms if each.phase == phase.name])}"
    if len(phases) > MANY_PHASES:
        rest = sum(each.seconds for each in phases[2:])
        yield f"  and {len(phases) - 2} more phases, {_seconds(rest)}"
    yield f"  bill: {cost_lines(best.costs)}"


def _phase(phase: PlannedPhase, terms: Sequence[ExplainedTerm]) -> str:
    if phase.name == START_UP:
        steps = ", ".join(f"{each.resource} {_seconds(each.seconds)}" for each in terms)
        return f"{phase.name} {_seconds(phase.seconds)}: {steps}"
    by_class: dict[str, list[ExplainedTerm]] = {}
    for each in terms:
        by_class.setdefault(each.limit or _class_of(each.resource), []).append(each)
    seconds = {name: sum(each.seconds for each in some) for name, some in by_class.items()}
    assert isclose(seconds.pop(phase.bottleneck), phase.seconds, rel_tol=ROUNDING), phase
    assert max(seconds.values(), default=0.0) <= phase.seconds * (1 + ROUNDING), phase
    limiting = by_class[phase.bottleneck]
    divided = " + ".join(f"{each.resource} {_division(each)}" for each in limiting)
    line = f"{phase.name} {_seconds(phase.seconds)}: {divided}"
    if seconds:
        following = max(seconds, key=lambda name: seconds[name])
        line += f"; {following} {_seconds(seconds[following])}"
    return line


def _class_of(resource: str) -> str:
    if resource == "local both":
        return "local disks"
    if resource in RESOURCE_CLASSES:
        return RESOURCE_CLASSES[resource]  # type: ignore[index]
    return "object requests" if resource.endswith("requests") else "object account"


def _division(term: ExplainedTerm) -> str:
    nodes = round(term.demand / term.seconds / term.capacity)
    if term.resource.endswith("requests"):
        amount, rate = formatting.count(round(term.demand)), f"{term.capacity:,.0f}/s"
    elif term.resource == "cpu":
        amount, rate = f"{term.demand:,.0f} core s", f"{term.capacity:.3g} cores"
    else:
        amount, rate = formatting.size(round(term.demand)), formatting.rate(term.capacity)
    return f"{amount} / {nodes} / {rate}"


def _with_nodes(asked: Sequence[str], offer: str, nodes: int, best: Candidate) -> str:
    kept = [
        each
        for at, each in enumerate(asked)
        if each not in NOT_ASKED_OF_OTHERS and asked[at - 1] not in NOT_ASKED_OF_OTHERS
    ]
    call = [*kept, "--nodes", str(nodes), "--explain", offer]
    answer = CliRunner().invoke(app, ["plan", *call, "--json"], catch_exceptions=True)
    if answer.exit_code:
        return str(answer.exception).split(": ", 1)[-1]
    other = Explanation.from_json(json.loads(answer.stdout)).candidate
    return _compared(other, best)


def _compared(other: Candidate, best: Candidate) -> str:
    more = other.cost_usd.median / best.cost_usd.median - 1
    return (
        f"{other.nodes} x {candidate_text(other).split(' x ', 1)[1]}, "
        f"{formatting.duration(other.seconds.median)}, {usd(other.cost_usd.median)} "
        f"({100 * more:+.0f} %)"
    )


def _summary(candidate: Candidate) -> str:
    return (
        f"{candidate_text(candidate)}: {seconds_range(candidate.seconds)}, "
        f"{usd_range(candidate.cost_usd)}"
    )


def _seconds(value: float) -> str:
    return f"{value:,.0f} s"


def _answer(arguments: Sequence[str]) -> dict[str, object]:
    done = CliRunner().invoke(app, ["plan", *arguments, "--json"])
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def rewrite() -> None:
    """Compute the page's figures again."""

    def again(found: re.Match[str]) -> str:
        return f"    tonnage plan {found[1]}\n\n```text\n{arithmetic(found[1])}```"

    PAGE.write_text(EXAMPLE.sub(again, PAGE.read_text()))


if __name__ == "__main__":
    rewrite()
