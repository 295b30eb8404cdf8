"""Bundles of one workload each, measured on this machine in seconds: real tools, real output, hardly any load."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.documents.run import Drive, FurtherTarget, Host
from daq_bench.bench_model.profiles.candidates import Candidate, load_candidate
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.profiles.scenarios import Scenario, load_scenario
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout, Profiles
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.bmc import FanDuty
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.facilities import OpenTarget
from daq_bench.rig.candidate.hazard_control import HazardControl
from daq_bench.rig.candidate.host import Survey, survey
from daq_bench.rig.candidate.host import Target as FoundTarget
from daq_bench.rig.candidate.machine import LocalMachine, Machine, Places
from daq_bench.rig.checking.extraction import measured
from daq_bench.rig.on_candidate.reading.drive_wear import HEALTH
from daq_bench.rig.run.record import copy_profiles, first_run
from daq_bench.rig.workloads.registry import WORKLOADS

LAYOUT = Layout()
INVENTORY = LAYOUT.inventory
MIB = 2**20
SNB = {"links": 10, "superchunk_bytes": 5568, "superchunk_rate_hz": 166000}
DRIVE = Drive(
    "nvme0n1", "Drive", "S1", firmware="1", size_bytes=10**12, numa_node=0, rotational=False, transport="nvme"
)


def altered(name: str, **changes: Any) -> Scenario:
    """A shipped scenario with parameters of its workloads changed; sizes in bytes."""
    loaded = load_scenario(INVENTORY / "scenarios" / f"{name}.yml")
    return replace(loaded, workloads={of: {**own, **changes} for of, own in loaded.workloads.items()})


def refusal(check: Callable[..., object], one: Scenario, of: Candidate | None = None) -> str:
    """Why a workload's check refuses a scenario on this machine, or on another candidate."""
    with pytest.raises(RefusedError) as error:
        check(one, of or load_candidate(INVENTORY / "lab.yml", "this-machine"), Survey(Host(), [], None, 0.0))
    return str(error.value)


# By workload: the shipped scenario, what it is changed to, and what its workload's parameters are changed to.
SMALL: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "snb_record": (
        "snb-emulated",
        {"duration_s": 1.0000001, "repetitions": 2, "scale": 0.001},  # a length whose every digit the writer must be told
        {"conditions": ["fresh", "preconditioned"], "precondition_size": "8MiB", "ring_size": "1MiB"},
    ),
    "block_scan": (
        "scans-rehearsal",
        {},
        {"block_sizes": ["64KiB", "8MiB"], "file_size": "16MiB", "tools": ["fio", "daqwriter"]},
    ),
    "thread_scan": (
        "scans-rehearsal",
        {},
        {"block_sizes": ["32KiB"], "threads": [1, 2], "file_size": "16MiB", "tools": ["fio", "daqwriter"]},
    ),
    "minidaq_scan": (
        "scans-rehearsal",
        {"scale": 0.01, "repetitions": 2},
        {"request_sizes": ["1MiB", "2MiB"], "block_size": "1MiB", "ring_size": "8MiB", "seconds_per_trial": 0.2, "io_depth": 1},
    ),
    "latency_under_load": (
        "scans-rehearsal",
        {"scale": 0.001},
        {"load_factors": [0.5, 1.0], "seconds_per_point": 0.5, "ring_size": "1MiB"},
    ),
    "interference": (
        "interference-rehearsal",
        {"duration_s": 1, "repetitions": 1, "scale": 0.001},
        {"victims": ["burst"], "disturbers": ["checksums"]},
    ),
    "steady_state": (
        "steady-state-rehearsal",
        {},
        {
            "span_size": "16MiB",
            "rounds_max": 5,
            "seconds_per_point": 1,
            "iops": {"transfer_sizes": ["4KiB"], "read_percents": [0], "io_depth": 1, "threads": 1},
        },
    ),
    "thermal": (
        "thermal-rehearsal",
        {},
        {
            "file_size": "16MiB",
            "soak": {"min_s": 30, "max_s": 31, "hold_s": 1, "cool_down_s": 1, "probe_s": 25},
            "equilibrium": {"window_s": 30, "slope_max_k_per_min": 0.5},
        },
    ),
    "endurance": ("endurance-rehearsal", {}, {"write_budget": "700MB"}),
    "saturation": (
        "saturation-rehearsal",
        {"repetitions": 2},
        {"span_size": "32MiB", "cliff_free_size": "16MiB", "write_budget": "100MB"},
    ),
    "raid_vs_3dxp": (
        "raid-vs-3dxp-rehearsal",
        {"scale": 0.001},
        {"rounds": 2, "write_size": "4MiB", "block_size": "1MiB", "idle_s": 0},
    ),
    "streams_checksum": ("streams-checksum-rehearsal", {"repetitions": 4, "scale": 0.01}, {}),
    "lan": (
        "lan-100g-rehearsal",
        {"repetitions": 1},
        {
            "topologies": ["direct"],
            "message_sizes": ["64KiB"],
            "bidirectional_sizes": ["64KiB"],
            "latency_sizes": [64],
            "settings": {
                "pairs": 4, "seconds": 1, "message_size": "128KiB", "latency_size": 64, "provisioned": False, "list": [],
            },
        },
    ),
    "concurrent_analysis": (
        "concurrent-analysis-rehearsal",
        {"repetitions": 4},
        {
            "sets": {
                "sparse": {"events": 400, "files": 4, "event_size": "1000B", "cluster_events": 50},
                "full": {"events": 100, "files": 4, "event_size": "13600B", "cluster_events": 5},
            },
            "layouts": ["ttree"],
            "workers_beyond": 1.1,
        },
    ),
    "hot_store": (
        "hot-store-rehearsal",
        {"repetitions": 2},
        {"value_sizes": [1000], "client_counts": [1], "seconds_per_point": 2, "target_too": False},
    ),
}  # fmt: skip
CANDIDATES = {"raid_vs_3dxp": "this-machine-twice"}
# Parts of parameters that are themselves a group: what is named is changed in it, the rest stays.
WITHIN: dict[str, dict[str, dict[str, Any]]] = {
    "raid_vs_3dxp": {"paced": {"seconds": 1, "ring_size": "1MiB", "share": 0.001}},
    "streams_checksum": {
        "overhead": {"seconds_per_point": 0.01, "repetitions": 2},
        "throughput": {"seconds": 0.2, "threads": [1, 2]},
        "demand": {"sustained_s": 0.5, "peak_s": 0.5},
        "identity": {"run_size": "2MB"},
        "streams": {"event_size": 100000, "file_size": 1000000, "queue_size": "1MiB"},
    },
    "hot_store": {"scale_out": {"nodes": [1], "deployments": ["base"], "network": "loopback", "seconds": 2}},
}
DROPPED = {
    "thermal": ["fan_sweep"],
    "concurrent_analysis": ["farm", "slow_disk"],
    "steady_state": ["throughput", "latency", "jesd219"],
}


