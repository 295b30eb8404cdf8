"""Small parts that everything rests on: turns, quantiles, the ledger."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daq_bench.telemetry_agent.base.quantiles import Quantiles
from daq_bench.telemetry_agent.reading.collector import Every, HeldFile
from daq_bench.telemetry_agent.spool.tally import Ledger, Thinned


def test_every_is_due_once_per_period_however_late_it_is_asked() -> None:
    """At absolute multiples: late ticks shift nothing, and a long silence is one turn."""
    every = Every(1.0)
    ticks = [100.0 + 0.1 * n + 0.02 * (n % 3) for n in range(50)]
    assert sum(every.due(tick) for tick in ticks) == 5
    assert not every.due(ticks[-1])
    assert every.due(200.0)
    assert [every.due(200.99), every.due(201.0), every.due(201.5)] == [False, True, False]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=200), st.floats(0.01, 1.0))
def test_quantiles_are_never_too_small_and_hardly_too_large(durations_s: list[float], share: float) -> None:
    """Within 1/16 and the microsecond."""
    quantiles = Quantiles()
    for duration_s in durations_s:
        quantiles.add(duration_s)
    exact = sorted(durations_s)[max(0, -(-int(share * len(durations_s) * 1e9) // 10**9) - 1)]
    found = quantiles.quantile_s(share)
    assert exact - 2e-6 <= found <= max(durations_s)
    assert quantiles.summary()["max"] == pytest.approx(max(durations_s), abs=1e-6)
    assert quantiles.quantile_s(1.0) <= max(durations_s)
    assert (
        found <= exact * 17 / 16 + 2e-6
        or found <= sorted(durations_s)[min(len(durations_s) - 1, int(share * len(durations_s)))] * 17 / 16 + 2e-6
    )


NAMES = st.sampled_from(["cpu", "smart", "block_device"])
MOVES = st.lists(
    st.tuples(st.sampled_from(["collect", "spool", "leave out", "thin"]), NAMES, st.integers(1, 9)), max_size=60
)


@given(MOVES)
def test_collected_is_spooled_thinned_and_unspooled_whatever_happens(moves: list[tuple[str, str, int]]) -> None:
    """For each measurement and in total; what is thinned was collected before."""
    ledger = Ledger()
    waiting = dict.fromkeys(("cpu", "smart", "block_device"), 0)
    for move, name, count in moves:
        entry = ledger.measurements().get(name, {"spooled": 0})
        if move == "collect":
            ledger.collect({name: count})
            waiting[name] += count
        elif move == "thin":
            some = min(count, entry["spooled"])
            ledger.thin(Thinned({name: some}, {name: some // 2}, 1, 2, "r"), from_file=True)
        else:
            some = min(count, waiting[name])
            waiting[name] -= some
            if move == "spool":
                ledger.spool({name: some})
            else:
                ledger.thin(Thinned({name: some}, {}, 1, 2, "r"), from_file=False)
    for name, entry in ledger.measurements().items():
        assert entry["collected"] == entry["spooled"] + entry["thinned"] + waiting[name]
        assert 0 <= entry["thinned_delivered"] <= entry["thinned"]
    totals = ledger.totals()
    assert totals["collected"] == totals["spooled"] + totals["thinned"] + sum(waiting.values())
    assert sum(thinning["points"] for thinning in ledger.thinnings()) == totals["thinned"]


def test_the_ledger_is_true_at_every_moment() -> None:
    """Looked at from another thread in the middle of things, nothing is counted twice or not at all."""
    ledger, stop = Ledger(), threading.Event()
    ledger.collect({"cpu": 1_000_000})

    def move() -> None:
        while not stop.is_set():
            ledger.spool({"cpu": 3})
            ledger.thin(Thinned({"cpu": 3}, {}, 1, 2, "r"), from_file=True)

    thread = threading.Thread(target=move)
    thread.start()
    try:
        for _ in range(2000):
            entry = ledger.measurements()["cpu"]
            assert entry["spooled"] in (0, 3)
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("size", [0, 10, 65535, 65536, 65537, 200_000])
def test_a_file_read_at_once_is_read_whole(tmp_path: Path, size: int) -> None:
    """Also when it is longer than one read."""
    path = tmp_path / "stat"
    path.write_text("x" * size)
    file = HeldFile(path, at_once=True)
    assert file.text() == "x" * size
    assert file.text() == "x" * size
