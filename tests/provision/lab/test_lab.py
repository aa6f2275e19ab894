"""What a lab's file may say, the steps it becomes, and what stands of it afterwards."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.lab.configs import (
    CPUS,
    FILE,
    FIRST,
    LINK,
    READ,
    SECOND,
    SLOW_DISK,
    TINY,
    WRITE,
    described,
    nodes,
)
from tonnage.base import core
from tonnage.base.system import block_devices
from tonnage.base.system.netns import rate_limit_commands, wire_rate
from tonnage.catalog import load_catalog
from tonnage.provision.lab import lifecycle, preflight, record
from tonnage.provision.lab.build_steps import steps
from tonnage.provision.lab.catalog import write
from tonnage.provision.lab.config import DiskConfig
from tonnage.provision.lab.throttling import (
    Controller,
    controllers,
    cpu_quota,
    create_groups,
    enable_controllers,
    throttle_steps,
)

MB = 1_000_000


def test_a_file_is_machines_with_defaults() -> None:
    lab = described()
    fast, slow = lab.machines
    assert (lab.name, fast.type, fast.count, fast.cpus) == ("test-lab", "fast", 1, CPUS)
    assert fast.link_bytes_per_second == LINK * MB
    assert fast.disks == (DiskConfig(320 << 20, "xfs", READ * MB, WRITE * MB),)
    assert (slow.cpus, slow.price_usd_per_hour) == (None, 0.25)
    assert slow.disks == (
        DiskConfig(64 << 20, "ext4", SLOW_DISK * MB, write_operations_per_second=200),
        DiskConfig(16 << 20, "none"),
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[lab]", "[lab", r"lab.toml: invalid TOML: .*line 2"),
        ('name = "test-lab"', "", r'lab.name: is missing; write name = "..."'),
        ('"test-lab"', '"a.b"', r"lab.name: 'a.b' is not a valid name; use letters"),
        ('"test-lab"', '"ends-in-"', r"lab.name: 'ends-in-' is not a valid name"),
        ('"test-lab"', '"../../etc"', r"lab.name: .* is not a valid name"),
        ('"test-lab"', '"a-name-of-13l"', r"lab.name: .* is too long; the limit is 12"),
        ("[lab]", "[lap]", r"lab: missing; add a table \[lab\]"),
        ("price_usd_per_hour = 1.0", "", r"machine\[0\].price_usd_per_hour: is missing"),
        (
            "price_usd_per_hour = 1.0",
            "price_usd_per_hour = 0",
            r"price_usd_per_hour: 0 is out of range",
        ),
        (f"cpus = {CPUS}", 'cpus = "all"', r"machine\[0\].cpus: 'all' is not a number"),
        (f"cpus = {CPUS}", "cpus = nan", r"machine\[0\].cpus: nan is not a number"),
        (f"cpus = {CPUS}", "cpus = true", r"machine\[0\].cpus: True is not a number"),
        (f"cpus = {CPUS}", 'memory = "1MiB"', r"machine\[0\].memory: a machine needs at least 16"),
        (f"cpus = {CPUS}", 'memory = "much"', r"machine\[0\].memory: 'much' is not a size"),
        (f"cpus = {CPUS}", "cpu = 1", r"machine\[0\].cpu: unknown key \(did .* cpus\?\)"),
        ("count = 1", "count = 1.5", r"machine\[1\].count: 1.5 is not a whole number"),
        ("count = 1", "count = 0", r"machine\[1\].count: 0 is out of range; it must be from 1 to"),
        ("count = 1", "count = 200", r"machine: 201 nodes in total"),
        ("slow.2x", "fast", r"machine\[1\].type: fast appears twice"),
        ("320MiB", "32MiB", r"machine\[0\].disks\[0\].size: xfs needs at least 300 MiB"),
        ("320MiB", "lots", r"disks\[0\].size: 'lots' is not a size; write for example"),
        ('fs = "ext4"', 'fs = "fat"', r"disks\[0\].fs: 'fat' is unknown; use one of xfs"),
        ('fs = "none"', 'fs = "none", sizes = 1', r"sizes: unknown key .*mean size\?"),
        ('disks = [{ size = "320MiB"', 'disks = [3, { size = "1"', r"is not a list of tables"),
        (
            "write_iops = 200",
            "write_iops = -1",
            r"disks\[0\].write_iops: -1 is out of range; it must be from 1 to",
        ),
    ],
)
def test_a_mistake_names_the_key_and_what_to_write(old: str, new: str, told: str) -> None:
    assert old in FILE
    with pytest.raises(core.UsageError, match=told) as why:
        described(FILE.replace(old, new, 1))
    assert "\n" not in str(why.value) and str(why.value).startswith("lab.toml: ")


def test_a_lab_has_machines() -> None:
    with pytest.raises(core.UsageError, match=r"machine: missing; add a \[\[machine\]\]"):
        described('[lab]\nname = "empty"')


def test_labs_and_nodes_have_names_of_their_own() -> None:
    first = nodes()
    assert [node.name for node in first] == ["fast-0", "slow.2x-0"]
    assert [node.address for node in first] == ["198.18.0.1", "198.18.0.2"]
    assert first[1].mounts == [Path("/room/test-lab/slow.2x-0.disk-0")]
    others = nodes(FILE.replace("test-lab", "test").replace("fast", "lab-fast"), network=1)
    names = [
        {node.namespace for node in each}
        | {node.group for node in each}
        | {node.address for node in each}
        for each in (first, others)
    ]
    assert not names[0] & names[1]


def test_a_rate_is_of_payload() -> None:
    # A full packet of 1500 bytes has 1448 of payload, and Ethernet's 14 come on top.
    assert wire_rate(1448) == 8 * 1514
    ends = rate_limit_commands("node", "switch", 3, wire_rate(40e6))
    assert [(each[2], each[6]) for each in ends] == [("node", "eth0"), ("switch", "port3")]
    assert {each[each.index("rate") + 1] for each in ends} == {f"{wire_rate(40e6)}bit"}


def test_limits_of_both_versions() -> None:
    disk = DiskConfig(1 << 30, "xfs", 60 * MB, 40 * MB, write_operations_per_second=200)
    second = [line(step.command) for step in throttle_steps(SECOND["io"], "g", "7:1", disk, 2.0)]
    assert second == ["7:1 rbps=30000000 wbps=20000000 wiops=100 > /cg/g/io.max"]
    first = [line(step.command) for step in throttle_steps(FIRST["io"], "g", "7:1", disk, 1.0)]
    assert first == [
        "7:1 60000000 > /cg/blkio/g/blkio.throttle.read_bps_device",
        "7:1 40000000 > /cg/blkio/g/blkio.throttle.write_bps_device",
        "7:1 40000000 > /cg/blkio/blkio.throttle.write_bps_device",
        "7:1 200 > /cg/blkio/g/blkio.throttle.write_iops_device",
        "7:1 200 > /cg/blkio/blkio.throttle.write_iops_device",
    ]
    assert [line(each) for each in cpu_quota(SECOND["cpu"], "g", 0.5)] == [
        "10000 20000 > /cg/g/cpu.max"
    ]
    assert [line(each) for each in cpu_quota(FIRST["cpu"], "g", 1.5)] == [
        "20000 > /cg/cpu/g/cpu.cfs_period_us",
        "30000 > /cg/cpu/g/cpu.cfs_quota_us",
    ]
    assert line(cpu_quota(SECOND["cpu"], "g", None)[0]) == "max 20000 > /cg/g/cpu.max"
    assert line(cpu_quota(FIRST["cpu"], "g", None)[1]) == "-1 > /cg/cpu/g/cpu.cfs_quota_us"
    # No group is made twice where one hierarchy has both.
    groups = create_groups(nodes()[0], SECOND.values())
    assert [step.command[0] for step in groups] == ["mkdir", "sh"]


def line(command: Sequence[str]) -> str:
    """What a command writes where."""
    *_, text, file = command
    return f"{text} > {file}"


def test_controllers_of_either_version_are_found(tmp_path: Path) -> None:
    top = tmp_path / "unified"
    top.mkdir()
    (top / "cgroup.controllers").write_text("cpu io memory\n")
    second = f"41 31 0:38 / {top} rw,relatime - cgroup2 cgroup2 rw\n"
    first = "38 31 0:35 / /cg/blkio rw - cgroup cgroup rw,blkio\n"
    assert controllers(second) == {
        name: Controller(name, 2, top) for name in ("cpu", "io", "memory")
    }
    assert [line(each) for each in enable_controllers(controllers(second).values())] == [
        f"+{name} > {top}/cgroup.subtree_control" for name in ("cpu", "io", "memory")
    ]
    (top / "cgroup.controllers").write_text("cpu hugetlb\n")
    first += "39 31 0:36 / /cg/memory rw - cgroup cgroup rw,memory\n"
    assert controllers(second + first) == {
        "cpu": Controller("cpu", 2, top),
        "io": Controller("io", 1, Path("/cg/blkio")),
        "memory": Controller("memory", 1, Path("/cg/memory")),
    }
    assert controllers("") == {}


def test_a_limit_that_stands_is_found_in_the_top_group(tmp_path: Path) -> None:
    top, disk = Controller("io", 1, tmp_path), DiskConfig(1 << 30, "xfs", None, 40 * MB)
    [undo] = [undo for step in throttle_steps(top, "g", "7:1", disk, 1.0) for undo in step.undos]
    for limits, said in (("7:1 40000000\n7:11 3\n", "7:1\n"), ("7:11 40000000\n", ""), ("", "")):
        (tmp_path / "blkio.throttle.write_bps_device").write_text(limits)
        done = subprocess.run(undo.question, capture_output=True, text=True, check=True)
        assert done.stdout == said
    assert undo.answers == ("7:1",)


@pytest.mark.parametrize("known", [FIRST, SECOND])
def test_whatever_outlasts_the_lab_is_undone(known: dict[str, Controller]) -> None:
    loops = iter(f"/dev/loop{number}" for number in range(9))
    plan = list(steps("test-lab", nodes(), known, lambda: next(loops), lambda device: device[-1]))
    for step in plan:
        made = step.command[:3] == ("ip", "netns", "add") or step.command[0] in (
            *("fallocate", "losetup", "mkdir", "mount"),
        )
        of_the_top = step.command[-1].startswith("/cg/blkio/blkio.")
        assert bool(step.undos) == (made or of_the_top), step.command
    made_file_systems = [step.command for step in plan if step.command[0].startswith("mkfs.")]
    assert [each[0] for each in made_file_systems] == ["mkfs.xfs", "mkfs.ext4"]
    # A discard would give back the space that the files have taken.
    assert "-K" in made_file_systems[0] and "nodiscard" in made_file_systems[1][-2]
    # Limits come last: a file system is made as fast as the machine can.
    first = [step.command[0] for step in plan].index("mkfs.xfs")
    assert not any(
        "throttle" in step.command[-1] or "io.max" in step.command[-1] for step in plan[:first]
    )


def test_its_machines_are_offers(tmp_path: Path) -> None:
    catalog = load_catalog(write(tmp_path, described()))
    assert (catalog.provider, catalog.region) == ("lab", "test-lab")
    fast, slow = catalog.offers
    assert fast.on_demand and fast.on_demand.usd_per_hour == 1.0
    assert (fast.vcpus, fast.network.baseline_bytes_per_second) == (CPUS, LINK * MB)
    assert fast.disks and fast.disks[0].read_bytes_per_second == READ * MB
    assert fast.local_bytes == 320 << 20
    assert slow.disks and (slow.disks[0].count, slow.disks[0].bytes_each) == (2, None)
    assert (slow.local_bytes, slow.vcpus) == (80 << 20, None)


@pytest.mark.parametrize(("version", "file"), [(1, "memory.limit_in_bytes"), (2, "memory.max")])
def test_memory_is_limited_where_it_is_stated(tmp_path: Path, version: int, file: str) -> None:
    text = FILE.replace(f"cpus = {CPUS}", f'cpus = {CPUS}\nmemory = "1GiB"')
    memory = Controller("memory", version, Path("/cg"))
    limited, free = (
        [line(step.command) for step in create_groups(each, [memory])] for each in nodes(text)
    )
    assert any(each.startswith(f"{1 << 30} > ") and each.endswith(file) for each in limited)
    assert not any(each.endswith(file) for each in free)
    fast, slow = load_catalog(write(tmp_path, described(text))).offers
    assert (fast.memory_bytes, slow.memory_bytes) == (1 << 30, None)


def test_all_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preflight.os, "geteuid", lambda: 0)
    monkeypatch.setattr(preflight.shutil, "which", lambda name: None if "mkfs" in name else name)
    with pytest.raises(
        core.UsageError, match=r"mkfs.xfs is missing \(install xfsprogs\); mkfs.ext4"
    ):
        preflight.check_machine(nodes(), FIRST)
    monkeypatch.setattr(preflight, "_fails", lambda command: "no" if "bridge" in command else "")
    monkeypatch.setattr(preflight, "LOOP_CONTROL", Path("/dev/none"))
    monkeypatch.setattr(preflight, "KERNEL_MOUNTS", tmp_path / "filesystems")
    (tmp_path / "filesystems").write_text("nodev\tproc\n\text4\n")
    module = tmp_path / "modprobe"
    module.write_text("#!/bin/sh\nexit 1\n")
    module.chmod(0o755)
    monkeypatch.setattr(preflight.shutil, "which", lambda name: str(tmp_path / name))
    with pytest.raises(core.UsageError) as why:
        preflight.check_machine(nodes(), {"cpu": SECOND["cpu"]})
    for told in ("CONFIG_BRIDGE", "limit device rates", "/dev/none is missing", "CONFIG_XFS_FS"):
        assert told in str(why.value)
    for fine in ("CONFIG_VETH", "CFS_BANDWIDTH", "CONFIG_EXT4_FS"):
        assert fine not in str(why.value)
    module.write_text('#!/bin/sh\n[ "$*" = "--dry-run --quiet fs-xfs" ]\n')
    with pytest.raises(core.UsageError) as why:
        preflight.check_machine(nodes(), {"cpu": SECOND["cpu"]})
    assert "CONFIG_XFS_FS" not in str(why.value)
    with pytest.raises(core.UsageError, match="no control groups are mounted"):
        preflight.check_machine(nodes(), {})
    monkeypatch.setattr(preflight.os, "geteuid", lambda: 1000)
    with pytest.raises(core.UsageError, match="creating a lab requires root"):
        preflight.check_machine(nodes(), FIRST)


def test_a_lab_of_before_a_reboot_does_not_stand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record.LabRecord(FILE, 0, record.this_boot(), is_whole=True).save(tmp_path)
    assert record.require_up(tmp_path, None).config == described()
    assert record.free_network(tmp_path) == 1
    monkeypatch.setattr(record, "this_boot", lambda: "another")
    with pytest.raises(core.UsageError, match="was lost in a reboot"):
        record.require_up(tmp_path, None)
    record.LabRecord(TINY, 1, "another").save(tmp_path)
    with pytest.raises(core.UsageError, match=r"several labs are running \(test-lab, test-tiny\)"):
        record.require_up(tmp_path, None)
    with pytest.raises(core.UsageError, match="test-tiny is incomplete"):
        record.require_up(tmp_path, "test-tiny")
    with pytest.raises(core.UsageError, match="lab: there is no lab none"):
        record.require_up(tmp_path, "none")


def test_what_somebody_else_has_mounted_is_not_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lifecycle.os, "geteuid", lambda: 0)
    monkeypatch.setattr(lifecycle, "controllers", dict)  # Nor is a lab of this name that is up.
    room = tmp_path / "room"
    record.LabRecord(TINY, 0, record.this_boot()).save(room)
    theirs = room / "test-tiny" / "their own"
    theirs.mkdir()
    mounts = tmp_path / "mounts"
    mounts.write_text(f"7 1 0:3 / {str(theirs).replace(' ', chr(92) + '040')} rw - tmpfs none rw\n")
    monkeypatch.setattr(block_devices, "MOUNT_INFO", mounts)
    with pytest.raises(core.RunError, match=f"{theirs} is mounted in the lab's directory"):
        lifecycle.down("test-tiny", room)
    assert theirs.is_dir()
    mounts.write_text("7 1 0:3 / /elsewhere rw - tmpfs none rw\n")
    assert lifecycle.down("test-tiny", room) == "test-tiny" and not room.exists()


def test_who_is_on_a_node_changes_no_lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lifecycle.os, "geteuid", lambda: 0)
    monkeypatch.setattr(lifecycle, "OWN_GROUPS", tmp_path / "cgroup")
    (tmp_path / "cgroup").write_text("4:cpu:/tonnage-lab.test-tiny.a-0\n0::/\n")
    room = tmp_path / "room"
    room.mkdir()
    with pytest.raises(core.UsageError, match="is running inside a lab node"):
        lifecycle.down(None, room)
    (tmp_path / "cgroup").write_text("4:cpu:/\n0::/\n")
    assert lifecycle.down(None, room) is None and not room.exists()
