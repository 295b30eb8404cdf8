"""Curves of several candidates in one figure: one colour for each candidate, the same in all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from daq_bench.bench_model.documents.comparison import ComparisonDocument, Curve, CurveOf
from daq_bench.bench_report.base.units import GB, THIN, in_gb_per_s, significant
from daq_bench.bench_report.comparison import words
from daq_bench.bench_report.comparison.curves import BLOCKS, LATENCY, LOAD, TAIL, WRITTEN
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import GREY, SERIES
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.figures.sizes import size_axis
from daq_bench.bench_report.workloads.latency_under_load.figures import nines, set_latency_axis

HEIGHT_MM = 66.0
ROOM = 1.12
SAME = 0.01  # of a value: nearer lines cannot be told apart on paper
END = 100.0  # percentile: the highest value has no nines of its own and is not drawn
TICKS = (50.0, 90.0, 99.0, 99.9, 99.99)


@dataclass(frozen=True)
class Look:
    """`across`, `up`: from the units of comparison.json to those drawn."""

    title: str
    caption: str
    x_label: str
    y_label: str
    across: Callable[[float], float]
    up: Callable[[float], float]


def _in_gb(value: float) -> float:
    return value / GB


def _same(value: float) -> float:
    return value


LOOKS = {
    BLOCKS: Look(
        "Rate by block size", "Sequential writing, each block size for itself.", "block size (bytes, powers of two)",
        "rate (GB/s)", _same, _in_gb,
    ),
    LOAD: Look(
        "Latency under load", f"From intended arrival to durable, the {TAIL:g}{THIN}% percentile.", "offered rate (GB/s)",
        f"p{TAIL:g} latency", _in_gb, _same,
    ),
    LATENCY: Look(
        "Latency under the record's load", "From intended arrival to durable, at the load that the scenario asks for.",
        "percentile (each nine has equal room)", "latency", nines, _same,
    ),
    WRITTEN: Look(
        "Rate against bytes written", "Writing as fast as it can; each point is the mean over one stretch of equal size.",
        "written (GB)", "rate (GB/s)", _in_gb, _in_gb,
    ),
}  # fmt: skip


def curve_figures(found: ComparisonDocument) -> Iterator[Figure]:
    for one in found.curves:
        yield _figure(found, one)


def _figure(found: ComparisonDocument, one: Curve) -> Figure:
    look, name = LOOKS[one.name], f"curves-{one.name}"
    tags = words.letters(found)
    own = sorted(one.contenders, key=lambda each: list(tags).index(each.name))
    places = {each: place for place, each in enumerate(tags)}
    left = [each for each in own if places[each.name] >= len(SERIES)]
    alike = _alike([each for each in own if each not in left])
    drawn = [each[0] for each in alike]
    with sheet(name, HEIGHT_MM) as (drawing, (axes,)):
        for each, *same in alike:
            colour, dashes, marker = SERIES[places[each.name]]
            points = [point for point in each.points if one.name != LATENCY or point[0] < END]
            x = [look.across(point[0]) for point in points]
            middle, low, high = ([look.up(point[at]) for point in points] for at in (1, 2, 3))
            axes.plot(
                x, middle, color=colour, linestyle=dashes, marker=marker, label=_label(found, each, same),
                markevery=max(1, len(x) // 12), zorder=4,
            )  # fmt: skip
            if each.passes > 1:
                axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0, zorder=2)
        _axes(axes, one.name, look, drawn, found)
        axes.legend_above(columns=3)
        alt = f"{look.title} of {len(drawn)} candidates: {'; '.join(_said(each, look, tags) for each in drawn)}."
    used = "; ".join(f"{tags[each.name]}: {each.passes} in {_runs(each.runs)}" for each in own if each not in left)
    caption = f"{look.caption} Line: the median of all passes ({used}); band: the lowest to the highest of them."
    if left:
        caption += (
            f" Not drawn, for want of colours: {', '.join(tags[each.name] for each in left)}; comparison.json has them."
        )
    lacking = [tag for each, tag in tags.items() if each not in {one_.name for one_ in own}]
    if lacking:
        caption += f" No such evidence: {', '.join(lacking)}."
    if any(same for _, *same in alike):
        caption += f" Candidates whose lines lie within {SAME:.0%} of each other all along share one."
    return drawing.figure(look.title, caption, alt, _see([each for each in own if each not in left], one.name, tags))


def _runs(number: int) -> str:
    return f"{number} run{'s' if number != 1 else ''}"


def _alike(own: Sequence[CurveOf]) -> list[list[CurveOf]]:
    """Candidates whose lines would lie on each other, together."""
    found: list[list[CurveOf]] = []
    for one in own:
        same = next((each for each in found if _coincide(each[0].points, one.points)), None)
        if same is None:
            found.append([one])
        else:
            same.append(one)
    return found


def _coincide(one: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> bool:
    pairs = list(zip(one, other, strict=False))
    return len(one) == len(other) and all(
        a[0] == b[0] and abs(a[1] - b[1]) <= SAME * max(abs(a[1]), abs(b[1])) for a, b in pairs
    )


def _label(found: ComparisonDocument, one: CurveOf, same: Sequence[CurveOf]) -> str:
    tags = words.letters(found)
    return words.label(found, one.name) + "".join(f" = {tags[each.name]}" for each in same)


def _axes(axes: Panel, name: str, look: Look, drawn: Sequence[CurveOf], found: ComparisonDocument) -> None:
    axes.set_xlabel(look.x_label)
    values = [point[3] for each in drawn for point in each.points if name != LATENCY or point[0] < END]
    if name in (BLOCKS, WRITTEN):
        axes.set_ylim(0, ROOM * _in_gb(max(values)))
        _draw_demand(axes, found, _in_gb(max(values)))
    else:
        set_latency_axis(axes, [value for value in values if value > 0])
    axes.set_ylabel(look.y_label)
    if name == BLOCKS:
        size_axis(axes, sorted({int(point[0]) for each in drawn for point in each.points}), look.x_label)
    if name == LATENCY:
        axes.set_xscale("log")
        axes.set_xticks([nines(tick) for tick in TICKS], [f"{tick:g}{THIN}%" for tick in TICKS])
        axes.minorticks_off()


def _draw_demand(axes: Panel, found: ComparisonDocument, top: float) -> None:
    """The bound of the requirement that stands for the throughput, where it lies within the drawing."""
    speed = next((one for one in found.requirements if one.id == found.speed), None)
    if speed is None or speed.unit != "GB/s" or isinstance(speed.bound, str) or speed.bound > ROOM * top:
        return
    label = f"{speed.id}: at least {in_gb_per_s(speed.bound * GB)}"
    axes.axhline(speed.bound, color=GREY, linewidth=0.9, linestyle=(0, (6, 2)), label=label, zorder=1)


def _said(one: CurveOf, look: Look, tags: dict[str, str]) -> str:
    values = [look.up(point[1]) for point in one.points]
    return f"{tags[one.name]} from {significant(min(values), 3)} to {significant(max(values), 3)}"


def _see(drawn: Sequence[CurveOf], name: str, tags: dict[str, str]) -> str:
    """The ends that a reader compares: the highest rate, the last rate, the tail."""
    if name in (LATENCY, LOAD):
        tail = {
            each.name: max(point[1] for point in each.points if name != LATENCY or point[0] < END) for each in drawn
        }
        said = ", ".join(f"{tags[key]}\u00a0{significant(us / 1000, 3)}{THIN}ms" for key, us in tail.items())
        return f"At the end of its curve the latency is: {said}."
    pick = max if name == BLOCKS else (lambda points: points[-1])
    ends = {each.name: _in_gb(pick([point[1] for point in each.points])) for each in drawn}
    what = "The highest rate is" if name == BLOCKS else "At the end of the writing the rate is"
    return (
        f"{what}: "
        + ", ".join(f"{tags[key]}\u00a0{significant(rate, 3)}{THIN}GB/s" for key, rate in ends.items())
        + "."
    )
