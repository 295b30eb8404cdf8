"""results/dips.json and results/throttling.json: every dip of every sustained load of a run, what it lost, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from daq_bench.bench_model.base.units import parse_size
from daq_bench.bench_model.behaviour import attribution, dips, load_windows, smart_facts, throttling
from daq_bench.bench_model.behaviour.dips import Analysis, Dip
from daq_bench.bench_model.behaviour.load_windows import Window
from daq_bench.bench_model.behaviour.smart_facts import Facts
from daq_bench.bench_model.behaviour.throttling import Verdict
from daq_bench.bench_model.bundle import telemetry_tracks
from daq_bench.bench_model.bundle.files import read_structs
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks
from daq_bench.bench_model.documents.dips import Signal
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import as_document

RULE = " ".join((dips.__doc__ or "").partition("\n")[2].split())
ONE_RECORD = {"snb_record", "block_scan"}  # with these alone every record of daqwriter's is offered the run's demand
DRIVE = "drive"  # kind of an episode that the rate does not show
NO_WINDOW = "no workload of this run wrote at a steady pace for long enough, or its telemetry is not there"


def _same_load(window: Window, other: Window) -> bool:
    """daqwriter's records may differ in what they were asked for; a document's sustained loads do not."""
    return other is window or (other.workload == window.workload != "daqwriter")


@dataclass(frozen=True)
class Scenery:
    """The data of one run by which all its dips are judged."""

    run: Run
    tracks: Tracks
    windows: list[Window]
    events: list[Event]
    facts: Facts = field(default_factory=dict)  # the drives' health before and after the run

    @property
    def drives(self) -> list[str]:
        return self.run.target.names

    @property
    def device(self) -> str | None:
        return self.run.target.device.name if self.run.target.device else None

    @staticmethod
    def of_bundle(bundle: Path, run: Run) -> Scenery:
        tracks = telemetry_tracks.of_bundle(bundle)
        windows = load_windows.of_bundle(bundle, run, tracks)
        facts = smart_facts.of_bundle(bundle, run.target.drives)
        return Scenery(run, tracks, windows, read_structs(bundle, "events.jsonl", Event), facts)

    def analyses(self) -> list[tuple[Window, Analysis]]:
        """Each load's dips, held against the best that the same load reached in the run, or that it was held to."""
        alone = [(window, dips.analyse(window.rates, window.step_s)) for window in self.windows]
        best = [
            max([found.level for other, found in alone if _same_load(window, other)] + [self._offered(window)])
            for window, _ in alone
        ]
        return [
            (window, dips.analyse(window.rates, window.step_s, level))
            for (window, _), level in zip(alone, best, strict=True)
        ]

    def analysis(self, window: Window) -> Analysis:
        return next(found for other, found in self.analyses() if other is window)

    def _offered(self, window: Window) -> float:
        """Returns the rate that the load was held to, in B/s; 0 where the load was not paced, or nobody can tell."""
        workloads = self.run.scenario.parameters.get("workloads") or {}
        if window.workload == "thermal":
            return float(parse_size((workloads.get("thermal") or {}).get("rate_size") or 0))
        alone = set(workloads) <= ONE_RECORD and window.name.startswith("record ")
        return self.run.demand.offered_bytes_per_s if alone and self.run.demand else 0.0

    def signals(self, window: Window) -> list[Signal]:
        """Returns the throttling signals that the drives gave under a load."""
        return throttling.signals_between(self.tracks, self.drives, window.start_s, window.end_s)

    def unanswered(self, start_s: float, end_s: float) -> list[str]:
        """Why drives do not say that they did not throttle between two times."""
        return throttling.unanswered(self.tracks, self.drives, self.facts, start_s, end_s)

    def throttled_dips(self, window: Window, found: Analysis) -> list[tuple[Dip, Verdict]]:
        """The dips during which a drive told of heat, those of a rhythm too, in the order of time."""
        whole = {(dip.start_s, dip.end_s, dip.kind): dip for dip in found.dips}
        listed = {span[:2] for span in whole}
        rhythm = [dip for one in found.patterns for dip in one.dips if (dip.start_s, dip.end_s) not in listed]
        judged = [
            (dip, throttling.judge_dip(self.tracks, self.drives, dip, window.start_s))
            for dip in sorted([*whole.values(), *rhythm], key=lambda dip: dip.start_s)
        ]
        return [(dip, verdict) for dip, verdict in judged if verdict.throttling]

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


