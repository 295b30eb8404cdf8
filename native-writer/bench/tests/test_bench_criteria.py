"""The criteria that hold, and the names of those that are missed; by part, and in the summary."""

from __future__ import annotations

from typing import Any

import pytest
from bench_fixtures import results_of

from daq_bench.bench_model.statistics.paired import Pair
from daq_bench.bench_rounds import columns, criteria, tables
from daq_bench.bench_rounds.measuring.ratios import summary
from daq_bench.bench_rounds.part import Settings
from daq_bench.bench_rounds.parts import known_parts
from daq_bench.writer_bench import memory, write


def ratio_point(block: int, threads: int, throughput: float | None, cpu: float | None) -> dict[str, Any]:
    label = f"{block} x {threads}"
    side = {"bytes_per_s": summary([1e9]), "cpu_s_per_gb": summary([0.1])}
    return {
        "key": {"block_bytes": block, "threads": threads},
        "label": label,
        "errors": {} if throughput else {"fio": "no space\nleft"},
        "contenders": {f"{tool}{end}": side for tool in ("daqwriter", "fio") for end in write.ENGINES},
        "ratios": {
            f"{name}{end}": summary([ratio] if ratio else [])
            for name, ratio in (("throughput", throughput), ("cpu", cpu))
            for end in write.ENGINES
        },
        "limited_by": "drive",
    }


def outcomes(found: list[criteria.Criterion]) -> dict[str, bool]:
    return {one.id: one.met for one in found}


def test_every_block_in_flight_is_another_one() -> None:
    for block, threads in write.grid(Settings()):
        span = write.span_bytes(block, threads)
        assert span // threads // block >= 2 * write.DEPTH
        assert span % (8 << 20) == 0  # laid out in whole blocks of 8 MiB


def test_write_meets_all() -> None:
    points = [
        ratio_point(4096, 1, 1.0, 0.5),
        ratio_point(1 << 20, 1, 0.93, 1.1),
        ratio_point(1 << 20, 2, 1.07, 1.0),
        ratio_point(1 << 21, 1, 1.2, 1.0),
    ]
    assert all(outcomes(write.judge(points)).values())


def test_write_misses_are_told_apart() -> None:
    slow_point = [
        ratio_point(4096, 1, 1.1, 0.95),
        ratio_point(1 << 20, 1, 0.929, 0.5),
        ratio_point(1 << 21, 1, 1.2, 0.5),
    ]
    judged = {one.id: one for one in write.judge(slow_point)}
    assert judged["write.cpu"].met
    assert judged["write.throughput"].misses == ("1 MiB (0.929)",)  # no other block size makes up for it
    assert judged["write.throughput_worst"].misses == ("1048576 x 1 (0.929)",)
    assert judged["write.throughput_worst"].value == 0.929
    assert not judged["write.cpu_smallest"].met and not judged["write.cpu_smallest.io_uring"].met  # 0.95 at 4 KiB
    close = {one.id: one for one in write.judge([ratio_point(4096, 1, 1.1, 0.7)])}
    assert not close["write.cpu_smallest"].met and close["write.cpu_smallest.io_uring"].met


def test_a_failed_point_misses_every_criterion_that_it_belongs_to() -> None:
    judged = {one.id: one for one in write.judge([ratio_point(4096, 1, None, None), ratio_point(8192, 1, 1.5, 0.5)])}
    assert not any(one.met for one in judged.values())
    assert judged["write.throughput_worst"].misses == ("4096 x 1 (failed)",)


def test_nothing_measured_is_no_success() -> None:
    assert not criteria.each("a", "", {}, 1.0).met
    assert not criteria.median("a", "", {}, 1.0).met


def test_every_part_misses_its_criteria_when_nothing_could_run() -> None:
    for part in known_parts().values():
        assert not any(one.met for one in part.judge([])), part.name


def test_memory_names_the_command_above_its_buffers_and_where() -> None:
    def point(label: str, **runs: tuple[int, int | None]) -> dict[str, Any]:
        samples = {name: {"max_rss_bytes": rss, "buffer_bytes": buffers} for name, (rss, buffers) in runs.items()}
        return {
            "label": label,
            "repetitions": [{"contender": name, "sample": found} for name, found in samples.items()]
            + [{"contender": "copy", "sample": None}],
        }

    mib = 1 << 20
    steady, large = (110 * mib, 100 * mib), (170 * mib, 100 * mib)
    points = memory.points_of(
        [
            {
                "part": "minidaq",
                "points": [point("1 MiB", copy=steady, write=steady), point("2 MiB", copy=large, bare=(mib, None))],
            }
        ]
    )
    assert [(one["label"], one["worst_at"], one["n"]) for one in points] == [
        ("minidaq: copy", "2 MiB", 2),
        ("minidaq: write", "1 MiB", 1),
        ("minidaq: bare", "2 MiB", 1),
    ]
    (judged,) = memory.judge(points)
    assert judged.misses == ("minidaq: copy (70)", "minidaq: bare (failed)")


