"""Room for the tests on a real disk."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def room(prefix: str = "test-") -> Iterator[Path]:
    """An empty directory on a disk, gone afterwards: under TONNAGE_TEST_DIR, or under target."""
    base = Path(os.environ.get("TONNAGE_TEST_DIR") or ROOT / "target" / "tmp")
    base.mkdir(parents=True, exist_ok=True)
    kind = subprocess.run(
        ["stat", "--file-system", "--format=%T", base], check=True, capture_output=True, text=True
    ).stdout.strip()
    if kind in {"tmpfs", "ramfs"}:
        # Memory would pass for a disk of absurd speed.
        raise RuntimeError(f"{base} is memory ({kind}); name a disk's directory: TONNAGE_TEST_DIR")
    with tempfile.TemporaryDirectory(prefix=prefix, dir=base) as directory:
        yield Path(directory)
