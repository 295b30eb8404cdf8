"""The stretches of a run in which a workload wrote at a steady pace, each with its throughput series.

Two sources: daqwriter's own records (phases record and write), and what a results document lists under `sustained`:
[{"name", "start_utc_s", "end_utc_s"}], on the candidate's clock; there the counters of the target's device give the series. Such a
load may state its own rate of writing in `own`, [[utc_s, B/s], ...]: the difference is what others wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from daq_bench.bench_model.bundle.files import read_json
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks, rates, spacing_s
from daq_bench.bench_model.documents.run import Run, TargetOfRun

STEP_S = 1.0
STILL_GAP_S = 5.0  # daqwriter's records are 0.1 s apart: a longer silence is the end of one and the begin of another
DAQWRITER_FIELDS = {"record": "stored_bytes", "write": "written_bytes"}


@dataclass(frozen=True)
class Window:
    """`start_s` and `end_s` on the candidate's clock; `rates` in B/s, one per `step_s` from `start_s`."""

    workload: str
    name: str
    start_s: float
    end_s: float
    source: str
    rates: tuple[float, ...]
    step_s: float = STEP_S
    own: Track | None = None  # the workload's own account, where the series is the device's

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s


def of_bundle(bundle: Path, run: Run, tracks: Tracks) -> list[Window]:
    """All windows of a run in the order of time."""
    found = [*_daqwriter(tracks), *_sustained(bundle, run.target, tracks)]
    return sorted((window for window in found if window.rates), key=lambda window: window.start_s)


def _daqwriter(tracks: Tracks) -> Iterator[Window]:
    for phase, field in DAQWRITER_FIELDS.items():
        track = tracks.get("daqwriter", phase, field)
        if track is None:
            continue
        breaks = np.flatnonzero((np.diff(track.times_s) > STILL_GAP_S) | (np.diff(track.values) < 0)) + 1
        for number, index in enumerate(np.split(np.arange(len(track.times_s)), breaks), start=1):
            part = Track(track.times_s[index], track.values[index])
            start, end = float(part.times_s[0]), float(part.times_s[-1])
            series = tuple(rates(part, start, end, STEP_S))
            yield Window("daqwriter", f"{phase} {number}", start, end, f"daqwriter {field}", series)


def _sustained(bundle: Path, target: TargetOfRun, tracks: Tracks) -> Iterator[Window]:
    counter, source = target_counter(target, tracks)
    if counter is None:
        return
    step = max(STEP_S, spacing_s(counter))
    for file in sorted((bundle / "results").glob("*.json")):
        document = read_json(bundle, f"results/{file.name}")
        for one in document.get("sustained", []) if isinstance(document, dict) else []:
            start, end = float(one["start_utc_s"]), float(one["end_utc_s"])
            series = tuple(rates(counter, start, end, step))
            first = max(start, float(counter.times_s[0]))
            pairs = np.asarray(one.get("own") or [], dtype=np.float64).reshape(-1, 2)
            own = Track(pairs[:, 0], pairs[:, 1]) if len(pairs) else None
            yield Window(file.stem, one["name"], first, end, source, series, step, own)


def target_counter(target: TargetOfRun, tracks: Tracks) -> tuple[Track | None, str]:
    """The counter of bytes written to the run's target: of the device beneath, else the sum over its drives.

    The sum is the fallback for an array whose own counters stand still (older kernels count none for some levels): with redundancy
    it is a multiple of what was written, whose dips are the same."""
    device = target.device
    own = tracks.get("block_device", device.name, "written_bytes") if device else None
    if device and own is not None and len(own.times_s) > 1 and own.values[-1] > own.values[0]:
        return own, f"block_device {device.name} written_bytes"
    found = [track for name in target.names if (track := tracks.get("block_device", name, "written_bytes")) is not None]
    if not found or len(found) < len(target.drives) or len(found[0].times_s) < 2:
        return None, ""
    times = found[0].times_s
    total = np.sum([np.interp(times, track.times_s, track.values) for track in found], axis=0)
    return Track(times, total), f"block_device {'+'.join(target.names)} written_bytes"
