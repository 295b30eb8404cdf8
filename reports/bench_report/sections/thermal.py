"""The thermal soak: its end, the drives' temperatures, the record's expected loss, and the fan-speed sweep."""

from __future__ import annotations

from bench_report.base.fields import Node
from bench_report.base.units import NONE, count, decimal_rate, decimal_size, duration, percent, significant
from bench_report.document.canvas import Figure
from bench_report.document.section import Lacking, Part, Section
from bench_report.document.table import Table
from bench_report.figures.fan_sweep import fan_figure
from bench_report.reading.dataset.bundle import Bundle

CAPTION = (
    "The drives' temperatures during the soak, beside their own limits. Heading for: the end of the approach that the readings follow, "
    "with its 95 % interval; a dash: not known yet."
)


def section(bundle: Bundle) -> Section | None:
    thermal, soak = bundle.results.get("thermal"), bundle.results.get("thermal_soak")
    if thermal is None or soak is None:
        return None
    parts: list[Part] = [_words(thermal, soak)]
    parts += [part for part in (_heat_table(soak), _record_table(soak)) if part is not None]
    parts += _sweep(thermal.at("fan_sweep"), soak)
    reasons = soak.find("reasons")
    parts += [Lacking(f"{name}: {reason.as_text()}.") for name, reason in (reasons.entries() if reasons else ())]
    return Section("thermal", "Thermal soak", tuple(parts))


def _words(thermal: Node, soak: Node) -> str:
    lasted = soak.find("soak")
    text = f"The soak was ended by {soak.at('stopped_by').as_text()}"
    if lasted:
        rate = decimal_rate(lasted.at("mean_bytes_per_s").as_number())
        text += f" after {duration(lasted.at('duration_s').as_number())} at {rate} on average"
    text += f". Equilibrium is when {thermal.at('rule').at('text').as_text()}."
    onset = soak.find("onset")
    if onset:
        text += (
            f" Throttling began {duration(onset.at('at_s').as_number())} after the load, took "
            f"{percent(100 * onset.at('depth_fraction').as_number())} of the rate (confidence {onset.at('confidence').as_text()}),"
            f" {'and ended while the load went on' if onset.flag('ended_in_soak') else 'and lasted to the end of the soak'}."
        )
    word = soak.list("drives_word")
    if word and not onset:
        said = "; ".join(one.at("text").as_text() for one in word)
        text += f" The drives throttled by their own word, where the rate shows no dip: {said}."
    recovery = soak.find("recovery")
    probe = recovery.number("probe_fraction") if recovery else None
    if recovery and probe is not None:
        cooling = duration(recovery.at("cooling_s").as_number())
        text += f" After {cooling} without load the target took {percent(100 * probe)} of its rate again."
    hazards = thermal.texts("hazards")
    if hazards:
        text += f" Commanded during the soak: {'; '.join(hazards)}."
    return text


def _degrees(node: Node, key: str) -> str:
    value = node.number(key)
    return NONE if value is None else significant(value, 3)


def _heading(node: Node) -> str:
    """Says where the temperature is heading, with its interval."""
    ends = node.numbers("equilibrium_interval_degC") if node.find("equilibrium_interval_degC") else ()
    value = _degrees(node, "equilibrium_degC")
    return f"{value} ({significant(ends[0], 3)} to {significant(ends[1], 3)})" if len(ends) == 2 else value


def _heat_table(soak: Node) -> Table | None:
    keys = ("max_degC", "warning_degC", "critical_degC", "headroom_degC", "slope_k_per_min")
    rows = tuple(
        (name, *(_degrees(node, key) for key in keys), _heading(node)) for name, node in soak.at("drives").entries()
    )
    if not rows:
        return None
    heads = (
        "Drive",
        "Highest (°C)",
        "Its warning (°C)",
        "Its critical (°C)",
        "Headroom (K)",
        "Last slope (K/min)",
        "Heading for (°C)",
    )
    return Table(heads, "tnnnnnn", rows, CAPTION, "heat")


def _record_table(soak: Node) -> Table | None:
    record = soak.find("record")
    if record is None:
        return None
    rows = []
    cases = (
        ("at_throttled_rate", "at the throttled rate throughout"),
        ("worst_in_soak", "at the worst stretch of the soak"),
    )
    for key, what in cases:
        loss = record.find(key)
        if loss:
            backlog, lost = (decimal_size(loss.at(name).as_number()) for name in ("backlog_bytes", "lost_bytes"))
            rows.append((what, backlog, lost))
    if not rows:
        return None
    demand, buffer = (
        decimal_rate(record.at("demand_bytes_per_s").as_number()),
        decimal_size(record.at("buffer_bytes").as_number()),
    )
    caption = (
        f"A record of {duration(record.at('duration_s').as_number())} at {demand}: the buffer needed, and the loss with the declared "
        f"buffer of {buffer}."
    )
    return Table(("Record", "Buffer needed", "Lost"), "tnn", tuple(rows), caption, "record-loss")


def _sweep(sweep: Node, soak: Node) -> list[Part]:
    status, reason = sweep.at("status").as_text(), sweep.text("reason")
    if status == "not asked":
        return []
    parts: list[Part] = [Lacking(f"fan-speed sweep {status}: {reason}.")] if reason else []
    points = soak.list("fan_sweep")
    if not points:
        return parts
    figure: Figure | None = fan_figure(points)
    rows = tuple(
        (
            count(point.at("duty_percent").as_number()),
            ", ".join(
                f"{name} {count(round(speed.as_number()))}" for name, speed in point.at("fan_speeds_rpm").entries()
            )
            or NONE,
            ", ".join(f"{name} {_heading(node)}" for name, node in point.at("drives").entries()) or NONE,
            decimal_rate(point.at("throughput_bytes_per_s").as_number(), 3),
            f"{point.at('stopped_by').as_text()}{', throttled' if point.flag('throttled') else ''}",
        )
        for point in points
    )
    heads = ("Duty (%)", "Fans (rpm)", "Equilibrium (°C)", "Rate", "Ended by")
    caption = "Fan-speed sweep: where temperature and rate settled at each commanded duty. A dash: not settled."
    return [*parts, *([figure] if figure else []), Table(heads, "nttnt", rows, caption, "fan-sweep")]
