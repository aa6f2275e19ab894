"""Measuring disks: trials as the core reports them, their summary, and their environment."""

import os
from pathlib import Path
from typing import Any

import pytest

from support.data.copies import replace
from tonnage.base import core
from tonnage.base.records import Metric, Source
from tonnage.base.system import block_devices, cgroups, procfs
from tonnage.measure.trial import environment
from tonnage.measure.trial.trial import page_cache_use, trial_from_phase
from tonnage.model.study_findings import short_trial_warnings

MB = 1_000_000


def reported(moments: list[float], ended: float, seconds: float | None = None) -> dict[str, Any]:
    """A phase in which a source gives 100 MB/s until it ends, and a sink takes them at once."""

    def stage(name: str, moment: float) -> dict[str, Any]:
        return {
            "name": name,
            "kind": name,
            "workers": 1,
            "bytes": round(100 * MB * min(moment, ended)),
            "records": 0,
            "busy_seconds": 0.0,
            "starved_seconds": 0.0,
            "blocked_seconds": 0.0,
            "cpu_seconds": min(moment, ended) / 10,
            "memory_bytes": 0,
            "config": {},
        }

    def stages(moment: float) -> list[dict[str, Any]]:
        return [stage("read", moment), stage("discard", moment)]

    seconds = moments[-1] if seconds is None else seconds
    return {
        "name": "ro",
        "graph": "read x1 -records-> discard x1",
        "began_seconds": 0.0,
        "seconds": seconds,
        "bottleneck": "read",
        "memory_bytes": 0,
        "disk_modes": [],
        "stages": stages(seconds),
        "timeline": [{"seconds": moment, "stages": stages(moment)} for moment in moments],
    }


def every(step: float, until: float) -> list[float]:
    """Moments of samples."""
    return [round(step * place, 6) for place in range(1, round(until / step) + 1)]


@pytest.mark.parametrize(
    ("moments", "ended", "warm_up", "rates"),
    [
        # Half a second of four; then 14 windows of a quarter.
        (every(0.05, 4.0), 4.0, 0.5, 14),
        # A quarter of one second, and of one that its data ended; what flows out does not count.
        (every(0.05, 1.0), 1.0, 0.25, 3),
        (every(0.05, 2.0), 1.0, 0.25, 3),
        # Less than a window is left: it is kept as the only one.
        (every(0.05, 0.2), 0.2, 0.05, 1),
        (every(0.01, 4.0), 0.04, 0.01, 1),
    ],
    ids=["long", "short", "ended early", "less than a window", "ended at once"],
)
def test_a_trial_says_what_counted(
    moments: list[float], ended: float, warm_up: float, rates: int
) -> None:
    found = trial_from_phase(reported(moments, ended), seconds=4.0)
    assert found.warm_up_seconds == pytest.approx(warm_up)
    assert found.rates == pytest.approx([100 * MB] * rates)
    assert found.bytes_per_second == pytest.approx(100 * MB)
    assert found.cpu_seconds_per_byte == pytest.approx(2 * 0.1 / (100 * MB))


def test_all_counts_of_a_trial_that_was_over_before_it_was_sampled() -> None:
    found = trial_from_phase(reported([0.03], ended=0.02, seconds=0.04), seconds=4.0)
    assert found.warm_up_seconds == 0.0
    assert found.rates == [found.bytes_per_second] == [pytest.approx(50 * MB)]


def test_all_counts_of_a_trial_whose_buffers_held_it() -> None:
    # The source ends after 20 ms, before the first byte has come out; that takes until 200 ms.
    values = reported(every(0.01, 0.2), ended=0.02)
    for sample in values["timeline"]:
        sample["stages"][-1]["bytes"] = 0 if sample["seconds"] < 0.1 else MB
    found = trial_from_phase(values, seconds=4.0)
    assert found.bytes_per_second == pytest.approx(2 * MB / 0.2)


def test_what_counted_for_less_than_a_second_need_not_last() -> None:
    told = Metric(source=Source(tool="tonnage"), operation="read")
    brief, long = (
        replace(trial_from_phase(reported(every(0.05, ended), ended), seconds=ended), reading=told)
        for ended in (1.0, 2.0)
    )
    assert (
        short_trial_warnings([long]) == short_trial_warnings([replace(brief, reading=None)]) == []
    )
    [said] = short_trial_warnings([long, brief, brief])
    assert said.startswith("Less than a second of a trial was counted (read only). ")


