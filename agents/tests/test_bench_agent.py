"""Part `agent`: readings from the kernel and from the spool, criteria, and one short run of the real artefact."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_rounds import cli
from daq_bench.bench_rounds.measuring import processes
from daq_bench.bench_rounds.measuring.ratios import summary
from daq_bench.telemetry_bench import agent as part
from daq_bench.telemetry_bench import agent_measurement, jitter

PERIOD_NS = 100_000_000


def stamps(*late_ms: float | None) -> list[int]:
    """Times of the grid's samples, each late by so much; None: not taken."""
    epoch = 1_700_000_000_000_000_123
    return [epoch + k * PERIOD_NS + round(1e6 * late) for k, late in enumerate(late_ms) if late is not None]


def test_cpu_time_whatever_the_process_is_called() -> None:
    stat = "42 (a ) b (c) S 1 42 42 0 -1 4194304 100 0 0 0 150 50 300 100 20 0 3 0 1000 1 1"
    assert processes.parse_cpu_time(stat) == processes.CpuTime(200 / processes.TICKS_PER_S, 400 / processes.TICKS_PER_S)
    later = processes.CpuTime(5.0, 7.0).since(processes.CpuTime(2.0, 3.0))
    assert (later.own_s, later.children_s) == (3.0, 4.0)


def test_cpu_time_of_this_process_is_what_the_library_says() -> None:
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    times = os.times()
    assert processes.cpu_time(os.getpid()).own_s == pytest.approx(times.user + times.system, abs=0.05)


def test_peak_memory_is_in_bytes() -> None:
    assert processes.parse_memory("Name:\tx\nVmHWM:\t   24112 kB\nVmRSS:\t 1 kB\n", "VmHWM") == 24112 * 1024
    with pytest.raises(BenchError, match="VmHWM"):
        processes.parse_memory("Name:\tx\n", "VmHWM")
    with pytest.raises(BenchError, match="ended while it was measured"):
        processes.peak_memory(2**22 + 1)


def test_waiting_for_a_drive_is_not_busy() -> None:
    assert processes.parse_busy("cpu  10 5 20 100 40 1 2 3 0 0\ncpu0 1\n") == (41, 181)


def test_a_process_that_ends_early_is_an_error_with_what_it_said(tmp_path: Path) -> None:
    with processes.running(["sh", "-c", "echo no space >&2; exit 3"], tmp_path / "log") as one:
        one.process.wait(120)
        with pytest.raises(BenchError, match="exit status 3: no space"):
            one.require()


def test_a_process_is_ended_with_its_measurement_even_when_it_stands_still(tmp_path: Path) -> None:
    with processes.running(["sleep", "60"], tmp_path / "log", grace_s=5.0) as one:
        one.signal(19)
    assert one.process.poll() is not None


def test_a_punctual_agent_has_no_jitter() -> None:
    found = jitter.jitter(stamps(*[0.4] * 50), 0.1)
    assert (found.expected, found.missed) == (50, 0)
    assert found.max_s == pytest.approx(0.0, abs=1e-6)


def test_late_samples_are_deviations_and_do_not_move_the_grid() -> None:
    late = [1.0] * 99 + [31.0]
    found = jitter.jitter(stamps(*late), 0.1)
    assert (found.expected, found.missed) == (100, 0)
    assert found.p50_s == pytest.approx(0.0, abs=1e-6)
    assert found.p99_s == found.max_s == pytest.approx(0.030)
    first_late = jitter.jitter(stamps(*late[::-1]), 0.1)
    assert first_late.p50_s == pytest.approx(0.0, abs=1e-6) and first_late.max_s == pytest.approx(0.030)


def test_a_missed_sample_counts_as_a_whole_period() -> None:
    found = jitter.jitter(stamps(*[0.0] * 30, None, None, *[0.0] * 30), 0.1)
    assert (found.expected, found.missed) == (62, 2)
    assert found.p99_s == found.max_s == 0.1


def test_a_sample_nearly_a_period_late_leaves_its_own_time_empty() -> None:
    found = jitter.jitter(stamps(*[0.0] * 20, 80.0, *[0.0] * 20), 0.1)
    assert found.missed == 1 and found.max_s == 0.1


