"""Start a command so that every process it starts stays accounted for.

Between this process and the command stands the reaper, a process that only waits. Orphans become
its children (``PR_SET_CHILD_SUBREAPER``), so the usage of every process ends up in the reaper's
counters, with nothing of our own in them. It lives until we have read them.

    this process -- reaper -- command -- ...

The command shares our standard input, output and error, and our process group: what is typed at a
terminal, including Ctrl-C, reaches it.
"""

import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tonnage.base import core

PR_SET_CHILD_SUBREAPER = 36
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
WATCHED = {*FORWARDED, signal.SIGCHLD}
"""Signals to wait for while a command runs; they are blocked during that time."""


class CommandNotStarted(core.UsageError):
    """A command could not be started; ``code`` is the exit code that a shell would give."""

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


class RunningCommand:
    def __init__(self, reaper: int, pid: int, status: int, release: int, text: str) -> None:
        self.reaper, self.pid = reaper, pid
        self._status, self._release, self._text = status, release, text
        self.exit_code: int | None = None
        """As in a shell: 128 plus the number of the signal that ended it; None while it runs."""
        self.was_lost = False
        """The reaper was killed: how and when the command ended is not known."""

    def poll(self) -> bool:
        """Whether it has ended; its usage is in the reaper's counters from then on."""
        if self.exit_code is None and not self.was_lost:
            try:
                line = self._text or os.read(self._status, 64).decode()
            except BlockingIOError:
                return False
            if line:
                code = os.waitstatus_to_exitcode(int(line))
                self.exit_code = code if code >= 0 else 128 - code
            else:
                self.was_lost = True
        return True

    def send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def close(self) -> None:
        os.close(self._release)
        os.close(self._status)
        with suppress(ChildProcessError):
            os.waitpid(self.reaper, 0)


def start_command(
    command: Sequence[str], procs_files: Sequence[Path], mask: set[int], to_stderr: bool
) -> RunningCommand:
    """Start ``command``; the caller has blocked the signals in `WATCHED`; ``mask`` was before.

    It enters the groups of ``procs_files`` first. Raises `CommandNotStarted`.
    """
    refuse_missing(command)
    status, tell = os.pipe()
    hold, release = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    own_pid = os.getpid()
    reaper = os.fork()
    if not reaper:
        # The child must never return into the caller's code.
        try:
            os.close(status)
            os.close(release)
            _reap(command, procs_files, mask, to_stderr, tell, hold, own_pid)
        finally:
            os._exit(0)
    os.close(tell)
    os.close(hold)
    # A command that has ended already is reported in the same read.
    first, _, rest = os.read(status, 64).decode().partition("\n")
    running = RunningCommand(reaper, 0, status, release, rest)
    if not first.startswith("began"):
        running.close()
        why = os.strerror(int(first)) if first else "the process that starts it was killed"
        raise CommandNotStarted(f"cannot run {command[0]}: {why}", 126)
    running.pid = int(first.split()[1])
    os.set_blocking(status, False)
    return running


def refuse_missing(command: Sequence[str]) -> None:
    """Raise `CommandNotStarted` if there is no such program."""
    if shutil.which(command[0]) is None:
        exists = os.path.exists(command[0]) and os.sep in command[0]
        raise CommandNotStarted(
            f"cannot run {command[0]}: not an executable file"
            if exists
            else f"{command[0]}: command not found in PATH; use the full path of the command",
            126 if exists else 127,
        )


def _reap(
    command: Sequence[str],
    procs_files: Sequence[Path],
    mask: set[int],
    to_stderr: bool,
    tell: int,
    hold: int,
    observer: int,
) -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    failed, fail = os.pipe()
    child = os.fork()
    if not child:
        _exec(command, procs_files, mask, to_stderr, fail)
    os.close(fail)
    why = os.read(failed, 16)  # Empty once exec has succeeded.
    os.write(tell, why or b"began %d\n" % child)
    if why:
        return
    while True:
        pid, status = os.wait()
        if pid == child:
            break
    with suppress(BrokenPipeError):
        os.write(tell, b"%d" % status)
        if os.getppid() == observer:
            os.kill(observer, signal.SIGCHLD)  # Wakes it from sigtimedwait.
    os.read(hold, 1)  # Until it is closed.


def _exec(
    command: Sequence[str], procs_files: Sequence[Path], mask: set[int], to_stderr: bool, fail: int
) -> None:
    try:
        for entrance in procs_files:
            entrance.write_text("0")
        if to_stderr:
            os.dup2(2, 1)
        for number in (*FORWARDED, signal.SIGPIPE):
            # Undo Python's own signal handling; what was ignored stays so (nohup).
            if number == signal.SIGPIPE or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execvp(command[0], list(command))
    except OSError as why:
        os.write(fail, b"%d" % (why.errno or 0))
    finally:
        os._exit(127)
