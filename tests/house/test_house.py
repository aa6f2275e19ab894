"""What no file of the project may hold: places of one machine, names of registries."""

import re
import subprocess
from pathlib import Path

from support.disk import ROOT


def test_nothing_names_a_place_of_one_machine() -> None:
    # Where a path starts: in the middle of one, or of an address, such a name is innocent.
    place = re.compile(rb"(?:(?<![\w.$}~/-])|(?<=file://))/(?:home|root|work|Users)/")
    assert [str(file) for file in _tracked() if place.search((ROOT / file).read_bytes())] == []


def test_locks_name_no_registry() -> None:
    for lock in (ROOT / "requirements").glob("*.txt"):
        assert "://" not in lock.read_text(), lock.name
    sources = re.findall(r'^source = "(.*)"$', (ROOT / "Cargo.lock").read_text(), re.MULTILINE)
    # Cargo's own name for its default registry, whichever mirror served it.
    assert set(sources) <= {"registry+https://github.com/rust-lang/crates.io-index"}


def _tracked() -> list[Path]:
    """The files that git keeps or, being new and not ignored, is about to."""
    listed = subprocess.run(
        # Whoever owns the checkout, reading its list of files is safe.
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout
    return [path for path in map(Path, listed.split("\0")[:-1]) if (ROOT / path).is_file()]
