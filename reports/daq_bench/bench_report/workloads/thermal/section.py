"""The thermal soak: its end, the drives' temperatures, the record's expected loss, and the fan-speed sweep."""

from __future__ import annotations

from daq_bench.bench_model.workloads.thermal.document import FanSweep, Heat, Thermal, ThermalSoak
from daq_bench.bench_report.base.units import NONE, count, decimal_rate, decimal_size, duration, percent, span, three
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.section import Lacking, Part, Section
from daq_bench.bench_report.document.table import Column, Columns, Table, table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.workloads.thermal.figures import fan_figure

CAPTION = (
    "The drives' temperatures during the soak, beside their own limits. Heading for: the end of the approach that the readings follow, "
    "with its 95 % interval; a dash: not known yet."
)


def section(bundle: Bundle) -> Section | None:
    thermal, soak = bundle.result("thermal", Thermal), bundle.result("thermal_soak", ThermalSoak)
    if thermal is None or soak is None:
        return None
    parts: list[Part] = [_words(thermal, soak)]
    parts += [part for part in (_heat_table(soak), _record_table(soak)) if part is not None]
    parts += _sweep(thermal.fan_sweep, soak)
    parts += [Lacking(f"{name}: {reason}.") for name, reason in soak.reasons.items()]
    return Section("thermal", "Thermal soak", tuple(parts))


def _words(thermal: Thermal, soak: ThermalSoak) -> str:
    lasted = soak.soak
    text = f"The soak was ended by {soak.stopped_by}"
    if lasted:
        rate = decimal_rate(lasted.mean_bytes_per_s)
        text += f" after {duration(lasted.duration_s)} at {rate} on average"
    text += f". Equilibrium is when {thermal.rule.text}."
    onset = soak.onset
    if onset:
        text += (
            f" Throttling began {duration(onset.at_s)} after the load, took "
            f"{percent(100 * onset.depth_fraction)} of the rate (confidence {onset.confidence}),"
            f" {'and ended while the load went on' if onset.ended_in_soak else 'and lasted to the end of the soak'}."
        )
    word = soak.drives_word
    if word and not onset:
        said = "; ".join(one.text for one in word)
        text += f" The drives throttled by their own word, where the rate shows no dip: {said}."
    recovery = soak.recovery
    probe = recovery.probe_fraction if recovery else None
    if recovery and probe is not None:
        cooling = duration(recovery.cooling_s)
        text += f" After {cooling} without load the target took {percent(100 * probe)} of its rate again."
    hazards = thermal.hazards
    if hazards:
        text += f" Commanded during the soak: {'; '.join(hazards)}."
    return text


def _heading(heat: Heat) -> str:
    """Says where the temperature is heading, with its interval."""
    ends, value = heat.equilibrium_interval_degC, heat.equilibrium_degC
    text = NONE if value is None else three(value)
    return f"{text} ({span(ends)})" if ends else text


HEAT: Columns[tuple[str, Heat]] = (
    Column("Drive", lambda one: one[0]),
    Column("Highest (°C)", lambda one: one[1].max_degC, three),
    Column("Its warning (°C)", lambda one: one[1].warning_degC, three),
    Column("Its critical (°C)", lambda one: one[1].critical_degC, three),
    Column("Headroom (K)", lambda one: one[1].headroom_degC, three),
    Column("Last slope (K/min)", lambda one: one[1].slope_k_per_min, three),
    Column("Heading for (°C)", lambda one: _heading(one[1]), kind="n"),
)


def _heat_table(soak: ThermalSoak) -> Table | None:
    return table(soak.drives.items(), HEAT, "heat", CAPTION) if soak.drives else None


def _record_table(soak: ThermalSoak) -> Table | None:
    record = soak.record
    if record is None:
        return None
    rows = []
    cases = (
        (record.at_throttled_rate, "at the throttled rate throughout"),
        (record.worst_in_soak, "at the worst stretch of the soak"),
    )
    for loss, what in cases:
        if loss:
            rows.append((what, decimal_size(loss.backlog_bytes), decimal_size(loss.lost_bytes)))
    if not rows:
        return None
    caption = (
        f"A record of {duration(record.duration_s)} at {decimal_rate(record.demand_bytes_per_s)}: the buffer needed, and the loss with "
        f"the declared buffer of {decimal_size(record.buffer_bytes)}."
    )
    return Table(("Record", "Buffer needed", "Lost"), "tnn", tuple(rows), caption, "record-loss")


def _sweep(sweep: FanSweep, soak: ThermalSoak) -> list[Part]:
    status, reason = sweep.status, sweep.reason
    if status == "not asked":
        return []
    parts: list[Part] = [Lacking(f"fan-speed sweep {status}: {reason}.")] if reason else []
    points = soak.fan_sweep
    if not points:
        return parts
    figure: Figure | None = fan_figure(points)
    rows = tuple(
        (
            count(point.duty_percent),
            ", ".join(f"{name} {count(round(speed))}" for name, speed in point.fan_speeds_rpm.items()) or NONE,
            ", ".join(f"{name} {_heading(heat)}" for name, heat in point.drives.items()) or NONE,
            decimal_rate(point.throughput_bytes_per_s, 3),
            f"{point.stopped_by}{', throttled' if point.throttled else ''}",
        )
        for point in points
    )
    heads = ("Duty (%)", "Fans (rpm)", "Equilibrium (°C)", "Rate", "Ended by")
    caption = "Fan-speed sweep: where temperature and rate settled at each commanded duty. A dash: not settled."
    return [*parts, *([figure] if figure else []), Table(heads, "nttnt", rows, caption, "fan-sweep")]
