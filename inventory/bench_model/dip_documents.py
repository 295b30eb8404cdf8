"""results/dips.json and results/throttling.json: every dip of every sustained load of a run, what it lost, and why."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from bench_model import attribution, dips, load_windows, telemetry_tracks, throttling
from bench_model.dips import Analysis, Dip
from bench_model.load_windows import Window
from bench_model.telemetry_tracks import Track, Tracks

RULE = " ".join((dips.__doc__ or "").partition("\n")[2].split())
NO_WINDOW = "no workload of this run wrote at a steady pace for long enough, or its telemetry is not there"


@dataclass(frozen=True)
class Scenery:
    """What all dips of one run are judged by."""

    run: dict[str, Any]
    tracks: Tracks
    windows: list[Window]
    events: list[dict[str, Any]]

    @property
    def drives(self) -> list[str]:
        return [drive["name"] for drive in self.run["target"]["drives"]]

    @property
    def device(self) -> str | None:
        device = self.run["target"]["device"]
        return str(device["name"]) if device else None

    @staticmethod
    def of_bundle(bundle: Path, run: dict[str, Any]) -> Scenery:
        tracks = telemetry_tracks.of_bundle(bundle)
        return Scenery(run, tracks, load_windows.of_bundle(bundle, run, tracks), read_events(bundle))

    def attributed(self, window: Window, dip: Dip) -> attribution.Attribution:
        own = window.own
        if not window.source.startswith("block_device"):
            times = window.start_s + window.step_s * (np.arange(len(window.rates), dtype=np.float64) + 0.5)
            own = Track(np.asarray(times, dtype=np.float64), np.asarray(window.rates, dtype=np.float64))
        return attribution.attribute(
            attribution.Scene(
                tracks=self.tracks,
                drives=self.drives,
                device=self.device,
                events=self.events,
                load_start_s=window.start_s,
                start_s=window.start_s + dip.start_s,
                end_s=window.start_s + dip.end_s,
                reference_bytes_per_s=dip.reference_bytes_per_s,
                own_bytes_per_s=own,
            )
        )


def read_events(bundle: Path) -> list[dict[str, Any]]:
    """The run's events with their time in s since 1970 UTC."""
    file = bundle / "events.jsonl"
    if not file.exists():
        return []
    events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [{**event, "time_s": datetime.fromisoformat(event["time_utc"]).timestamp()} for event in events]


def dips_of_bundle(bundle: Path, run: dict[str, Any]) -> dict[str, Any]:
    """results/dips.json."""
    return dips_document(Scenery.of_bundle(bundle, run))


def dips_document(scenery: Scenery) -> dict[str, Any]:
    windows = [_window(scenery, window) for window in scenery.windows]
    found = [dip for window in windows for dip in window["dips"]]
    analysed = [window for window in windows if window["reason"] is None]
    reason = None if analysed else (windows[0]["reason"] if windows else NO_WINDOW)
    return {
        "schema_version": 1,
        "rule": RULE,
        "windows": windows,
        "summary": {
            "windows_analysed": len(analysed),
            "dips": len(found) if analysed else None,
            "unexplained": sum(dip["cause"] == attribution.UNKNOWN for dip in found) if analysed else None,
            "lost_bytes": sum(dip["lost_bytes"] for dip in found) if analysed else None,
            "deepest_fraction": max((dip["depth_fraction"] for dip in found), default=0.0) if analysed else None,
        },
        "reasons": {}
        if reason is None
        else dict.fromkeys(("dips.count", "dips.unexplained_count", "dips.lost_bytes", "dips.deepest"), reason),
    }


def _window(scenery: Scenery, window: Window) -> dict[str, Any]:
    found = dips.analyse(window.rates, window.step_s)
    return {
        **window_head(window),
        "reason": found.reason,
        "noise": None if found.noise is None else {
            "sigma_fraction": float(found.noise.sigma), "memory": float(found.noise.memory),
        },
        "dips": [_dip(scenery, window, dip) for dip in found.dips],
        "patterns": [vars(pattern) for pattern in found.patterns],
        "level_changes": [vars(change) for change in found.level_changes],
    }  # fmt: skip


def window_head(window: Window) -> dict[str, Any]:
    """Which stretch of the run, and what it wrote."""
    return {
        "workload": window.workload,
        "name": window.name,
        "start_utc_s": window.start_s,
        "duration_s": window.length_s,
        "source": window.source,
        "step_s": window.step_s,
        "mean_bytes_per_s": float(np.mean(window.rates)),
    }


