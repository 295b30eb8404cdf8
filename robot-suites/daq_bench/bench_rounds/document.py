"""The JSON of a part: every repetition, medians, ratios, criteria, and the circumstances under which they were taken."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from daq_bench.bench_rounds.measuring.ratios import CONFIDENCE, SPREAD_MAX
from daq_bench.bench_rounds.measuring.rounds import Point
from daq_bench.bench_rounds.part import Documents, Part, Settings
from daq_bench.rig.base.bundle import now_utc

QUICK = "quick look: too short, too few points and repetitions"


def make(
    part: Part,
    settings: Settings,
    measured: Sequence[Point],
    others: Documents,
    notes: Sequence[str],
    circumstances: dict[str, Any],
) -> dict[str, Any]:
    """`others`: the documents of the parts that ran before. `circumstances`: started_utc, machine, versions, warnings."""
    points = part.derive(others) if part.derive else [point.document() for point in measured]
    criteria = [criterion.document() for criterion in part.judge(points)]
    reservations = [QUICK] * settings.quick + circumstances["warnings"]
    return {
        "schema_version": 1,
        "tool": "writer_bench",  # the name that stored documents carry
        "part": part.name,
        "title": part.title,
        "counts_as_claim": not reservations,
        "reservations": reservations,
        "started_utc": circumstances["started_utc"],
        "ended_utc": now_utc(),
        "conditions": part.conditions(settings),
        "rule": {
            "order": "A B on even rounds, B A on odd ones; every point in turn",
            "rounds": settings.rounds,
            "most_rounds": settings.most_rounds,
            "further_rounds_while_spread_above": SPREAD_MAX,
            "further_rounds_for_at_most_s": part.extra_s,
            "spread": "inter-quartile range of the paired ratios over their median",
            "interval": f"order statistics, covers the median of the ratios with at least {CONFIDENCE:.0%}",
        },
        "machine": circumstances["machine"],
        "versions": circumstances["versions"],
        "notes": list(notes),
        "points": [{**point, "limited_by": part.limit(point)} for point in points],
        "criteria": criteria,
    }


def save(document: dict[str, Any], folder: Path) -> Path:
    """Writes the document whole or not at all: a bench that is stopped leaves no half document."""
    path = folder / f"{document['part']}.json"
    unfinished = path.with_suffix(".json.part")
    unfinished.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
    return path


def load(folder: Path, names: Sequence[str]) -> Documents:
    """The documents of those `names` that an earlier run left."""
    paths = [folder / f"{name}.json" for name in names]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]