@pytest.mark.parametrize(
    ("modes", "text"),
    [
        ([[], []], "untouched: no file was read or written"),
        ([[], [{"direct": True}]], "bypassed: "),
        ([[{"direct": True}], [{"direct": False}]], "in the way: "),
    ],
)
def test_the_use_of_the_page_cache_is_stated(modes: list[list[dict[str, Any]]], text: str) -> None:
    assert page_cache_use([{"disk_modes": each} for each in modes]).startswith(text)


def test_the_environment_counts_the_cores_that_the_core_uses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert environment.capture([]).cores == core.workers()
    # Which may be fewer than those that the process may run on.
    monkeypatch.setattr(core, "workers", lambda: 7)
    assert environment.capture([]).cores == 7


def test_a_mount_with_blanks_in_its_path_is_known(
    monkeypatch: pytest.MonkeyPatch, disk: Path
) -> None:
    odd = disk / "a\tb c\\040\u00a0ü\n"
    odd.mkdir()
    point = str(odd)
    for sign, escape in (("\\", "\\134"), (" ", "\\040"), ("\t", "\\011"), ("\n", "\\012")):
        point = point.replace(sign, escape)
    mounts = disk / "mounts"
    mounts.write_text(f"root / ext4 rw 0 0\nodd {point} odd rw,strange 0 0\n")
    monkeypatch.setattr(block_devices, "MOUNTS", mounts)
    (inside,) = environment.capture([odd]).devices
    assert (inside.file_system, inside.mount_options) == ("odd", "rw,strange")
    (outside,) = environment.capture([disk]).devices
    assert outside.file_system == "ext4"


def test_devices_below_a_file_system_without_one_are_those_of_its_source(
    monkeypatch: pytest.MonkeyPatch, disk: Path
) -> None:
    for name in ("vdx", "vdy", "vdz"):
        (disk / "block" / name).mkdir(parents=True)
    for pool, members in {"one": ["vdx"], "two": ["vdz", "vdy"]}.items():
        for name in members:
            (disk / "btrfs" / pool / "devices" / name).mkdir(parents=True)
    monkeypatch.setattr(block_devices, "NUMBERED", disk / "none")
    monkeypatch.setattr(block_devices, "BLOCK", disk / "block")
    monkeypatch.setattr(block_devices, "BTRFS", disk / "btrfs")
    monkeypatch.setattr(block_devices, "MOUNTS", disk / "mounts")
    number = disk.stat().st_dev
    unknown = [f"{os.major(number)}:{os.minor(number)}"]
    for source, found in {
        "/dev/vdx": ["vdx"],
        "/dev/vdy": ["vdy", "vdz"],
        "/dev/gone": unknown,
        "server:/vdx": unknown,
        "overlay": unknown,
        "vdx": unknown,
    }.items():
        (disk / "mounts").write_text(f"{source} / any rw 0 0\n")
        assert block_devices.devices_of(disk) == found


def test_counters_of_devices_are_added_up(disk: Path) -> None:
    (disk / "diskstats").write_text(
        " 8 0 sda 1 0 2 0 3 0 4 0 5 6000 7000\n 8 16 sdb 10 0 20 0 30 0 40 0 50 60000 0 0 0\n"
    )
    assert procfs.disk_totals(["sda"], disk) == (1, 2 * 512, 3, 4 * 512, 5, 6.0, 7.0)
    assert procfs.disk_totals(["sda", "sdb"], disk) == (11, 22 * 512, 33, 44 * 512, 55, 66.0, 7.0)
    assert procfs.disk_totals(["sda", "0:45"], disk) is None
    assert procfs.disk_totals([], disk) is None


@pytest.mark.parametrize(
    ("membership", "limits", "least"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "700", "a/memory.max": "500"}, 500),
        ("0::/a/b\n", {"a/b/memory.max": "max", "memory.max": "900"}, 900),
        ("0::/a\n", {"a/memory.max": "max"}, None),
        # What a container cannot see of its own path, its root stands for.
        ("9:memory:/gone\n", {"memory/memory.limit_in_bytes": "800"}, 800),
        ("9:memory:/\n2:cpu:/\n", {"memory/memory.limit_in_bytes": str((1 << 63) - 4096)}, None),
        ("", {}, None),
    ],
)
def test_the_least_limit_of_control_groups_counts(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    membership: str,
    limits: dict[str, str],
    least: int | None,
) -> None:
    for name, limit in limits.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{limit}\n")
    (tmp_path / "membership").write_text(membership)
    monkeypatch.setattr(cgroups, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(cgroups, "ROOT", tmp_path / "groups")
    assert cgroups.memory_limit() == least
    assert environment.capture([]).memory_limit_bytes == least
