"""Layouts of devices: what is made, what is refused, and that nothing of it ever stays behind."""

import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from support.cli.command import Tonnage
from support.cli.processes import started
from support.data.copies import replace
from support.data.measurements import PHASE, measurement
from tonnage.base import core
from tonnage.base.records import Measurement, Stage
from tonnage.base.system import Command, undo_journal
from tonnage.base.system.activity import activity_during
from tonnage.base.system.block_devices import attach_loop_device
from tonnage.base.system.sampler import MachineSampler
from tonnage.measure.disk import DiskSettings
from tonnage.measure.layouts import compare, layout_steps
from tonnage.measure.layouts.compare import COMMAND, ROOM, LayoutSettings, measure_layouts
from tonnage.measure.layouts.device_checks import check_devices
from tonnage.measure.layouts.layout_steps import Method, choose_method, describe_method, plan_layout
from tonnage.model.analysis.cpu_cost import layout_costs

MB = 1_000_000
SMALL_DEVICE = 320 << 20
"""Enough for xfs, whose least is 300 MiB."""
QUESTIONS = ("cat ", "stat ", "findmnt ", "blkid ", "lvm vgs ")
"""How commands begin that change nothing: if one fails, that is an answer."""
QUICK = ("--size=8MB", "--seconds=0.2", "--repetitions=1", "--memory=64MiB")

WORK = Stage(
    name="write",
    kind="write",
    workers=1,
    bytes=1000,
    records=10,
    busy_seconds=0.5,
    starved_seconds=0.0,
    blocked_seconds=0.0,
    cpu_seconds=0.2,
    memory_bytes=0,
    config={},
)
JOINED = Method("xfs", "lvm", "", 256 << 10)
ITSELF = Method("btrfs", "btrfs", "this kernel has no device mapper", None)

KILLED = """
import os, signal, sys
from tonnage.cli.main import main
from tonnage.base.system import undo_journal
left, real = int(sys.argv.pop(1)), undo_journal.run_command
def execute(lock, command):
    global left
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return real(lock, command)
undo_journal.run_command = execute
main()
"""
"""The command, which is killed before it runs one of its programs."""


