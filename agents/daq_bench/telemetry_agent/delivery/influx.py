"""One synchronous write to InfluxDB, and what its answer means.

Promise: only HTTP 204 counts as stored. `Rejected` means that lines among these are at fault and will never be taken;
`Retryable` is everything else (server away, overloaded, full, or set up wrongly: no database, no permission), where the
lines must be kept, and says how long to wait at least. The token comes from the environment alone and appears in no message.
"""

from __future__ import annotations

import email.utils
import http.client
import json
import re
import time
import urllib.parse
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from daq_bench.candidate_kit.influx_answers import (
    CONTENT_STATUSES,
    NO_INFLUXDB,
    ORGANISATION,
    TLS,
    TOO_LARGE,
    blames_lines,
    set_up_fault,
)
from daq_bench.telemetry_agent.delivery.http_post import Answer, Poster

TOKEN_VARIABLE = "DAQ_BENCH_INFLUX_TOKEN"  # the variable's name, not a token
BUSY_STATUSES = frozenset((429, 503))  # the statuses whose Retry-After is heeded
RETRY_AFTER_S_MAX = 60.0
# Nobody mends a wrong set-up within seconds, and each attempt carries a megabyte.
SET_UP_RETRY_S = 30.0
# "partial write: points beyond retention policy dropped=17", "partial write: field type conflict: ... dropped=1"
DROPPED = re.compile(r"\bdropped=(\d+)")
# The statuses above also come with a wrong set-up.
SET_UP_REMEDIES = {
    TLS: "begin --influx-url with https://",
    ORGANISATION: "correct the organisation (--org)",
    NO_INFLUXDB: "a proxy or web server answers there, and no InfluxDB: correct --influx-url",
}
HINTS = {
    401: f"set {TOKEN_VARIABLE} to a valid token",
    403: "the token may not write to this bucket",
    404: "create the database (bucket), or correct --database and --influx-url",
}


class Retryable(Exception):  # noqa: N818 - a verdict on a write
    """The lines are not stored but may be later, `after_s` seconds from now at the earliest; `asked`: the server says so."""

    def __init__(self, text: str, after_s: float = 0.0, asked: bool = False) -> None:
        super().__init__(text)
        self.after_s, self.asked = after_s, asked


class Rejected(Exception):  # noqa: N818 - a verdict on a write
    """The server will never store (all of) these lines; the text is its reason.

    `dropped`: how many it says to have dropped. InfluxDB may count too few (only one shard's), never too many."""

    def __init__(self, text: str, dropped: int = 0) -> None:
        super().__init__(text)
        self.dropped = dropped


class TooLarge(Rejected):
    """A proxy before the server takes no body of this size: fewer lines pass, and one that does not pass alone is kept."""


class Writer(Protocol):
    """Describes where delivery sends its batches."""

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


class InfluxWriter:
    """Writes to one destination."""

    def __init__(self, destination: Destination) -> None:
        self._base = destination.url
        headers: dict[str, str | bytes] = {"Content-Type": "text/plain; charset=utf-8"}
        if destination.token:
            headers["Authorization"] = f"Token {destination.token}".encode()
        self._poster = Poster(destination.write_url(), headers)

    def write(self, body: bytes, timeout_s: float) -> None:
        """See `Writer`."""
        try:
            answer = self._poster.post(body, timeout_s)
        except (OSError, http.client.HTTPException) as error:
            raise Retryable(f"{self._base}: {str(error) or type(error).__name__}") from None
        if answer.status != 204:
            _raise(self._base, answer)


def _raise(base: str, answer: Answer) -> NoReturn:
    status, reason = answer.status, _reason(answer.body)
    text = f"HTTP {status}: {reason}" if reason else f"HTTP {status}"
    fault = set_up_fault(reason) if status in CONTENT_STATUSES else None
    if fault:
        told = f"{base}: {text} ({SET_UP_REMEDIES[fault]})"
        raise TooLarge(told) if status == TOO_LARGE else Retryable(told, SET_UP_RETRY_S)
    if blames_lines(status, reason):
        dropped = DROPPED.search(reason)
        raise Rejected(text, int(dropped[1]) if dropped else 0)
    if status < 400:
        text += " (204 expected: is this an InfluxDB?)"
    hint = HINTS.get(status)
    if hint:
        raise Retryable(f"{base}: {text} ({hint})", SET_UP_RETRY_S)
    pause_s = retry_after_s(answer.retry_after) if status in BUSY_STATUSES else 0.0
    raise Retryable(f"{base}: {text}", pause_s, asked=pause_s > 0)


def retry_after_s(text: str | None) -> float:
    """A Retry-After header's seconds or date as seconds from now, within bounds; 0 without one or with nonsense."""
    if not text:
        return 0.0
    if text.strip().isdigit():
        wanted_s = float(text)
    else:
        try:
            wanted_s = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (TypeError, ValueError):
            return 0.0
    return min(RETRY_AFTER_S_MAX, max(0.0, wanted_s))


def _reason(body: bytes) -> str:
    text = body.decode("utf-8", "replace").strip()
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text[:500]
    if isinstance(document, dict):
        return str(document.get("error") or document.get("message") or text)[:500]
    return text[:500]
