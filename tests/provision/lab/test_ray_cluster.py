"""Ray on a lab's nodes, with its commands replaced."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.data.copies import replace
from support.lab.configs import FIRST, TINY, nodes
from tonnage.base import core
from tonnage.provision.lab import faults, lifecycle, ray_cluster, record
from tonnage.provision.lab.nodes import Node
from tonnage.provision.lab.ray_cluster import start_arguments


def test_ray_tells_each_node_apart() -> None:
    head, worker = (start_arguments(node, "198.18.0.1:6379", Path("/ray")) for node in nodes())
    assert "--head" in head and "--address=198.18.0.1:6379" in worker
    assert "--num-cpus=1" in head
    assert "--node-name=slow.2x-0" in worker
    assert "--labels=provider=lab,machine-type=slow.2x" in worker
    assert not {each for each in head if "/ray" in each} & set(worker)


def test_while_ray_starts_a_node_has_all_cores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = TINY.replace("cpus = 1", "cpus = 0.5")
    (tmp_path / "test-tiny").mkdir()
    quota: dict[str, str] = {}

    def run(command: Sequence[str]) -> str:
        if "quota" in (file := command[-1]):
            quota[Path(file).parent.name.rpartition(".")[2]] = command[-2]
        return ""

    seen = []

    def start(some: Sequence[Node], *_: object) -> None:
        seen.append([quota[node.name] for node in some])
        if some[0].number:
            raise KeyboardInterrupt

    monkeypatch.setattr(ray_cluster, "controllers", lambda: {"cpu": FIRST["cpu"]})
    monkeypatch.setattr(ray_cluster, "_program", lambda: "/ray")
    monkeypatch.setattr(ray_cluster, "_start", start)
    there = record.LabRecord(text, 0, record.this_boot(), is_whole=True)
    with pytest.raises(KeyboardInterrupt):
        ray_cluster.start_on_nodes(
            there, there.nodes(tmp_path), run, lambda done, of: None, tmp_path
        )
    assert seen == [["-1"], ["-1"]]
    assert quota == {"a-0": "10000", "a-1": "10000"}


def cut_and_healed(
    monkeypatch: pytest.MonkeyPatch, room: Path, noted: record.LabRecord, cut_seconds: float
) -> tuple[list[str], float]:
    """The nodes on which Ray is to run after a node is healed, and how long that waited."""
    found: list[str] = []
    waited: list[float] = []

    def start_on_nodes(
        noted: record.LabRecord, nodes: Sequence[Node], *_: object
    ) -> record.LabRecord:
        found.extend(node.name for node in nodes)
        return noted

    noted.save(room)
    monkeypatch.setattr(lifecycle.os, "geteuid", lambda: 0)
    monkeypatch.setattr(faults, "run_command", lambda lock, command: "")
    monkeypatch.setattr(faults, "controllers", dict)
    monkeypatch.setattr(ray_cluster, "start_on_nodes", start_on_nodes)
    monkeypatch.setattr(faults, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    faults.inject_fault(None, "a-1", "cut-link", None, room)

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        with lifecycle.lab_lock(room):
            pass  # The lock is free while this waits.

    clock = SimpleNamespace(monotonic=lambda: 1000.0 + cut_seconds, sleep=sleep)
    monkeypatch.setattr(faults, "time", clock)
    healed = faults.heal_node(None, "a-1", lambda done, of: None, room)
    assert "a-1" not in healed.faults and healed.cut_since == {}
    return found, sum(waited)


def test_a_cluster_may_give_a_node_up_after_its_link_is_healed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    healed = partial(cut_and_healed, monkeypatch, tmp_path / "room")
    there = record.LabRecord(
        TINY, 0, record.this_boot(), is_whole=True, ray_address="198.18.0.1:6379"
    )
    for cut_seconds, waited in ((5.0, 0.0), (40.0, 35.0), (90.0, 0.0)):
        assert healed(there, cut_seconds) == (["a-0", "a-1"], waited)
    # Without Ray there is nothing to wait for, nor while its head is gone.
    assert healed(replace(there, ray_address=None), 40.0) == ([], 0.0)
    assert healed(replace(there, faults={"a-0": {"kill": None}}), 40.0) == ([], 0.0)
    of_three = replace(
        there, text=TINY.replace("count = 2", "count = 3"), faults={"a-2": {"kill": None}}
    )
    assert healed(of_three, 5.0) == (["a-0", "a-1"], 0.0)


def test_without_ray_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster.shutil, "which", lambda name: None)
    monkeypatch.setenv("TONNAGE_RAY", "/no/ray")
    with pytest.raises(core.UsageError, match="TONNAGE_RAY=/no/ray: program not found"):
        ray_cluster._program()
    monkeypatch.delenv("TONNAGE_RAY")
    monkeypatch.setattr(ray_cluster.sys, "executable", "/no/python")
    with pytest.raises(core.UsageError, match="Ray is not installed; install it"):
        ray_cluster._program()


def test_rays_own_python_is_found(tmp_path: Path) -> None:
    program = tmp_path / "ray"
    program.write_text("#!/usr/bin/env python3\nimport ray\n")
    assert ray_cluster._python(str(program)) == ["/usr/bin/env", "python3"]
    # What pip writes where the path of the environment is too long for a first line.
    program.write_text("#!/bin/sh\n'''exec' /long/python\n' '''\nimport ray\n")
    assert ray_cluster._python(str(program)) == [sys.executable]
    (tmp_path / "python").touch()
    assert ray_cluster._python(str(program)) == [str(tmp_path / "python")]


def test_a_cluster_that_does_not_answer_has_no_nodes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "ray"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setattr(ray_cluster, "nsenter_command", lambda node, command: ["sleep", "600"])
    monkeypatch.setattr(ray_cluster, "join_groups", lambda groups: None)
    monkeypatch.setattr(ray_cluster, "ANSWER_SECONDS", 0.1)
    there = record.LabRecord(TINY, 0, "", ray_address="198.18.0.1:6379", ray_program=str(program))
    assert ray_cluster._alive(there, nodes(TINY)[0], tmp_path) == []