def out(*command: str | Path) -> str:
    """What a program prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def on_this_machine(*command: str) -> str:
    """Runs a program as the journal does."""
    with open(os.devnull) as nothing:
        return undo_journal.run_command(nothing.fileno(), command)


def flags(command: Command) -> str:
    """A command in a line."""
    return " ".join(command)


def partition(image: Path) -> None:
    """Writes a table with one partition, from the first MiB to the end."""
    first = 2048
    sectors = image.stat().st_size // 512 - first
    entry = bytes([0, 0, 2, 0, 0x83, 0, 0, 0]) + struct.pack("<II", first, sectors)
    with image.open("r+b") as file:
        file.seek(446)
        file.write(entry + bytes(48) + b"\x55\xaa")


def sums(*paths: Path) -> list[str]:
    """Checksums of files or devices."""
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]


# Layouts as data.


def test_lvm_joins_devices_to_a_volume() -> None:
    room = Path("/room")
    made = plan_layout("raid0", ["/dev/a", "/dev/b"], JOINED, room)
    join_a, join_b, group, volume, format_, *mounted = made.changes
    for step, device in ((join_a, "/dev/a"), (join_b, "/dev/b")):
        identity = step.undos[0].answers[0]
        assert [len(part) for part in identity.split("-")] == [6, 4, 4, 4, 4, 4, 6]
        assert flags(step.command) == f"lvm pvcreate --uuid {identity} --norestorefile {device}"
        assert flags(step.undos[0].question).endswith(device)
    name = group.undos[0].answers[0]
    assert flags(group.command) == f"lvm vgcreate {name} /dev/a /dev/b"
    assert flags(group.undos[0].commands[0]) == f"lvm vgremove --yes --force {name}"
    assert flags(volume.command) == (
        f"lvm lvcreate --yes --extents 100%FREE --name data --stripes 2 --stripesize 262144b {name}"
    )
    assert volume.undos == ()
    assert flags(format_.command) == (
        f"mkfs.xfs -q -m uuid={format_.undos[0].answers[0]} /dev/{name}/data"
    )
    assert [flags(step.command) for step in mounted] == [
        "mkdir /room/raid0-0",
        f"mount -t xfs -o noatime /dev/{name}/data /room/raid0-0",
    ]
    assert made.mounts == (room / "raid0-0",)
    assert describe_method("raid0", JOINED) == "xfs on LVM, striped by 256 KiB"
    linear = plan_layout("jbod", ["/dev/a", "/dev/b"], JOINED, room)
    assert not any("--stripes" in step.command for step in linear.changes)
    assert describe_method("jbod", JOINED) == "xfs on LVM, linear"


@pytest.mark.parametrize(("layout", "profile"), [("jbod", "single"), ("raid0", "raid0")])
def test_btrfs_joins_devices_itself(layout: str, profile: str) -> None:
    made = plan_layout(layout, ["/dev/a", "/dev/b"], ITSELF, Path("/room"))
    format_, _, mount = made.changes
    identity = format_.undos[0].answers[0]
    assert flags(format_.command) == (
        f"mkfs.btrfs -q -U {identity} -d {profile} -m {profile} /dev/a /dev/b"
    )
    assert [undo.question[-1] for undo in format_.undos] == ["/dev/a", "/dev/b"]
    options = "noatime,nodatasum,device=/dev/a,device=/dev/b"
    assert flags(mount.command) == f"mount -t btrfs -o {options} /dev/a /room/{layout}-0"
    assert describe_method(layout, ITSELF) == f"btrfs {profile} (this kernel has no device mapper)"


def test_only_what_was_made_is_wiped() -> None:
    every = [
        undo
        for layout in layout_steps.LAYOUTS
        for method in (JOINED, ITSELF, replace(JOINED, file_system="ext4"))
        for step in plan_layout(layout, ["/dev/a", "/dev/b"], method, Path("/room")).changes
        for undo in step.undos
        if any(command[0] == "wipefs" for command in undo.commands)
    ]
    assert every
    for undo in every:
        assert undo.question[:3] == ("blkid", "--probe", "--match-tag")
        [identity] = undo.answers
        assert len(identity) > 30
        assert {command[-1] for command in undo.commands if command[0] != "btrfs"} == {
            undo.question[-1]
        }
    # All UUIDs differ, except those of the devices of one file system.
    joined_itself = [undo.answers for undo in every if undo.commands[0][0] == "btrfs"]
    others = [undo.answers for undo in every if undo.answers not in joined_itself]
    assert len(others) == len(set(others))


def test_single_uses_one_device_and_separate_all() -> None:
    devices = ["/dev/a", "/dev/b", "/dev/c"]
    alone = plan_layout("single", devices, JOINED, Path("/room"))
    assert (alone.devices, len(alone.mounts)) == (("/dev/a",), 1)
    apart = plan_layout("separate", devices, JOINED, Path("/room"))
    assert (apart.devices, len(apart.mounts)) == (tuple(devices), 3)


@pytest.mark.parametrize(
    ("programs", "has_mapper", "file_system", "chosen"),
    [
        ("mkfs.xfs mkfs.ext4 mkfs.btrfs lvm", True, None, ("xfs", "lvm", "")),
        ("mkfs.ext4 mkfs.btrfs lvm", True, None, ("ext4", "lvm", "")),
        ("mkfs.xfs mkfs.btrfs lvm", True, "btrfs", ("btrfs", "btrfs", "")),
        (
            "mkfs.xfs mkfs.btrfs lvm",
            False,
            None,
            ("btrfs", "btrfs", "this kernel has no device mapper"),
        ),
        ("mkfs.xfs mkfs.btrfs", True, None, ("btrfs", "btrfs", "lvm is missing (install lvm2)")),
    ],
)
def test_a_file_system_is_chosen_that_can_make_all_layouts(
    monkeypatch: pytest.MonkeyPatch,
    programs: str,
    has_mapper: bool,
    file_system: str | None,
    chosen: tuple[str, str, str],
) -> None:
    pretend(monkeypatch, programs, has_mapper)
    method = choose_method(layout_steps.LAYOUTS, file_system, None)
    assert (method.file_system, method.joined_by, method.lvm_obstacle) == chosen


@pytest.mark.parametrize(
    ("programs", "layout", "file_system", "stripe", "message"),
    [
        ("mkfs.xfs", "raid0", None, None, r"raid0 with xfs need LVM.*mkfs.btrfs is missing"),
        ("mkfs.xfs", "jbod", "xfs", None, r"file_system: jbod with xfs need LVM"),
        ("mkfs.btrfs", "raid0", None, 1 << 16, "btrfs stripes are always 64 KiB"),
        ("mkfs.xfs", "single", "ext4", None, r"mkfs.ext4 is missing \(install e2fsprogs\)"),
        ("mkfs.xfs", "single", None, 5000, "stripe_bytes: must be a power of two"),
    ],
)
def test_layouts_that_cannot_be_made_are_refused(
    monkeypatch: pytest.MonkeyPatch,
    programs: str,
    layout: str,
    file_system: str | None,
    stripe: int | None,
    message: str,
) -> None:
    pretend(monkeypatch, programs, has_mapper=False)
    with pytest.raises(core.UsageError, match=message):
        choose_method([layout], file_system, stripe)


def pretend(monkeypatch: pytest.MonkeyPatch, programs: str, has_mapper: bool) -> None:
    """Pretend that the machine has these programs, and a device mapper or none."""
    there = programs.split()
    monkeypatch.setattr(layout_steps.shutil, "which", lambda name: name if name in there else None)
    monkeypatch.setattr(layout_steps, "CONTROL", Path("/dev/null" if has_mapper else "/dev/none"))


def test_activity_during_a_phase_is_interpolated_from_samples() -> None:
    sampler = MachineSampler(["a", "b"])
    sampler.host |= {
        "seconds": [0.0, 1.0, 2.0, 3.0],
        "cpu_user_seconds": [5.0, 5.0, 6.0, 9.0],
        "cpu_system_seconds": [0.0, 0.0, 0.5, 0.5],
        "cpu_steal_seconds": [0.0, 0.0, 0.0, 4.0],
    }
    sampler.devices |= {
        "seconds": [0.0, 0.0, 1.0, 1.0, 2.0, 2.0],
        "device": ["a", "b"] * 3,
        "read_bytes": [0, 0, 100, 0, 300, 20],
        "written_bytes": [7] * 6,
    }
    found = activity_during(
        replace(PHASE, began_seconds=0.5, seconds=1.0, stages=[WORK]), ["a", "b"], sampler
    )
    assert found.device == "a, b"
    # From half of the first second to half of the next: 50 and 100 of a, 10 of b.
    assert (found.device_read_bytes, found.device_written_bytes) == (160, 0)
    # Half of the 1.5 core seconds of the second second, less those of the phase's own threads.
    assert found.foreign_cpu_seconds == pytest.approx(0.75 - WORK.cpu_seconds)
    assert found.stolen_cpu_seconds == 0.0


def test_cpu_costs_are_those_of_our_threads_and_of_the_whole_machine() -> None:
    happened = activity_during(replace(PHASE, stages=[WORK]), [], idle())
    trials = [
        replace(
            trial,
            phase=replace(PHASE, stages=[WORK]),
            activity=replace(happened, foreign_cpu_seconds=foreign),
        )
        for trial, foreign in zip(
            measurement("x", {"wo": [1.0] * 3}).trials, [0.1, 9.0, 0.3], strict=True
        )
    ]
    [(mode, cost)] = layout_costs(replace(measurement("x", {}), trials=trials)).items()
    assert mode == "wo"
    assert cost.own == pytest.approx(WORK.cpu_seconds / WORK.bytes)
    assert cost.machine == pytest.approx((WORK.cpu_seconds + 0.3) / WORK.bytes)


def idle() -> MachineSampler:
    """A sampler of an idle machine."""
    sampler = MachineSampler([])
    sampler.host = {name: [0.0, 0.0] for name in sampler.host}
    return sampler


def test_only_root_can_create_layouts(monkeypatch: pytest.MonkeyPatch, disk: Path) -> None:
    monkeypatch.setattr(compare.os, "geteuid", lambda: 1000)
    with pytest.raises(core.UsageError, match="requires root"):
        measure(disk, [disk])


# Layouts of real devices: files that become loop devices.


def root_only() -> str:
    """Why this machine cannot create layouts; empty if it can."""
    if os.geteuid():
        return "only root may attach loop devices"
    if subprocess.run(["losetup", "--find"], capture_output=True).returncode:
        return "there are no loop devices"
    return ""


needs_loops = pytest.mark.skipif(bool(root_only()), reason=root_only())
needs_lvm = pytest.mark.skipif(bool(obstacle := layout_steps.lvm_obstacle()), reason=str(obstacle))


@pytest.fixture
def images(disk: Path) -> list[Path]:
    """Two empty files, which can be devices."""
    files = [disk / "first image", disk / "second"]
    for file in files:
        file.touch()
        os.truncate(file, SMALL_DEVICE)
    return files


class Bystanders:
    """A file and a loop device that are not given to the command, and their contents."""

    def __init__(self, disk: Path) -> None:
        self._file, image = disk / "other", disk / "other image"
        for path in (self._file, image):
            path.write_bytes(os.urandom(8 * MB))
        self.device = Path(out("losetup", "--find", "--show", image))
        self._paths = (self._file, image, self.device)
        self._before = sums(*self._paths)

    def assert_untouched(self) -> None:
        """Their contents are unchanged, and the device is still attached."""
        assert sums(*self._paths) == self._before
        assert "other image" in out("losetup", "--all")


@pytest.fixture
def bystanders(disk: Path) -> Iterator[Bystanders]:
    """A file and a device that must not be touched."""
    others = Bystanders(disk)
    yield others
    others.assert_untouched()
    out("losetup", "--detach", others.device)


def assert_nothing_is_left(disk: Path, images: Sequence[Path], room: Path = ROOM) -> None:
    """No loop device, no mount, no journal, and no signature on the devices."""
    attached_files = out("losetup", "--list", "--noheadings", "--output", "BACK-FILE")
    assert not any(str(image) in attached_files for image in images)
    assert str(room) not in Path("/proc/mounts").read_text()
    assert not room.exists()
    assert [out("wipefs", "--no-act", "--noheadings", image) for image in images] == ["", ""]


def settings(devices: Sequence[Path], **changes: Any) -> LayoutSettings:
    """Settings that measure two layouts briefly."""
    chosen = LayoutSettings(
        devices=tuple(devices),
        layouts=("single", "separate"),
        modes=("wo",),
        file_system="xfs",
        stripe_bytes=None,
        rounds=1,
        seconds=0.2,
        size_bytes=8 * MB,
        memory_bytes=64 << 20,
        seed=1,
    )
    return replace(chosen, **changes)


def measure(disk: Path, devices: list[Path], out: str = "out", **changes: Any) -> list[Measurement]:
    """Measure in this process, with the journal's room on the disk."""
    return measure_layouts(
        settings(devices, **changes),
        disk / out,
        destroy=False,
        command=["test"],
        on_round=lambda _: nullcontext(lambda _: None),
        room=disk / "room",
    )


