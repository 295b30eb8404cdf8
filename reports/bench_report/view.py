"""What the report says, as finished text: the template only places it.

Promise: every number here went through `units`; what was not recorded is said so in words; a run at reduced scale
never reads as a plain PASS, whatever its verdict file claims.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime

from .dataset import Bundle, Device
from .figures.canvas import Figure
from .units import (
    THIN,
    TIMES,
    binary_rate,
    count,
    decimal_rate,
    decimal_size,
    duration,
    factor_text,
    in_gb_per_s,
    in_gib_per_s,
)  # fmt: skip

NOT_RECORDED = "not recorded"
NOT_REPORTED = "not reported by the device"
NO_VERDICT = "NO VERDICT"
GLYPHS = {"PASS": "\u2714", "FAIL": "\u2718", "ERROR": "\u26a0", "INADMISSIBLE": "\u2298", NO_VERDICT: "?"}
MEANINGS = {
    "PASS": "Every mandatory requirement is met, by evidence that counts.",
    "FAIL": "The candidate misses at least one mandatory requirement.",
    "ERROR": "The bench broke; this says nothing about the candidate.",
    "INADMISSIBLE": "The evidence does not count, so the candidate is neither accepted nor refused.",
    NO_VERDICT: "The run was not judged.",
}
UNDECIDED_MEANING = "The evidence does not decide yet, so the candidate is neither accepted nor refused: measure more."
MOST_REASONS = 8
DEVICES_ON_FIRST_PAGE = 4


@dataclass(frozen=True)
class Outcome:
    word: str
    glyph: str
    css: str
    suffix: str  # what forbids reading the word alone
    meaning: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    label: str
    value: str
    known: bool = True


@dataclass(frozen=True)
class DemandCell:
    label: str
    value: str
    binary: str
    note: str


def css_name(outcome: str) -> str:
    return outcome.lower().replace(" ", "-")


def utc(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def outcome_of(bundle: Bundle) -> Outcome:
    verdict, run = bundle.verdict, bundle.run
    word = verdict.outcome if verdict else NO_VERDICT
    reduced = word == "PASS" and bool(run.scaled_down or (run.scale is not None and run.scale < 1))
    suffix = "at reduced scale: not a qualification" if reduced else ""
    reasons = _reasons(bundle)
    if verdict and verdict.declared_rehearsal:
        reasons = ("A rehearsal, declared as such beforehand: no mandatory requirement is missed.", *reasons)
    if len(reasons) > MOST_REASONS:
        reasons = (*reasons[:MOST_REASONS], f"and {len(reasons) - MOST_REASONS} more in verdict.json")
    meaning = UNDECIDED_MEANING if word == "INADMISSIBLE" and _only_undecided(bundle) else MEANINGS[word]
    return Outcome(word, GLYPHS[word], css_name(word), suffix, meaning, reasons)


def _only_undecided(bundle: Bundle) -> bool:
    """Nothing is wrong with the evidence but that there is too little of it."""
    verdict = bundle.verdict
    if verdict is None or verdict.findings:
        return False
    open_ = [row.decision for row in verdict.requirements if row.severity == "mandatory" and row.decision != "met"]
    return bool(open_) and all(decision == "undecided" for decision in open_)


def _reasons(bundle: Bundle) -> tuple[str, ...]:
    """The verdict's reasons; those about scale have a box of their own and are not said twice."""
    verdict, run = bundle.verdict, bundle.run
    if verdict is None:
        why = (run.state_reason,) if run.state_reason else ()
        return (*why, f"The run's state is \u201c{run.state}\u201d and its bundle holds no verdict.json.")
    said = {text.rstrip(".") for text in run.scaled_down}
    others = tuple(reason for reason in verdict.reasons if reason.rstrip(".") not in said)
    if len(others) < len(verdict.reasons):
        number = len(verdict.reasons) - len(others)
        others += (f"It was scaled down in {_number_word(number)} respect{'s' if number != 1 else ''}, listed below.",)
    return others


