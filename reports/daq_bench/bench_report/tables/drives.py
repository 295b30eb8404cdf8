"""The drives: their identity, and their own account of their health before and after the run.

Promise: a drive that reports nothing is named with the reason; a reading that got worse is marked, and so is one that is bad as it
stands (a failed self-assessment, a critical warning); the worst drives come first and none is left out; the unit of a reading is the
drive's own unless the table says what it was converted to.
NVMe Base Specification 1.4, section 5.14.1.2: a data unit is 1000 times 512 bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from daq_bench.bench_model.documents.run import Drive
from daq_bench.bench_report.base.marks import see_table
from daq_bench.bench_report.base.units import MINUS, NONE, count, decimal_size, significant
from daq_bench.bench_report.document.table import WELL, Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.dataset.machine import Smart

DATA_UNIT_BYTES = 512_000.0
DATA_UNITS = ("data_units_written", "data_units_read")
ALWAYS = ("critical_warning", "percentage_used", "available_spare", "media_errors", "self_assessment_passed")
WORSE_UP = frozenset({
    "critical_warning", "percentage_used", "media_errors", "unsafe_shutdowns", "num_err_log_entries", "warning_temp_time",
    "critical_comp_time", "scsi_grown_defect_list",
})  # fmt: skip
WORSE_DOWN = frozenset({"available_spare"})
MOST_ROWS = 60
Reading = float | str | None


def devices_of(bundle: Bundle) -> tuple[Drive, ...]:
    return tuple(bundle.run.target.devices)


def drive_table(bundle: Bundle) -> Table | None:
    found = devices_of(bundle)
    if not found:
        return None
    rows = tuple(
        (
            one.name, f"array, {one.raid_level}" if one.raid_level else one.model or NONE, one.serial or NONE, one.firmware or NONE,
            decimal_size(one.size_bytes) if one.size_bytes else NONE, _link(one) or NONE,
            NONE if one.numa_node is None else str(one.numa_node), one.wwn or NONE,
        )
        for one in found
    )  # fmt: skip
    heads = ("Device", "Model", "Serial", "Firmware", "Capacity", "Kind, link", "NUMA", "WWN")
    return Table(heads, "tttcntnc", rows, f"The target's devices. {NONE}: not reported by the device.", "drives")


def _link(device: Drive) -> str:
    kind = (
        None if device.rotational is None or device.raid_level else "rotating" if device.rotational else "solid state"
    )
    return ", ".join(part for part in (kind, device.transport, device.pcie_link) if part)


def drive_lines(bundle: Bundle) -> list[str]:
    """Returns the first page's lines: drives that are alike share one, with their number, model, capacity, firmware and names."""
    found = devices_of(bundle)
    arrays = [f"array {one.name}, {one.raid_level}" for one in found if one.raid_level]
    kinds = Counter(_alike(one) for one in found if not one.raid_level)
    lines = []
    for text, number in kinds.items():
        of = [one for one in found if not one.raid_level and _alike(one) == text]
        times = f"{number} \u00d7 " if number > 1 else ""
        names = ", ".join(one.name for one in of[:MOST_NAMES]) + (
            f" and {len(of) - MOST_NAMES} more" if len(of) > MOST_NAMES else ""
        )
        serial = f", serial {of[0].serial}" if number == 1 and of[0].serial else ""
        lines.append(f"{times}{text}{serial} ({names}){_unreported(of)}")
    return [*arrays, *lines]


MOST_NAMES = 6


def _alike(device: Drive) -> str:
    parts = [
        device.model, decimal_size(device.size_bytes) if device.size_bytes else None,
        f"firmware {device.firmware}" if device.firmware else None, _link(device) or None,
    ]  # fmt: skip
    return ", ".join(part for part in parts if part) or "unnamed device"


def _unreported(found: Sequence[Drive]) -> str:
    names = ("model", "serial", "firmware", "wwn")
    lacking = [
        name.upper() if name == "wwn" else name for name in names if all(getattr(one, name) is None for one in found)
    ]
    return f"; not reported by the device: {', '.join(lacking)}" if lacking else ""


def smart_table(bundle: Bundle) -> Table | None:
    """Returns readings that changed, and those that a buyer asks for first; all of them are in the appendix."""
    pairs = _pairs(bundle)
    if not pairs:
        return None
    groups = [_drive_rows(*pair) for pair in pairs]
    groups.sort(key=lambda rows: -sum(bad for bad, _ in rows))  # stable: drives that are alike keep their order
    if not any(before and after for _, before, after in pairs):
        note = "It was read only once, so that nothing can be compared. "
    else:
        note = "Marked: a reading that got worse or is bad as it stands, or a drive that told nothing. "
    if sum(map(len, groups)) > MOST_ROWS:
        groups = [[_one_row(rows)] for rows in groups]
        note += "One row for each drive: its marked readings, else what a buyer asks for first. "
    flat = [one for rows in groups for one in rows]
    rows, marked = [row for _, row in flat], {place for place, (bad, _) in enumerate(flat) if bad}
    caption = "The drives' own health records (SMART) before and after the run. Shown: what changed, and what a buyer asks for first. "
    caption += note
    caption += f"All readings: {see_table('smart-raw', 'facts/')}."
    return Table(
        ("Device", "Reading", "Before", "After", "Difference"),
        "ctnnn",
        tuple(rows),
        caption,
        "smart",
        frozenset(marked),
    )