def pretended(settings: DiskSettings, **arguments: Any) -> Measurement:
    """What `run_disk_rounds` returns if each mode moves a byte per second."""
    result = measurement("x", {mode: [1.0] for mode in settings.modes})
    return replace(result, environment=arguments["environment"])


@needs_loops
@pytest.mark.parametrize(
    ("file_system", "names"),
    [
        ("xfs", ["single", "separate"]),
        ("btrfs", ["single", "separate", "jbod", "raid0"]),
        pytest.param("ext4", ["single", "separate", "jbod", "raid0"], marks=needs_lvm),
    ],
)
def test_layouts_are_measured_and_removed(
    tonnage: Tonnage,
    disk: Path,
    images: list[Path],
    bystanders: Bystanders,
    file_system: str,
    names: list[str],
) -> None:
    options = [f"--file-system={file_system}", "--output", disk / "kept", "--json", *QUICK]
    said = tonnage.run("measure", "layouts", *images, "--layout", *names, *options, check=True)
    done = json.loads(said.stdout)
    found = [Measurement.from_json(each) for each in done["measurements"]]
    assert [each.settings["layout"] for each in found] == names
    for each in found:
        assert {trial.name for trial in each.trials} == {"wo", "ro", "rw"}
        assert each.environment and each.environment.versions[f"mkfs.{file_system}"]
        assert {device.file_system for device in each.environment.devices} == {file_system}
        assert each.settings["made_by"].startswith(file_system)
        for trial in each.trials:
            assert any(file_system in command for command in trial.settings["commands"])
        depth = {trial.name: trial.step.outstanding for trial in each.trials if trial.step}
        at_once = 16 * len(each.environment.devices)
        assert depth == {"wo": at_once, "ro": at_once, "rw": 2 * at_once}
        moved = {trial.name: trial.activity for trial in each.trials}
        assert all(each and each.device.startswith("loop") for each in moved.values())
        assert len(each.scorecard) == 6
    separate = next(each for each in found if each.settings["layout"] == "separate")
    assert separate.environment and len(separate.environment.devices) == 2
    ways = {(each["subject"], each["way"], each["than"]) for each in done["ratios"]}
    subjects = ("read", "readwrite", "write")
    assert ways == {(each, name, "single") for each in subjects for name in names[1:]}
    assert all(each["ratio"]["value"] > 0 for each in done["ratios"])
    for of in done["cpu_seconds_per_byte"].values():
        assert all(0 <= cost["own"] <= cost["machine"] for cost in of.values())
    whole = [Measurement.read(disk / "kept" / name / "measurement.json") for name in names]
    assert whole == found
    assert_nothing_is_left(disk, images)


