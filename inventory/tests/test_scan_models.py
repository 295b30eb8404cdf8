"""The scans' results from their points: ratios, plateaus, limits of a search, percentiles with losses, the knee."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from daq_bench.audit.good import results_of
from daq_bench.audit.good.case import case_of
from tool_answers import RECORDED, answer

from daq_bench.bench_model.documents.results import WriteLatency
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.documents.tools.minidaq import MinidaqSearch, Trial
from daq_bench.bench_model.evidence.measured import measure
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import check_yields, load_requirements
from daq_bench.bench_model.profiles.scenarios import check_scenario_metrics, load_scenario
from daq_bench.bench_model.statistics.hdr import Histogram
from daq_bench.bench_model.verdict.decision import decide, estimate
from daq_bench.bench_model.workloads import minidaq_scan as minidaq_curve
from daq_bench.bench_model.workloads import thread_scan as thread_scaling
from daq_bench.bench_model.workloads.latency_under_load import Load, find_knee, judged_rate, percentiles, value_of
from daq_bench.bench_model.workloads.latency_under_load import summary as ladder_summary
from daq_bench.bench_model.workloads.minidaq_scan import coverage as coverage_of
from daq_bench.bench_model.workloads.plan import Plan, plan_of
from daq_bench.bench_model.workloads.table import MODELS
from daq_bench.bench_model.workloads.thread_scan import Scan, ThreadPoint

INVENTORY = Path(__file__).resolve().parents[1]

KIB, MIB = 2**10, 2**20


CLEAN: dict[str, Any] = {"achieved_fraction": 1.0, "vetoed": 0, "busy_count": 0, "lost": 0}


def thread_scan(**masked: bool) -> Scan:
    rates = {(1, 32 * KIB): 2e9, (10, 32 * KIB): 8e9, (1, 4 * MIB): 8.8e9, (5, 4 * MIB): 9.0e9, (10, 4 * MIB): 9.1e9}
    latency = WriteLatency(1.0, 1.0, 1.0, 1.0, 1.0)
    points = [
        ThreadPoint(
            size, rate, 1.0, 1, 1.0, [rate], latency, 1.0, 15.0 if threads == 1 else 4.0, None, not reason, reason, threads=threads
        )
        for (threads, size), rate in rates.items()
        for reason in ("slow" if masked.get(f"t{threads}_{size}") else None,)
    ]  # fmt: skip
    return thread_scaling.scan_of("fio", "fio-3", "overwritten", points)


def test_the_papers_figures_come_out_of_a_scan_like_the_papers() -> None:
    found = thread_scan()
    assert found.reasons == {}
    assert found.ratio.value == 4.0
    assert found.system_cpu.highest_fraction == 0.15  # the worst number of threads, here one
    assert found.plateau.throughput_bytes_per_s == 9.0e9  # median of 8.8, 9.0, 9.1: all within 95 % of 9.1
    assert found.saturating_block_bytes == 4 * MIB
    assert [one.plateau for one in found.series] == [None, thread_scaling.SeriesPlateau(9.0e9, 1)]


def test_a_masked_point_takes_its_metric_along() -> None:
    found = thread_scan(t10_32768=True)
    assert found.ratio.value is None
    assert found.reasons == {
        thread_scaling.RATIO: "10 threads with blocks of 32 KiB were not measured, or do not count"
    }


def search(highest: float | None, refused: float | None, trials: list[tuple[float, bool, int]]) -> MinidaqSearch:
    """`trials`: (rate asked, stood, vetoed)."""
    each = [
        Trial(1.0, rate, rate, 1.0, lost=0, vetoed=vetoed, busy_count=0, stood=stood) for rate, stood, vetoed in trials
    ]
    asked = {"highest_bytes_per_s": highest, "lowest_refused_bytes_per_s": refused}
    return answer(MinidaqSearch, RECORDED / "minidaq-search.json", **asked, trials=[as_document(one) for one in each])


@pytest.mark.parametrize(
    ("found", "limit"),
    [
        (search(5e9, 6e9, [(5e9, True, 0), (5e9, True, 0), (6e9, False, 3)]), "inhibit"),
        (search(5e9, 6e9, [(5e9, True, 0), (5e9, True, 0), (6e9, False, 0)]), "source"),
        # A trial far above says nothing of what bounds the rate that was found.
        (search(5e9, 6e9, [(9e9, False, 8), (5e9, True, 0), (5e9, True, 0), (6e9, False, 0)]), "source"),
        (search(9e9, None, [(9e9, True, 0), (9e9, True, 0)]), "all asked"),
        (search(None, 1e9, [(1e9, False, 5)]), "nothing stood"),
    ],
)
def test_what_kept_the_search_from_a_higher_rate(found: MinidaqSearch, limit: str) -> None:
    assert minidaq_curve.limited_by(found) == limit


def minidaq_point(size: int, rate: float, synthetic: float = 9.0e9, **more: Any) -> dict[str, Any]:
    made = {
        "repetition": 1,
        "asked_request_bytes": size,
        "throughput_bytes_per_s": rate,
        "synthetic": {"throughput_bytes_per_s": synthetic},
        "limited_by": "inhibit",
        "inhibits": 0,
        "copy_share": 0.1,
        "admissible": True,
        "reason": None,
        **more,
    }
    return {**made, "ratio_to_synthetic": minidaq_curve.ratio_of(made, 9.24e9) if made["admissible"] else None}


MASKED = {"admissible": False, "reason": "the source was slow"}


def passes(*rates: float, synthetic: float = 9.0e9) -> list[dict[str, Any]]:
    """Sizes of 4, 16 and 32 MiB, the larger ones at a rate for each repetition."""
    return [
        minidaq_point(size, rate if size > 4 * MIB else rate / 2, synthetic, repetition=number)
        for number, rate in enumerate(rates, start=1)
        for size in (4 * MIB, 16 * MIB, 32 * MIB)
    ]


def judged_ratio(points: list[dict[str, Any]]) -> Any:
    """Returns the decision on SCAN-09 from the points, or the problem of its judged values."""
    metrics = load_metrics(INVENTORY / "metrics.yml")
    profile = load_requirements(INVENTORY / "requirements" / "minidaq-scan.yml", metrics)
    requirement = next(one for one in profile.requirements if one.id == "SCAN-09")
    found, reasons = minidaq_curve.summarize(points)
    results = {"results/minidaq_scan.json": {**found, "reasons": reasons}}
    measured = measure(requirement, metrics[requirement.metric], results)
    if measured.problem:
        return measured.problem
    estimated = estimate(requirement, metrics[requirement.metric], measured, 1)
    return decide(requirement.comparison, requirement.bound, requirement.guard_band, estimated).decision


def test_the_minidaqs_plateau_is_held_against_the_synthetic_writes_of_its_rounds() -> None:
    points = [minidaq_point(4 * MIB, 6e9), minidaq_point(16 * MIB, 8.9e9), minidaq_point(32 * MIB, 8.8e9, inhibits=2)]
    found, reasons = minidaq_curve.summarize(points)
    assert found["plateau"]["from_request_bytes"] == 16 * MIB
    assert found["plateau"]["ratio_to_synthetic"] == pytest.approx((8.9 / 9 + 8.8 / 9) / 2)
    assert (found["inhibits"], reasons) == (2, {})


def test_where_a_plateau_begins_is_not_known_behind_a_masked_point() -> None:
    """Else a source that was slow at 16 MiB would make a drive miss "plateau by 16 MiB"."""
    points = [
        minidaq_point(4 * MIB, 6e9),
        minidaq_point(16 * MIB, 8.9e9),
        minidaq_point(32 * MIB, 8.8e9),
        minidaq_point(64 * MIB, 8.9e9),
    ]
    points[1]["admissible"] = False
    found, reasons = minidaq_curve.summarize(points)
    assert found["plateau"]["from_request_bytes"] is None
    assert found["plateau"]["throughput_bytes_per_s"] == pytest.approx(8.85e9)
    assert list(reasons) == [minidaq_curve.PLATEAU_SIZE]


def test_six_passes_decide_on_the_ratio_and_fewer_do_not() -> None:
    rates = [8.9e9, 8.91e9, 8.92e9, 8.88e9, 8.9e9, 8.93e9]
    assert judged_ratio(passes(*rates)) == "met"
    assert judged_ratio(passes(*(rate * 0.9 for rate in rates))) == "missed"
    for number in range(1, 6):
        assert judged_ratio(passes(*rates[:number])) == "undecided"


def test_each_size_on_the_plateau_is_held_against_the_synthetic_writes_by_itself() -> None:
    """A size that is short is not made up for by the others, though the median over the plateau is above the bound."""
    points = passes(*[8.9e9] * 6)
    for point in points:
        if point["asked_request_bytes"] == 16 * MIB:
            point["ratio_to_synthetic"] = 0.93
    found, _ = minidaq_curve.summarize(points)
    assert found["plateau"]["ratio_to_synthetic"] == pytest.approx((0.93 + 8.9 / 9) / 2)
    assert judged_ratio(points) == "missed"


@pytest.mark.parametrize("lost", ["masked", "null"])
def test_a_repetition_that_does_not_count_stays_as_a_hole(lost: str) -> None:
    points = passes(*[8.9e9] * 7)  # six others would be there
    hole = next(one for one in points if one["asked_request_bytes"] == 32 * MIB and one["repetition"] == 3)
    hole["ratio_to_synthetic"] = None
    found, _ = minidaq_curve.summarize(points)
    rows = found["plateau"]["ratios"]
    assert len(rows) == 14
    assert {"request_bytes": 32 * MIB, "repetition": 3, "value": None} in rows
    assert "gives no number for value" in judged_ratio(points) and "32 MiB, repetition 3" in judged_ratio(points)
    if lost == "masked":  # nor do the other repetitions of its size stand for it on the curve
        hole.update(MASKED)
        found, reasons = minidaq_curve.summarize(points)
        assert (found["plateau"]["from_request_bytes"], found["plateau"]["ratios"]) == (None, [])
        assert minidaq_curve.RATIO in reasons


def test_a_sizes_point_is_the_median_of_its_repetitions() -> None:
    found, _ = minidaq_curve.summarize(passes(8.9e9, 8.9e9, 1e9))
    assert found["plateau"]["throughput_bytes_per_s"] == 8.9e9
    inhibited = passes(8.9e9, 8.9e9, 8.9e9)
    inhibited[4]["inhibits"] = 7
    assert minidaq_curve.summarize(inhibited)[0]["inhibits"] == 7  # the most of all, whichever repetition it was


def test_where_a_plateau_begins_is_not_known_behind_one_masked_repetition() -> None:
    points = [*passes(8.9e9, 8.9e9), *(minidaq_point(64 * MIB, 8.9e9, repetition=number) for number in (1, 2))]
    points[0].update(MASKED, ratio_to_synthetic=None)
    found, reasons = minidaq_curve.summarize(points)
    assert found["plateau"]["from_request_bytes"] is None
    assert list(reasons) == [minidaq_curve.PLATEAU_SIZE]


def test_what_the_links_do_not_deliver_is_not_held_against_the_minidaq() -> None:
    """A drive faster than the links: synthetic writes at 14 GB/s, while there are only 9.24 GB/s to store."""
    point = minidaq_point(16 * MIB, 9.2e9, synthetic=14e9, limited_by="all asked")
    assert point["ratio_to_synthetic"] == pytest.approx(9.2 / 9.24)
    assert minidaq_point(16 * MIB, 9.2e9, synthetic=14e9)["ratio_to_synthetic"] == pytest.approx(9.2 / 14)


@pytest.mark.parametrize(
    ("limit", "run", "synthetic", "words"),
    [
        ("nothing stood", None, None, "no rate was stood twice"),
        ("inhibit", {**CLEAN, "achieved_fraction": 0.9}, None, "offered only 90.00%"),
        ("inhibit", {**CLEAN, "vetoed": 3}, None, "met an inhibit at every rate"),
        ("source", CLEAN, None, "the rate that the source could offer"),
        ("inhibit", CLEAN, "ended by signal", "ended by signal"),
        ("inhibit", CLEAN, "", "synthetic writes"),
        ("inhibit", CLEAN, None, None),
    ],
)
def test_points_that_do_not_count_say_why(
    limit: str, run: dict[str, Any] | None, synthetic: str | None, words: str | None
) -> None:
    reason = minidaq_curve.why_masked(limit, run, synthetic)
    assert reason is None if words is None else reason is not None and words in reason


def uniform(total: int) -> Histogram:
    """`total` values, one each of 1, 2, ... us."""
    return Histogram(tuple(range(1, total + 1)), tuple(range(1, total + 1)), (1,) * total)


def us_of(found: list[dict[str, Any]]) -> dict[float, float | None]:
    return {one["percentile"]: one["us"] for one in found}


def test_a_percentile_needs_ten_values_beyond_it() -> None:
    found = percentiles(uniform(10_000), 1.0, Load(10_000, 0, 0, 0.0))
    assert us_of(found) == {50.0: 5000, 90.0: 9000, 99.0: 9900, 99.9: 9990, 99.99: None, 99.999: None}
    assert found[-2]["reason"] == "10000 superchunks leave 1 beyond it, fewer than 10"
    assert us_of(percentiles(uniform(9_999), 1.0, Load(9_999, 0, 0, 0.0)))[99.9] is None


def test_lost_superchunks_count_as_later_than_all_others() -> None:
    """200 of 20 000 lost: exactly 1 %. The p99 is the last stored one, beyond it there is nothing but loss."""
    found = percentiles(uniform(19_800), 1.0, Load(20_000, 200, 0, 0.0))
    assert us_of(found)[50.0] == 10_000  # of all offered, not 9 900 of the stored
    assert us_of(found)[99.0] == 19_800
    assert us_of(found)[99.9] is None
    assert found[3]["reason"] == "200 of 20000 superchunks never became durable"


def test_the_sources_own_lateness_is_not_blamed_on_the_drive() -> None:
    """500 superchunks left the source up to 9 ms late, so the tail beyond p99 may be its doing; p50 cannot be."""
    found = us_of(percentiles(uniform(10_000), 1.0, Load(10_000, 0, 500, 9_000.0)))
    assert (found[50.0], found[99.0], found[99.9]) == (5000, None, None)
    harmless = us_of(percentiles(uniform(10_000), 1.0, Load(10_000, 0, 500, 100.0)))
    assert harmless[99.0] == 9900


def rung(gb_per_s: float, tail_us: float | None, **more: Any) -> dict[str, Any]:
    return {
        "asked_bytes_per_s": gb_per_s * 1e9,
        "admissible": True,
        "reason": None,
        "lost": 0,
        "busy_count": 0,
        "percentiles": [{"percentile": 99.9, "us": tail_us, "reason": None}],
        **more,
    }


@pytest.mark.parametrize(
    ("ladder", "sustained", "knee", "words"),
    [
        # A block takes longer to fill at a low rate: the curve comes down before it goes up.
        ([rung(1, 900), rung(2, 400), rung(3, 1100), rung(4, 1300)], 3, 4, "3.25 times its lowest"),
        ([rung(1, 900), rung(2, 800), rung(3, None, lost=7)], 2, 3, "7 superchunks are lost"),
        ([rung(1, 900), rung(2, 800, busy_count=1)], 1, 2, "BUSY 1 time"),
        ([rung(1, 900), rung(2, 800)], 2, None, "not reached"),
        ([rung(1, 900), rung(2, 800, admissible=False, reason="slow source"), rung(3, 700)], 1, None, "slow source"),
        ([rung(1, 900), rung(2, None), rung(3, 700)], 1, None, "without a p99.9"),
        ([rung(1, 900, lost=1)], None, 1, "1 superchunks are lost"),
    ],
)
def test_the_knee(ladder: list[dict[str, Any]], sustained: float | None, knee: float | None, words: str) -> None:
    found = find_knee(ladder)
    assert found["sustained_bytes_per_s"] == (None if sustained is None else sustained * 1e9)
    assert found["knee_bytes_per_s"] == (None if knee is None else knee * 1e9)
    assert words in found["why"]


@pytest.mark.parametrize(
    ("sustained", "knee", "judged"),
    [
        (5e9, 6e9, 5e9),  # a knee was seen: the candidate does no more
        (5e9, None, None),  # only a lower bound, below the demand: nothing to hold against the candidate
        (9e9, None, 9e9),
        (11e9, None, 11e9),
        (None, 1e9, None),
    ],
)
def test_a_lower_bound_below_the_demand_is_not_judged(
    sustained: float | None, knee: float | None, judged: float | None
) -> None:
    assert judged_rate({"sustained_bytes_per_s": sustained, "knee_bytes_per_s": knee}, 9e9) == judged


def test_a_rung_at_the_demand_that_does_not_count_leaves_its_row_empty_and_nothing_forged() -> None:
    case = case_of("latency-under-load")
    document = results_of(case)["results/latency_under_load.json"]
    next(one for one in document["points"] if one["load_factor"] == 1).update(admissible=False, reason="slow source")
    found, reasons = ladder_summary(document["points"], 9.24288e9)
    assert found["at_demand"] == {"p99_9_us": None, "p99_999_us": None, "lost": None}
    names = {f"latency_under_load.{name}_at_demand" for name in ("p99_9", "p99_999", "lost")}
    assert {reasons[name] for name in names} == {"slow source"}
    gaps = MODELS["latency_under_load"].coverage(plan_of(case.run, "latency_under_load"), {**document, **found})
    assert list(gaps) == ["load factor 1 does not count: slow source"]


def test_a_percentile_is_found_by_its_name() -> None:
    assert value_of(rung(1, 900), 99.9) == 900
    assert value_of(rung(1, 900), 99.0) is None


def scanned(repetitions: int = 2) -> tuple[Plan, dict[str, Any]]:
    """A plan of two sizes, and a result that covers it; the links deliver 1 GB/s and the drive takes all."""
    search = {"highest_bytes_per_s": 1e9, "highest_trigger_rate_hz": 200.0, "lowest_refused_bytes_per_s": None}
    points = []
    for number in range(1, repetitions + 1):
        for size in (16 * MIB, 32 * MIB):
            more = {"limited_by": "all asked", "repetition": number, "search": search}
            one = minidaq_point(size, 0.999e9, synthetic=2e9, **more)
            one.update(runs=[{**CLEAN, "stored_bytes_per_s": 0.999e9}], ratio_to_synthetic=0.999)
            one["synthetic"]["reason"] = None
            points.append(one)
    document = {"points": points, "demand_bytes_per_s": 1e9, **minidaq_curve.summarize(points)[0]}
    own = {"request_sizes": [16 * MIB, 32 * MIB]}
    return Plan("minidaq_scan", own, repetitions, repetitions, 1.0, None, ()), document


def test_a_scan_that_is_as_planned_has_no_gap() -> None:
    assert list(coverage_of(*scanned())) == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda points: points.pop(), "32 MiB, repetition 2 was planned and is missing"),
        (lambda points: points.append(points[0]), "16 MiB, repetition 1 stands there 2 times"),
        (lambda points: points[3].update(repetition=1), "32 MiB, repetition 1 stands there 2 times"),
        (lambda points: points[3].update(repetition=3), "32 MiB, repetition 3 was not planned"),
        (lambda points: points[3].update(ratio_to_synthetic=1.5), "32 MiB, repetition 2: the ratio does not follow"),
        (lambda points: points[2].update(admissible=False, ratio_to_synthetic=None), "contradicts itself: admissible"),
        (lambda points: points[1].update(limited_by="inhibit"), "is not how its search ended"),
        (lambda points: points[1].update(runs=2 * points[1]["runs"]), "a record without inhibit is not its last"),
        (lambda points: points[1].update(inhibits=1), "32 MiB, repetition 1: [0] does not follow"),
    ],
)
def test_what_a_scan_lacks_or_contradicts_is_named(spoil: Any, said: str) -> None:
    plan, document = scanned()
    spoil(document["points"])
    found = [one if isinstance(one, str) else one[0] for one in coverage_of(plan, document)]
    assert any(said in text for text in found), found


def test_a_ratio_that_is_altered_where_it_is_judged_does_not_follow() -> None:
    plan, document = scanned()
    document["plateau"]["ratios"][2]["value"] = 1.2
    (found,) = coverage_of(plan, document)
    assert "the plateau: ratios[2].value does not follow" in found[0]


@pytest.mark.parametrize("name", ["block-scan", "thread-scan", "minidaq-scan", "latency-under-load"])
def test_each_scan_has_a_profile_that_it_answers_and_that_agrees_with_the_whole(name: str) -> None:
    metrics = load_metrics(INVENTORY / "metrics.yml")
    own = load_requirements(INVENTORY / "requirements" / f"{name}.yml", metrics)
    whole = load_requirements(INVENTORY / "requirements" / "dune-scans.yml", metrics)
    scenario = load_scenario(INVENTORY / "scenarios" / f"{name}.yml")
    check_scenario_metrics(scenario, metrics)
    check_yields(own, scenario)
    # SCAN-12 asks of the threads what the whole asks of blocks and threads together.
    assert {one for one in own.requirements if one.id != "SCAN-12"} <= set(whole.requirements)
    check_yields(whole, load_scenario(INVENTORY / "scenarios" / "scans-rehearsal.yml"))
