"""Tells answers to a write that say that the set-up is wrong from those about a line of the write.

Promise: the agent, which keeps its lines then, and the rig, which refuses the run, take the same answers for a wrong set-up; and both set
a line aside by the same answers.
Sources: Go's net/http and nginx for TLS, InfluxDB 1.8, 2.0 and 2.9 for the organisation and for what they say of lines.
"""

from __future__ import annotations

import re

TLS, ORGANISATION, NO_INFLUXDB = "TLS", "organisation", "no InfluxDB"
# InfluxDB repeats a line that it cannot read: whatever words stand there are the line's own.
OF_LINES = re.compile(r"unable to parse|failed to parse|partial write|field type conflict")
WRITE_TIMEOUT_S = (
    15.0  # 1.8 gives up a write after 10 s by itself: who waits less never learns what a slow server has stored
)
TOO_LARGE = 413
CONTENT_STATUSES = frozenset((400, TOO_LARGE, 422))
# InfluxDB 2.0 answers a partial write with 500: the lines that it dropped will never be taken.
_PARTIAL = re.compile(r"partial write|field type conflict")
_FAULTS = (
    (TLS, re.compile(r"HTTP request to an HTTPS server|plain HTTP request was sent to HTTPS", re.IGNORECASE)),
    (
        ORGANISATION,
        re.compile(
            r"\borg(?:anization)?(?: name| ID)?\b.*(?:not found|missing|required|could not)|please provide.*org",
            re.IGNORECASE,
        ),
    ),
    (NO_INFLUXDB, re.compile(r"^\s*<(?:!doctype|html)", re.IGNORECASE)),
)


def set_up_fault(reason: str) -> str | None:
    """Return TLS, ORGANISATION or NO_INFLUXDB (a proxy's or web server's page), None for what says nothing of the set-up."""
    if OF_LINES.search(reason):
        return None
    return next((fault for fault, words in _FAULTS if words.search(reason)), None)


def blames_lines(status: int, reason: str) -> bool:
    """Say whether a write failed by a line among those that were sent, which the server will never take."""
    if status in CONTENT_STATUSES:
        return set_up_fault(reason) is None
    return status == 500 and _PARTIAL.search(reason) is not None


def is_sendable(token: str) -> bool:
    """Say whether a header can carry this token: it has no line end, no control character and no byte that is no UTF-8."""
    return token.isprintable()