@pytest.mark.slow
@needs_loops
def test_btrfs_bypasses_the_page_cache(disk: Path, images: list[Path]) -> None:
    [done] = measure(disk, images, layouts=("raid0",), file_system="btrfs", modes=("wo", "ro"))
    assert done.page_cache == "bypassed: all files were read and written directly"
    # With checksums it would claim so too, but use the page cache.
    assert done.environment and done.environment.devices[0].mount_options.count("nodatasum") == 1


@pytest.mark.slow
@needs_loops
@pytest.mark.parametrize(
    ("layout", "file_system", "is_done"),
    [
        ("separate", "xfs", False),
        ("single", "ext4", True),
        ("raid0", "btrfs", True),
        pytest.param("raid0", "xfs", True, marks=needs_lvm),
    ],
)
def test_when_a_command_fails_everything_is_undone(
    monkeypatch: pytest.MonkeyPatch,
    disk: Path,
    images: list[Path],
    bystanders: Bystanders,
    layout: str,
    file_system: str,
    is_done: bool,
) -> None:
    real = undo_journal.run_command
    monkeypatch.setattr(compare, "run_disk_rounds", pretended)
    monkeypatch.setattr(undo_journal, "PAUSE_SECONDS", 0.01)
    changes: dict[str, Any] = {"layouts": (layout,), "file_system": file_system}

    failed = 0
    for number in range(100):
        left = number

        def execute(lock: int, command: Command) -> str:
            nonlocal left
            asks = flags(command).startswith(QUESTIONS)
            left -= not asks
            if asks or left != -1:
                return real(lock, command)
            if is_done:
                real(lock, command)
            raise core.RunError("injected")

        monkeypatch.setattr(undo_journal, "run_command", execute)
        try:
            measure(disk, images, out=f"out-{number}", **changes)
        except core.RunError as why:
            assert str(why) == "injected"
            failed += 1
        assert_nothing_is_left(disk, images, disk / "room")
        if left >= 0:
            break
    # A failed undo command is retried, so it causes no error.
    assert 9 <= failed < number


