"""Why the rate dipped: each cause that the telemetry speaks for, with its evidence, and *unknown* where it speaks for none.

A cause has to have *changed* with the dip: the time before it, from the same load, is the control. Data that were not collected are listed,
since a cause that nobody could see is not excluded."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from daq_bench.bench_model.base.units import rate_label
from daq_bench.bench_model.behaviour.hardware_events import LOST, WORDS
from daq_bench.bench_model.behaviour.throttling import AROUND_S, LOG_PERIOD_S, signals_between
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks
from daq_bench.bench_model.documents.dips import CauseEvidence
from daq_bench.bench_model.documents.events import Event
from daq_bench.candidate_kit.nvme_paths import drive_of_path

UNKNOWN = "unknown"
# In the order in which they are believed: what somebody did on purpose, what the hardware says of itself, what circumstances suggest.
CAUSES = (
    "commanded_hazard",
    "drive_temperature",
    "kernel_log",
    "drive_log",
    "bmc_log",
    "degraded_array",
    "pcie_link",
    "cpu_frequency",
    "interrupt_or_numa",
    "host_contention",
    UNKNOWN,
)
BEFORE_S = 30.0  # [P] the control: so much of the load before the dip
HAZARD_S = 5.0  # [P] a command, its effect and two clocks lie within this
FREQUENCY_DROP = 0.15  # [P] share of the frequency before
IRQ_FRACTION = 0.7  # [P] of one CPU in interrupt handlers: it has become the bottleneck
RISE = 0.10  # [P] rise of a share of time (steal, stalls, interrupts) that matters
REMOTE_RISE = 0.25  # [P] rise of the share of a drive's interrupts that CPUs of another NUMA node take
FASTER = 2.0  # [P] times as fast as before: so much faster an error counter has to grow in the dip
COUNTER_PERIOD_S = 5.0  # such counters are read this rarely
CORRECTABLE_ERRORS = 10  # [P] a link mends some at any time
OTHERS_SHARE = 0.10  # [P] of the rate before the dip: so much by others on the same drives explains one
MACHINE_KINDS = (
    "memory_uncorrected",
    "machine_check",
    "thermal",
    "clocksource",
)  # that name no device and slow all of them
# The words of the drive's own event log and the BMC's, by cause; an entry that is not named is the log's own business or somebody's login.
DRIVE_EVENT_CAUSES = {
    "thermal_excursion": "drive_temperature",
    "pcie_correctable": "pcie_link",
    "pcie_nonfatal": "pcie_link",
    "pcie_fatal": "pcie_link",
    "pcie_link": "pcie_link",
}
BMC_NO_CAUSES = ("Event Logging Disabled", "Session Audit", "Platform Alert", "OS Boot", "Version Change", "unnamed")
LOG_COUNTERS = {"media_errors": "media errors", "error_log_entries": "entries of its error log"}


@dataclass(frozen=True)
class Attribution:
    """`cause` is the first of `evidence` in the order of CAUSES; `unseen` names what could not be looked at."""

    cause: str
    evidence: tuple[CauseEvidence, ...]
    unseen: tuple[str, ...]


@dataclass(frozen=True)
class Scene:
    """One dip and what surrounds it, times on the candidate's clock. `load_start_s`: when this load began."""

    tracks: Tracks
    drives: Sequence[str]  # of the target, by kernel name
    device: str | None  # that carries the target
    events: Sequence[Event]
    load_start_s: float
    start_s: float
    end_s: float
    reference_bytes_per_s: float
    own_bytes_per_s: Track | None = None  # the workload's own count, where the series is not the device's

    def around(self, track: Track) -> tuple[float | None, float | None]:
        """(mean before the dip, mean in it)."""
        first = max(self.load_start_s, self.start_s - BEFORE_S)
        return track.mean(first, self.start_s - 0.5), track.mean(self.start_s - 0.5, self.end_s + 0.5)


