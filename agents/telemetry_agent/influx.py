"""One synchronous write to InfluxDB, and what its answer means.

Promise: only HTTP 204 counts as stored. `Rejected` means that the lines themselves are at fault and will
never be taken; `Retryable` is everything else (server away, overloaded, or set up wrongly: no database, no
permission), where the lines must be kept. The token comes from the environment alone and appears in no
message.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

TOKEN_VARIABLE = "DAQ_BENCH_INFLUX_TOKEN"  # the variable's name, not a token
CONTENT_STATUSES = frozenset((400, 413, 422))
HINTS = {
    401: f"set {TOKEN_VARIABLE} to a valid token",
    403: "the token may not write to this bucket",
    404: "create the database (bucket), or correct --database and --influx-url",
}


class Retryable(Exception):  # noqa: N818 - a verdict on a write
    """The lines are not stored but may be later."""


class Rejected(Exception):  # noqa: N818 - a verdict on a write
    """The server will never store (all of) these lines; the text is its reason."""


class Writer(Protocol):
    """Where delivery sends its batches."""

    def write(self, body: bytes, timeout_s: float) -> None:
        """Store whole lines; returns only when they are stored, else raises Retryable or Rejected."""


@dataclass(frozen=True)
class Destination:
    """An InfluxDB: 1.x `/write`, or `/api/v2/write` when there is a token."""

    url: str
    database: str
    org: str = ""
    token: str = field(default="", repr=False)

    def write_url(self) -> str:
        """Full URL with nanosecond precision."""
        if self.token:
            path, query = "/api/v2/write", {"org": self.org, "bucket": self.database, "precision": "ns"}
        else:
            path, query = "/write", {"db": self.database, "precision": "ns"}
        return self.url.rstrip("/") + path + "?" + urllib.parse.urlencode(query)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST becomes a GET, whose 200 would look like success: a redirect is an error here."""

    def redirect_request(self, *_arguments: object, **_keywords: object) -> None:
        return None


class InfluxWriter:
    """Writes to one destination, without proxies: it is the bench's own, on loopback or in the laboratory."""

    def __init__(self, destination: Destination) -> None:
        self._url = destination.write_url()
        self._base = destination.url
        self._headers = {"Content-Type": "text/plain; charset=utf-8"}
        if destination.token:
            self._headers["Authorization"] = "Token " + destination.token
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)

    def write(self, body: bytes, timeout_s: float) -> None:
        """See `Writer`."""
        request = urllib.request.Request(self._url, data=body, headers=self._headers, method="POST")
        try:
            with self._opener.open(request, timeout=timeout_s) as answer:
                status, text = answer.status, b""
        except urllib.error.HTTPError as error:
            status, text = error.code, _body(error)
        except (OSError, http.client.HTTPException) as error:
            raise Retryable(f"{self._base}: {_cause(error)}") from None
        if status != 204:
            _raise(self._base, status, _reason(text))


def _body(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(4096)
    except (OSError, http.client.HTTPException):
        return b""  # the status alone decides; its explanation was cut off
    finally:
        error.close()


def _raise(base: str, status: int, reason: str) -> NoReturn:
    text = f"HTTP {status}: {reason}" if reason else f"HTTP {status}"
    if status in CONTENT_STATUSES:
        raise Rejected(text)
    if status < 400:
        text += " (204 expected: is this an InfluxDB?)"
    hint = HINTS.get(status)
    raise Retryable(f"{base}: {text}" + (f" ({hint})" if hint else ""))


def _cause(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return str(reason) or type(reason).__name__


def _reason(body: bytes) -> str:
    text = body.decode("utf-8", "replace").strip()
    try:
        document = json.loads(text)
    except ValueError:
        return text[:500]
    if isinstance(document, dict):
        return str(document.get("error") or document.get("message") or text)[:500]
    return text[:500]