Marked = tuple[bool, tuple[str, ...]]


def _drive_rows(device: str, before: Smart | None, after: Smart | None) -> list[Marked]:
    """Returns rows of (is it marked, cells) for one drive, marked ones first."""
    whole = list(_compared(before, after))
    if not whole:
        return [(True, (device, _why_not(before, after), NONE, NONE, NONE))]
    rows = []
    for name, first, last in whole:
        bad = worse(name, first, last, _errors(before, after)) or bool(_standing(name, first, last))
        if bad or name in ALWAYS or first != last:
            cells = (device, _words(name), _shown(name, first), _shown(name, last), _difference(name, first, last))
            rows.append((bad, cells))
    return sorted(rows, key=lambda row: not row[0])


def _one_row(rows: list[Marked]) -> Marked:
    """Returns one row with all marked readings of a drive, else with its first reading."""
    bad = [cells for marked, cells in rows if marked] or [rows[0][1]]
    return rows[0][0], (bad[0][0], *("; ".join(cells) for cells in list(zip(*bad, strict=True))[1:]))


def _errors(before: Smart | None, after: Smart | None) -> frozenset[str]:
    return frozenset(name for found in (before, after) if found for name in found.errors)


def _standing(name: str, first: Reading, last: Reading) -> str:
    """Returns words for a reading that is bad by itself, whatever it was before; else empty."""
    now = first if last is None else last
    if name == "self_assessment_passed" and now == "no":
        return "its own self-assessment is that it fails"
    return (
        f"critical warning {count(now)} stands"
        if name == "critical_warning" and isinstance(now, float) and now > 0
        else ""
    )


def smart_raw_table(bundle: Bundle) -> Table | None:
    rows = tuple(
        (device, name, _raw(first), _raw(last))
        for device, before, after in _pairs(bundle)
        for name, first, last in _compared(before, after)
    )
    if not rows:
        return None
    return Table(
        ("Device", "Reading", "Before", "After"),
        "ccnn",
        rows,
        "All SMART readings, in the drives' own words and units.",
        "smart-raw",
    )


def got_worse(bundle: Bundle) -> list[str]:
    """Returns for the findings the readings that got worse (`/dev/nvme0n1: media errors 0 before, 3 after`) or are bad by themselves."""
    found = []
    for device, before, after in _pairs(bundle):
        for name, first, last in _compared(before, after):
            standing = _standing(name, first, last)
            if standing:
                found.append(f"{device}: {standing} ({_shown(name, first)} before, {_shown(name, last)} after)")
            elif worse(name, first, last, _errors(before, after)):
                found.append(f"{device}: {_words(name)} {_shown(name, first)} before, {_shown(name, last)} after")
    return found


def worse(name: str, first: Reading, last: Reading, errors: frozenset[str] = frozenset()) -> bool:
    if isinstance(first, float) and isinstance(last, float):
        return (name in WORSE_UP | errors and last > first) or (name in WORSE_DOWN and last < first)
    # another firmware, another serial, or a self-assessment that changed
    return isinstance(first, str) and isinstance(last, str) and first != last


def _pairs(bundle: Bundle) -> list[tuple[str, Smart | None, Smart | None]]:
    before, after = ({one.device: one for one in found or ()} for found in (bundle.smart_before, bundle.smart_after))
    return [(device, before.get(device), after.get(device)) for device in dict.fromkeys([*before, *after])]


def _compared(before: Smart | None, after: Smart | None) -> Iterator[tuple[str, Reading, Reading]]:
    first, last = (dict(found.readings) if found else {} for found in (before, after))
    for name in dict.fromkeys([*first, *last]):
        yield name, first.get(name), last.get(name)


def _why_not(before: Smart | None, after: Smart | None) -> str:
    told = dict.fromkeys(
        one.status + (f": {one.detail}" if one.detail else "")
        for one in (before, after)
        if one and one.status not in WELL
    )
    return "; ".join(told) or "no reading"


def _words(name: str) -> str:
    text = name.replace("_", " ")
    return text.replace("data units", "data") if name in DATA_UNITS else text


def _shown(name: str, value: Reading) -> str:
    if value is None:
        return NONE
    if isinstance(value, str):
        return value
    return decimal_size(value * DATA_UNIT_BYTES) if name in DATA_UNITS else count(value)


def _raw(value: Reading) -> str:
    return NONE if value is None else value if isinstance(value, str) else f"{value:.17g}"


def _difference(name: str, first: Reading, last: Reading) -> str:
    if not isinstance(first, float) or not isinstance(last, float):
        return NONE if first is None or last is None else "0" if first == last else "changed"
    step = last - first
    sign = "+" if step > 0 else MINUS if step < 0 else ""
    return sign + (
        decimal_size(abs(step) * DATA_UNIT_BYTES)
        if name in DATA_UNITS and step
        else significant(abs(step), 15, trim=True)
    )
