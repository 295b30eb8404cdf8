"""Servers drawn from what is sold: the ranges of the drawing, the stages of a drive, runs of snb-100s with their truth, rows and page."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from random import Random

import pytest

from daq_bench.bench_model.workloads.preconditioning import WRITTEN_SHARE, bytes_due
from daq_bench.rig.candidate.load_target import FileTarget
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.workloads.shared.conditioning import BLOCK_BYTES, FILE_BYTES_MAX, Conditioner, precondition_values
from daq_bench.rig.workloads.shared.fio_job import JobFiles
from daq_bench.simulation.campaign import Row, judged
from daq_bench.simulation.market_document import text_of
from daq_bench.simulation.physics.drawing import DEMAND, Spec, spec_of
from daq_bench.simulation.physics.hazards import Hazard
from daq_bench.simulation.physics.market import CATALOGUE, MEDIA, OPTANE, SAS, SET_BYTES_MAX, TLC, sectors_of
from daq_bench.simulation.physics.server import Server, Visit
from daq_bench.simulation.physics.sold_drive import SoldDrive, SoldSpec
from daq_bench.simulation.truth import is_well_inside, truth_of

DRAWN = [spec_of(seed, "market") for seed in range(1500)]
SINGLE, LARGE, RAW = 2, 35, 22  # seeds of good single drives: 7.68 TB; 15.36 TB, filled with two files; a raw one


def test_drives_are_those_that_are_sold() -> None:
    sizes = {drive.size_bytes for spec in DRAWN for drive in spec.drives}
    assert min(sizes) == 480_103_981_056  # what a drive of 480 GB says of itself
    assert max(sizes) == 30_725_971_992_576  # and one of 30.72 TB
    assert sizes == {512 * sectors_of(tb) for one in CATALOGUE for tb in one.tb}
    assert {spec.drives[0].model.removeprefix("SIM ") for spec in DRAWN} == {one.name for one in CATALOGUE}


def test_sets_have_the_levels_and_sizes_that_servers_have() -> None:
    assert {(spec.array, spec.raw) for spec in DRAWN} == {
        *((name, False) for name in ("single", "raid0", "raid5", "raid6", "raid10")),
        ("single", True),
    }
    assert {len(spec.drives) for spec in DRAWN} == set(range(1, 25))
    assert max(spec.capacity_bytes for spec in DRAWN) <= 1.001 * SET_BYTES_MAX
    assert all(len(spec.drives) % 2 == 0 for spec in DRAWN if spec.array == "raid10")
    assert all(spec.parity_rate > 0 and not spec.discards for spec in DRAWN if spec.array in ("raid5", "raid6"))
    assert all(spec.parity_rate == 0 and spec.discards for spec in DRAWN if spec.array not in ("raid5", "raid6"))
    assert len({drive.serial for spec in DRAWN[:200] for drive in spec.drives}) == sum(
        len(one.drives) for one in DRAWN[:200]
    )


def test_rates_stay_within_what_their_sources_leave_open() -> None:
    for spec in DRAWN:
        one = spec.drives[0]
        model = next(each for each in CATALOGUE if f"SIM {each.name}" == one.model)
        low, high = (0.95, 1.03) if model.sourced else (0.75, 1.2)
        rates = [1e9 * rate for rate in model.gbs]
        assert low * min(rates) <= one.cell_rate <= high * max(rates)
        assert 1.0 <= one.write_amplification <= 1.5
        assert spec.medium == model.medium


def test_a_set_holds_and_takes_what_its_level_leaves() -> None:
    spec = next(one for one in DRAWN if one.array == "raid6" and len(one.drives) == 8)
    each = spec.drives[0]
    assert spec.capacity_bytes == 6 * each.size_bytes
    assert Server(replace(spec, parity_rate=0.0, hazards=(), ceiling=0.0)).pace() == pytest.approx(
        6 * max(each.cell_rate, each.cache_rate)
    )
    assert Server(replace(spec, parity_rate=3e9, hazards=(), ceiling=0.0)).pace() == 3e9
    server = Server(replace(spec, hazards=()))
    server.second(6e9, 0.0)
    assert [drive.written_bytes for drive in server.drives] == [1e9] * 8


def sold(name: str, tb: float = 1.0) -> SoldDrive:
    """A drive of the model with exactly its data sheet's rates, which nothing heats."""
    spec = next(spec for spec in DRAWN if spec.drives[0].model == f"SIM {name}").drives[0]
    assert isinstance(spec, SoldSpec)
    model = next(one for one in CATALOGUE if one.name == name)
    return SoldDrive(
        replace(
            spec, size_bytes=int(tb * 1e12), cell_rate=model.rate(tb), write_amplification=1.0, refill_share=0.0,
            tmt1_degc=0, tmt2_degc=0, saw_depth=0.0, spare_share=0.07,
        )
    )  # fmt: skip


