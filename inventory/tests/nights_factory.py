"""Writes bundles of nightly runs as far as a history reads them. For tests only: nothing here was measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

SUSTAIN = "The drives sustain the demand"
FIRST = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


@dataclass(frozen=True)
class NightPlan:
    """One night. `rate` in GB/s with `half` the width of half its interval; `late` the 99.9th percentile in ms."""

    number: int
    rate: float = 10.0
    half: float | None = 0.1
    late: float = 4.0
    lost: float = 0.0
    bound: float = 9.0
    outcome: str = "PASS"
    state: str = "finished"
    candidate: str = "server-a"
    scenario: str = "snb-100s"
    scale: float = 1.0
    firmware: str = "1.0"
    kernel: str = "6.1.0-30"
    inlet: float | None = None
    hours: float | None = None
    versions: dict[str, str] = field(default_factory=lambda: {"fio": "3.33", "smartctl": "7.3"})
    governor: str = "performance"
    sensors: tuple[str, ...] = ("block_device", "smart", "ipmi_sensor")
    started: datetime | None = None

    @property
    def start(self) -> datetime:
        return self.started or FIRST + timedelta(days=self.number)

    @property
    def run_id(self) -> str:
        return f"{self.start:%Y%m%dT%H%M%SZ}-{self.candidate}-{self.scenario}"


def write_night(runs: Path, plan: NightPlan, folder: str | None = None) -> Path:
    """The bundle's path."""
    bundle = runs / (folder or plan.run_id)
    for name in ("facts", "telemetry", "results"):
        (bundle / name).mkdir(parents=True)
    _write(bundle / "run.json", _run(plan))
    _write(bundle / "verdict.json", _verdict(plan))
    _write(bundle / "facts" / "tuning.json", {"settings": [_setting("cpu-governor", plan.governor)]})
    _write(bundle / "facts" / "host.json", {"dmi": {"bios_version": "2.1", "sys_vendor": "Maker"}})
    smart = {"serial_number": "S1", "power_on_time": {"hours": plan.hours}} if plan.hours is not None else None
    _write(bundle / "facts" / "smart-before.json", {"devices": [{"device": "/dev/nvme0n1", "data": smart}]})
    _write(bundle / "telemetry" / "summary.json", {"collectors": [{"name": n, "status": "ok"} for n in plan.sensors]})
    if plan.inlet is not None:
        (bundle / "telemetry" / "points.lp").write_text(_points(plan), encoding="utf-8")
    events = [
        _event(plan, 10, "phase", "block_scan"),
        _event(plan, 60, "phase", "snb_record"),
        _event(plan, 170, "phase", "verify"),
    ]
    (bundle / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events), encoding="utf-8")
    return bundle


def _event(plan: NightPlan, after_s: float, kind: str, source: str) -> dict[str, Any]:
    moment = (plan.start + timedelta(seconds=after_s)).isoformat()
    return {"time_utc": moment, "kind": kind, "source": source, "text": source, "data": {}}


def _points(plan: NightPlan) -> str:
    at = int(plan.start.timestamp() * 1e9)
    lines = [f"cpu,core=0 busy=0.5 {at}"]
    lines += [
        f"ipmi_sensor,entity=55.1,kind=temperature,sensor=Inlet\\ Temp temperature_degc={plan.inlet},severity=0i {at + n}"
        for n in range(3)
    ]
    return (
        "\n".join([*lines, f"ipmi_sensor,entity=3.1,kind=temperature,sensor=CPU\\ Temp temperature_degc=70 {at}"])
        + "\n"
    )


def _write(file: Path, document: object) -> None:
    file.write_text(json.dumps(document), encoding="utf-8")


def _setting(name: str, value: str) -> dict[str, str]:
    return {"id": name, "subject": "", "read_back": value, "applied": value, "status": "applied"}


