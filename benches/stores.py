"""S3 servers for benches: the tests' own, bare or shaped like a cloud store seen from one machine,
here or on a node of a lab.

A shaped store takes 40 ms to the first byte and gives each connection 85 MB/s, and all of them
together no more than a cap.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tonnage.provision.lab.nodes import Node

ROOT = Path(__file__).resolve().parents[1]
SERVER = ROOT / ".tools" / "s3server"
BUCKET = "bench"
KEYS = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "a secret for tests",
    "AWS_REGION": "us-east-1",
}
PORT = 9000
FIRST_BYTE_SECONDS, RATE = 0.04, 85e6
FAST: Sequence[str] = ()


def shaped(cap: float) -> Sequence[str]:
    """Return the flags of a shaped server with a cap of ``cap`` bytes a second."""
    return ["-first-byte", f"{FIRST_BYTE_SECONDS}s", "-rate", str(RATE), "-total", str(cap)]


@contextmanager
def served(directory: Path, flags: Sequence[str] = FAST) -> Iterator[str]:
    """Serve a directory; yields the address."""
    with _running([str(SERVER), "-root", str(directory), "-bucket", BUCKET, *flags]) as address:
        yield address


@contextmanager
def served_on(lab: str, node: Node, directory: Path) -> Iterator[str]:
    """Serve a directory on a node of a lab, for the lab's other nodes; yields the address."""
    command = [sys.executable, "-m", "tonnage", "lab", "exec", "--lab", lab, node.name, "--"]
    command += [str(SERVER), "-root", str(directory), "-bucket", BUCKET]
    with _running([*command, "-address", f"{node.address}:{PORT}"]) as address:
        yield address


@contextmanager
def _running(command: Sequence[str]) -> Iterator[str]:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout
            yield next(line.strip() for line in server.stdout if line.startswith("http://"))
        finally:
            server.kill()


def put(endpoint: str, key: str, content: bytes) -> None:
    """Put an object."""
    import boto3

    client: Any = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=KEYS["AWS_REGION"],
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    )
    client.put_object(Bucket=BUCKET, Key=key, Body=content)
