"""What a lab's commands say to who is not root, or names what is not there."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.lab.checks import FILE
from tonnage.base import core
from tonnage.provision.lab import enter_node, faults, lifecycle, ray_cluster, record


@pytest.mark.parametrize("verb", ["up", "status", "exec", "ray", "fault", "heal", "down"])
def test_each_command_says_that_it_needs_root(tonnage: Tonnage, verb: str) -> None:
    told = tonnage.run("lab", verb, "--help", check=True).stdout
    assert "Needs root." in " ".join(told.split())


def test_who_is_not_root_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(room: Path) -> Iterator[Path]:
        raise PermissionError

    monkeypatch.setattr(lifecycle.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(Path, "iterdir", refuse)

    def told(done: int, of: int) -> None:
        raise AssertionError

    for change in (
        partial(lifecycle.down, None, tmp_path),
        partial(ray_cluster.start_ray, None, told, tmp_path),
        partial(faults.inject_fault, None, "a-0", "kill", None, tmp_path),
        partial(faults.heal_node, None, "a-0", told, tmp_path),
    ):
        with pytest.raises(core.UsageError, match="changing a lab requires root; use sudo"):
            change()
    with pytest.raises(core.UsageError, match="inspecting a lab requires root; use sudo"):
        lifecycle.status(None, tmp_path)


def test_a_node_or_a_command_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = record.LabRecord(FILE, 0, record.this_boot())
    known = r"lab whole has no node a0 \(did you mean a-0\?\); its nodes are a-0"
    with pytest.raises(core.UsageError, match=known):
        lifecycle.find_node(there, "a0", tmp_path)
    monkeypatch.setenv("PATH", "/here:/there")
    for command, code, told in (
        ("tonnage", 127, r"tonnage: command not found in PATH=/here:/there"),
        (f"{tmp_path}/none", 127, f"{tmp_path}/none: file not found"),
        (f"{tmp_path}/", 126, "is not executable"),
    ):
        with pytest.raises(enter_node.NotStarted, match=told) as why:
            enter_node.check_program(command)
        assert why.value.code == code