def dips_of_bundle(bundle: Path, run: Run) -> dict[str, Any]:
    """results/dips.json."""
    return dips_document(Scenery.of_bundle(bundle, run))


def dips_document(scenery: Scenery) -> dict[str, Any]:
    windows = [_window(scenery, window, found) for window, found in scenery.analyses()]
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


def _window(scenery: Scenery, window: Window, found: Analysis) -> dict[str, Any]:
    return {
        "workload": window.workload,
        "name": window.name,
        "start_utc_s": window.start_s,
        "duration_s": window.length_s,
        "source": window.source,
        "step_s": window.step_s,
        "mean_bytes_per_s": float(np.mean(window.rates)),
        "reason": found.reason,
        "noise": None if found.noise is None else {
            "sigma_fraction": float(found.noise.sigma), "memory": float(found.noise.memory),
        },
        "dips": [_dip(scenery, window, dip) for dip in found.dips],
        "patterns": [pattern.as_document() for pattern in found.patterns],
        "level_changes": [as_document(change) for change in found.level_changes],
    }  # fmt: skip


def dip_head(window: Window, dip: Dip) -> dict[str, Any]:
    """A dip, its times from the begin of its load and on the candidate's clock."""
    return {
        "kind": dip.kind,
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
        "evidence": [as_document(one) for one in why.evidence],
        "not_looked_at": list(why.unseen),
    }


def throttling_of_bundle(bundle: Path, run: Run) -> dict[str, Any]:
    """results/throttling.json."""
    return throttling_document(Scenery.of_bundle(bundle, run))


def throttling_document(scenery: Scenery) -> dict[str, Any]:
    """Episodes by rate and by the drives' own word. The number is null where there is none and not every drive says so."""
    loads = scenery.analyses()
    dipped = [one for window, found in loads for one in _episodes(scenery, window, found)]
    told = [one for window, _ in loads for one in _told(scenery, window, dipped)]
    told += _told_of_run(scenery, [*dipped, *told])
    episodes = sorted([*dipped, *told], key=lambda one: float(one["start_utc_s"] or math.inf))
    reason = "" if episodes else _unknown(scenery, loads)
    onsets = [one["time_to_onset_s"] for one in episodes if one["time_to_onset_s"] is not None]
    summary = {
        "episodes": None if reason else len(episodes),
        "time_to_onset_s": min(onsets, default=None),
        "lost_bytes": None if reason or told else sum(one["lost_bytes"] for one in dipped),
    }
    return {
        "schema_version": 1,
        "rule": " ".join((throttling.__doc__ or "").partition("\n")[2].split()),
        "drives": scenery.drives,
        "watched": throttling.watched(scenery.tracks, scenery.drives),
        "episodes": episodes,
        "contradictions": [_contradiction(one) for one in told],
        "processors": [text for window, _ in loads for text in _processors(scenery, window)],
        "summary": summary,
        "reasons": _reasons(summary, reason),
    }


def _reasons(summary: dict[str, Any], reason: str) -> dict[str, str]:
    why = {
        "throttling.episodes": reason,
        "throttling.lost_bytes": reason or "a drive tells of throttling where the rate shows no dip",
        "throttling.time_to_onset": reason
        or ("the onset has no known time" if summary["episodes"] else "no load throttled"),
    }
    return {
        name: text
        for name, text in why.items()
        if summary[name.removeprefix("throttling.").replace("onset", "onset_s")] is None
    }


def _unknown(scenery: Scenery, loads: list[tuple[Window, Analysis]]) -> str:
    """Why it is unknown whether a drive throttled; empty where every drive answers for every load."""
    if not scenery.drives:
        return "the run names no drive beneath the target"
    if not any(found.reason is None for _, found in loads):
        return loads[0][1].reason or NO_WINDOW if loads else NO_WINDOW
    for window, _ in loads:
        silent = scenery.unanswered(window.start_s, window.end_s)
        if silent:
            return f"whether a drive throttled cannot be told ({window.name}): {'; '.join(silent)}"
    return ""


