"""The properties of a factory's bundle, and its clock. For tests only."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from daq_bench.bench_model.base.load import Demand

START = datetime(2026, 3, 14, 2, 0, 0, tzinfo=UTC)
LINKS, SUPERCHUNK_BYTES, RATE_HZ = 10, 5568, 166_000
REAL = float(LINKS * SUPERCHUNK_BYTES * RATE_HZ)
MIB = 2**20
SCAN_S, RECORD_AT_S = 50.0, 56.0
NON_LATIN = (  # Cyrillic, Greek, Arabic, Japanese, Chinese, Korean
    "\u0441\u0435\u0440\u0432\u0435\u0440 \u03b1\u03b2\u03b3 \u0627\u0644\u062e\u0627\u062f\u0645 "
    "\u30b5\u30fc\u30d0\u30fc \u670d\u52a1\u5668 \uc11c\ubc84"
)
LONG = "ExtraordinarilyLongVendorNameWithoutAnySpaces_" * 4


@dataclass(frozen=True)
class Knobs:
    outcome: str = "INADMISSIBLE"
    scale: float = 0.1
    duration_s: float = 20.0
    repetitions: int = 1
    requirements: int = 9
    cores: int = 2
    seed: int = 7
    stall_share: float = 0.35  # share of the drive's speed while it stalls
    drive_headroom: float = 1.6  # drive speed over offered rate
    ring_bytes: float = 10 * 64 * MIB
    scaled_down: bool = True
    telemetry: bool = True
    temperature: bool = False
    hdr: bool = True
    masked: tuple[int, ...] = (8192,)
    interrupted: bool = False  # stopped in the record: no record result, no verdict
    early_error: bool = False  # broke before any workload: run.json and the tuning only
    long_names: bool = False
    non_latin: bool = False
    device_reports: bool = False
    faults: int = 0
    drives: int = 0  # of an array; none: a single device
    smart_worse: bool = False  # a drive counts media errors during the run
    extra: dict[str, Any] = field(default_factory=dict)  # files to write last, by name

    @property
    def masked_sizes(self) -> tuple[int, ...]:
        """A block size that does not count leaves a hole in the plan, which forbids a PASS."""
        return () if self.outcome == "PASS" else self.masked


SEED = 20211


def utc(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ns(seconds: float) -> int:
    return int((START.timestamp() + seconds) * 1e9)


def offered_rate(knobs: Knobs) -> float:
    return REAL * knobs.scale


def demand(knobs: Knobs) -> Demand:
    return Demand(LINKS, SUPERCHUNK_BYTES, float(RATE_HZ), knobs.scale, knobs.duration_s)


def ring_of(knobs: Knobs) -> int:
    """Returns one link's ring, in B: it grows with the load, so that a stall of a whole unit's drive finds room, too."""
    return int(knobs.ring_bytes / LINKS) * max(1, round(12 * knobs.scale))


def workloads(knobs: Knobs) -> dict[str, Any]:
    """Returns the scenario's workloads, sizes in bytes."""
    scan = {
        "block_sizes": [2**power for power in range(12, 26)], "seconds_per_point": 5, "ramp_s": 0.5, "io_depth": 8,
        "file_size": 4 * 2**30, "confirm": {"repetitions": 6, "seconds_per_repetition": 20}, "yields": [],
    }  # fmt: skip
    record = {
        "links": LINKS, "superchunk_bytes": SUPERCHUNK_BYTES, "superchunk_rate_hz": RATE_HZ, "ring_size": ring_of(knobs),
        "block_size": 8 * MIB, "io_depth": 4, "checksum": "crc32", "yields": [],
    }  # fmt: skip
    return {"block_scan": scan, "snb_record": record}