def test_a_shift_of_all_samples_shows_as_jitter() -> None:
    found = jitter.jitter(stamps(*[0.0] * 30, *[40.0] * 20), 0.1)
    assert found.p99_s == pytest.approx(0.040, abs=1e-6)


def test_too_few_samples_say_nothing() -> None:
    with pytest.raises(BenchError, match="3 samples are too few"):
        jitter.jitter(stamps(0, 0, 0), 0.1)


def test_times_of_one_measurement_once_each() -> None:
    lines = ["cpu,core=0 a=1 30", "block_device,device=b x=1i 20", "block_device,device=a x=1i 20"]
    lines += ["block_device_x,device=a x=1i 40", "block_device,device=a x=1i 10"]
    assert jitter.times_of(lines, "block_device") == [10, 20]


def point(label: str, errors: dict[str, str] | None = None, **quantities: float) -> dict[str, Any]:
    contender = {name: summary([value]) for name, value in quantities.items()}
    return {"label": label, "errors": errors or {}, "contenders": {part.AGENT: contender}, "repetitions": []}


def effect(label: str, ratios: list[float], errors: dict[str, str] | None = None) -> dict[str, Any]:
    repetitions = []
    for number, ratio in enumerate(ratios):
        order = [part.WITHOUT, part.WITH] if number % 2 == 0 else [part.WITH, part.WITHOUT]
        for position, name in enumerate(order):
            rate = 1e9 * ratio if name == part.WITH else 1e9
            repetitions.append(
                {"round": number, "position": position, "contender": name, "sample": {"bytes_per_s": rate}}
            )
    return {"label": label, "errors": errors or {}, "contenders": {}, "repetitions": repetitions}


def measured(**changed: Any) -> list[dict[str, Any]]:
    cost = {"cpu_percent": 1.2, "memory_bytes": 30 << 20}
    found = {
        "idle": point(part.IDLE, **cost),
        "writing": point(part.WRITING, **cost),
        "write": effect(part.EFFECT_WRITE, [0.999, 0.998] * 10),
        "null": effect(part.EFFECT_NULL, [0.999, 0.998] * 10),
        "jitter": point(part.FULL_LOAD, p99_ms=12.0, busy_share=0.99),
    }
    return list({**found, **changed}.values())


def judged(points: list[dict[str, Any]]) -> dict[str, Any]:
    return {one.id: one for one in part.judge(points)}


def test_all_criteria_can_hold() -> None:
    assert all(one.met for one in judged(measured()).values())


def test_each_bound_is_missed_on_its_own() -> None:
    dear = judged(measured(writing=point(part.WRITING, cpu_percent=1.6, memory_bytes=65 << 20)))
    assert dear["agent.cpu"].misses == (f"{part.WRITING} (1.6)",)
    assert dear["agent.memory"].misses == (f"{part.WRITING} (65)",)
    assert dear["agent.jitter"].met
    late = judged(measured(jitter=point(part.FULL_LOAD, p99_ms=20.1, busy_share=0.99)))
    assert not late["agent.jitter"].met and not late["agent.jitter"].undecided
    loss = judged(measured(null=effect(part.EFFECT_NULL, [0.99, 0.991] * 10)))
    assert loss["agent.write"].met and not loss["agent.null"].met and not loss["agent.null"].undecided


def test_a_noisy_effect_is_undecided_never_held() -> None:
    noisy = judged(measured(write=effect(part.EFFECT_WRITE, [1.1, 0.9, 1.05, 0.95])))["agent.write"]
    assert not noisy.met and noisy.undecided


def test_a_side_that_failed_once_misses_the_effect() -> None:
    failed = effect(part.EFFECT_WRITE, [1.0] * 20, {part.WITH: "the agent did not start"})
    assert not judged(measured(write=failed))["agent.write"].met
    assert part.pairs_of(failed) == []


