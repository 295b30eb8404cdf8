"""The comparison of RAID sets with a reference drive: each one's cost and yield, the paired ratios, and published figures."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.statistics.paired import PairedEstimate
from daq_bench.bench_model.workloads.raid_vs_3dxp.document import (
    Compared,
    Quantity,
    RaidComparison,
    RaidVs3Dxp,
)
from daq_bench.bench_report.base.units import (
    GB,
    NONE,
    THIN,
    binary_size,
    count,
    decimal_size,
    duration,
    in_gb_per_s,
    latency,
    percent,
    significant,
    span,
    three,
)
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.section import Lacking, Part, Section, unfinished
from daq_bench.bench_report.document.table import Column, Columns, Table, table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.workloads.raid_vs_3dxp.figures import RateRow, rate_figure, ratio_figure

TITLE = "RAID sets against the reference drive"
PB = 1e15
RESULT, MEASURED = "raid_comparison", "raid_vs_3dxp"
QUANTITIES: dict[Quantity, str] = {
    "throughput": "Throughput",
    "latency_p99": "Latency p99",
    "latency_p99_9": "Latency p99.9",
    "kernel_cpu": "Kernel CPU per GB",
}
DECISIONS = {
    "above": "more than the reference",
    "below": "less than the reference",
    "undecided": "undecided: more rounds needed",
}


def section(bundle: Bundle) -> Section | None:
    found, measured = bundle.result(RESULT, RaidComparison), bundle.result(MEASURED, RaidVs3Dxp)
    if found is None or measured is None:
        return unfinished(bundle, MEASURED, TITLE, "the comparison: it did not finish", name="raid")
    return Section("raid", TITLE, tuple(_parts(found, measured)))


def _parts(found: RaidComparison, measured: RaidVs3Dxp) -> Iterator[Part]:
    yield _how(found, measured)
    yield performance(found)
    yield _pairs(found)
    ratios = _ratio_figure(found)
    yield ratios or Lacking("the figure of paired ratios: no round counts")
    disturbed = _disturbed(found)
    if disturbed:
        yield disturbed
    yield _costs(found)
    yield from _without(found)
    rates = rates_figure(found)
    if rates:
        yield rates


def _how(found: RaidComparison, measured: RaidVs3Dxp) -> str:
    write, paced = measured.write, measured.paced
    rounds = len({one.round for one in measured.rounds})
    return (
        f"The reference is {found.reference}; requirements bound {found.judged_set}. Each set was "
        f"measured in {rounds} rounds together with the reference, the reference first in one round and last in the next, so that a "
        f"drift which is steady over the rounds cancels from their mean. In each round a target takes "
        f"{decimal_size(write.write_size)} at full speed ({write.threads} thread, "
        f"{write.io_depth} blocks of {binary_size(write.block_size)} in flight, new file, final "
        f"flush included) and then a record of {duration(paced.seconds)} paced at "
        f"{in_gb_per_s(paced.offered_bytes_per_s)} for all, whose latencies count from each superchunk's intended "
        "arrival. Sets that share drives were built one after the other; the reference stayed mounted."
    )


def _layout(target: Compared) -> str:
    drives = len(target.drives)
    if target.raid_level is None:
        return f"{drives} drive" if drives == 1 else NONE
    return f"RAID{THIN}{target.raid_level}, {drives} drives" + (f", chunk {target.chunk}" if target.chunk else "")


def _throughput(target: Compared) -> str | None:
    rate = target.throughput_bytes_per_s
    if not rate.mean:
        return None
    return three(rate.mean / GB) + (
        f" ({three(rate.min / GB)} to {three(rate.max / GB)})" if rate.min and rate.max else ""
    )


SETS: Columns[Compared] = (
    Column("Target", lambda target: target.name),
    Column("Layout", _layout),
    Column("Throughput, GB/s", _throughput, kind="n"),
    Column("p50", lambda target: target.latency_us.p50.median, latency),
    Column("p99", lambda target: target.latency_us.p99.median, latency),
    Column("p99.9", lambda target: target.latency_us.p99_9.median, latency),
    Column("Max", lambda target: target.latency_us.max.max, latency),
    Column("Lost", lambda target: target.lost_superchunks, count),
    Column("Kernel CPU, s/GB", lambda target: target.kernel_cpu_s_per_gb.median, three),
    Column("md threads, s/GB", lambda target: target.md_threads_s_per_gb, three),
)


def performance(found: RaidComparison) -> Table:
    caption = (
        "Throughput: geometric mean over the rounds (least to greatest). Latencies: median over the rounds of each percentile, and "
        "the longest of all. Kernel CPU: system and interrupt time of the whole machine per GB; what a set takes more than the "
        "reference is the RAID's. The first row is the reference."
    )
    return table(found.targets, SETS, "raid-sets", caption)


def _pairs(found: RaidComparison) -> Table:
    rows = []
    for one in found.comparisons:
        result, kept = one.result, one.undisturbed
        head = (one.set, QUANTITIES[one.quantity])
        if result is None:
            rows.append((*head, "0", NONE, NONE, NONE, f"not measured: {one.reason or 'no round counts'}"))
            continue
        rows.append((*head, count(result.n), *_estimate(result), _exact(result), _decision(result)))
        if kept:
            rows.append(("", "without the disturbed", count(kept.n), *_estimate(kept), _exact(kept), _decision(kept)))
    level = percent(100 * found.confidence)
    return Table(
        heads=("Set", "Quantity", "n", "Ratio", f"{level} interval", "Sign / ranks p", "Against the reference"),
        kinds="ttnnnnt",
        rows=tuple(rows),
        name="raid-pairs",
        caption="Set over reference in the same round. Ratio: geometric mean, both orders with equal weight. Interval: Student's t on the "
        "logarithms, stratified by order. Beside it the exact sign test and Wilcoxon's signed ranks, which assume less; n rounds "
        "cannot give a p below 2 to the power 1 \u2212 n. All rounds count; a second row is without the disturbed ones.",
    )


def _estimate(result: PairedEstimate) -> tuple[str, str]:
    return three(result.ratio), span(result.interval) if result.interval else NONE


def _exact(result: PairedEstimate) -> str:
    ranks = result.wilcoxon_p
    return f"{significant(result.sign_p, 2)} / {NONE if ranks is None else significant(ranks, 2)}"


def _decision(result: PairedEstimate) -> str:
    text = DECISIONS[result.decision]
    effect = result.order_effect
    if effect and effect.p < 0.05:
        text += (
            f"; the order matters: {significant(effect.factor, 3)} times with the reference first "
            f"(p {significant(effect.p, 2)})"
        )
    return text


def _ratio_figure(found: RaidComparison) -> Figure | None:
    panels = []
    measured = {one.quantity for one in found.comparisons if one.result}
    tail: Quantity = "latency_p99_9" if "latency_p99_9" in measured else "latency_p99"
    keys: tuple[Quantity, ...] = ("throughput", tail, "kernel_cpu")
    for key in keys:
        rows = [(one, one.result) for one in found.comparisons if one.quantity == key and one.result]
        if rows:
            panels.append((QUANTITIES[key], rows))
    if not panels:
        return None
    caption = (
        "Each mark is one round; upward and filled where the reference was measured first, downward and open where it was last. Ringed "
        "rounds stand out or were touched by an event (table below) and are still in the mean. An interval that crosses 1 decides "
        "nothing. For latencies and CPU time, left of 1 is better."
    )
    return ratio_figure("raid-ratios", "Sets over the reference, round by round", caption, panels)


def _disturbed(found: RaidComparison) -> Table | None:
    rows = [
        (one.set, count(one.round), ", ".join(QUANTITIES[name] for name in one.seen_in) or NONE, one.cause)
        for one in found.disturbed
    ]
    if not rows:
        return None
    return Table(
        heads=("Set", "Round", "Stands out in", "Cause"), kinds="tntt", rows=tuple(rows), name="raid-disturbed",
        caption="Rounds that lie far from the others (modified z-score above 3.5 and more than 10 %), or during which an event of the run "
        "touched the set's drives.",
    )  # fmt: skip


def _power(target: Compared) -> str | None:
    """Returns the median, with its n where some rounds lack a value."""
    power = target.added_power_w
    if power.median is None:
        return None
    return three(power.median) + (f" (n = {count(power.n)})" if power.reason else "")


def _price(target: Compared, value: float | None) -> str | None:
    return None if value is None else f"{significant(value, 4, trim=True)}{THIN}{target.cost.currency or ''}"


COSTS: Columns[Compared] = (
    Column("Target", lambda target: target.name),
    Column("Added W", _power, kind="n"),
    Column("W per GB/s", lambda target: target.added_w_per_gb_per_s.median, three),
    Column("J per TB", lambda target: target.added_w_per_gb_per_s.median, lambda per: three(per * 1000)),
    Column("GB/s per U", lambda target: target.gb_per_s_per_u, three),
    Column("B to drives per B", lambda target: target.device_bytes_per_byte, three),
    Column("Endurance, PB", lambda target: target.endurance_bytes.value, lambda size: three(size / PB)),
    Column("Price", lambda target: _price(target, target.cost.total), kind="n"),
    Column("per TB", lambda target: _price(target, target.cost.per_tb), kind="n"),
    Column("per GB/s", lambda target: _price(target, target.cost.per_gb_per_s), kind="n"),
)


def _costs(found: RaidComparison) -> Table:
    caption = (
        "Added W: the server's power while the target is written to, less its idle power of the same round. W per GB/s and J/TB "
        "are the same measurement in two units. Endurance: what may be written to the target before its drives reach their rating, by "
        "what it was seen to write to them. 1 PB = 10\u00b9\u2075 B."
    )
    return table(found.targets, COSTS, "raid-costs", caption)


def _without(found: RaidComparison) -> Iterator[Part]:
    """Yields a sentence for the source of each declared figure, and for the reason of each missing one."""
    bases: dict[tuple[str, str], list[str]] = {}
    reasons: dict[tuple[str, str], list[str]] = {}
    for target in found.targets:
        stated = (("rack units", target.rack_units), ("endurance", target.endurance_bytes), ("price", target.cost))
        for what, one in stated:
            for text, kept in ((one.basis, bases), (one.reason, reasons)):
                if text:
                    kept.setdefault((what, text), []).append(target.name)
        power = target.added_power_w
        if power.reason:
            some = f"{power.reason}; only {count(power.n)} of its rounds have one" if power.n else power.reason
            reasons.setdefault(("power", some), []).append(target.name)
    if bases:
        said = (f"{what[0].upper()}{what[1:]} of {', '.join(names)}: {text}." for (what, text), names in bases.items())
        yield "Declared or published, not measured. " + " ".join(said)
    for (what, text), names in reasons.items():
        yield Lacking(f"{what} of {', '.join(names)}: {text}")


def rates_figure(found: RaidComparison) -> Figure | None:
    rows, sources = [], []
    for target in found.targets:
        rate = target.throughput_bytes_per_s
        if rate.mean:
            values = tuple(value for value in rate.values if value is not None)
            rows.append(RateRow(f"{target.name} ({_layout(target)})", values, rate.mean, published=False))
    if not rows:
        return None
    for one in found.published:
        label = f"{one.model}, {'measured by others' if one.basis == 'measured' else one.basis}"
        rows.append(RateRow(label, (), one.bytes_per_s, published=True))
        stated = f"{one.qualifier} {in_gb_per_s(one.bytes_per_s)}".strip()
        sources.append(f"{one.model} {stated} ({one.source})")
    caption = "Measured in this run above the line, 1 GB/s being 10\u2079 B/s."
    if sources:
        caption += (
            " Below it, devices as others published them, under conditions of their own: references, never measurements of this bench. "
            + "; ".join(sources)
            + "."
        )
    return rate_figure("raid-rates", "Throughput beside published devices", caption, rows)
