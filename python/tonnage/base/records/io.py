"""Write files atomically: readers, and crashes, see all of a file or nothing of it.

Only regular files are read: a pipe may wait forever for its writer, and a device may never end.
"""

import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import Any


def write_atomically(path: Path, content: bytes) -> None:
    """All of ``content``, or nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        why = os.strerror(errno.ENOTDIR)
        raise NotADirectoryError(errno.ENOTDIR, why, str(path.parent)) from None
    try:
        _write(path, content)
    except OSError as why:
        if why.errno is None:
            raise
        # Name the path that the caller gave, not the temporary one.
        raise OSError(why.errno, why.strerror, str(path)) from why


def _write(path: Path, content: bytes) -> None:
    # A rename would replace the name of a device or a pipe, such as /dev/stdout.
    if (path.exists() and not path.is_file()) or _is_open_file(path):
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(unfinished, 0o644)
        os.replace(unfinished, path)
        fsync_directory(path.parent)  # The name is durable when its directory is.
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise


def _is_open_file(path: Path) -> bool:
    """Whether it stands for an open file of a process, like /dev/stdout or /dev/fd/3."""
    return path.is_symlink() and os.readlink(path).startswith(("/proc/", "pipe:", "socket:"))


def read_regular(path: Path) -> bytes:
    """The content of a regular file; `OSError` if it is something else."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb", closefd=True) as file:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        return file.read()


def fsync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_table(path: Path, columns: dict[str, list[Any]]) -> Path:
    """Write columns of equal length as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), content)
    write_atomically(path, content.getvalue().to_pybytes())
    return path


def read_table(path: Path) -> dict[str, list[Any]]:
    import pyarrow.parquet as pq

    columns: dict[str, list[Any]] = pq.read_table(path).to_pydict()
    return columns