def _number_word(number: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six")
    return words[number] if number < len(words) else str(number)


def candidate_pairs(bundle: Bundle) -> list[Pair]:
    run, who = bundle.run, bundle.run.candidate
    cpus = f"{count(who.cpus)} CPU{'s' if who.cpus != 1 else ''}" if who.cpus else None
    nodes = f"{who.numa_nodes} NUMA node{'s' if who.numa_nodes != 1 else ''}" if who.numa_nodes else None
    return [
        _pair("Name", who.name),
        *([_pair("Description", who.description)] if who.description else []),
        _pair("Host", who.hostname),
        _pair("Processor", " \u00b7 ".join(part for part in (who.cpu_model, cpus, nodes) if part) or None),
        _pair("Memory", decimal_size(who.memory_bytes) if who.memory_bytes else None),
        *(
            [_pair("Buffer", f"{decimal_size(who.transient_buffer_bytes)} of it for the backlog")]
            if who.transient_buffer_bytes
            else []
        ),
        _pair("System", " \u00b7 ".join(part for part in (who.os, who.kernel) if part) or None),
        _pair("Target", _target_text(bundle)),
        _pair("Scenario", run.scenario_title or run.scenario_id),
        _pair("Requirements", run.requirement_title or run.requirement_id),
    ]


def _target_text(bundle: Bundle) -> str | None:
    target = bundle.run.target
    if target is None:
        return None
    on = f" on {target.filesystem}" if target.filesystem else ""
    return f"{target.kind.replace('-', ' ')}{on}" + (f": {target.path}" if target.path else "")


def _pair(label: str, value: str | None) -> Pair:
    return Pair(label, value or NOT_RECORDED, value is not None)


def device_pairs(device: Device) -> list[Pair]:
    def told(label: str, value: str | None) -> Pair:
        return Pair(label, value or NOT_REPORTED, value is not None)

    kind = None if device.rotational is None else "rotating" if device.rotational else "solid state"
    capacity = decimal_size(device.size_bytes) if device.size_bytes else None
    if device.raid_level:  # what a drive has and an array has not is nothing that it fails to report
        return [told("Model", f"array, {device.raid_level}"), told("Capacity", capacity)]
    return [
        told("Model", device.model),
        told("Serial", device.serial),
        told("Firmware", device.firmware),
        told("WWN", device.wwn),
        told("Capacity", capacity),
        told(
            "Kind, link",
            " \u00b7 ".join(part for part in (kind, device.transport, device.pcie_link) if part) or None,
        ),
        told("NUMA node", None if device.numa_node is None else str(device.numa_node)),
    ]


def fact_lines(bundle: Bundle) -> list[Pair]:
    """The candidate in a few lines for the first page; the whole of it stands in its own section."""
    who = {pair.label: pair.value for pair in candidate_pairs(bundle) if pair.known}
    candidate = [who[label] for label in ("Processor", "Memory", "System") if label in who]
    lines = [Pair("Candidate", " \u00b7 ".join([*([who["Description"]] if "Description" in who else []), *candidate]))]
    lines += [
        Pair(f"Device {device.name}", _device_line(device)) for device in _devices(bundle)[:DEVICES_ON_FIRST_PAGE]
    ]
    rest = len(_devices(bundle)) - DEVICES_ON_FIRST_PAGE
    if rest > 0:
        lines.append(Pair("", f"and {rest} more device{'s' if rest > 1 else ''}, see the section on the candidate"))
    if not _devices(bundle):
        lines.append(Pair("Device", "no single drive was recorded", known=False))
    return [*lines, _pair("Target", _target_text(bundle))]


def _devices(bundle: Bundle) -> tuple[Device, ...]:
    return tuple(bundle.run.target.devices) if bundle.run.target else ()


def _device_line(device: Device) -> str:
    pairs = device_pairs(device)
    known = [
        pair.value if pair.label in ("Model", "Capacity", "Kind, link") else f"{pair.label} {pair.value}"
        for pair in pairs
        if pair.known
    ]
    unknown = [
        pair.label if pair.label.isupper() or pair.label.startswith("NUMA") else pair.label.lower()
        for pair in pairs
        if not pair.known
    ]
    return " \u00b7 ".join(known) + (f" \u00b7 not reported by the device: {', '.join(unknown)}" if unknown else "")


def demand_cells(bundle: Bundle) -> list[DemandCell]:
    demand = bundle.run.demand
    if demand is None:
        return []
    known = demand.links and demand.superchunk_rate_hz and demand.superchunk_bytes
    arithmetic = (
        f"{demand.links} links {TIMES} {factor_text((demand.superchunk_rate_hz or 0) / 1000)}{THIN}kHz {TIMES} "
        f"{count(demand.superchunk_bytes or 0)}{THIN}B" if known else "links \u00d7 rate \u00d7 size"
    )  # fmt: skip
    cells = [
        _cell("Nominal", demand.nominal_bytes_per_s, "the figure the unit is known by"),
        _cell("Real demand", demand.real_bytes_per_s, arithmetic),
    ]
    if demand.offered_bytes_per_s is not None:
        scale = demand.offered_bytes_per_s / demand.real_bytes_per_s
        asked = f"for {duration(demand.duration_s)}" if demand.duration_s else ""
        cells.append(
            _cell(
                "Asked of this run",
                demand.offered_bytes_per_s,
                f"{_share(round(scale, 6))} of the real demand {asked}",
            )
        )
    stored = [
        item.minidaq.stored_bytes_per_s
        for item in bundle.repetitions
        if item.minidaq and item.minidaq.stored_bytes_per_s
    ]
    if stored:
        many = f"lowest of {len(stored)} repetitions" if len(stored) > 1 else "mean, drain included"
        cells.append(_cell("Stored in this run", min(stored), many))
    return cells


def _share(scale: float) -> str:
    return "all" if scale == 1 else factor_text(scale)


def _cell(label: str, bytes_per_s: float, note: str) -> DemandCell:
    binary = in_gib_per_s(bytes_per_s) if bytes_per_s >= 2**24 else binary_rate(bytes_per_s)
    decimal = in_gb_per_s(bytes_per_s) if bytes_per_s >= 1e7 else decimal_rate(bytes_per_s)
    return DemandCell(label, decimal, binary, note.strip())


def commands(bundle: Bundle) -> list[str]:
    run = bundle.run
    words = [
        "make qualify", _assign("CANDIDATE", run.candidate.name), _assign("SCENARIO", run.scenario_id),
        _assign("REQUIREMENT", run.requirement_id),
    ]  # fmt: skip
    if run.target and run.target.name:
        words.append(_assign("TARGET", run.target.name))
    if run.scale is not None:
        words.append(f"SCALE={run.scale:.17g}" if run.scale > 1 else f"SCALE={run.scale:g}")
    if run.demand and run.demand.duration_s is not None:
        words.append(f"DURATION={run.demand.duration_s:g}")
    checkout = [f"git checkout {run.git_commit}"] if run.git_commit else []
    return [*checkout, " ".join(words)]


def _assign(name: str, value: str) -> str:
    return f"{name}={shlex.quote(value)}"


def numbered(figures: list[Figure]) -> list[tuple[int, Figure]]:
    return list(enumerate(figures, 1))
