"""What a study suggests leads to a plan, whatever its machine tells of itself."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.data.copies import replace
from support.data.measurements import ENVIRONMENT, measurement
from support.data.offers import distribution, profile
from support.lab.configs import described
from support.stores.disk import ROOT
from tonnage.base.records.cluster_study import ClusterStudy
from tonnage.cli.output.next_steps import from_cluster_study, from_study, program
from tonnage.provision.lab.catalog import write as write_catalog

RECORDED = ROOT / "tests" / "support" / "recorded"


@pytest.mark.parametrize("told", [True, False])
def test_what_is_suggested_makes_a_plan(tmp_path: Path, tonnage: Tonnage, told: bool) -> None:
    made = measurement("disks", {"rw": [1e8, 1.01e8], "ro": [2e8], "wo": [2e8]})
    where = {"provider": "aws", "machine_type": "m5d.large"} if told else {}
    environment = replace(ENVIRONMENT, **where)
    made = replace(made, kind="disk", environment=environment)
    made.write(tmp_path / "study" / "measurements" / "disks.json")
    first, *more = from_study(tmp_path / "study")
    program, *arguments = shlex.split(first.partition(": ")[2])
    assert program == "tonnage" and ("--profile" in arguments) == told
    done = tonnage.run(*arguments, "--json", check=True)
    plan = json.loads(done.stdout)
    assert plan["bytes"] == 20 * 10**12 and plan["candidates"]
    assert (plan["profiles"] == ["themis-2014", "skyrise"]) != told
    assert len(more) == (0 if told else 1)
    if more:  # With the machine type, its own measurements are used.
        words = more[0].partition("If you know it, run ")[2].partition(", then")[0]
        command = words.replace("PROVIDER/TYPE", "aws/m5d.large")
        command = command.replace("mine.json", str(tmp_path / "mine.json"))
        tonnage.run(*shlex.split(command)[1:], check=True)
        profiles = ("--profile", "themis-2014", "--profile", str(tmp_path / "mine.json"))
        planned = tonnage.run(*arguments, *profiles, "--json", check=True)
        assert json.loads(planned.stdout)["profiles"] == ["themis-2014", "mine"]


def test_a_study_of_a_small_lab_leads_to_a_plan_that_fits(tmp_path: Path, tonnage: Tonnage) -> None:
    """Not to 20 TB on disks of 320 MiB."""
    lab = str(write_catalog(tmp_path, described()))
    measured = profile(
        {"fast": [distribution("local both", 5e7), distribution("network", 4e7)]}, provider="lab"
    )
    measured.write(tmp_path / "calibrated.json")
    done = ClusterStudy.read(RECORDED / "artifacts" / "fleet-study-1.json")
    first, page = from_cluster_study(done, tmp_path, "calibrated.json", [lab])
    _, *arguments = shlex.split(first.partition(": ")[2])
    plan = json.loads(tonnage.run(*arguments, "--json", check=True).stdout)
    assert plan["candidates"] and plan["bytes"] == 10 * done.settings["sorted_bytes"]
    _, *arguments = shlex.split(page.partition(": ")[2])
    tonnage.run(*arguments, check=True)
    assert (tmp_path / "explore.html").exists()


def test_it_is_named_as_a_shell_finds_it(
    tonnage: Tonnage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was called, by a path; without one only where the shell's own is the same."""
    monkeypatch.setattr(sys, "argv", [str(tonnage.path), "study"])
    (tmp_path / "bin").mkdir()
    for path, named in (("/usr/bin:/bin", str(tonnage.path)), (f"{tmp_path}/bin:/bin", "tonnage")):
        (tmp_path / "bin" / "tonnage").unlink(missing_ok=True)
        (tmp_path / "bin" / "tonnage").symlink_to(tonnage.path)
        monkeypatch.setenv("PATH", path)
        assert program() == named
        said = subprocess.run(
            ["/bin/sh", "-c", f"{program()} --version"], check=True, capture_output=True, text=True
        )
        assert said.stdout.startswith("tonnage")
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert program() == "tonnage"
