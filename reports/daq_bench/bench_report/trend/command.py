"""`bench_report trend`: the runs of one candidate -> trend.html, trend.pdf, trend.json and trend-data.json."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.bundle.provenance import MANIFEST, digest_of
from daq_bench.bench_model.documents.admission import DIFFERENT
from daq_bench.bench_model.nights.night import Night
from daq_bench.bench_model.nights.run_history import history_of, read_all
from daq_bench.bench_model.nights.trend import Coincidence, Track, Trend, trend_of
from daq_bench.bench_report.document.beside import boxes_of, lines_of
from daq_bench.bench_report.document.made_by import seal_of_runs
from daq_bench.bench_report.document.outcome import Outcome
from daq_bench.bench_report.output.paper import Paper, badge_of, write
from daq_bench.bench_report.reading.door import Trust, admitted
from daq_bench.bench_report.trend.view import Marks, outcome_of, overview, quiet, sections_of, span_words

STEM = "trend"
NO_MARKS: Marks = {}


def render(
    paths: Sequence[Path], candidate: str, scenario: str | None, folder: Path, trust: Trust | None = None
) -> list[Path]:
    """Writes the files into `folder` and returns their paths. Raises BenchError when there is nothing to show."""
    nights, broken = read_all(paths)
    others = [night for night in nights if night.candidate != candidate]
    own, broken, known = admitted([night for night in nights if night.candidate == candidate], broken, trust or Trust())
    trend = trend_of(history_of([*own, *others], broken, candidate, scenario))
    marks = {night.id: known[night.path].marks for night in trend.history.nights}
    for line in lines_of((run_id, ", ".join(words)) for run_id, words in marks.items()):
        print(line, file=sys.stderr)
    return write(paper_of(trend, marks), folder, STEM, json.dumps(document(trend, marks), indent=1) + "\n")


def paper_of(trend: Trend, marks: Marks = NO_MARKS) -> Paper:
    """`marks`: by run id the door's words beside it."""
    newest, candidate = trend.history.newest, trend.history.candidate
    target = f", target {newest.target}" if newest.target else ""
    outcome = outcome_of(trend)
    return Paper(
        kicker="Trend report",
        title=candidate,
        meta=(
            f"Scenario {newest.scenario}{target}, scale {in_digits(newest.scale, 6)}, requirements {newest.requirement}",
            span_words(trend),
        ),
        running=f"{'SIMULATED: ' if newest.simulated else ''}trend of {candidate}, {newest.scenario}",
        badge=badge_of(_marked(outcome, marks.get(newest.id, ()))),
        meaning=outcome.meaning,
        reasons=outcome.reasons,
        boxes=boxes_of((run_id, ", ".join(words)) for run_id, words in marks.items()),
        summary=overview(trend),
        notes=quiet(trend),
        sections=tuple(sections_of(trend, marks)),
        keywords=("trend", candidate, newest.scenario),
        moment=newest.started,
        seal=seal_of_runs(_manifest(night) for night in trend.history.nights),
    )


def _marked(outcome: Outcome, words: Sequence[str]) -> Outcome:
    """The badge never says PASS alone of a run that was asked something else than the reader would ask."""
    other = [DIFFERENT.upper()] if any(word.startswith(DIFFERENT) for word in words) else []
    return replace(outcome, suffix=", ".join(filter(None, [*other, outcome.suffix])))


def _manifest(night: Night) -> str | None:
    file = night.path / MANIFEST
    return digest_of(file) if file.is_file() else None


def document(trend: Trend, marks: Marks = NO_MARKS) -> dict[str, Any]:
    """Returns the same as data: every number that is drawn or said."""
    history = trend.history
    good = history.last_good
    return {
        "schema_version": 1,
        "candidate": history.candidate,
        "scenario": history.newest.scenario,
        "target": history.newest.target,
        "scale": history.newest.scale,
        "runs": [
            {
                "run_id": night.id, "started_utc": night.started.isoformat(), "outcome": night.outcome,
                "declared_rehearsal": night.rehearsal, "temperatures_degC": night.temperatures,
                "marks": list(marks.get(night.id, ())),
            }
            for night in history.nights
        ],
        "left_out": [asdict(one) for one in history.left_out],
        "notes": list(history.notes),
        "last_known_good": good.id if good else None,
        "since_good": [one.document() for one in trend.since_good],
        "changes": [
            {"before": history.nights[position].id, "changes": [one.document() for one in changes]} for position, changes in trend.changes
        ],
        "requirements": [_track(track, trend) for track in trend.tracks],
    }  # fmt: skip


def _track(track: Track, trend: Trend) -> dict[str, Any]:
    return {
        "id": track.row.id,
        "metric": track.row.metric,
        "unit": track.row.unit,
        "comparison": track.row.comparison,
        "runs": [trend.history.nights[position].id for position in track.positions],
        "values": list(track.values),
        "intervals": [list(pair) if pair else None for pair in track.intervals],
        "bounds": list(track.bounds),
        "steps": [_step(one) for one in track.steps],
        "temperature": asdict(track.warmth) if track.warmth else None,
        "adjusted": list(track.adjusted),
        "adjusted_steps": [_step(one) for one in track.adjusted_steps],
        "drift_per_day": asdict(track.drift) if track.drift else None,
        "left_out": [asdict(one) for one in track.left_out],
    }


def _step(one: Coincidence) -> dict[str, Any]:
    return {
        "last_before": one.last_before, "first_after": one.first_after, "before": one.step.before, "after": one.step.after,
        "chance": one.step.p, "worse": one.worse, "coincides_with": [change.document() for change in one.changes],
    }  # fmt: skip
