"""Validate an output with `tonnage valsort`: all of the input's records, in order."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Summary:
    """The result of `tonnage valsort` for files that are read one after the other."""

    records: int
    checksum: str
    unordered: int
    duplicate_keys: int


@dataclass(frozen=True)
class Verdict:
    valid: bool
    reason: str


def summarize(tonnage: Path, files: Sequence[Path]) -> Summary:
    command = [str(tonnage), "valsort", *map(str, files), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # 1 means "not sorted", as an input may be
        raise RuntimeError(f"{' '.join(command[:2])} failed: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    return Summary(
        records=result["records"],
        checksum=str(result["checksum"]),
        unordered=result["unordered"],
        duplicate_keys=result["duplicate_keys"],
    )


def output_files(directory: Path) -> list[Path]:
    """Return a peer's files in the order of their names, without markers and checksums."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return [path for path in files if not path.name.startswith((".", "_"))]


def validate(tonnage: Path, directory: Path, expected: Summary) -> Verdict:
    files = output_files(directory)
    if not files:
        return Verdict(False, "no output")
    try:
        found = summarize(tonnage, files)
    except RuntimeError as error:
        return Verdict(False, str(error))
    if found.records != expected.records:
        return Verdict(False, f"{found.records} records, not {expected.records}")
    if found.checksum != expected.checksum:
        return Verdict(False, "the records are not the input's (checksum)")
    if found.unordered:
        return Verdict(False, f"{found.unordered} records out of order")
    return Verdict(True, "")
