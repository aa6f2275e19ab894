"""No file of the project contains paths of one machine or names of registries."""

import re
import subprocess
from pathlib import Path

from support.stores.disk import ROOT


def test_no_file_contains_a_path_of_one_machine() -> None:
    # Only at the start of a path: inside a path or an address such a name is harmless.
    place = re.compile(rb"(?:(?<![\w.$}~/-])|(?<=file://))/(?:home|root|work|Users)/")
    assert [str(file) for file in _tracked() if place.search((ROOT / file).read_bytes())] == []


def test_locks_name_no_registry() -> None:
    for lock in (ROOT / "requirements").glob("*.txt"):
        assert "://" not in lock.read_text(), lock.name
    sources = re.findall(r'^source = "(.*)"$', (ROOT / "Cargo.lock").read_text(), re.MULTILINE)
    # Cargo's own name for its default registry, whichever mirror served it.
    assert set(sources) <= {"registry+https://github.com/rust-lang/crates.io-index"}


def _tracked() -> list[Path]:
    """Return the files that git tracks, and new ones that it does not ignore."""
    listed = subprocess.run(
        # Listing files is safe, whatever user owns the checkout.
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout
    return [path for path in map(Path, listed.split("\0")[:-1]) if (ROOT / path).is_file()]
