"""What goes wrong in a user's functions, or with their rows: told with where, and in which line."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from tonnage.base import core
from tonnage.run.formats.format import Chunk, printable
from tonnage.run.storage.sources import InputFile
from tonnage.run.thread_pool import Cancelled

CHANGED = "changed"
"""The stage in which a file is found to be another one than it was."""
USER_STAGES = ("rows", "sample", "allow", "begin", "local", "merge", "finish", "until", "summary")
"""Stages in which what is a user's fails, rows or functions: it would anywhere."""
LIBRARY_DIRECTORIES = [
    Path(__file__).parents[1],  # Tonnage.
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
]


@contextmanager
def user_code(stage: str, where: str, rows: Any = None) -> Iterator[None]:
    """What a user's function raises meanwhile is told with where it was.

    Args:
        stage: The function, one of `USERS`.
        where: What it was called for.
        rows: What it was given.

    Raises:
        RunError: It failed.
    """
    try:
        yield
    except (core.RunError, core.UsageError, core.GateClosed, Cancelled):
        raise
    except Exception as why:
        said = f"{type(why).__name__}: {printable(str(why))}"
        line = _line(why)
        if line and isinstance(rows, pa.RecordBatch) and "RecordBatch" in said:
            said += (
                "; rows are a pyarrow.RecordBatch here, of which tonnage.as_points makes numbers"
            )
        raise core.RunError(f"{stage} failed for {where}: {said}{line}", stage, None, None) from why


def describe_chunk(file: InputFile, chunk: Chunk) -> str:
    """Where rows are, in words."""
    return f"{file.name}, {chunk.bytes} bytes at offset {chunk.offset}"


def call_reduction(function: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """What ``local`` or ``merge`` gives.

    Raises:
        TypeError: It gives nothing, where it was given an object.
    """
    found = function(one, other)
    # Of `local` the first one is rows, which there always are.
    was_given = other is not None or (function.__name__ == "merge" and one is not None)
    if found is None and was_given:
        code = getattr(function, "__code__", None)
        place = f" (line {code.co_firstlineno} of {code.co_filename})" if code else ""
        raise TypeError(
            f"{function.__qualname__}{place} gave None: have it return the reduction object"
        )
    return found


def _line(why: Exception) -> str:
    """The last line of a user's own code that led to it, in words; nothing if there is none."""
    own = [
        frame
        for frame in traceback.extract_tb(why.__traceback__)
        if frame.line and not any(Path(frame.filename).is_relative_to(each) for each in LIBRARY_DIRECTORIES)
    ]
    return f" (line {own[-1].lineno} of {own[-1].filename}: {own[-1].line})" if own else ""
