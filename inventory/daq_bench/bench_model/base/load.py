"""The load of one readout unit: links x superchunk rate x superchunk size, nominal beside real (DUNE paper, sections 1 and 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

# The paper's round figure per readout unit; the real demand follows from links x rate x size and is 7.6 % lower.
NOMINAL_BYTES_PER_S = 10e9


@dataclass(frozen=True)
class Demand:
    """The detector's rate (`real`), the paper's rounded one (`nominal`) and the one that this run offers (`offered`), in B/s."""

    links: int
    superchunk_bytes: int
    superchunk_rate_hz: float
    scale: float
    duration_s: float

    @staticmethod
    def of(own: Mapping[str, Any], scale: float, duration_s: float) -> Demand:
        """The load of a workload's parameters."""
        return Demand(own["links"], own["superchunk_bytes"], float(own["superchunk_rate_hz"]), scale, float(duration_s))

    @property
    def real_bytes_per_s(self) -> float:
        return self.links * self.superchunk_bytes * self.superchunk_rate_hz

    @property
    def offered_bytes_per_s(self) -> float:
        return self.real_bytes_per_s * self.scale

    @property
    def record_bytes(self) -> int:
        """Payload of one record in bytes."""
        return round(self.offered_bytes_per_s * self.duration_s)

    def as_document(self) -> dict[str, float]:
        return {
            **asdict(self),
            "real_bytes_per_s": self.real_bytes_per_s,
            "nominal_bytes_per_s": NOMINAL_BYTES_PER_S,
            "offered_bytes_per_s": self.offered_bytes_per_s,
            "record_bytes": self.record_bytes,
        }
