"""Errors of users' functions and of their rows: where they occurred, and in which line of code."""

import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from tonnage.base import core
from tonnage.run.formats.columns import ColumnError
from tonnage.run.formats.format import Chunk, printable
from tonnage.run.storage.sources import InputFile
from tonnage.run.thread_pool import Cancelled

CHANGED = "changed"
"""The stage of errors of files that have changed since they were found."""
USER_STAGES = ("rows", "sample", "allow", "begin", "local", "merge", "finish", "until", "summary")
"""Stages whose errors come from a user's rows or functions, and would occur on any node."""
LIBRARY_DIRECTORIES = [
    Path(__file__).parents[1],  # Tonnage.
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
]


@contextmanager
def user_code(stage: str, where: str, rows: Any = None) -> Iterator[None]:
    """Raise exceptions of the user's function ``stage`` as `RunError`s that say ``where``.

    `UsageError` if ``rows`` do not have the columns that the settings name.
    """
    try:
        yield
    except (core.RunError, core.UsageError, core.GateClosed, Cancelled):
        raise
    except Exception as why:
        message = printable(str(why))
        line = _user_line(why)
        if isinstance(why, ColumnError) and not line:
            raise core.UsageError(f"{message} (in {where})", setting="columns") from why
        message = f"{type(why).__name__}: {message}"
        if line and isinstance(rows, pa.RecordBatch) and "RecordBatch" in message:
            message += "; rows are a pyarrow.RecordBatch: tonnage.as_points makes numbers of them"
        raise core.RunError(f"{stage} failed for {where}: {message}{line}", stage) from why


def describe_chunk(file: InputFile, chunk: Chunk) -> str:
    return f"{file.name}, {chunk.bytes} bytes at offset {chunk.offset}"


def call_reduction(function: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """The value of ``local`` or ``merge``; `TypeError` if it returned nothing for an object."""
    value = function(one, other)
    # The first argument of `local` is rows, which there always are.
    had_object = other is not None or (function.__name__ == "merge" and one is not None)
    if value is None and had_object:
        code = getattr(function, "__code__", None)
        place = f" (line {code.co_firstlineno} of {code.co_filename})" if code else ""
        raise TypeError(
            f"{function.__qualname__}{place} returned None; return the reduction object"
        )
    return value


def _user_line(why: Exception) -> str:
    """The last line of the user's code that led to an error, in words; empty if there is none."""
    frames = [
        frame
        for frame in traceback.extract_tb(why.__traceback__)
        if frame.line
        and not any(Path(frame.filename).is_relative_to(each) for each in LIBRARY_DIRECTORIES)
    ]
    if not frames:
        return ""
    return f" (line {frames[-1].lineno} of {frames[-1].filename}: {frames[-1].line})"
