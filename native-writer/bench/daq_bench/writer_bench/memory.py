"""Memory of every command that the other parts ran, against what its configuration lets it buffer."""

from __future__ import annotations

from typing import Any

from daq_bench.bench_model.base.units import MIB
from daq_bench.bench_rounds.criteria import Criterion, at_most, each
from daq_bench.bench_rounds.part import Documents, Part

ALLOWANCE_BYTES = 64 * MIB


def points_of(documents: Documents) -> Documents:
    """One per part and contender that states its memory: the repetition, of all points, that exceeded its buffers most."""
    runs: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for document in documents:
        for point in document["points"]:
            for one in point.get("repetitions", []):
                if one["sample"] and one["sample"]["max_rss_bytes"] is not None:
                    label = f"{document['part']}: {one['contender']}"
                    runs.setdefault(label, []).append((point["label"], one["sample"]))
    return [_point(label, found) for label, found in runs.items()]


def _point(label: str, runs: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    unstated = any(run["buffer_bytes"] is None for _, run in runs)
    place, worst = max(runs, key=lambda found: found[1]["max_rss_bytes"] - (found[1]["buffer_bytes"] or 0))
    return {
        "label": label,
        "worst_at": place,
        "n": len(runs),
        "errors": {"memory": "the command does not state its buffers"} if unstated else {},
        "max_rss_bytes": worst["max_rss_bytes"],
        "buffer_bytes": None if unstated else worst["buffer_bytes"],
        "excess_bytes": None if unstated else worst["max_rss_bytes"] - worst["buffer_bytes"],
    }


def judge(points: Documents) -> list[Criterion]:
    excess = {
        point["label"]: None if point["excess_bytes"] is None else point["excess_bytes"] / MIB for point in points
    }
    text = "memory above the configured buffers, MiB, every command"
    return [each("memory.excess", text, excess, ALLOWANCE_BYTES / MIB, at_most)]


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
        ("worst at", lambda point: str(point["worst_at"])),
        ("n", lambda point: str(point["n"])),
    ],
    limit=lambda point: "",
)
