"""MapReduce as a user has it: functions, and `MapReduce.run`, which knows its machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tonnage import engine
from tonnage.artifacts import RunRecord
from tonnage.measure import environment
from tonnage.measure.trials import now
from tonnage.run.map_reduce import Functions, Input, map_reduce
from tonnage.words import bytes_of

Source = Path | str | Input


class MapReduce(Functions):
    """A job of functions over Arrow record batches; see `Functions` for what they get and give."""

    def run(
        self,
        inputs: Source | Sequence[Source],
        output: Path | str,
        scratch: Path | str | Sequence[Path | str],
        memory: str | int = "1GiB",
        workers: int | None = None,
        input_format: str = "auto",
        format: str = "parquet",
        on_progress: Callable[[int, int], None] | None = None,
    ) -> RunRecord:
        """Reads ``inputs`` and leaves parts, and a list of them, in ``output``.

        Args:
            inputs: Files or directories of them, or an `Input` where one has a map of its own.
            output: A new or empty directory.
            scratch: Directories, one for each device.
            memory: For buffers and gathered rows, like ``1GiB``, or a number of bytes.
            workers: Threads; by default as many as there are cores.
            input_format: What paths are that are given as such; see `Input`.
            format: What is written: ``parquet``, ``arrow``, ``csv`` or ``json``.
            on_progress: Called with bytes done of how many, now and then.

        Raises:
            Refused: Arguments or inputs cannot be used.
            Failed: A function failed (its exception is the cause), or a device; nothing is left.
            KeyboardInterrupt: Ctrl-C; nothing is left.
        """
        sources = [inputs] if isinstance(inputs, (Path, str, Input)) else inputs
        places = [scratch] if isinstance(scratch, (Path, str)) else scratch
        directories = [Path(output), *map(Path, places)]
        memory_bytes = bytes_of(memory) if isinstance(memory, str) else memory
        if memory_bytes is None:
            raise engine.Refused(f"memory {memory!r} is no size: write it like 1GiB")
        near = (path if path.exists() else path.parent for path in directories)
        return map_reduce(
            self,
            [_as_input(source, input_format) for source in sources],
            directories[0],
            directories[1:],
            memory_bytes=memory_bytes,
            environment=environment.capture([path for path in near if path.exists()]),
            began_at=now(),
            command=list(sys.argv),
            workers=workers,
            format=format,
            on_progress=on_progress,
        )


def _as_input(source: Source, format: str) -> Input:
    if isinstance(source, Input):
        return source if source.format != "auto" else replace(source, format=format)
    return Input(source, format=format)
