"""No file contains paths of one machine, names of registries, or paths of files that are gone."""

import re
import subprocess
from pathlib import Path

from support.stores.disk import ROOT

INVENTED = ("CHANGELOG.md", "test_site.py", "test_release.py")
"""Files with names of files that are gone, or made up."""


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


def test_named_files_exist() -> None:
    """Paths from the project's root, in documents and comments."""
    pattern = re.compile(
        r"(?<![\w/.-])(?:crates|python|tests|benches|tools)/[\w./-]+\.(?:py|rs|sh|js)\b"
    )
    missing = [
        f"{file}:{number}: {name}"
        for file in _tracked()
        if file.suffix in (".md", ".py", ".rs") and file.name not in INVENTED
        for number, line in enumerate((ROOT / file).read_text().splitlines(), 1)
        for name in pattern.findall(line)
        if not (ROOT / name).exists() and not (ROOT / file.parent / name).exists()
    ]
    assert missing == []


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