def small_scenario(folder: Path, workload: str) -> Path:
    """The shipped scenario with this workload alone, shortened, as a file of that name in `folder`."""
    name, changes, parameters = SMALL[workload]
    file = INVENTORY / "scenarios" / f"{name}.yml"
    text = load_scenario(file).document
    own = {**text["workloads"][workload], **parameters}
    for key in DROPPED.get(workload, []):
        own.pop(key, None)
    for key, inner in WITHIN.get(workload, {}).items():
        own[key] = {**own[key], **inner}
    made = folder / file.name
    with made.open("w", encoding="utf-8") as stream:
        YAML().dump({**text, **changes, "workloads": {workload: own}}, stream)
    return made


class Bench(LocalMachine):
    """This machine with the programs of the checkout, and a drive that counts what fio and daqwriter say they wrote."""

    def __init__(self, programs: Path) -> None:
        super().__init__()
        self._programs, self._counted = programs, 0

    def places(self, candidate: str, bundle: Path) -> Places:
        own = super().places(candidate, bundle)
        return Places(self._programs, own.state, own.raw, own.telemetry)

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        done = super().run(argv, timeout_s, env)
        if "fio" in map(str, argv) and done.stdout.startswith("{"):
            self._counted += sum(job["write"]["io_bytes"] for job in json.loads(done.stdout)["jobs"]) + 8192
        told = next((Path(str(one)[7:]) for one in argv if str(one).startswith("--json=")), None)
        if told is not None and argv[1] == "write" and told.exists():
            self._counted += json.loads(told.read_text(encoding="utf-8"))["written_bytes"] + 8192
        return done

    def call(self, program: str, *arguments: str | Path, timeout_s: float = 120.0) -> Any:
        if program != "drive_wear":
            return super().call(program, *arguments, timeout_s=timeout_s)
        health = {"media_errors": 0, "percentage_used": 1, "available_spare": 100}
        counts = {"counter": "nvme", "written_bytes": self._counted, "step_bytes": 512000, "nand_bytes": None}
        more = dict.fromkeys(HEALTH, 0)
        return {"boot_id": "boot-1", "drives": [{"name": DRIVE.name, **counts, **more, **health}]}


