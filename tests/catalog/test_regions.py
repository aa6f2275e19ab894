"""Plans in a region: shipped catalogs, and those that a refresh wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from tonnage.catalog.load import SNAPSHOTS

OREGON, EARLIER = "aws-us-west-2-2026-11-20", "aws-us-west-2-2025-01-01"
PLAN = ("plan", "sort", "--data", "1TB")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A few offers of AWS, as if refreshed for another region; later and earlier."""
    for part in ("", ".volumes", ".objects"):
        lines = (SNAPSHOTS / f"aws-us-east-1-2026{part}.csv").read_text().splitlines()
        kept = [each for each in lines if part or each.startswith(("instance_type", "i4i."))]
        for name in (OREGON, EARLIER):
            (tmp_path / f"{name}{part}.csv").write_text("\n".join(kept) + "\n")
    return tmp_path


def test_a_refreshed_catalog_is_found_by_its_region(tonnage: Tonnage, directory: Path) -> None:
    done = tonnage.run(*PLAN, "--region", "us-west-2", "--json", cwd=directory, check=True)
    found = json.loads(done.stdout)
    assert found["catalogs"] == [OREGON]
    assert {each["offer"].partition(".")[0] for each in found["candidates"]} == {"i4i"}
    both = ("--region", "us-west-2", "us-central1", "--json")
    found = json.loads(tonnage.run(*PLAN, *both, cwd=directory, check=True).stdout)
    assert set(found["catalogs"]) == {OREGON, "gcp-us-central1-2026"}
    # Of two catalogs of one provider, the table says which.
    both = ("--catalog", f"{OREGON}.csv", f"{EARLIER}.csv")
    table = tonnage.run(*PLAN, *both, cwd=directory, check=True).stdout
    assert OREGON in table and EARLIER in table
    listed = json.loads(tonnage.run("catalog", "ls", "--json", cwd=directory, check=True).stdout)
    assert "us-west-2" in [each["region"] for each in listed["catalogs"]]
    shown = tonnage.run("catalog", "show", "i4i.large", "--catalog", OREGON, cwd=directory)
    assert shown.returncode == 0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (("--region", "us-west-2"), "tonnage catalog refresh aws --region us-west-2"),
        (("--region", "us-centrall"), "did you mean us-central1?"),
        (
            ("--region", "us-west-2", "--catalog", "aws-us-east-1-2026"),
            "aws-us-east-1-2026 is of us-east-1; add a catalog of us-west-2",
        ),
    ],
)
def test_a_region_without_a_catalog_is_one_line(
    line: tuple[str, ...], expected: str, tonnage: Tonnage, tmp_path: Path
) -> None:
    done = tonnage.run(*PLAN, *line, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert expected in done.stderr


def test_the_page_shows_the_region_in_its_command(tonnage: Tonnage, directory: Path) -> None:
    tonnage.run("explore", "--region", "us-west-2", "--output", "x.html", cwd=directory, check=True)
    assert "--region us-west-2" in (directory / "x.html").read_text()