def written_until(drive: SoldDrive, share: float) -> list[float]:
    rates = []
    while drive.written_bytes < share * drive.spec.size_bytes:
        rates.append(drive.pace())
        drive.second(rates[-1], 0.0, 0.0, 1.0)
    return rates


def test_a_dynamic_cache_has_three_stages() -> None:
    drive = sold("NM790", 2.0)  # 280 GB at 5 GB/s, then 2.5, then folding at 0.8 (techpowerup.com)
    rates = written_until(drive, 1.1)
    assert 5e9 * next(second for second, rate in enumerate(rates) if rate < 5e9) == pytest.approx(280e9, rel=0.03)
    assert {rate for rate in rates if rate < 2.4e9} == {0.8e9}
    first = rates.index(0.8e9)
    assert 0.5 < sum(rates[:first]) / 2e12 < 0.9
    assert drive.pace() == 2.5e9  # full, and its cache emptied
    drive.purge()
    assert drive.pace() == 5e9


def test_3d_xpoint_is_flat_and_collecting_saws_about_the_steady_rate() -> None:
    flat = next(one.drives[0] for one in DRAWN if one.drives[0].model == "SIM P5800X")
    assert isinstance(flat, SoldSpec)
    assert (flat.saw_depth, flat.write_amplification, flat.cache_share) == (0.0, 1.0, 0.0)
    saws = SoldDrive(replace(sold("9650", 6.4).spec, saw_depth=0.1, saw_period_s=20.0, write_amplification=1.25))
    assert saws.pace() == 14e9
    saws.since_purge_bytes = 6.4e12
    rates = []
    for _ in range(200):
        rates.append(saws.pace())
        saws.second(0.0, 0.0, 0.0, 1.0)
    assert sum(rates) / 200 == pytest.approx(14e9 / 1.25, rel=0.01)
    assert max(rates) / min(rates) == pytest.approx(1.05 / 0.95, rel=0.01)


def parts_of(span: int) -> list[int]:
    target, jobs = (
        FileTarget(LocalMachine(), Path("/nowhere/precondition.bin")),
        JobFiles(LocalMachine(), Path(), Path()),
    )
    found = Conditioner(target, span, span, "discard", jobs, lambda text, seconds: None)._parts()
    return [size for _, size in found]


@pytest.mark.parametrize("tb", [0.96, 7.68, 15.36, 30.72, 122.88, 250.0])
def test_files_that_fill_a_span_take_what_is_due_of_it(tb: float) -> None:
    """Each file's bytes are whole blocks: a remainder lost in each of them made less than what was due, on every target above 8 TB."""
    random = Random(f"spans {tb}")
    for _ in range(200):
        span = int(tb * 1e12) - random.randrange(10**10)
        parts = parts_of(span)
        written = 0
        for size in parts:
            written += int(str(precondition_values(size, WRITTEN_SHARE)["WRITTEN_BYTES"]))
        assert written == bytes_due(span, BLOCK_BYTES, WRITTEN_SHARE)[1]
        assert max(parts) <= FILE_BYTES_MAX <= 8 * 10**12


def without_hazards(seed: int) -> Spec:
    return replace(spec_of(seed, "market"), hazards=())


@pytest.mark.parametrize("seed", [SINGLE, LARGE, RAW])
def test_a_good_server_of_the_market_passes(tmp_path: Path, seed: int) -> None:
    row = judged(without_hazards(seed), tmp_path, "market")
    assert (row.right, row.outcome, row.invented) == (["PASS"], "PASS", False), row.reason


def test_a_slow_server_fails_and_says_why(tmp_path: Path) -> None:
    spec = without_hazards(SINGLE)
    slow = replace(spec, drives=tuple(replace(one, cell_rate=0.9 * DEMAND) for one in spec.drives))
    row = judged(slow, tmp_path, "market")
    assert (row.right, row.outcome, row.named) == (["FAIL"], "FAIL", True)


