"""Temperature and rate against the commanded duty of the fans."""

from __future__ import annotations

from collections.abc import Sequence

from bench_report.base.fields import Node
from bench_report.base.units import GB
from bench_report.document.canvas import BLUE, SERIES, Figure, label_panel, legend_above, sheet, to_svg

POINTS_MIN = 2
HEIGHT_MM = 84.0


def fan_figure(points: Sequence[Node]) -> Figure | None:
    """Draws the sweep; None with fewer than two duties: a single one is no curve."""
    if len(points) < POINTS_MIN:
        return None
    ordered = sorted(points, key=lambda point: point.at("duty_percent").as_number())
    duties = [point.at("duty_percent").as_number() for point in ordered]
    drives = sorted({name for point in ordered for name, _ in point.at("drives").entries()})
    name, title = "fan-sweep", "Temperature and rate against the fans' duty"
    with sheet(HEIGHT_MM, rows=2) as (figure, (heat, rate)):
        label_panel(heat, "highest temperature (°C); filled: settled")
        for (colour, style, marker), drive in zip(SERIES, drives, strict=False):
            found = [(duty, point.at("drives").at(drive)) for duty, point in zip(duties, ordered, strict=True)]
            known = [(duty, node, value) for duty, node in found if (value := node.number("max_degC")) is not None]
            heat.plot(
                [duty for duty, _, _ in known],
                [value for _, _, value in known],
                color=colour,
                linestyle=style,
                label=drive,
            )
            for duty, node, value in known:
                settled = node.number("equilibrium_degC") is not None
                heat.plot([duty], [value], marker=marker, color=colour, markerfacecolor=colour if settled else "white")
        legend_above(heat)
        label_panel(rate, "rate (GB/s)")
        values = [point.at("throughput_bytes_per_s").as_number() / GB for point in ordered]
        rate.plot(duties, values, color=BLUE, marker="o")
        rate.set_ylim(bottom=0)
        rate.set_xlabel("commanded duty of all fans (%)")
        alt = f"{title}: {len(points)} duties from {duties[0]:g} to {duties[-1]:g} %."
        svg = to_svg(figure, name, alt)
    caption = (
        "Each point is a load that went on until the temperature settled, the drives throttled, or its time was up."
    )
    return Figure(name, title, caption, alt, svg, _see(ordered))


def _see(ordered: Sequence[Node]) -> str:
    ends = [
        (point.at("duty_percent").as_number(), _warmest(point), point.at("throughput_bytes_per_s").as_number() / GB)
        for point in (ordered[0], ordered[-1])
    ]
    told = (
        f"{duty:g} % duty: warmest drive {'unknown' if heat is None else f'{heat:.1f} °C'}, {rate:.3g} GB/s"
        for duty, heat, rate in ends
    )
    return f"{'; '.join(told)}."


def _warmest(point: Node) -> float | None:
    return max(
        (value for _, node in point.at("drives").entries() if (value := node.number("max_degC")) is not None),
        default=None,
    )
