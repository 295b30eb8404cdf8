"""results/dips.json and results/throttling.json: every dip of every sustained load of a run, what it lost, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from daq_bench.bench_model.behaviour import attribution, dips, load_windows, smart_facts, throttling
from daq_bench.bench_model.behaviour.dips import Analysis, Dip
from daq_bench.bench_model.behaviour.load_windows import Window
from daq_bench.bench_model.behaviour.smart_facts import Facts
from daq_bench.bench_model.behaviour.throttling import Verdict
from daq_bench.bench_model.bundle import telemetry_tracks
from daq_bench.bench_model.bundle.files import read_structs
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks
from daq_bench.bench_model.documents import dips as documents
from daq_bench.bench_model.documents.dips import Signal, Throttled
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document, as_document
from daq_bench.candidate_kit.sizes import parse_size

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


def dips_of_bundle(bundle: Path, run: Run) -> Document:
    """results/dips.json."""
    return dips_document(Scenery.of_bundle(bundle, run))


def dips_document(scenery: Scenery) -> Document:
    windows = [_load(scenery, window, found) for window, found in scenery.analyses()]
    found = [dip for window in windows for dip in window.dips]
    analysed = [window for window in windows if window.reason is None]
    reason = None if analysed else (windows[0].reason if windows else NO_WINDOW)
    summary = documents.DipSummary(
        windows_analysed=len(analysed),
        dips=len(found) if analysed else None,
        unexplained=sum(dip.cause == attribution.UNKNOWN for dip in found) if analysed else None,
        lost_bytes=sum(dip.lost_bytes for dip in found) if analysed else None,
        deepest_fraction=max((dip.depth_fraction for dip in found), default=0.0) if analysed else None,
    )
    names = ("dips.count", "dips.unexplained_count", "dips.lost_bytes", "dips.deepest")
    return as_document(documents.Dips(1, RULE, windows, summary, dict.fromkeys(names, reason) if reason else {}))


def _load(scenery: Scenery, window: Window, found: Analysis) -> documents.Load:
    return documents.Load(
        workload=window.workload,
        name=window.name,
        start_utc_s=window.start_s,
        duration_s=window.length_s,
        source=window.source,
        step_s=window.step_s,
        mean_bytes_per_s=float(np.mean(window.rates)),
        reason=found.reason,
        noise=documents.Noise(float(found.noise.sigma), float(found.noise.memory)) if found.noise else None,
        dips=[_dip(scenery, window, dip) for dip in found.dips],
        patterns=[
            documents.Pattern(
                count=len(one.dips), **{name: getattr(one, name) for name in documents.Pattern.__struct_fields__[1:]}
            )
            for one in found.patterns
        ],
        level_changes=list(found.level_changes),
    )


def _head(window: Window, dip: Dip) -> dict[str, Any]:
    """The fields of a dip that both documents share: its times from the begin of its load and on the candidate's clock, and its size."""
    said = ("kind", "start_s", "end_s", "duration_s", "depth_fraction", "level_bytes_per_s", "reference_bytes_per_s")
    return {
        **{name: getattr(dip, name) for name in (*said, "lost_bytes", "ended")},
        "start_utc_s": window.start_s + dip.start_s,
        "end_utc_s": window.start_s + dip.end_s,
    }


def _dip(scenery: Scenery, window: Window, dip: Dip) -> documents.Dip:
    why = scenery.attributed(window, dip)
    return documents.Dip(
        **_head(window, dip), cause=why.cause, evidence=list(why.evidence), not_looked_at=list(why.unseen)
    )


def throttling_of_bundle(bundle: Path, run: Run) -> Document:
    """results/throttling.json."""
    return throttling_document(Scenery.of_bundle(bundle, run))


