"""An HTTP answer within one limit of time for all of it, however little each read brings."""

from __future__ import annotations

import http.client
import io
import socket
import time
from typing import Any, Callable


class _Bounded(io.RawIOBase):
    """A socket's receiving side that gives up at a moment, however little each read brings."""

    def __init__(self, sock: socket.socket, until_s: float) -> None:
        self._sock, self._until_s = sock, until_s
        # Keeps the socket open until the answer is read, as http.client expects it.
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Reads the bytes that are there, or raises socket.timeout."""
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise socket.timeout("timed out: the answer came too slowly")
        self._sock.settimeout(left_s)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """The reading side only."""
        self._raw.close()
        super().close()


class _Source:
    """Stands in for the socket that HTTPResponse reads."""

    def __init__(self, sock: socket.socket, until_s: float) -> None:
        self._sock, self._until_s = sock, until_s

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The bounded stream."""
        return io.BufferedReader(_Bounded(self._sock, self._until_s))


def bounded_response(until_s: float) -> Callable[..., http.client.HTTPResponse]:
    """Return a connection's `response_class`: with it no answer lasts beyond a moment of the monotonic clock."""

    def bounded(sock: socket.socket, **keywords: Any) -> http.client.HTTPResponse:
        return http.client.HTTPResponse(_Source(sock, until_s), **keywords)  # type: ignore[arg-type]

    return bounded
