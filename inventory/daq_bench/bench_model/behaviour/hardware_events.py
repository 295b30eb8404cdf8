"""The faults of the candidate's hardware while it was watched: the kernel's log, ECC, PCIe, power and the BMC's log.

A pure function of the bundle. A count that nothing looked at is null, with the reason, and never zero."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

from daq_bench.bench_model.behaviour import load_windows
from daq_bench.bench_model.bundle.files import find_document
from daq_bench.bench_model.bundle.line_protocol import Point
from daq_bench.bench_model.bundle.telemetry_files import SPOOLS, SUMMARY_FILE, points_of_bundle
from daq_bench.bench_model.bundle.telemetry_tracks import of_bundle as tracks_of_bundle
from daq_bench.bench_model.documents.derived import HardwareEvent, HardwareEvents, Source
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document

NAME = "results/hardware_events.json"
EVENTS_MAX = 200  # of a document; the counts in the summary are whole
COLLECTOR = "kernel_log"
LOST, OTHERS = "lost", "others"
OCP = "smart_ocp"  # not every NVMe drive has it
# Metric -> (measurement, field, collectors that read it)
COUNTERS = {
    "memory_corrected": ("memory_errors", "corrected", ("edac",)),
    "memory_uncorrected": ("memory_errors", "uncorrected", ("edac",)),
    "pcie_correctable": ("pcie_errors", "correctable", ("pcie_errors",)),
    "pcie_nonfatal": ("pcie_errors", "nonfatal", ("pcie_errors",)),
    "pcie_fatal": ("pcie_errors", "fatal", ("pcie_errors",)),
    "unsafe_shutdowns": ("smart", "unsafe_shutdowns", ("smart",)),
    "link_retrainings": (OCP, "pcie_link_retrainings", ("smart",)),
    "incomplete_shutdowns": (OCP, "incomplete_shutdowns", ("smart",)),
}
# Metric -> kinds of the drives' own event logs
DRIVE_EVENTS = {
    "drive_resets": ("power_on_reset",),
    "drive_thermal_excursions": ("thermal_excursion",),
    "drive_firmware_commits": ("firmware_commit",),
    "drive_hardware_errors": (
        "hardware_error",
        "pcie_nonfatal",
        "pcie_fatal",
        "critical_warning",
        "unsafe_shutdown",
        "controller_fatal",
        "media_error",
        "controller_timeout",
    ),
}
BMC_COLLECTORS = ("ipmi", "ipmi_lan")
MEASUREMENTS = {
    "kernel_event",
    "ipmi_event",
    "nvme_event",
    "pcie_link",
    *(one[0] for one in COUNTERS.values()),
}
# Kind -> (one, several) in words. In the order in which the report names them.
WORDS = {
    "memory_uncorrected": ("uncorrected memory error", "uncorrected memory errors"),
    "nvme_reset": ("reset", "resets"),
    "controller_fatal": ("fatal status of its controller", "fatal statuses of its controller"),
    "media_error": ("media or data integrity error", "media or data integrity errors"),
    "controller_timeout": ("timeout of its controller", "timeouts of its controller"),
    "unsafe_shutdown": ("unsafe shutdown", "unsafe shutdowns"),
    "incomplete_shutdowns": ("shutdown that did not save all", "shutdowns that did not save all"),
    "critical_warning": ("critical warning", "critical warnings"),
    "hardware_error": ("hardware error", "hardware errors"),
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
    "clocksource": ("clock given up as unstable", "clocks given up as unstable"),
    "iommu_fault": ("IOMMU fault", "IOMMU faults"),
    "thermal": ("thermal message", "thermal messages"),
    "bmc_event": ("entry in the BMC's log", "entries in the BMC's log"),
    "power_on_reset": ("power-on or reset", "power-ons or resets"),
    "thermal_excursion": ("thermal excursion", "thermal excursions"),
    "firmware_commit": ("firmware commit", "firmware commits"),
    "format": ("format", "formats"),
    "sanitize": ("sanitize", "sanitizes"),
    "namespace_change": ("change of its namespaces", "changes of its namespaces"),
    "telemetry_log": ("telemetry log", "telemetry logs"),
    "others": ("further event", "further events"),
    "link_retrainings": ("training of the PCIe link anew", "trainings of the PCIe link anew"),
    "pcie_error": ("PCIe error message", "PCIe error messages"),
    "pcie_correctable": ("corrected PCIe error", "corrected PCIe errors"),
    "memory_corrected": ("corrected memory error", "corrected memory errors"),
    LOST: ("message lost", "messages lost"),
}


def of_bundle(bundle: Path, run: Run) -> HardwareEvents | None:
    """results/hardware_events.json; None for a run without an agent."""
    collectors: dict[str, Document] = {}
    for spool in SPOOLS:
        summary = find_document(bundle, f"{spool}/{SUMMARY_FILE}") or {}
        for one in summary.get("collectors", []):
            collectors[one["name"]] = one
    if COLLECTOR not in collectors:
        return None
    points = list(points_of_bundle(bundle, MEASUREMENTS))
    windows = load_windows.of_bundle(bundle, run, tracks_of_bundle(bundle))
    return from_points(points, collectors, windows[0].start_s if windows else None)


def from_points(points: Iterable[Point], collectors: dict[str, Document], load_start_s: float | None) -> HardwareEvents:
    """The document. `load_start_s` (s since 1970 UTC): times count from there, or from the first point where no load is known."""
    ordered = sorted(points, key=lambda point: point.time_ns)
    start_s = load_start_s if load_start_s is not None else ordered[0].time_ns / 1e9 if ordered else 0.0
    summary: dict[str, int | None] = {}
    reasons: dict[str, str] = {}
    events: list[HardwareEvent] = []

    def fill(metric: str, names: tuple[str, ...], count: int | None, reason: str) -> None:
        why = _unseen(names, collectors) or (reason if count is None else "")
        summary[metric] = None if why else count
        if why:
            reasons[f"hardware.{metric}"] = why

    kernel = [point for point in ordered if point.measurement == "kernel_event"]
    events += _logged(kernel, start_s, "kernel", "messages")
    bad = any(_count(point.fields.get("messages")) is None for point in kernel)
    lost = sum(one.count for one in events if one.kind == LOST)
    told = [one for one in events if one.kind != LOST]
    why = (
        "a point of the kernel's log has no number of messages"
        if bad
        else f"the kernel overwrote {lost} messages unread"
    )
    for metric, kinds in (("kernel_messages", None), ("nvme_resets", ("nvme_reset",))):
        count = sum(one.count for one in told if kinds is None or one.kind in kinds)
        fill(metric, (COLLECTOR,), None if bad or lost else count, why)
    for metric, (measurement, field, names) in COUNTERS.items():
        own = [point for point in ordered if point.measurement == measurement and field in point.fields]
        growths, unreadable = _growths(own, field)
        events += [_event(device, metric, "counter", n, at_s - start_s, "") for device, n, at_s in growths if n]
        none = "" if own else f"no {measurement} has a count of it"
        if measurement == OCP:
            none = _lacking(ordered, measurement, field, f"a count of it ({measurement})")
        fill(metric, names, None if none or unreadable else sum(n for _, n, _ in growths), none or unreadable)
    own = [point for point in ordered if point.measurement == "nvme_event"]
    events += _logged(own, start_s, "drive", "events")
    counted, why = _counted_events(own)
    none = _lacking(ordered, "smart", "logged_events", "a persistent event log that could be read") or why
    for metric, own_kinds in DRIVE_EVENTS.items():
        fill(metric, ("smart",), None if none else sum(counted.get(kind, 0) for kind in own_kinds), none)
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
    events.sort(key=lambda one: (rank.get(one.kind, len(rank)), one.first_s, one.device))
    return HardwareEvents(
        schema_version=1,
        times_from="the begin of the load" if load_start_s is not None else "the first event",
        summary=summary,
        reasons=reasons,
        events=events[:EVENTS_MAX],
        events_left_out=max(0, len(events) - EVENTS_MAX),
        sentences=[sentence(one) for one in events[:EVENTS_MAX]],
    )


def sentence(event: HardwareEvent) -> str:
    """One event in words: "nvme1: 3 resets in the kernel's log at 12.4 s"."""
    words = WORDS.get(event.kind, (event.kind, event.kind))[event.count != 1]
    where = {"kernel": " in the kernel's log", "drive": " in its own log"}.get(event.source, "")
    device = "the machine" if event.device == "none" else event.device
    return f"{device}: {event.count} {words}{where} at {event.first_s:.1f} s" + (
        f" ({event.text})" if event.text else ""
    )


def _event(device: str, kind: str, source: Source, count: int, first_s: float, text: str) -> HardwareEvent:
    return HardwareEvent(device, kind, source, count, round(first_s, 3), text)


def _logged(points: list[Point], start_s: float, source: Source, field: str) -> list[HardwareEvent]:
    """One per device and kind of the kernel's log or of drives' own, with the first one's time and text. `field` counts them."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], Point] = {}
    for point in points:
        key = (point.tags.get("device", "none"), point.tags.get("kind", "unknown"))
        counts[key] += _count(point.fields.get(field)) or 0
        first.setdefault(key, point)
    return [
        _event(*key, source, counts[key], one.time_ns / 1e9 - start_s, str(one.fields.get("text", "")))
        for key, one in first.items()
    ]


