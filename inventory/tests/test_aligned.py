"""A run's series on the clock that begins with its load."""

from __future__ import annotations

from pathlib import Path

import pytest
from daq_bench.audit.good.small_run import drive, scenario, some_run, target

from daq_bench.bench_model.behaviour import aligned
from daq_bench.bench_model.behaviour.aligned import EPOCH_NS, WHOLE_RUN, AlignedPoint

RUN = some_run(
    scenario=scenario(parameters={"workloads": {"snb_record": {}, "block_scan": {}}}),
    target=target(drive("nvme0n1"), device=drive("md0")),
)
BEGIN_S = 1_769_860_800.25  # not on a whole second, as triggers are not
SECOND = 10**9


def at(seconds: float) -> int:
    return round((BEGIN_S + seconds) * 1e9)


def record(begin_s: float, length_s: int, bytes_per_s: int) -> list[str]:
    """daqwriter's own lines, ten a second, the first an interval after the trigger; a drain of half a second."""
    lines = []
    for tenth in range(1, 10 * length_s + 6):
        phase = "record" if tenth <= 10 * length_s else "drain"
        stored = min(tenth, 10 * length_s) * bytes_per_s // 10
        lines.append(
            f"daqwriter,command=minidaq,phase={phase},run=r offered_bytes={stored}i,stored_bytes={stored}i,"
            f"backlog_bytes={tenth}i,elapsed_s={tenth / 10} {at(begin_s + tenth / 10)}"
        )
    return lines


def machine(first_s: int, last_s: int) -> list[str]:
    """Once a second: CPU, two drives and one outside the target, a temperature, the BMC's power."""
    lines = []
    for second in range(first_s, last_s):
        now = at(second + 0.5)
        lines += [
            f"cpu,core=total,run=r busy_fraction=0.5,system_fraction=0.25 {now}",
            f"block_device,device=md0,run=r written_bytes={1000 * (second + 100)}i,write_latency_s=0.001 {now}",
            f"block_device,device=nvme0n1,run=r written_bytes={500 * (second + 100)}i {now}",
            f"block_device,device=sdz,run=r written_bytes=7i {now}",
            f"temperature,chip=nvme,device=nvme0n1,label=Composite,run=r,sensor=s temperature_degc={40 + second} {now}",
            f"ipmi_power,run=r power_w=300.5 {now}",
        ]
    return lines


def bundle(folder: Path, lines: list[str], events: str = "") -> Path:
    (folder / "telemetry").mkdir()
    (folder / "results").mkdir()
    (folder / "telemetry" / "points.lp").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "events.jsonl").write_text(events, encoding="utf-8")
    return folder


def fields_at(points: list[AlignedPoint], load: str, device: str, second: int) -> dict[str, float]:
    (found,) = [p for p in points if (p.load, p.device, p.time_ns) == (load, device, EPOCH_NS + second * SECOND)]
    return found.fields


def test_each_record_begins_at_the_epoch(tmp_path: Path) -> None:
    """Two records with counters of their own, each from its trigger; the drives' series on the same clock."""
    lines = [*machine(-20, 200), *record(0, 5, 1_000_000), *record(100, 3, 2_000_000)]
    points = aligned.points(bundle(tmp_path, lines), RUN)
    assert {point.load for point in points} == {"record 1", "record 2"}
    assert {point.device for point in points} == {"", "md0", "nvme0n1"}
    for load, rate, length_s in (("record 1", 1e6, 5), ("record 2", 2e6, 3)):
        for second in range(length_s):
            assert fields_at(points, load, "", second)["stored_bytes_per_s"] == pytest.approx(rate)
        assert "stored_bytes_per_s" not in fields_at(points, load, "", -1)
        assert fields_at(points, load, "", length_s)["stored_bytes_per_s"] == pytest.approx(0)
    one = fields_at(points, "record 1", "", 2)
    assert (one["busy_fraction"], one["system_fraction"], one["power_w"]) == (0.5, 0.25, 300.5)
    assert one["backlog_bytes"] == 30  # the largest within the second
    assert fields_at(points, "record 1", "nvme0n1", 2)["temperature_degc"] == 42
    assert fields_at(points, "record 2", "nvme0n1", 2)["temperature_degc"] == 142
    drive = fields_at(points, "record 1", "md0", 2)
    assert drive == pytest.approx({"written_bytes_per_s": 1000.0, "write_latency_s": 0.001})
    times = [point.time_ns - EPOCH_NS for point in points if point.load == "record 1"]
    assert min(times) == -10 * SECOND
    assert max(times) in (33 * SECOND, 34 * SECOND)  # the end is rounded down to a whole step


def test_a_long_load_gets_longer_steps(tmp_path: Path) -> None:
    """A night of steady state is no million of points."""
    tenths = range(0, 3 * 3600 * 10, 20)
    lines = [f"daqwriter,command=write,phase=write,run=r written_bytes={t}i,elapsed_s={t / 10} {at(t / 10)}" for t in tenths]  # fmt: skip
    lines += [f"cpu,core=total,run=r busy_fraction=0.5,system_fraction=0.1 {at(t)}" for t in range(3 * 3600)]
    points = aligned.points(bundle(tmp_path, lines), RUN)
    assert {point.load for point in points} == {"write 1"}
    assert len(points) <= aligned.POINTS_MAX
    assert points[1].time_ns - points[0].time_ns == 4 * SECOND


def test_a_run_without_a_sustained_load_is_aligned_on_its_first_workload(tmp_path: Path) -> None:
    event = '{{"time_utc": "2026-01-31T12:00:{:02}.000Z", "kind": "phase", "source": "{}", "text": "", "data": {{}}}}\n'
    events = "".join(event.format(s, name) for s, name in ((1, "provision"), (5, "block_scan"), (9, "verify")))
    points = aligned.points(bundle(tmp_path, machine(-20, 60), events), RUN)
    assert {point.load for point in points} == {WHOLE_RUN}
    # The scan began at 12:00:05, 4.75 s after BEGIN_S: the sample of 4.5 s lies in the step before.
    assert fields_at(points, WHOLE_RUN, "nvme0n1", -1)["temperature_degc"] == 44


def test_a_run_that_was_never_watched_has_nothing(tmp_path: Path) -> None:
    assert aligned.points(tmp_path, RUN) == []
    (tmp_path / "telemetry").mkdir()
    (tmp_path / "telemetry" / "points.lp").touch()
    assert aligned.points(tmp_path, RUN) == []


def test_the_longest_loads_are_kept(tmp_path: Path) -> None:
    """A scan has hundreds of points that nobody compares second by second."""
    lines = [line for number in range(12) for line in record(100 * number, 1 + number % 12, 1000)]
    loads = {point.load for point in aligned.points(bundle(tmp_path, lines), RUN)}
    assert loads == {f"record {number}" for number in range(5, 13)}
