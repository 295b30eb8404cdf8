"""Assertions of an own suite: from the run's bundle, while the run is going on or after it. Each raises AssertionError in plain words."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.behaviour import drive_temperature
from daq_bench.bench_model.bundle.files import find_document, find_struct
from daq_bench.bench_model.bundle.telemetry_files import OWN, SUMMARY_FILE
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.telemetry import TelemetrySummary
from daq_bench.bench_model.documents.verdict import Judgement
from daq_bench.bench_model.evidence import derived
from daq_bench.bench_model.evidence.admissibility import telemetry_gaps
from daq_bench.bench_model.verdict.conclusion import state
from daq_bench.bench_model.verdict.decision import MET
from daq_bench.bench_model.verdict.judging import judge_bundle
from daq_bench.bench_model.verdict.sentences import sentence
from daq_bench.rig.base.bundle import to_json

SUMMARY = f"{OWN}/{SUMMARY_FILE}"
ACCOUNT_S_MAX = 60.0  # the agent writes its account every 10 s
LOOK_EVERY_S = 0.25


class NoReadingError(AssertionError):
    """Nothing was measured that could be compared."""


def no_superchunk_lost(record: dict[str, Any]) -> int:
    """The superchunks that were offered, all of which were stored."""
    offered = 0
    for number, repetition in enumerate(record["repetitions"], start=1):
        minidaq = repetition["minidaq"]
        counts = minidaq["superchunks"]
        if minidaq["status"] != "complete":
            raise AssertionError(
                f"record {number} ended as {minidaq['status']}: {minidaq['error'] or 'no reason given'}"
            )
        if counts["lost"] or counts["stored"] != counts["offered"]:
            raise AssertionError(
                f"record {number} lost {counts['lost']} of {counts['offered']} superchunks ({counts['stored']} were stored)"
            )
        offered += counts["offered"]
    if not offered:
        raise NoReadingError("the record was offered no superchunk. Ask for a longer one")
    return offered


def read_back_whole(record: dict[str, Any]) -> int:
    """The superchunks that were read back, each once, in order and intact."""
    found = 0
    for number, repetition in enumerate(record["repetitions"], start=1):
        verify, stored = repetition["verify"], repetition["minidaq"]["superchunks"]["stored"]
        if verify["status"] != "intact" or verify["superchunks"]["present"] != stored:
            raise AssertionError(
                f"record {number}: {verify['superchunks']['present']} of {stored} superchunks read back intact "
                f"(status {verify['status']}{': ' + verify['error'] if verify['error'] else ''})"
            )
        found += stored
    return found


def temperature_below(bundle: Path, limit_degc: float | None) -> float:
    """The highest temperature of the target's drives so far, degC, which is below `limit_degc` or else below the drives' own warning."""
    run = find_struct(bundle, "run.json", Run)
    assert run is not None
    found = drive_temperature.of_bundle(bundle, run)
    drives = ", ".join(run.target.names) or "none that is known"
    if found.hottest_sensor is None:
        raise NoReadingError(
            f"no temperature was read of the target's drives ({drives}): they have no sensor that the bench can read, or the load was "
            "shorter than the telemetry's period"
        )
    hottest, where = found.hottest_sensor.degC, found.hottest_sensor.device
    if limit_degc is None:
        if found.warning_degC is None:
            why = next(iter(found.reasons.values()), "they state none")
            raise NoReadingError(
                f"the drives' own warning temperature is not known: {why}. Name a limit, such as 70 degC"
            )
        if found.headroom_degC is None or not found.headroom_degC > 0:
            raise AssertionError(
                f"drive {where} reached {hottest:g} degC; its own warning temperature is {found.warning_degC:g} degC"
            )
        return hottest
    if not hottest < limit_degc:
        raise AssertionError(f"drive {where} reached {hottest:g} degC, which is not below {limit_degc:g} degC")
    return hottest


def no_telemetry_gap(bundle: Path, is_local: bool, now: Callable[[], float] = time.time) -> None:
    """Every collector kept its pace. The agent of a run that is going on accounts every 10 s: the next account is waited for."""
    asked = now()
    while True:
        summary = find_struct(bundle, SUMMARY, TelemetrySummary)
        if summary is not None and (summary.state != "running" or _written(bundle) >= asked):
            break
        if not is_local:
            raise NoReadingError(
                "the telemetry's account of a candidate behind SSH comes at the run's end. Call this after Restore Candidate"
            )
        if now() - asked > ACCOUNT_S_MAX:
            raise NoReadingError(
                f"the telemetry agent gave no account for {ACCOUNT_S_MAX:g} s; see telemetry/agent.log in {bundle}"
            )
        time.sleep(LOOK_EVERY_S)
    if found := [one.text for one in telemetry_gaps(summary, SUMMARY)]:
        raise AssertionError("; ".join(found))


def _written(bundle: Path) -> float:
    return (bundle / SUMMARY).stat().st_mtime


def requirement(bundle: Path, identifier: str) -> str:
    """The sentence on a requirement of the run's profile that the evidence so far meets."""
    rows = _rows(bundle)
    known = {one.id: one for one in rows}
    if identifier not in known:
        raise AssertionError(f"the run's requirement profile has no {identifier!r}. It has: {', '.join(known)}")
    judged = known[identifier]
    text = sentence(judged)
    if state(judged) != MET:
        raise AssertionError(f"{state(judged)}: {text}")
    return text


def _rows(bundle: Path) -> list[Judgement]:
    """Judges the evidence as it stands. The run's own files are not touched: what follows from them goes into a copy of links."""
    with tempfile.TemporaryDirectory(prefix=".looked-at-", dir=bundle.parent) as folder:
        copy = Path(folder) / bundle.name
        shutil.copytree(bundle, copy, copy_function=_linked)
        made, faults = derived.documents(copy)
        for name, document in made.items():
            (copy / name).unlink(missing_ok=True)
            (copy / name).write_text(to_json(document), encoding="utf-8")
        if faults:
            raise BenchError("; ".join(f"{one.name} could not be made: {one.reason}" for one in faults))
        return judge_bundle(copy).requirements


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        """Replaced while we looked: the agent's account, which comes again."""


def result_of(bundle: Path, workload: str) -> dict[str, Any] | None:
    """Returns what the workload's load came to; None where the suite has not asked for it."""
    return find_document(bundle, f"results/{workload}.json")