def attribute(scene: Scene) -> Attribution:
    """The causes of one dip."""
    finders = (
        _hazards,
        _temperature,
        _kernel,
        _log,
        _drive_events,
        _bmc_events,
        _array,
        _link,
        _frequency,
        _interrupts,
        _contention,
    )
    found = sorted(
        (evidence for finder in finders for evidence in finder(scene)), key=lambda one: CAUSES.index(one.cause)
    )
    return Attribution(found[0].cause if found else UNKNOWN, tuple(found), tuple(_unseen(scene)))


def _hazards(scene: Scene) -> Iterator[CauseEvidence]:
    for event in in_force(scene.events, scene.start_s + HAZARD_S):
        # A throttle that has been there since long before the dip began is not what began it.
        if event.time_s >= scene.start_s - HAZARD_S:
            after = event.time_s - scene.start_s
            yield CauseEvidence("commanded_hazard", f"{event.text} ({after:+.1f} s from the dip's begin)")


def in_force(events: Sequence[Event], at_s: float) -> list[Event]:
    """The hazards that were commanded and not released at a time."""
    active: list[Event] = []
    for event in sorted(events, key=lambda one: one.time_s):
        if event.kind != "hazard" or event.time_s > at_s:
            continue
        if event.data.get("released"):
            active.clear()
        else:
            active.append(event)
    return active


def _temperature(scene: Scene) -> Iterator[CauseEvidence]:
    for signal in signals_between(scene.tracks, scene.drives, scene.start_s, scene.end_s):
        yield CauseEvidence("drive_temperature", signal.text)
    for sensor, track in scene.tracks.of("ipmi_sensor", "severity").items():
        if scene.tracks.get("ipmi_sensor", sensor, "temperature_degc") is None:
            continue
        before = track.max(max(scene.load_start_s, scene.start_s - BEFORE_S), scene.start_s - AROUND_S)
        during = track.max(scene.start_s, scene.end_s + LOG_PERIOD_S)
        if during and during > (before or 0):
            yield CauseEvidence(
                "drive_temperature", f"the BMC's temperature sensor {sensor} passed a threshold (server's side)"
            )


def _log(scene: Scene) -> Iterator[CauseEvidence]:
    for drive in scene.drives:
        for name, meaning in LOG_COUNTERS.items():
            track = scene.tracks.get("smart", drive, name)
            growth = track.growth(scene.start_s - LOG_PERIOD_S, scene.end_s) if track else None
            if growth:
                yield CauseEvidence("drive_log", f"{drive} counts {growth:.0f} more {meaning}")
        warning = scene.tracks.get("smart", drive, "critical_warning")
        bits = 0
        if warning is not None:
            for value in warning.between(scene.start_s - AROUND_S, scene.end_s + LOG_PERIOD_S):
                bits |= int(value) if math.isfinite(value) else 0
        if bits & ~0x02:  # the temperature's bit is evidence of another cause
            yield CauseEvidence("drive_log", f"{drive} has critical warning {bits:#04x} set")


def _kernel(scene: Scene) -> Iterator[CauseEvidence]:
    """Faults in the kernel's log of the target's drives, or of the whole machine, that came with the dip and not all the time."""
    control_s = max(scene.load_start_s, scene.start_s - BEFORE_S)
    for subject, track in scene.tracks.of("kernel_event", "messages").items():
        told, _, kind = subject.rstrip(")").partition(" (")
        device, _, behind = told.partition(" of ")
        of_target = (*scene.drives, *([scene.device] if scene.device else []))
        hit = [drive for drive in behind.split() if any(is_of_drive(drive, one) for one in of_target)]
        ours = bool(hit) or any(is_of_drive(device, drive) for drive in of_target)
        if kind == LOST or not (ours or (device == "none" and kind in MACHINE_KINDS)):
            continue
        first_s = scene.start_s - AROUND_S
        before, during = track.between(control_s, first_s - 1e-6), track.between(first_s, scene.end_s)
        number = float(during.sum())
        if not number > 0:
            continue
        often = float(before.sum()) / max(first_s - control_s, 1.0)
        if number / max(scene.end_s - first_s, 1.0) <= FASTER * often:
            continue
        times = track.times_s[(track.times_s >= first_s) & (track.times_s <= scene.end_s)]
        words = WORDS.get(kind, (kind, kind))[number != 1]
        whose = "the machine" if device == "none" else f"{device}, which carries {', '.join(hit)}" if hit else device
        when = f"{times[0] - scene.start_s:+.1f} s from the dip's begin"
        yield CauseEvidence("kernel_log", f"{whose}: {number:.0f} {words} in the kernel's log ({when})")


