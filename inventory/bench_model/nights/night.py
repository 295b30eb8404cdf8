"""One finished run, as far as nights are compared by it: run.json, facts, the BMC's temperatures, and its verdict, judged again."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench_model.base.errors import BenchError
from bench_model.bundle.files import find_document
from bench_model.nights.bundle_facts import Facts, facts_of
from bench_model.nights.run_temperatures import temperatures_of
from bench_model.verdict.judging import VERDICT, standing_of

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
        """Returns the fields that two values of one series must share."""
        return self.metric, self.comparison, self.statistic


@dataclass(frozen=True)
class Night:
    """One run. `power_on_h`: of the drives by serial, a clock that nobody sets. `verdict`: as this bench computed it."""

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
    verdict: dict[str, Any] = field(repr=False)
    facts: Facts = field(repr=False)
    temperatures: dict[str, float] = field(repr=False)
    power_on_h: dict[str, float] = field(repr=False)

    @property
    def good(self) -> bool:
        """Passed, or was declared a rehearsal and missed nothing mandatory."""
        return self.outcome == "PASS" or self.rehearsal

    @property
    def task(self) -> tuple[str, str, float, float | None]:
        """Returns the task of the run: runs with different tasks measured different things."""
        return self.scenario, self.target, self.scale, self.duration_s

    def row(self, requirement: str) -> Row | None:
        return next((row for row in self.rows if row.id == requirement), None)


def read_night(bundle: Path, warm: bool = True) -> Night:
    """One bundle. Raises OSError, ValueError, KeyError or TypeError where it is not as the bench writes it, and BenchError where others
    may not rest on it (see judging.standing_of)."""
    run = _object(bundle, "run.json")
    verdict = _verdict(bundle)
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
        verdict=verdict,
        facts=facts_of(bundle, run),
        temperatures=temperatures_of(bundle) if warm else {},
        power_on_h=dict(_power_on(find_document(bundle, "facts/smart-before.json") or {})),
    )


def _verdict(bundle: Path) -> dict[str, Any]:
    """As this bench judges the run now, which is what it stored."""
    (bundle / VERDICT).stat()
    standing = standing_of(bundle)
    if standing.reason or standing.verdict is None:
        raise BenchError(standing.reason)
    return standing.verdict


def _object(bundle: Path, name: str) -> dict[str, Any]:
    """Raises FileNotFoundError for what the run did not get to write, ValueError for what is damaged."""
    try:
        document = find_document(bundle, name)
    except BenchError as error:
        raise ValueError(str(error).removeprefix(f"{bundle}/")) from None  # documents on runs name no machine's path
    if document is None:
        raise FileNotFoundError(errno.ENOENT, "the bundle has no such file", str(bundle / name))
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


def _power_on(document: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for device in document.get("devices") or []:
        data = device.get("data") or {}
        hours = (data.get("power_on_time") or {}).get("hours")
        if hours is not None and data.get("serial_number"):
            yield str(data["serial_number"]), float(hours)
