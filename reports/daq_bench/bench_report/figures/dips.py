"""One sustained load: its rate with the dips shaded, the drives' temperature, and the cause of each dip."""

from __future__ import annotations

from collections.abc import Sequence

from daq_bench.bench_model.documents.derived import DriveTemperature
from daq_bench.bench_model.documents.dips import Dip, Load, Throttling
from daq_bench.bench_report.base.envelope import thinned
from daq_bench.bench_report.base.units import GB, decimal_rate, duration, percent
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, GREY, SERIES, VERMILLION
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.dataset.telemetry import Track

RATE_MM, HEAT_MM, CAUSE_MM, MARGIN_MM = 44.0, 30.0, 6.0, 20.0
CAUSE_TOP_MM = 8.0
MOST_TRACKS = len(SERIES)
WHOLE_SHARE = 0.95  # [P] of a load: what lasts longer and does not end was there all the time


def dip_figure(bundle: Bundle, window: Load, name: str) -> Figure | None:
    """Draws the load; None where the telemetry holds no rate of the target's device during it."""
    origin = window.start_utc_s - bundle.run.started.timestamp()
    length = window.duration_s
    rate = _rate(bundle, window, origin, length)
    if rate is None:
        return None
    heat = {key: track for key, whole in _drives_heat(bundle).items() if len((track := _cut(whole, origin, length))[0])}
    dips = window.dips
    causes = sorted({dip.cause for dip in dips})
    heights = [RATE_MM, *([HEAT_MM] if heat else []), *([CAUSE_TOP_MM + CAUSE_MM * len(causes)] if causes else [])]
    title = f"Rate and dips: {window.workload}, {window.name}"
    with sheet(name, sum(heights) + MARGIN_MM, rows=len(heights), ratios=tuple(heights)) as (drawing, axes):
        spans = [(dip.start_s, dip.end_s) for dip in dips]
        _draw_rate(axes[0], rate, spans)
        if heat:
            _draw_heat(axes[1], heat, _limits(bundle), spans)
        if causes:
            _draw_causes(axes[-1], dips, causes)
        axes[-1].set_xlim(0, length)
        axes[-1].set_xlabel("time since the begin of the load (s)")
        alt = f"{title}: {len(dips)} dips within {duration(length)}."
    mean = decimal_rate(window.mean_bytes_per_s)
    caption = f"Mean {mean} over {duration(length)}; {len(dips)} dip{'s' if len(dips) != 1 else ''}"
    caption += " (shaded)." if dips else "."
    if heat and _limits(bundle):
        caption += " Dashed: the lowest warning temperature that a drive of the target states for itself."
    if not heat:
        caption += " The drives report no temperature."
    return drawing.figure(title, caption, alt, _see(window))


def _rate(bundle: Bundle, window: Load, origin: float, length: float) -> Track | None:
    if bundle.host is None or bundle.run.target is None:
        return None
    words = window.source.split()
    named = [words[1]] if words[0] == "block_device" else []
    for device in [*named, *(device.name for device in bundle.run.target.devices)]:
        whole = bundle.host.disk_write_bytes_per_s.get(device)
        if whole is not None and len((track := _cut(whole, origin, length))[0]):
            return track
    return None


def _cut(track: Track, origin: float, length: float) -> Track:
    inside = (track[0] >= origin) & (track[0] <= origin + length)
    return track[0][inside] - origin, track[1][inside]


def _drives_heat(bundle: Bundle) -> dict[str, Track]:
    """Composite temperatures of the target's drives."""
    throttling = bundle.result("throttling", Throttling)
    drives = throttling.drives if throttling else []
    tracks = bundle.host.temperature_celsius if bundle.host else {}
    found = {name: track for name, track in tracks.items() if name.split()[0] in drives and "Sensor" not in name}
    return dict(list(found.items())[:MOST_TRACKS])


def _limits(bundle: Bundle) -> float | None:
    own = bundle.result("drive_temperature", DriveTemperature)
    return own.warning_degC if own else None


def _draw_rate(axes: Panel, track: Track, spans: Sequence[tuple[float, float]]) -> None:
    axes.label_panel("written to the target (GB/s)")
    times, values = thinned(*track)
    axes.plot(times, values / GB, color=BLUE, linewidth=0.9, label="rate")
    axes.shade(spans, VERMILLION, "//", "dip")
    axes.set_ylim(bottom=0)
    axes.legend_above()


def _draw_heat(axes: Panel, heat: dict[str, Track], limit: float | None, spans: Sequence[tuple[float, float]]) -> None:
    axes.label_panel("temperature of the drives (°C)")
    for (colour, style, _), (name, track) in zip(SERIES, heat.items(), strict=False):
        axes.plot(*thinned(*track), color=colour, linestyle=style, linewidth=0.9, label=name)
    if limit is not None:
        axes.axhline(limit, color=VERMILLION, linestyle="--", linewidth=0.8, label="warning temperature")
    axes.shade(spans, VERMILLION, "//")
    axes.legend_above()


def _draw_causes(axes: Panel, dips: Sequence[Dip], causes: Sequence[str]) -> None:
    axes.label_panel("put down to")
    for dip in dips:
        row = causes.index(dip.cause)
        colour = GREY if causes[row] == "unknown" else VERMILLION
        axes.broken_barh([(dip.start_s, dip.end_s - dip.start_s)], (row - 0.35, 0.7), facecolors=colour)
    axes.set_yticks(range(len(causes)), [cause.replace("_", " ") for cause in causes])
    axes.set_ylim(len(causes) - 0.5, -0.5)
    axes.grid(visible=False)


def never_reached(window: Load, dip: Dip) -> bool:
    """Says whether the rate lay below its reference from the load's begin to its end: that is no dip in the reader's eyes."""
    return not dip.ended and dip.end_s - dip.start_s >= WHOLE_SHARE * window.duration_s


def _see(window: Load) -> str:
    dips = window.dips
    if not dips:
        return "The rate never falls by 10 % or more below its level."
    deepest = max(dips, key=lambda dip: dip.depth_fraction)
    if never_reached(window, deepest):
        reference, cause = decimal_rate(deepest.reference_bytes_per_s, 3), deepest.cause.replace("_", " ")
        return f"The rate never reached {reference} under this load (cause: {cause})."
    depth, start, cause = deepest.depth_fraction, deepest.start_s, deepest.cause.replace("_", " ")
    return f"The deepest dip takes {percent(100 * depth)} of the rate, {duration(start)} after the begin of the load (cause: {cause})."
