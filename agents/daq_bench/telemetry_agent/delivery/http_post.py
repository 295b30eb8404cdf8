"""One HTTP POST over a connection that is kept, within one limit of time for all of it.

Promise: the answer's status and the beginning of its body, or an OSError or HTTPException; never longer than asked, even
when the server sends one byte a second. A kept connection that the server has closed meanwhile is opened anew, once.
No proxies and no redirects: the server is the bench's own, and a redirected POST would become a GET whose 200 looked like
success.
"""

from __future__ import annotations

import http.client
import time
import urllib.parse
from collections.abc import Mapping
from typing import NamedTuple

from daq_bench.candidate_kit.bounded_http import bounded_response

BODY_BYTES_MAX = 4096
TIMEOUT_S_MIN = 0.05


class Answer(NamedTuple):
    """`retry_after`: that header's text, if any."""

    status: int
    body: bytes
    retry_after: str | None


class Poster:
    """Posts to one URL."""

    def __init__(self, url: str, headers: Mapping[str, str | bytes]) -> None:
        parts = urllib.parse.urlsplit(url)
        self._https = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port
        self._path = (parts.path or "/") + ("?" + parts.query if parts.query else "")
        self._headers = dict(headers)
        self._connection: http.client.HTTPConnection | None = None

    def post(self, body: bytes, timeout_s: float) -> Answer:
        """Send and wait for the answer."""
        until_s = time.monotonic() + timeout_s
        if self._connection is not None:
            try:
                return self._exchange(self._connection, body, until_s)
            except (ConnectionResetError, BrokenPipeError):
                pass  # closed since the last answer: the lines may be stored twice, which changes nothing
        kind = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
        self._connection = kind(self._host, self._port, timeout=max(TIMEOUT_S_MIN, until_s - time.monotonic()))
        return self._exchange(self._connection, body, until_s)

    def _exchange(self, connection: http.client.HTTPConnection, body: bytes, until_s: float) -> Answer:
        connection.response_class = bounded_response(until_s)  # type: ignore[assignment]
        keep = False
        try:
            if connection.sock is not None:
                connection.sock.settimeout(max(TIMEOUT_S_MIN, until_s - time.monotonic()))
            connection.request("POST", self._path, body, self._headers)
            response = connection.getresponse()
            text = self._body(response)
            keep = response.isclosed() and connection.sock is not None
            return Answer(response.status, text, response.headers.get("Retry-After"))
        finally:
            if not keep:
                connection.close()
                self._connection = None

    @staticmethod
    def _body(response: http.client.HTTPResponse) -> bytes:
        try:
            return response.read(BODY_BYTES_MAX)
        except (OSError, http.client.HTTPException):
            return b""  # the status alone decides; its explanation was cut off