@pytest.mark.slow
@needs_loops
@pytest.mark.parametrize(
    ("layout", "file_system"),
    [
        ("single", "ext4"),
        ("raid0", "btrfs"),
        pytest.param("raid0", "ext4", marks=needs_lvm),
    ],
)
def test_after_a_kill_at_any_point_the_next_command_undoes_leftovers(
    disk: Path, images: list[Path], bystanders: Bystanders, layout: str, file_system: str
) -> None:
    choice = ["--layout", layout, f"--file-system={file_system}", "--mode=wo", *QUICK]
    killed = 0
    # Before every third command only: each kill starts a Python process.
    for number in range(0, 200, 3):
        command = [sys.executable, "-c", KILLED, str(number), "measure", "layouts"]
        command += [*map(str, images), *choice]
        done = subprocess.run(command, capture_output=True, text=True, cwd=disk)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        killed += 1
        assert ROOM.exists()
        with undo_journal.open_journal(ROOM, COMMAND):
            pass  # As every command starts.
        assert_nothing_is_left(disk, images)
        bystanders.assert_untouched()
    assert killed >= 4
    assert_nothing_is_left(disk, images)


@pytest.mark.slow
@needs_loops
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_during_a_measurement_undoes_the_layout(
    tonnage: Tonnage, disk: Path, images: list[Path], bystanders: Bystanders, number: signal.Signals
) -> None:
    kind = ["--layout", "separate", "--file-system=xfs", "--mode=ro"]
    long = ["--size=100MB", "--seconds=600", "--repetitions=1000"]
    with started([tonnage.path, "measure", "layouts", *images, *kind, *long], disk) as running:
        running.wait_until(lambda: f"{ROOM}/separate-1" in Path("/proc/mounts").read_text())
        running.wait_until(lambda: bool(running.open_files(ROOM / "separate-1")))
        said = tonnage.run("measure", "layouts", images[0], cwd=disk)
        assert said.returncode == 2
        assert "another tonnage measure layouts is running" in said.stderr
        code, _, _ = running.end(number)
    assert code == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    if number == signal.SIGKILL:
        assert ROOM.exists()
        # Any next command undoes it, even one that is refused.
        assert tonnage.run("measure", "layouts", disk, cwd=disk).returncode == 2
    assert_nothing_is_left(disk, images)


