"""The ``tonnage`` command: reads arguments, calls one function, prints what it returns.

With ``--json`` one document goes to standard output and nothing else; progress goes to standard
error. Exit codes: 0 done, 1 failed while running (if only on one machine of a fleet) or not sorted,
2 unusable arguments or input, 130 on Ctrl-C, 143 on SIGTERM or SIGHUP; what ends early says why in
one line and cleans up.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

AGAIN_SECONDS = 0.02
"""After so long a signal that was lost is sent again."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, or the terminal is gone (SIGHUP): either ends a command as Ctrl-C does."""


def main() -> None:
    """The entry point: turns every way to end into an exit code and at most one line."""
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # Else it is to outlive its terminal.
        signal.signal(signal.SIGHUP, _terminate)
    sys.unraisablehook = _unraisable
    try:
        # Imported here, since it takes a tenth of a second, in which a signal may come too.
        from tonnage.cli import commands

        code, said = commands.call(sys.argv[1:])
    except KeyboardInterrupt as why:
        code = 143 if isinstance(why, Terminated) else 130
        said = str(why.args[0]) if why.args else "interrupted: what was unfinished is removed"
    if said:
        print(f"tonnage: {' '.join(said.split())}", file=sys.stderr)
    sys.exit(code)


def _terminate(*_: object) -> None:
    raise Terminated


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    """Python drops what is raised where nobody could catch it, as in ``__del__``, signals too.

    A signal that came just then is sent again; not at once, since here it would be dropped as well.
    """
    if isinstance(lost.exc_value, KeyboardInterrupt):
        number = signal.SIGTERM if isinstance(lost.exc_value, Terminated) else signal.SIGINT
        threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), number)).start()
    else:
        sys.__unraisablehook__(lost)
