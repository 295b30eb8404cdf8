"""The saturation workload: what it refuses before a byte is written, what it asks daqwriter for, and whose account pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tool_answers import OF_THE_RIG, answer

from daq_bench.bench_model.base.errors import InterruptedRunError, RefusedError
from daq_bench.bench_model.documents.results import WearExperiment
from daq_bench.bench_model.documents.run import Drive, Host
from daq_bench.bench_model.documents.tools.synthetic import Write
from daq_bench.bench_model.profiles.candidates import Candidate, Target, load_candidate
from daq_bench.bench_model.profiles.scenarios import Scenario, load_scenario
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.bench_model.workloads.saturation import analysis as model
from daq_bench.bench_model.workloads.saturation.passes import asked_bytes
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.host import Target as FoundTarget
from daq_bench.rig.candidate.load_target import FileTarget, RawDevice
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.workloads import saturation
from daq_bench.rig.workloads.saturation import SaturationPlan, options, run_saturation
from daq_bench.rig.workloads.shared.site import Site
from daq_bench.rig.workloads.shared.wear_account import Worn
from daq_bench.rig.workloads.shared.wear_ledger import WearLedger

LAYOUT = Layout()
DRIVE = Drive("nvme0n1", "Drive", "S1", "1", None, 10**12, 0, False, "nvme", None)
MIB = 2**20
EXPERIMENT = WearExperiment("saturation-test", "saturation-rehearsal", "", ("S1",))


def scenario(name: str = "saturation-rehearsal", **changes: Any) -> Scenario:
    """The shipped scenario with other parameters; None leaves one out."""
    loaded = load_scenario(LAYOUT.inventory / "scenarios" / f"{name}.yml")
    own = {key: one for key, one in {**loaded.workloads["saturation"], **changes}.items() if one is not None}
    return replace(loaded, workloads={"saturation": own})


def candidate(**target: Any) -> Candidate:
    loaded = load_candidate(LAYOUT.inventory / "lab.yml", "this-machine")
    chosen = {"name": "", "kind": "filesystem", "directory": "/x", "drive_serial": None, "storage": None, **target}
    return replace(loaded, name="saturation-test", target=Target(**chosen))


def found(free: int = 10**12, device: Drive | None = DRIVE) -> Survey:
    return Survey(Host(), [], FoundTarget("xfs", free, device), 0.0)


RAW = {"kind": "raw-device", "directory": "", "drive_serial": "S1", "destroy": True}


@pytest.mark.parametrize(
    ("asked", "target", "free", "why"),
    [
        (scenario("saturation", free_share=None), {}, 10**12, "has neither span_size nor free_share"),
        (scenario("saturation"), RAW, 10**12, "a pass of 800 GB cannot show that 924.3 GB"),
        (scenario(block_size=1000), {}, 10**12, "is no multiple of 4 KiB"),
        (scenario(span_size=None, free_share=0.9), {}, 5 * 10**9, "are to stay free"),
        (scenario(), {}, 4 * 10**9, "are to stay free"),
        (scenario(span_size=64 * 1024), {}, 10**12, "a saturation pass of 0 B"),
        (scenario(write_budget=3 * 10**9), {}, 10**12, "of 3 GB are spent"),
        (scenario("saturation", write_budget=10**12), RAW, 2 * 10**12, "6 passes of 1.6 TB"),
    ],
)
def test_what_cannot_work_is_refused_before_a_byte_is_written(
    asked: Scenario, target: dict[str, Any], free: int, why: str
) -> None:
    with pytest.raises(RefusedError, match=why):
        saturation.check(asked, candidate(**target), found(free))


def test_a_target_that_nothing_counts_is_refused() -> None:
    with pytest.raises(RefusedError, match="nothing counts what is written"):
        saturation.check(scenario(), candidate(), found(device=None))


def test_the_shipped_scenarios_are_accepted() -> None:
    saturation.check(scenario(), candidate(), found())
    saturation.check(scenario("saturation"), candidate(**RAW), found(2 * 10**12))


@pytest.mark.parametrize(
    ("own", "capacity", "asked"),
    [
        ({}, 10 * MIB + 5, 8 * MIB),
        ({"free_share": 0.5}, 100 * MIB, 48 * MIB),
        ({"span_size": 17 * MIB}, 100 * MIB, 16 * MIB),
        ({}, 0, 0),
    ],
)
def test_a_pass_is_whole_blocks_of_what_was_asked_for(own: dict[str, Any], capacity: int, asked: int) -> None:
    assert asked_bytes({"block_size": 8 * MIB, **own}, capacity) == asked


class Machine(LocalMachine):
    """This machine, with a drive whose counter the test moves, and daqwriter, which may be interrupted."""

    def __init__(self, interrupted: bool = False) -> None:
        super().__init__()
        self.counted, self._interrupted = 10**9, interrupted

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        if "write" in map(str, argv):
            self.counted += 33 * MIB
            if self._interrupted:
                return Completed(tuple(map(str, argv)), 130, "", "")
        return super().run(argv, timeout_s, env)

    def call(self, program: str, *arguments: str | Path, timeout_s: float = 120.0) -> Any:
        counts = {"counter": "nvme", "written_bytes": self.counted, "step_bytes": 512000, "nand_bytes": None}
        return {"boot_id": "boot-1", "drives": [{"name": "nvme0n1", **counts}]}


def plan_of(machine: Machine, folder: Path, repetitions: int = 2) -> SaturationPlan:
    own = {**scenario().workloads["saturation"], "span_size": 32 * MIB}
    raw = folder / "raw"
    raw.mkdir()
    site = Site(machine, LAYOUT.daqwriter, folder, raw, raw, None)
    worn = Worn("saturation", (DRIVE,), 1, EXPERIMENT)
    target = FileTarget(machine, folder / saturation.FILE)
    return SaturationPlan(own, repetitions, 1, target, site, worn, False, raw / "workload.lp", {"run": "r"})


def ledger_of(folder: Path, budget: int = 10**9) -> WearLedger:
    return WearLedger(folder / "account.json", EXPERIMENT, budget, "run-1", [])


def test_real_passes_make_a_whole_document_and_leave_nothing(disk: Path) -> None:
    machine = Machine()
    kept: list[dict[str, Any]] = []
    plan, ledger = plan_of(machine, disk), ledger_of(disk)
    told = run_saturation(machine, plan, ledger, lambda *_: None, kept.append)
    check_document(told, "saturation", model.FILE)
    assert [len(one["repetitions"]) for one in kept] == [1, 2]
    assert [one["written_bytes"] for one in told["repetitions"]] == [32 * MIB] * 2
    assert [entry["charged_bytes"] for entry in told["ledger"]] == [33 * MIB] * 2
    assert told["spent_bytes"] == 66 * MIB
    assert any("is a file's, not a drive's" in text for text in told["limits"])
    assert not (disk / saturation.FILE).exists()
    analysis = model.document(told)
    check_document(analysis, "saturation-analysis", model.NAME)
    # 32 MiB take a few hundredths of a second: too few samples for any statement
    assert {row["finding"] for row in analysis["repetitions"]} == {"unknown"}
    assert set(analysis["reasons"]) > {"saturation.early_cliffs", "saturation.sustained_rate"}


def test_an_interrupted_pass_is_charged_and_its_file_removed(disk: Path) -> None:
    machine = Machine(interrupted=True)
    plan, ledger = plan_of(machine, disk), ledger_of(disk)
    with pytest.raises(InterruptedRunError):
        run_saturation(machine, plan, ledger, lambda *_: None, lambda _: None)
    (entry,) = ledger.entries
    assert (entry.charged_by, entry.charged_bytes) == ("drives", 33 * MIB)
    assert not (disk / saturation.FILE).exists()


def test_a_pass_that_the_drive_does_not_confirm_does_not_count() -> None:
    written = answer(Write, OF_THE_RIG / "write.json", written_bytes=100)

    def make(counted: int | None) -> Any:
        return saturation.row(1, True, 100, 100, {}, written, counted)["reason"]

    assert make(100) is None
    assert "the drives counted 90 B" in make(90)
    assert "cannot be compared" in make(None)


def test_daqwriter_is_asked_for_a_raw_drive_by_its_serial(disk: Path) -> None:
    plan = plan_of(Machine(), disk)
    raw = replace(plan, target=RawDevice(plan.site.machine, "S1", Path("/dev/x"), True, LAYOUT.daqwriter))
    words = options(raw, 32 * MIB, 1)
    assert {
        "--allow-serial=S1",
        "--destroy=S1",
        f"--bytes={32 * MIB}",
        "--condition=fresh",
        "--pattern=sequential",
    } <= set(words)
