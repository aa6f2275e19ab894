"""The ``tonnage`` command: reads arguments, calls one function, prints what it returns.

With ``--json`` one document goes to standard output and nothing else; progress goes to standard
error. Exit codes: 0 done, 1 failed (even on only one node) or unsorted, 2 invalid arguments or
input, 130 on Ctrl-C, 143 on SIGTERM or SIGHUP. A command that ends early prints the reason in one
line and cleans up.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

AGAIN_SECONDS = 0.02
"""How soon a lost signal is sent again."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, or SIGHUP of a closed terminal: both end a command as Ctrl-C does."""


def main() -> None:
    """The entry point: turns every ending into an exit code and at most one line."""
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # Ignored under nohup.
        signal.signal(signal.SIGHUP, _terminate)
    sys.unraisablehook = _unraisable
    # Arrow's own heap keeps what is freed, beyond --memory (docs/decisions/0025).
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        # Imported here: it takes a tenth of a second, in which a signal may come.
        from tonnage.cli import commands

        code, message = commands.call(sys.argv[1:])
    except KeyboardInterrupt as signalled:
        code = 143 if isinstance(signalled, Terminated) else 130
        message = "interrupted; unfinished output was removed"
        message = str(signalled.args[0]) if signalled.args else message
    if message:
        print(f"tonnage: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


def _terminate(*_: object) -> None:
    raise Terminated


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    """Sends a signal again if Python dropped its exception, as it does in ``__del__``.

    Not immediately, since Python would drop it here, too.
    """
    if isinstance(lost.exc_value, KeyboardInterrupt):
        number = signal.SIGTERM if isinstance(lost.exc_value, Terminated) else signal.SIGINT
        threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), number)).start()
    else:
        sys.__unraisablehook__(lost)
