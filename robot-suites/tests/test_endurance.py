"""The wear experiment's arithmetic, refusals and interruptions, with drives whose counts the tests control."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from small_runs import altered

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.documents.results import Counters, WearExperiment
from daq_bench.bench_model.documents.run import Drive, Host
from daq_bench.bench_model.profiles.candidates import Candidate, Target, load_candidate
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.host import Target as FoundTarget
from daq_bench.rig.candidate.load_target import FileTarget
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.on_candidate.reading import disk_counters, drive_wear
from daq_bench.rig.workloads.endurance import step as endurance_step
from daq_bench.rig.workloads.endurance import workload as endurance
from daq_bench.rig.workloads.shared import wear_account
from daq_bench.rig.workloads.shared.fio_job import JobFiles
from daq_bench.rig.workloads.shared.wear_ledger import WearLedger

LAYOUT = Layout()
DRIVE = Drive(
    name="nvme0n1",
    model="Drive",
    serial="S1",
    firmware="1",
    wwn=None,
    size_bytes=10**12,
    numa_node=0,
    rotational=False,
    transport="nvme",
    pcie_link=None,
)
MIB = 2**20


scenario = partial(altered, "endurance-rehearsal")


def candidate(name: str = "endurance-test", **target: Any) -> Candidate:
    loaded = load_candidate(LAYOUT.inventory / "lab.yml", "this-machine")
    chosen = Target(
        **{"name": "", "kind": "filesystem", "directory": "/x", "drive_serial": None, "storage": None, **target}
    )
    return replace(loaded, name=name, target=chosen)


def found(device: Drive | None = DRIVE) -> Survey:
    return Survey(Host(), [], FoundTarget("xfs", 10**12, device), 0.0)


def test_a_budget_too_small_for_one_step_is_refused_with_the_arithmetic() -> None:
    with pytest.raises(RefusedError) as refused:
        endurance.check(scenario(write_budget=300 * 10**6), candidate(), found())
    said = str(refused.value)
    assert "workloads.endurance.write_budget: 300 MB (300000000 B) is too small for one step" in said
    assert "filling the file (134.2 MB) and one step (268 MB)" in said
    assert "Nothing was written" in said


def test_every_copy_of_an_array_is_paid_for() -> None:
    need, _ = endurance.first_need(scenario().workloads["endurance"], 1)
    mirrored = {"drives": ["A", "B"], "raid": {"level": 1}, "filesystem": "xfs"}
    tight = scenario(write_budget=need)
    endurance.check(tight, candidate(), found())
    with pytest.raises(RefusedError, match="x 2 drive writes per byte"):
        endurance.check(tight, candidate(storage=mirrored), found())


@pytest.mark.parametrize(
    ("level", "members", "copies"),
    [(None, 1, 1), (None, 3, 3), ("raid0", 3, 1), ("raid1", 3, 3), ("raid5", 4, 2), ("raid6", 5, 3)],
)
def test_writes_per_byte_of_an_array(level: str | None, members: int, copies: int) -> None:
    assert wear_account.copies_of(level, members) == copies


def test_the_paths_to_one_drive_are_one_drive() -> None:
    """Two SAS paths below dm-multipath have one serial (dak180/FreeNAS-Report#32): its wear is counted once."""
    paths = [msgspec.structs.replace(DRIVE, name=name, serial="A") for name in ("sda", "sdc")]
    other = msgspec.structs.replace(DRIVE, name="sdb", serial="B")
    volume = msgspec.structs.replace(DRIVE, name="dm-0", serial=None, members=["sda", "sdc"])
    assert wear_account.beneath(volume, paths, "x") == (("A",), 1)
    assert wear_account.beneath(volume, [*paths, other], "x") == (("A", "B"), 2)


def test_a_target_that_no_drive_carries_is_refused() -> None:
    with pytest.raises(RefusedError, match="a write budget cannot be enforced"):
        endurance.check(scenario(), candidate(), found(None))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"random_block_size": 5568}, "random_block_size: 5568 B is no multiple of 4 KiB"),
        ({"file_size": 128 * MIB + 4096}, "file_size: .* is no multiple of sequential_block_size"),
        ({"step_size": 4096}, "step_size: 4096 B are less than one block"),
    ],
)
def test_a_pattern_that_cannot_be_written_is_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        endurance.check(scenario(**changes), candidate(), found())


