"""Pipes, devices and links where files are expected: one line, never a wait, nothing replaced."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.stores.disk import ROOT

JOB = ROOT / "tests" / "support" / "recorded" / "artifacts" / "job-1.json"
PLAN = ("plan", "sort", "--data", "20TB", "--from", "local", "--catalog", "aws-us-east-1-2014")
READ = {
    "job": ("plan", "FILE", "--data", "1TB"),
    "profile": ("plan", "sort", "--data", "1TB", "--profile", "FILE"),
    "catalog": ("plan", "sort", "--data", "1TB", "--catalog", "FILE"),
    "plan": ("launch", "FILE", "--lifetime", "9h", "--dry-run"),
    "report": ("report", "FILE"),
    "lab": ("lab", "up", "FILE"),
}


@pytest.mark.parametrize("command", READ.values(), ids=READ)
@pytest.mark.parametrize("kind", ["pipe", "device", "directory", "loop"])
def test_what_is_no_regular_file_is_refused_at_once(
    tonnage: Tonnage, tmp_path: Path, command: tuple[str, ...], kind: str
) -> None:
    file = tmp_path / "file.json"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    else:
        file.symlink_to("/dev/zero" if kind == "device" else file)
    if command[0] == "lab" and os.getuid():
        pytest.skip("labs need root")
    done = tonnage.run(*(str(file) if each == "FILE" else each for each in command))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert "file.json" in done.stderr


def test_a_manifest_that_is_a_pipe_is_refused_at_once(tonnage: Tonnage, disk: Path) -> None:
    (disk / "in").mkdir()
    tonnage.run("gensort", "100", disk / "in" / "part-00000", check=True)
    os.mkfifo(disk / "in" / "_tonnage.json")
    done = tonnage.run("valsort", disk / "in")
    assert done.returncode == 2 and "_tonnage.json is not a regular file" in done.stderr


def test_an_exported_document_replaces_a_link_and_not_its_target(
    tonnage: Tonnage, tmp_path: Path
) -> None:
    (tmp_path / "target").write_text("mine")
    (tmp_path / "cluster.yaml").symlink_to(tmp_path / "target")
    command = (*PLAN, "--emit", "ray", "--output")
    tonnage.run(*command, tmp_path / "cluster.yaml", check=True)
    assert (tmp_path / "target").read_text() == "mine"
    assert "cluster_name" in (tmp_path / "cluster.yaml").read_text()
    done = tonnage.run(*command, "/dev/stdout")
    assert (
        done.returncode == 2 and "/dev/stdout" in done.stderr and Path("/dev/stdout").is_symlink()
    )


def test_a_repeated_key_is_refused(tonnage: Tonnage, tmp_path: Path) -> None:
    text = json.dumps(json.loads(JOB.read_bytes()))
    file = tmp_path / "job.json"
    file.write_text(text.replace('"name":', '"name": "other", "name":', 1))
    done = tonnage.run("plan", file, "--data", "1TB")
    assert done.returncode == 2
    assert (
        done.stderr
        == f"tonnage: JOB {file}: the key 'name' appears twice in one object; remove one\n"
    )


def test_a_byte_order_mark_is_allowed(tonnage: Tonnage, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_bytes(b"\xef\xbb\xbf" + JOB.read_bytes())
    tonnage.run("plan", file, "--data", "1TB", check=True)


def test_an_empty_argument_is_refused(tonnage: Tonnage, tmp_path: Path) -> None:
    done = tonnage.run("valsort", "", cwd=tmp_path)
    assert done.returncode == 2 and "an argument is empty" in done.stderr