def test_a_good_set_of_sas_drives_passes(tmp_path: Path) -> None:
    """Such drives state one limit, SCSI's reference temperature: up to there they work continuously."""
    spec = replace(without_hazards(26), drives=spec_of(26, "market").drives[:12], ceiling=0.0)
    assert spec.medium == SAS
    row = judged(spec, tmp_path, "market")
    assert (row.right, row.outcome) == (["PASS"], "PASS"), row.reason


def test_a_target_without_room_for_a_record_is_refused_in_no_time(tmp_path: Path) -> None:
    spec = without_hazards(SINGLE)
    small = replace(spec, drives=tuple(replace(one, size_bytes=512 * sectors_of(0.48)) for one in spec.drives))
    row = judged(small, tmp_path, "market")
    assert (row.right, row.outcome, row.named) == (["REFUSED"], "REFUSED", True)
    tight = replace(small, filesystem="ext4", drives=(replace(small.drives[0], size_bytes=512 * sectors_of(0.96)),))
    row = judged(tight, tmp_path, "market")
    assert row.right == ["ERROR", "REFUSED"]  # what the file system keeps for itself shows once it is made
    assert row.is_right and row.named


def test_a_server_is_good_only_with_five_percent_to_spare() -> None:
    server = Server(without_hazards(SINGLE), "market")
    server.least_headroom_k = 20
    for rate, good in ((1.06 * DEMAND, True), (1.04 * DEMAND, False)):
        server.paces, server.scanned = {1: [2 * DEMAND] * 100}, [(8 * 2**20, 90.0, rate)]
        assert is_well_inside(server) is good
        assert truth_of(server).passes is good
    server.scanned = [(4 * 2**20, 90.0, DEMAND / 2), (8 * 2**20, 10.0, DEMAND / 2), (8 * 2**20, 90.0, 2 * DEMAND)]
    assert is_well_inside(server)  # smaller blocks and short points decide nothing
    server.paces = {1: [2 * DEMAND] * 100, 2: [1.05 * DEMAND] * 40 + [0.5 * DEMAND] * 10 + [2 * DEMAND] * 50}
    assert not is_well_inside(server)  # 51 GB wait where the rings hold 5.4 GB
    server.paces, server.scanned = {1: [2 * DEMAND] * 100}, [(8 * 2**20, 90.0, 0.97 * DEMAND)]
    assert truth_of(server).outcomes == {"FAIL", "INADMISSIBLE"}
    server.scanned = [(8 * 2**20, 90.0, 0.9 * DEMAND)]
    assert truth_of(server).outcomes == {"FAIL"}


def small(scenario: str, seed: int, **drive: float) -> Spec:
    """A server of a shipped scenario without hazards, whose drives have 1.92 TB, so that a run has few seconds."""
    spec = spec_of(seed, scenario)
    drives = tuple(replace(one, size_bytes=512 * sectors_of(1.92), **drive) for one in spec.drives)  # type: ignore[arg-type]
    return replace(spec, hazards=(), zero_share=1.0, drives=drives)


SHIPPED = [("market-thermal", 1), ("market-steady-state", 2), ("market-saturation", 7)]


@pytest.mark.parametrize(("scenario", "seed"), SHIPPED)
def test_a_good_server_passes_each_shipped_scenario(tmp_path: Path, scenario: str, seed: int) -> None:
    found = judged(small(scenario, seed), tmp_path, scenario)
    assert (found.scenario, found.right, found.outcome, found.invented) == (scenario, ["PASS"], "PASS", False), (
        found.reason
    )


@pytest.mark.parametrize(("scenario", "seed"), SHIPPED)
def test_a_slow_server_fails_each_shipped_scenario(tmp_path: Path, scenario: str, seed: int) -> None:
    found = judged(small(scenario, seed, cell_rate=0.7 * DEMAND), tmp_path, scenario)
    assert (found.right, found.outcome, found.named) == (["FAIL"], "FAIL", True), found.reason


@pytest.mark.parametrize(("scenario", "seed"), SHIPPED[1:])
@pytest.mark.parametrize("rate", [2 * DEMAND, 0.7 * DEMAND])
def test_a_drive_that_its_purge_leaves_with_data_is_not_written_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str, seed: int, rate: float
) -> None:
    """A slow one, too: nothing was measured that it could miss."""
    written: list[float] = []
    second = Server.second
    monkeypatch.setattr(Server, "second", lambda self, *more: (written.append(more[0]), second(self, *more))[1])
    found = judged(replace(small(scenario, seed, cell_rate=rate), zero_share=0.25), tmp_path, scenario)
    assert (found.right, found.outcome, found.named) == (["INADMISSIBLE"], "INADMISSIBLE", True), found.reason
    assert sum(written) == 0


