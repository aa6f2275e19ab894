"""Runs the commands that one would type, and prints the study's own steps between them."""

import shlex
import subprocess
import sys
from collections.abc import Sequence

from tonnage.base import core


def tonnage(arguments: Sequence[str], held: int, *, is_kept: bool) -> str:
    """Run a command of Tonnage, which is terminated with this one; a second Ctrl-C kills it.

    The command inherits ``held``, the lock on the study's directory. Its output goes to standard
    error, or is returned (``is_kept``).
    """
    with subprocess.Popen(
        [sys.executable, "-m", "tonnage", *arguments],
        stdout=subprocess.PIPE if is_kept else sys.stderr,
        text=True,
        # A terminal sends Ctrl-C to the group: only this process gets it, and passes it on once.
        process_group=0,
        pass_fds=[held],
    ) as running:
        try:
            output, _ = running.communicate()
        except BaseException:
            # Processes in the background ignore Ctrl-C, but not this.
            running.terminate()
            try:
                running.wait()
            except BaseException:
                running.kill()
                running.wait()
                raise
            raise
    if running.returncode:
        raise core.RunError(
            f"tonnage {shlex.join(arguments)} exited with code {running.returncode}; see its "
            "message above"
        )
    return output or ""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