def test_pairs_say_which_side_came_first() -> None:
    found = part.pairs_of(effect(part.EFFECT_WRITE, [0.9, 1.1]))
    assert [(one.round, one.reference_first) for one in found] == [(0, True), (1, False)]
    assert [one.ratio for one in found] == pytest.approx([0.9, 1.1])


def test_jitter_without_the_load_is_masked_and_undecided() -> None:
    idle = point(part.FULL_LOAD, p99_ms=1.0, busy_share=0.5)
    found = judged(measured(jitter=idle))["agent.jitter"]
    assert not found.met and "not all busy" in found.undecided
    cells = [cell(idle) for header, cell in part.PART.columns if header == "p99, ms"]
    assert cells == ["masked"]


def test_undelivered_points_do_not_count_as_a_cheap_agent() -> None:
    points = {"collected": 100, "undelivered": 7, "rejected": 0}
    with pytest.raises(BenchError, match="7 of 100 points were not delivered"):
        agent_measurement.require_delivered({"points": points, "influx": {"last_error": "gone"}})


def arguments(disk: Path, *more: str) -> list[str]:
    return [f"--scratch={disk / 'scratch'}", f"--output={disk / 'out'}", "--quick", "--parts=agent", *more]


def test_what_is_missing_is_named_with_its_remedy(
    disk: Path, daqwriter: Path, influxd: Path, agent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = arguments(disk, f"--daqwriter={daqwriter}", f"--agent={agent}")
    assert cli.main([*words, f"--influxd={disk / 'absent'}"]) == cli.USAGE
    said = capsys.readouterr().err
    assert "INFLUXD_BIN" in said and "make influxd" in said and str(disk / "absent") in said
    words = arguments(disk, f"--daqwriter={daqwriter}", f"--influxd={influxd}")
    assert cli.main([*words, f"--agent={disk / 'absent.pyz'}"]) == cli.USAGE
    assert "make agent" in capsys.readouterr().err
    assert not list((disk / "out").glob("*.json"))


def test_a_short_run_of_the_real_agent(
    disk: Path, daqwriter: Path, influxd: Path, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("cost_s", 1.0), ("effect_s", 0.3), ("jitter_s", 3.0)):
        monkeypatch.setattr(part, name, lambda settings, seconds=seconds: seconds)
    for name in ("SETTLE_S", "EFFECT_SETTLE_S"):
        monkeypatch.setattr(agent_measurement, name, 0.5)
    monkeypatch.setattr(part, "QUICK_COST_ROUNDS", 1)
    monkeypatch.setattr(part, "QUICK_EFFECT_ROUNDS", 1)
    monkeypatch.setattr(agent_measurement, "SPAN_BYTES", 64 << 20)
    tools = [f"--daqwriter={daqwriter}", f"--influxd={influxd}", f"--agent={agent}"]
    status = cli.main(arguments(disk, *tools))
    document = json.loads((disk / "out" / "agent.json").read_text())
    found = {one["label"]: one for one in document["points"]}
    assert {label: one["errors"] for label, one in found.items()} == {key: {} for key in found}
    cost = found[part.WRITING]["contenders"][part.AGENT]
    assert 5 << 20 < cost["memory_bytes"]["median"] < 200 << 20
    assert cost["points_per_s"]["median"] > 0 and 0 <= cost["cpu_percent"]["median"] < 100
    assert len(part.pairs_of(found[part.EFFECT_WRITE])) == len(part.pairs_of(found[part.EFFECT_NULL])) == 1
    late = found[part.FULL_LOAD]["contenders"][part.AGENT]
    assert 20 <= late["expected"]["median"] <= 60  # with every CPU busy three seconds of sleep take longer
    assert 0 <= late["p50_ms"]["median"] <= late["p99_ms"]["median"] <= late["max_ms"]["median"]
    assert {one["id"] for one in document["criteria"]} == {
        f"agent.{x}" for x in ["cpu", "memory", "write", "null", "jitter"]
    }
    assert status == (cli.ALL_HOLD if all(one["met"] for one in document["criteria"]) else cli.MISSED)
    assert "## agent: " in (disk / "out" / "summary.md").read_text()
    assert list((disk / "scratch").iterdir()) == []
