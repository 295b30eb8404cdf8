"""One finished run, as nights are compared: run.json, facts, the BMC's temperatures, and its verdict, judged again."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.bundle.files import find_document, find_struct
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.verdict import Judgement, Outcome, Verdict
from daq_bench.bench_model.nights.bundle_facts import Facts, facts_of
from daq_bench.bench_model.nights.run_temperatures import temperatures_of
from daq_bench.bench_model.verdict.judging import VERDICT, standing_of
from daq_bench.candidate_kit import plausible


@dataclass(frozen=True, slots=True)
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
    verdict: Verdict = field(repr=False)
    facts: Facts = field(repr=False)
    temperatures: dict[str, float] = field(repr=False)
    power_on_h: dict[str, float] = field(repr=False)
    simulated: bool = False  # no server was measured

    @property
    def good(self) -> bool:
        """Passed, or is a declared rehearsal, which never missed a mandatory requirement."""
        return self.outcome == "PASS" or self.rehearsal

    @property
    def outcome(self) -> Outcome:
        return self.verdict.outcome

    @property
    def rehearsal(self) -> bool:
        return self.verdict.declared_rehearsal

    @property
    def rows(self) -> list[Judgement]:
        return self.verdict.requirements

    @property
    def task(self) -> tuple[str, str, float, float | None]:
        """Returns the task of the run: runs with different tasks measured different things."""
        return self.scenario, self.target, self.scale, self.duration_s

    def row(self, requirement: str) -> Judgement | None:
        return next((row for row in self.rows if row.id == requirement), None)


MISSING = "{} is missing: no finished run"
NO_VERDICT = MISSING.format("verdict.json")


@dataclass(frozen=True)
class LeftOut:
    """A folder or run that is in no series, and why."""

    name: str
    reason: str

    @property
    def unfinished(self) -> bool:
        """The run goes on, or was ended before it was judged: that is no damage."""
        return self.reason == NO_VERDICT


def read_night(bundle: Path, warm: bool = True) -> Night:
    """One bundle. Raises OSError, ValueError, KeyError or TypeError where it is not as the bench writes it, and BenchError where others
    may not rest on it (see judging.standing_of)."""
    run = read_run(bundle)
    verdict = _verdict(bundle)
    return Night(
        path=bundle,
        id=run.run_id,
        started=run.started,
        finished=run.finished,
        state=run.state,
        candidate=run.candidate.name,
        target=run.target.name,
        scenario=run.scenario.id,
        scale=run.scenario.scale,
        duration_s=run.scenario.duration_s,
        requirement=run.requirement.id,
        verdict=verdict,
        facts=facts_of(bundle, run),
        temperatures=temperatures_of(bundle) if warm else {},
        power_on_h=dict(_power_on(find_document(bundle, "facts/smart-before.json") or {})),
        simulated=run.simulated,
    )


def night_or_reason(bundle: Path) -> Night | LeftOut:
    """The same for a bundle that may be anything. The reason names no machine's path."""
    try:
        return read_night(bundle)
    except FileNotFoundError as error:
        reason = MISSING.format(Path(str(error.filename)).name)
    except BenchError as error:
        reason = str(error)
    except (OSError, ValueError) as error:
        reason = f"cannot be read ({in_words(error)})"
    except (KeyError, TypeError, AttributeError) as error:
        reason = f"is damaged ({type(error).__name__}: {error})"
    return LeftOut(bundle.name, reason.replace(str(bundle), bundle.name))


def _verdict(bundle: Path) -> Verdict:
    """As this bench judges the run now, which is what it stored."""
    (bundle / VERDICT).stat()
    standing = standing_of(bundle)
    if standing.reason or standing.verdict is None:
        raise BenchError(standing.reason)
    return standing.verdict


def read_run(bundle: Path) -> Run:
    """Raises FileNotFoundError for what the run did not get to write, ValueError for what is damaged."""
    try:
        run = find_struct(bundle, "run.json", Run)
    except BenchError as error:
        raise ValueError(str(error).removeprefix(f"{bundle}/")) from None  # documents on runs name no machine's path
    if run is None:
        raise FileNotFoundError(errno.ENOENT, "the bundle has no such file", str(bundle / "run.json"))
    return run


def _power_on(document: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for device in document.get("devices") or []:
        data = device.get("data") or {}
        hours = plausible.power_on_hours(data)
        if hours is not None and data.get("serial_number"):
            yield str(data["serial_number"]), float(hours)