def pairs(*losses: float) -> list[Pair]:
    return [Pair(number, number % 2 == 0, 1 - loss) for number, loss in enumerate(losses)]


def test_a_loss_is_met_missed_or_undecided_by_its_whole_interval() -> None:
    small = criteria.loss_below("loss", "", pairs(0.001, 0.002, 0.001, 0.002, 0.001, 0.002), 0.5)
    assert small.met and not small.undecided and small.value == pytest.approx(0.15, abs=0.01)
    large = criteria.loss_below("loss", "", pairs(0.011, 0.012, 0.011, 0.012, 0.011, 0.012), 0.5)
    assert not large.met and not large.undecided and "loss 1.15 %" in large.misses[0]
    wide = criteria.loss_below("loss", "", pairs(0.05, -0.05, 0.04, -0.04, 0.03, -0.03), 0.5)
    assert not wide.met and not wide.misses
    assert "n=6" in wide.undecided and "would decide" in wide.undecided
    assert not criteria.loss_below("loss", "", [], 0.5).met


def test_one_pair_decides_nothing() -> None:
    alone = criteria.loss_below("loss", "", pairs(0.0), 0.5)
    assert not alone.met and alone.undecided


def test_what_is_undecided_is_neither_met_nor_missed_in_the_summary() -> None:
    made = document([ratio_point(4096, 1, 1.05, 0.4)], [])
    open_ = criteria.Criterion("x.loss", "a loss", 0.5, 0.1, False, undecided="more repetitions would decide")
    made["criteria"] = [*made["criteria"], open_.document()]
    text = tables.summary([made], known_parts())
    assert "| a loss | 0.5 | 0.1 | **undecided** more repetitions would decide |" in text
    assert text.endswith("Result: undecided x.loss (1 of 9).\n")
    assert tables.missed([made]) == []
    made["criteria"][0]["met"] = False
    assert "Result: missed write.throughput (1 of 9); undecided x.loss (1 of 9)." in tables.summary(
        [made], known_parts()
    )


def document(points: list[dict[str, Any]], reservations: list[str]) -> dict[str, Any]:
    criteria = [one.document() for one in write.judge(points)]
    return results_of("write", reservations, notes=["a note"], points=points, criteria=criteria)


def test_summary_shows_failures_notes_misses_and_what_was_not_run() -> None:
    points = [ratio_point(4096, 1, 1.05, 0.8), ratio_point(8192, 1, None, None)]
    text = tables.summary([document(points, ["quick look"])], known_parts())
    assert "**Not a claim: quick look.**" in text
    assert "| 4096 x 1 | 1.000 | failed |" not in text
    assert "| 4096 x 1 | 1.000 | 1.000 | 1.050 [1.050, 1.050] n=1 |" in text
    assert "| 8192 x 1 | 1.000 | failed | **failed** |" in text
    assert "- 8192 x 1: fio failed: no space left" in text
    assert "- a note" in text
    assert f"Not run: {', '.join(name for name in known_parts() if name != 'write')}." in text
    assert "Result: missed write.throughput, write.throughput_worst" in text
    assert "huge pages" not in text  # a column without any value is left out


def test_summary_of_a_claim() -> None:
    text = tables.summary([document([ratio_point(4096, 1, 1.05, 0.4)], [])], known_parts())
    assert text.endswith("Result: all 8 criteria hold.\n")
    assert "Not a claim" not in text
    assert "interrupted" in tables.summary([], known_parts(), interrupted=True)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_an_exponent_is_that_of_what_is_above_the_least(power: float) -> None:
    costs = [(size, 0.01 * size**power) for size in (10.0, 100.0, 1000.0)]
    started = [(1.0, 0.09), *costs]  # the start of a process, whatever it does then
    assert criteria.exponent(started, 0.02) != pytest.approx(power)
    assert criteria.exponent(costs, 0.02) == pytest.approx(power)
    assert criteria.exponent([(1.0, None), *costs], 0.02) == pytest.approx(power)


def test_an_exponent_needs_two_costs() -> None:
    assert criteria.exponent([], 0.1) is None
    assert criteria.exponent([(1.0, 5.0), (10.0, None), (100.0, 0.05)], 0.1) is None


def test_a_contender_that_failed_states_nothing() -> None:
    good = {"contenders": {"one": {"seconds": {"median": 1500.0}}}, "errors": {}}
    for point, value, text in (
        (good, 1500.0, "1.50"),
        ({**good, "errors": {"one": "it ended"}}, None, "-"),
        ({**good, "contenders": {"one": {"seconds": {"median": None}}}}, None, "-"),
        ({**good, "contenders": {}}, None, "-"),
    ):
        assert columns.stated(point, "one", "seconds") == value
        assert columns.scaled("ks", "one", "seconds", 1000, 2)[1](point) == text
