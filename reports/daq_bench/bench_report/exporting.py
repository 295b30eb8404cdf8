"""Writes the newest run of each candidate, scenario and target for Prometheus, as a file for node_exporter's textfile collector.

Labels are names of the inventory, requirement ids, words of an outcome and drives' kernel names: nothing that grows with the runs. Times
are stamps, so that an age is `time() - ...` at the moment of the question, also when nothing writes the file any more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.whole_files import replace_file
from daq_bench.bench_model.behaviour.wear_of_run import NAME as WEAR
from daq_bench.bench_model.bundle.files import find_document, last_lines
from daq_bench.bench_model.bundle.telemetry_files import OWN, POINTS_FILE
from daq_bench.bench_model.nights.night import LeftOut, Night
from daq_bench.bench_model.nights.outcome import REGRESSION, SKIPPED, WORST_FIRST, outcome_of
from daq_bench.bench_model.nights.run_history import read_all
from daq_bench.bench_model.verdict.conclusion import STATES, conclude
from daq_bench.bench_report.reading.door import Trust, admitted

WHO = ("candidate", "scenario", "target")
OUTCOMES = tuple(
    word for word in WORST_FIRST if word not in (REGRESSION, SKIPPED)
)  # which are a night's, of no run by itself
LAST_BYTES = 65536
SUFFIX = ".prom"  # what node_exporter reads
MODE = 0o644  # node_exporter is another user, whatever this one's umask
STAMP_DIGITS_MAX = 19  # of nanoseconds until 2262


def export(runs: Sequence[Path], output: Path, trust: Trust) -> tuple[int, int, list[LeftOut]]:
    """Writes `output` in one step; returns the numbers of series and of runs that were read, and what is left out.

    Raises BenchError for a folder that is not there."""
    if output.suffix != SUFFIX:
        raise BenchError(f"{output} does not end in {SUFFIX}: node_exporter would not read it. Choose another name")
    found, left_out, _ = admitted(*read_all(runs), trust)
    now = datetime.now(UTC)
    registry, count = registry_of(found, left_out, now)
    try:
        replace_file(
            output, generate_latest(registry), MODE
        )  # by way of a hidden file: node_exporter reads *.prom alone
    except OSError as error:
        raise BenchError(
            f"{output} cannot be written: {error.strerror}. Make room or name another {typed('--output')}"
        ) from None
    return count, len(found), left_out


def registry_of(nights: Sequence[Night], left_out: Sequence[LeftOut], now: datetime) -> tuple[CollectorRegistry, int]:
    """The metrics, and how many series of runs there are. A run that seems to begin after `now` is left out: it would stay the newest."""
    registry = CollectorRegistry()
    outcome = _gauge(registry, "run_outcome", "1 for the outcome of the newest run, 0 for the others.", *WHO, "outcome")
    started = _gauge(registry, "run_started_timestamp_seconds", "When the newest run began.", *WHO)
    finished = _gauge(registry, "run_finished_timestamp_seconds", "When the newest run ended.", *WHO)
    counts = _gauge(registry, "requirements", "Mandatory requirements of the newest run by state.", *WHO, "state")
    margin = _gauge(
        registry, "requirement_margin_ratio", "Margin over the bound; below 0: missed.", *WHO, "requirement"
    )
    telemetry = _gauge(registry, "telemetry_last_point_timestamp_seconds", "The last point of the newest run.", *WHO)
    wear = _gauge(registry, "drive_used_ratio", "Rated endurance used, as the drive counts it.", *WHO, "device")
    newest = _newest([night for night in nights if night.started <= now])
    for who, night in newest.items():
        for word in OUTCOMES:
            outcome.labels(*who, word).set(word == outcome_of(night))
        started.labels(*who).set(night.started.timestamp())
        if night.finished and night.finished <= now:
            finished.labels(*who).set(night.finished.timestamp())
        found = conclude(night.verdict).counts
        for state in STATES:
            counts.labels(*who, state).set(found.get(state, 0))
        for row in night.rows:
            if row.margin_percent is not None and math.isfinite(row.margin_percent):
                margin.labels(*who, row.id).set(row.margin_percent / 100)
        last_s = _last_point_s(night.path / OWN / POINTS_FILE, now)
        if last_s is not None:
            telemetry.labels(*who).set(last_s)
        for drive in (find_document(night.path, WEAR) or {}).get("drives", []):
            if drive.get("used_percent") is not None:
                wear.labels(*who, drive["device"]).set(drive["used_percent"] / 100)
    ahead = sum(night.started > now for night in nights)
    unfinished = sum(one.unfinished for one in left_out)
    _gauge(registry, "runs_left_out", "Bundles that nobody may rest on.").set(len(left_out) - unfinished + ahead)
    _gauge(registry, "runs_unfinished", "Bundles of runs that go on, or that were ended before they were judged.").set(
        unfinished
    )
    _gauge(registry, "exported_timestamp_seconds", "When this file was written.").set(now.timestamp())
    return registry, len(newest)


def _last_point_s(spool: Path, now: datetime) -> float | None:
    """The newest stamp among the file's last lines; a file's own date would be that of a copy. One that lies ahead would hide a silence."""
    stamps = [line.rpartition(" ")[2] for line in last_lines(spool, LAST_BYTES)]
    found = [int(stamp) / 1e9 for stamp in stamps if stamp.isdecimal() and len(stamp) <= STAMP_DIGITS_MAX]
    return max((one for one in found if one <= now.timestamp()), default=None)


def _gauge(registry: CollectorRegistry, name: str, text: str, *labels: str) -> Gauge:
    return Gauge(f"daq_bench_{name}", text, labels, registry=registry)


def _newest(nights: Sequence[Night]) -> dict[tuple[str, str, str], Night]:
    ordered = sorted(nights, key=lambda night: (night.started, night.id))
    return {(night.candidate, night.scenario, night.target): night for night in ordered if not night.simulated}
