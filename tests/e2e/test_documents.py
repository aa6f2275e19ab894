"""Documents show commands that work: all of them parse, and those of the guides run.

The command line parses every command of every document. `tests/e2e/test_guide.py` runs the guide's
scripts, and this file its first study, with less data. Commands of the other documents run if they
need nothing but Tonnage. The rest name machines and files that do not exist here, so they are only
parsed.
"""

import json
import re
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.cli.documented_commands import Shown, refusal, shown
from support.stores.disk import ROOT

DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(path for part in ("docs", "examples") for path in (ROOT / part).rglob("*.md")),
        *(ROOT / "benches").glob("*/README.md"),
        ROOT / "benches" / "README.md",
    ]
)
GUIDES = sorted((ROOT / "docs" / "guide").glob("*.md"))
EXECUTED = {
    *("data-in-objects.md", "cluster-in-a-lab.md", "first-study.md", "from-a-bucket.md"),
    *("sorting-files.md", "your-own-job.md"),
}
"""Pages of the guide whose commands a test runs: two as scripts (tests/e2e/test_guide.py), one
here, one against an emulated EC2 (tests/provision/aws/test_launch.py), one with a recorded log
(tests/e2e/test_your_own_job.py), and one with files (tests/e2e/test_sorting_files.py)."""


def refusal_of(text: str) -> str:
    (call,) = shown(Path("page.md"), text)
    return refusal(call)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_of_a_document_parses(document: Path) -> None:
    assert [f"{call}: {why}" for call in shown(document) if (why := refusal(call))] == []


def test_the_readmes_commands_are_found() -> None:
    families = [call.arguments[0] for call in shown(ROOT / "README.md")]
    assert families == ["plan", "gensort", "run", "valsort"]


def test_a_refused_command_is_explained() -> None:
    assert refusal_of("    tonnage plan sort --data 1TB") == ""
    assert "No such option: --dta" in refusal_of("    tonnage plan sort --dta 1TB")
    assert "'1XB' is not a size" in refusal_of("    tonnage plan sort --data 1XB")
    assert "No such command 'pla'" in refusal_of("    tonnage pla sort --data 1TB")
    assert "Missing" in refusal_of("```console\n$ tonnage run sort in\n```")
    assert refusal_of("```console\n$ tonnage run sort ... --cluster auto\n```") == ""
    assert "--flet" in refusal_of("```console\n$ tonnage run sort ... --flet auto\n```")


def test_commands_are_found_in_blocks_pipes_and_after_sudo() -> None:
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


def test_the_first_study_runs(tonnage: Tonnage, disk: Path) -> None:
    """Run the page's command, with a hundredth of its data and existing directories."""
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
    # As on the page: a report in its own directory, and no data left behind.
    out = disk / "tonnage-study-1"
    assert (out / "report.html").exists() and (out / "study.json").exists()
    assert [*(disk / "a").iterdir(), *(disk / "b").iterdir()] == []


def needs_only_tonnage(call: Shown) -> bool:
    """Return whether a command needs no file, machine or account."""
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
    [
        # Simulating a hundred terabytes takes too long for `make test`.
        pytest.param(
            call,
            id=" ".join(call),
            marks=[pytest.mark.slow] if {"simulate", "100TB"} <= {*call} else [],
        )
        for call in sorted(
            {
                call.arguments
                for document in DOCUMENTS
                if document.parent.name != "reproduction"  # test_reproduction.py runs those.
                for call in shown(document)
                if needs_only_tonnage(call)
            }
        )
    ],
)
def test_commands_that_need_only_tonnage_run(
    tonnage: Tonnage, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = tonnage.run(*arguments, cwd=tmp_path, check=True)
    assert done.stdout and "Traceback" not in done.stderr


def test_make_study_is_the_readmes_first_command() -> None:
    readme = (ROOT / "README.md").read_text()
    blocks = re.sub(r"^```.*?^```$", "", readme, flags=re.MULTILINE | re.DOTALL)  # not output
    first = next(line.strip() for line in blocks.splitlines() if line[:4] == "    ")
    assert first.startswith("make study ")
    assert re.search(
        r"^study:.*\n\t@\$\(BIN\)/tonnage study$", (ROOT / "Makefile").read_text(), re.M
    )


def test_a_call_names_its_document() -> None:
    assert str(Shown("page.md", ("plan", "sort"))) == "page.md: tonnage plan sort"
