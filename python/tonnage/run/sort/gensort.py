"""The sort benchmark's records: made as ``gensort`` 1.5 does, judged as ``valsort`` does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tonnage.base import core
from tonnage.run.sort.local import Layout
from tonnage.run.storage.object_store import ObjectStoreOptions

RECORD_BYTES = 100


def generate(
    records: int,
    files: Sequence[Path],
    *,
    start: int = 0,
    ascii_records: bool = False,
    skew: bool = False,
    on_progress: core.OnProgress | None = None,
) -> dict[str, Any]:
    """Writes records ``start``, ``start + 1``, ... to ``files``, which share them evenly, in order.

    Record N has the same bytes in every call, for any 128-bit N.

    Returns:
        ``records``, ``bytes``, ``seconds`` and how it went.

    Raises:
        UsageError: A file cannot be made, or there is no room for it.
        RunError: It failed while it ran; no file is left.
        KeyboardInterrupt: Ctrl-C; no file is left.
    """
    share = -(-records // max(len(files), 1)) * RECORD_BYTES
    core.require_free_space(
        ((path.parent, share - _leftover_bytes(path)) for path in files), "generating"
    )
    config = {
        "records": records,
        "start": str(start),
        "encoding": "ascii" if ascii_records else "binary",
        "skew": skew,
        "files": [str(path) for path in files],
    }
    return core.run("gensort", config, on_progress)


def validate(
    paths: Sequence[Path | str],
    *,
    layout: Layout,
    object_store: ObjectStoreOptions | None = None,
    on_progress: core.OnProgress | None = None,
) -> dict[str, Any]:
    """Whether the records of ``paths``, files in the order given or directories, are in order.

    Files of directories are taken in the order of their names, over all directories given; urls, as
    strings, mean an object or those of a folder, in the order of their names, after all files.

    Returns:
        ``records``, ``checksum`` (sum of the records' CRC-32s, hexadecimal), ``unordered``,
        ``first_unordered``, ``duplicate_keys``, and the same for each file.
    """
    config = {
        "inputs": [str(path) for path in paths],
        "layout": layout.to_json(),
        "volumes": (object_store or ObjectStoreOptions()).to_json(),
    }
    return core.run("valsort", config, on_progress)


def _leftover_bytes(path: Path) -> int:
    """Bytes of what a killed run left of ``path``, which goes before the new one comes."""
    try:
        return path.with_name(f".{path.name}.unfinished").stat().st_blocks * 512
    except (OSError, ValueError):
        return 0