def test_a_spent_budget_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    file = tmp_path / "account.json"
    ledger = WearLedger(file, EXPERIMENT, 2 * 10**9, "run-1", [])
    ledger.settle(ledger.reserve("mix", 1, 19 * 10**8, Counters("e", {"S1": 0})), 1, Counters("e", {"S1": 19 * 10**8}))
    need, arithmetic = endurance.first_need(scenario().workloads["endurance"], 1)
    with pytest.raises(RefusedError) as refused:
        wear_account.require_left(scenario(), "endurance", file, 2 * 10**9, need, arithmetic)
    assert "1.9 GB (1900000000 B) of 2 GB are spent by earlier runs, 100 MB (100000000 B) are left, but filling" in str(
        refused.value
    )
    assert str(file) in str(refused.value)
    wear_account.require_left(scenario(), "endurance", file, 3 * 10**9, need, arithmetic)


def test_a_step_goes_on_in_the_file_where_the_one_before_ended() -> None:
    parameters = {**scenario().workloads["endurance"], "step_size": 32 * MIB, "random_percent": 0}
    assert [endurance_step.mix_step(parameters, number).offset_bytes // MIB for number in range(6)] == [
        0,
        32,
        64,
        96,
        0,
        32,
    ]
    larger = {**parameters, "step_size": 256 * MIB}
    assert endurance_step.mix_step(larger, 3).offset_bytes == 0


def test_the_pattern_is_split_by_bytes() -> None:
    step = endurance_step.mix_step(
        {**scenario().workloads["endurance"], "step_size": 100 * MIB, "random_percent": 25}, 0
    )
    assert (step.sequential_bytes, step.random_bytes) == (75 * MIB, 25 * MIB)


EXPERIMENT = WearExperiment("server", "endurance-rehearsal", "", ("S1",))


class Drives(LocalMachine):
    """fio that writes what it is told to, and a drive that counts it with something on top."""

    def __init__(self, on_write: Callable[[int], None] | None = None) -> None:
        super().__init__()
        self.counted, self.boot, self.steps = 7_000_000, "boot-1", 0
        self.answers = True
        self._on_write = on_write

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        words = [str(word) for word in argv]
        if words[0] == "sh":  # brings a job file
            return super().run(argv, timeout_s, env)
        given = dict(word.split("=", 1) for word in words[1 : words.index("fio")])
        names = [word.partition("=")[2] for word in words if word.startswith("--section=")]
        sizes = [int(given[f"{name.upper()}_WRITTEN_BYTES"]) for name in names]
        self.steps += 1
        self.counted += sum(sizes) // 2
        if self._on_write:
            self._on_write(self.steps)
        self.counted += sum(sizes) - sum(sizes) // 2 + 8192
        jobs = [
            {"jobname": name, "error": 0, "write": {"io_bytes": size, "runtime": 100, "bw_bytes": size * 10}}
            for name, size in zip(names, sizes, strict=True)
        ]
        return Completed(tuple(words), 0, json.dumps({"jobs": jobs}), "")

    def call(self, program: str, *arguments: str | Path, timeout_s: float = 60) -> Any:
        assert program == "drive_wear"
        if not self.answers:
            raise BenchError("the connection was lost")
        health = dict.fromkeys(drive_wear.HEALTH, 0)
        one = {
            "name": "nvme0n1",
            "counter": "nvme",
            "written_bytes": self.counted,
            "step_bytes": 512000,
            "nand_bytes": None,
        }
        return {"boot_id": self.boot, "drives": [one | health]}


def run(
    machine: Drives, tmp_path: Path, keep: Callable[[dict[str, Any]], None] = lambda _: None
) -> tuple[dict[str, Any], WearLedger]:
    plan = endurance_step.Plan(
        scenario().workloads["endurance"],
        1,
        FileTarget(machine, tmp_path / endurance_step.FILE),
        JobFiles(machine, tmp_path, tmp_path),
        (DRIVE,),
        1,
        EXPERIMENT,
    )
    ledger = WearLedger(tmp_path / "account.json", EXPERIMENT, 2 * 10**9, f"run-{machine.boot}", [])
    document = endurance.run_experiment(machine, plan, ledger, lambda *_: None, keep)
    check_document(document, "endurance", "results/endurance.json")
    return document, ledger


def test_it_ends_when_the_next_step_does_not_fit(tmp_path: Path) -> None:
    machine = Drives()
    document, ledger = run(machine, tmp_path)
    assert [step["kind"] for step in document["steps"]] == ["fill"] + ["mix"] * 6
    assert machine.counted - 7_000_000 == ledger.spent_bytes == document["spent_bytes"] <= 2 * 10**9
    assert document["left_bytes"] < wear_account.reserved_bytes(document["steps"][1]["asked_bytes"], 1)
    assert "does not fit" in document["ended"]
    assert all(step["admissible"] for step in document["steps"])


