"""Was the machine alone while a load ran? CPU time and writes of other processes, and CPU time that a hypervisor took, from the telemetry.

A pure function of the bundle. A load counts as watched only where the agent read the processes within it, all the time: a share that
nobody measured excuses nothing. Two accounts have to agree: processes cannot have taken more than the CPUs were busy, nor written more to
the target than its device counted beyond what the load says of itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from daq_bench.bench_model.behaviour.load_windows import Window, target_counter
from daq_bench.bench_model.behaviour.load_windows import of_bundle as windows_of
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks
from daq_bench.bench_model.bundle.telemetry_tracks import of_bundle as tracks_of
from daq_bench.bench_model.documents.derived import Others, OthersOfWindow
from daq_bench.bench_model.documents.run import Run

NAME = "results/others.json"
ALL = "(all others)"
OF_DEVICE = "block_device {} written_bytes"  # what load_windows calls the device's own counter
SAMPLES_MIN = 3  # [P] fewer give no mean
SILENCE_S_MAX = 10.0  # [P] five of the agent's periods: more of a load than that was watched by nobody
NAMES_SHOWN = 3
NAMED_FROM = 0.01  # of all CPUs, or of what the load wrote


def of_bundle(bundle: Path, run: Run) -> Others | None:
    """results/others.json; None for a bundle whose agent did not read the processes (it is older, or could not)."""
    tracks = tracks_of(bundle)
    if tracks.get("process", ALL, "cpu_fraction") is None:
        return None
    counter, source = target_counter(run.target, tracks)
    device = run.target.device
    of_device = source == OF_DEVICE.format(device.name if device else "")
    windows = windows_of(bundle, run, tracks)
    return Others(1, list(of_windows(windows, tracks, counter, of_device)))


def of_windows(
    windows: Sequence[Window], tracks: Tracks, counter: Track | None, of_device: bool = True
) -> Iterator[OthersOfWindow]:
    """One entry for each load that was watched. `counter`: bytes written to the target, by its own device (`of_device`) or its drives'."""
    every, busy = tracks.get("process", ALL, "cpu_fraction"), tracks.get("cpu", "total", "busy_fraction")
    for window in windows:
        in_all = busy.mean(window.start_s, window.end_s) if busy else None
        if every is None or in_all is None:
            continue
        inside = every.times_s[(every.times_s >= window.start_s) & (every.times_s <= window.end_s)]
        edges = np.concatenate(([window.start_s], inside, [window.end_s]))
        if len(inside) < SAMPLES_MIN or float(np.diff(edges).max()) > SILENCE_S_MAX:
            continue
        steal = tracks.get("cpu", "total", "steal_fraction")
        cpu_fraction = min(in_all, every.mean(window.start_s, window.end_s) or 0.0)
        written, own = _written(window, tracks, counter, of_device)
        field, whole = ("written_bytes_per_s", own) if written > cpu_fraction else ("cpu_fraction", 1.0)
        foremost = _foremost(tracks, window, len(inside), field, whole)
        yield OthersOfWindow(
            workload=window.workload,
            name=window.name,
            start_s=window.start_s,
            end_s=window.end_s,
            samples=len(inside),
            cpu_fraction=cpu_fraction,
            steal_fraction=(steal.mean(window.start_s, window.end_s) if steal else None) or 0.0,
            written_fraction=written,
            names=[f"{name} {share:.0%}" for share, name in foremost[:NAMES_SHOWN] if share >= NAMED_FROM],
        )


def _foremost(tracks: Tracks, window: Window, samples: int, field: str, whole: float) -> list[tuple[float, str]]:
    """(share of `whole`, name) of the processes, the largest first. One that is not among the foremost in a sample took next to nothing in
    it: its mean is over all samples of the load."""
    of_name = tracks.of("process", field).items()
    sums = {name: float(track.between(window.start_s, window.end_s).sum()) for name, track in of_name if name != ALL}
    return sorted(
        ((total / samples / whole, name) for name, total in sums.items()), key=lambda pair: (-pair[0], pair[1])
    )


def _written(window: Window, tracks: Tracks, counter: Track | None, of_device: bool) -> tuple[float, float]:
    """(what others wrote, as far as the device counted more than the load's own, over the latter; the latter, B/s); 0 where not known.

    An agent that may not read what each process wrote leaves the device's account alone; drives' sums count redundancy, too."""
    track = tracks.get("process", ALL, "written_bytes_per_s")
    by_others = track.mean(window.start_s, window.end_s) if track else None
    on_device = counter.slope(window.start_s, window.end_s) if counter else None
    own: float | None = math.fsum(window.rates) / len(window.rates)
    if not window.source.startswith("daqwriter"):  # that series is the device's
        own = window.own.mean(window.start_s, window.end_s) if window.own else None
    if not own or on_device is None or (by_others is None and not of_device):
        return 0.0, 0.0
    return min(math.inf if by_others is None else by_others, max(0.0, on_device - own)) / own, own
