"""The common parts of the LAN's figures: units, points that count, references, and the words of captions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from bench_report.base.fields import Node
from bench_report.base.marks import see_table
from bench_report.base.units import THIN, binary_size, percent, significant
from bench_report.document.canvas import GREY
from bench_report.figures.references import COLOUR, DASHES

GBIT = 1.25e8  # B/s
FARTHEST = 2.2
FINELY = (0, (1, 1.5))
Value = Callable[[Node], float | None]


def gbit(bytes_per_s: float) -> str:
    return f"{significant(bytes_per_s / GBIT, 3)}{THIN}Gbit/s"


def counted(points: Sequence[Node]) -> list[Node]:
    return [one for one in points if one.at("admissible").as_flag()]


def series_of(points: Sequence[Node]) -> dict[str, list[Node]]:
    """Returns the points by series: the tool, both directions or one, and the topology make one."""
    found: dict[str, list[Node]] = {}
    for one in points:
        both = ", both directions" if one.at("bidirectional").as_flag() else ""
        found.setdefault(f"{one.at('operation').as_text()}{both}, {one.at('topology').as_text()}", []).append(one)
    return found


def sizes_of(points: Sequence[Node]) -> list[int]:
    return sorted({one.at("message_bytes").as_integer() for one in points})


def references(analysis: Node, found: Node, keys: Sequence[tuple[str, str]]) -> list[tuple[str, float, bool]]:
    """(label, B/s, published); with the need at the run's scale, where that is not the stated one."""
    published = analysis.at("published")
    made = [
        (f"published: {text} {gbit(published.at(key).as_number())}", published.at(key).as_number(), True)
        for text, key in keys
    ]
    need = found.at("need_bytes_per_s").as_number()
    if found.at("scale").as_number() != 1:
        made.append((f"needed at this scale {gbit(need)}", need, False))
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


def masked_text(points: Sequence[Node], table: str) -> str:
    """Says how many points are not drawn; `table` has their reasons."""
    bad = [one.at("id").as_text() for one in points if not one.at("admissible").as_flag()]
    return (
        f" Not drawn, since the point does not count (reasons in {see_table(table)}): {', '.join(bad)}." if bad else ""
    )


def source_text(analysis: Node) -> str:
    published = analysis.at("published")
    return (
        f" Published, not measured here: {published.at('source').as_text()} ({published.at('conditions').as_text()}); the points of its "
        "figures are not stated and not drawn."
    )


def where_text(found: Node) -> str:
    """Says for every caption where the transfers ran and what was scaled down."""
    network = found.at("network")
    if network.at("kind").as_text() != "namespaces":
        return f" {network.at('nodes').as_integer()} hosts."
    rate = network.number("port_bytes_per_s")
    ports = f", ports shaped to {gbit(rate)}" if rate else ""
    return f" Emulated: {network.at('nodes').as_integer()} network namespaces of one machine{ports}; no card, cable or switch."


def size_text(one: Node) -> str:
    return binary_size(one.at("message_bytes").as_number())


def share_text(value: float | None) -> str:
    return "\u2013" if value is None else percent(100 * value)
