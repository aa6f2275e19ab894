"""A proxy that counts what is requested of a store, apart from the tested client's own counters."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

COPIED_BYTES = 1 << 20


@dataclass
class SeenRequests:
    """The requests that a proxy passed on."""

    endpoint: str
    gets: list[int] = field(default_factory=list)
    """The length of each range that was requested."""
    puts: list[int] = field(default_factory=list)
    """The length of each object or part that was put."""
    posts: int = 0
    """How often an upload was begun or completed."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    store: str
    seen: SeenRequests


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._store = HTTPConnection(self.server.store)

    def _pass_on(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self._count(length)
        self._store.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            self._store.putheader(name, value)
        self._store.endheaders()
        while length:
            piece = self.rfile.read(min(length, COPIED_BYTES))
            self._store.send(piece)
            length -= len(piece)
        answer = self._store.getresponse()
        self.send_response_only(answer.status, answer.reason)
        body = b"" if self.command == "HEAD" else answer.read()
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        stated = answer.getheader("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", stated or str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if self.command == "HEAD":
            answer.read()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on

    def _count(self, length: int) -> None:
        seen, wanted = self.server.seen, self.headers.get("Range")
        if self.command == "GET" and wanted:
            first, last = wanted.removeprefix("bytes=").split("-")
            seen.gets.append(int(last) + 1 - int(first))
        elif self.command == "PUT":
            seen.puts.append(length)
        elif self.command == "POST":
            seen.posts += 1

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def counted(endpoint: str) -> Iterator[SeenRequests]:
    """Run a proxy of a store; its address and counts are in what is yielded."""
    with _Server(("127.0.0.1", 0), _Handler) as proxy:
        proxy.store = urlsplit(endpoint).netloc
        proxy.seen = SeenRequests(f"http://127.0.0.1:{proxy.server_port}")
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        try:
            yield proxy.seen
        finally:
            proxy.shutdown()
            thread.join()
