"""A reserved port is given to nobody else, and its server can listen on it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tonnage.base.core import ReservedPort


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_only_a_server_with_reuse_can_bind_a_reserved_port(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if ":" in host and not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    with ReservedPort(host) as port:
        with socket.socket(family) as other, pytest.raises(OSError, match="in use"):
            other.bind((host, port.number))
        with (
            socket.create_server((host, port.number), family=family) as listener,
            socket.create_connection((host, port.number), timeout=60),
        ):
            listener.accept()[0].close()
    assert str(port) in (f"127.0.0.1:{port.number}", f"[::1]:{port.number}")


def test_reserved_ports_differ() -> None:
    ports = [ReservedPort("127.0.0.1") for _ in range(100)]
    try:
        assert len({port.number for port in ports}) == len(ports)
    finally:
        for port in ports:
            port.close()