def dip_head(window: Window, dip: Dip) -> dict[str, Any]:
    """A dip, its times from the begin of its load and on the candidate's clock."""
    return {
        "start_s": dip.start_s,
        "end_s": dip.end_s,
        "start_utc_s": window.start_s + dip.start_s,
        "end_utc_s": window.start_s + dip.end_s,
        "duration_s": dip.duration_s,
        "depth_fraction": dip.depth_fraction,
        "level_bytes_per_s": dip.level_bytes_per_s,
        "reference_bytes_per_s": dip.reference_bytes_per_s,
        "lost_bytes": dip.lost_bytes,
        "ended": dip.ended,
    }


def _dip(scenery: Scenery, window: Window, dip: Dip) -> dict[str, Any]:
    why = scenery.attributed(window, dip)
    return {
        **dip_head(window, dip),
        "cause": why.cause,
        "evidence": [vars(one) for one in why.evidence],
        "not_looked_at": list(why.unseen),
    }


def throttling_of_bundle(bundle: Path, run: dict[str, Any]) -> dict[str, Any]:
    """results/throttling.json."""
    return throttling_document(Scenery.of_bundle(bundle, run))


def throttling_document(scenery: Scenery) -> dict[str, Any]:
    """Episodes, and loads under which a drive warned without a dip. Null metrics where nothing of the drives was watched."""
    watched = throttling.watched(scenery.tracks, scenery.drives)
    analyses = [(window, dips.analyse(window.rates, window.step_s)) for window in scenery.windows]
    analysed = [(window, found) for window, found in analyses if found.reason is None]
    episodes = [episode for window, found in analysed for episode in _episodes(scenery, window, found)]
    counts = bool(watched and analysed)
    reason = (
        "no drive of the target reports its temperature with its limits, its critical warning or a throttle counter, so that a "
        "dip cannot be told from throttling"
        if not watched
        else NO_WINDOW
    )
    onsets = [episode["time_to_onset_s"] for episode in episodes]
    reasons = {} if counts else {"throttling.episodes": reason, "throttling.lost_bytes": reason}
    if not onsets:
        reasons["throttling.time_to_onset"] = "no load throttled" if counts else reason
    return {
        "schema_version": 1,
        "rule": " ".join((throttling.__doc__ or "").partition("\n")[2].split()),
        "drives": scenery.drives,
        "watched": watched,
        "episodes": episodes,
        "warnings_without_dip": [
            {**window_head(window), "signals": [vars(signal) for signal in _lone(scenery, window, found)]}
            for window, found in analysed
            if _lone(scenery, window, found)
        ],
        "summary": {
            "episodes": len(episodes) if counts else None,
            "time_to_onset_s": min(onsets, default=None),
            "lost_bytes": sum(episode["lost_bytes"] for episode in episodes) if counts else None,
        },
        "reasons": reasons,
    }


def _episodes(scenery: Scenery, window: Window, found: Analysis) -> list[dict[str, Any]]:
    made = []
    for dip in found.dips:
        verdict = throttling.judge_dip(scenery.tracks, scenery.drives, dip, window.start_s)
        if verdict.throttling:
            release = _release(scenery, window.start_s + dip.start_s, window.start_s + dip.end_s)
            made.append({
                "workload": window.workload,
                "name": window.name,
                **dip_head(window, dip),
                "time_to_onset_s": dip.start_s,
                "recovery_s": window.start_s + dip.end_s - release if dip.ended and release is not None else None,
                "confidence": verdict.confidence,
                "signals": [vars(signal) for signal in verdict.signals],
                "silent": list(verdict.silent),
            })  # fmt: skip
    return made


def _release(scenery: Scenery, start_s: float, end_s: float) -> float | None:
    """When the commanded hazards were released within the episode, give or take the difference of two clocks."""
    times = [
        float(event["time_s"])
        for event in scenery.events
        if event["kind"] == "hazard" and event["data"].get("released")
        if start_s <= event["time_s"] <= end_s + attribution.HAZARD_S
    ]
    return max(times, default=None)


def _lone(scenery: Scenery, window: Window, found: Analysis) -> list[throttling.Signal]:
    """What the drives said of themselves under a load that never dipped."""
    if found.dips:
        return []
    return throttling.signals_between(scenery.tracks, scenery.drives, window.start_s, window.end_s)
