"""A proxy on loopback between an agent and its InfluxDB that does to writes what networks, proxies and servers do.

Promise: the faults are drawn from a seed; while `stormy` is clear, everything passes; while `closed` is set,
nothing does. A 400 is answered to batches only, never to a
single line, since that would be a line refused for good and not an outage."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import random
import socket
import threading
import time
from collections import Counter
from typing import Any

STATUSES = {"429": 429, "500": 500, "503": 503, "captive portal": 200}
BATCH_FAULTS = ("400", "413")
OTHER_FAULTS = ("reset", "answer lost", "half of the body", "slow", "too slow", "half of the answer")
FAULTS = (*STATUSES, *BATCH_FAULTS, *OTHER_FAULTS)
SLOW_S, TOO_SLOW_S = 1.0, 6.0  # the agent waits 5 s for an answer
UPSTREAM_S_MAX = 30.0


class FaultProxy:
    """Listens on a free port; `url` is where the agent writes to. `seen` counts the faults that were injected."""

    def __init__(self, upstream_port: int, seed: int) -> None:
        self.stormy, self.closed = threading.Event(), threading.Event()
        self.seen: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._deck: list[str] = []  # each fault once, in an order by chance
        self._lock = threading.Lock()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                # The client under test may have stopped waiting, and the server may be dead.
                with contextlib.suppress(OSError, http.client.HTTPException):
                    proxy.handle(self, body, upstream_port)
                self.close_connection = True

            def log_message(self, *_arguments: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def _draw(self, lines: int) -> str:
        """A fault for two requests of three in a storm; empty: none."""
        with self._lock:
            if not self.stormy.is_set() or self._random.random() < 1 / 3:
                return ""
            if not self._deck:
                self._deck = self._random.sample(FAULTS, len(FAULTS))
            fault = self._deck.pop()
            if fault in BATCH_FAULTS and lines == 1:
                return ""
            self.seen[fault] += 1
            return fault

    def handle(self, client: http.server.BaseHTTPRequestHandler, body: bytes, port: int) -> None:
        """One write."""
        fault = "503" if self.closed.is_set() else self._draw(body.count(b"\n"))
        if fault in STATUSES or fault in BATCH_FAULTS:
            answer(client, STATUSES.get(fault) or int(fault), b"<html>injected</html>")
        elif fault == "reset":
            reset(client)
        elif fault == "half of the body":
            cut_short(client, body, port)
            reset(client)
        else:
            if fault in ("slow", "too slow"):
                time.sleep(SLOW_S if fault == "slow" else TOO_SLOW_S)
            status, text = forward(client, body, port)
            if fault == "answer lost":
                reset(client)
            elif fault == "half of the answer":
                client.wfile.write(b"HTTP/1.1 20")
                reset(client)
            else:
                answer(client, status, text)


def forward(client: http.server.BaseHTTPRequestHandler, body: bytes, port: int) -> tuple[int, bytes]:
    """Pass a request on; returns the server's answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=UPSTREAM_S_MAX)
    try:
        connection.request("POST", client.path, body, dict(client.headers.items()))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def cut_short(client: http.server.BaseHTTPRequestHandler, body: bytes, port: int) -> None:
    """Pass half of a request on, and close."""
    head = f"POST {client.path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", port), timeout=UPSTREAM_S_MAX) as upstream:
        upstream.sendall(head + body[: len(body) // 2])


def answer(client: http.server.BaseHTTPRequestHandler, status: int, text: bytes) -> None:
    """Answer the client."""
    client.send_response(status)
    if status != 204:
        client.send_header("Content-Length", str(len(text)))
    client.end_headers()
    if status != 204:
        client.wfile.write(text)


def reset(client: http.server.BaseHTTPRequestHandler) -> None:
    """Close the client's connection with a RST."""
    client.wfile.flush()
    client.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.connection.close()
