"""The steady-state tests: the target's preparation, the rounds, the window, and the figures that hold in it."""

from __future__ import annotations

from bench_model.workloads.steady_state.rounds import Window, window_of, windows
from bench_report.base.fields import Node
from bench_report.base.units import NONE, binary_size, decimal_rate, decimal_size, duration, latency, percent, quantity
from bench_report.document.section import Lacking, Part, Section
from bench_report.document.table import Table
from bench_report.figures.steady import Rounds, rounds_figure
from bench_report.reading.dataset.bundle import Bundle
from bench_report.sections.conditioning import conditioning_table

NAME = "steady_state"


def section(bundle: Bundle) -> Section | None:
    node = bundle.results.get(NAME)
    if node is None:
        if NAME not in bundle.run.workloads:
            return None
        return Section(
            "steady-state",
            "Steady state",
            (Lacking("the steady-state tests did not finish (results/steady_state.json)."),),
        )
    tests = node.list("tests")
    parts: list[Part] = [
        _lead(node),
        _overview(tests),
        conditioning_table(
            "steady-conditions", [(test.at("title").as_text(), test.at("conditioning")) for test in tests]
        ),
    ]
    for test in tests:
        parts.extend(_parts_of(test))
    return Section("steady-state", "Steady state", tuple(parts))


def _lead(node: Node) -> str:
    span = decimal_size(node.at("span_bytes").as_number())
    capacity = node.number("capacity_bytes")
    of = f" of {decimal_size(capacity)}" if capacity else ""
    return (
        f"{node.at('standard').as_text()}: each test begins on a purged and preconditioned target and repeats its round until its tracking "
        f"variable is steady: {node.at('rule').as_text()}. Active range: {span}{of}; "
        f"{duration(node.at('seconds_per_point').as_number())} per point of a round; {node.text('tool_version') or 'fio'}."
    )


def _overview(tests: tuple[Node, ...]) -> Table:
    rows = []
    for test in tests:
        window, unit = test.find("window"), test.at("unit").as_text()
        steady = test.at("steady").as_flag()
        shown = (
            (
                f"{window.at('first_round').as_integer()} to {window.at('last_round').as_integer()}",
                quantity(window.at("mean").as_number(), unit),
                percent(100 * window.at("range_share").as_number()),
                percent(100 * window.at("fit_share").as_number()),
            )
            if window
            else (NONE,) * 4
        )
        rows.append((
            test.at("title").as_text(), test.at("tracking").as_text(), str(len(test.list("rounds"))),
            "steady" if steady else "not reached", *shown,
        ))  # fmt: skip
    return Table(
        heads=("Test", "Tracking variable", "Rounds", "State", "Window", "Mean", "Max \u2212 min", "Best line"),
        kinds="ttnsnnnn", rows=tuple(rows), name="steady-overview",
        caption="Steady-state tests. Max \u2212 min may be at most 20 % of the mean, the best line's excursion at most 10 %.",
        marked=frozenset(index for index, test in enumerate(tests) if not test.at("steady").as_flag()),
    )  # fmt: skip


def _parts_of(test: Node) -> list[Part]:
    values = tuple(item.number("value") for item in test.list("rounds"))
    steady = test.at("steady").as_flag()
    window = _window(test, values, steady)
    figure = rounds_figure(
        Rounds(
            name=test.at("name").as_text(),
            title=test.at("title").as_text(),
            tracking=test.at("tracking").as_text(),
            unit=test.at("unit").as_text(),
            values=values,
            window=window,
            steady=steady,
        )
    )
    title, reason = test.at("title").as_text(), test.text("reason")
    parts: list[Part] = [figure or Lacking(f"no round of \u201c{title}\u201d counts.")]
    if window is not None:
        parts.append(_window_table(test, window, steady))
    if not steady:
        parts.append(Lacking(f"figures of \u201c{title}\u201d: {reason}."))
    else:
        parts.append(_points_table(test))
    notes = test.texts("notes")
    if notes:
        parts.append(f"{title}: " + "; ".join(notes) + ".")
    return parts


def _window(test: Node, values: tuple[float | None, ...], steady: bool) -> Window | None:
    """Returns the window that the result names; for a test that is not steady, the last that has all of its rounds."""
    if not steady:
        tried = windows(values)
        return tried[-1] if tried else None
    found = test.at("window")
    first, last = found.at("first_round").as_integer(), found.at("last_round").as_integer()
    return window_of([value for value in values[first - 1 : last] if value is not None], first)


def _window_table(test: Node, window: Window, steady: bool) -> Table:
    unit = test.at("unit").as_text()
    rows = []
    for number, value in enumerate(window.values, window.first_round):
        fitted = window.intercept + window.slope * number
        rows.append((
            str(number), quantity(value, unit), percent(100 * (value / window.mean - 1)), quantity(fitted, unit),
        ))  # fmt: skip
    state = "The steady window" if steady else "The last window, which is not steady,"
    return Table(
        heads=("Round", "Value", "From the mean", "Best line"), kinds="nnnn", rows=tuple(rows), name="steady-window",
        caption=f"{state} of \u201c{test.at('title').as_text()}\u201d: mean {quantity(window.mean, unit)}, max \u2212 min "
        f"{percent(100 * window.range_share)} of it, slope {quantity(window.slope, unit)} per round.",
    )  # fmt: skip


def _points_table(test: Node) -> Table:
    """Returns a row for every point of a round, with its mean in the steady window."""
    found = test.at("window")
    first, last = found.at("first_round").as_integer(), found.at("last_round").as_integer()
    inside = [item for item in test.list("rounds") if first <= item.at("round").as_integer() <= last]
    rows = []
    for index, point in enumerate(inside[0].list("points")):
        points = [item.list("points")[index] for item in inside]
        counted = all(item.at("admissible").as_flag() for item in points)
        block = point.number("block_bytes")
        worst = [value for side in ("read", "write") if (value := _worst(points, side)) is not None]
        rows.append((
            binary_size(block) if block else "mix",
            f"{point.at('read_percent').as_integer()} %",
            quantity(_mean(points, "iops"), "IOPS") if counted else "masked",
            decimal_rate(_mean(points, "bytes_per_s")) if counted else NONE,
            latency(_mean(points, "latency_us")) if counted else NONE,
            latency(max(worst)) if counted and worst else NONE,
        ))  # fmt: skip
    return Table(
        heads=("Transfer", "Reads", "Operations", "Throughput", "Mean latency", "Worst p99.9"), kinds="nnnnnn", rows=tuple(rows),
        name="steady-points",
        caption=f"\u201c{test.at('title').as_text()}\u201d in steady state: means over the window's {len(inside)} rounds, "
        f"queue depth {test.at('io_depth').as_integer()}, {test.at('threads').as_integer()} thread(s). "
        "Worst p99.9: the highest of the rounds' 99.9th percentiles, of reads or writes.",
    )  # fmt: skip


def _mean(points: list[Node], key: str) -> float:
    return sum(point.at(key).as_number() for point in points) / len(points)


def _worst(points: list[Node], side: str) -> float | None:
    found = [half.at("latency_us").number("p99_9") for point in points if (half := point.find(side))]
    return max((value for value in found if value is not None), default=None)
