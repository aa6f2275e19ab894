"""Bytes from one process to another over loopback, one way: by Tonnage, and by iperf3.

Tonnage's are two endpoints of `tonnage measure net --one-way`, iperf3's its server and its client,
each side with its own kernel settings, which are the defaults: TCP, no zero copy. Unless told
otherwise each has the block that it has by default, Tonnage 1 MiB, iperf3 128 KiB. The rate is what
arrived, after the warm-up (of Tonnage its own: half a second). Core seconds are those of both
processes, of all bytes, those of the warm-up too.
"""

from __future__ import annotations

import json
import math
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from child import Command, run

from tonnage.measure.net import Settings, configurations
from tonnage.measure.trials import trial

STREAMS = (1, 4)
JOB = Path(__file__).with_name("job.py")
LOOPBACK = "127.0.0.1"
OUR_BLOCK_BYTES = 1 << 20
NO_TIME_SECONDS = 0.05
LISTENS = "Server listening"


@dataclass(frozen=True)
class Sample:
    """What a run found."""

    bytes_per_second: float
    bytes: int
    """All of them, those of the warm-up too."""
    cpu_seconds: float


def ours(streams: int, warm_up: float, block: int | None, seconds: float) -> Sample:
    """Tonnage; in no time it goes on for a moment."""
    lasts = warm_up + seconds if seconds else NO_TIME_SECONDS
    settings = Settings(
        endpoints=2,
        connections=streams,
        block_bytes=block or OUR_BLOCK_BYTES,
        seconds=lasts,
        rounds=1,
        until_confidence=None,
        one_way=True,
        namespaces=False,
        rate_bits_per_second=None,
    )
    addresses = [f"{LOOPBACK}:{port}" for port in _ports(2)]
    done = run(
        *(
            Command([sys.executable, str(JOB), "net_bench"], json.dumps(config).encode())
            for config in configurations(addresses, settings)
        )
    )
    (phase,) = json.loads(done[1].out)["phases"]
    return Sample(
        bytes_per_second=trial(phase, lasts).bytes_per_second if seconds else 0.0,
        bytes=phase["stages"][-1]["bytes"],
        cpu_seconds=sum(each.cpu_seconds for each in done),
    )


def iperf3(streams: int, warm_up: float, block: int | None, seconds: float) -> Sample:
    """The peer; in no time it sends a megabyte."""
    (port,) = _ports(1)
    where = ["--port", str(port)]
    server = ["iperf3", "--server", "--one-off", "--forceflush", "--bind", LOOPBACK, *where]
    client = ["iperf3", "--client", LOOPBACK, "--parallel", str(streams), "--json", *where]
    if block:
        client += ["--length", str(block)]
    if seconds:
        # It takes whole seconds.
        client += ["--time", str(math.ceil(seconds)), "--omit", str(math.ceil(warm_up))]
    else:
        client += ["--bytes", "1M"]
    done = run(Command(server), Command(client), ready=LISTENS)
    answer = json.loads(done[1].out)
    if "error" in answer:
        raise SystemExit(f"iperf3: {answer['error']}")
    return Sample(
        bytes_per_second=answer["end"]["sum_received"]["bits_per_second"] / 8,
        bytes=sum(interval["sum"]["bytes"] for interval in answer["intervals"]),
        cpu_seconds=sum(each.cpu_seconds for each in done),
    )


def _ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