# Recorded trials.


@pytest.mark.slow
@needs_loops
def test_a_killed_measurement_resumes_and_keeps_its_trials(
    tonnage: Tonnage, disk: Path, images: list[Path], bystanders: Bystanders
) -> None:
    kept, names, modes, rounds = disk / "kept", ["single", "separate"], ["wo", "ro"], 5
    command: list[Any] = ["measure", "layouts", *images, "--layout", *names, "--mode", *modes]
    command += ["--file-system=xfs", "--output", kept, *QUICK, f"--repetitions={rounds}"]
    with started([tonnage.path, *command], disk) as running:
        running.wait_until(lambda: (kept / "single" / "trial-00003.json").exists())
        running.end(signal.SIGKILL)
    had = {path: path.read_bytes() for path in kept.glob("*/*.json")}
    assert 6 <= len(had) < len(names) * (len(modes) * rounds + 1)
    found = json.loads(tonnage.run(*command, "--json", check=True).stdout)["measurements"]
    assert {path: path.read_bytes() for path in had} == had
    for each in found:
        tried = [(trial["step"]["round"], trial["name"]) for trial in each["trials"]]
        assert tried == [(number, mode) for number in range(rounds) for mode in modes]
        assert [figure["trials"] for figure in each["figures"]] == [rounds] * len(modes)
        assert each["environment"]["devices"] and each["page_cache"].startswith("bypassed")
    written = sorted(kept.glob("*/trial-*.json"), key=lambda path: path.stat().st_mtime_ns)
    # The order of seed 1, whatever was killed.
    turns = "separate single single separate separate single single separate single separate"
    assert [path.parent.name for path in written[:: len(modes)]] == turns.split()
    said = tonnage.run(*command, check=True).stdout
    headings = [line for line in said.splitlines() if line.startswith("s") and " / " not in line]
    assert [line.split(" ")[0] for line in headings] == names
    assert said.endswith(f"Results: {kept}. For an HTML report: tonnage report {kept}\n")
    analysis = json.loads(tonnage.run("report", kept, "--json", check=True, cwd=disk).stdout)
    assert {each["id"] for each in analysis["cited"]} == {each["id"] for each in found}
    assert_nothing_is_left(disk, images)