def _episodes(scenery: Scenery, window: Window, found: Analysis) -> list[dict[str, Any]]:
    made = []
    for dip, verdict in scenery.throttled_dips(window, found):
        release = _release(scenery, window.start_s + dip.start_s, window.start_s + dip.end_s)
        made.append({
            "workload": window.workload,
            "name": window.name,
            **dip_head(window, dip),
            "time_to_onset_s": dip.start_s,
            "recovery_s": window.start_s + dip.end_s - release if dip.ended and release is not None else None,
            **_evidence(verdict),
        })  # fmt: skip
    return made


def _evidence(verdict: Verdict) -> dict[str, Any]:
    return {
        "confidence": verdict.confidence,
        "signals": [as_document(signal) for signal in verdict.signals],
        "silent": list(verdict.silent),
    }


def _told(scenery: Scenery, window: Window, dipped: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns one episode for each drive that gave signals under a load and that no episode of this load's rate names."""
    here = [one for one in dipped if (one["workload"], one["name"]) == (window.workload, window.name)]
    named = {signal["drive"] for one in here for signal in one["signals"]}
    signals = [one for one in scenery.signals(window) if one.drive not in named]
    by_drive = {drive: [one for one in signals if one.drive == drive] for drive in scenery.drives}
    return [_drive_episode(scenery, window, own) for own in by_drive.values() if own]


def _told_of_run(scenery: Scenery, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns one episode, outside the loads or at an unknown time, for each drive with grown counters that no episode has."""
    named = {signal["drive"] for one in found for signal in one["signals"] if signal["kind"] == "counter"}
    signals = throttling.signals_of_run(scenery.tracks, scenery.drives, scenery.facts)
    by_drive = {drive: [one for one in signals if one.drive == drive] for drive in scenery.drives if drive not in named}
    return [_drive_episode(scenery, None, own) for own in by_drive.values() if own]


def _drive_episode(scenery: Scenery, window: Window | None, signals: list[Signal]) -> dict[str, Any]:
    """An episode by the drive's word alone: with no depth and no loss."""
    since = min((one.since_utc_s for one in signals if one.since_utc_s is not None), default=None)
    start = max(0.0, since - window.start_s) if window and since is not None else None
    unknown = ("end_s", "end_utc_s", "duration_s", "depth_fraction", "level_bytes_per_s", "reference_bytes_per_s")
    return {
        "workload": window.workload if window else None,
        "name": window.name if window else None,
        "kind": DRIVE,
        "start_s": start,
        "start_utc_s": since,
        **dict.fromkeys((*unknown, "lost_bytes", "ended", "recovery_s")),
        "time_to_onset_s": start,
        **_evidence(throttling.verdict_of(scenery.tracks, scenery.drives, signals)),
    }


def _contradiction(episode: dict[str, Any]) -> str:
    """The drive's word against the rate's."""
    said = "; ".join(signal["text"] for signal in episode["signals"])
    where = (
        f"under {episode['workload']}: {episode['name']}"
        if episode["workload"]
        else "outside of the loads, or at an unknown time"
    )
    return f"{said} {where}, and the rate shows no dip with it"


def _processors(scenery: Scenery, window: Window) -> list[str]:
    """Processors that were throttled for heat under a load: no throttling of a drive, and a reason to doubt the load."""
    said = []
    for name, whose in (("core_throttle_count", "the cores of processor"), ("package_throttle_count", "processor")):
        for package, track in scenery.tracks.of("cpu_throttle", name).items():
            growth = track.growth(window.start_s, window.end_s)
            if growth is not None and growth > 0:
                said.append(
                    f"{whose} {package} counted throttling for heat {growth:.0f} times under {window.workload}: {window.name}"
                )
    return said


def _release(scenery: Scenery, start_s: float, end_s: float) -> float | None:
    """Says when the commanded hazards were released within the episode, give or take the difference of two clocks."""
    times = [
        event.time_s
        for event in scenery.events
        if event.kind == "hazard" and event.data.get("released")
        if start_s <= event.time_s <= end_s + attribution.HAZARD_S
    ]
    return max(times, default=None)
