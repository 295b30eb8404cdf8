"""The faults of the candidate's hardware while it was watched: the kernel's log, ECC, PCIe, power and the BMC's log.

A pure function of the bundle. A count that nothing looked at is null, with the reason, and never zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench_model.behaviour import load_windows
from bench_model.bundle.evidence import Document
from bench_model.bundle.files import find_document
from bench_model.bundle.line_protocol import Point
from bench_model.bundle.telemetry_files import SPOOLS, SUMMARY_FILE, points_of_bundle
from bench_model.bundle.telemetry_tracks import of_bundle as tracks_of_bundle

NAME = "results/hardware_events.json"
EVENTS_MAX = 200  # of a document; the counts in the summary are whole
COLLECTOR = "kernel_log"
LOST = "lost"
# Metric -> (measurement, field, collectors that read it)
COUNTERS = {
    "memory_corrected": ("memory_errors", "corrected", ("edac",)),
    "memory_uncorrected": ("memory_errors", "uncorrected", ("edac",)),
    "pcie_correctable": ("pcie_errors", "correctable", ("pcie_errors",)),
    "pcie_nonfatal": ("pcie_errors", "nonfatal", ("pcie_errors",)),
    "pcie_fatal": ("pcie_errors", "fatal", ("pcie_errors",)),
    "unsafe_shutdowns": ("smart", "unsafe_shutdowns", ("smart",)),
}
BMC_COLLECTORS = ("ipmi", "ipmi_lan")
MEASUREMENTS = {"kernel_event", "ipmi_event", "pcie_link", *(one[0] for one in COUNTERS.values())}
# Kind -> (one, several) in words. In the order in which the report names them.
WORDS = {
    "memory_uncorrected": ("uncorrected memory error", "uncorrected memory errors"),
    "nvme_reset": ("reset", "resets"),
    "nvme_timeout": ("timeout", "timeouts"),
    "nvme_io_error": ("I/O error of the drive", "I/O errors of the drive"),
    "block_io_error": ("block I/O error", "block I/O errors"),
    "unsafe_shutdowns": ("unsafe shutdown", "unsafe shutdowns"),
    "pcie_fatal": ("fatal PCIe error", "fatal PCIe errors"),
    "pcie_nonfatal": ("non-fatal PCIe error", "non-fatal PCIe errors"),
    "link_losses": ("loss of PCIe speed or lanes", "losses of PCIe speed or lanes"),
    "pcie_link": ("PCIe link message", "PCIe link messages"),
    "machine_check": ("machine check message", "machine check messages"),
    "array": ("array fault or rebuild", "array faults or rebuilds"),
    "disk_link": ("disk link fault", "disk link faults"),
    "file_system": ("file system fault", "file system faults"),
    "hang": ("hang", "hangs"),
    "thermal": ("thermal message", "thermal messages"),
    "bmc_event": ("entry in the BMC's log", "entries in the BMC's log"),
    "pcie_error": ("PCIe error message", "PCIe error messages"),
    "pcie_correctable": ("corrected PCIe error", "corrected PCIe errors"),
    "memory_corrected": ("corrected memory error", "corrected memory errors"),
    LOST: ("message lost", "messages lost"),
}


def of_bundle(bundle: Path, run: Document) -> Document | None:
    """results/hardware_events.json; None for a run whose agent did not know the kernel's log (it is older)."""
    collectors: dict[str, Document] = {}
    for spool in SPOOLS:
        for one in (find_document(bundle, f"{spool}/{SUMMARY_FILE}") or {}).get("collectors", []):
            collectors[one["name"]] = one
    if COLLECTOR not in collectors:
        return None
    points = list(points_of_bundle(bundle, MEASUREMENTS))
    windows = load_windows.of_bundle(bundle, run, tracks_of_bundle(bundle))
    return from_points(points, collectors, windows[0].start_s if windows else None)


