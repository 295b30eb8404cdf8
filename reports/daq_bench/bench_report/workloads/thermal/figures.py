"""Temperature and rate against the commanded duty of the fans."""

from __future__ import annotations

from collections.abc import Sequence

from daq_bench.bench_model.workloads.thermal.document import FanPoint
from daq_bench.bench_report.base.units import GB
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, SERIES

POINTS_MIN = 2
HEIGHT_MM = 84.0


def fan_figure(points: Sequence[FanPoint]) -> Figure | None:
    """Draws the sweep; None with fewer than two duties: a single one is no curve."""
    if len(points) < POINTS_MIN:
        return None
    ordered = sorted(points, key=lambda point: point.duty_percent)
    duties = [point.duty_percent for point in ordered]
    drives = sorted({name for point in ordered for name in point.drives})
    name, title = "fan-sweep", "Temperature and rate against the fans' duty"
    with sheet(name, HEIGHT_MM, rows=2) as (drawing, (heat, rate)):
        heat.label_panel("highest temperature (°C); filled: settled")
        for (colour, style, marker), drive in zip(SERIES, drives, strict=False):
            found = [(duty, point.drives[drive]) for duty, point in zip(duties, ordered, strict=True)]
            known = [(duty, heat_of, value) for duty, heat_of in found if (value := heat_of.max_degC) is not None]
            heat.plot(
                [duty for duty, _, _ in known],
                [value for _, _, value in known],
                color=colour,
                linestyle=style,
                label=drive,
            )
            for duty, heat_of, value in known:
                settled = heat_of.equilibrium_degC is not None
                heat.plot([duty], [value], marker=marker, color=colour, markerfacecolor=colour if settled else "white")
        heat.legend_above()
        rate.label_panel("rate (GB/s)")
        values = [point.throughput_bytes_per_s / GB for point in ordered]
        rate.plot(duties, values, color=BLUE, marker="o")
        rate.set_ylim(bottom=0)
        rate.set_xlabel("commanded duty of all fans (%)")
        alt = f"{title}: {len(points)} duties from {duties[0]:g} to {duties[-1]:g} %."
    caption = (
        "Each point is a load that went on until the temperature settled, the drives throttled, or its time was up."
    )
    return drawing.figure(title, caption, alt, _see(ordered))


def _see(ordered: Sequence[FanPoint]) -> str:
    ends = [
        (point.duty_percent, _warmest(point), point.throughput_bytes_per_s / GB) for point in (ordered[0], ordered[-1])
    ]
    told = (
        f"{duty:g} % duty: warmest drive {'unknown' if heat is None else f'{heat:.1f} °C'}, {rate:.3g} GB/s"
        for duty, heat, rate in ends
    )
    return f"{'; '.join(told)}."


def _warmest(point: FanPoint) -> float | None:
    return max(
        (one.max_degC for one in point.drives.values() if one.max_degC is not None),
        default=None,
    )
