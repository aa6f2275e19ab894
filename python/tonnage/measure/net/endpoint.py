"""An endpoint of a network benchmark as a process of its own, and how several are run at once.

    python -m tonnage.measure.net.endpoint

It takes a line of JSON from standard input, the configuration, runs the core's ``net_bench``, says
on lines how many bytes it has moved and at last what came of it, as JSON, and ends. It also ends
when standard input does: who started it is gone then, in whatever way.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tonnage.base import core

POLL_SECONDS = 0.05
LAST_BYTES = 64
"""The last two lines of how much was done, as endpoints say it, fit."""
CONTROL = Path("/proc/sys/net/ipv4/tcp_congestion_control")
REQUEST = struct.Struct("16si12x")
"""The kernel's ``ifreq`` with a number in it: an interface's name, its MTU."""
GET_MTU = 0x8921  # SIOCGIFMTU


@dataclass(frozen=True)
class EndpointHost:
    """Where an endpoint runs."""

    host: str
    """The address that it has there."""
    command_prefix: tuple[str, ...] = ()
    """What a command begins with that is to run there."""


def run_endpoints(
    places: Sequence[EndpointHost],
    configs: Sequence[dict[str, Any]],
    *,
    timeout_seconds: float,
    on_progress: core.OnProgress | None = None,
) -> list[dict[str, Any]]:
    """Runs an endpoint in each place; gives what they answered, in the same order.

    An answer has the core's ``outcome``, when it ``began`` on the monotonic clock, and what the
    process used for it, ``cpu_user_seconds`` and ``cpu_system_seconds``; of the kernel that it ran
    on ``congestion_control`` and ``mtu``, the largest packet of each interface in bytes.

    Args:
        places: Where.
        configs: The core's configurations, one for each place.
        most_seconds: After this what still runs is lost.
        on_progress: Called now and then.

    Raises:
        UsageError: The core refused a configuration.
        RunError: An endpoint failed, was killed, or did not end. All others have been ended then.
    """
    with ExitStack() as stack:
        running = [
            stack.enter_context(_started(number, place, config))
            for number, (place, config) in enumerate(zip(places, configs, strict=True))
        ]
        deadline = time.monotonic() + timeout_seconds
        while unfinished := [each for each in running if each.process.poll() is None]:
            _raise_failure(running)
            if time.monotonic() > deadline:
                raise core.RunError(f"{unfinished[0].name} has not ended in {timeout_seconds:g} s")
            if on_progress:
                on_progress(sum(each.done_bytes for each in running))
            time.sleep(POLL_SECONDS)
        _raise_failure(running)
        return [each.answer() for each in running]


@dataclass(frozen=True)
class _Running:
    name: str
    process: subprocess.Popen[bytes]
    out: IO[bytes]
    err: IO[bytes]

    @property
    def done_bytes(self) -> int:
        """What it has moved, as it said last. Its place in the file is its own: nobody seeks."""
        size = os.fstat(self.out.fileno()).st_size
        said = os.pread(self.out.fileno(), LAST_BYTES, max(size - LAST_BYTES, 0)).splitlines()
        return int(said[-2]) if len(said) > 1 and said[-2].isdigit() else 0

    def answer(self) -> dict[str, Any]:
        self.out.seek(0)
        answer: dict[str, Any] = json.loads(self.out.read().splitlines()[-1])
        return answer

    def last_words(self) -> str:
        self.err.seek(0)
        lines = self.err.read().decode(errors="replace").splitlines()
        return lines[-1] if lines else f"exit code {self.process.returncode}"


@contextmanager
def _started(number: int, place: EndpointHost, config: dict[str, Any]) -> Iterator[_Running]:
    """An endpoint's process, which is gone afterwards."""
    # Isolated from the working directory, which may hold something of the same name.
    command = [*place.command_prefix, sys.executable, "-P", "-m", "tonnage.measure.net.endpoint"]
    # Not pipes: nobody reads them before the end.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            start_new_session=True,  # A Ctrl-C is for the command, which then ends this.
        )
        assert process.stdin
        try:
            with suppress(BrokenPipeError):  # It has ended already: that is noticed later.
                process.stdin.write(json.dumps(config).encode() + b"\n")
                process.stdin.flush()
            yield _Running(f"endpoint {number} ({place.host})", process, out, err)
        finally:
            process.kill()
            process.wait()
            with suppress(BrokenPipeError):
                process.stdin.close()


def _raise_failure(running: Sequence[_Running]) -> None:
    """Raises what went wrong first, if something has: that one was killed explains the others."""
    if not any(each.process.poll() for each in running):
        return
    # Asked again: who lost a peer that was killed has ended after it.
    failed = [each for each in running if each.process.poll()]
    failed.sort(key=lambda each: each.process.returncode > 0)
    name, code, said = failed[0].name, failed[0].process.returncode, failed[0].last_words()
    if code < 0:
        raise core.RunError(f"{name} was killed by {signal.Signals(-code).name}")
    raise (core.UsageError if code == 2 else core.RunError)(f"{name}: {said}")


def main() -> None:
    """Runs one endpoint; what it did goes to standard output, as JSON."""
    config = json.loads(sys.stdin.readline())
    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        began = time.monotonic()
        outcome = core.run("net_bench", config, _say)
    except (core.UsageError, core.RunError) as why:
        print(" ".join(str(why.args[0]).split()), file=sys.stderr)
        sys.exit(2 if isinstance(why, core.UsageError) else 1)
    after = resource.getrusage(resource.RUSAGE_SELF)
    answer = {
        "outcome": outcome,
        "began": began + outcome["meeting_seconds"],
        "cpu_user_seconds": after.ru_utime - before.ru_utime,
        "cpu_system_seconds": after.ru_stime - before.ru_stime,
        "congestion_control": CONTROL.read_text().strip(),
        "mtu": {name: mtu(name) for _, name in socket.if_nameindex()},
    }
    json.dump(answer, sys.stdout)


def mtu(interface: str) -> int:
    """The largest packet of an interface, in bytes, as the network that this process is in has it.

    Not as ``/sys`` does, which is the network's that it was mounted in.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = REQUEST.pack(interface.encode(), 0)
        found: int = REQUEST.unpack(fcntl.ioctl(any_socket, GET_MTU, asked))[1]
    return found


def _say(done_bytes: int) -> None:
    """Says how far it is; ends this process, and its job before, when standard input has ended."""
    print(done_bytes, flush=True)
    if select.select([sys.stdin], [], [], 0)[0]:
        sys.exit("who started this endpoint is gone")


if __name__ == "__main__":
    main()
