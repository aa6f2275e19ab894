"""Arguments that are refused: each with one line that states what is wrong and how to fix it."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tonnage.base import core, formatting
from tonnage.cli.options.files import files_in
from tonnage.run.storage.object_store import HIDDEN


@contextmanager
def usage_errors(*kinds: type[Exception], prefix: str = "", hint: str = "") -> Iterator[None]:
    """Turns errors of these kinds into usage errors, in one line."""
    try:
        yield
    except kinds as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise core.UsageError(f"{prefix}{why}{hint}") from error


def refuse_without(needed: str, given: Mapping[str, Any]) -> None:
    for flag, value in given.items():
        if value is not None and value is not False:
            raise core.UsageError(f"{flag} needs {needed}; add {needed} or remove {flag}")


def refuse_unknown(flag: str, values: Iterable[str | None], known: Iterable[str]) -> None:
    names = list(known)
    for value in values:
        if value is not None and value not in names:
            close = formatting.did_you_mean(value, names)
            choices = ("one of " if len(names) > 1 else "") + ", ".join(names)
            raise core.UsageError(f"{flag} {value} is not valid{close}; use {choices}")


def refuse_repeated_inputs(inputs: Iterable[Path]) -> None:
    """Refuses a file that is in the input twice, under whatever names: it would be read twice."""
    holders: dict[Path, Path] = {}
    for path in inputs:
        for file in files_in(path):
            resolved = _real_path(file)
            if resolved in holders:
                holder = holders[resolved]
                both = f" (by {holder} and by {path})" if holder != path else ""
                raise core.UsageError(
                    f"input {file} is included twice{both}; pass each file only once"
                )
            holders[resolved] = path


def refuse_job_paths(inputs: list[Path], output: list[Path], scratch: list[Path]) -> None:
    """Refuses paths of a job on this machine, where one would spoil another."""
    refuse_repeated_inputs(inputs)
    refuse_job_directories(inputs, output, scratch)


def refuse_job_directories(inputs: list[Path], output: list[Path], scratch: list[Path]) -> None:
    """The same, apart from the inputs themselves."""
    for flag, directories in (("--output", output), ("--scratch", scratch)):
        refuse_files(flag, directories)
        refuse_repeated(flag, directories)
    refuse_non_empty("--output", output)
    refuse_inside("--output", output, [*inputs, *output])
    refuse_inside("--scratch", scratch, [*inputs, *output])


def refuse_memory(what: str, needed: int, remedy: str) -> None:
    """Refuses what needs more memory than this process may use."""
    from tonnage.base.system import cgroups
    from tonnage.measure.trial import environment

    most, owner = environment.physical_memory(), "this machine has"
    limit = cgroups.memory_limit()
    if limit is not None and limit < most:
        most, owner = limit, "this process's control group allows"
    if needed > most:
        raise core.UsageError(
            f"{what} more than the {formatting.memory(most)} that {owner}; {remedy}"
        )


def refuse_missing(flag: str, directories: Iterable[Path]) -> None:
    """Refuses directories that do not exist: a mistyped one would lie on another device."""
    refuse_files(flag, directories)
    for directory in directories:
        if not directory.is_dir():
            raise core.UsageError(f"{flag} {directory}: no such directory; create it first")


def refuse_relative(directories: Iterable[Path]) -> None:
    """Refuses directories that each node of a cluster would find somewhere else."""
    for directory in directories:
        if not directory.is_absolute():
            raise core.UsageError(
                f"--dir {directory}: with --cluster, use an absolute path, since each node has its "
                "own directory at that path"
            )


def refuse_files(flag: str, paths: Iterable[Path]) -> None:
    for path in paths:
        nearest = next((each for each in (path, *path.parents) if each.exists()), Path())
        if not nearest.is_dir():
            raise core.UsageError(f"{flag} {path}: {nearest} is a file; use a directory")


def refuse_non_empty(flag: str, directories: list[Path]) -> None:
    """Refuses directories with files that would be taken for the output's.

    Names of parts, and of folders ``NAME=VALUE``, are left to the job: it knows those of a killed
    run.
    """
    for directory in directories:
        for path in sorted(directory.iterdir()) if directory.is_dir() else []:
            if not path.name.startswith((*HIDDEN, "part-")) and "=" not in path.name:
                raise core.UsageError(
                    f"{flag} {directory} is not empty (it contains {path.name}); use an empty or "
                    "new directory"
                )


def refuse_repeated(flag: str, directories: Iterable[Path]) -> None:
    known: set[Path] = set()
    for directory in directories:
        if _real_path(directory) in known:
            raise core.UsageError(
                f"{flag} {directory} is passed twice; pass each directory only once"
            )
        known.add(_real_path(directory))


def refuse_inside(flag: str, directories: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuses directories in which a later read of ``inputs`` would find files."""
    holders = [_real_path(path) for path in inputs]
    for directory in directories:
        inside = _real_path(directory)
        for holder in holders:
            if holder not in inside.parents:
                continue
            if not inside.relative_to(holder).parts[0].startswith(HIDDEN):
                raise core.UsageError(
                    f"{flag} {directory} is inside {holder}, so it would be read as input; use a "
                    "directory outside it"
                )


def _real_path(path: Path) -> Path:
    """A path without links; of links that lead in a circle, which the job refuses, as it is."""
    return Path(os.path.realpath(path))


def refuse_suffix(path: Path, suffix: str) -> None:
    if path.suffix != suffix or path.is_dir():
        raise core.UsageError(f"--output {path}: use a file name that ends in {suffix}")
