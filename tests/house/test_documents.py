"""What documents say can be done: every command is taken, and the guides' are done.

Commands of all documents are parsed by the command line as if they were given. The guide's scripts
are run by `tests/e2e/test_guide.py`, its first study here, small. Of the README's and the concepts' commands
those are run that need nothing but Tonnage; the others name machines and files that are not there,
so that for them parsing is what can be held.
"""

import json
import re
from pathlib import Path

import pytest

from support.command import Tonnage
from support.disk import ROOT
from support.documented import Shown, refusal, shown

DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(path for part in ("docs", "examples") for path in (ROOT / part).rglob("*.md")),
        *(ROOT / "benches").glob("*/README.md"),
        ROOT / "benches" / "README.md",
    ]
)
GUIDES = sorted((ROOT / "docs" / "guide").glob("*.md"))
EXECUTED = {"data-in-objects.md", "cluster-in-a-lab.md", "first-study.md", "from-a-bucket.md"}
"""The guide's pages whose commands a test runs: two by their scripts (tests/e2e/test_guide.py), one here, one
with what plays EC2 (tests/provision/aws/test_launch.py)."""


def taken(text: str) -> str:
    (call,) = shown(Path("page.md"), text)
    return refusal(call)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_of_a_document_is_taken(document: Path) -> None:
    assert [f"{call}: {why}" for call in shown(document) if (why := refusal(call))] == []


def test_the_readmes_commands_are_seen() -> None:
    assert len(shown(ROOT / "README.md")) >= 20


def test_what_is_not_taken_is_told() -> None:
    assert taken("    tonnage plan sort --data 1TB") == ""
    assert "No such option: --dta" in taken("    tonnage plan sort --dta 1TB")
    assert "'1XB' is no size" in taken("    tonnage plan sort --data 1XB")
    assert "No such command 'pla'" in taken("    tonnage pla sort --data 1TB")
    assert "Missing" in taken("```console\n$ tonnage run sort in\n```")
    assert taken("```console\n$ tonnage run sort ... --cluster auto\n```") == ""
    assert "--flet" in taken("```console\n$ tonnage run sort ... --flet auto\n```")


def test_commands_are_found_where_they_stand() -> None:
    text = """```console
$ sudo .venv/bin/tonnage lab exec a-0 -- tonnage measure disk \\
    --dir /mnt/a > out.txt
Kept in tonnage-disk-1
$ echo tonnage study
```

    A=1 tonnage plan sort --data 1TB | less   # tonnage study
    a line of prose of tonnage study
"""
    assert [call.arguments for call in shown(Path("page.md"), text)] == [
        ("lab", "exec", "a-0", "--", "tonnage", "measure", "disk", "--dir", "/mnt/a"),
        ("measure", "disk", "--dir", "/mnt/a"),
        ("plan", "sort", "--data", "1TB"),
    ]


def test_every_guide_is_run_by_a_test() -> None:
    assert {path.name for path in GUIDES if shown(path)} == EXECUTED


def test_the_first_study_is_done(tonnage: Tonnage, disk: Path) -> None:
    """The page's commands, with a hundredth of its data and directories that are there."""
    (call,) = shown(ROOT / "docs" / "guide" / "first-study.md")
    assert call.arguments[0] == "study"
    for name in ("a", "b"):
        (disk / name).mkdir()
    arguments = [
        re.sub(r"^\d+GB$", "40MB", each).replace("/mnt", str(disk)) for each in call.arguments
    ]
    done = tonnage.run(*arguments, "--json", cwd=disk, check=True)
    study = json.loads(done.stdout)
    assert study["schema"].startswith("tonnage.study/")
    # What the page tells of: a report in a directory of its own, and no data that is left.
    out = disk / "tonnage-study-1"
    assert (out / "report.html").exists() and (out / "study.json").exists()
    assert [*(disk / "a").iterdir(), *(disk / "b").iterdir()] == []


def needs_nothing(call: Shown) -> bool:
    """Whether a command asks for nothing but Tonnage: no file, machine or account."""
    family, *more = call.arguments
    files = [each for each in more if each.endswith((".json", ".csv", ".py"))]
    return (
        family in ("catalog", "plan", "explore", "simulate")
        and "refresh" not in more
        and not {"--profile", "..."}.intersection(more)
        and not files
    )


@pytest.mark.parametrize(
    "arguments",
    sorted(
        {
            call.arguments
            for document in DOCUMENTS
            if document.parent.name
            != "reproduction"  # Those tests/house/test_reproduction.py runs.
            for call in shown(document)
            if needs_nothing(call)
        }
    ),
    ids=" ".join,
)
def test_what_needs_nothing_is_done(
    tonnage: Tonnage, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = tonnage.run(*arguments, cwd=tmp_path, check=True)
    assert done.stdout and "Traceback" not in done.stderr


def test_make_study_is_the_readmes_first_command() -> None:
    first = next(
        line.strip() for line in (ROOT / "README.md").read_text().splitlines() if line[:4] == "    "
    )
    assert first.startswith("make study ")
    assert re.search(
        r"^study:.*\n\t@\$\(BIN\)/tonnage study$", (ROOT / "Makefile").read_text(), re.M
    )


def test_a_call_is_told_with_where_it_stands() -> None:
    assert str(Shown("page.md", ("plan", "sort"))) == "page.md: tonnage plan sort"
