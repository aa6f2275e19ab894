"""Starts a command so that nothing that it starts gets out of sight.

Between us and the command stands the keeper, a process that does nothing but wait: orphans become
its children (``PR_SET_CHILD_SUBREAPER``), and so what every process used is, in the end, in the
keeper's counters, with nothing of our own among it. It lives until we have read them.

    us -- keeper -- command -- ...

Standard input, output and error are the command's as they are ours, and so is the process group:
what is typed at a terminal, Ctrl-C too, goes to it.
"""

from __future__ import annotations

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
"""Signals that are waited for while a command is watched; they are blocked meanwhile."""


class CommandNotStarted(core.UsageError):
    """A command that could not be started; ``code`` is what a shell would end with."""

    def __init__(self, said: str, code: int) -> None:
        super().__init__(said)
        self.code = code


class RunningCommand:
    """A command under way."""

    def __init__(self, keeper: int, pid: int, status: int, release: int, said: str) -> None:
        self.reaper, self.pid = keeper, pid
        self._status, self._release, self._said = status, release, said
        self.exit_code: int | None = None
        """As a shell has it: 128 and the signal's number if one ended it; None while it runs."""
        self.was_lost = False
        """The keeper was killed: how the command ended, and when, is not known."""

    def poll(self) -> bool:
        """Whether it has ended; what it used is the keeper's from then on."""
        if self.exit_code is None and not self.was_lost:
            try:
                line = self._said or os.read(self._status, 64).decode()
            except BlockingIOError:
                return False
            if line:
                code = os.waitstatus_to_exitcode(int(line))
                self.exit_code = code if code >= 0 else 128 - code
            else:
                self.was_lost = True
        return True

    def send(self, number: int) -> None:
        """Passes a signal on."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def close(self) -> None:
        """Lets the keeper go: call this when the last counters are read."""
        os.close(self._release)
        os.close(self._status)
        with suppress(ChildProcessError):
            os.waitpid(self.reaper, 0)


def start_command(
    command: Sequence[str], entrances: Sequence[Path], mask: set[int], to_stderr: bool
) -> RunningCommand:
    """Starts ``command``; call it with `WATCHED` blocked.

    Args:
        command: The program and its arguments.
        entrances: Files of control groups that it enters before it begins.
        mask: Signals that were blocked before, as they are to be in the command.
        to_stderr: Its standard output goes to standard error, since ours is for something else.

    Raises:
        NotStarted: There is no such program, or it may not be run.
    """
    if shutil.which(command[0]) is None:
        found = os.path.exists(command[0]) and os.sep in command[0]
        raise CommandNotStarted(
            f"{command[0]} cannot be run: it is no program that may be executed"
            if found
            else f"{command[0]}: there is no such command: give one that PATH has, or its path",
            126 if found else 127,
        )
    status, tell = os.pipe()
    hold, release = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    us = os.getpid()
    keeper = os.fork()
    if not keeper:
        # Nothing here may return to the program above, whatever happens.
        try:
            os.close(status)
            os.close(release)
            _keep(command, entrances, mask, to_stderr, tell, hold, us)
        finally:
            os._exit(0)
    os.close(tell)
    os.close(hold)
    # One that has ended by now is told of in the same breath.
    said, _, rest = os.read(status, 64).decode().partition("\n")
    launched = RunningCommand(keeper, 0, status, release, rest)
    if not said.startswith("began"):
        launched.close()
        why = os.strerror(int(said)) if said else "the process that starts it was killed"
        raise CommandNotStarted(f"{command[0]} cannot be run: {why}", 126)
    launched.pid = int(said.split()[1])
    os.set_blocking(status, False)
    return launched


def _keep(
    command: Sequence[str],
    entrances: Sequence[Path],
    mask: set[int],
    to_stderr: bool,
    tell: int,
    hold: int,
    us: int,
) -> None:
    """The keeper's life."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    failed, fail = os.pipe()
    child = os.fork()
    if not child:
        _become(command, entrances, mask, to_stderr, fail)
    os.close(fail)
    why = os.read(failed, 16)  # Empty once the command has taken over.
    os.write(tell, why or b"began %d\n" % child)
    if why:
        return
    while True:
        pid, status = os.wait()
        if pid == child:
            break
    with suppress(BrokenPipeError):
        os.write(tell, b"%d" % status)
        if os.getppid() == us:
            os.kill(us, signal.SIGCHLD)  # So that nobody sleeps over it.
    os.read(hold, 1)  # Until it is closed.


def _become(
    command: Sequence[str], entrances: Sequence[Path], mask: set[int], to_stderr: bool, fail: int
) -> None:
    try:
        for entrance in entrances:
            entrance.write_text("0")
        if to_stderr:
            os.dup2(2, 1)
        for number in (*FORWARDED, signal.SIGPIPE):
            # Python's own dispositions are not the command's; what was ignored stays so (nohup).
            if number == signal.SIGPIPE or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execvp(command[0], list(command))
    except OSError as why:
        os.write(fail, b"%d" % (why.errno or 0))
    finally:
        os._exit(127)
