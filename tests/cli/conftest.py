"""The command within the test's own process, and a file of records."""

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.data.records import blob
from tonnage.cli.main import main

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def records(disk: Path) -> Path:
    """A file of 1000 records."""
    (disk / "in").write_bytes(blob(1, 100_000))
    return disk / "in"


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """Runs a command line; returns its exit code, output and errors."""

    def run(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tonnage", *args])
        with pytest.raises(SystemExit) as ending:
            main()
        printed = capsys.readouterr()
        assert isinstance(ending.value.code, int)
        return ending.value.code, printed.out, printed.err

    before = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, before)