@pytest.mark.parametrize("medium", [TLC, SAS])
def test_a_good_server_passes_the_wear_experiment(tmp_path: Path, medium: str) -> None:
    """Neither wear nor errors of a SAS drive were read, so that no set of them could pass."""
    seed = next(seed for seed in range(200) if spec_of(seed, "market-endurance").medium == medium)
    spec = replace(small("market-endurance", seed, cell_rate=50e9), ceiling=0.0, parity_rate=0.0)
    found = judged(replace(spec, raid=0, drives=spec.drives[:2]), tmp_path, "market-endurance")
    assert (found.right, found.outcome, found.invented) == (["PASS"], "PASS", False), found.reason


def test_a_drive_of_a_short_life_fails_the_wear_experiment(tmp_path: Path) -> None:
    spec = replace(small("market-endurance", 1, cell_rate=50e9, life_bytes=100e12), ceiling=0.0)
    found = judged(replace(spec, drives=spec.drives[:1]), tmp_path, "market-endurance")
    assert (found.right, found.outcome, found.named) == (["FAIL"], "FAIL", True), found.reason


def test_a_good_set_of_sas_drives_passes_the_soak(tmp_path: Path) -> None:
    """The kernel reads no temperature of them: a soak that asked the kernel alone was INADMISSIBLE."""
    spec = replace(small("market-thermal", 11), ceiling=0.0)
    spec = replace(spec, drives=spec.drives[:7])
    assert spec.medium == SAS
    found = judged(spec, tmp_path, "market-thermal")
    assert (found.right, found.outcome) == (["PASS"], "PASS"), found.reason


def test_a_sas_drive_that_falls_silent_is_no_evidence(tmp_path: Path) -> None:
    """snb-100s passed without a reading of its temperature for 100 s."""
    spec = replace(without_hazards(26), drives=spec_of(26, "market").drives[:12], ceiling=0.0)
    silent = Hazard("drive_sensor_silent", 2, 10.0, 0.0, 100.0, 0)
    found = judged(replace(spec, hazards=(silent,)), tmp_path, "market")
    assert (found.right, found.outcome, found.named) == (["INADMISSIBLE"], "INADMISSIBLE", True), found.reason


COMPARED, SET = "market-raid-vs-3dxp", 25


def comparison(*hazards: Hazard, **drive: float) -> Spec:
    """Five drives in three layouts beside a reference; `drive`: of the set's drives."""
    spec = spec_of(SET, COMPARED)
    drives = tuple(replace(one, **drive) for one in spec.drives[1:])  # type: ignore[arg-type]
    return replace(spec, hazards=hazards, drives=(spec.drives[0], *drives))


def test_a_good_set_passes_beside_its_reference(tmp_path: Path) -> None:
    row = judged(comparison(), tmp_path, COMPARED)
    assert (row.right, row.outcome, row.invented) == (["PASS"], "PASS", False), row.reason
    assert (row.array, row.drives, row.capacity_bytes) == ("raid0", 5, 5 * comparison().drives[1].size_bytes)


@pytest.mark.parametrize(
    ("spec", "right", "said"),
    [
        (comparison(cell_rate=0.18 * DEMAND), "FAIL", "RVX-01"),
        (comparison(Hazard("slow_drive", 0, 0.0, 0.0, 0.5, 3)), "FAIL", "RVX-01"),
        (comparison(Hazard("drive_pulled", 5, 2.0, 0.0, 1.0, 1)), "FAIL", "The set nand-raid0 failed in round 2"),
        (comparison(Hazard("drive_pulled", 6, 2.0, 0.0, 1.0, 5)), "FAIL", "The set nand-raid0 failed in round 2"),
        (comparison(Hazard("swapped_after_preflight", 0, 0.0, 0.0, 1.0, 4)), "INADMISSIBLE", "dentity"),
    ],
)
def test_a_bad_set_does_not_pass_and_says_why(tmp_path: Path, spec: Spec, right: str, said: str) -> None:
    row = judged(spec, tmp_path, COMPARED)
    assert (row.right, row.outcome, row.named) == ([right], right, True), row.reason
    assert said in row.reason


@pytest.mark.parametrize(("record", "drive"), [(5, 0), (30, 2)])
def test_a_drive_that_the_judged_set_does_not_need_accuses_it_of_nothing(
    tmp_path: Path, record: int, drive: int
) -> None:
    """The reference breaks, or another layout after the judged one was compared: the comparison has a gap, and nobody fails."""
    row = judged(comparison(Hazard("drive_pulled", record, 2.0, 0.0, 1.0, drive)), tmp_path, COMPARED)
    assert row.outcome in ("ERROR", "INADMISSIBLE") and row.is_right and row.named, row.reason


