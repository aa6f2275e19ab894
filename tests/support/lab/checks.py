"""Whether labs can be made here, and what of this machine they could leave something in.

Files of tests that import this run one after another: they would find each other's namespaces.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tonnage.base import core
from tonnage.base.system.netns import NAMESPACES
from tonnage.provision.lab import STATE_DIR, preflight
from tonnage.provision.lab.config import parse
from tonnage.provision.lab.nodes import lab_nodes
from tonnage.provision.lab.throttling import controllers

FILE = """
[lab]
name = "whole"
[[machine]]
type = "a"
price_usd_per_hour = 1
cpus = 0.5
link_mb_per_s = 1
disks = [{ size = "320MiB", read_mb_per_s = 1, fs = "xfs" }, { size = "8MiB", fs = "ext4" }]
"""
"""A lab that needs all that a lab can need."""


def _why_not() -> str:
    """Why no lab can be made here; empty if one can."""
    lab = parse(FILE, "lab.toml")
    try:
        preflight.check_machine(lab_nodes(lab, 0, STATE_DIR), controllers())
    except core.UsageError as why:
        return str(why)
    return ""


needs_lab = pytest.mark.skipif(bool(_why_not()), reason=_why_not())
needs_namespaces = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")


@contextmanager
def untouched() -> Iterator[None]:
    """This machine is in the end as it was."""
    assert not STATE_DIR.exists(), (
        f"a lab is up already, or left over: {sorted(STATE_DIR.iterdir())}"
    )
    before = machine()
    yield
    assert machine() == before
    assert not STATE_DIR.exists()


def machine() -> dict[str, list[str]]:
    """All of this machine that a lab could leave something in."""
    tops = {each.top for each in controllers().values()}
    return {
        "namespaces": sorted(path.name for path in NAMESPACES.glob("*")),
        "interfaces": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "mounts": sorted(
            row.split(" - ")[0].split(" ", 3)[3]
            for row in Path("/proc/self/mountinfo").read_text().splitlines()
            if str(STATE_DIR) in row
        ),
        "loops": sorted(
            path.read_text()
            for path in Path("/sys/block").glob("loop*/loop/backing_file")
            if str(STATE_DIR) in path.read_text()
        ),
        "groups": sorted(str(path) for top in tops for path in top.glob("tonnage-lab*")),
        "limits": sorted(
            f"{path}: {row}"
            for top in tops
            for path in top.glob("blkio.throttle.*s_device")
            for row in path.read_text().splitlines()
        ),
        "files": sorted(str(path) for path in STATE_DIR.rglob("*")) if STATE_DIR.exists() else [],
    }