def _drive_events(scene: Scene) -> Iterator[CauseEvidence]:
    """Returns what a drive of the target wrote into its own event log with the dip and not before."""
    for subject, track in scene.tracks.of("nvme_event", "events").items():
        device, _, kind = subject.rstrip(")").partition(" (")
        number, when = _came(scene, track, scene.tracks.get("nvme_event", subject, "earlier_s"))
        if number and any(is_of_drive(device, drive) for drive in scene.drives):
            words = WORDS.get(kind, (kind, kind))[number != 1]
            yield CauseEvidence(
                DRIVE_EVENT_CAUSES.get(kind, "drive_log"), f"{device}: {number:.0f} {words} in its own log ({when})"
            )
    for drive in scene.drives:
        trained = scene.tracks.get("smart_ocp", drive, "pcie_link_retrainings")
        count = _grew_faster(scene, trained) if trained else None
        if count:
            yield CauseEvidence("pcie_link", f"the PCIe link of {drive} was trained anew {count:.0f} more times")


def _bmc_events(scene: Scene) -> Iterator[CauseEvidence]:
    """Returns what the BMC wrote into its log with the dip and not before, but for what tells of an end."""
    for sensor, track in scene.tracks.of("ipmi_event", "earlier_s").items():
        ended = scene.tracks.get("ipmi_event", sensor, "asserted")
        if ended is not None:
            over = np.isin(track.times_s, ended.times_s[ended.values == 0])
            track = Track(track.times_s[~over], track.values[~over])
        number, when = _came(scene, Track(track.times_s, np.ones_like(track.values)), track)
        if number and not sensor.startswith(BMC_NO_CAUSES):
            yield CauseEvidence(
                "bmc_log", f"{sensor}: {number:.0f} {'entry' if number == 1 else 'entries'} in the BMC's log ({when})"
            )


def _came(scene: Scene, events: Track, earlier: Track | None) -> tuple[float, str]:
    """(events that may have come with the dip, when in words); none where one came before it in the same load.

    `earlier`: so much before its time each of them may have happened, at the same times as `events`."""
    before_s = earlier.values if earlier is not None and len(earlier.values) == len(events.values) else 0.0
    first_s = scene.start_s - AROUND_S
    with_it = (events.times_s >= first_s) & (events.times_s - before_s <= scene.end_s)
    control_s = max(scene.load_start_s, scene.start_s - BEFORE_S)
    if not with_it.any() or len(events.between(control_s, first_s - 1e-6)):
        return 0.0, ""
    late_s = (
        float((events.times_s - before_s)[with_it].min()) - scene.start_s,
        float(events.times_s[with_it].min()) - scene.start_s,
    )
    when = f"{late_s[1]:+.1f} s from the dip's begin"
    return float(events.values[with_it].sum()), when if late_s[1] - late_s[
        0
    ] < AROUND_S else f"between {late_s[0]:+.1f} and {when}"


def is_of_drive(device: str, drive: str) -> bool:
    """Whether the kernel's log means this drive by `device`: itself, its NVMe controller, a path to it or a partition of it."""
    if device == drive:
        return True
    rest = drive[len(device) :] if drive.startswith(device) else ""
    if re.fullmatch(r"nvme\d+", device):
        return re.fullmatch(r"n\d+", rest) is not None
    path = drive_of_path(device)
    if path:
        return path == drive
    part = device[len(drive) :] if device.startswith(drive) else ""
    return re.fullmatch(r"p\d+" if drive[-1:].isdigit() else r"\d+", part) is not None


