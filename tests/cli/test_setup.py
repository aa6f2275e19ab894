"""``tonnage doctor`` and ``tonnage completion``."""

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

from cli.conftest import Call
from support.cli.command import Tonnage
from tonnage.base.system import cgroups
from tonnage.cli.options.optional_dependencies import EXTRAS
from tonnage.cli.setup import checks
from tonnage.measure.trial import environment


def test_doctor_prints_a_line_for_each_check(call: Call, disk: Path) -> None:
    code, out, err = call("doctor", "--dir", str(disk))
    assert (code, err) == (0, "")
    for name in ("core", "io_uring", f"O_DIRECT in {disk}", "memory", "CPUs", "Ray", "lab"):
        assert any(name in line for line in out.splitlines())
    assert out.splitlines()[-1].endswith("checks are ok.")


def test_doctor_as_json(call: Call, disk: Path) -> None:
    code, out, _ = call("doctor", "--dir", str(disk), "--json")
    found = json.loads(out)["checks"]
    assert code == 0
    assert {each["status"] for each in found} <= {"ok", "limited"}
    assert all(each["cost"] for each in found if each["status"] != "ok")


def test_a_missing_directory_is_essential(call: Call) -> None:
    code, out, _ = call("doctor", "--dir", "/none")
    assert code == 1
    assert "missing" in out and "No such file" in out


@pytest.mark.parametrize(
    ("number", "found"), [(errno.ENOSYS, "not supported by the kernel"), (errno.EPERM, "blocked")]
)
def test_without_io_uring(monkeypatch: pytest.MonkeyPatch, number: int, found: str) -> None:
    monkeypatch.setattr(checks, "io_uring_errno", lambda: number)
    check = checks.io_uring()
    assert check.status == "limited" and found in check.found
    assert check.cost and "threads" in check.cost


def test_without_direct_io(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(_: str) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(checks, "open_direct", refuse)
    check = checks.direct_io(tmp_path)
    assert check.status == "limited" and check.cost and "page cache" in check.cost
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("limit", "status"), [(None, "ok"), (1 << 30, "limited"), (100 << 20, "limited")]
)
def test_memory_limits(monkeypatch: pytest.MonkeyPatch, limit: int | None, status: str) -> None:
    monkeypatch.setattr(environment, "physical_memory", lambda: 16 << 30)
    monkeypatch.setattr(cgroups, "memory_limit", lambda: limit)
    check = checks.memory()
    assert check.status == status
    assert ("control group" in check.found) == (limit is not None)


def test_missing_extras_say_what_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    found = list(checks.extras())
    assert len(found) == len(EXTRAS)
    for each, extra in zip(found, EXTRAS, strict=True):
        assert each.status == "limited"
        assert each.cost and f"pip install 'tonnage[{extra}]'" in each.cost


def test_credentials_are_only_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert checks.credentials().status == "limited"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "secret-key")
    check = checks.credentials()
    assert check.status == "ok" and "secret-key" not in check.found


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("usage_usec 5\n", "ok"),
        ("nr_periods 1000\nnr_throttled 5\n", "ok"),
        ("nr_periods 1000\nnr_throttled 500\n", "limited"),
    ],
)
def test_throttling(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, status: str
) -> None:
    (tmp_path / "cpu.stat").write_text(text)
    found = checks.cpu_periods(tmp_path)
    monkeypatch.setattr(checks, "cpu_periods", lambda: found)
    assert checks.throttling().status == status


def test_what_the_lab_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(checks, "find", lambda program: None if program == "tc" else "/bin/it")
    check = checks.lab()
    assert check.status == "limited"
    assert "no root" in check.found and "no tc" in check.found and "no ip" not in check.found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(call: Call, shell: str) -> None:
    code, out, err = call("completion", shell)
    assert (code, err) == (0, "")
    assert "tonnage" in out and "_TONNAGE_COMPLETE" in out
    assert call("completion", "tcsh")[0] == 2


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("tonnage meas", ["measure"]),
        ("tonnage measure o", ["ops", "object", "over-time"]),
        ("tonnage measure disk --rep", ["--repetitions"]),
        ("tonnage cluster ", ["status", "down"]),
    ],
)
def test_bash_completes_commands_and_flags(
    tonnage: Tonnage, line: str, completed: list[str]
) -> None:
    script = subprocess.run(
        [tonnage.path, "completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    words = line.split(" ")
    array = " ".join(f"'{word}'" for word in words)
    program = f"""{script}
COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}
_tonnage_completion '{tonnage.path}'
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == completed, done.stderr
