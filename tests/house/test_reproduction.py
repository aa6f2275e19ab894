"""docs/reproduction: every figure and table of the five documents has its row, and rows are true.

A row is a heading of its kind and number, what became of it, and a command that the command line
takes, or why there is none. Of rows that agree with the study the commands are run, and have to
print what is shown of them. The counted table of the README is counted again.
"""

import re
from dataclasses import dataclass

import pytest

from support.command import Tonnage
from support.disk import ROOT
from support.documented import Shown, refusal, shown

PAGES = ROOT / "docs" / "reproduction"
ROWS = {
    "themis.md": {"Table": 6, "Figure": 12},
    "mate-ec2.md": {"Figure": 8},
    "ec2-io.md": {"Chart": 12, "Table": 1},
    "magellan.md": {"Table": 1, "Figure": 6},
    "disk-layouts.md": {"Chart": 5},
}
"""How many figures and tables each document has; charts have no numbers there but their order."""
BECAME = ("Agrees", "Run here", "Not run", "Nothing to run")
LEAST_REASON = 60
"""Characters that a reason takes at least."""


@dataclass(frozen=True)
class Row:
    """A figure or a table, and what became of it."""

    page: str
    kind: str
    number: int
    became: str
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
            became = re.match(r"\*\*(.+?)\.\*\*", body)
            assert became is not None, f"{page}, {title}: what became of it comes first"
            found.append(Row(page, kind, int(number), became[1], body))
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
def test_a_row_has_a_command_that_is_taken_or_a_reason(row: Row) -> None:
    assert row.became in BECAME
    assert [(str(call), why) for call in row.calls if (why := refusal(call))] == []
    reason = re.sub(r"^```.*?^```$", "", row.text, flags=re.MULTILINE | re.DOTALL)
    if row.became == "Nothing to run":
        assert row.calls == [] and len(reason) > LEAST_REASON
    else:
        assert row.calls
    if row.became == "Not run":
        assert len(reason) > LEAST_REASON


@pytest.mark.parametrize("row", [row for row in rows() if row.became == "Agrees"], ids=str)
def test_what_agrees_is_printed(row: Row, tonnage: Tonnage) -> None:
    sessions = re.findall(r"^```console\n(.*?)^```$", row.text, re.MULTILINE | re.DOTALL)
    calls = [part for text in sessions for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]]
    assert len(calls) == len(row.calls)
    for call, session in zip(row.calls, calls, strict=True):
        typed, *lines = re.sub(r"\\\n\s*", "", session).splitlines()
        said = [
            line.split() for line in tonnage.run(*call.arguments, check=True).stdout.splitlines()
        ]
        missing = [line for line in lines if line.split() not in said]
        assert lines and missing == [], typed


def test_the_counted_table_is_true() -> None:
    text = (PAGES / "README.md").read_text()
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    head, _, *body = cells
    assert head[1:] == [*BECAME, "Rows"]
    found = rows()
    told: dict[str, list[int]] = {}
    for name, *numbers in body:
        page = re.search(r"\(([^)]+)\)", name)
        told[page[1] if page else name] = [int(each) for each in numbers]
    counted = {
        page: [sum(row.page == page and row.became == became for row in found) for became in BECAME]
        for page in ROWS
    }
    counted["All"] = [sum(column) for column in zip(*counted.values(), strict=True)]
    assert told == {page: [*numbers, sum(numbers)] for page, numbers in counted.items()}


def test_there_is_no_other_page() -> None:
    assert {path.name for path in PAGES.glob("*.md")} == {*ROWS, "README.md"}
