"""docs/concepts/planned-examples.md: plans come out as the page argues.

Numbers may differ by 2 %; if catalogs change them by more, the page is computed again, and read.
"""

import re

import pytest

from support.cli.command import Tonnage
from support.cli.planned_examples import Example, arithmetic, examples

TOLERANCE = 0.02
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def numbers(text: str) -> list[float]:
    return [float(each.replace(",", "")) for each in NUMBER.findall(text)]


ALL = examples()
SOME = {0, 4, 13}
"""The cases that `make test` runs, too: the first, with records, and of another provider."""


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(each, marks=[pytest.mark.slow, *([pytest.mark.real] if at in SOME else [])])
        for at, each in enumerate(ALL)
    ],
    ids=map(str, ALL),
)
def test_a_plan_is_as_argued(example: Example) -> None:
    found = arithmetic(example.arguments)
    assert NUMBER.sub("#", found) == NUMBER.sub("#", example.shown)
    assert numbers(found) == pytest.approx(numbers(example.shown), rel=TOLERANCE, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("deadline", ["30min", "2h"])
def test_a_petabyte_takes_longer_than_two_hours(deadline: str, tonnage: Tonnage) -> None:
    asked = ("sort", "--data", "1PB", "--deadline", deadline, "--provider", "aws")
    done = tonnage.run("plan", *asked)
    assert done.returncode == 2 and "no offer meets --deadline" in done.stderr


def test_sizes_deadlines_durabilities_and_providers_are_argued() -> None:
    asked = [example.arguments for example in ALL]
    for size in ("1TB", "20TB", "100TB", "1PB"):
        assert any(f"sort --data {size}" in each for each in asked)
    for option in ("30min", "2h", "none", "replicated", "aws", "gcp", "azure", "--passes 10"):
        assert any(f" {option}" in each for each in asked), option
    assert any(each.startswith("mapreduce") for each in asked)
