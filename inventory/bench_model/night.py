"""One finished run, as far as nights are compared by it. Only run.json, verdict.json, facts and the BMC's temperatures are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench_model.bundle_facts import Facts, facts_of
from bench_model.run_temperatures import temperatures_of

FINISHED = "finished"


@dataclass(frozen=True)
class Row:
    """One requirement of one run; `bound` is the one in force at the run's scale, in `unit` like the value and its interval."""

    id: str
    text: str
    metric: str
    comparison: str
    statistic: str
    unit: str
    bound: float
    severity: str
    outcome: str
    decision: str | None
    measured: float | None
    interval: tuple[float, float] | None
    n: int
    reason: str

    @property
    def definition(self) -> tuple[str, str, str]:
        """What must be the same for two values to be one series."""
        return self.metric, self.comparison, self.statistic


@dataclass(frozen=True)
class Night:
    """One run. `power_on_h`: of the drives by serial, a clock that nobody sets."""

    path: Path
    id: str
    started: datetime
    finished: datetime | None
    state: str
    candidate: str
    target: str
    scenario: str
    scale: float
    duration_s: float | None
    requirement: str
    outcome: str
    rehearsal: bool
    rows: tuple[Row, ...]
    facts: Facts = field(repr=False)
    temperatures: dict[str, float] = field(repr=False)
    power_on_h: dict[str, float] = field(repr=False)

    @property
    def good(self) -> bool:
        """Passed, or was declared a rehearsal and missed nothing mandatory."""
        return self.outcome == "PASS" or self.rehearsal

    @property
    def task(self) -> tuple[str, str, float, float | None]:
        """What was asked: runs that differ in it measured different things."""
        return self.scenario, self.target, self.scale, self.duration_s

    def row(self, requirement: str) -> Row | None:
        return next((row for row in self.rows if row.id == requirement), None)


def read_night(bundle: Path, warm: bool = True) -> Night:
    """One bundle. Raises OSError, ValueError, KeyError or TypeError where it is not as the bench writes it."""
    run = _object(bundle / "run.json")
    verdict = _object(bundle / "verdict.json")
    scenario = run["scenario"]
    finished = run.get("finished_utc")
    return Night(
        path=bundle,
        id=str(run["run_id"]),
        started=_time(run["started_utc"]),
        finished=_time(finished) if finished else None,
        state=str(run["state"]),
        candidate=str(run["candidate"]["name"]),
        target=str((run.get("target") or {}).get("name") or ""),
        scenario=str(scenario["id"]),
        scale=float(scenario["scale"]),
        duration_s=_optional((scenario.get("parameters") or {}).get("duration_s")),
        requirement=str(run["requirement"]["id"]),
        outcome=str(verdict["outcome"]),
        rehearsal=bool(verdict["declared_rehearsal"]),
        rows=tuple(_row(entry) for entry in verdict["requirements"]),
        facts=facts_of(bundle, run),
        temperatures=temperatures_of(bundle) if warm else {},
        power_on_h=dict(_power_on(bundle / "facts" / "smart-before.json")),
    )


def _object(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file.name}: {error}") from None
    if not isinstance(document, dict):
        raise ValueError(f"{file.name} holds no JSON object")
    return document


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _optional(value: Any) -> float | None:
    return None if value is None else float(value)


def _row(entry: dict[str, Any]) -> Row:
    interval = entry.get("confidence_interval")
    return Row(
        id=str(entry["id"]),
        text=str(entry["text"]),
        metric=str(entry["metric"]),
        comparison=str(entry["comparison"]),
        statistic=str(entry["statistic"]),
        unit=str(entry["unit"]),
        bound=float(entry["scaled_bound"]),
        severity=str(entry["severity"]),
        outcome=str(entry["outcome"]),
        decision=entry.get("decision"),
        measured=_optional(entry.get("measured")),
        interval=(float(interval[0]), float(interval[1])) if interval else None,
        n=int(entry.get("n") or 0),
        reason=str(entry.get("reason") or ""),
    )


def _power_on(file: Path) -> Iterator[tuple[str, float]]:
    if not file.is_file():
        return
    for device in _object(file).get("devices") or []:
        data = device.get("data") or {}
        hours = (data.get("power_on_time") or {}).get("hours")
        if hours is not None and data.get("serial_number"):
            yield str(data["serial_number"]), float(hours)