def test_a_target_is_loaded_by_its_own_drives_alone() -> None:
    server = Server(comparison(), COMPARED)
    reference, judged_set, _, parity = server.spec.own, *server.spec.sets
    server.second(1e9, 0.0)
    server.aim_at(judged_set)
    server.second(5e9, 0.0)
    server.aim_at(parity)
    server.second(4e9, 0.0)
    assert [one.written_bytes for one in server.drives] == [1e9, *[2e9] * 5]
    assert server.written_to == {reference.name: 1e9, judged_set.name: 5e9, parity.name: 4e9}
    assert (server.array_name, server.array_written) == ("md0", 4e9)


def test_a_comparison_is_drawn_of_sets_that_can_be_built() -> None:
    drawn = [spec_of(seed, COMPARED) for seed in range(100)]
    assert {spec.drives[0].model[4:] for spec in drawn} == {one.name for one in CATALOGUE if one.medium == OPTANE}
    assert {spec.medium for spec in drawn} == set(MEDIA) - {OPTANE}
    assert all(3 <= len(spec.judged.drives) <= 24 and 0 not in spec.judged.drives for spec in drawn)
    assert all([one.array for one in spec.sets] == ["raid0", "raid0", "raid5"] for spec in drawn)
    assert all(spec.sets[2].parity_rate > 0 == spec.judged.parity_rate for spec in drawn)


def test_a_set_is_good_only_with_five_percent_to_spare() -> None:
    server = Server(comparison(), COMPARED)
    name = server.spec.judged.name
    for seconds, rate, outcomes in (
        ((1.06 * DEMAND,) * 7, 1.06 * DEMAND, {"PASS"}),
        ((1.04 * DEMAND,) * 7, 1.04 * DEMAND, {"PASS", "INADMISSIBLE"}),
        ((0.97 * DEMAND,) * 7, 0.97 * DEMAND, {"FAIL", "INADMISSIBLE"}),
        ((0.9 * DEMAND,) * 7, 0.9 * DEMAND, {"FAIL"}),
    ):
        server.visits = [Visit(name, seconds, rate), Visit("nand-raid5", (1e9,), 1e9), Visit("reference", (2e9,), 2e9)]
        assert truth_of(server).outcomes == outcomes


def test_a_scenario_draws_the_targets_that_it_allows() -> None:
    kinds = {
        scenario: {(spec.array == "single", spec.raw) for spec in (spec_of(seed, scenario) for seed in range(150))}
        for scenario in ("market-thermal", "market-endurance", "market-steady-state", "market-saturation")
    }
    assert kinds == {
        "market-thermal": {(True, False), (False, False)},
        "market-endurance": {(True, False), (False, False)},
        "market-steady-state": {(True, True)},
        "market-saturation": {(True, True)},
    }


def test_drives_that_no_saturation_run_fits_are_refused_in_no_time(tmp_path: Path) -> None:
    spec = small("market-saturation", 7)
    for tb, cause in ((0.96, "pass without a record"), (30.72, "beyond its budget")):
        other = replace(spec, drives=(replace(spec.drives[0], size_bytes=512 * sectors_of(tb)),))
        found = judged(other, tmp_path, "market-saturation")
        assert (found.right, found.outcome, found.causes, found.named) == (["REFUSED"], "REFUSED", [cause], True)


def test_a_soak_is_good_only_with_five_percent_to_spare() -> None:
    server = Server(small("market-thermal", 1), "market-thermal")
    for rate, headroom, good in ((1.06, 6, True), (1.04, 6, False), (1.06, 5, False)):
        server.soaked, server.soaked_headroom_k = [rate * DEMAND] * 1800, [headroom] * 1800
        assert is_well_inside(server) is good
        assert truth_of(server).passes is good
    server.soaked, server.soaked_headroom_k = [0.9 * DEMAND] * 1800, [6] * 1800
    assert truth_of(server).outcomes == {"FAIL"}