class Folders:
    """Targets that are folders of this machine, in the place of those that Ansible builds."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def open(self, name: str) -> OpenTarget:
        folder = self._root / name
        folder.mkdir()
        found = FurtherTarget("scratch-file", "ext4", [], name=name, directory=str(folder), path=str(folder))
        return OpenTarget(name, folder, found)

    def close(self, target: OpenTarget) -> None:
        target.scratch.rmdir()


class Here:
    """The facilities of a small run: folders for further targets, and no control of fans."""

    def __init__(self, disk: Path) -> None:
        self._disk = disk

    def targets(self) -> Folders:
        return Folders(self._disk)

    def peer(self, host: str) -> Machine:
        raise BenchError(f"a small run has no peer {host}")

    def fans(self) -> FanDuty:
        return FanDuty("a small run turns no fans", {})

    def hazards(self, source: str) -> HazardControl:
        raise BenchError("a small run commands no hazards")

    def begin(self) -> None:
        return


def programs_of(folder: Path) -> Path:
    """Returns the programs that Ansible would have installed. Raises BenchError for one that is not built."""
    folder.mkdir()
    for file in (LAYOUT.daqwriter, LAYOUT.hotstore, LAYOUT.netprobe, LAYOUT.analysis_reader):
        if not file.exists():
            raise BenchError(f"{file} is not built. `make build` does it")
        (folder / file.name).symlink_to(file)
    return folder


@dataclass(frozen=True)
class RawDrive:
    """A loop device that counts as a drive with a serial where a command runs behind `prefix`."""

    path: Path
    serial: str
    size_bytes: int
    prefix: tuple[str, ...]

    def target(self) -> FoundTarget:
        described = msgspec.structs.replace(DRIVE, name=self.path.name, serial=self.serial, size_bytes=self.size_bytes)
        return FoundTarget(None, self.size_bytes, described)

    def inventory(self, folder: Path) -> Path:
        """The shipped inventory whose this-machine has this drive as its target."""
        document = YAML().load(INVENTORY / "lab.yml")
        host = document["all"]["children"]["candidates"]["hosts"]["this-machine"]["bench_candidate"]
        host["target"] = {"kind": "raw-device", "drive_serial": self.serial, "destroy": True}
        made = folder / "lab.yml"
        with made.open("w", encoding="utf-8") as stream:
            YAML().dump(document, stream)
        return made


def small_run(folder: Path, disk: Path, workload: str, drive: RawDrive | None = None) -> Path:
    """The bundle of a run of `workload`, its journal and its result; no verdict and no seal. `drive`: its target in place of a folder."""
    metrics = load_metrics(INVENTORY / "metrics.yml")
    scenario = load_scenario(small_scenario(folder, workload))
    requirement = (
        load_requirements(INVENTORY / "requirements" / f"{scenario.document['requirement']}.yml", metrics)
        if ("requirement" in scenario.document)
        else load_requirements(INVENTORY / "requirements" / "dune-snb.yml", metrics)
    )
    inventory = drive.inventory(folder) if drive else INVENTORY / "lab.yml"
    candidate = load_candidate(inventory, CANDIDATES.get(workload, "this-machine"))
    profiles = Profiles(candidate, scenario, requirement, metrics, inventory, INVENTORY / "metrics.yml")
    bundle = Bundle.create(folder / "runs", candidate.name, candidate.target.name, scenario.id)
    scratch = disk / "scratch"
    scratch.mkdir()
    found = survey(LocalMachine(), disk)
    if drive:
        found, scratch = msgspec.structs.replace(found, target=drive.target()), drive.path
    bundle.begin(first_run(bundle, profiles, found, scratch, scratch if drive else disk))
    if workload in ("endurance", "saturation"):
        counted = msgspec.structs.replace(DRIVE, serial=f"trial-{uuid.uuid4().hex}")
        bundle.save_run(target=msgspec.structs.replace(bundle.run.target, device=counted, drives=[counted]))
    copy_profiles(bundle, profiles)
    bundle.workload_file.touch()
    bench = Bench(programs_of(folder / "programs"))
    bench.prefix = drive.prefix if drive else bench.prefix
    measured(RunContext(bundle, bench, Here(disk)), WORKLOADS[workload])
    bundle.save_run(state="finished")
    for account in (LAYOUT.state_directory(candidate.name) / "endurance").glob("trial-*.json"):
        account.unlink()
    return bundle.path
