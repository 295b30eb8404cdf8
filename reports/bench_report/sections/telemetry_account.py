"""The account of every telemetry point: expected, collected, in the bundle, in InfluxDB, and the name of each difference."""

from __future__ import annotations

from collections.abc import Iterator

from bench_report.base.fields import Node
from bench_report.base.units import NONE, count
from bench_report.document.section import Lacking, Part, Section
from bench_report.document.table import Table
from bench_report.reading.dataset.bundle import Bundle

SHOWN_REASON = 300  # characters of a reason; the whole text is in the file


def telemetry_account_section(bundle: Bundle) -> Section | None:
    """Makes the section from results/telemetry_account.json; None in a bundle without it."""
    node = bundle.results.get("telemetry_account")
    if node is None:
        return None
    parts: list[Part] = [
        f"{node.at('sentence').as_text()}. The bundle is the record; InfluxDB is the live view and the history."
    ]
    parts += [Lacking(text) for text in node.texts("invalid")]
    parts += _measurements(node)
    differences = _differences(node)
    if differences:
        parts.append(differences)
    missed = _missed(node)
    if missed:
        parts.append(missed)
    outages = _outages(node)
    if outages:
        parts.append(outages)
    return Section("telemetry-account", "Telemetry account", tuple(parts))


def _measurements(node: Node) -> Iterator[Part]:
    """Yields a row for each measurement that lacks something, one for all together, and a line for those that are complete."""
    collectors = {one.at("name").as_text(): one for one in node.list("collectors")}
    rows, complete = [], []
    for name, row in node.at("measurements").entries():
        collector = collectors.get(row.text("collector") or "")
        samples = NONE
        if collector is not None:
            collected, expected = (collector.at(key).as_integer() for key in ("collected_samples", "expected_samples"))
            samples = f"{count(collected)} of {count(expected)}"
            points = [row.integer(key) for key in ("collected", "stored", "present")]
            if collected == expected and None not in points and len(set(points)) == 1 and not row.list("differences"):
                complete.append(name)
                continue
        rows.append((name, samples, *(_known(row.integer(key)) for key in ("collected", "stored", "present"))))
    if complete:
        yield (
            f"Complete, with every sample taken and every point in the bundle and in InfluxDB ({len(complete)} measurements): "
            f"{', '.join(complete)}."
        )
    whole = node.at("whole")
    if complete and not rows and not whole.list("differences"):
        return
    rows.append(("all", NONE, *(_known(whole.integer(key)) for key in ("collected", "stored", "present"))))
    yield Table(
        ("Measurement", "Samples taken", "Points collected", "In the bundle", "In InfluxDB"), "tnnnn", tuple(rows),
        name="telemetry-account",
        caption="Samples by the deadlines of the measurement's collector; a sample of several sensors gives several points.",
    )  # fmt: skip


def _known(value: int | None) -> str:
    return NONE if value is None else count(value)


def _differences(node: Node) -> Table | None:
    rows = []
    for name, row in [*node.at("measurements").entries(), ("all", node.at("whole"))]:
        for one in row.list("differences"):
            rows.append((
                name, one.at("step").as_text(), count(one.at("points").as_integer()), one.at("name").as_text(),
                _short(one.at("reason").as_text()),
            ))  # fmt: skip
    if not rows:
        return None
    heads = ("Measurement", "Between", "Points", "Name", "Reason")
    return Table(heads, "ttntt", tuple(rows), name="telemetry-differences", caption="Every difference, with its name.")


def _missed(node: Node) -> Table | None:
    rows = [
        (
            one.at("name").as_text().replace("_", "_\u200b"),  # a place to break a long name at
            NONE if one.at("status").as_text() == "unsupported" else count(one.at("missed_samples").as_integer()),
            _short(one.at("reason").as_text()),
        )
        for one in node.list("collectors")
        if one.find("reason") is not None
    ]
    if not rows:
        return None
    return Table(
        ("Collector", "Missed", "Why"),
        "tnt",
        tuple(rows),
        name="telemetry-missed",
        caption=f"Samples that were not taken. {NONE}: the candidate has nothing for this collector to read.",
    )


def _outages(node: Node) -> Table | None:
    rows = [
        (one.at("from_utc").as_text(), one.text("to_utc") or "until the end", _short(one.at("error").as_text()))
        for one in node.list("outages")
    ]
    if not rows:
        return None
    caption = "Times in which InfluxDB did not take what the agent sent; the points waited in the spool."
    return Table(("From", "To", "Error"), "ttt", tuple(rows), name="telemetry-outages", caption=caption)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_REASON else text[: SHOWN_REASON - 3] + "..."
