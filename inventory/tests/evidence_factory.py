"""Evidence of an imaginary run at full scale in which everything is right; tests spoil one thing at a time."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

from bench_model.evidence import Evidence

MINIDAQ: dict[str, Any] = {
    "status": "complete",
    "superchunks": {"intended": 1000, "offered": 1000, "stored": 1000, "lost": 0},
    "busy": {"count": 0},
    "source": {"achieved_fraction": 1.0},
    "transient_buffer": {"needed_bytes": 200_000_000},
    "latency_us": {"p99_9": 20_000.0},
    "write_latency_us": {"p99_9": 5_000.0},
}


def setting(status: str, **changes: str) -> dict[str, Any]:
    """One entry of facts/tuning.json."""
    asked = {"id": "cpu-governor", "role": "cpu", "subject": "cpu0", "asked": "performance", "before": "powersave"}
    return {**asked, "applied": "performance", "read_back": "performance", "status": status, "detail": "", **changes}


def scan_point(rate: float, seconds: float = 20.0) -> dict[str, Any]:
    """A point of 8 MiB with its samples of 250 ms: `rate`, scattered by 1 %."""
    generator = random.Random(7)
    samples = [rate * generator.gauss(1, 0.01) for _ in range(int(seconds * 4))]
    rate = sum(samples) / len(samples)
    return {"block_bytes": 2**23, "throughput_bytes_per_s": rate, "throughput_bytes_per_s_samples": samples}


def evidence(repetitions: int = 1) -> Evidence:
    """A whole unit's load for 100 s on the candidate's own file system."""
    repetition = {"minidaq": MINIDAQ, "verify": {}, "damaged_superchunks": 0, "verified_fraction": 1.0}
    return Evidence(
        run={
            "state": "finished",
            "state_reason": None,
            "candidate": {"transient_buffer_bytes": 10**9},
            "target": {"kind": "filesystem", "filesystem": "xfs"},
            "scenario": {"scale": 1.0, "seed": 20211},
            "demand": {"offered_bytes_per_s": 9.24288e9, "real_bytes_per_s": 9.24288e9, "duration_s": 100.0},
        },
        identity={"checks": [{"subject": "CPUs", "declared": "at least 2", "found": "2", "ok": True}]},
        tuning={"settings": [setting("applied")]},
        tuning_verified={"settings": [setting("unchanged")]},
        tuning_after={"settings": [setting("unchanged")]},
        telemetry={"collectors": [{"name": "cpu", "status": "ok", "period_s": 1.0, "longest_gap_s": 1.1}]},
        results={
            "results/block_scan.json": {
                "points": [scan_point(9.9e9)],
                "large_blocks": {"throughput_bytes_per_s": 9.9e9},
                "reasons": {},
            },
            "results/snb_record.json": {"repetitions": [deepcopy(repetition) for _ in range(repetitions)]},
            "results/drive_temperature.json": {"headroom_degC": 12.0, "critical_headroom_degC": 22.0, "reasons": {}},
            "results/record_power.json": {"records": [{"mean_w": 450.0, "w_per_gb_per_s": 48.7}], "reasons": {}},
        },
    )
