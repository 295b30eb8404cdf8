"""events.jsonl: what happened during a run, a line for each event."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from daq_bench.bench_model.documents.struct import Closed, Utc, moment


class Event(Closed, frozen=True):
    """`source`: who says so. `data`: what belongs to this kind of event, such as a hazard's parameters."""

    time_utc: Utc
    kind: str
    source: str
    text: str
    data: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        moment(self.time_utc)

    @property
    def time(self) -> datetime:
        return moment(self.time_utc)

    @property
    def time_s(self) -> float:
        """Returns s since 1970 UTC."""
        return self.time.timestamp()
