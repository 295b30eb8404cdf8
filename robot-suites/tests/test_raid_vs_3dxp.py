"""The comparison's procedure on this machine's disk: order, pairs, what is masked, and that sets go away whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from ruamel.yaml import YAML
from tool_answers import OF_THE_RIG, answer

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.documents.run import Drive, FurtherTarget, Host
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.documents.tools.minidaq import Minidaq
from daq_bench.bench_model.documents.tools.synthetic import Write
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.compared_targets import Compared
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.hazard_spans import HazardLog
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.facilities import OpenTarget
from daq_bench.rig.candidate.hazard_control import HazardControl
from daq_bench.rig.candidate.host import Node, Survey
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.on_candidate.reading import load_counters
from daq_bench.rig.run import preflight
from daq_bench.rig.workloads.raid_vs_3dxp.visit import VisitPlan, paced_document, samples, write_document
from daq_bench.rig.workloads.raid_vs_3dxp.workload import document, order_of, run_comparison

LAYOUT = Layout()
YAML_SAFE = YAML(typ="safe")
SCENARIO = load_scenario(LAYOUT.inventory / "scenarios" / "raid-vs-3dxp-emulated.yml")
VIRTUAL = load_candidate(LAYOUT.inventory / "lab.yml", "virtual")


def described(name: str, scratch: Path) -> OpenTarget:
    found = FurtherTarget("scratch-file", "ext4", [], name=name, directory=str(scratch.parent), path=str(scratch))
    return OpenTarget(name, scratch, found)


class Folders:
    """Targets that are folders of this machine, in the place of those that Ansible builds; it keeps what was asked of it."""

    def __init__(self, root: Path, broken: str = "") -> None:
        self.root, self.broken = root, broken
        self.said: list[str] = []

    def _folder(self, name: str) -> OpenTarget:
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        return described(name, folder)

    def reference(self) -> OpenTarget:
        return self._folder("reference")

    def open(self, name: str) -> OpenTarget:
        self.said.append(f"open {name}")
        if name == self.broken:
            raise BenchError(f"set {name!r} could not be made ready: no such drive")
        return self._folder(name)

    def close(self, target: OpenTarget) -> None:
        self.said.append(f"close {target.name}")


def parameters(**changes: Any) -> dict[str, Any]:
    own = dict(SCENARIO.workloads["raid_vs_3dxp"])
    own["paced"] = {**own["paced"], "seconds": 1, "ring_size": 2**20}
    return {**own, "write_size": 4 * 2**20, "idle_s": 0, "rounds": 2, "sets": ["nand-raid0", "nand-raid5"], **changes}


def plan(folder: Path, **changes: Any) -> VisitPlan:
    raw = folder / "raw"
    raw.mkdir(exist_ok=True)
    return VisitPlan(
        LocalMachine(), LAYOUT.daqwriter, parameters(**changes), 1, raw, raw, folder / "workload.lp", {"run": "t"}
    )


def comparison_of(*groups: tuple[str, ...]) -> Compared:
    by_name = {target.name: target for target in VIRTUAL.targets}
    return Compared(by_name["reference"], tuple(tuple(by_name[name] for name in group) for group in groups))


def nothing(text: str, step: int, steps: int, seconds: float) -> None:
    """No display."""


def test_each_round_mirrors_the_one_before() -> None:
    names = ["reference", "a", "b"]
    assert order_of(names, 1) == names
    assert order_of(names, 2) == ["b", "a", "reference"]
    places = [order_of(names, turn).index(name) for name in names for turn in (1, 2)]
    assert [sum(places[index : index + 2]) for index in (0, 2, 4)] == [
        2,
        2,
        2,
    ]  # a linear drift cancels for all of them


def test_sets_are_built_measured_and_taken_away_group_by_group(disk: Path) -> None:
    folders = Folders(disk)
    found = run_comparison(plan(disk), comparison_of(("nand-raid0",), ("nand-raid5",)), folders, None, nothing)
    check_document(found, "raid-vs-3dxp", "results/raid_vs_3dxp.json")
    assert folders.said == ["open nand-raid0", "close nand-raid0", "open nand-raid5", "close nand-raid5"]
    assert [(one["group"], one["round"], [visit["target"] for visit in one["visits"]]) for one in found["rounds"]] == [
        (1, 1, ["reference", "nand-raid0"]),
        (1, 2, ["nand-raid0", "reference"]),
        (2, 1, ["reference", "nand-raid5"]),
        (2, 2, ["nand-raid5", "reference"]),
    ]
    for one in found["rounds"]:
        ends = [one["idle"]["end_s"]]
        for visit in one["visits"]:
            assert visit["write"]["bytes_written"] == 4 * 2**20
            assert visit["write"]["throughput_bytes_per_s"] > 0
            assert ends[-1] <= visit["write"]["begin_s"] < visit["write"]["end_s"] <= visit["paced"]["begin_s"] + 0.01
            assert visit["paced"]["offered_superchunks"] == round(10 * 166000 * 0.0012)
            ends.append(visit["write"]["end_s"])
    assert list(disk.glob("*/raid-vs-3dxp*")) == []
    assert sum("scratch file" in text for text in found["limits"]) == 3


def test_a_set_that_cannot_be_built_takes_the_group_away_with_it(disk: Path) -> None:
    folders = Folders(disk, broken="nand-raid5")
    with pytest.raises(BenchError, match="set 'nand-raid5' could not be made ready"):
        run_comparison(plan(disk), comparison_of(("nand-raid0", "nand-raid5")), folders, None, nothing)
    assert folders.said == ["open nand-raid0", "open nand-raid5", "close nand-raid0"]


class Drives:
    """Emulated drives that only write down what they are told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def throttle(self, serial: str, bytes_per_s: int) -> None:
        self.said.append(f"{serial} {bytes_per_s}")

    def release_throttle(self, serial: str) -> None:
        self.said.append(f"{serial} free")


