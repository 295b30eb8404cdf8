"""Reads a drive's persistent event log now and then, and says which of its events are new.

Promise: what stood there at the first reading is not told. A reading opens the log's context and closes it again, whatever happens
in between; a context that somebody left open is closed first. An event's age is by the drive's own clock; where that says more than the
time since the reading before, the clock was set, and the event may have happened at any time since then. A log that
could never be read is asked for once; one that fails later is a fault each time. Neither costs anything else.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from daq_bench.telemetry_agent.devices import nvme_events
from daq_bench.telemetry_agent.devices.nvme_events import EVENTS_MAX, HEADER_BYTES, LOG_BYTES_MAX, OTHERS, Event, Header

PERIOD_S = 60.0
LATER_MS = 5_000  # an event may be written down so much later than it happened

Fetch = Callable[..., bytes]  # (size, *options of nvme get-log); raises OSError


class Told(NamedTuple):
    """`document`: {"logged": events in the log, "events": the new ones}."""

    document: dict[str, Any]
    faults: Sequence[str]


class EventLog:
    """Reads one drive's events; `read` is called from one thread at a time."""

    def __init__(self) -> None:
        self._asked_s = float("-inf")
        self._refused = False
        self._read_s: float | None = None  # when it was read well, last
        self._seen: frozenset[bytes] = frozenset()

    def read(self, fetch: Fetch) -> Told | None:
        """None where it is not time yet, or never will be. Raises OSError and ValueError."""
        now_s = time.monotonic()
        if self._refused or now_s - self._asked_s < PERIOD_S:
            return None
        self._asked_s = now_s
        try:
            stated, log = self._fetched(fetch)
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            self._refused = self._read_s is None
            raise ValueError(f"{error}; not read again") if self._refused else error from None
        found, faults = nvme_events.events(log, stated)
        new = [] if self._read_s is None else self._new(found, stated, now_s - self._read_s)
        self._seen = frozenset(one.key for one in found)
        self._read_s = now_s
        return Told({"logged": stated.events, "events": new}, faults)

    def _fetched(self, fetch: Fetch) -> tuple[Header, bytes]:
        """The header, and the log with it, as far as it is read. A full log that gives up its oldest event looks the same from outside."""
        try:
            page = fetch(HEADER_BYTES, nvme_events.ESTABLISH)
        except TimeoutError:
            raise
        except OSError:  # a context is open, perhaps of an agent that was killed
            fetch(HEADER_BYTES, nvme_events.RELEASE)
            page = fetch(HEADER_BYTES, nvme_events.ESTABLISH)
        try:
            stated = nvme_events.header(page)
            size = -(-(min(stated.length, LOG_BYTES_MAX) - HEADER_BYTES) // 4) * 4  # whole double words
            rest = fetch(size, nvme_events.READ, f"--lpo={HEADER_BYTES}") if size > 0 else b""
        finally:
            fetch(HEADER_BYTES, nvme_events.RELEASE)
        if len(rest) != max(size, 0):
            raise ValueError(f"persistent event log: {len(rest)} B instead of {size} B after its header")
        return stated, page + rest

    def _new(self, found: list[Event], stated: Header, since_s: float) -> list[dict[str, Any]]:
        """Returns the events that were not there before. A log that is too long to be read whole shifts: its events from before that
        time are left out. A shorter log keeps all, since a drive that lost its power may have lost its clock."""
        longest_ms = int(since_s * 1000)
        shifts = stated.length > LOG_BYTES_MAX
        fresh = []
        for one in found:
            age_ms = stated.time_ms - one.time_ms
            if one.key not in self._seen and not (shifts and age_ms > longest_ms + LATER_MS):
                row = {"kind": one.kind, "text": one.text, "time_ms": one.time_ms, "events": 1}
                dated = 0 <= age_ms <= longest_ms + LATER_MS
                fresh.append(
                    {
                        **row,
                        "age_ms": min(age_ms, longest_ms) if dated else 0,
                        "earlier_ms": LATER_MS if dated else longest_ms,
                    }
                )
        kept, beyond = fresh[:EVENTS_MAX], fresh[EVENTS_MAX:]
        if beyond:
            kept.append({**beyond[0], "kind": OTHERS, "events": len(beyond)})
        return kept
