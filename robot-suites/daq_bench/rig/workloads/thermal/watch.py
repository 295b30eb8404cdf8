"""The rules that end a load of the thermal soak, applied to the run's telemetry as it grows."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path

from daq_bench.bench_model.behaviour import dips, equilibrium, throttling
from daq_bench.bench_model.behaviour.load_windows import STEP_S, target_counter
from daq_bench.bench_model.bundle import telemetry_tracks
from daq_bench.bench_model.bundle.line_protocol import AlikeLines, Point
from daq_bench.bench_model.bundle.telemetry_tracks import DRIVES_OWN, Track, Tracks
from daq_bench.bench_model.documents.run import TargetOfRun
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.workloads.thermal.document import Rule

TELEMETRY_LATE_S_MAX = 15.0  # of the mirrored spool; a sensor that is silent for longer says nothing of equilibrium
DANGER_K = 2.0  # [P] below its own critical temperature a drive that we made hot is relieved
BMC_CRITICAL = 2  # severity of a BMC's sensor: critical
WATCHED = ("temperature,", "smart,", "smart_ocp,", "smart_temperature,", "block_device,", "ipmi_sensor,")
# The fields that decide: each look goes through all that was kept, and a set of drives tells ten times as much.
FIELDS = {
    *("temperature_degc", "warning_degc", "critical_degc", "written_bytes", "critical_warning", "severity"),
    *(name for _, name in (*throttling.COUNTERS, throttling.STATUS)),
}


def rule_of(parameters: Document, min_s: float, max_s: float) -> Rule:
    """The rule that ends a load of the soak's parameters: after `min_s` at the earliest, `max_s` at the latest."""
    window_s, slope = (parameters["equilibrium"][name] for name in ("window_s", "slope_max_k_per_min"))
    hold_s = float(parameters["soak"]["hold_s"])
    return Rule(window_s, slope, min_s, max_s, hold_s, equilibrium.rule(window_s, slope))


class Watch:
    """The run's telemetry as it grows: only whole lines, only what a soak is decided by."""

    def __init__(self, *files: Path) -> None:
        importlib.import_module("scipy.special")  # `equilibrium` needs it: loading it under load would be one more load
        self._offsets = dict.fromkeys(files, 0)
        self._points: list[Point] = []
        self._parse = AlikeLines(frozenset(FIELDS)).point

    def forget(self) -> None:
        """Ignores samples from before the load that begins now."""
        self._points.clear()

    def tracks(self) -> Tracks:
        for file, offset in self._offsets.items():
            if file.exists():
                self._offsets[file] += self._read(file, offset)
        return telemetry_tracks.from_points(self._points)

    def _read(self, file: Path, offset: int) -> int:
        """The bytes that were new."""
        with file.open("rb") as stream:
            stream.seek(offset)
            text = stream.read()
        whole = text[: text.rfind(b"\n") + 1]
        lines = whole.decode("utf-8").splitlines()
        points = (self._parse(line) for line in lines if line.startswith(WATCHED))
        self._points += (point for point in points if point.fields)
        return len(whole)


def decide(
    tracks: Tracks, target: TargetOfRun, rule: Rule, start_s: float, now_s: float, by_us: bool = False
) -> str | None:
    """Why a load that began at `start_s` should end now; None: it goes on. Times on the candidate's clock.

    `by_us`: the fans are at a speed that we chose, so that heat is our doing and danger a reason to end at once."""
    drives = target.names
    if by_us and in_danger(tracks, drives, now_s):
        return "danger"
    elapsed = now_s - start_s
    if elapsed < rule.min_s:
        return None
    if elapsed >= rule.max_s:
        return "time limit"
    onset = _onset_s(tracks, target, drives, start_s, now_s)
    if onset is not None:
        return "throttling" if elapsed - onset >= rule.hold_s else None
    settled = []
    for drive in drives:
        thermometer = tracks.thermometer(drive)
        track = tracks.get(thermometer, drive, "temperature_degc")
        # The telemetry of a candidate behind SSH arrives seconds late: its last sample is "now", unless the sensor fell silent.
        last_s = min(now_s, float(track.times_s[-1])) if track else now_s
        late_s = TELEMETRY_LATE_S_MAX + throttling.LOG_PERIOD_S * (thermometer == DRIVES_OWN)
        heard = track is not None and now_s - last_s <= late_s
        settled.append(track is not None and heard and _settled(track, rule, start_s, last_s, len(drives)))
    return "equilibrium" if settled and all(settled) else None


def _settled(track: Track, rule: Rule, start_s: float, last_s: float, drives: int) -> bool:
    """Level by the rule, and the temperature that it is heading for is known: a slow approach looks level long before its end."""
    if not equilibrium.settled(equilibrium.level_at(track, last_s, rule.window_s, start_s), rule.slope_max_k_per_min):
        return False
    confidence = 1 - (1 - equilibrium.CONFIDENCE) / drives
    return equilibrium.asymptote(track, start_s, last_s, confidence).interval is not None


def _onset_s(tracks: Tracks, target: TargetOfRun, drives: Sequence[str], start_s: float, now_s: float) -> float | None:
    """Says when throttling began by the rate, or by the drives' own word."""
    told = [one.since_utc_s for one in throttling.signals_between(tracks, drives, start_s, now_s)]
    onsets = [max(0.0, since - start_s) for since in told if since is not None]
    counter, _ = target_counter(target, tracks)
    series = telemetry_tracks.rates(counter, start_s, now_s, STEP_S) if counter is not None else []
    for dip in dips.analyse(series, STEP_S).dips:
        if throttling.judge_dip(tracks, drives, dip, start_s).throttling:
            onsets.append(dip.start_s)
    return min(onsets, default=None)


def in_danger(tracks: Tracks, drives: Sequence[str], now_s: float) -> bool:
    """A drive near its own critical temperature, or a sensor that the BMC calls critical, within the last seconds."""
    for drive in drives:
        degrees, limit = (tracks.get("temperature", drive, name) for name in ("temperature_degc", "critical_degc"))
        hottest = degrees.max(now_s - 10, now_s + 10) if degrees else None
        if hottest is not None and limit is not None and hottest >= float(limit.values.min()) - DANGER_K:
            return True
    severities = tracks.of("ipmi_sensor", "severity").values()
    return any((track.max(now_s - 15, now_s + 15) or 0) >= BMC_CRITICAL for track in severities)
