"""Tables of the concurrent analysis."""

from __future__ import annotations

from bench_report.base.fields import Node
from bench_report.base.units import NONE, count, decimal_rate, decimal_size, percent, significant
from bench_report.document.table import Table


def storage_table(found: Node) -> Table:
    rows, marked = [], set()
    for index, one in enumerate(found.list("storages")):
        reason = one.text("reason")
        if reason:
            marked.add(index)
        judged = "judged" if index == 0 else "for comparison"
        rows.append(
            (
                one.at("name").as_text(),
                one.at("text").as_text(),
                ", ".join(one.texts("devices")) or NONE,
                reason or judged,
            )
        )
    return Table(
        heads=("Storage", "What it is", "Counters of", "Use"), kinds="ttct", rows=tuple(rows), name="analysis-storages",
        caption="The device's counters are sectors read, /sys/block/*/stat.", marked=frozenset(marked),
    )  # fmt: skip


def sets_table(found: Node) -> Table:
    rows = []
    for one in found.list("sets"):
        shape = one.at("shape")
        events, memory = (
            shape.at("events").as_integer(),
            shape.at("events").as_integer() * shape.at("event_bytes").as_integer(),
        )
        size = one.at("bytes").as_number()
        rows.append((
            one.at("storage").as_text(), one.at("analysis").as_text(), one.at("layout").as_text(), count(events),
            count(one.at("files").as_integer()),
            decimal_size(size), significant(memory / size, 3), shape.at("compression").as_text(),
        ))  # fmt: skip
    return Table(
        heads=("Storage", "Set", "Layout", "Events", "Files", "Size", "Compression factor", "Compression"), kinds="tttnnnnt",
        rows=tuple(rows),
        name="analysis-sets", caption="Generated with uproot from the run's seed; the truth is known of each.",
    )  # fmt: skip


def points_table(derived: Node) -> Table:
    rows: list[tuple[str, ...]] = []
    marked = set()
    for series in derived.list("series"):
        for one in series.list("points"):
            counted = one.at("n").as_integer()
            if one.at("masked").as_integer():
                marked.add(len(rows))
            values = [one.number(f"{key}_bytes_per_s") for key in ("median", "least", "most", "device", "worker")]
            rate, least, most, device, worker = (NONE if value is None else decimal_rate(value, 3) for value in values)
            share, amplification = one.number("cpu_share"), one.number("amplification")
            rows.append((
                series.at("storage").as_text(), series.at("analysis").as_text(), series.at("layout").as_text(),
                count(one.at("workers").as_integer()),
                f"{counted}", rate, f"{least} to {most}", device, worker, NONE if share is None else percent(100 * share),
                NONE if amplification is None else significant(amplification, 3),
                "drawn" if not one.text("reason") else f"not drawn: {one.text('reason')}",
            ))  # fmt: skip
    return Table(
        heads=(
            "Storage", "Analysis", "Layout", "Workers", "n", "Rate", "Least to most", "From the device", "Each worker", "CPU",
            "Read amplification", "In the figure",
        ),
        kinds="tttnnnnnnnnt", rows=tuple(rows), name="analysis-points",
        caption="Medians over the repetitions that count. CPU: of the jobs, of all usable CPUs. Read amplification: bytes from the device "
        "over bytes asked of the files.",
        marked=frozenset(marked),
    )  # fmt: skip


def farm_table(derived: Node) -> Table:
    rows, marked = [], set()
    for index, one in enumerate(derived.at("farm").list("rounds")):
        if one.text("reason"):
            marked.add(index)
        runs = "; ".join(
            f"{' + '.join(run.texts('nodes'))} {decimal_rate(run.at('bytes_per_s').as_number(), 3)}"
            for run in one.list("runs")
        )
        ratio = one.number("ratio")
        rows.append((
            count(one.at("round").as_integer()), "alone first" if one.at("alone_first").as_flag() else "together first", runs,
            NONE if ratio is None else significant(ratio, 3),
            "counts" if not one.text("reason") else f"does not count: {one.text('reason')}",
        ))  # fmt: skip
    return Table(
        heads=("Round", "Order", "Rates", "Aggregate over sum", "Evidence"), kinds="nttnt", rows=tuple(rows), name="analysis-farm-table",
        caption="From handing out the first file to having all results.", marked=frozenset(marked),
    )  # fmt: skip


def physics_table(derived: Node) -> Table:
    rows, marked = [], set()
    for index, one in enumerate(derived.list("physics")):
        wrong = one.at("wrong").as_integer()
        if wrong:
            marked.add(index)
        pulls, fit = one.find("pulls"), one.find("fit")
        shown = (
            "; ".join(f"{name} {significant(value.as_number(), 2)}" for name, value in pulls.entries())
            if pulls
            else NONE
        )
        chi2 = f"{significant(fit.at('chi2').as_number(), 3)} / {fit.at('degrees').as_integer()}" if fit else NONE
        rows.append((
            one.at("storage").as_text(), one.at("analysis").as_text(), one.at("layout").as_text(),
            count(one.at("points").as_integer()), count(wrong),
            shown, chi2, "; ".join(one.texts("why_wrong")) or NONE,
        ))  # fmt: skip
    return Table(
        heads=("Storage", "Analysis", "Layout", "Points", "Wrong", "Pulls of the fit", "chi2 / degrees", "Why wrong"), kinds="tttnnttt",
        rows=tuple(rows), name="analysis-physics", marked=frozenset(marked),
        caption="Wrong: a histogram of any variable, or a number of events, that is not the generated one, or differs between "
        "numbers of workers. Pull: fitted minus generated over the fit's standard deviation.",
    )  # fmt: skip