def test_a_fault_is_caused_in_its_round_alone_and_always_released(disk: Path) -> None:
    hazard = {"set": "nand-raid0", "round": 2, "throttle_drive": "VCNA0001", "bandwidth_size": 4_000_000}
    drives, bundle = Drives(), Bundle(disk)
    (disk / "telemetry").mkdir()
    control = HazardControl(drives, HazardLog(bundle, "raid_vs_3dxp"))  # type: ignore[arg-type]
    run_comparison(plan(disk, hazards=[hazard]), comparison_of(("nand-raid0",)), Folders(disk), control, nothing)
    assert drives.said == ["VCNA0001 4000000", "VCNA0001 free"]
    assert [event.text for event in bundle.events()] == [
        "drive VCNA0001 is held to 4 MB/s, critical warning set",
        "drive VCNA0001 is released",
    ]
    with pytest.raises(BenchError, match="nothing here can cause one"):
        run_comparison(plan(disk, hazards=[hazard]), comparison_of(("nand-raid0",)), Folders(disk), None, nothing)


COUNTERS = {
    "clock_s": 10.0,
    "kernel_cpu_s": 5.0,
    "total_cpu_s": 9.0,
    "md_threads_s": {},
    "written_bytes": {"nvme0n1": 0},
}


def test_a_write_that_the_drives_do_not_confirm_is_masked() -> None:
    found = answer(Write, OF_THE_RIG / "write.json")
    size = found.written_bytes
    after = {**COUNTERS, "clock_s": 11.0, "kernel_cpu_s": 5.5, "md_threads_s": {"md0_raid5": 0.25}}
    whole = write_document(found, COUNTERS, {**after, "written_bytes": {"nvme0n1": size}})
    assert (whole["admissible"], whole["md_threads_cpu_s"], whole["machine_kernel_cpu_s"]) == (
        True,
        {"md0_raid5": 0.25},
        0.5,
    )
    masked = write_document(found, COUNTERS, {**after, "written_bytes": {"nvme0n1": size // 2}})
    assert masked["reason"] == f"the drives counted {size // 2} B of the {size} B that were written"
    assert "errno" not in write_document(found, COUNTERS, after)
    broken = structs.replace(found, status="failed", error="EIO at 4096", errno="EIO")
    failed = write_document(broken, COUNTERS, {**after, "written_bytes": {}})
    assert failed["failed"] and failed["errno"] == "EIO"
    assert "EIO at 4096" in failed["reason"]
    assert len(samples(found.series)) == len(found.series.t_s) - 1


def test_a_record_that_was_not_offered_or_not_kept_gives_no_latency() -> None:
    record = OF_THE_RIG / "minidaq.json"
    assert paced_document(answer(Minidaq, record))["admissible"]
    late = answer(Minidaq, record, source={"achieved_fraction": 0.9})
    assert paced_document(late)["reason"] == "the source offered only 90.0% of the superchunks that were due"
    lossy = answer(Minidaq, record, superchunks={"lost": 3})
    assert "cannot carry the common rate" in paced_document(lossy)["reason"]
    few = paced_document(answer(Minidaq, record, latency_us={"count": 5000}))["latency_us"]
    assert (few["p99"] is None, few["p99_9"]) == (False, None)


def test_md_threads_are_told_by_their_arrays_name(tmp_path: Path) -> None:
    for pid, name, ticks in ((10, "md127_raid5", "150 50"), (11, "md12_raid5", "9 9"), (12, "kworker/0:1", "7 7")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(
            f"{pid} ({name}) S 2 0 0 0 -1 0 0 0 0 0 {ticks} 0 0\n", encoding="ascii"
        )
    assert load_counters.thread_times("md127", 100, tmp_path) == {"md127_raid5": 2.0}
    now = load_counters.counters(None, [])
    assert now["total_cpu_s"] > now["kernel_cpu_s"] > 0
    assert "counters cannot be read" in load_counters.main(["no-such-drive"])["error"]


def survey_of(**sizes: int) -> Survey:
    devices = [
        Node(serial, f"/dev/{serial}", "disk", None, Drive(serial, None, serial, size_bytes=size))
        for serial, size in sizes.items()
    ]
    return Survey(Host(), devices, None, 0.0)


def test_a_set_too_small_or_without_its_drives_is_refused_before_anything_is_erased() -> None:
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "raid-vs-3dxp.yml")
    raid5 = VIRTUAL.aimed_at("nand-raid5")
    drives = {"VCNA0001": 32 * 10**9, "VCNA0002": 32 * 10**9, "VCNA0003": 32 * 10**9, "VCXP0001": 10**9}
    preflight.check_drives(raid5, survey_of(**drives))
    with pytest.raises(RefusedError, match=r"each write of 64 GB .* against 63\.52 GB .*Nothing was written"):
        preflight.check_capacity(scenario, raid5, survey_of(**drives), Path("/srv/nand-raid5"))
    preflight.check_capacity(scenario, VIRTUAL.aimed_at("nand-raid0"), survey_of(**drives), Path("/srv/nand-raid0"))
    del drives["VCNA0002"]
    with pytest.raises(RefusedError, match=r"targets\.nand-raid0: virtual has no drive VCNA0002\. Nothing was changed"):
        preflight.check_drives(
            VIRTUAL.aimed_at("reference"), survey_of(**drives)
        )  # a target that this run does not use


def test_a_tuning_that_did_not_take_on_a_set_invalidates(tmp_path: Path) -> None:
    one = described("nand-raid0", tmp_path)
    one.document.tuning_wrong.append("queue-scheduler (nvme1n1) asked for none but reads back mq-deadline")
    found = document(parameters(), {"nand-raid0": as_document(one.document)}, [])
    assert found["invalid"] == [
        "Tuning of nand-raid0: queue-scheduler (nvme1n1) asked for none but reads back mq-deadline"
    ]


def rig(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "daq_bench.rig", *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)


def own_inventory(folder: Path, disk: Path) -> Path:
    lab = YAML_SAFE.load(LAYOUT.inventory / "lab.yml")
    hosts = lab["all"]["children"]["candidates"]["hosts"]
    entry = hosts["this-machine-twice"]["bench_candidate"]
    for name, target in entry["targets"].items():
        target["directory"] = str(disk / name)
    entry["tuning"] = {}
    lab["all"]["children"]["candidates"]["hosts"] = {f"twice-{os.getpid()}": hosts["this-machine-twice"]}
    YAML_SAFE.dump(lab, folder / "lab.yml")
    return folder / "lab.yml"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, Path]]:
    """One whole comparison of this machine's disk with itself: (bundle, disk, the scenario's file)."""
    folder = tmp_path_factory.mktemp("comparison")
    disk = LAYOUT.build / "tests" / f"comparison-{os.getpid()}"
    disk.mkdir(parents=True)
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "raid-vs-3dxp-rehearsal.yml").document
    scenario["id"] = "short"
    scenario["workloads"]["raid_vs_3dxp"] |= {"rounds": 4, "write_size": "64MiB", "idle_s": 0}
    scenario["workloads"]["raid_vs_3dxp"]["paced"] |= {"share": 0.002, "seconds": 1}
    scenario["scale"] = 0.0001  # what a busy test machine's disk can sustain
    YAML_SAFE.dump(scenario, folder / "short.yml")
    words = ["--candidate", f"twice-{os.getpid()}", "--inventory", str(own_inventory(folder, disk))]
    words += [
        "--scenario",
        str(folder / "short.yml"),
        "--runs",
        str(folder / "runs"),
        "--influx-url",
        "http://127.0.0.1:9",
    ]
    done = rig("qualify", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    yield (folder / "runs" / "latest").resolve(), disk, folder / "short.yml"
    for name in ("folder-a", "folder-b"):
        (disk / name).rmdir()  # nothing is left in them
    disk.rmdir()


@pytest.mark.integration
def test_a_disk_against_itself_is_a_whole_rehearsal(local: tuple[Path, Path, Path]) -> None:
    bundle, disk, scenario = local
    assert [list((disk / name).iterdir()) for name in ("folder-a", "folder-b")] == [[], []]
    run = json.loads((bundle / "run.json").read_text(encoding="utf-8"))
    assert (run["state"], run["target"]["name"]) == ("finished", "folder-a")
    assert [one["name"] for one in run["further_targets"]] == ["folder-b"]
    comparison = json.loads((bundle / "results" / "raid_comparison.json").read_text(encoding="utf-8"))
    assert [one["result"]["n"] for one in comparison["comparisons"] if one["quantity"] == "throughput"] == [4]
    verdict = json.loads((bundle / "verdict.json").read_text(encoding="utf-8"))
    assert (verdict["outcome"], verdict["declared_rehearsal"]) == ("INADMISSIBLE", True)
    checked = rig("check-bundle", str(bundle), "--scenario", str(scenario))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    html = (bundle / "report.html").read_text(encoding="utf-8")
    for words in ("RAID sets against the reference drive", "Sets over the reference, round by round", "Micron X100"):
        assert words in html


@pytest.mark.integration
def test_a_comparison_is_one_run_and_takes_its_targets_itself(tmp_path: Path, disk: Path) -> None:
    words = ["--candidate", f"twice-{os.getpid()}", "--inventory", str(own_inventory(tmp_path, disk))]
    done = rig("qualify", *words, "--target", "folder-b", "--runs", str(tmp_path / "runs"))
    assert done.returncode == 2
    assert (
        "measures its targets in one run (folder-a, folder-b), so that --target folder-b chooses nothing" in done.stderr
    )
    assert not (tmp_path / "runs").exists()


@pytest.mark.integration
def test_an_interrupted_comparison_leaves_nothing_in_any_target(tmp_path: Path, disk: Path) -> None:
    words = ["--candidate", f"twice-{os.getpid()}", "--inventory", str(own_inventory(tmp_path, disk))]
    argv = [
        sys.executable,
        "-m",
        "daq_bench.rig",
        "qualify",
        *words,
        "--runs",
        str(tmp_path / "runs"),
        "--influx-url",
        "http://127.0.0.1:9",
    ]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        events, deadline = tmp_path / "runs" / "latest" / "events.jsonl", time.monotonic() + 600
        while not (events.exists() and "round 2" in events.read_text(encoding="utf-8")):
            if run.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        began = run.poll() is None and time.monotonic() < deadline
        run.send_signal(signal.SIGINT)
        output, errors = run.communicate(timeout=600)
    assert began, f"round 2 did not begin: {errors}"
    assert run.returncode == 130, output + errors
    assert [list((disk / name).iterdir()) for name in ("folder-a", "folder-b")] == [[], []]
    document = json.loads((tmp_path / "runs" / "latest" / "run.json").read_text(encoding="utf-8"))
    assert (document["state"], [one["name"] for one in document["further_targets"]]) == ("interrupted", ["folder-b"])
