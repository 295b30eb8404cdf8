"""The figures that a requirement may bound, out of the steady windows of the tests. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean
from typing import Any

from daq_bench.bench_model.workloads.steady_state.rounds import ROUNDS_MAX, range_of_rounds

KIB = 2**10


@dataclass(frozen=True)
class Summary:
    """By metric, without the workload's name: `values`; `samples`, the window's rounds in their order; `intervals`, the range of these.

    `reasons`: by full metric name, for what has no value."""

    values: dict[str, float | None]
    samples: dict[str, list[float]]
    intervals: dict[str, list[float]]
    reasons: dict[str, str]


@dataclass(frozen=True)
class Wanted:
    """Metric `steady_state.<name>`: `take` of the point `point` in each round of the steady window of `test`, put together by `join`."""

    name: str
    test: str
    point: str
    take: Callable[[dict[str, Any]], float | None]
    join: Callable[[list[float]], float] = mean


def _rate(point: dict[str, Any]) -> float | None:
    return float(point["bytes_per_s"])


def _iops(point: dict[str, Any]) -> float | None:
    return float(point["iops"])


def _latency(side: str, key: str) -> Callable[[dict[str, Any]], float | None]:
    def take(point: dict[str, Any]) -> float | None:
        found: float | None = point[side]["latency_us"][key] if point[side] else None
        return found

    return take


WANTED = (
    *(
        Wanted(f"sequential_{word}_{size}kib", f"throughput-{size}kib", f"{word}-{size * KIB}", _rate)
        for size in (128, 1024)
        for word in ("write", "read")
    ),
    Wanted("random_write_4kib", "iops", f"r0-{4 * KIB}", _iops),
    Wanted("random_read_4kib", "iops", f"r100-{4 * KIB}", _iops),
    Wanted("random_mixed_4kib", "iops", f"r65-{4 * KIB}", _iops),
    Wanted("write_latency_4kib_mean", "latency", f"r0-{4 * KIB}", _latency("write", "mean")),
    Wanted("read_latency_4kib_mean", "latency", f"r100-{4 * KIB}", _latency("read", "mean")),
    # A percentile of several rounds is no mean of percentiles: the worst round stands for all.
    Wanted("write_latency_4kib_p99_9", "latency", f"r0-{4 * KIB}", _latency("write", "p99_9"), max),
    Wanted("read_latency_4kib_p99_9", "latency", f"r100-{4 * KIB}", _latency("read", "p99_9"), max),
    Wanted("jesd219_iops", "jesd219", "mix", _iops),
    Wanted("jesd219_throughput", "jesd219", "mix", _rate),
    Wanted("jesd219_write_latency_p99_9", "jesd219", "mix", _latency("write", "p99_9"), max),
)


def figures_of(sides: list[dict[str, Any]]) -> dict[str, float | None]:
    """A point's figures, of its reads and writes together. `latency_us`: each weighs by how often it happened; None without operations."""
    operations = sum(side["iops"] for side in sides)
    weighed = sum(side["latency_us"]["mean"] * side["iops"] for side in sides)
    return {
        "runtime_s": max((side["runtime_s"] for side in sides), default=0.0),
        "iops": operations,
        "bytes_per_s": sum(side["bytes_per_s"] for side in sides),
        "latency_us": weighed / operations if operations else None,
    }


def summary_of(tests: list[dict[str, Any]], rounds_max: int) -> Summary:
    """Returns the summary of `tests`. `rounds_max`: how many rounds the scenario allowed."""
    by_name = {test["name"]: test for test in tests}
    values: dict[str, float | None] = {}
    samples: dict[str, list[float]] = {}
    intervals: dict[str, list[float]] = {}
    reasons: dict[str, str] = {}
    for wanted in WANTED:
        test = by_name.get(wanted.test)
        if test is None:
            continue
        found, reason = _in_window(test, wanted)
        values[wanted.name] = wanted.join(found) if found else None
        if found:
            samples[wanted.name] = found
            if wanted.join is mean:
                intervals[wanted.name] = list(range_of_rounds(found))
        else:
            reasons[f"steady_state.{wanted.name}"] = reason
    values["rounds"] = float(max(len(test["rounds"]) for test in tests)) if tests else None
    slow = [test["title"] for test in tests if not test["steady"]]
    values["tests_not_steady"] = float(len(slow))
    if slow and rounds_max < ROUNDS_MAX:  # nobody knows what the rest of the standard's rounds would have shown
        values["tests_not_steady"] = None
        text = (
            f"{len(slow)} of {len(tests)} tests are not steady after {rounds_max} of the standard's {ROUNDS_MAX} rounds"
        )
        reasons["steady_state.tests_not_steady"] = text
    return Summary(values, samples, intervals, reasons)


def _in_window(test: dict[str, Any], wanted: Wanted) -> tuple[list[float], str]:
    window = test["window"]
    if window is None:
        return [], f"{test['title']}: steady state was not reached in {len(test['rounds'])} rounds"
    rounds = [one for one in test["rounds"] if window["first_round"] <= one["round"] <= window["last_round"]]
    points = [point for one in rounds for point in one["points"] if point["name"] == wanted.point]
    if not points:
        return [], f"{test['title']}: the scenario does not measure {wanted.point}"
    masked = next((point["reason"] for point in points if not point["admissible"]), None)
    taken = [value for point in points if (value := wanted.take(point)) is not None]
    if masked is not None or len(taken) != len(points):
        return (
            [],
            f"{test['title']}: {wanted.point} does not count in every round of the window ({masked or 'it has no such figure'})",
        )
    return taken, ""
