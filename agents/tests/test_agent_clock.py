"""A machine's clock that is set forward or back: found, told, and no point in another's place.

The clocks are injected: CLOCK_REALTIME has no name space of its own, so that a real step would hit everything else that
runs on the machine, the test's neighbours and their time-outs included.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest
from agent_helpers import by_tag, spooled
from hypothesis import given
from hypothesis import strategies as st

from daq_bench.telemetry_agent.agent import Agent, Settings
from daq_bench.telemetry_agent.base.clock import CLOCK, StampClock
from daq_bench.telemetry_agent.base.point import Point
from daq_bench.telemetry_agent.collectors.workload import Workload
from daq_bench.telemetry_agent.reading import collector as collector_module

S = 1_000_000_000
T0 = 1_700_000_000 * S


class Hands:
    """Both clocks of a machine; `set` is what an administrator or NTP does."""

    def __init__(self) -> None:
        self.wall_ns, self.monotonic_ns = T0, 5 * S

    def run(self, duration_s: float, rate: float = 1.0) -> None:
        """Time passes; `rate` is the wall clock's, when it is slewed."""
        self.monotonic_ns += int(duration_s * S)
        self.wall_ns += int(duration_s * S * rate)

    def set(self, step_s: float) -> None:
        """A step."""
        self.wall_ns += int(step_s * S)

    def clock(self) -> StampClock:
        """An agent's clock that looks at these."""
        return StampClock(lambda: self.wall_ns, lambda: self.monotonic_ns)


@pytest.mark.parametrize("step_s", [-3600.0, -5.0, -0.2, 0.2, 5.0, 86400.0])
def test_a_step_is_found_once_with_its_size(step_s: float) -> None:
    """At the next tick, with the time and the sign; afterwards all is quiet."""
    hands = Hands()
    clock = hands.clock()
    for _ in range(10):
        assert clock.check() is None
        hands.run(0.1)
    hands.set(step_s)
    assert clock.check() == pytest.approx(step_s)
    hands.run(0.1)
    assert clock.check() is None
    (step,) = clock.summary()["steps"]
    assert step["step_s"] == pytest.approx(step_s)
    assert step["utc"].endswith("Z")
    assert clock.take_unreported_s() == pytest.approx(step_s)
    assert clock.take_unreported_s() is None


@pytest.mark.parametrize("period_s", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("rate", [1.0005, 0.9995, 1.083, 0.917])
def test_slewing_is_no_step(period_s: float, rate: float) -> None:
    """Neither the kernel's 500 ppm nor chrony's 8.3 %."""
    hands = Hands()
    clock = hands.clock()
    for _ in range(200):
        hands.run(period_s, rate)
        assert clock.check() is None


def test_being_put_aside_between_the_two_clocks_is_no_step() -> None:
    """A busy machine takes the processor away between two readings."""
    hands = Hands()
    aside = iter([0, 0, 300_000_000, 0, 0, 300_000_000, 0] + [0] * 100)

    def wall_ns() -> int:
        hands.run(next(aside) / S)
        return hands.wall_ns

    clock = StampClock(wall_ns, lambda: hands.monotonic_ns)
    for _ in range(20):
        assert clock.check() is None
        hands.run(0.1)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("run"), st.floats(0, 2)),
            st.tuples(st.just("set"), st.floats(-100, 100)),
            st.tuples(st.just("check"), st.just(0.0)),
        ),
        max_size=60,
    )
)
def test_stamps_always_increase(moves: list[tuple[str, float]]) -> None:
    """Whatever the clock does between two stamps, and whether or not somebody looked meanwhile."""
    hands = Hands()
    clock = hands.clock()
    stamps = [clock.stamp_ns()]
    for what, size in moves:
        if what == "check":
            clock.check()
        else:
            getattr(hands, what)(size)
        stamps.append(clock.stamp_ns())
    assert all(later > earlier for earlier, later in itertools.pairwise(stamps))


