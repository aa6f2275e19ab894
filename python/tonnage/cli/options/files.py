"""Files and directories of a command: those that it reads, and the one that it makes."""

import sys
from collections.abc import Iterable
from pathlib import Path

from tonnage.run.storage.hive import input_paths


def files_in(path: Path) -> list[Path]:
    """A file itself; of a directory the files that count as input."""
    try:
        if path.is_dir():
            return list(input_paths(path))
    except OSError:
        pass  # The job itself refuses what cannot be read.
    return [path]


def bytes_in(paths: Iterable[Path]) -> int:
    files = [file for path in paths for file in files_in(path)]
    return sum(file.stat().st_size for file in files if file.is_file())


def new_directory(name: str) -> Path:
    """The first of ``name-1``, ``name-2``, ... in the current directory that does not exist."""
    number = 1
    while (path := Path(f"{name}-{number}")).exists():
        number += 1
    return path


def command_line() -> list[str]:
    """The command as it was typed; records keep it."""
    return ["tonnage", *sys.argv[1:]]
