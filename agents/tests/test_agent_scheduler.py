"""Deadlines: absolute, independent of each other, and all accounted for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from agent_helpers import wait_for

from daq_bench.telemetry_agent.base.point import Point
from daq_bench.telemetry_agent.collectors.agent_status import AgentStatus
from daq_bench.telemetry_agent.reading.collector import Reading, Unsupported, reading_now
from daq_bench.telemetry_agent.scheduling.scheduler import Scheduler


class Fake:
    """A collector whose reading is a function."""

    def __init__(self, name: str, period_s: float, action: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.period_s = period_s
        self._action = action

    def read(self) -> Reading:
        """Do what the test asks for."""
        self._action()
        return reading_now({})

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per sample."""
        return [Point("fake", (("name", self.name),), {"x": 1}, reading.time_ns)]


def run(
    collectors: list[Fake], duration_s: float, until: tuple[str, int] | None = None
) -> tuple[dict[str, dict[str, Any]], list[Point]]:
    """Summaries by name, and all points, of a run so long; or longer, until the named collector has so many samples:
    a busy machine is late, and a collector that another one blocks never gets there."""
    points: list[Point] = []
    scheduler = Scheduler(points.extend)
    for collector in collectors:
        scheduler.add(collector)

    def by_name() -> dict[str, dict[str, Any]]:
        return {entry["name"]: entry for entry in scheduler.summary()}

    scheduler.start()
    time.sleep(duration_s)
    if until:
        name, samples = until
        wait_for(lambda: by_name()[name]["collected_samples"] >= samples, f"{samples} samples of {name}", 60)
    scheduler.stop(0.2)
    return by_name(), points


def test_samples_follow_absolute_deadlines_and_end_with_a_final_one() -> None:
    """One deadline each 0.1 s and a final sample, although each takes 50 ms of work: what a busy machine missed is counted."""
    started_s = time.monotonic()
    summary, points = run([Fake("steady", 0.1, lambda: time.sleep(0.05))], 1.05)
    most = int((time.monotonic() - started_s) / 0.1) + 2
    entry = summary["steady"]
    assert 12 <= entry["expected_samples"] <= most
    assert entry["collected_samples"] == entry["points"] == len(points)
    assert entry["missed_samples"] == entry["expected_samples"] - entry["collected_samples"]
    assert entry["longest_gap_s"] > 0.1


def test_silence_ends_with_sampling() -> None:
    """The delivery after the last sample may take long; that is no gap in the telemetry."""
    scheduler = Scheduler(lambda points: None)
    scheduler.add(Fake("steady", 0.1))
    scheduler.start()
    time.sleep(0.3)
    scheduler.stop(0.2)
    before = scheduler.summary()[0]["longest_gap_s"]
    time.sleep(1.0)
    assert scheduler.summary()[0]["longest_gap_s"] == before


def test_a_slow_collector_misses_its_own_deadlines_only() -> None:
    """0.25 s of work every 0.1 s: the slow one counts what it missed, the other goes on meanwhile."""
    summary, _ = run([Fake("slow", 0.1, lambda: time.sleep(0.25)), Fake("fast", 0.1)], 1.05, until=("fast", 12))
    slow, fast = summary["slow"], summary["fast"]
    assert slow["missed_samples"] >= 4
    assert fast["missed_samples"] < slow["missed_samples"]
    assert slow["expected_samples"] == slow["collected_samples"] + slow["missed_samples"]
    assert slow["longest_gap_s"] >= 0.25
    assert slow["duration_s_max"] >= 0.25


def test_a_hanging_collector_is_left_behind_and_counted() -> None:
    """It neither blocks the end nor looks healthy."""
    release = threading.Event()
    started_s = time.monotonic()

    def hang() -> None:
        release.wait(400)

    summary, _ = run([Fake("hang", 0.1, hang), Fake("fast", 0.1)], 0.55, until=("fast", 6))
    assert time.monotonic() - started_s < 200
    release.set()
    assert summary["hang"]["collected_samples"] == 0
    assert summary["hang"]["missed_samples"] >= 5
    assert summary["hang"]["longest_gap_s"] >= 0.5


def test_a_hanging_fast_collector_gives_the_others_a_thread_of_their_own_and_may_come_back() -> None:
    """Within two looks of the status collector; every deadline of all of them stays accounted for."""
    gate, points, named = threading.Event(), list[Point](), list[str]()
    hangs_at, count = 3, 0

    def stuck() -> None:
        nonlocal count
        count += 1
        if count == hangs_at:
            gate.wait(300)

    before, hanging, after, prompt = (
        Fake("before", 0.05),
        Fake("hanging", 0.05, stuck),
        Fake("after", 0.05),
        Fake("turn", 0.2),
    )
    for fast in (before, hanging, after):
        fast.pace = "fast"  # type: ignore[attr-defined]
    prompt.pace = "prompt"  # type: ignore[attr-defined]
    scheduler = Scheduler(points.extend, hangs=named.append)
    for collector in (before, hanging, after, prompt):
        scheduler.add(collector)
    scheduler.add_status(AgentStatus(0.1, scheduler.snapshot))

    def collected(name: str) -> int:
        return int({entry["name"]: entry for entry in scheduler.summary()}[name]["collected_samples"])

    started_s = time.monotonic()
    scheduler.start()
    running_s = time.monotonic()
    wait_for(lambda: min(collected(name) for name in ("before", "after", "turn")) >= 60, "the others go on", 60)
    assert named == ["hanging"]
    assert collected("hanging") < hangs_at
    gate.set()
    wait_for(lambda: collected("hanging") >= hangs_at + 5, "it comes back")
    ran_s = time.monotonic() - running_s
    assert scheduler.stop(5.0) == []
    elapsed_s = time.monotonic() - started_s
    for entry in scheduler.summary():
        own = [point for point in points if ("name", entry["name"]) in point.tags]
        assert entry["name"] not in ("before", "after", "hanging", "turn") or len(own) == entry["collected_samples"]
        assert entry["expected_samples"] == entry["collected_samples"] + entry["missed_samples"]
        # Deadline 0, one each period, and the last sample of all.
        period_s = entry["period_s"]
        assert ran_s / period_s <= entry["expected_samples"] <= elapsed_s / period_s + 2, entry
    others = {entry["name"]: entry for entry in scheduler.summary()}
    assert max(others[name]["longest_gap_s"] for name in ("before", "after")) < 5 < others["hanging"]["missed_samples"]


