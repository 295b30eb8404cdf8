"""A supernova-burst record besides its rates: the target's condition, and the server's power."""

from __future__ import annotations

from daq_bench.bench_model.documents.derived import RecordPower
from daq_bench.bench_model.documents.results import Conditioning
from daq_bench.bench_model.workloads.snb_record import SnbRecord
from daq_bench.bench_report.base.units import NONE, count, decimal_rate, quantity
from daq_bench.bench_report.document.section import Lacking, Part, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.tables.conditioning import conditioning_table


def section(bundle: Bundle) -> Section | None:
    """Returns the section; None for a run without a record, and where there is nothing to report on it."""
    record, power = bundle.result("snb_record", SnbRecord), bundle.result("record_power", RecordPower)
    if record is None:
        return None
    done = record.conditioning
    parts: list[Part] = []
    if done:
        parts.append(_lead(bundle))
        parts.append(conditioning_table("record-conditions", [(f"record {_number(one)}", one) for one in done]))
    if power is not None:
        why = power.reasons.get("snb_record.power_mean", "not recorded")
        parts.append(_power_table(bundle, power) or Lacking(f"the server's power: {why}."))
    return Section("record-conditions", "Condition and power of the record", tuple(parts)) if parts else None


def _number(evidence: Conditioning) -> str:
    """`record-2-fresh` is the evidence before record 2."""
    return evidence.label.split("-")[1]


def _lead(bundle: Bundle) -> str:
    names = list(dict.fromkeys(one.condition for one in bundle.repetitions if one.condition))
    return (
        f"Each repetition was recorded on the target in these conditions: {', '.join(names)}. A requirement takes the repetitions of all "
        "conditions, and its reason says which one decided; a fresh NAND drive alone would flatter itself."
    )


def _power_table(bundle: Bundle, power: RecordPower) -> Table | None:
    if all(record.mean_w is None for record in power.records):
        return None
    rows = []
    for number, (record, repetition) in enumerate(zip(power.records, bundle.repetitions, strict=False), 1):
        watts, per_rate = record.mean_w, record.w_per_gb_per_s
        stored = repetition.minidaq.stored_bytes_per_s
        rows.append((
            repetition.named(number), count(record.readings),
            quantity(watts, "W") if watts is not None else NONE,
            decimal_rate(stored),
            quantity(per_rate, "W/(GB/s)") if per_rate is not None else NONE,
        ))  # fmt: skip
    return Table(
        heads=("Rep.", "Readings", "Mean power", "Stored", "Power per rate"), kinds="tnnnn", rows=tuple(rows), name="record-power",
        caption="Power of the whole server by its BMC (DCMI) during each record, weighted by time.",
    )  # fmt: skip