def _counted_events(points: list[Point]) -> tuple[dict[str, int], str]:
    """(events by kind, why they cannot be told)."""
    counted: dict[str, int] = {}
    for point in points:
        number, kind = _count(point.fields.get("events")), point.tags.get("kind", "unknown")
        if number is None:
            return {}, "an event of a drive has no number of events"
        counted[kind] = counted.get(kind, 0) + number
    return (
        counted,
        f"{counted[OTHERS]} events of a drive came at once and are not told apart" if OTHERS in counted else "",
    )


def _lacking(points: list[Point], measurement: str, field: str, what: str) -> str:
    """Why not every NVMe drive answers for a field; empty where every one does. One that is silent proves nothing by another's zero."""
    present = {one.tags.get("device", "none") for one in points if one.measurement == "smart"}
    drives = {device for device in present if device.startswith("nvme")}
    have = {one.tags.get("device") for one in points if one.measurement == measurement and field in one.fields}
    if not drives:
        return "no NVMe drive told of its health"
    return f"without {what}: {', '.join(sorted(drives - have))}" if drives - have else ""


def _growths(points: list[Point], field: str) -> tuple[list[tuple[str, int, float]], str]:
    """((device, growth, time of the first growth in s) of each counter, why it cannot be told). A counter that goes back began anew."""
    tracks: dict[tuple[tuple[str, str], ...], list[tuple[float, int]]] = {}
    for point in points:
        value = _count(point.fields[field])
        if value is None:
            return [], f"{point.measurement} has {field} {point.fields[field]!r}"
        tags = {key: tag for key, tag in point.tags.items() if key not in ("host", "run", "label")}
        tracks.setdefault(tuple(sorted(tags.items())), []).append((point.time_ns / 1e9, value))
    named: dict[str, list[tuple[str, list[tuple[float, int]]]]] = {}
    for key, samples in tracks.items():
        tags = dict(key)
        if tags.get("module", "total") != "total":
            continue  # its controller counts it too
        name = tags.get("function") or tags.get("serial") or tags.get("controller") or tags.get("device", "none")
        named.setdefault(name, []).append((tags.get("device") or name, samples))
    # A port above several devices is reported with each, and counts once. Two drives may state one serial: neither hides the other.
    every = [[(device, *_growth(one)) for device, one in _joined(own)] for own in named.values()]
    return [max(own, key=itemgetter(1)) for own in every], ""


def _joined(tracks: list[tuple[str, list[tuple[float, int]]]]) -> list[tuple[str, list[tuple[float, int]]]]:
    """A drive that was gone and came back under another name goes on where it was."""
    found: list[tuple[str, list[tuple[float, int]]]] = []
    for device, samples in sorted(tracks, key=lambda one: one[1][0]):
        before = next((one for _, one in found if one[-1][0] < samples[0][0]), None)
        if before is None:
            found.append((device, list(samples)))
        else:
            before += samples
    return found


def _growth(samples: list[tuple[float, int]]) -> tuple[int, float]:
    grown, first_s = 0, samples[0][0]
    for (_, before), (at_s, now) in pairwise(samples):
        step = now - before if now >= before else now
        first_s = at_s if step and not grown else first_s
        grown += step
    return grown, first_s


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
