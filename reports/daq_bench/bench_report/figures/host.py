"""The machine during the run: drive, processors, temperature on one time axis, with the run's phases shaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daq_bench.bench_report.base.envelope import Series, thinned, thinned_together
from daq_bench.bench_report.base.units import GB, count, duration, in_gb_per_s, percent
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.direct_labels import shortened
from daq_bench.bench_report.document.palette import BLUE, FAINT, GREEN, GREY, ORANGE, SERIES, VERMILLION
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.dataset.telemetry import ALL_CPUS, HostSeries, Phase, Track

CPU_MODES = (
    ("user", BLUE, ""),
    ("system", ORANGE, "////"),
    ("iowait", GREEN, "----"),  # no dots: matplotlib draws each one anew, 250 kB of curves in the SVG
    ("steal", VERMILLION, "xxxx"),
)
MOST_CORES_STACKED = 4
MOST_LINES = 6
PANEL_MM, CORE_MM, MARGIN_MM = 36.0, 27.0, 16.0
MAP_COLUMNS = 400
LEAST_NAMED_SHARE = 0.07  # share of the axis: a narrower band has no room for its name
PHASE_SHADES = ("#eef3f7", "#dfe8ef")


def host_figure(bundle: Bundle) -> Figure | None:
    host = bundle.host
    if host is None or not (host.disk_write_bytes_per_s or host.cpu_percent or host.temperature_celsius):
        return None
    name, title = "host", "The candidate during the run"
    panels = _panels(host)
    heights = tuple(CORE_MM if kind == "core" else PANEL_MM for kind, _ in panels)
    start, end = _span(host)
    with sheet(name, sum(heights) + MARGIN_MM, rows=len(panels), ratios=heights) as (drawing, axes):
        for position, ((kind, key), panel) in enumerate(zip(panels, axes, strict=True)):
            named_from_s = LEAST_NAMED_SHARE * (end - start) if position == 0 else None
            _draw_phases(panel, _within(bundle.phases, start, end), named_from_s)
            _draw_panel(panel, host, kind, key)
        axes[-1].set_xlim(start, end)
        axes[-1].set_xlabel("time since the start of the run (s)")
        alt = f"{title}: {len(panels)} panels from {duration(start)} to {duration(end)} after the start of the run."
    return drawing.figure(title, _caption(bundle, host, end - start), alt, _see(host))


def _panels(host: HostSeries) -> list[tuple[str, str]]:
    panels = [("disk", "")] if host.disk_write_bytes_per_s else []
    if 0 < len(host.cpu_percent) <= MOST_CORES_STACKED:
        panels += [("core", core) for core in sorted(host.cpu_percent, key=_core_order)]
    elif host.cpu_percent:
        panels += [("cpu", ""), ("map", "")]
    panels += [("temperature", "")] if host.temperature_celsius else []
    return panels + ([("power", "")] if host.power_w else [])


def _core_order(core: str) -> tuple[int, str]:
    digits = "".join(character for character in core if character.isdigit())
    return (int(digits) if digits else -1, core)


def _tracks(host: HostSeries) -> list[Track]:
    cpu = [track for modes in host.cpu_percent.values() for track in modes.values()]
    return [*host.disk_write_bytes_per_s.values(), *cpu, *host.temperature_celsius.values()]


def _span(host: HostSeries) -> tuple[float, float]:
    times = [time for track in _tracks(host) for time in (track[0][0], track[0][-1]) if len(track[0])]
    low, high = float(min(times)), float(max(times))
    return low, high if high > low else low + 1.0


def _within(phases: Sequence[Phase], start: float, end: float) -> list[Phase]:
    """Returns the parts of the phases that lie on the axis: telemetry begins after the provisioning and ends before the report."""
    cut = [Phase(phase.name, max(phase.start_s, start), min(phase.end_s, end)) for phase in phases]
    return [phase for phase in cut if phase.end_s > phase.start_s]


def _draw_phases(axes: Panel, phases: Sequence[Phase], named_from_s: float | None) -> None:
    for index, phase in enumerate(phases):
        axes.axvspan(phase.start_s, phase.end_s, facecolor=PHASE_SHADES[index % 2], edgecolor="none", zorder=0)
        axes.axvline(phase.start_s, color=FAINT, linewidth=0.6, zorder=0.5)
        if named_from_s is not None and phase.end_s - phase.start_s >= named_from_s:
            axes.annotate(
                phase.name, ((phase.start_s + phase.end_s) / 2, 1.0), xycoords=("data", "axes fraction"),
                xytext=(0, -2), textcoords="offset points", ha="center", va="top", fontsize=6.5, color=GREY,
                annotation_clip=True, clip_on=True,
            )  # fmt: skip


def _draw_panel(axes: Panel, host: HostSeries, kind: str, key: str) -> None:
    if kind == "disk":
        _draw_disks(axes, host.disk_write_bytes_per_s)
    elif kind == "core":
        first = key == min(host.cpu_percent, key=_core_order)
        _draw_stack(axes, host.cpu_percent[key], f"{key}, share of time", legend=first)
    elif kind == "cpu":
        _draw_stack(axes, _mean_of_cores(host), f"All {len(host.cpu_percent)} CPUs, mean share of time", legend=True)
    elif kind == "map":
        _draw_map(axes, host)
    elif kind == "power":
        _draw_power(axes, host.power_w)
    else:
        _draw_lines(axes, host.temperature_celsius)
        axes.label_panel("Temperature", "\u00b0C")


def _draw_disks(axes: Panel, tracks: dict[str, Track]) -> None:
    _draw_lines(axes, {name: (times, values / GB) for name, (times, values) in tracks.items()})
    axes.set_ylim(
        bottom=0, top=1.22 * max((float(np.max(values)) for _, values in tracks.values()), default=1.0) / GB or 1.0
    )
    axes.label_panel("Written to the drive, by the kernel's counters", "GB/s")


def _draw_power(axes: Panel, tracks: dict[str, Track]) -> None:
    """A reading of the BMC holds until its next one."""
    for name, (times, watts) in tracks.items():
        axes.step(times, watts, where="post", color=BLUE, linewidth=1.0, label=name, zorder=3)
    axes.set_ylim(bottom=0, top=1.12 * max(float(np.nanmax(watts)) for _, watts in tracks.values()) or 1.0)
    axes.label_panel("Power of the whole server, by its BMC", "W")


def _draw_lines(axes: Panel, tracks: dict[str, Track]) -> None:
    busiest = sorted(tracks, key=lambda name: float(np.max(tracks[name][1])), reverse=True)[:MOST_LINES]
    for name, (colour, dashes, _) in zip(sorted(busiest), SERIES, strict=False):
        x, y = thinned(*tracks[name])
        axes.plot(x, y, color=colour, linestyle=dashes, linewidth=1.0, label=name, zorder=3)
    axes.legend_above()


def _draw_stack(axes: Panel, modes: dict[str, Track], title: str, legend: bool) -> None:
    present = [(mode, colour, hatch) for mode, colour, hatch in CPU_MODES if mode in modes]
    if present:
        times = modes[present[0][0]][0]
        tops = np.cumsum([np.interp(times, *modes[mode]) for mode, _, _ in present], axis=0)
        times, drawn = thinned_together(times, list(tops))
        floor = np.zeros(len(times))
        for (mode, colour, hatch), top in zip(present, drawn, strict=True):
            look: dict[str, Any] = {
                "facecolor": colour,
                "edgecolor": "white",
                "hatch": hatch,
                "linewidth": 0,
                "alpha": 0.75,
            }
            axes.fill_between(times, floor, top, label=mode, zorder=3, **look)
            floor = top
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 50, 100])
    axes.label_panel(title, "%")
    if legend:
        axes.legend_above()


def _busy(modes: dict[str, Track], times: Series) -> Series:
    total = np.zeros(len(times))
    for mode, _, _ in CPU_MODES:
        if mode in modes:
            total += np.interp(times, *modes[mode])
    return total


def _mean_of_cores(host: HostSeries) -> dict[str, Track]:
    first = next(iter(host.cpu_percent.values()))
    times = next(iter(first.values()))[0]
    found: dict[str, Track] = {}
    for mode, _, _ in CPU_MODES:
        rows = [np.interp(times, *modes[mode]) for modes in host.cpu_percent.values() if mode in modes]
        if rows:
            found[mode] = (times, np.mean(rows, axis=0))
    return found


def _draw_map(axes: Panel, host: HostSeries) -> None:
    """Draws one row for each CPU; a dark stripe is a busy one. It is a raster, so that 256 CPUs take no more bytes than 8."""
    cores = sorted(host.cpu_percent, key=_core_order)
    start, end = _span(host)
    times = np.linspace(start, end, MAP_COLUMNS)
    rows = [_busy(host.cpu_percent[core], times) for core in cores]
    image = axes.imshow(
        np.array(rows), aspect="auto", origin="lower", interpolation="nearest", cmap="cividis_r", vmin=0, vmax=100,
        extent=(start, end, -0.5, len(cores) - 0.5), zorder=3,
    )  # fmt: skip
    axes.set_ylabel("CPU number")
    axes.grid(visible=False)
    axes.label_panel("Busy by CPU (user + system + iowait + steal)")
    axes.sheet.colorbar(image, ax=axes, label="%", pad=0.01, aspect=12)


def _caption(bundle: Bundle, host: HostSeries, length_s: float) -> str:
    points = sum(len(times) for times, _ in _tracks(host))
    parts = [f"n = {count(points)} samples over {duration(length_s)}."]
    if bundle.phases:
        parts.append("Shaded: the phases of the run.")
    if host.disk_write_bytes_per_s:
        name, (_, values) = max(host.disk_write_bytes_per_s.items(), key=lambda item: float(np.max(item[1][1])))
        parts.append(f"{shortened(name)} took up to {in_gb_per_s(float(np.max(values)))} in one sample.")
        if len(host.disk_write_bytes_per_s) > MOST_LINES:
            parts.append(f"The {MOST_LINES} busiest of {len(host.disk_write_bytes_per_s)} drives are drawn.")
    if host.temperature_celsius:
        name, (_, values) = max(host.temperature_celsius.items(), key=lambda item: float(np.max(item[1][1])))
        parts.append(f"Highest temperature {np.max(values):.1f} \u00b0C ({shortened(name)}).")
    else:
        parts.append("No temperature sensor reported.")
    for _, watts in host.power_w.values():
        known = watts[np.isfinite(watts)]
        parts.append(f"Power {np.min(known):.0f} to {np.max(known):.0f} W.")
    if any(mode in modes for modes in host.cpu_percent.values() for mode in ("steal",)):
        parts.append("Steal is time that a hypervisor gave to others.")
    return " ".join(parts)


def _see(host: HostSeries) -> str:
    if not host.cpu_percent:
        return "The load generator's phases show in what the drive took; the telemetry has no CPU times."
    busy = {
        core: float(np.mean(_busy(modes, np.asarray(next(iter(modes.values()))[0]))))
        for core, modes in host.cpu_percent.items()
    }
    most = max(busy, key=lambda core: busy[core])
    mean = percent(float(np.mean(list(busy.values()))))
    if len(busy) == 1:
        return f"{f'{most} were' if most == ALL_CPUS else f'{most} was'} busy {mean} of the time on average."
    return f"The CPUs were busy {mean} of the time on average; the busiest was {most} ({percent(busy[most])})."