def test_a_failing_collector_keeps_its_reason_and_does_not_disturb_others() -> None:
    """Failed samples are missed samples."""

    def fail() -> None:
        raise OSError("sensor on fire")

    summary, points = run([Fake("bad", 0.1, fail), Fake("good", 0.1)], 0.35)
    assert summary["bad"]["status"] == "failing"
    assert summary["bad"]["detail"] == "OSError: sensor on fire"
    assert summary["bad"]["missed_samples"] == summary["bad"]["expected_samples"] >= 5
    assert {dict(point.tags)["name"] for point in points} == {"good"}


def test_unsupported_is_final_at_first_but_a_failure_later() -> None:
    """A drive that vanishes during the run is not "unsupported"."""
    calls = {"late": 0}

    def absent() -> None:
        raise Unsupported("no such sensor")

    def vanishes() -> None:
        calls["late"] += 1
        if calls["late"] > 2:
            raise Unsupported("gone")

    summary, _ = run([Fake("absent", 0.1, absent), Fake("late", 0.1, vanishes)], 0.55)
    assert summary["absent"]["status"] == "unsupported"
    assert summary["absent"]["expected_samples"] == summary["absent"]["missed_samples"] == 0
    assert summary["late"]["status"] == "failing"
    assert summary["late"]["collected_samples"] == 2


def test_status_reports_an_unsupported_collector_exactly_once() -> None:
    """Reported, never silent, and not every second."""

    def absent() -> None:
        raise Unsupported("no such sensor")

    points: list[Point] = []
    scheduler = Scheduler(points.extend)
    scheduler.add(Fake("absent", 0.1, absent))
    scheduler.add(Fake("good", 0.1))
    scheduler.add_status(AgentStatus(0.1, scheduler.snapshot))
    scheduler.start()
    wait_for(lambda: sum(dict(p.tags).get("collector") == "good" for p in points) >= 3, "three status samples")
    scheduler.stop(1.0)
    absent_points = [point for point in points if dict(point.tags).get("collector") == "absent"]
    assert [dict(point.fields) for point in absent_points] == [{"supported": False, "success": False}]
    good = [point.fields for point in points if dict(point.tags).get("collector") == "good"]
    assert all(fields["success"] and fields["supported"] for fields in good)
    assert 0.0 <= float(good[0]["staleness_s"]) < 10.0


def test_fast_samples_are_read_at_their_deadlines_and_parsed_together() -> None:
    """Ten a second are handed over once a second, each with its own time; what is under way is neither collected nor missed."""
    batches: list[list[Point]] = []
    told: list[int] = []
    scheduler = Scheduler(batches.append, batches.append, lambda: told.append(len(batches)))
    fast = Fake("fast", 0.05)
    fast.pace = "fast"
    scheduler.add(fast)
    scheduler.start()
    time.sleep(0.3)
    (entry,) = scheduler.summary()
    assert entry["collected_samples"] == 0 or batches  # on a busy machine the first hand-over comes meanwhile
    wait_for(lambda: bool(told), "the first hand-over")
    assert told[0] == len(batches[: told[0]]) > 0
    scheduler.stop(1.0)
    (entry,) = scheduler.summary()
    assert entry["collected_samples"] == len(batches) == entry["expected_samples"] - entry["missed_samples"]


def test_a_prompt_collector_takes_turns_with_the_fast_ones() -> None:
    points: list[Point] = []
    scheduler = Scheduler(points.extend)
    threads: set[str] = set()

    def seen() -> None:
        threads.add(threading.current_thread().name)

    fast, prompt, late = Fake("fast", 0.05, seen), Fake("prompt", 0.2, seen), Fake("late", 0.2, seen)
    fast.pace, prompt.pace, late.pace = "fast", "prompt", "prompt"
    for one in (fast, prompt, late):
        scheduler.add(one)
    scheduler.start()
    wait_for(lambda: len(points) > 20, "a first hand-over")
    scheduler.stop(1.0)
    assert threads == {"fast"}
    counts = {entry["name"]: entry["expected_samples"] for entry in scheduler.summary()}
    assert 3 <= counts["fast"] / counts["prompt"] <= 5 and abs(counts["prompt"] - counts["late"]) <= 1
    assert (prompt.period_s, late.period_s) == (0.2, 0.2)


def test_a_failure_between_two_readings_counts_in_its_order() -> None:
    """The last sample says how a collector stands, although it failed at once and the good ones were parsed later."""
    calls = iter([False, False, True])

    def reads() -> None:
        if next(calls, True):
            raise OSError("gone")

    points: list[Point] = []
    scheduler = Scheduler(points.extend)
    fast = Fake("fast", 0.05, reads)
    fast.pace = "fast"
    scheduler.add(fast)
    scheduler.start()
    time.sleep(0.25)
    scheduler.stop(1.0)
    (entry,) = scheduler.summary()
    assert len(points) == entry["collected_samples"] == 2
    assert entry["status"] == "failing" and "gone" in entry["detail"] and entry["missed_samples"] >= 1
