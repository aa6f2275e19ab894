"""docs/reproduction: every figure and table of the five documents has a row, and rows are true.

A row has a heading with its kind and number, its outcome, and a command that parses, or the reason
why there is none. The commands of rows that agree with the study run, and must print what the page
shows. The table of the README is counted again.
"""

import re
from dataclasses import dataclass

import pytest
from _pytest.mark import ParameterSet

from support.cli.command import Tonnage
from support.cli.documented_commands import Shown, refusal, shown
from support.stores.disk import ROOT

PAGES = ROOT / "docs" / "reproduction"
ROWS = {
    "themis.md": {"Table": 6, "Figure": 12},
    "mate-ec2.md": {"Figure": 8},
    "ec2-io.md": {"Chart": 12, "Table": 1},
    "magellan.md": {"Table": 1, "Figure": 6},
    "disk-layouts.md": {"Chart": 5},
}
"""Figures and tables of each document; charts have no numbers there, only an order."""
OUTCOMES = ("Agrees", "Run here", "Not run", "Nothing to run")
MIN_REASON_CHARACTERS = 60
"""The length of the shortest reason."""


@dataclass(frozen=True)
class Row:
    """A figure or a table, and its outcome."""

    page: str
    kind: str
    number: int
    outcome: str
    text: str

    @property
    def calls(self) -> list[Shown]:
        return shown(PAGES / self.page, self.text)

    def __str__(self) -> str:
        return f"{self.page}: {self.kind} {self.number}"


def rows() -> list[Row]:
    found = []
    for page in ROWS:
        text = (PAGES / page).read_text()
        for title, body in re.findall(r"^## (.+)\n\n((?:(?!^## ).*\n?)*)", text, re.MULTILINE):
            kind, number = re.match(r"(Table|Figure|Chart) (\d+): ", title).groups()
            outcome = re.match(r"\*\*(.+?)\.\*\*", body)
            assert outcome is not None, f"{page}, {title}: the outcome comes first"
            found.append(Row(page, kind, int(number), outcome[1], body))
    return found


def test_every_figure_and_table_has_one_row() -> None:
    found: dict[str, dict[str, list[int]]] = {page: {} for page in ROWS}
    for row in rows():
        found[row.page].setdefault(row.kind, []).append(row.number)
    wanted = {
        page: {kind: list(range(1, count + 1)) for kind, count in kinds.items()}
        for page, kinds in ROWS.items()
    }
    sorted_rows = {
        page: {kind: sorted(numbers) for kind, numbers in kinds.items()}
        for page, kinds in found.items()
    }
    assert sorted_rows == wanted


@pytest.mark.parametrize("row", rows(), ids=str)
def test_a_row_has_a_command_that_parses_or_a_reason(row: Row) -> None:
    assert row.outcome in OUTCOMES
    assert [(str(call), why) for call in row.calls if (why := refusal(call))] == []
    reason = re.sub(r"^```.*?^```$", "", row.text, flags=re.MULTILINE | re.DOTALL)
    if row.outcome == "Nothing to run":
        assert row.calls == [] and len(reason) > MIN_REASON_CHARACTERS
    else:
        assert row.calls
    if row.outcome == "Not run":
        assert len(reason) > MIN_REASON_CHARACTERS


def agreeing() -> list[ParameterSet]:
    """Rows that agree; simulating a hundred terabytes takes too long for `make test`."""
    return [
        pytest.param(
            row, id=str(row), marks=[pytest.mark.slow] if "tonnage simulate" in row.text else []
        )
        for row in rows()
        if row.outcome == "Agrees"
    ]


@pytest.mark.parametrize("row", agreeing())
def test_commands_of_rows_that_agree_print_what_is_shown(row: Row, tonnage: Tonnage) -> None:
    sessions = re.findall(r"^```console\n(.*?)^```$", row.text, re.MULTILINE | re.DOTALL)
    calls = [part for text in sessions for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]]
    assert len(calls) == len(row.calls)
    for call, session in zip(row.calls, calls, strict=True):
        typed, *lines = re.sub(r"\\\n\s*", "", session).splitlines()
        printed = [
            line.split() for line in tonnage.run(*call.arguments, check=True).stdout.splitlines()
        ]
        missing = [line for line in lines if line.split() not in printed]
        assert lines and missing == [], typed


def test_the_table_of_outcomes_is_true() -> None:
    text = (PAGES / "README.md").read_text()
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    head, _, *body = cells
    assert head[1:] == [*OUTCOMES, "Rows"]
    found = rows()
    stated: dict[str, list[int]] = {}
    for name, *numbers in body:
        page = re.search(r"\(([^)]+)\)", name)
        stated[page[1] if page else name] = [int(each) for each in numbers]
    counted = {
        page: [
            sum(row.page == page and row.outcome == outcome for row in found)
            for outcome in OUTCOMES
        ]
        for page in ROWS
    }
    counted["All"] = [sum(column) for column in zip(*counted.values(), strict=True)]
    assert stated == {page: [*numbers, sum(numbers)] for page, numbers in counted.items()}


def test_there_is_no_other_page() -> None:
    assert {path.name for path in PAGES.glob("*.md")} == {*ROWS, "README.md"}
