"""A port that is held is given to nobody else, and whom it is for can listen on it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tonnage.base.core import ReservedPort


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_it_is_for_who_listens_there(host: str) -> None:
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


def test_two_are_never_the_same() -> None:
    held = [ReservedPort("127.0.0.1") for _ in range(100)]
    try:
        assert len({port.number for port in held}) == len(held)
    finally:
        for port in held:
            port.close()
