"""The undo journal undoes its own changes and nothing else, whenever and however often it ends."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from support.cli.processes import PATIENCE_SECONDS
from tonnage.base import core
from tonnage.base.system import (
    Change,
    Command,
    Undo,
    UndoJournal,
    locked_room,
    open_journal,
    undo_journal,
)
from tonnage.measure.layouts.compare import COMMAND, ROOM
from tonnage.measure.layouts.layout_steps import Method, plan_layout

HOLDER = """
import sys
from pathlib import Path
from tonnage.base.system import open_journal
with open_journal(Path(sys.argv[1]), "tonnage measure layouts") as journal:
    journal.execute(("sh", "-c", 'echo $$ > "$0" && exec sleep 600', sys.argv[2]))
"""
"""Holds the journal while a program runs, which writes its process id to a file."""


class Killed(BaseException):
    """The process ends here, as far as its journal shows."""


class Machine:
    """Things that can be stacked and removed; the machine dies before a set command."""

    def __init__(self, things: list[str], dies_before: int) -> None:
        self.things = things
        self._left = dies_before

    def execute(self, command: Command) -> str:
        if not self._left:
            raise Killed
        self._left -= 1
        verb, thing = command
        if verb == "make":
            if thing in self.things:
                raise core.RunError("it is there")
            self.things.append(thing)
        elif verb == "remove":
            # Last made, first removed: another order would pull the ground away.
            if self.things[-1] != thing:
                raise core.RunError("it is not the last")
            self.things.pop()
        elif thing not in self.things:
            raise core.RunError("there is none")
        return thing


def step(thing: str) -> Change:
    """The change that makes a thing."""
    return Change(("make", thing), (Undo((("remove", thing),), ("is there", thing), (thing,)),))


@given(
    count=some.integers(1, 5),
    nested=some.integers(0, 5),
    deaths=some.lists(some.integers(0, 40), max_size=4),
)
def test_after_kills_at_any_point_the_machine_is_as_before(
    count: int, nested: int, deaths: list[int]
) -> None:
    things = ["theirs"]
    with tempfile.TemporaryDirectory() as room:
        file = Path(room) / "journal.json"
        for number, death in enumerate([*deaths, 1000]):
            machine = Machine(things, death)
            try:
                journal = UndoJournal(file, machine.execute, COMMAND)
                journal.undo()
                assert things == ["theirs"]
                if number == 0:
                    outer = [step(f"outer {n}") for n in range(count)]
                    inner = [step(f"inner {n}") for n in range(nested)]
                    with journal.apply_temporarily(outer), journal.apply_temporarily(inner):
                        assert len(things) == 1 + count + nested
            except Killed:
                continue
            assert things == ["theirs"]
        assert things == ["theirs"]


def test_the_undo_of_a_change_is_on_disk_before_the_change_is_made(tmp_path: Path) -> None:
    file = tmp_path / "journal.json"
    seen: list[list[str]] = []

    def execute(command: Command) -> str:
        if command[0] == "make":
            seen.append([each["answers"][0] for each in json.loads(file.read_text())])
        return ""

    with UndoJournal(file, execute, COMMAND).apply_temporarily([step("a"), step("b")]):
        pass
    assert seen == [["a"], ["a", "b"]]
    assert json.loads(file.read_text()) == []


def test_undoing_is_retried_while_something_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo_journal, "PAUSE_SECONDS", 0.0)
    machine, busy = Machine([], 1000), 3

    def execute(command: Command) -> str:
        nonlocal busy
        if command[0] == "remove" and busy:
            busy -= 1
            raise core.RunError("busy")
        return machine.execute(command)

    with UndoJournal(tmp_path / "journal.json", execute, COMMAND).apply_temporarily([step("a")]):
        assert machine.things == ["a"]
    assert (machine.things, busy) == ([], 0)


def test_a_change_that_cannot_be_undone_stays_in_the_journal_with_all_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo_journal, "PAUSE_SECONDS", 0.0)
    file, machine = tmp_path / "journal.json", Machine([], 1000)

    def stuck(command: Command) -> str:
        if command == ("remove", "b"):
            raise core.RunError("busy for ever")
        return machine.execute(command)

    with (
        pytest.raises(core.RunError, match=r"cannot undo .*: busy for ever; run .* again"),
        UndoJournal(file, stuck, COMMAND).apply_temporarily([step("a"), step("b"), step("c")]),
    ):
        pass
    assert machine.things == ["a", "b"]
    UndoJournal(file, machine.execute, COMMAND).undo()
    assert machine.things == []


def test_applied_changes_stay_until_another_process_undoes_them(tmp_path: Path) -> None:
    file, machine = tmp_path / "journal.json", Machine([], 1000)
    UndoJournal(file, machine.execute, COMMAND).apply([step("a"), step("b")])
    with pytest.raises(core.RunError, match="it is there"):
        UndoJournal(file, machine.execute, COMMAND).apply([step("c"), Change(("make", "a"))])
    assert machine.things == ["a", "b", "c"]
    UndoJournal(file, machine.execute, COMMAND).undo()
    assert machine.things == []


def test_a_lock_belongs_to_the_existing_room_and_can_be_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = tmp_path / "room"
    with locked_room(room, COMMAND) as lock:
        # The holder has removed it: the next one locks another room.
        room.rmdir()
        with locked_room(room, COMMAND) as other:
            assert not os.path.samestat(os.fstat(lock), os.fstat(other))
            pauses: list[float] = []
            monkeypatch.setattr(time, "sleep", pauses.append)
            with (
                pytest.raises(core.UsageError, match="wait until it ends"),
                locked_room(room, COMMAND, patience_seconds=0.2),
            ):
                pass
            assert pauses  # It was tried again.


def test_a_room_has_one_process_and_is_removed_with_it(tmp_path: Path) -> None:
    room = tmp_path / "room"
    with open_journal(room, COMMAND):
        assert room.stat().st_mode & 0o777 == 0o700
        with (
            pytest.raises(core.UsageError, match="another tonnage measure layouts"),
            open_journal(room, COMMAND),
        ):
            pass
    assert not room.exists()


def test_a_command_that_outlives_its_process_keeps_the_lock(tmp_path: Path) -> None:
    room, pid_file = tmp_path / "room", tmp_path / "pid"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, room, pid_file])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (pid_file.exists() and pid_file.read_text().endswith("\n")):
        assert holder.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    program = int(pid_file.read_text())
    holder.kill()
    holder.wait()
    with (
        pytest.raises(core.UsageError, match="another tonnage measure layouts"),
        open_journal(room, COMMAND),
    ):
        pass
    handle = os.pidfd_open(program)
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    while Path(f"/proc/{program}").exists() and _state(program) != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.close(handle)
    with open_journal(room, COMMAND):
        pass
    assert not room.exists()


def record(file: Path, changes: list[Change]) -> None:
    """Write the journal of a killed process, whose changes are still in effect."""
    journal = UndoJournal(file, lambda _: "", COMMAND)
    journal.undo = lambda keep=0: None  # type: ignore[method-assign]  # It was killed.
    with journal.apply_temporarily(changes):
        pass


def test_the_journal_survives_a_reboot() -> None:
    # The kernel lists which file systems are in memory only.
    mounts = [line.split(" ")[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    holders = {point: kind for point, kind in mounts if ROOM.is_relative_to(point)}
    assert holders[max(holders, key=len)] != "tmpfs"
    assert not ROOM.is_relative_to("/run") and not ROOM.is_relative_to("/tmp")


def test_after_a_reboot_only_file_systems_made_by_us_are_wiped_from_files(
    tmp_path: Path,
) -> None:
    room, ours, theirs = tmp_path / "room", tmp_path / "ours", tmp_path / "theirs"
    method = Method("ext4", "lvm", "", None)
    # Loop devices are gone after a reboot: these names do not exist.
    gone = {"/dev/tonnage-gone-1": ours, "/dev/tonnage-gone-2": theirs}
    steps = plan_layout("separate", list(gone), method, room, gone).changes
    makes = [step.command for step in steps if step.command[0] == "mkfs.ext4"]
    for file in gone.values():
        file.touch()
        os.truncate(file, 8 << 20)
    subprocess.run([*makes[0][:-1], ours], check=True)
    subprocess.run(["mkfs.ext4", "-q", theirs], check=True)
    room.mkdir()
    record(room / "journal.json", list(steps))
    with open_journal(room, COMMAND):
        pass
    assert [_signatures(file) for file in gone.values()] == ["", "ext4"]
    assert not room.exists()


def _signatures(file: Path) -> str:
    command = ["wipefs", "--no-act", "--noheadings", "--output", "TYPE", file]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