def test_steady_rounds_and_passes_are_good_only_with_five_percent_to_spare() -> None:
    server = Server(small("market-steady-state", 2), "market-steady-state")
    for rates, outcomes in (
        ([0.5] * 3 + [1.06] * 5, {"PASS"}),  # the rounds before those by which it is judged do not count
        ([1.06] * 4 + [1.04], {"PASS", "INADMISSIBLE"}),
        ([1.06] * 4 + [0.98], {"FAIL", "INADMISSIBLE"}),
        ([0.9] * 5, {"FAIL"}),
        ([0.9] * 25, {"FAIL", "INADMISSIBLE"}),
        ([1.06] * 25, {"PASS", "INADMISSIBLE"}),
    ):
        server.rounds = [[rate * DEMAND] * 60 for rate in rates]
        assert truth_of(server).outcomes == outcomes, rates
    server = Server(small("market-saturation", 7), "market-saturation")
    for rates, outcomes in (
        ([1.06] * 150, {"PASS"}),
        ([1.06] * 50 + [1.04] * 100, {"PASS", "INADMISSIBLE"}),
        ([1.5] * 110 + [1.06] * 40, {"PASS", "INADMISSIBLE"}),  # it falls behind the record
        ([1.5] * 50 + [1.06] * 100, {"FAIL", "INADMISSIBLE"}),  # and within it
        ([0.9] * 150, {"FAIL"}),
    ):
        server.passes = [[rate * DEMAND for rate in rates]] * 6
        assert truth_of(server).outcomes == outcomes, rates[0]


def test_watts_of_a_dynamic_cache_are_those_at_its_rate() -> None:
    """Cooled for the rate behind the cache, a P3 became 289 K hotter than its warning in it."""
    for spec in DRAWN:
        one = spec.drives[0]
        assert isinstance(one, SoldSpec)
        if one.cache_share:
            full_w = one.idle_w + one.w_per_gb_per_s * one.cache_rate / 1e9
            assert full_w <= 7.01
            assert 27 + full_w * (one.to_air_k_per_w + one.to_case_k_per_w) <= one.warning_degc + 8 + 2


def row(seed: int, **more: object) -> Row:
    values: dict[str, object] = {
        "seed": seed, "scenario": "market", "pace": "sheet", "hazards": [], "fired": [], "right": ["PASS"], "causes": [],
        "outcome": "PASS", "named": True, "invented": False, "reason": "", "cpu_s": 1.0, "capacity_bytes": 7_681_501_126_656,
        "medium": "TLC", "model": "SIM 9550",
    }  # fmt: skip
    return Row(**{**values, **more})  # type: ignore[arg-type]


def test_a_row_says_what_was_bought(tmp_path: Path) -> None:
    found = json.loads(json.dumps(asdict(row(1))))
    wanted = {"seed", "scenario", "capacity_bytes", "target_kind", "array", "right", "outcome", "named", "reason"}
    assert wanted <= found.keys()


def test_the_page_counts_good_servers_by_class() -> None:
    sas = row(
        2, medium=SAS, array="raid0", outcome="INADMISSIBLE", reason="SNB-06: drives sda, sdb tell nothing of 12 degC"
    )
    rows = [
        *(row(10 + number) for number in range(52)),
        row(1, right=["FAIL"], outcome="FAIL", causes=["lost"]),
        sas,
        row(3, array="raid5", capacity_bytes=40_000_000_000_000, outcome="FAIL", reason="SNB-07 is missed by nvme3n1"),
    ]
    text = text_of(rows, 0, row(9, right=["FAIL"], outcome="FAIL"))
    assert "| good server passes | 52 | 54 | 96.30 % |" in text
    assert "| 2 to 8 | 54 | 53 | 52 | 98.1 % | 89.9 to 100.0 % | no | 0 |" in text
    assert "| 32 to 250 | 1 | 1 | 0 | 0.0 % | 0.0 to 97.5 % | no | 0 |" in text
    assert "| SAS TLC | 1 | 1 | 0 |" in text
    assert "- 1 x INADMISSIBLE: SNB-N: drives D tell nothing of N degC\n  (SAS TLC; seeds 2)" in text
    assert "- 1 x FAIL: SNB-N is missed by D\n" in text
    assert "Wrong PASS: 0 of 1 runs" in text
    assert all(f"| {one.name} |" in text for one in CATALOGUE)
    soaked = text_of(rows, 0, row(9, right=["FAIL"], outcome="FAIL"), "market-thermal")
    assert "The canary (60 W of foreign heat into one drive) was found: FAIL" in soaked
    assert "| good server passes | 52 | 54 | 96.30 % |" in soaked
    assert "## The catalogue" not in soaked
    assert all(len(line) <= 140 or line.startswith("|") for line in text.splitlines())