@pytest.mark.slow
@needs_loops
def test_only_missing_modes_are_measured(
    monkeypatch: pytest.MonkeyPatch, disk: Path, images: list[Path]
) -> None:
    run = Mock(side_effect=pretended)
    monkeypatch.setattr(compare, "run_disk_rounds", run)
    changes: dict[str, Any] = {"modes": ("wo", "ro"), "rounds": 2}
    # As left by a kill at the start.
    (disk / "out" / "single" / ".begun.json.killed").mkdir(parents=True)
    whole = measure(disk, images, **changes)
    assert [call.args[0].modes for call in run.mock_calls] == [("wo", "ro")] * 4
    (disk / "out" / "separate" / "trial-00003.json").unlink()
    again = measure(disk, images, **changes)
    assert [call.args[0].modes for call in run.mock_calls[4:]] == [("ro",)]
    assert [len(each.trials) for each in again] == [4, 4]
    assert [each.id for each in again] == [each.id for each in whole]
    # A complete measurement needs no devices, not even existing ones.
    images[1].unlink()
    assert measure(disk, images, **changes) == again


@needs_loops
def test_an_output_directory_of_something_else_is_refused_before_any_command(
    monkeypatch: pytest.MonkeyPatch, disk: Path, images: list[Path]
) -> None:
    monkeypatch.setattr(compare, "run_disk_rounds", pretended)
    measure(disk, images)
    (disk / "full" / "letter").mkdir(parents=True)
    before = sorted(disk.rglob("*"))
    monkeypatch.setattr(undo_journal, "run_command", lambda *_: pytest.fail("a command was run"))
    for changes, told in (
        ({"seed": 2}, "seed: .* was started with seed=1, not 2"),
        ({"devices": (images[1], images[0])}, "devices: .* was started with"),
        ({"file_system": "ext4"}, "file_system: .* was started with file_system=xfs, not ext4"),
        ({"layouts": ("single",)}, r"contains other files \(separate\)"),
        ({"layouts": ("single", "separate", "jbod"), "file_system": "btrfs"}, "started with"),
        ({"out": "full"}, r"contains other files \(letter\)"),
    ):
        with pytest.raises(core.UsageError, match=told):
            measure(disk, **{"devices": images} | changes)
    assert sorted(disk.rglob("*")) == before


@pytest.mark.slow
@needs_loops
def test_file_systems_made_by_others_since_are_not_wiped(disk: Path, images: list[Path]) -> None:
    room = disk / "room"
    room.mkdir()
    made = plan_layout("single", [str(images[0])], replace(JOINED, file_system="ext4"), room)
    stale = [undo for step in made.changes for undo in step.undos]
    with undo_journal.open_journal(room, COMMAND) as noted:
        noted._write(stale)  # As if killed; then another user made a file system there.
        out("mkfs.ext4", "-q", images[0])
        before = sums(images[0])
    assert sums(images[0]) == before
    assert not room.exists()


# What is refused.


@needs_loops
@pytest.mark.parametrize(
    ("make", "told"),
    [
        (partial(out, "mkfs.xfs", "-q"), "(xfs)"),
        (partial(out, "mkfs.ext4", "-q"), "(ext4)"),
        (partial(out, "mkswap"), "(swap)"),
        (partition, "(dos)"),
    ],
)
def test_a_device_with_data_is_refused_unless_it_may_be_destroyed(
    tonnage: Tonnage, disk: Path, images: list[Path], make: Callable[[Path], object], told: str
) -> None:
    make(images[0])
    before = sums(images[0])
    options = ["--file-system=xfs", "--mode=wo", *QUICK]
    said = tonnage.run("measure", "layouts", images[0], *options, cwd=disk)
    assert said.returncode == 2
    assert told in said.stderr and "--destroy" in said.stderr
    assert sums(images[0]) == before
    tonnage.run("measure", "layouts", images[0], "--destroy", *options, check=True, cwd=disk)
    assert_nothing_is_left(disk, images)


@needs_loops
def test_a_device_in_use_is_refused_even_with_destroy(
    tonnage: Tonnage, disk: Path, images: list[Path]
) -> None:
    out("mkfs.ext4", "-q", images[0])
    mount = disk / "mount"
    mount.mkdir()
    device = Path(out("losetup", "--find", "--show", images[0]))
    try:
        out("mount", device, mount)
        try:
            before = sums(images[0])
            for name, told in ((device, "is mounted at"), (images[0], "is attached as")):
                for destroy in ([], ["--destroy"]):
                    said = tonnage.run("measure", "layouts", name, *destroy, *QUICK, cwd=disk)
                    assert (said.returncode, said.stdout) == (2, "")
                    assert told in said.stderr
            assert sums(images[0]) == before
        finally:
            out("umount", mount)
    finally:
        out("losetup", "--detach", device)
    assert not ROOM.exists()


