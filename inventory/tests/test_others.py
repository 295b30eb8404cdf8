"""Use by others while a load ran: only what was watched, and what two accounts agree on."""

from __future__ import annotations

import numpy as np
import pytest

from daq_bench.bench_model.behaviour.load_windows import Window
from daq_bench.bench_model.behaviour.others import ALL, of_windows
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks
from daq_bench.bench_model.documents.derived import OthersOfWindow

RATE = 2e9
RECORD = Window("daqwriter", "record 1", 100.0, 200.0, "daqwriter stored_bytes", (RATE,) * 100)
TIMES = np.arange(0.0, 300.0, 2.0)


def track(values: float | np.ndarray, times: np.ndarray = TIMES) -> Track:
    return Track(times, np.zeros(len(times)) + values)


def seen(
    cpu: Track, busy: float | None = 0.9, written: float = 0.0, on_device: float = RATE, window: Window = RECORD
) -> list[OthersOfWindow]:
    found = {
        ("process", ALL, "cpu_fraction"): cpu,
        ("process", ALL, "written_bytes_per_s"): track(written),
        ("process", "stress", "cpu_fraction"): track(0.6),
        ("process", "cron", "cpu_fraction"): track(0.3, np.array([150.0])),
        ("cpu", "total", "steal_fraction"): track(0.04),
    }
    if busy is not None:
        found["cpu", "total", "busy_fraction"] = track(busy)
    return list(of_windows([window], Tracks(found), track(on_device * TIMES)))


def test_a_watched_load_has_its_shares_and_the_foremost_names() -> None:
    (one,) = seen(track(0.7))
    assert (one.samples, one.cpu_fraction, one.steal_fraction) == (51, pytest.approx(0.7), pytest.approx(0.04))
    assert one.names == ["stress 60%"]  # cron took 0.3 in one sample of 51


@pytest.mark.parametrize(("of_device", "share"), [(True, 0.5), (False, 0.0)])
def test_where_no_process_tells_what_it_wrote_the_devices_own_counter_does(of_device: bool, share: float) -> None:
    tracks = Tracks({("process", ALL, "cpu_fraction"): track(0.0), ("cpu", "total", "busy_fraction"): track(0.5)})
    (one,) = of_windows([RECORD], tracks, track(1.5 * RATE * TIMES), of_device)
    assert one.written_fraction == pytest.approx(share)


def written_by(*names: str, cpu: float = 0.004) -> OthersOfWindow:
    """Half of what the load wrote, by each of these in turn: `dd oflag=direct` takes half a CPU of 128 for that."""
    of_names = {("process", name, "cpu_fraction"): track(cpu) for name in ("sshd", *names)}
    of_names |= {("process", name, "written_bytes_per_s"): track(0.5 * RATE / len(names)) for name in names}
    every = {"cpu_fraction": track(cpu * 2), "written_bytes_per_s": track(0.5 * RATE)}
    of_names |= {("process", ALL, field): one for field, one in every.items()}
    tracks = Tracks({**of_names, ("cpu", "total", "busy_fraction"): track(0.9)})
    (one,) = of_windows([RECORD], tracks, track(1.5 * RATE * TIMES))
    return one


def test_who_wrote_is_named_by_that_where_it_is_the_larger_share() -> None:
    assert written_by("dd").names == ["dd 50%"]
    assert written_by("dd", "rsync", "tar", "cp").names == ["cp 12%", "dd 12%", "rsync 12%"]
    assert written_by("dd", cpu=0.4).names == ["dd 40%", "sshd 40%"]  # of all CPUs, of which both took 80 %


def test_others_outside_of_the_load_do_not_count() -> None:
    (one,) = seen(track(np.where((TIMES < 100) | (TIMES > 200), 0.9, 0.0)))
    assert one.cpu_fraction == 0.0


@pytest.mark.parametrize(
    "times",
    [
        np.arange(0.0, 100.0, 2.0),  # not within the load
        np.array([120.0, 150.0, 180.0]),  # holes
        np.arange(100.0, 180.0, 2.0),  # silent at its end
        np.array([150.0]),
    ],
)
def test_a_load_that_was_not_watched_all_the_time_excuses_nothing(times: np.ndarray) -> None:
    assert seen(track(0.9, times)) == []


def test_processes_cannot_have_taken_more_than_the_cpus_were_busy() -> None:
    (one,) = seen(track(0.9), busy=0.2)
    assert one.cpu_fraction == pytest.approx(0.2)
    assert seen(track(0.9), busy=None) == []


@pytest.mark.parametrize(
    ("written", "on_device", "share"),
    [
        (0.0, 1.5 * RATE, 0.0),  # the file system's own
        (RATE, RATE, 0.0),  # on another device
        (RATE, 1.5 * RATE, 0.5),
        (0.2 * RATE, 3 * RATE, 0.2),
    ],
)
def test_writes_count_as_far_as_the_targets_device_saw_them(written: float, on_device: float, share: float) -> None:
    (one,) = seen(track(0.0), written=written, on_device=on_device)
    assert one.written_fraction == pytest.approx(share)
    device = Window("fio", "soak", 100.0, 200.0, "block_device nvme0n1 written_bytes", (RATE,) * 100)
    (unknown,) = seen(track(0.0), written=written, on_device=on_device, window=device)
    assert unknown.written_fraction == 0.0  # nobody says what the load wrote itself
