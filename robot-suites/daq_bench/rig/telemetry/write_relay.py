"""The way of a candidate behind SSH to InfluxDB: it takes the lines of one run, passes them on, and answers nothing else.

The candidate's root is not trusted with the history of others (docs/threat-model.md). It gets a port that is forwarded to this relay, and a
token of this run; InfluxDB's own address and token stay here. It needs no route to the server, and no certificate of who vouches for it.
The relay refuses whatever is no write of this run: another path or method, another token, a line without the run's tags or with others."""

from __future__ import annotations

import hmac
import http.server
import re
import secrets
import socket
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace

from daq_bench.rig.base.influx import Influx, InfluxError

WRITE_PATH = "/api/v2/write"  # 1.8 knows it too; the agent uses it when it has a token
BODY_BYTES_MAX = 4 * 2**20  # the agent sends 1 MiB at most
LINE_BYTES_MAX = 64 * 2**10
AT_A_TIME = 4  # requests; an agent has one
CONNECTIONS_MAX = 32
ASK_EVERY_S = 0.1  # whether it is to stop
IDLE_S_MAX = 120.0  # of a connection that says nothing; the agent's keeps open between its batches
DELIVER_S_MAX = 30.0
ANSWER_BYTES_MAX = 16 * 2**10
TOKEN_BYTES = 24

# The part of a line before its first field: measurement and tags, in which backslashes escape commas, spaces and equal signs.
_ESCAPE = rb"\\[^\x00-\x1f\x7f]"
_NAME = rb"(?:[^\x00-\x20\x7f\\,]|%b)+" % _ESCAPE
_WORD = rb"(?:[^\x00-\x20\x7f\\,=]|%b)+" % _ESCAPE
_SERIES = re.compile(rb"(?!#)%b((?:,%b=%b)*) " % (_NAME, _WORD, _WORD))
_TAG = re.compile(rb",(%b)=(%b)" % (_WORD, _WORD))
_ESCAPED = re.compile(r"[,= ]")


class WriteRelay:
    """Listens on 127.0.0.1 from `start` to `stop`. `tags`: those that each line must have, each once and with this value."""

    def __init__(self, influx: Influx, tags: Mapping[str, str]) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self._influx = influx
        self._tags = {key.encode(): _ESCAPED.sub(r"\\\g<0>", value).encode() for key, value in tags.items()}
        self._free = threading.Semaphore(AT_A_TIME)
        self._server = _Server(("127.0.0.1", 0), _handler(self))

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        threading.Thread(
            target=self._server.serve_forever, args=(ASK_EVERY_S,), name="write-relay", daemon=True
        ).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def seen_from(self, url: str) -> Influx:
        """The InfluxDB as the candidate knows it: the relay at `url`, with the run's own token."""
        return replace(self._influx, url=url, token=self.token, read_token="")

    def admits(self, authorization: str | None) -> bool:
        return hmac.compare_digest((authorization or "").encode(), f"Token {self.token}".encode())

    def refusal(self, body: bytes) -> str | None:
        """Why some lines are not of this run; None when all are."""
        for number, line in enumerate(body.split(b"\n"), 1):
            if not line or line.startswith(b"#"):
                continue
            if len(line) > LINE_BYTES_MAX:
                return f"line {number} has {len(line)} bytes; {LINE_BYTES_MAX} are allowed"
            series = _SERIES.match(line)
            if series is None:
                return f"line {number} does not begin with a measurement and tags"
            tags = _TAG.findall(series[1])
            for key, value in self._tags.items():
                if [one for name, one in tags if name == key] != [value]:
                    return f"line {number} does not have the tag {key.decode()} of this run"
        return None

    def deliver(self, body: bytes) -> tuple[int, bytes, str | None]:
        """(status, body, Retry-After) of InfluxDB; 503 when it does not answer, so that the agent tries again."""
        with self._free:
            try:
                status, text, retry_after = self._influx.deliver(body, DELIVER_S_MAX)
                return status, text.encode()[:ANSWER_BYTES_MAX], retry_after
            except InfluxError as error:
                return 503, str(error).encode(), None


class _Server(http.server.ThreadingHTTPServer):
    """Turns away a connection beyond the bound, so that a candidate cannot make us start threads without end."""

    daemon_threads = True
    request_queue_size = CONNECTIONS_MAX

    def __init__(self, address: tuple[str, int], handler: type[http.server.BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._places = threading.BoundedSemaphore(CONNECTIONS_MAX)

    def verify_request(self, request: object, client_address: object) -> bool:
        return self._places.acquire(blocking=False)

    def process_request_thread(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that the candidate broke off is no fault; any other error is one of ours, and is shown."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def _handler(relay: WriteRelay) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        """One request of the candidate. Whatever is odd about it ends the connection, so that no rest is read as a request."""

        protocol_version = "HTTP/1.1"
        server_version, sys_version = "daq-bench", ""
        timeout = IDLE_S_MAX

        def do_POST(self) -> None:
            if not relay.admits(self.headers.get("Authorization")):
                return self._refuse(401, "this is not the token of the run that is going on")
            if self.path.partition("?")[0] != WRITE_PATH:
                return self._refuse(403, f"only {WRITE_PATH} is open to a candidate")
            length = self.headers.get("Content-Length", "")
            if not re.fullmatch(r"[0-9]{1,9}", length) or self.headers.get("Transfer-Encoding"):
                return self._refuse(411, "Content-Length is missing")
            if int(length) > BODY_BYTES_MAX:
                return self._refuse(413, f"a write may have {BODY_BYTES_MAX} bytes")
            if self.headers.get("Content-Encoding", "identity") != "identity":
                return self._refuse(415, "lines must not be compressed")
            body = self.rfile.read(int(length))
            if len(body) < int(length):
                return self._refuse(400, "the connection ended within the lines")
            if refusal := relay.refusal(body):
                return self._answer(400, _document(refusal), None)
            return self._answer(*relay.deliver(body))

        def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
            """Other methods and broken requests, instead of http.server's page."""
            self._refuse(code, message or "only POST is open to a candidate")

        def _refuse(self, status: int, reason: str) -> None:
            self.close_connection = True
            self._answer(status, _document(reason), None)

        def _answer(self, status: int, body: bytes, retry_after: str | None) -> None:
            self.send_response_only(status)
            for key, value in (
                ("Retry-After", retry_after),
                ("Connection", "close" if self.close_connection else None),
            ):
                if value:
                    self.send_header(key, value)
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if status != 204:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: what a candidate sends must not reach the operator's terminal."""

    return Handler


def _document(reason: str) -> bytes:
    """A refusal in the form of InfluxDB's, which the agent reads."""
    return b'{"error": "%b"}' % reason.replace("\\", "").replace('"', "'").encode()