def _array(scene: Scene) -> Iterator[CauseEvidence]:
    lacking = scene.tracks.get("md_array", scene.device or "", "degraded")
    begin_s = max(scene.load_start_s, scene.start_s - BEFORE_S)
    spans = ((begin_s, scene.start_s - AROUND_S), (scene.start_s - AROUND_S, scene.end_s))
    before, during = (lacking.max(*span) if lacking else None for span in spans)
    if before is not None and during is not None and during > before:
        yield CauseEvidence("degraded_array", f"{scene.device} lost {during - before:.0f} of its members")
    progress = scene.tracks.get("md_array", scene.device or "", "sync_completed_fraction")
    # The field is there only while the array resynchronises.
    if progress is not None:
        ran, runs = (len(progress.between(*span)) for span in spans)
        if runs and not ran:
            yield CauseEvidence("degraded_array", f"{scene.device} began to resynchronise")


def _link(scene: Scene) -> Iterator[CauseEvidence]:
    for drive, track in scene.tracks.of("pcie_link", "bandwidth_bytes_per_s").items():
        before, during = scene.around(track) if any(is_of_drive(drive, one) for one in scene.drives) else (None, None)
        if before and during is not None and during < 0.99 * before:
            yield CauseEvidence(
                "pcie_link", f"PCIe link of {drive} fell from {before / 1e9:.3g} to {during / 1e9:.3g} GB/s"
            )
    yield from _link_errors(scene)


def _link_errors(scene: Scene) -> Iterator[CauseEvidence]:
    """Errors that the drive or a port on the way to it counts; a link that errs all the time explains no dip."""
    for kind, least in (("correctable", CORRECTABLE_ERRORS), ("nonfatal", 1), ("fatal", 1)):
        for subject, track in scene.tracks.of("pcie_errors", kind).items():
            drive, _, function = subject.rstrip(")").partition(" (")
            count = _grew_faster(scene, track)
            if any(is_of_drive(drive, one) for one in scene.drives) and count and count >= least:
                text = f"{function}, on the way to {drive}, counts {count:.0f} more {kind} PCIe errors"
                yield CauseEvidence("pcie_link", text)


def _grew_faster(scene: Scene, track: Track) -> float | None:
    """Growth of a counter with the dip, where it was FASTER than before."""
    before = track.slope(max(scene.load_start_s, scene.start_s - BEFORE_S), scene.start_s - COUNTER_PERIOD_S)
    during = track.slope(scene.start_s, scene.end_s)
    if before is None or not during or during <= FASTER * before:
        return None
    return track.growth(scene.start_s, scene.end_s)


def _frequency(scene: Scene) -> Iterator[CauseEvidence]:
    pairs = [scene.around(track) for track in scene.tracks.of("cpu_frequency", "frequency_hz").values()]
    known = [(before, during) for before, during in pairs if before and during is not None]
    if known:
        before, during = (sum(pair[index] for pair in known) / len(known) for index in (0, 1))
        if during < (1 - FREQUENCY_DROP) * before:
            yield CauseEvidence(
                "cpu_frequency", f"mean CPU frequency fell from {before / 1e9:.2f} to {during / 1e9:.2f} GHz"
            )
    for name, whose in (("core_throttle_count", "cores of processor"), ("package_throttle_count", "processor")):
        for package, track in scene.tracks.of("cpu_throttle", name).items():
            count = _grew_faster(scene, track)
            if count:
                yield CauseEvidence(
                    "cpu_frequency", f"{whose} {package} were throttled for heat {count:.0f} more times"
                )


