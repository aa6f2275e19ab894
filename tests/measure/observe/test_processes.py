"""A process tree's usage, from files like those of /proc: each process counts once."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tonnage.base.system import processes
from tonnage.base.system.processes import ResourceUsage
from tonnage.base.system.procfs import TICKS
from tonnage.measure.observe.process_tree import ProcessTree


def put(
    proc: Path,
    pid: int,
    parent: int,
    *,
    cpu: float = 0,
    children: float = 0,
    read: int = 0,
    waited: float = 0,
    ignores: bool = False,
) -> None:
    place = proc / str(pid)
    place.mkdir(parents=True, exist_ok=True)
    fields = ["0"] * 50
    fields[0], fields[1], fields[17], fields[19], fields[21] = "S", str(parent), "1", "77", "10"
    fields[11], fields[13] = str(int(cpu * TICKS)), str(int(children * TICKS))
    (place / "stat").write_text(f"{pid} (a (b) c) " + " ".join(fields))
    (place / "io").write_text(f"read_bytes: {read}\nwrite_bytes: 0\ncancelled_write_bytes: 0\n")
    (place / "status").write_text(f"SigIgn:\t{(1 << 16) * ignores:016x}\n")
    thread = place / "task" / str(pid)
    thread.mkdir(parents=True, exist_ok=True)
    (thread / "schedstat").write_text(f"{int(cpu * 1e9)} {int(waited * 1e9)} 1\n")
    (place / "fd").mkdir(exist_ok=True)


def remove(proc: Path, pid: int) -> None:
    shutil.rmtree(proc / str(pid))


def test_a_tree_includes_all_descendants_of_its_root(tmp_path: Path) -> None:
    for pid, parent in ((10, 1), (11, 10), (12, 11), (20, 1)):
        put(tmp_path, pid, parent, cpu=1, read=100)
    seen = ProcessTree([10], proc=tmp_path).sample(0.0)
    assert (seen.processes, seen.usage.cpu_seconds, seen.usage.read_bytes) == (3, 3.0, 300)


def test_an_ended_process_counts_once_through_its_parent(tmp_path: Path) -> None:
    put(tmp_path, 10, 1, cpu=1, read=100)
    put(tmp_path, 11, 10, cpu=2, read=50)
    tree = ProcessTree([10], proc=tmp_path)
    assert tree.sample(0.0).usage.read_bytes == 150
    remove(tmp_path, 11)
    put(tmp_path, 10, 1, cpu=1, children=2.5, read=160)  # The child read 10 more before it ended.
    used = tree.sample(0.1).usage
    assert (used.cpu_seconds, used.read_bytes) == (3.5, 160)


@pytest.mark.parametrize("ends_when", ["its parent is read", "it was read"])
def test_a_child_that_ends_during_a_sample_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_when: str
) -> None:
    """It was alive when the tree was listed; its parent was read before or after its end."""
    put(tmp_path, 10, 1, read=100)
    put(tmp_path, 11, 10, read=50)
    tree = ProcessTree([10], proc=tmp_path)
    tree.sample(0.0)
    read = processes.resource_usage

    def ends() -> None:
        remove(tmp_path, 11)
        put(tmp_path, 10, 1, read=150)

    def reads(pid: int, cpu_seconds: float, proc: Path) -> ResourceUsage:
        if pid == 10 and ends_when == "its parent is read" and (tmp_path / "11").exists():
            ends()
        found = read(pid, cpu_seconds, proc)
        if pid == 11:
            ends()
        return found

    monkeypatch.setattr(processes, "resource_usage", reads)
    assert tree.sample(0.1).usage.read_bytes == 150
    assert tree.sample(0.2).usage.read_bytes == 150


def test_usage_of_processes_that_nobody_in_the_tree_waits_for_is_kept(tmp_path: Path) -> None:
    """A child of a parent that ignores SIGCHLD; an orphan that init waits for; a root."""
    put(tmp_path, 10, 1, read=100, ignores=True)
    put(tmp_path, 11, 10, read=50)
    put(tmp_path, 12, 10, read=7)
    tree = ProcessTree([10], proc=tmp_path)
    tree.sample(0.0)
    remove(tmp_path, 11)
    put(tmp_path, 12, 1, read=7)
    assert tree.sample(0.1).usage.read_bytes == 157
    remove(tmp_path, 12)
    assert tree.sample(0.2).usage.read_bytes == 157
    remove(tmp_path, 10)
    seen = tree.sample(0.3)
    assert (seen.usage.read_bytes, seen.processes) == (157, 0)


def test_a_reused_pid_is_another_process(tmp_path: Path) -> None:
    put(tmp_path, 10, 1)
    put(tmp_path, 11, 10, read=50)
    tree = ProcessTree([10], proc=tmp_path)
    tree.sample(0.0)
    remove(tmp_path, 11)
    put(tmp_path, 10, 1, read=50)
    put(tmp_path, 11, 1, read=10**9)
    stat = tmp_path / "11" / "stat"
    stat.write_text(stat.read_text().replace(" 77 ", " 78 "))
    assert tree.sample(0.1).usage.read_bytes == 50


def test_processes_that_may_not_be_read_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, 10, 1, read=100)
    put(tmp_path, 11, 10, cpu=3, read=50)
    really = Path.read_text

    def refuse(path: Path, *args: Any, **options: Any) -> str:
        if path == tmp_path / "11" / "io":
            raise PermissionError(13, "Permission denied")
        return really(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", refuse)
    tree = ProcessTree([10], proc=tmp_path)
    used = tree.sample(0.0).usage
    assert (used.read_bytes, used.cpu_seconds, tree.unreadable) == (100, 3.0, {11})


def test_thread_times_give_the_busiest_thread_and_the_waits_for_cores(tmp_path: Path) -> None:
    put(tmp_path, 10, 1, cpu=1, waited=0.5)
    put(tmp_path, 11, 10, cpu=2)
    tree = ProcessTree([10], proc=tmp_path)
    assert tree.sample(0.0).core_waits_seconds == 0  # Before, it was not watched.
    put(tmp_path, 10, 1, cpu=1.3, waited=1.2)
    put(tmp_path, 11, 10, cpu=2.1, waited=0.1)
    seen = tree.sample(1.0)
    assert seen.busiest_core == pytest.approx(0.3)
    assert seen.core_waits_seconds == pytest.approx(0.8)


def test_a_process_with_a_socket_is_connected(tmp_path: Path) -> None:
    put(tmp_path, 10, 1)
    put(tmp_path, 11, 10)
    tree = ProcessTree([10], proc=tmp_path)
    (tmp_path / "11" / "fd" / "0").symlink_to("pipe:[1]")
    assert not tree.sample(0.0).is_connected
    (tmp_path / "11" / "fd" / "3").symlink_to("socket:[77]")
    assert tree.sample(0.1).is_connected
    remove(tmp_path, 11)
    assert not tree.sample(0.2).is_connected
