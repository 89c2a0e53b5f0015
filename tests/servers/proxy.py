"""Servers that do not do what they should, alone or between a study and a real server."""

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

ERRORS = {"500": 500, "401": 401, "403": 403, "page": 404}


class Proxy(ThreadingHTTPServer):
    """Passes requests on to a server, until `fault` begins with the request number `after`.

    Faults: "500", "401", "403" (such answers), "page" (a web page that is not MLflow's), "hangs" (never answers),
    "drips" (a byte a second), "lost" (one request is fulfilled, its answer lost), "stopped" (takes no connection).
    A request is late by `delay_s` of the number of runs that were created so far.
    """

    daemon_threads = True

    def __init__(self, upstream: str | None = None, delay_s: Callable[[int], float] = lambda created: 0.0):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream, self.delay_s = upstream, delay_s
        self.fault: str | None = None
        self.after, self.requests, self.created = 0, 0, 0

    @property
    def uri(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """No connection to a server that has stopped."""
        return not (self.fault == "stopped" and self.requests >= self.after)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was left alone goes: that is what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests += 1
        self.server.created += self.path.endswith("runs/create")
        fault = self.server.fault if self.server.requests > self.server.after else None
        time.sleep(self.server.delay_s(self.server.created))
        if fault == "hangs":
            time.sleep(3600)
        elif fault == "drips":
            self._drip()
        elif fault == "stopped":
            self.close_connection = True
        elif fault in ERRORS:
            self._give(ERRORS[fault], b"<html>something went wrong</html>")
        else:
            status, given = self._passed_on(body)
            if fault == "lost" and self.path.endswith("runs/create"):
                self.server.fault, self.close_connection = None, True
            else:
                self._give(status, given)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names are http.server's

    def _passed_on(self, body: bytes) -> tuple[int, bytes]:
        with closing(http.client.HTTPConnection(str(urlsplit(self.server.upstream).netloc), timeout=600)) as upstream:
            upstream.request(self.command, self.path, body, dict(self.headers))
            answer = upstream.getresponse()
            return answer.status, answer.read()

    def _give(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "3600")
        self.end_headers()
        for _ in range(3600):
            self.wfile.write(b" ")
            time.sleep(1)

    def log_message(self, *_: Any) -> None:
        """Nothing to say."""


@contextmanager
def proxy(upstream: str | None = None, fault: str | None = None, **options: Any) -> Iterator[Proxy]:
    """Such a server at work."""
    with Proxy(upstream, **options) as server:
        server.fault = fault
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


@contextmanager
def black_hole() -> Iterator[str]:
    """An address whose packets are dropped: the queue of those who want to connect is full, and nobody takes them."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        for one in waiting:
            one.close()
