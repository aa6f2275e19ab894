"""Reserve a TCP port until its server listens on it.

A free port that is only looked up may be taken before the server listens. So this socket stays
bound but does not listen: the kernel gives a bound port to nobody who asks for any free one, and a
server that sets ``SO_REUSEADDR``, as the core does, can still listen on it.
"""

from __future__ import annotations

import socket


class ReservedPort:
    """A reserved port on an address of this machine, until it is closed."""

    def __init__(self, host: str) -> None:
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Outgoing connections use the other half of the ports: none of them takes this one.
            self._socket.bind((host, 0))
        except BaseException:
            self._socket.close()
            raise
        self.host, self.number = host, int(self._socket.getsockname()[1])

    def __str__(self) -> str:
        return f"[{self.host}]:{self.number}" if ":" in self.host else f"{self.host}:{self.number}"

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> ReservedPort:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
