"""Writes bundles of nightly runs as far as a history reads them. For tests only: nothing here was measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from evidence_factory import LOAD_OF_MADE_UP, conclude, made_up, surroundings

SUSTAIN = "The drives sustain the demand"
FIRST = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


@dataclass(frozen=True)
class NightPlan:
    """One night. `rate` in GB/s with `half` the width of half its interval; `late` the 99.9th percentile in ms.

    `outcome`: INADMISSIBLE for a declared rehearsal; else the values decide."""

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
    first: str = "R-01"  # the requirement of the rate: its name, its metric, and its unit
    metric: str = "night.rate"
    unit: str = "GB/s"
    left: tuple[str, ...] = ()  # what could not be given back

    @property
    def start(self) -> datetime:
        return self.started or FIRST + timedelta(days=self.number)

    @property
    def run_id(self) -> str:
        return f"{self.start:%Y%m%dT%H%M%SZ}-{self.candidate}-{self.scenario}"


def write_night(runs: Path, plan: NightPlan, folder: str | None = None) -> Path:
    """The path of a bundle that was judged and sealed."""
    bundle = runs / (folder or plan.run_id)
    for name in ("facts", "telemetry", "results", "profiles/requirements"):
        (bundle / name).mkdir(parents=True)
    run = _run(plan)
    _write(bundle / "run.json", run)
    surroundings(bundle, run, plan.sensors)
    _write(bundle / "profiles" / "metrics.yml", _metrics(plan))  # JSON is YAML too
    _write(bundle / "profiles" / "requirements" / "nights.yml", _profile(plan))
    _write(bundle / "results" / "night.json", _results(plan))
    for name in ("tuning", "tuning-verified", "tuning-after"):
        _write(bundle / "facts" / f"{name}.json", {"settings": [_setting("cpu-governor", plan.governor)]})
    _write(bundle / "facts" / "host.json", {"dmi": {"bios_version": "2.1", "sys_vendor": "Maker"}})
    smart = {"serial_number": "S1", "power_on_time": {"hours": plan.hours}} if plan.hours is not None else None
    _write(bundle / "facts" / "smart-before.json", {"devices": [{"device": "/dev/nvme0n1", "data": smart}]})
    if plan.inlet is not None:
        (bundle / "telemetry" / "points.lp").write_text(_points(plan), encoding="utf-8")
    events = [
        _event(plan, 10, "phase", "block_scan"),
        _event(plan, 60, "phase", "snb_record"),
        _event(plan, 170, "phase", "verify"),
        *({**_event(plan, 230, "error", "clean-up"), "text": f"{name}: it does not answer"} for name in plan.left),
    ]
    (bundle / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events), encoding="utf-8")
    return conclude(bundle)


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
    return {
        "id": name, "role": "cpu", "subject": "", "asked": value, "before": "", "read_back": value, "applied": value,
        "status": "applied", "detail": "",
    }  # fmt: skip


def _run(plan: NightPlan) -> dict[str, Any]:
    drive = {
        "name": "nvme0n1",
        "model": "Model X",
        "serial": "S1",
        "firmware": plan.firmware,
        "pcie_link": "Gen5 x4",
        "size_bytes": 3_840_755_982_336,
    }
    return {
        "schema_version": 1,
        "run_id": plan.run_id,
        "state": plan.state,
        "state_reason": None,
        "started_utc": plan.start.isoformat(),
        "finished_utc": (plan.start + timedelta(minutes=4)).isoformat(),
        "candidate": {
            "name": plan.candidate,
            "description": "simulated",
            "transient_buffer_bytes": 10**9,
            "virtual": False,
            "connection": "local",
            "hostname": "host-a",
            "kernel": plan.kernel,
            "cpu_model": "CPU",
            "cpus": 64,
        },
        "target": {"name": "nand", "kind": "filesystem", "filesystem": "xfs", "device": drive, "drives": [drive]},
        "scenario": made_up("night", id=plan.scenario, scale=plan.scale),
        "requirement": {"id": "nights"},
        "demand": None,
        "declared_limits": ["why"] if plan.outcome == "INADMISSIBLE" else [],
        "versions": plan.versions,
        "git": {"commit": "4f0c2d1e9ab34c55d0e1f2a3b4c5d6e7f8091a2b", "dirty": False},
    }


def _metrics(plan: NightPlan) -> dict[str, Any]:
    def metric(unit: str, path: str, **more: str) -> dict[str, str]:
        return {"description": path, "unit": unit, "file": "results/night.json", "path": path, **more}

    known = {"interval": "rate_interval", "rounds": "rate_rounds"} if plan.half else {"nature": "observed"}
    results = {
        plan.metric: metric("GB/s", "rate", **known),
        "record.late": metric("ms", "late", nature="observed"),
        "record.lost": metric("count", "lost"),
    }
    return {"version": 1, "measurements": {}, "results": results}


def _results(plan: NightPlan) -> dict[str, Any]:
    interval = [plan.rate - plan.half, plan.rate + plan.half] if plan.half else None
    rounds = [6]  # as many as an interval needs to decide
    return {
        "rate": [plan.rate],
        "rate_interval": [interval],
        "rate_rounds": rounds,
        "late": [plan.late],
        "lost": [plan.lost],
    }


def _profile(plan: NightPlan) -> dict[str, Any]:
    bound = plan.bound * (1000 if plan.unit == "MB/s" else 1)
    return {
        "id": "nights", "title": "What a night asks for", "source": "tests",
        "conditions": {"target_kinds": ["filesystem"], "scale_min": 0.1, "load": LOAD_OF_MADE_UP},
        "requirements": [
            _requirement(plan.first, SUSTAIN, plan.metric, "at_least", bound, plan.unit),
            _requirement("R-02", "Writes are on time", "record.late", "at_most", 10.0, "ms"),
            _requirement("R-03", "Nothing is lost", "record.lost", "equal", 0.0, "count"),
        ],
    }  # fmt: skip


def _requirement(name: str, text: str, metric: str, comparison: str, bound: float, unit: str) -> dict[str, Any]:
    return {
        "id": name, "text": text, "metric": metric, "comparison": comparison, "bound": bound, "unit": unit, "statistic": "min",
        "severity": "mandatory", "source": "tests",
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
