"""The steady-state tests: the target's preparation, the rounds, the window, and the figures that hold in it."""

from __future__ import annotations

from daq_bench.bench_model.workloads.steady_state.document import SteadyState, Test
from daq_bench.bench_model.workloads.steady_state.rounds import Window, window_of, windows
from daq_bench.bench_report.base.units import (
    NONE,
    binary_size,
    decimal_rate,
    decimal_size,
    duration,
    latency,
    percent,
    quantity,
)
from daq_bench.bench_report.document.section import Lacking, Part, Section, unfinished
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.tables.conditioning import conditioning_table
from daq_bench.bench_report.workloads.steady_state.figures import rounds_figure

NAME = "steady_state"


def section(bundle: Bundle) -> Section | None:
    found = bundle.result(NAME, SteadyState)
    if found is None:
        lacking = "the steady-state tests did not finish (results/steady_state.json)."
        return unfinished(bundle, NAME, "Steady state", lacking)
    tests = found.tests
    parts: list[Part] = [
        _lead(found),
        _overview(tests),
        conditioning_table("steady-conditions", [(test.title, test.conditioning) for test in tests]),
    ]
    for test in tests:
        parts.extend(_parts_of(test))
    return Section("steady-state", "Steady state", tuple(parts))


def _lead(found: SteadyState) -> str:
    span = decimal_size(found.span_bytes)
    capacity = found.capacity_bytes
    of = f" of {decimal_size(capacity)}" if capacity else ""
    return (
        f"{found.standard}: each test begins on a purged and preconditioned target and repeats its round until its tracking "
        f"variable is steady: {found.rule}. Active range: {span}{of}; "
        f"{duration(found.seconds_per_point)} per point of a round; {found.tool_version}."
    )


def _overview(tests: list[Test]) -> Table:
    rows = []
    for test in tests:
        window, unit = test.window, test.unit
        steady = test.steady
        shown = (
            (
                f"{window.first_round} to {window.last_round}",
                quantity(window.mean, unit),
                percent(100 * window.range_share),
                percent(100 * window.fit_share),
            )
            if window
            else (NONE,) * 4
        )
        rows.append((
            test.title, test.tracking, str(len(test.rounds)),
            "steady" if steady else "not reached", *shown,
        ))  # fmt: skip
    return Table(
        heads=("Test", "Tracking variable", "Rounds", "State", "Window", "Mean", "Max \u2212 min", "Best line"),
        kinds="ttnsnnnn", rows=tuple(rows), name="steady-overview",
        caption="Steady-state tests. Max \u2212 min may be at most 20 % of the mean, the best line's excursion at most 10 %.",
        marked=frozenset(index for index, test in enumerate(tests) if not test.steady),
    )  # fmt: skip


def _parts_of(test: Test) -> list[Part]:
    steady, title, reason = test.steady, test.title, test.reason
    window = _window(test, tuple(item.value for item in test.rounds), steady)
    figure = rounds_figure(test, window)
    parts: list[Part] = [figure or Lacking(f"no round of \u201c{title}\u201d counts.")]
    if window is not None:
        parts.append(_window_table(test, window, steady))
    if not steady:
        parts.append(Lacking(f"figures of \u201c{title}\u201d: {reason}."))
    else:
        parts.append(_points_table(test))
    notes = test.notes
    if notes:
        parts.append(f"{title}: " + "; ".join(notes) + ".")
    return parts


def _window(test: Test, values: tuple[float | None, ...], steady: bool) -> Window | None:
    """Returns the window that the result names; for a test that is not steady, the last that has all of its rounds."""
    if not steady:
        tried = windows(values)
        return tried[-1] if tried else None
    if test.window is None:
        return None
    first, last = test.window.first_round, test.window.last_round
    return window_of([value for value in values[first - 1 : last] if value is not None], first)


def _window_table(test: Test, window: Window, steady: bool) -> Table:
    unit = test.unit
    rows = []
    for number, value in enumerate(window.values, window.first_round):
        fitted = window.intercept + window.slope_per_round * number
        rows.append((
            str(number), quantity(value, unit), percent(100 * (value / window.mean - 1)), quantity(fitted, unit),
        ))  # fmt: skip
    state = "The steady window" if steady else "The last window, which is not steady,"
    return Table(
        heads=("Round", "Value", "From the mean", "Best line"), kinds="nnnn", rows=tuple(rows), name="steady-window",
        caption=f"{state} of \u201c{test.title}\u201d: mean {quantity(window.mean, unit)}, max \u2212 min "
        f"{percent(100 * window.range_share)} of it, slope {quantity(window.slope_per_round, unit)} per round.",
    )  # fmt: skip


def _points_table(test: Test) -> Table:
    """Returns a row for every point of a round, with its mean in the steady window."""
    first, last = (test.window.first_round, test.window.last_round) if test.window else (1, len(test.rounds))
    inside = [item for item in test.rounds if first <= item.round <= last]
    rows = []
    for index, point in enumerate(inside[0].points):
        points = [item.points[index] for item in inside]
        counted = all(item.admissible for item in points)
        block = point.block_bytes
        delays = [one.latency_us for one in points if one.latency_us is not None]
        halves = [half.latency_us for one in points for half in (one.read, one.write) if half and half.latency_us]
        worst = [half.p99_9 for half in halves if half.p99_9 is not None]
        rows.append((
            binary_size(block) if block else "mix",
            f"{point.read_percent} %",
            quantity(_mean([one.iops for one in points]), "IOPS") if counted else "masked",
            decimal_rate(_mean([one.bytes_per_s for one in points])) if counted else NONE,
            latency(_mean(delays)) if counted and len(delays) == len(points) else NONE,
            latency(max(worst)) if counted and worst else NONE,
        ))  # fmt: skip
    return Table(
        heads=("Transfer", "Reads", "Operations", "Throughput", "Mean latency", "Worst p99.9"), kinds="nnnnnn", rows=tuple(rows),
        name="steady-points",
        caption=f"\u201c{test.title}\u201d in steady state: means over the window's {len(inside)} rounds, "
        f"queue depth {test.io_depth}, {test.threads} thread(s). "
        "Worst p99.9: the highest of the rounds' 99.9th percentiles, of reads or writes.",
    )  # fmt: skip


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
