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


@pytest.mark.parametrize("kind", ["loop", "dangling", "pipe", "not UTF-8"])
@pytest.mark.parametrize("place", ["input", "output", "scratch"])
def test_a_sort_refuses_such_places_in_a_line(
    tonnage: Tonnage, tmp_path: Path, place: str, kind: str
) -> None:
    (tmp_path / "in.csv").write_text("k\n2\n1\n")
    paths = {name: tmp_path / name for name in ("output", "scratch")}
    paths["input"] = tmp_path / "in.csv"
    odd = tmp_path / ("odd\udcff" if kind == "not UTF-8" else "odd.csv")
    if kind == "pipe":
        os.mkfifo(odd)
    elif kind == "not UTF-8":
        paths["input"].rename(odd) if place == "input" else None
    else:
        odd.symlink_to(odd if kind == "loop" else tmp_path / "gone")
    paths[place] = odd
    where = ("--output", paths["output"], "--scratch", paths["scratch"], "--input-format", "csv")
    done = tonnage.run("run", "sort", paths["input"], "--by", "k", *where)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "odd" in done.stderr
    assert not list(tmp_path.glob("output/*")) and not (tmp_path / "gone").exists()


def test_names_with_any_characters_are_files(tonnage: Tonnage, tmp_path: Path) -> None:
    names = ["a b.csv", "%20#?&.csv", "new\nline.csv", "ä'\"$.csv", "x" * 251 + ".csv"]
    (tmp_path / "in [x]").mkdir()
    for number, name in enumerate(names):
        (tmp_path / "in [x]" / name).write_text(f"k\n{number}\n")
    where = ("--output", tmp_path / "out #%?", "--scratch", tmp_path / "s\nc")
    tonnage.run("run", "sort", tmp_path / "in [x]", "--by", "-k", *where, check=True)
    assert (tmp_path / "out #%?" / "part-00000.csv").read_text() == "k\n4\n3\n2\n1\n0\n"


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