def throttling_document(scenery: Scenery) -> Document:
    """Episodes by rate and by the drives' own word. The number is null where there is none and not every drive says so."""
    loads = scenery.analyses()
    dipped = [one for window, found in loads for one in _episodes(scenery, window, found)]
    told = [one for window, _ in loads for one in _told(scenery, window, dipped)]
    told += _told_of_run(scenery, [*dipped, *told])
    episodes = sorted([*dipped, *told], key=lambda one: one.start_utc_s or math.inf)
    reason = "" if episodes else _unknown(scenery, loads)
    onsets = [one.time_to_onset_s for one in episodes if one.time_to_onset_s is not None]
    summary = documents.ThrottlingSummary(
        episodes=None if reason else len(episodes),
        time_to_onset_s=min(onsets, default=None),
        lost_bytes=None if reason or told else sum(one.lost_bytes or 0.0 for one in dipped),
    )
    return as_document(
        documents.Throttling(
            schema_version=1,
            rule=" ".join((throttling.__doc__ or "").partition("\n")[2].split()),
            drives=scenery.drives,
            watched=throttling.watched(scenery.tracks, scenery.drives),
            episodes=episodes,
            contradictions=[_contradiction(one) for one in told],
            processors=[text for window, _ in loads for text in _processors(scenery, window)],
            summary=summary,
            reasons=_reasons(summary, reason),
        )
    )


def _reasons(summary: documents.ThrottlingSummary, reason: str) -> dict[str, str]:
    why = (
        ("throttling.episodes", summary.episodes, reason),
        (
            "throttling.lost_bytes",
            summary.lost_bytes,
            reason or "a drive tells of throttling where the rate shows no dip",
        ),
        (
            "throttling.time_to_onset",
            summary.time_to_onset_s,
            reason or ("the onset has no known time" if summary.episodes else "no load throttled"),
        ),
    )
    return {name: text for name, value, text in why if value is None}


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


def _episodes(scenery: Scenery, window: Window, found: Analysis) -> list[Throttled]:
    made = []
    for dip, verdict in scenery.throttled_dips(window, found):
        release = _release(scenery, window.start_s + dip.start_s, window.start_s + dip.end_s)
        recovery = window.start_s + dip.end_s - release if dip.ended and release is not None else None
        made.append(_throttled(window, verdict, **_head(window, dip), time_to_onset_s=dip.start_s, recovery_s=recovery))
    return made


def _throttled(window: Window | None, verdict: Verdict, **said: Any) -> Throttled:
    """An episode; what is not said of it is not known."""
    unsaid = dict.fromkeys(Throttled.__struct_fields__)
    load = {"workload": window.workload, "name": window.name} if window else {}
    words = {"confidence": verdict.confidence, "signals": list(verdict.signals), "silent": list(verdict.silent)}
    return Throttled(**{**unsaid, **load, **said, **words})


def _told(scenery: Scenery, window: Window, dipped: list[Throttled]) -> list[Throttled]:
    """Returns one episode for each drive that gave signals under a load and that no episode of this load's rate names."""
    here = [one for one in dipped if (one.workload, one.name) == (window.workload, window.name)]
    named = {signal.drive for one in here for signal in one.signals}
    signals = [one for one in scenery.signals(window) if one.drive not in named]
    by_drive = {drive: [one for one in signals if one.drive == drive] for drive in scenery.drives}
    return [_drive_episode(scenery, window, own) for own in by_drive.values() if own]


def _told_of_run(scenery: Scenery, found: list[Throttled]) -> list[Throttled]:
    """Returns one episode, outside the loads or at an unknown time, for each drive with grown counters that no episode has."""
    named = {signal.drive for one in found for signal in one.signals if signal.kind == "counter"}
    signals = throttling.signals_of_run(scenery.tracks, scenery.drives, scenery.facts)
    by_drive = {drive: [one for one in signals if one.drive == drive] for drive in scenery.drives if drive not in named}
    return [_drive_episode(scenery, None, own) for own in by_drive.values() if own]


def _drive_episode(scenery: Scenery, window: Window | None, signals: list[Signal]) -> Throttled:
    """An episode by the drive's word alone: with no depth and no loss."""
    since = min((one.since_utc_s for one in signals if one.since_utc_s is not None), default=None)
    start = max(0.0, since - window.start_s) if window and since is not None else None
    verdict = throttling.verdict_of(scenery.tracks, scenery.drives, signals)
    return _throttled(window, verdict, kind=DRIVE, start_s=start, start_utc_s=since, time_to_onset_s=start)


def _contradiction(episode: Throttled) -> str:
    """The drive's word against the rate's."""
    said = "; ".join(signal.text for signal in episode.signals)
    where = (
        f"under {episode.workload}: {episode.name}"
        if episode.workload
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
