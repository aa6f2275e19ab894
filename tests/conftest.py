"""What every test may ask for."""

import fcntl
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from support.browser.chromium import Browser, chromium
from support.cli.command import Tonnage
from support.stores.disk import disk_dir
from support.stores.s3 import KEYS, Bucket, server
from tonnage.provision.lab import STATE_DIR

# A disk answers when it can: how long an example takes says nothing about the code.
# `make test` tries the same examples every time; `make test-all` tries new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("new", deadline=None, print_blob=True)
settings.load_profile("same")
# What is started in the background ignores these signals, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


class OneLab(LoadFileScheduling):
    """A file's tests run in one process, and so do all that make labs or network namespaces."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "labs" if makes_labs(file) else file


@cache
def makes_labs(file: str) -> bool:
    return "support.lab.checks" in (Path(__file__).parents[1] / file).read_text()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneLab:
    return OneLab(config, log)


@pytest.fixture(scope="session", autouse=True)
def no_lab_of_killed_tests() -> Iterator[None]:
    """Labs that tests made which were killed are gone: they would be in the way of other tests.

    While another run is under way, which holds the lock, they may be its own.
    """
    with (Path(tempfile.gettempdir()) / f"tonnage-tests-{os.geteuid()}.lock").open("w") as lock:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in sorted(STATE_DIR.glob("test-*")) if os.geteuid() == 0 else []:
                Tonnage().run("lab", "down", "--lab", left.name, check=True)
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@pytest.fixture(scope="session")
def tonnage() -> Tonnage:
    """The command under test."""
    return Tonnage()


@pytest.fixture
def disk() -> Iterator[Path]:
    """An empty directory on a real disk."""
    with disk_dir() as directory:
        yield directory


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests; each opens its own windows."""
    with chromium() as running:
        yield running


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The S3 server's keys, and no others, in the environment."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture
def s3(keys: None) -> Iterator[Bucket]:
    """The bucket of an S3 server that is as fast as it can be, and does not fail."""
    with server() as running:
        yield Bucket(running)
