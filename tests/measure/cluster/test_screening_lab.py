"""Screening, held to a lab whose truth is known: one disk is slow, one link, and one node dies."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.cli.processes import started
from support.lab.checks import needs_lab
from tonnage.base.records.network_rounds import RECEIVE, SEND
from tonnage.model.outlier_nodes import FAULTY

pytestmark = pytest.mark.slow

LAB = "test-screen"
DISK, LINK, SLOWER = 20, 30, 4
"""MB/s, far below what this machine can do in all, and how many times slower the slow ones are."""
USD_PER_HOUR = 0.5
FILE = f"""
[lab]
name = "{LAB}"
[[machine]]
type = "node"
count = 6
price_usd_per_hour = {USD_PER_HOUR}
link_mb_per_s = {LINK}
disks = [{{ size = "192MiB", read_mb_per_s = {DISK}, write_mb_per_s = {DISK}, fs = "ext4" }}]
"""
SLOW_DISK, SLOW_LINK, DIES = "node-1", "node-3", "node-4"
WITHIN = 0.25
"""Trials are of three seconds, and the kernel holds disks back in slices of 100 ms."""


@contextmanager
def lab(tonnage: Tonnage, room: Path) -> Iterator[Path]:
    """The lab with its faults and Ray; gives the catalog of its machines."""
    file = room / "lab.toml"
    file.write_text(FILE)
    try:
        tonnage.run("lab", "up", file, check=True)
        tonnage.run("lab", "ray", "--lab", LAB, check=True)
        for node, what in ((SLOW_DISK, "slow-disk"), (SLOW_LINK, "slow-link")):
            fault = ("lab", "fault", "--lab", LAB, node, what, "--factor", str(SLOWER))
            tonnage.run(*fault, check=True)
        yield Path("/var/lib/tonnage-lab") / LAB / f"{LAB}.csv"
    finally:
        tonnage.run("lab", "down", "--lab", LAB, check=True)


@needs_lab
@pytest.mark.timeout(400)
def test_exactly_those_three_are_named_and_what_is_missing_is_said(
    tonnage: Tonnage, disk: Path
) -> None:
    out = disk / "out"
    with lab(tonnage, disk) as catalog:
        on = [tonnage.path, "lab", "exec", "--lab", LAB, "node-0", "--", tonnage.path]
        command = [*on, "measure", "screen", "--output", out, "--json"]
        command += ["--dir", f"/var/lib/tonnage-lab/{LAB}/{{node}}.disk-0"]
        command += ["--size", "60MB", "--seconds", "3", "--memory", "16MiB"]
        command += ["--job", "sort", "--data", "100MB", "--catalog", catalog]
        with started([str(each) for each in command]) as run:
            run.wait_until(lambda: len(list((out / "disk" / DIES).glob("trial-*.json"))) >= 2)
            tonnage.run("lab", "fault", "--lab", LAB, DIES, "kill", check=True)
            stdout, stderr = run.process.communicate(timeout=300)
    # The node that died is missing, whichever others are suspect.
    assert run.process.returncode == 1
    said = json.loads(stdout)
    of_disk = {row["node"]: row for row in said["disk"]["nodes"]}
    missing = {node: row["why"] for node, row in of_disk.items() if not row["ok"]}
    assert list(missing) == [DIES] and missing[DIES].startswith("died: ")
    assert f"1 of 6 nodes did not return all results: {DIES}\n" in stderr, stderr
    assert len(of_disk[DIES]["trials"]) >= 2
    of_network = {row["node"]: row["ok"] for row in said["net"]["nodes"]}
    assert of_network == {node: True for node in of_disk if node != DIES}

    whats: dict[str, set[str]] = {}
    for each in said["suspects"]:
        whats.setdefault(each["node"], set()).add(each["what"])
        if each["node"] != DIES:
            assert each["ratio_to_median"] == pytest.approx(1 / SLOWER, rel=WITHIN)
            assert each["confidence"] >= 0.95
    assert whats == {DIES: {FAULTY}, SLOW_DISK: {"ro", "wo"}, SLOW_LINK: {SEND, RECEIVE}}
    assert said["decommission"] == [SLOW_DISK, SLOW_LINK, DIES] and said["not_judged"] == {}

    # All that is slow is gone with them: fewer machines are faster, and each is paid for less long.
    gain, with_all, without = said["gain"], *(said["gain"][k] for k in ("with_all", "without"))
    assert (with_all["nodes"], without["nodes"]) == (5, 3)
    assert 0 < gain["seconds"] == pytest.approx(with_all["seconds"] - without["seconds"])
    for each in (with_all, without):
        hours = each["nodes"] * each["seconds"] / 3600
        assert each["usd"] == pytest.approx(hours * USD_PER_HOUR)