@needs_loops
def test_a_device_with_a_mounted_partition_is_refused(
    tonnage: Tonnage, disk: Path, images: list[Path]
) -> None:
    partition(images[0])
    mount = disk / "mount"
    mount.mkdir()
    device = Path(out("losetup", "--find", "--show", "--partscan", images[0]))
    try:
        part = Path(f"{device}p1")
        if not part.exists():  # This kernel does not read such tables: add the partition by hand.
            first, end = 2048, SMALL_DEVICE // 512
            out("addpart", device, "1", str(first), str(end - first))
        said = tonnage.run("measure", "layouts", device, part, "--destroy", *QUICK, cwd=disk)
        assert said.returncode == 2 and "overlap" in said.stderr
        out("mkfs.ext4", "-q", part)
        out("mount", part, mount)
        try:
            said = tonnage.run("measure", "layouts", device, "--destroy", *QUICK, cwd=disk)
            assert said.returncode == 2
            assert f"is mounted at {mount} ({part})" in said.stderr
        finally:
            out("umount", mount)
    finally:
        out("losetup", "--detach", device)


@needs_loops
def test_a_block_device_can_be_given_by_a_link(
    tonnage: Tonnage, disk: Path, images: list[Path]
) -> None:
    device = Path(out("losetup", "--find", "--show", images[0]))
    link = disk / "link"
    link.symlink_to(device)
    try:
        options = ["--file-system=xfs", *QUICK]
        tonnage.run("measure", "layouts", link, *options, check=True, cwd=disk)
        assert str(images[0]) in out("losetup", "--list", "--output", "BACK-FILE", device)
    finally:
        out("losetup", "--detach", device)
    assert_nothing_is_left(disk, images)


@needs_loops
def test_unusable_devices_are_refused(disk: Path, images: list[Path]) -> None:
    (disk / "link").symlink_to(images[0])
    (disk / "hard").hardlink_to(images[0])
    for names, told in (
        ([disk / "none"], "No such file"),
        ([disk], "neither a block device nor a regular file"),
        ([Path("/dev/null")], "neither a block device nor a regular file"),
        ([images[0], images[0]], "is listed twice"),
        ([images[0], disk / "link"], "is listed twice"),
        ([images[0], disk / "hard"], "is listed twice"),
    ):
        with pytest.raises(core.UsageError, match=told):
            check_devices(names, lambda command: on_this_machine(*command), destroy=True)
    with pytest.raises(core.UsageError, match="reduce the size"):
        measure(disk, images, size_bytes=200 * MB)
    with pytest.raises(core.UsageError, match="layouts: separate needs at least two devices"):
        measure(disk, images[:1])
    assert_nothing_is_left(disk, images, disk / "room")


def test_users_of_a_device_and_of_its_partitions_are_found() -> None:
    from tonnage.measure.layouts.device_checks import _users_in

    def node(path: str, kind: str, *children: dict[str, Any], at: str | None = None) -> Any:
        return {"path": path, "type": kind, "mountpoints": [at], "children": list(children)}

    free = node("/dev/a", "disk", node("/dev/a1", "part"))
    assert list(_users_in(free)) == []
    used = node(
        "/dev/a",
        "disk",
        node("/dev/a1", "part", at="/data"),
        node("/dev/a2", "part", at="[SWAP]"),
        node("/dev/a3", "part", node("/dev/md0", "raid0")),
    )
    assert list(_users_in(used)) == [
        "is mounted at /data (/dev/a1)",
        "is used as swap",
        "is part of /dev/md0",
    ]


def test_a_loop_device_is_detached_only_from_its_file() -> None:
    [undo] = attach_loop_device(Path("/images/a"), "/dev/loop7").undos
    assert undo.question == ("cat", "/sys/block/loop7/loop/backing_file")
    assert undo.answers == ("/images/a", "/images/a (deleted)")
