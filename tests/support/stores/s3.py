"""An S3 server for tests: versitygw over a directory, built by `tools/setup-tests`."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from support.stores.disk import ROOT, disk_dir

PROGRAM = ROOT / ".tools" / "s3server"
BUCKET = "tests"
KEYS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "a secret for tests"}


@dataclass(frozen=True)
class Server:
    """A running server."""

    endpoint: str
    directory: Path

    def files(self) -> list[Path]:
        """The files of its bucket: objects, and parts of incomplete uploads."""
        return sorted(path for path in (self.directory / BUCKET).rglob("*") if path.is_file())


@contextmanager
def server(*flags: str) -> Iterator[Server]:
    """Run a server with one bucket; fails the test if it is not built."""
    if not PROGRAM.exists():
        pytest.fail("the S3 server is not built: run make setup-test (needs Go)", pytrace=False)
    with disk_dir("s3-") as directory:
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
    """A server's bucket, accessed by a client other than the tested one."""

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
        self._client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def begin_upload(self, key: str) -> None:
        """Begin a multipart upload and leave it incomplete."""
        self._client.create_multipart_upload(Bucket=BUCKET, Key=key)

    def content(self, folder: str) -> dict[str, bytes]:
        """The contents of a folder's objects, by their names in it."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=f"{folder}/"
        )
        names = [each["Key"] for page in pages for each in page.get("Contents", [])]
        # Read from the server's disk: the server itself may inject faults.
        return {
            name.removeprefix(f"{folder}/"): (self._files / name).read_bytes() for name in names
        }

    def uploads(self) -> list[str]:
        """The keys of incomplete multipart uploads."""
        listed = self._client.list_multipart_uploads(Bucket=BUCKET)
        return [each["Key"] for each in listed.get("Uploads", [])]

    def sort_command(self, disk: Path, *more: str, source: str = "in/") -> list[str | Path]:
        """The arguments of a sort in little memory."""
        places: list[str | Path] = [f"s3://{BUCKET}/{source}", "--output", f"s3://{BUCKET}/out"]
        places += ["--scratch", disk / "scratch", "--endpoint-url", self.endpoint]
        return ["run", "sort", *places, "--memory=64MiB", *more]
