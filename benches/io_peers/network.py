"""Bytes from one process to another, by Tonnage and by iperf3: one way, and all to all.

One way is over loopback: Tonnage's are two endpoints of `tonnage measure net --one-way`, iperf3's
its server and its client. All to all is between network namespaces that a bridge joins, which
needs root: Tonnage's are an endpoint in each, iperf3's a server in each for each other one, and
the clients. Both use the kernel's defaults: TCP, no zero copy. Unless set, each has its default
block, Tonnage 512 KiB, iperf3 128 KiB. The rate is that of received bytes, after the warm-up
(Tonnage's own: half a second). Core seconds are those of all processes, for all bytes, including
the warm-up's.
"""

from __future__ import annotations

import json
import math
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from child import Command, run

from tonnage.cli.measure.net import BLOCK_BYTES
from tonnage.measure.net.endpoint import EndpointHost
from tonnage.measure.net.endpoint_round import RoundSpec, all_to_all, core_configs, one_to_all
from tonnage.measure.trial.trial import trial_from_phase

STREAMS = (1, 4)
JOB = Path(__file__).with_name("job.py")
LOOPBACK = "127.0.0.1"
OUR_PORT, FIRST_PORT = 7411, 5201
TIMEOUT_SECONDS = 30.0
NO_TIME_SECONDS = 0.05
LISTENS = "Server listening"


@dataclass(frozen=True)
class Sample:
    """The result of a run."""

    bytes_per_second: float
    bytes: int
    """All bytes, including the warm-up's."""
    cpu_seconds: float


@dataclass(frozen=True)
class Case:
    """A network and its traffic."""

    places: tuple[EndpointHost, ...]
    """The hosts of the endpoints; on loopback the same one twice."""
    streams: int
    """Connections from each sender to each receiver."""
    everyone: bool
    """Whether all send to all; otherwise the first sends to the second."""
    warm_up: float
    block: int | None

    @property
    def sends_to(self) -> tuple[tuple[int, ...], ...]:
        """The receivers of each endpoint."""
        return (all_to_all if self.everyone else one_to_all)(len(self.places))


def ours(case: Case, seconds: float) -> Sample:
    """Run Tonnage; with no seconds it runs for a moment."""
    lasts = case.warm_up + seconds if seconds else NO_TIME_SECONDS
    block = case.block or BLOCK_BYTES
    together = RoundSpec(0, case.sends_to, case.streams, block, lasts)
    hosts = [place.host for place in case.places]
    ports = [OUR_PORT] * len(hosts) if case.everyone else _ports(len(hosts))
    addresses = [f"{host}:{port}" for host, port in zip(hosts, ports, strict=True)]
    configs = core_configs(addresses, together, TIMEOUT_SECONDS)
    done = run(
        *(
            Command(
                [*place.command_prefix, sys.executable, str(JOB), "net_bench"],
                json.dumps(config).encode(),
            )
            for place, config in zip(case.places, configs, strict=True)
        )
    )
    phases = [json.loads(each.out)["phases"][0] for each in done]
    receiving = [phase for phase in phases if phase["stages"][-1]["bytes"]]
    rates = (
        [trial_from_phase(phase, lasts).bytes_per_second for phase in receiving] if seconds else []
    )
    return Sample(
        bytes_per_second=sum(rates),
        bytes=sum(phase["stages"][-1]["bytes"] for phase in receiving),
        cpu_seconds=sum(each.cpu_seconds for each in done),
    )


def iperf3(case: Case, seconds: float) -> Sample:
    """Run the peer; with no seconds it sends a megabyte."""
    servers, clients = [], []
    for sender, others in enumerate(case.sends_to):
        for receiver in others:
            place, host = case.places[receiver], case.places[receiver].host
            port = FIRST_PORT + sender if case.everyone else _ports(1)[0]
            where = ["--port", str(port)]
            servers.append(
                [
                    *(*place.command_prefix, "iperf3", "--server", "--one-off", "--forceflush"),
                    *("--bind", host, *where),
                ]
            )
            client = [
                *case.places[sender].command_prefix,
                "iperf3",
                "--client",
                host,
                "--json",
                *where,
            ]
            client += ["--parallel", str(case.streams)]
            if case.block:
                client += ["--length", str(case.block)]
            if seconds:
                # It accepts whole seconds only.
                client += [
                    "--time",
                    str(math.ceil(seconds)),
                    "--omit",
                    str(math.ceil(case.warm_up)),
                ]
            else:
                client += ["--bytes", "1M"]
            clients.append(client)
    done = run(*map(Command, [*servers, *clients]), ready=LISTENS, servers=len(servers))
    answers = [json.loads(each.out) for each in done[len(servers) :]]
    for answer in answers:
        if "error" in answer:
            raise SystemExit(f"iperf3: {answer['error']}")
    return Sample(
        bytes_per_second=sum(e["end"]["sum_received"]["bits_per_second"] / 8 for e in answers),
        bytes=sum(interval["sum"]["bytes"] for e in answers for interval in e["intervals"]),
        cpu_seconds=sum(each.cpu_seconds for each in done),
    )


def _ports(count: int) -> list[int]:
    """Return free ports."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