def test_an_interruption_charges_what_the_drive_says_and_the_next_run_goes_on(tmp_path: Path) -> None:
    def interrupt(step: int) -> None:
        if step == 3:
            raise KeyboardInterrupt

    kept: list[dict[str, Any]] = []
    machine = Drives(interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(machine, tmp_path, kept.append)
    written = machine.counted - 7_000_000
    assert kept[-1]["spent_bytes"] == written
    assert [entry["charged_by"] for entry in kept[-1]["ledger"]] == ["drives"] * 3
    document, ledger = run(machine, tmp_path)
    assert document["spent_before_bytes"] == written
    assert machine.counted - 7_000_000 == ledger.spent_bytes <= 2 * 10**9


def test_a_power_cut_charges_the_whole_step(tmp_path: Path) -> None:
    def cut(step: int) -> None:
        if step == 2:
            machine.answers = False
            raise BenchError("the connection was lost")

    machine = Drives(cut)
    with pytest.raises(BenchError, match="the connection was lost"):
        run(machine, tmp_path)
    before_cut = machine.counted - 7_000_000
    machine.answers, machine.boot, machine.counted = True, "boot-2", 1000  # emulated drives count from nothing again
    document, ledger = run(machine, tmp_path)
    entry = ledger.entries[1]
    assert (entry.charged_by, entry.charged_bytes) == ("reservation", entry.reserved_bytes)
    assert before_cut + machine.counted - 1000 <= ledger.spent_bytes <= 2 * 10**9
    assert document["ended"]


def test_a_step_that_the_drive_does_not_confirm_is_masked(tmp_path: Path) -> None:
    class Forgetful(Drives):
        def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
            before = self.counted
            done = super().run(argv, timeout_s, env)
            self.counted = before + (self.counted - before) // 2
            return done

    document, ledger = run(Forgetful(), tmp_path)
    assert not any(step["admissible"] for step in document["steps"])
    assert "the drives counted" in document["steps"][0]["reason"]
    assert {entry.charged_by for entry in ledger.entries} == {"tool"}


def test_somebody_elses_writing_ends_the_experiment_and_is_no_fault_of_the_candidate(tmp_path: Path) -> None:
    def others(step: int) -> None:
        machine.counted += 10**9 if step == 3 else 0

    def more(step: int) -> None:
        machine.counted += 15 * 10**8 if step == 3 else 0

    machine = Drives(others)
    document, _ = run(machine, tmp_path)
    assert (document["invalid"], document["overrun_bytes"]) == ([], 0)
    assert len(document["steps"]) < 7
    machine = Drives(more)
    (tmp_path / "again").mkdir()
    document, _ = run(machine, tmp_path / "again")
    assert len(document["steps"]) == 3
    assert document["overrun_bytes"] > 0
    assert "something besides the bench wrote to the drives" in document["invalid"][0]


def test_nand_writes_come_from_an_ocp_page_only() -> None:
    page = (123_456_789).to_bytes(16, "little") + bytes(480) + OCP_GUID
    assert drive_wear.nand_bytes(page) == 123_456_789
    assert drive_wear.nand_bytes(page[:-16] + bytes(16)) is None
    assert drive_wear.nand_bytes(b"") is None
    # all ones never grow: a write amplification of 0
    assert drive_wear.nand_bytes(b"\xff" * 496 + OCP_GUID) is None


OCP_GUID = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")  # SMART-20 of OCP's specification, as the drive sends it


def intel_page(nand: int, host: int) -> bytes:
    """Log page CAh with these counts, of whatever unit, behind its erases: least, most and mean in 16 bits each."""
    items = [(0xAB, 0), (0xAD, 10 | 90 << 16 | 70 << 32), (0xF4, nand), (0xF5, host)]
    return b"".join(bytes([key, 0, 0, 100, 0]) + raw.to_bytes(6, "little") + b"\0" for key, raw in items).ljust(
        512, b"\0"
    )


def test_nand_writes_of_intels_page_count_while_its_unit_is_proven() -> None:
    unit = 32 * 2**20
    assert drive_wear.intel_nand_bytes(intel_page(3000, 1000), 1000 * unit + 10_000) == 3000 * unit
    assert drive_wear.intel_nand_bytes(intel_page(3000, 1000), 1000 * 2**30) is None
    assert drive_wear.intel_nand_bytes(intel_page(3000, 1000)[:-1], 1000 * unit) is None
    assert drive_wear.intel_nand_bytes(bytes(512), 0) is None
    assert drive_wear.intel_nand_bytes(intel_page(2**48 - 1, 1000), 1000 * unit) is None  # all ones: never counted


def test_nand_writes_of_a_sata_drive_are_in_the_unit_of_their_name() -> None:
    def table(name: str) -> dict[str, Any]:
        return {"ata_smart_attributes": {"table": [{"name": name, "raw": {"value": 7}}]}}

    assert drive_wear.ata_nand_bytes(table("NAND_Writes_1GiB"), []) == (7 * 2**30, 2**30)
    for another in ("Total_LBAs_Written", "Host_Writes_GiB", "NAND_Reads_1GiB", "NAND_Writes"):
        assert drive_wear.ata_nand_bytes(table(another), []) is None
    found = drive_wear.nand_writes("sda", table("NAND_Writes_32MiB"), None, [])
    assert found == {"nand_bytes": 7 * 32 * 2**20, "nand_step_bytes": 32 * 2**20, "nand_source": "ATA attribute"}
    assert set(drive_wear.nand_writes("sda", {}, None, []).values()) == {None}


@pytest.mark.parametrize(("units", "written"), [("123456", 123456), ({"n": 1, "s": "99"}, 99), (7.0, 7), (None, None)])
def test_a_count_is_a_number_however_smartctl_writes_it(units: Any, written: int | None) -> None:
    faults: list[str] = []
    assert drive_wear.count(units, "data_units_written", faults) == written and faults == []


@pytest.mark.parametrize("units", ["many", -1, True, 1.5, [1], {"n": "x"}, 2**63, "1e3"])
def test_what_is_no_count_is_named(units: Any) -> None:
    faults: list[str] = []
    assert drive_wear.count(units, "data_units_written", faults) is None
    assert len(faults) == 1 and re.fullmatch(r"data_units_written is .* no credible count", faults[0])


@pytest.mark.parametrize(
    "document",
    [
        {"ata_smart_attributes": None},
        {"ata_smart_attributes": {"table": None}},
        {"ata_smart_attributes": {"table": [None, 3, {"raw": {"value": 1}}, {"name": None}]}},
        {"ata_smart_attributes": {"table": [{"name": "NAND_Writes_1GiB"}]}},
        {"ata_smart_attributes": {"table": [{"name": "NAND_Writes_1GiB", "raw": {"value": None}}]}},
    ],
)
def test_a_torn_answer_counts_nothing(document: dict[str, Any]) -> None:
    assert drive_wear.ata_nand_bytes(document, []) is None


def test_a_line_before_smartctls_document_costs_nothing() -> None:
    warning = "smartctl: /etc/smart_drivedb.h(12): Syntax error, preset rejected\n"
    assert drive_wear.document_of(warning + '{"temperature": {"current": 30}}') == {"temperature": {"current": 30}}
    assert drive_wear.document_of("warning alone") is None


@pytest.mark.parametrize(
    ("stats", "written"),
    [
        ({"nvme0n1": "0 0 0 0 0 0 0 0 0 0 0", "nvme0c0n1": "9 0 72 0 4 0 800 0 0 0 0", "nvme0c1n1": "1 0 8 0 1 0 200 0 0 0 0"}, 1000),
        ({"nvme0n1": "9 0 72 0 4 0 800 0 0 0 0", "nvme0c0n1": "9 0 72 0 4 0 800 0 0 0 0"}, 800),
        # a few requests that the head held while it had no path: the agent's rule, and the reader's
        ({"nvme0n1": "2 0 16 0 1 0 8 0 0 0 0", "nvme0c0n1": "9 0 72 0 4 0 800 0 0 0 0"}, 800),
        ({"nvme0n1": "0 0 0 0 0 0 0 0 0 0 0", "nvme1c0n1": "9 0 72 0 4 0 800 0 0 0 0"}, 0),
        ({"nvme0n1": "0 0 0 0 0 0 0 0 0 0 0"}, 0),
    ],
)  # fmt: skip
def test_a_multipath_drive_is_counted_at_its_paths_where_the_head_counts_nothing(
    tmp_path: Path, stats: dict[str, str], written: int
) -> None:
    for name, text in stats.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "stat").write_text(text + "\n")
    assert disk_counters.counters("nvme0n1", tmp_path)[disk_counters.WRITTEN_SECTORS] == written


def test_counters_that_are_torn_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "sda").mkdir()
    (tmp_path / "sda/stat").write_text("1 2 3\n")
    with pytest.raises(ValueError, match="has 3 fields"):
        disk_counters.counters("sda", tmp_path)
    assert "cannot be read" in disk_counters.main(["nemo"])["error"]


def test_this_machines_counters_can_be_read() -> None:
    said = drive_wear.main([next(path.name for path in Path("/sys/block").iterdir())])
    assert said["result"]["drives"][0]["written_bytes"] >= 0
    assert "cannot be read" in drive_wear.main(["nemo"])["error"]


@pytest.mark.parametrize(
    "output",
    [
        "not JSON",
        "{}",
        '{"jobs": [{"jobname": "x", "error": 5, "write": {"io_bytes": 0, "runtime": 0, "bw_bytes": 0}}]}',
    ],
)
def test_output_of_fio_that_says_nothing_is_an_error(output: str) -> None:
    with pytest.raises(BenchError, match="step 1"):
        endurance_step.parse_step(output, "step 1")
