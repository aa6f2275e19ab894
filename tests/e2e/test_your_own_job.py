"""The guide "Your own job": its commands, in their order, with a recorded log of Spark."""

import shutil
from pathlib import Path

from support.cli.command import Tonnage
from support.cli.documented_commands import shown
from support.stores.disk import ROOT

GUIDE = ROOT / "docs" / "guide" / "your-own-job.md"
LOG = ROOT / "tests" / "support" / "recorded" / "spark" / "spark-4.0-sort.lz4"
ELSEWHERE = ("last-night/", "observe")
"""What needs files of sysstat, or a cluster."""


def test_the_commands_of_the_guide_run_in_their_order(tonnage: Tonnage, tmp_path: Path) -> None:
    calls = [call.arguments for call in shown(GUIDE)]
    log = next(each[1] for each in calls if each[0] == "import")
    shutil.copy(LOG, tmp_path / log)
    table = GUIDE.read_text().partition("    job,machine_type")[2].partition("\n\n")[0]
    rows = ("job,machine_type" + table).replace("    ", "")
    (tmp_path / "runs.csv").write_text(rows + "\n")
    ran = 0
    for arguments in calls:
        if not {*ELSEWHERE} & {*arguments}:
            done = tonnage.run(*arguments, cwd=tmp_path, check=True)
            assert "Traceback" not in done.stderr
            ran += 1
    assert ran == 8
    assert (tmp_path / "last-night.html").exists() and (tmp_path / "cluster.json").exists()
