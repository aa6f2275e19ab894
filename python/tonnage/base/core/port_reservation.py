"""Ports that nobody listens on, held until somebody does.

A port that is only looked for may be given to another before its endpoint listens. So its socket
stays bound: the kernel gives a bound port to nobody who asks for any, and who listens with
``SO_REUSEADDR``, as the core does, may do so beside a socket that does not listen.
"""

from __future__ import annotations

import socket


class ReservedPort:
    """A port of an address of this machine, until it is closed."""

    def __init__(self, host: str) -> None:
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # The kernel dials from the other half of its ports: no connection takes this one.
            self._socket.bind((host, 0))
        except BaseException:
            self._socket.close()
            raise
        self.host, self.number = host, int(self._socket.getsockname()[1])

    def __str__(self) -> str:
        return f"[{self.host}]:{self.number}" if ":" in self.host else f"{self.host}:{self.number}"

    def close(self) -> None:
        """Lets go of it."""
        self._socket.close()

    def __enter__(self) -> ReservedPort:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
