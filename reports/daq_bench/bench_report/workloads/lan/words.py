"""The common parts of the LAN's figures: units, points that count, references, and the words of captions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from daq_bench.bench_model.workloads.lan.document import Lan, LanAnalysis, MeasuredTransfer
from daq_bench.bench_report.base.marks import see_table
from daq_bench.bench_report.base.units import THIN, binary_size, percent, significant
from daq_bench.bench_report.document.canvas import GREY
from daq_bench.bench_report.figures.references import COLOUR, DASHES

GBIT = 1.25e8  # B/s
FARTHEST = 2.2
FINELY = (0, (1, 1.5))
Value = Callable[[MeasuredTransfer], float | None]


def gbit(bytes_per_s: float) -> str:
    return f"{significant(bytes_per_s / GBIT, 3)}{THIN}Gbit/s"


def counted(points: Sequence[MeasuredTransfer]) -> list[MeasuredTransfer]:
    return [one for one in points if one.admissible]


def series_of(points: Sequence[MeasuredTransfer]) -> dict[str, list[MeasuredTransfer]]:
    """Returns the points by series: the tool, both directions or one, and the topology make one."""
    found: dict[str, list[MeasuredTransfer]] = {}
    for one in points:
        both = ", both directions" if one.bidirectional else ""
        found.setdefault(f"{one.operation}{both}, {one.topology}", []).append(one)
    return found


def sizes_of(points: Sequence[MeasuredTransfer]) -> list[int]:
    return sorted({one.message_bytes for one in points})


def references(found: Lan, stated: Sequence[tuple[str, float]]) -> list[tuple[str, float, bool]]:
    """(label, B/s, published) of what the source states; with the need at the run's scale, where that is not the stated one."""
    made = [(f"published: {text} {gbit(value)}", value, True) for text, value in stated]
    if found.scale != 1:
        made.append((f"needed at this scale {gbit(found.need_bytes_per_s)}", found.need_bytes_per_s, False))
    return made


def levels(axes: Axes, wanted: Sequence[tuple[str, float, bool]], top: float) -> str:
    """Draws the references that do not squash the data; returns words that name the others."""
    shown = [one for one in wanted if one[1] / GBIT <= FARTHEST * top]
    for label, value, published in shown:
        axes.axhline(
            value / GBIT,
            color=COLOUR if published else GREY,
            linewidth=0.9,
            linestyle=DASHES if published else FINELY,
            label=label,
            zorder=1,
        )
    hidden = [label for label, _, _ in wanted if label not in [one[0] for one in shown]]
    axes.set_ylim(0, max([top, *(one[1] / GBIT for one in shown)]) * 1.12 or 1.0)
    return f" Beyond the axis: {'; '.join(hidden)}." if hidden else ""


def masked_text(points: Sequence[MeasuredTransfer], table: str) -> str:
    """Says how many points are not drawn; `table` has their reasons."""
    bad = [one.id for one in points if not one.admissible]
    return (
        f" Not drawn, since the point does not count (reasons in {see_table(table)}): {', '.join(bad)}." if bad else ""
    )


def source_text(analysis: LanAnalysis) -> str:
    published = analysis.published
    return (
        f" Published, not measured here: {published.source} ({published.conditions}); the points of its figures are not stated and not "
        "drawn."
    )


def where_text(found: Lan) -> str:
    """Says for every caption where the transfers ran and what was scaled down."""
    network = found.network
    if network.kind != "namespaces":
        return f" {network.nodes} hosts."
    ports = f", ports shaped to {gbit(network.port_bytes_per_s)}" if network.port_bytes_per_s else ""
    return f" Emulated: {network.nodes} network namespaces of one machine{ports}; no card, cable or switch."


def size_text(one: MeasuredTransfer) -> str:
    return binary_size(one.message_bytes)


def share_text(value: float | None) -> str:
    return "\u2013" if value is None else percent(100 * value)