def test_after_a_step_back_time_goes_on_and_a_step_forward_ends_it() -> None:
    """The stamps keep the monotonic clock's pace, not that of a clock that repeats itself."""
    hands = Hands()
    clock = hands.clock()
    clock.check()
    first = clock.stamp_ns()
    hands.set(-10)
    hands.run(1)
    assert clock.stamp_ns() - first == pytest.approx(1 * S, abs=1000)
    assert clock.summary()["stamps_ahead_s"] == pytest.approx(10)
    hands.set(10)
    hands.run(1)
    clock.check()
    assert clock.stamp_ns() == hands.wall_ns
    assert clock.summary()["stamps_ahead_s"] == 0


def test_a_restart_after_a_step_back_goes_on_behind_the_spool() -> None:
    """The earlier agent's stamps are in the file: a new one does not begin before them, and says so."""
    hands = Hands()
    clock = hands.clock()
    clock.continue_after(T0 + 30 * S)
    assert clock.stamp_ns() > T0 + 30 * S
    assert clock.summary()["steps"][0]["step_s"] == pytest.approx(-30)
    quiet = hands.clock()
    quiet.continue_after(T0 - 1)
    assert quiet.summary()["step_count"] == 0
    assert quiet.stamp_ns() == T0


def test_an_agent_whose_clock_is_set_back_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of an agent but the wall clock is real: each series' times increase, and summary, point and warning tell."""
    offset_ns = 0
    clock = StampClock(lambda: time.time_ns() + offset_ns)
    for module in ("agent", "scheduling.scheduler"):
        monkeypatch.setattr(f"daq_bench.telemetry_agent.{module}.CLOCK", clock)
    monkeypatch.setattr(collector_module, "CLOCK", clock)
    agent = Agent(Settings(tmp_path, period_s=0.1))
    agent.start()
    time.sleep(1.2)
    offset_ns = -30 * S
    time.sleep(2.5)
    offset_ns = 7 * S
    time.sleep(2.2)
    summary = agent.finish()
    points = spooled(tmp_path)
    series: dict[tuple[str, object], list[int]] = {}
    for point in points:
        series.setdefault((point.measurement, point.tags), []).append(point.time_ns)
    for name, times in series.items():
        assert all(later > earlier for earlier, later in itertools.pairwise(times)), name
    assert len({(point.measurement, point.tags, point.time_ns) for point in points}) == len(points)
    assert [step["step_s"] for step in summary["clock"]["steps"]] == [
        pytest.approx(-30, abs=0.1),
        pytest.approx(37, abs=0.1),
    ]
    told = [
        p.fields["clock_step_s"] for p in points if p.measurement == "telemetry_agent" and "clock_step_s" in p.fields
    ]
    assert told == [pytest.approx(-30, abs=0.1), pytest.approx(37, abs=0.1)]
    warnings = capsys.readouterr().err
    assert "was set back by 30" in warnings
    assert "was set forward by 37" in warnings
    # Deadlines follow the monotonic clock: the steps of 30 and 37 s cost none. A busy machine may be late for a few of its own.
    for entry in summary["collectors"]:
        assert entry["status"] != "ok" or entry["missed_samples"] <= max(2, entry["expected_samples"] // 2), entry
    assert CLOCK.summary()["step_count"] == 0, "the machine's own clock stood"


def test_records_of_a_workload_after_a_step_back_survive_a_restart_of_the_agent(tmp_path: Path) -> None:
    """Old by their times and new by their number: they are passed on, not taken for spooled ones."""
    path = tmp_path / "workload.lp"
    path.write_text(
        "".join(f"daqwriter,phase=record stored_bytes={n}i {t}\n" for n, t in enumerate([100, 200, 50, 60]))
    )
    collector = Workload(1.0, path, after_ns=200, spooled=2)
    points: list[Point] = collector.parse(collector.read(), None)
    assert [point.time_ns for point in points] == [50, 60]
    assert by_tag(points, "phase")["record"] == {"stored_bytes": 3}
