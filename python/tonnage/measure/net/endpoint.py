"""An endpoint of a network benchmark, as a process of its own, and how to run several at once.

    python -m tonnage.measure.net.endpoint

It reads its configuration, a line of JSON, from standard input and runs the core's ``net_bench``.
It prints the bytes moved so far, line by line, and finally its answer as JSON. It also ends when
standard input is closed: then its parent is gone.
"""

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
CONTROL = Path("/proc/sys/net/ipv4/tcp_congestion_control")
REQUEST = struct.Struct("16si12x")
"""The kernel's ``ifreq`` with an integer: an interface's name, its MTU."""
GET_MTU = 0x8921  # SIOCGIFMTU


@dataclass(frozen=True)
class EndpointHost:
    host: str
    command_prefix: tuple[str, ...] = ()
    """Put before a command to run it there."""


def run_endpoints(
    hosts: Sequence[EndpointHost],
    configs: Sequence[dict[str, Any]],
    *,
    timeout_seconds: float,
    on_progress: core.OnProgress | None = None,
) -> list[dict[str, Any]]:
    """Run an endpoint on each host; returns their answers in the same order.

    An answer has the core's ``outcome``, the time at which it ``began`` on the monotonic clock, the
    process's ``cpu_user_seconds`` and ``cpu_system_seconds``, and the kernel's
    ``congestion_control`` and ``mtu`` (bytes, by interface). Raises `UsageError` if the core
    refused a configuration, `RunError` if an endpoint failed; the others are ended, too.
    """
    with ExitStack() as stack:
        running = [
            stack.enter_context(_start(number, host, config))
            for number, (host, config) in enumerate(zip(hosts, configs, strict=True))
        ]
        deadline = time.monotonic() + timeout_seconds
        while unfinished := [each for each in running if each.process.poll() is None]:
            _raise_failure(running)
            if time.monotonic() > deadline:
                raise core.RunError(
                    f"{unfinished[0].name} did not finish within {timeout_seconds:g} s"
                )
            if on_progress:
                on_progress(sum(each.done_bytes for each in running))
            time.sleep(POLL_SECONDS)
        _raise_failure(running)
        return [each.answer() for each in running]


@dataclass(frozen=True)
class _Process:
    name: str
    process: subprocess.Popen[bytes]
    out: IO[bytes]
    err: IO[bytes]

    @property
    def done_bytes(self) -> int:
        """The bytes moved so far. `pread` leaves the file position to the endpoint."""
        size = os.fstat(self.out.fileno()).st_size
        lines = os.pread(self.out.fileno(), LAST_BYTES, max(size - LAST_BYTES, 0)).splitlines()
        return int(lines[-2]) if len(lines) > 1 and lines[-2].isdigit() else 0

    def answer(self) -> dict[str, Any]:
        self.out.seek(0)
        answer: dict[str, Any] = json.loads(self.out.read().splitlines()[-1])
        return answer

    def error_text(self) -> str:
        self.err.seek(0)
        lines = self.err.read().decode(errors="replace").splitlines()
        return lines[-1] if lines else f"exit code {self.process.returncode}"


@contextmanager
def _start(number: int, host: EndpointHost, config: dict[str, Any]) -> Iterator[_Process]:
    # -P: the working directory may hold a module of the same name.
    command = [*host.command_prefix, sys.executable, "-P", "-m", "tonnage.measure.net.endpoint"]
    # Not pipes: they are read only at the end.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            start_new_session=True,  # Ctrl-C is for the command, which then ends this.
        )
        assert process.stdin
        try:
            with suppress(BrokenPipeError):  # It has ended already, which is noticed later.
                process.stdin.write(json.dumps(config).encode() + b"\n")
                process.stdin.flush()
            yield _Process(f"endpoint {number} ({host.host})", process, out, err)
        finally:
            process.kill()
            process.wait()
            with suppress(BrokenPipeError):
                process.stdin.close()


def _raise_failure(running: Sequence[_Process]) -> None:
    """Raise the failure that explains the others, if any: a kill comes first."""
    if not any(each.process.poll() for each in running):
        return
    # Polled again: an endpoint that lost a killed peer ends after it.
    failed = [each for each in running if each.process.poll()]
    failed.sort(key=lambda each: each.process.returncode > 0)
    name, code = failed[0].name, failed[0].process.returncode
    if code < 0:
        raise core.RunError(f"{name} was killed by {signal.Signals(-code).name}")
    raise (core.UsageError if code == 2 else core.RunError)(f"{name}: {failed[0].error_text()}")


def main() -> None:
    config = json.loads(sys.stdin.readline())
    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        began = time.monotonic()
        outcome = core.run("net_bench", config, _report)
    except (core.UsageError, core.RunError) as why:
        print(" ".join(str(why).split()), file=sys.stderr)
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
    """The MTU in bytes, in this network namespace; ``/sys`` may show another one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = REQUEST.pack(interface.encode(), 0)
        size: int = REQUEST.unpack(fcntl.ioctl(any_socket, GET_MTU, request))[1]
    return size


def _report(done_bytes: int) -> None:
    """Print the progress; when standard input is closed, end the job and this process."""
    print(done_bytes, flush=True)
    if select.select([sys.stdin], [], [], 0)[0]:
        sys.exit("the parent process of this endpoint has ended")


if __name__ == "__main__":
    main()
