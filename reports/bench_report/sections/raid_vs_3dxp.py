"""The comparison of RAID sets with a reference drive: each one's cost and yield, the paired ratios, and published figures."""

from __future__ import annotations

from collections.abc import Iterator

from bench_report.base.fields import Node
from bench_report.base.units import (
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
)
from bench_report.document.canvas import Figure
from bench_report.document.section import Lacking, Part, Section
from bench_report.document.table import Table
from bench_report.figures.pairs import RateRow, RatioRow, RoundRatio, rate_figure, ratio_figure
from bench_report.reading.dataset.bundle import Bundle

RESULT, MEASURED = "raid_comparison", "raid_vs_3dxp"
QUANTITIES = {
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
    found, measured = bundle.results.get(RESULT), bundle.results.get(MEASURED)
    if found is None or measured is None:
        if MEASURED not in bundle.run.workloads:
            return None
        return Section("raid", "RAID sets against the reference drive", (Lacking("the comparison: it did not finish"),))
    return Section("raid", "RAID sets against the reference drive", tuple(_parts(found, measured)))


def _parts(found: Node, measured: Node) -> Iterator[Part]:
    yield _how(found, measured)
    yield _performance(found, measured)
    yield _pairs(found)
    ratios = _ratio_figure(found)
    yield ratios or Lacking("the figure of paired ratios: no round counts")
    disturbed = _disturbed(found)
    if disturbed:
        yield disturbed
    yield _costs(found)
    yield from _without(found)
    rates = _rate_figure(found)
    if rates:
        yield rates


def _how(found: Node, measured: Node) -> str:
    write, paced = measured.at("write"), measured.at("paced")
    rounds = len({one.at("round").as_integer() for one in measured.at("rounds").items()})
    return (
        f"The reference is {found.at('reference').as_text()}; requirements bound {found.at('judged_set').as_text()}. Each set was "
        f"measured in {rounds} rounds together with the reference, the reference first in one round and last in the next, so that a "
        f"drift which is steady over the rounds cancels from their mean. In each round a target takes "
        f"{decimal_size(write.at('write_size').as_number())} at full speed ({write.at('threads').as_integer()} thread, "
        f"{write.at('io_depth').as_integer()} blocks of {binary_size(write.at('block_size').as_number())} in flight, new file, final "
        f"flush included) and then a record of {duration(paced.at('seconds').as_number())} paced at "
        f"{in_gb_per_s(paced.at('offered_bytes_per_s').as_number())} for all, whose latencies count from each superchunk's intended "
        "arrival. Sets that share drives were built one after the other; the reference stayed mounted."
    )


def _layout(target: Node) -> str:
    level, drives = target.integer("raid_level"), len(target.list("drives"))
    if level is None:
        return f"{drives} drive" if drives == 1 else NONE
    chunk = target.text("chunk")
    return f"RAID{THIN}{level}, {drives} drives" + (f", chunk {chunk}" if chunk else "")


def _performance(found: Node, measured: Node) -> Table:
    rows = []
    for target in found.at("targets").items():
        rate, tail = target.at("throughput_bytes_per_s"), target.at("latency_us")
        mean, low, high = (rate.number(key) for key in ("mean", "min", "max"))
        spread = f" ({significant(low / 1e9, 3)} to {significant(high / 1e9, 3)})" if low and high else ""
        latencies = [tail.at(key).number("median") for key in ("p50", "p99", "p99_9")] + [tail.at("max").number("max")]
        rows.append((
            target.at("name").as_text(), _layout(target), (significant(mean / 1e9, 3) if mean else NONE) + spread,
            *(latency(value) if value is not None else NONE for value in latencies),
            count(target.at("lost_superchunks").as_integer()), _number(target.at("kernel_cpu_s_per_gb").number("median")),
            _number(target.number("md_threads_s_per_gb")),
        ))  # fmt: skip
    return Table(
        heads=("Target", "Layout", "Throughput, GB/s", "p50", "p99", "p99.9", "Max", "Lost", "Kernel CPU, s/GB", "md threads, s/GB"),
        kinds="ttnnnnnnnn",
        rows=tuple(rows),
        name="raid-sets",
        caption="Throughput: geometric mean over the rounds (least to greatest). Latencies: median over the rounds of each percentile, and "
        "the longest of all. Kernel CPU: system and interrupt time of the whole machine per GB; what a set takes more than the "
        "reference is the RAID's. The first row is the reference.",
    )  # fmt: skip


def _number(value: float | None, digits: int = 3) -> str:
    return NONE if value is None else significant(value, digits)


def _pairs(found: Node) -> Table:
    rows = []
    for one in found.at("comparisons").items():
        result = one.find("result")
        head = (one.at("set").as_text(), QUANTITIES[one.at("quantity").as_text()])
        if result is None:
            rows.append((*head, "0", NONE, NONE, NONE, f"not measured: {one.text('reason') or 'no round counts'}"))
            continue
        rows.append((*head, count(result.at("n").as_integer()), *_estimate(result), _exact(result), _decision(result)))
        kept = one.find("undisturbed")
        if kept:
            rows.append((
                "", "without the disturbed", count(kept.at("n").as_integer()), *_estimate(kept), _exact(kept), _decision(kept),
            ))  # fmt: skip
    level = percent(100 * found.at("confidence").as_number())
    return Table(
        heads=("Set", "Quantity", "n", "Ratio", f"{level} interval", "Sign / ranks p", "Against the reference"),
        kinds="ttnnnnt",
        rows=tuple(rows),
        name="raid-pairs",
        caption="Set over reference in the same round. Ratio: geometric mean, both orders with equal weight. Interval: Student's t on the "
        "logarithms, stratified by order. Beside it the exact sign test and Wilcoxon's signed ranks, which assume less; n rounds "
        "cannot give a p below 2 to the power 1 \u2212 n. All rounds count; a second row is without the disturbed ones.",
    )


def _estimate(result: Node) -> tuple[str, str]:
    interval = result.numbers("interval")
    shown = f"{significant(interval[0], 3)} to {significant(interval[1], 3)}" if interval else NONE
    return significant(result.at("ratio").as_number(), 3), shown


def _exact(result: Node) -> str:
    ranks = result.number("wilcoxon_p")
    return f"{significant(result.at('sign_p').as_number(), 2)} / {NONE if ranks is None else significant(ranks, 2)}"


def _decision(result: Node) -> str:
    text = DECISIONS[result.at("decision").as_text()]
    effect = result.find("order_effect")
    if effect and effect.at("p").as_number() < 0.05:
        text += (
            f"; the order matters: {significant(effect.at('factor').as_number(), 3)} times with the reference first "
            f"(p {significant(effect.at('p').as_number(), 2)})"
        )
    return text


def _ratio_figure(found: Node) -> Figure | None:
    panels = []
    measured = {one.at("quantity").as_text() for one in found.at("comparisons").items() if one.find("result")}
    tail = "latency_p99_9" if "latency_p99_9" in measured else "latency_p99"
    for key in ("throughput", tail, "kernel_cpu"):
        rows = [
            row
            for one in found.at("comparisons").items()
            if one.at("quantity").as_text() == key and (row := _ratio_row(one)) is not None
        ]
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


def _ratio_row(one: Node) -> RatioRow | None:
    result = one.find("result")
    if result is None:
        return None
    interval = result.numbers("interval")
    rounds = [
        RoundRatio(
            turn.at("round").as_integer(), ratio, turn.at("reference_first").as_flag(), turn.text("cause") is not None
        )
        for turn in one.at("rounds").items()
        if (ratio := turn.number("ratio")) is not None
    ]
    bounds = (interval[0], interval[1]) if interval else None
    return RatioRow(one.at("set").as_text(), tuple(rounds), result.at("ratio").as_number(), bounds)


def _disturbed(found: Node) -> Table | None:
    rows = [
        (
            one.at("set").as_text(),
            count(one.at("round").as_integer()),
            ", ".join(QUANTITIES[name] for name in one.texts("seen_in")) or NONE,
            one.at("cause").as_text(),
        )
        for one in found.at("disturbed").items()
    ]
    if not rows:
        return None
    return Table(
        heads=("Set", "Round", "Stands out in", "Cause"), kinds="tntt", rows=tuple(rows), name="raid-disturbed",
        caption="Rounds that lie far from the others (modified z-score above 3.5 and more than 10 %), or during which an event of the run "
        "touched the set's drives.",
    )  # fmt: skip


def _power(target: Node) -> str:
    """Returns the median, with its n where some rounds lack a value."""
    power = target.at("added_power_w")
    shown = _number(power.number("median"))
    partial = power.number("median") is not None and power.text("reason")
    return f"{shown} (n = {count(power.at('n').as_integer())})" if partial else shown


def _costs(found: Node) -> Table:
    rows = []
    for target in found.at("targets").items():
        per = target.at("added_w_per_gb_per_s").number("median")
        endurance, price = target.at("endurance_bytes").number("value"), target.at("cost")
        currency = price.text("currency") or ""
        rows.append((
            target.at("name").as_text(), _power(target), _number(per),
            _number(None if per is None else per * 1000), _number(target.number("gb_per_s_per_u")),
            _number(target.number("device_bytes_per_byte")), NONE if endurance is None else significant(endurance / 1e15, 3),
            *(f"{significant(value, 4, trim=True)}{THIN}{currency}" if (value := price.number(key)) is not None else NONE
              for key in ("total", "per_tb", "per_gb_per_s")),
        ))  # fmt: skip
    return Table(
        heads=(
            "Target", "Added W", "W per GB/s", "J per TB", "GB/s per U", "B to drives per B", "Endurance, PB", "Price", "per TB",
            "per GB/s",
        ),
        kinds="tnnnnnnnnn",
        rows=tuple(rows),
        name="raid-costs",
        caption="Added W: the server's power while the target is written to, less its idle power of the same round. W per GB/s and J/TB "
        "are the same measurement in two units. Endurance: what may be written to the target before its drives reach their rating, by "
        "what it was seen to write to them. 1 PB = 10\u00b9\u2075 B.",
    )  # fmt: skip


def _without(found: Node) -> Iterator[Part]:
    """Yields a sentence for the source of each declared figure, and for the reason of each missing one."""
    bases: dict[tuple[str, str], list[str]] = {}
    reasons: dict[tuple[str, str], list[str]] = {}
    for target in found.at("targets").items():
        name = target.at("name").as_text()
        for key, what in (("rack_units", "rack units"), ("endurance_bytes", "endurance"), ("cost", "price")):
            for word, kept in (("basis", bases), ("reason", reasons)):
                text = target.at(key).text(word)
                if text:
                    kept.setdefault((what, text), []).append(name)
        power = target.at("added_power_w")
        reason, n = power.text("reason"), power.at("n").as_integer()
        if reason:
            text = f"{reason}; only {count(n)} of its rounds have one" if n else reason
            reasons.setdefault(("power", text), []).append(name)
    if bases:
        said = (f"{what[0].upper()}{what[1:]} of {', '.join(names)}: {text}." for (what, text), names in bases.items())
        yield "Declared or published, not measured. " + " ".join(said)
    for (what, text), names in reasons.items():
        yield Lacking(f"{what} of {', '.join(names)}: {text}")


def _rate_figure(found: Node) -> Figure | None:
    rows, sources = [], []
    for target in found.at("targets").items():
        rate = target.at("throughput_bytes_per_s")
        mean = rate.number("mean")
        if mean:
            values = tuple(one.as_number() for one in rate.at("values").items() if one.value is not None)
            rows.append(RateRow(f"{target.at('name').as_text()} ({_layout(target)})", values, mean, published=False))
    if not rows:
        return None
    for one in found.at("published").items():
        qualifier, basis = one.text("qualifier") or "", one.at("basis").as_text()
        label = f"{one.at('model').as_text()}, {'measured by others' if basis == 'measured' else basis}"
        rows.append(RateRow(label, (), one.at("bytes_per_s").as_number(), published=True))
        stated = f"{qualifier} {in_gb_per_s(one.at('bytes_per_s').as_number())}".strip()
        sources.append(f"{one.at('model').as_text()} {stated} ({one.at('source').as_text()})")
    caption = "Measured in this run above the line, 1 GB/s being 10\u2079 B/s."
    if sources:
        caption += (
            " Below it, devices as others published them, under conditions of their own: references, never measurements of this bench. "
            + "; ".join(sources)
            + "."
        )
    return rate_figure("raid-rates", "Throughput beside published devices", caption, rows)