def _interrupts(scene: Scene) -> Iterator[CauseEvidence]:
    hard, soft = (scene.tracks.of("cpu", name) for name in ("irq_fraction", "softirq_fraction"))
    for core in sorted(hard.keys() & soft.keys() - {"total"}):
        shares = [scene.around(track[core]) for track in (hard, soft)]
        before, during = (sum(pair[index] or 0.0 for pair in shares) for index in (0, 1))
        if during >= IRQ_FRACTION and during - before >= RISE:
            text = f"CPU {core} spent {during:.0%} of its time in interrupt handlers ({before:.0%} before)"
            yield CauseEvidence("interrupt_or_numa", text)
    for drive in scene.drives:
        remote = scene.tracks.get("interrupts", drive, "remote_fraction")
        own, others = scene.around(remote) if remote else (None, None)
        if own is not None and others is not None and others - own >= REMOTE_RISE:
            text = f"{others:.0%} of the interrupts of {drive} went to CPUs of another NUMA node ({own:.0%} before)"
            yield CauseEvidence("interrupt_or_numa", text)


def _contention(scene: Scene) -> Iterator[CauseEvidence]:
    shares = [("CPU time stolen by the hypervisor", scene.tracks.get("cpu", "total", "steal_fraction"))]
    # Not that of I/O: tasks wait for a slow drive, whatever made it slow.
    shares += [
        (
            f"share of time in which tasks waited for {resource}",
            scene.tracks.get("pressure", resource, "stalled_fraction"),
        )
        for resource in ("cpu", "memory")
    ]
    for what, track in shares:
        before, during = scene.around(track) if track else (None, None)
        if before is not None and during is not None and during - before >= RISE:
            yield CauseEvidence("host_contention", f"{what} rose from {before:.0%} to {during:.0%}")
    yield from _others(scene)


def _others(scene: Scene) -> Iterator[CauseEvidence]:
    """Traffic that is not the workload's: reads of the target's device, and bytes to its drives beyond it."""
    for device in dict.fromkeys([*([scene.device] if scene.device else []), *scene.drives]):
        track = scene.tracks.get("block_device", device, "read_bytes_per_s")
        before, during = scene.around(track) if track else (None, None)
        if before is not None and during is not None and during - before >= OTHERS_SHARE * scene.reference_bytes_per_s:
            text = f"others read {rate_label(during - before)} more from {device}"
            yield CauseEvidence("host_contention", text)
    yield from _beside_us(scene)
    own = {*scene.drives, scene.device}
    for device, track in scene.tracks.of("block_device", "written_bytes_per_s").items():
        before, during = scene.around(track)
        if device in own or before is None or during is None:
            continue
        if during - before >= scene.reference_bytes_per_s * OTHERS_SHARE:
            yield CauseEvidence("host_contention", f"others write {rate_label(during - before)} more to {device}")


def _beside_us(scene: Scene) -> Iterator[CauseEvidence]:
    """Yields the evidence that the target's device wrote more than the workload says it wrote."""
    track = scene.tracks.get("block_device", scene.device or "", "written_bytes_per_s")
    if track is None or scene.own_bytes_per_s is None:
        return
    whole, own = scene.around(track), scene.around(scene.own_bytes_per_s)
    if None in whole or None in own:
        return
    before, during = ((whole[index] or 0.0) - (own[index] or 0.0) for index in (0, 1))
    if during - before >= OTHERS_SHARE * scene.reference_bytes_per_s:
        text = f"{scene.device} takes {rate_label(during - before)} more than this workload writes"
        yield CauseEvidence("host_contention", text)


def _unseen(scene: Scene) -> Iterator[str]:
    drives = scene.drives
    if not any(scene.tracks.get("temperature", drive, "warning_degc") for drive in drives):
        yield "temperature of the drives against their limits"
    if not any(scene.tracks.get("smart", drive, "critical_warning") for drive in drives):
        yield "the drives' health log"
    if not any(scene.tracks.get("pcie_link", drive, "bandwidth_bytes_per_s") for drive in drives):
        yield "the drives' PCIe links"
    for measurement, what in (
        ("cpu_frequency", "CPU frequency"),
        ("cpu", "interrupt load and stolen time"),
        ("pressure", "pressure stalls"),
    ):
        if not scene.tracks.has(measurement):
            yield what