def _run(plan: NightPlan) -> dict[str, Any]:
    drive = {"name": "nvme0n1", "model": "Model X", "serial": "S1", "firmware": plan.firmware, "pcie_link": "Gen5 x4"}
    return {
        "schema_version": 1,
        "run_id": plan.run_id,
        "state": plan.state,
        "started_utc": plan.start.isoformat(),
        "finished_utc": (plan.start + timedelta(minutes=4)).isoformat(),
        "candidate": {
            "name": plan.candidate,
            "hostname": "host-a",
            "kernel": plan.kernel,
            "cpu_model": "CPU",
            "cpus": 64,
        },
        "target": {"name": "nand", "kind": "filesystem", "filesystem": "xfs", "device": drive, "drives": [drive]},
        "scenario": {"id": plan.scenario, "scale": plan.scale, "seed": 1, "parameters": {"duration_s": 100.0}},
        "requirement": {"id": "dune-snb"},
        "versions": plan.versions,
        "git": {"commit": "4f0c2d1e9ab34c55d0e1f2a3b4c5d6e7f8091a2b", "dirty": False},
    }


def _verdict(plan: NightPlan) -> dict[str, Any]:
    rate_met, late_met, lost_met = plan.rate >= plan.bound, plan.late <= 10, plan.lost == 0
    interval = [plan.rate - plan.half, plan.rate + plan.half] if plan.half else None
    rows = [
        _row("R-01", SUSTAIN, "block_scan.large_block_throughput", "at_least", (plan.bound, "GB/s"), plan.rate, interval, rate_met),
        _row("R-02", "Writes are on time", "snb_record.write_latency_p99_9", "at_most", (10.0, "ms"), plan.late, None, late_met),
        _row("R-03", "Nothing is lost", "snb_record.lost_superchunks", "equal", (0.0, "count"), plan.lost, None, lost_met),
    ]  # fmt: skip
    missed = not (rate_met and late_met and lost_met)
    outcome = "FAIL" if missed and plan.outcome == "PASS" else plan.outcome
    return {
        "schema_version": 1, "outcome": outcome, "reasons": ["why"], "scale": plan.scale,
        "declared_rehearsal": outcome == "INADMISSIBLE", "findings": [], "requirements": rows,
    }  # fmt: skip


def _row(
    name: str,
    text: str,
    metric: str,
    comparison: str,
    limit: tuple[float, str],
    value: float,
    interval: Sequence[float] | None,
    met: bool,
) -> dict[str, Any]:
    bound, unit = limit
    return {
        "id": name, "text": text, "metric": metric, "comparison": comparison, "bound": bound, "scaled_bound": bound, "unit": unit,
        "statistic": "min", "measured": value, "n": 1, "confidence_interval": interval, "decision": "met" if met else "missed",
        "severity": "mandatory", "outcome": "PASS" if met else "FAIL", "reason": "Met" if met else "Missed",
    }  # fmt: skip


def season(count: int = 24, seed: int = 1) -> list[NightPlan]:
    """A plausible history: a firmware that takes 0.7 GB/s at run 15, 0.2 GB/s per degree of the inlet, latency that creeps up."""
    random = np.random.default_rng(seed)
    inlet = 24 + random.normal(0, 2.0, count)
    nights = []
    for number in range(count):
        half = 0.08 if random.random() > 0.2 else 0.3
        rate = (
            10.6
            - 0.20 * (inlet[number] - 24)
            + random.normal(0, 0.06)
            + random.normal(0, half / 2)
            - 0.7 * (number >= 14)
        )
        nights.append(
            NightPlan(
                number, rate=round(float(rate), 4), half=half, late=round(4 + 0.08 * number + float(random.normal(0, 0.15)), 3),
                inlet=round(float(inlet[number]), 2), firmware="1.1" if number >= 14 else "1.0",
                kernel="6.1.0-32" if number >= 6 else "6.1.0-30", hours=1000.0 + 24 * number,
            )
        )  # fmt: skip
    return nights


def changed(nights: Sequence[NightPlan], number: int, **changes: Any) -> list[NightPlan]:
    """The nights with one of them altered."""
    return [replace(night, **changes) if night.number == number else night for night in nights]
