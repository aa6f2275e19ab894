"""An S3 server for the tests: versitygw over a directory, as `tests/setup.sh` has built it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
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


class Bucket:
    """A server's bucket, seen by another client than the one that is tested."""

    def __init__(self, running: Server) -> None:
        self.endpoint = running.endpoint
        self._files = running.directory / BUCKET
        self._client: Any = boto3.client(
            "s3",
            endpoint_url=running.endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            config=boto3.session.Config(retries={"max_attempts": 10}),
        )

    def put(self, key: str, content: bytes) -> None:
        """Put an object."""
        self._client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def begin(self, key: str) -> None:
        """Begin an upload, and leave it."""
        self._client.create_multipart_upload(Bucket=BUCKET, Key=key)

    def content(self, folder: str) -> dict[str, bytes]:
        """The objects of a folder, by their names in it."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=f"{folder}/"
        )
        names = [each["Key"] for page in pages for each in page.get("Contents", [])]
        # As the server has them: it may fail those that ask.
        return {
            name.removeprefix(f"{folder}/"): (self._files / name).read_bytes() for name in names
        }

    def uploads(self) -> list[str]:
        """Objects that somebody began to put and neither completed nor gave up."""
        listed = self._client.list_multipart_uploads(Bucket=BUCKET)
        return [each["Key"] for each in listed.get("Uploads", [])]

    def sort(self, disk: Path, *more: str, source: str = "in/") -> list[str | Path]:
        """The command's arguments, for a sort in little memory."""
        places: list[str | Path] = [f"s3://{BUCKET}/{source}", "--output", f"s3://{BUCKET}/out"]
        places += ["--scratch", disk / "scratch", "--endpoint-url", self.endpoint]
        return ["run", "sort", *places, "--memory=64MiB", *more]