def from_points(points: Iterable[Point], collectors: dict[str, Document], load_start_s: float | None) -> Document:
    """The document. `load_start_s` (s since 1970 UTC): times count from there, or from the first point where no load is known."""
    ordered = sorted(points, key=lambda point: point.time_ns)
    start_s = load_start_s if load_start_s is not None else ordered[0].time_ns / 1e9 if ordered else 0.0
    summary: dict[str, int | None] = {}
    reasons: dict[str, str] = {}
    events: list[Document] = []

    def fill(metric: str, names: tuple[str, ...], count: int | None, reason: str) -> None:
        why = _unseen(names, collectors) or (reason if count is None else "")
        summary[metric] = None if why else count
        if why:
            reasons[f"hardware.{metric}"] = why

    kernel = [point for point in ordered if point.measurement == "kernel_event"]
    events += _kernel_events(kernel, start_s)
    bad = any(_count(point.fields.get("messages")) is None for point in kernel)
    lost = sum(one["count"] for one in events if one["kind"] == LOST)
    told = [one for one in events if one["kind"] != LOST]
    why = (
        "a point of the kernel's log has no number of messages"
        if bad
        else f"the kernel overwrote {lost} messages unread"
    )
    for metric, kinds in (("kernel_messages", None), ("nvme_resets", ("nvme_reset",))):
        count = sum(one["count"] for one in told if kinds is None or one["kind"] in kinds)
        fill(metric, (COLLECTOR,), None if bad or lost else count, why)
    for metric, (measurement, field, names) in COUNTERS.items():
        own = [point for point in ordered if point.measurement == measurement and field in point.fields]
        growths, unreadable = _growths(own, field)
        events += [_event(device, metric, "counter", n, at_s - start_s, "") for device, n, at_s in growths if n]
        none = "" if own else f"no {measurement} has a count of it"
        fill(metric, names, None if none or unreadable else sum(n for _, n, _ in growths), none or unreadable)
    losses = list(_link_losses([point for point in ordered if point.measurement == "pcie_link"]))
    events += [_event(device, "link_losses", "counter", 1, at_s - start_s, text) for device, at_s, text in losses]
    fill("link_losses", ("pcie_link",), len(losses), "")
    entries = [one for one in ordered if one.measurement == "ipmi_event" and one.fields.get("asserted") is not False]
    for point in entries:
        text = str(point.fields.get("text", ""))
        events.append(_event("BMC", "bmc_event", "bmc", 1, point.time_ns / 1e9 - start_s, text))
    present = [name for name in BMC_COLLECTORS if name in collectors]
    working = [name for name in present if collectors[name]["status"] != "unsupported"]
    fill("bmc_events", tuple(working or present or BMC_COLLECTORS[:1]), len(entries), "")
    rank = {kind: number for number, kind in enumerate(WORDS)}
    events.sort(key=lambda one: (rank.get(one["kind"], len(rank)), one["first_s"], one["device"]))
    return {
        "schema_version": 1,
        "times_from": "the begin of the load" if load_start_s is not None else "the first event",
        "summary": summary,
        "reasons": reasons,
        "events": events[:EVENTS_MAX],
        "events_left_out": max(0, len(events) - EVENTS_MAX),
        "sentences": [sentence(one) for one in events[:EVENTS_MAX]],
    }


def sentence(event: Document) -> str:
    """One event in words: "nvme1: 3 resets in the kernel's log at 12.4 s"."""
    words = WORDS.get(event["kind"], (event["kind"], event["kind"]))[event["count"] != 1]
    where = " in the kernel's log" if event["source"] == "kernel" else ""
    device = "the machine" if event["device"] == "none" else event["device"]
    return f"{device}: {event['count']} {words}{where} at {event['first_s']:.1f} s" + (
        f" ({event['text']})" if event["text"] else ""
    )


def _event(device: str, kind: str, source: str, count: int, first_s: float, text: str) -> Document:
    return {
        "device": device,
        "kind": kind,
        "source": source,
        "count": count,
        "first_s": round(first_s, 3),
        "text": text,
    }


def _kernel_events(points: list[Point], start_s: float) -> list[Document]:
    """One per device and kind, with the first message's time and text."""
    found: dict[tuple[str, str], Document] = {}
    for point in points:
        key = (point.tags.get("device", "none"), point.tags.get("kind", "unknown"))
        first = _event(*key, "kernel", 0, point.time_ns / 1e9 - start_s, str(point.fields.get("text", "")))
        found.setdefault(key, first)["count"] += _count(point.fields.get("messages")) or 0
    return list(found.values())


def _growths(points: list[Point], field: str) -> tuple[list[tuple[str, int, float]], str]:
    """((device, growth, time of the first growth in s) of each counter, why it cannot be told). A counter that goes back began anew."""
    tracks: dict[tuple[tuple[str, str], ...], list[tuple[float, int]]] = {}
    for point in points:
        value = _count(point.fields[field])
        if value is None:
            return [], f"{point.measurement} has {field} {point.fields[field]!r}"
        tags = {key: tag for key, tag in point.tags.items() if key not in ("host", "run", "label")}
        tracks.setdefault(tuple(sorted(tags.items())), []).append((point.time_ns / 1e9, value))
    found: dict[str, tuple[str, int, float]] = {}
    for key, samples in tracks.items():
        tags = dict(key)
        if tags.get("module", "total") != "total":
            continue  # its controller counts it too
        grown, first_s = 0, samples[0][0]
        for (_, before), (at_s, now) in pairwise(samples):
            step = now - before if now >= before else now
            first_s = at_s if step and not grown else first_s
            grown += step
        # A port above several devices is reported with each: its errors count once.
        name = tags.get("function") or tags.get("serial") or tags.get("controller") or tags.get("device", "none")
        found.setdefault(name, (tags.get("device") or name, grown, first_s))
    return list(found.values()), ""


def _link_losses(points: list[Point]) -> Iterator[tuple[str, float, str]]:
    last: dict[str, float] = {}
    for point in points:
        device, value = point.tags.get("device", "none"), point.fields.get("bandwidth_bytes_per_s")
        if not isinstance(value, int | float) or not math.isfinite(value):
            continue
        if device in last and value < 0.99 * last[device]:
            yield device, point.time_ns / 1e9, f"from {last[device] / 1e9:.3g} to {value / 1e9:.3g} GB/s"
        last[device] = value


def _count(value: Any) -> int | None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    return int(value) if number else None


def _unseen(names: tuple[str, ...], collectors: dict[str, Document]) -> str:
    """Why nobody looked; empty where somebody did."""
    for name in names:
        one = collectors.get(name)
        if one is None:
            return f"the telemetry has no collector {name}"
        if one["status"] == "unsupported":
            return f"{name}: {one.get('detail') or 'not supported on this machine'}"
    return ""
