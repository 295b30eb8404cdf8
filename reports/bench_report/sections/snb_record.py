"""A supernova-burst record besides its rates: the target's condition, and the server's power."""

from __future__ import annotations

from bench_report.base.fields import Node
from bench_report.base.units import NONE, count, decimal_rate, quantity
from bench_report.document.section import Lacking, Part, Section
from bench_report.document.table import Table
from bench_report.reading.dataset.bundle import Bundle
from bench_report.sections.conditioning import conditioning_table


def section(bundle: Bundle) -> Section | None:
    """Returns the section; None for a run without a record, and where there is nothing to report on it."""
    record, power = bundle.results.get("snb_record"), bundle.results.get("record_power")
    if record is None:
        return None
    done = record.list("conditioning")
    parts: list[Part] = []
    if done:
        parts.append(_lead(bundle))
        parts.append(conditioning_table("record-conditions", [(f"record {_number(node)}", node) for node in done]))
    if power is not None:
        parts.append(_power_table(bundle, power) or Lacking(f"the server's power: {_why(power)}."))
    return Section("record-conditions", "Condition and power of the record", tuple(parts)) if parts else None


def _number(evidence: Node) -> str:
    """`record-2-fresh` is the evidence before record 2."""
    return evidence.at("label").as_text().split("-")[1]


def _lead(bundle: Bundle) -> str:
    names = list(dict.fromkeys(one.condition for one in bundle.repetitions if one.condition))
    return (
        f"Each repetition was recorded on the target in these conditions: {', '.join(names)}. A requirement takes the repetitions of all "
        "conditions, and its reason says which one decided; a fresh NAND drive alone would flatter itself."
    )


def _why(power: Node) -> str:
    reasons = power.at("reasons")
    return reasons.text("snb_record.power_mean") or "not recorded"


def _power_table(bundle: Bundle, power: Node) -> Table | None:
    records = power.list("records")
    if not any(record.number("mean_w") is not None for record in records):
        return None
    rows = []
    for number, (record, repetition) in enumerate(zip(records, bundle.repetitions, strict=False), 1):
        watts, per_rate = record.number("mean_w"), record.number("w_per_gb_per_s")
        stored = repetition.minidaq.stored_bytes_per_s if repetition.minidaq else None
        rows.append((
            repetition.named(number), count(record.at("readings").as_integer()),
            quantity(watts, "W") if watts is not None else NONE,
            decimal_rate(stored) if stored is not None else NONE,
            quantity(per_rate, "W/(GB/s)") if per_rate is not None else NONE,
        ))  # fmt: skip
    return Table(
        heads=("Rep.", "Readings", "Mean power", "Stored", "Power per rate"), kinds="tnnnn", rows=tuple(rows), name="record-power",
        caption="Power of the whole server by its BMC (DCMI) during each record, weighted by time.",
    )  # fmt: skip
