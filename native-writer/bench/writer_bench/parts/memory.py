"""Memory of every command that the other parts ran, against what its configuration lets it buffer."""

from __future__ import annotations

from typing import Any

from bench_model.units import MIB
from writer_bench.criteria import Criterion, at_most, each
from writer_bench.part import Documents, Part

ALLOWANCE_BYTES = 64 * MIB


def points_of(documents: Documents) -> Documents:
    """One per part, point and contender of daqwriter: the repetition whose memory exceeded its buffers most."""
    found = []
    for document in documents:
        for point in document["points"]:
            for name in point["contenders"]:
                runs = [r["sample"] for r in point["repetitions"] if r["contender"] == name and r["sample"]]
                stated = [run for run in runs if run["max_rss_bytes"] is not None]
                if stated:
                    found.append(_point(f"{document['part']}: {point['label']}, {name}", stated))
    return found


def _point(label: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    unstated = any(run["buffer_bytes"] is None for run in runs)
    worst = max(runs, key=lambda run: run["max_rss_bytes"] - (run["buffer_bytes"] or 0))
    return {
        "label": label,
        "n": len(runs),
        "errors": {"memory": "the command does not state its buffers"} if unstated else {},
        "max_rss_bytes": worst["max_rss_bytes"],
        "buffer_bytes": None if unstated else worst["buffer_bytes"],
        "excess_bytes": None if unstated else worst["max_rss_bytes"] - worst["buffer_bytes"],
    }


def judge(points: Documents) -> list[Criterion]:
    excess = {point["label"]: point["excess_bytes"] for point in points}
    text = "memory above the configured buffers, bytes, every command"
    return [each("memory.excess", text, excess, ALLOWANCE_BYTES, at_most)]


def _mib(name: str) -> Any:
    return lambda point: "failed" if point[name] is None else f"{point[name] / MIB:.1f}"


PART = Part(
    name="memory",
    title="Memory of every command, worst repetition",
    points=lambda settings, tools: [],
    derive=points_of,
    conditions=lambda settings: {"allowance_bytes": ALLOWANCE_BYTES},
    judge=judge,
    columns=[
        ("memory, MiB", _mib("max_rss_bytes")),
        ("configured buffers, MiB", _mib("buffer_bytes")),
        ("above them, MiB", _mib("excess_bytes")),
        ("n", lambda point: str(point["n"])),
    ],
    limit=lambda point: "",
)
