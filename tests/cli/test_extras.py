"""What is installed only where it is asked for: who needs it says so, the others do without."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.stores.disk import ROOT
from tonnage.cli.options.optional_dependencies import EXTRAS

pytestmark = pytest.mark.slow


def without(module: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command where one module is not installed."""
    hidden = (
        f"import sys; sys.modules[{module!r}] = None; from tonnage.cli.main import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", hidden, *arguments], capture_output=True, text=True, cwd=cwd
    )


@pytest.mark.parametrize(
    ("extra", "arguments", "what"),
    [
        ("aws", ("catalog", "refresh", "aws"), "tonnage catalog refresh needs boto3"),
        ("cluster", ("measure", "disk", "--cluster", "auto", "--dir", "/"), "--cluster needs Ray"),
        ("report", ("report", "."), "tonnage report needs Plotly"),
        ("report", ("study", "--data", "1MB"), "tonnage study needs Plotly"),
    ],
)
def test_who_needs_an_extra_says_so_first(
    extra: str, arguments: tuple[str, ...], what: str, tmp_path: Path
) -> None:
    done = without(EXTRAS[extra][0], *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tonnage: {what}; install it with pip install 'tonnage[{extra}]'\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("line", ["plan sort --data 1TB", "explore --catalog aws-us-east-1-2014"])
def test_a_plan_needs_none(extra: str, line: str, tmp_path: Path) -> None:
    done = without(EXTRAS[extra][0], *line.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_extras_are_the_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {
        extra: [re.split(r"[<>=~ ]", each)[0] for each in needs]
        for extra, needs in project["optional-dependencies"].items()
    }
    assert needed == {extra: [module] for extra, (module, _) in EXTRAS.items()}
