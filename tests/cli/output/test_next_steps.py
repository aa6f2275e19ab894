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
from tonnage.cli.output.next_steps import from_study, program


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
