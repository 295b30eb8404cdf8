"""The wear of the target's drives over the run, by their own account: facts/smart-before.json against facts/smart-after.json.

A pure function of the bundle. A drive counts its wear in whole percent and does not say how it rounds, so that a rate is an interval; a
short run bounds it from above only: it meets a bound by its upper end, misses it by its lower end, and is null with the reason between.
A value that a drive does not state, or that contradicts itself, is null with the reason, never zero."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.units import convert, in_digits
from daq_bench.bench_model.behaviour.smart_facts import pairs_of
from daq_bench.bench_model.bundle.files import plain_file
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.yaml_source import read_shared_yaml
from daq_bench.candidate_kit import plausible, smartctl

NAME = "results/wear.json"
PERCENT_QUANTUM = 1.0  # NVMe base specification, "Percentage Used": an integer
PERCENT_SATURATED = 255  # the same: values above 254 read 255
DATA_UNIT_BYTES = 512_000  # NVMe: thousands of 512 B
PB = 1e15
VALUES = ("used_percent", "used_growth_percent", "spare_margin_percent", "percent_per_pb")
RATE_METRIC = "wear.percent_per_pb"
COUNTED = {"nvme": "data units", "ata": "logical sectors", "scsi": "MB"}
PERCENTS = {  # smartctl's names: the quantity
    "available_spare": "available_spare_percent",
    "available_spare_threshold": "available_spare_threshold_percent",
    "percentage_used": "percentage_used_percent",
}


def of_bundle(bundle: Path, run: Run) -> Document | None:
    """results/wear.json; None for a run whose drives' health was not read both before and after it."""
    pairs = pairs_of(bundle, run.target.drives)
    profile = f"profiles/requirements/{run.requirement.id}.yml"
    asked = _asked_rate(plain_file(bundle, profile) or bundle / profile) if pairs else None
    return from_pairs(pairs, asked) if pairs else None


def _asked_rate(file: Path) -> float | None:
    """The lowest bound that the requirements set, percent per PB."""
    rows = [one for one in plain(read_shared_yaml(file).data)["requirements"] if one["metric"] == RATE_METRIC]
    bounds = [convert(float(one["bound"]), one["unit"], "percent") for one in rows if not isinstance(one["bound"], str)]
    return min(bounds, default=None)


def from_pairs(pairs: dict[str, tuple[Any, Any]], asked: float | None = None) -> Document:
    """The document of each drive's smartctl documents before and after the run, by kernel name. `asked`: bound of the rate."""
    drives, reasons = [], dict[str, str]()
    for name, (before, after) in sorted(pairs.items()):
        row, why = _drive(name, before, after)
        row["judged_percent_per_pb"] = _judged(row, asked, why)
        drives.append(row)
        for value, reason in why.items():
            reasons.setdefault(f"wear.{value}", f"{name}: {reason}")
    return {"schema_version": 1, "reasons": reasons, "drives": drives}


def _judged(row: Document, asked: float | None, why: dict[str, str]) -> float | None:
    """The end of the interval that decides; None, and why, where neither does."""
    interval = row["percent_per_pb_interval"]
    if interval is None:
        return None
    low, high = (float(end) for end in interval)
    if asked is None or high <= asked:
        return high
    if low > asked:
        return low
    why["percent_per_pb"] = (
        f"{in_digits(row['written_bytes'] / 1e12, 3)} TB were written: between {in_digits(low, 3)} and {in_digits(high, 3)} percent per PB"
        ", since the drive counts whole percent; "
        f"{in_digits(2 * PERCENT_QUANTUM / asked * 1000 if asked else math.inf, 3)} TB or more decide about {in_digits(asked, 15)}"
    )
    return None


def _drive(name: str, before: Any, after: Any) -> tuple[Document, dict[str, str]]:
    row: Document = {"device": name, **dict.fromkeys(VALUES), "percent_per_pb_interval": None, "written_bytes": None}
    if not isinstance(before, dict) or not isinstance(after, dict):
        return row, dict.fromkeys(
            VALUES, f"its health was not read {'before' if not isinstance(before, dict) else 'after'} the run"
        )
    why: dict[str, str] = {}
    first, last = _used(before), _used(after)
    row["used_percent"] = last
    if last is None:
        why["used_percent"] = "it does not say how much of its endurance is used"
    if first is None or last is None or last < first or last >= PERCENT_SATURATED:
        why["used_growth_percent"] = f"its percentage used is {_said(first)} before the run and {_said(last)} after it"
    else:
        row["used_growth_percent"] = last - first
    spare, threshold = (
        _number(plausible.health_log(after), key) for key in ("available_spare", "available_spare_threshold")
    )
    if spare is None or threshold is None:
        why["spare_margin_percent"] = "it states no spare capacity and threshold"
    else:
        row["spare_margin_percent"] = spare - threshold
    _rate(row, why, before, after)
    return row, why


def _rate(row: Document, why: dict[str, str], before: Any, after: Any) -> None:
    (counter, first, step), (other, last, _) = (_written(one) for one in (before, after))
    if first is None or last is None or other != counter or last < first:
        why["percent_per_pb"] = (
            f"its {COUNTED[counter]} written are {_said(first)} before the run and {_said(last)} after it"
        )
        return
    written = (last - first) * step
    row["written_bytes"] = int(written)
    growth, least = row["used_growth_percent"], written - step
    if growth is None:
        why["percent_per_pb"] = why["used_growth_percent"]
    elif least <= 0:
        why["percent_per_pb"] = f"nothing was written to it that its counter of {COUNTED[counter]} tells"
    else:
        row["percent_per_pb"] = growth / (written / PB)
        low = max(0.0, growth - PERCENT_QUANTUM) / ((written + step) / PB)
        row["percent_per_pb_interval"] = [low, (growth + PERCENT_QUANTUM) / (least / PB)]


def _written(document: Any) -> tuple[str, float | None, int]:
    """(the log, count, bytes of one): NVMe's health log, ATA's device statistics, SAS's error counters."""
    if smartctl.NVME_HEALTH in document or (told := smartctl.written(document)) is None:
        return "nvme", _number(plausible.health_log(document), "data_units_written"), DATA_UNIT_BYTES
    log, count, step = told
    return log, count // step, step


def _used(document: Any) -> float | None:
    """Percentage used: NVMe's health log, ATA's device statistics, SAS's indicator."""
    if smartctl.NVME_HEALTH in document and not plausible.health_log(document):
        return None
    return _number({"percentage_used": smartctl.used_percent(document)}, "percentage_used")


def _number(table: Any, key: str) -> float | None:
    value = table.get(key)
    sound = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    return float(value) if sound and value <= plausible.HIGHEST.get(PERCENTS.get(key, ""), value) else None


def _said(value: float | None) -> str:
    return "not told" if value is None else in_digits(value, 15)
