"""An S3 server for the tests: versitygw over a directory, as `tests/setup.sh` has built it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.disk import ROOT, room

PROGRAM = ROOT / ".tools" / "s3server"
BUCKET = "tests"
KEYS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "a secret for tests"}


@dataclass(frozen=True)
class Server:
    """A server under way."""

    endpoint: str
    directory: Path

    def files(self) -> list[Path]:
        """What its bucket holds: objects, and parts of uploads that were not completed."""
        return sorted(path for path in (self.directory / BUCKET).rglob("*") if path.is_file())


@contextmanager
def server(*flags: str) -> Iterator[Server]:
    """A server with one bucket; the test is skipped where it is not built."""
    if not PROGRAM.exists():
        pytest.skip("the S3 server is not built: tests/setup.sh does it, and needs Go")
    with room("s3-") as directory:
        command: list[str | Path] = [PROGRAM, "-root", directory, "-bucket", BUCKET, *flags]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout
                lines = (line.strip() for line in process.stdout)
                endpoint = next(line for line in lines if line.startswith("http://"))
                yield Server(endpoint, directory)
            finally:
                process.kill()
