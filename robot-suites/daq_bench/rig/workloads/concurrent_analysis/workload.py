"""Concurrent analysis of ROOT files (PROOF): N jobs on one storage after another, one variable or all, with a cold cache each time.

Sets follow one another on a storage, so that there is room for the largest only. Numbers of workers go upwards in one repetition and
downwards in the next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.documents.struct import checked
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.concurrent_analysis import document
from daq_bench.bench_model.workloads.concurrent_analysis.document import ConcurrentAnalysis, Kind, Layout
from daq_bench.bench_model.workloads.concurrent_analysis.points import worker_counts
from daq_bench.bench_model.workloads.concurrent_analysis.reader import (
    AnalysisFarm,
    AnalysisPoints,
    AnalysisSet,
    AnalysisSlowDisk,
    Pass,
)
from daq_bench.bench_model.workloads.streams_checksum.setups import Cpus
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.facilities import OpenTarget
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.workloads.concurrent_analysis.runs import PREFIX, Reader, SetPlan, Storage
from daq_bench.rig.workloads.shared.base import Report, Workload
from daq_bench.rig.workloads.shared.open_target import ObservedTargets, Targets
from daq_bench.rig.workloads.shared.plan import Ground, Step

NAME = "concurrent_analysis"
KINDS: tuple[Kind, ...] = ("sparse", "full")
SLOW_DISK: Final = "slow-disk"
ROUNDS_MIN = 4  # fewer pairs give no useful interval
FILE_MARGIN, IMAGE_MARGIN, FILESYSTEM_BYTES = 1.15, 1.1, 64 << 20  # as in agents/daq_bench/analysis_reader
FILE_SHARE = 1 / 1.4  # of the size in memory (PROOF study, section 2.1: its compressed files)
SLOW_READ_BYTES = 32768  # of a request to the slow disk
ROOM_BYTES = 0.05e9  # B/s that two cores generate and read, for the expected length of a run
PASS_BYTES_MAX = 1e9
STARTING_S, FARM_STARTING_S = 2.0, 8.0
CORES_ASSUMED = 4  # for the display, before the candidate was asked


def _raw_bytes(parameters: dict[str, Any], kind: str) -> int:
    own = parameters["sets"][kind]
    return int(own["events"] * own["event_size"])


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """On each storage every set in each layout, and the reading; then the farm and the slow disk on the first."""
    own, found = scenario.workloads[NAME], list[Step]()
    counts = len(worker_counts(CORES_ASSUMED, own["workers_beyond"]))
    farm: dict[str, Any] = own.get("farm") or {}
    slow: dict[str, Any] = own.get("slow_disk") or {}
    for name in own.get("storages", [""]):
        for kind in KINDS:
            raw = _raw_bytes(own, kind)
            size = math.ceil(FILE_MARGIN * raw)
            shown = f"{own['sets'][kind]['events']} events of {own['sets'][kind]['event_size']} B with what ROOT adds"
            text = f"the {kind} set, {shown}, {decimal_label(size)} ({size} B)"
            on = "" if name == own.get("storages", [""])[0] else name
            layouts, points = len(own["layouts"]), scenario.repetitions * (counts + len(own["layouts"]) - 1)
            found.append(
                Step(f"writing the {kind} set", raw / ROOM_BYTES, FILE_SHARE * raw, size, text, on=on, times=layouts)
            )
            found.append(
                Step(f"{kind} jobs", raw / ROOM_BYTES / counts + STARTING_S, 0.0, size, text, on=on, times=points)
            )
    full = _raw_bytes(own, "full")
    if farm:
        found.append(Step("farm", 2 * farm["rounds"] * full / ROOM_BYTES + FARM_STARTING_S))
    for kind in KINDS:
        if not slow:
            break
        raw = slow["share"] * _raw_bytes(own, kind)
        held = math.ceil(raw * (FILE_MARGIN + IMAGE_MARGIN) + FILESYSTEM_BYTES)
        seconds = slow["repetitions"] * counts * raw / (slow["read_iops"] * SLOW_READ_BYTES)
        text = f"slow_disk: its set and its image, {decimal_label(held)} ({held} B)"
        found.append(Step(f"slow disk, {kind}", seconds, 2 * FILE_SHARE * raw, held, text))
    return found


def check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    """Refuses a plan whose points could not be compared."""
    own, at = scenario.workloads[NAME], f"{scenario.file}: workloads.{NAME}"
    if scenario.repetitions < ROUNDS_MIN or scenario.repetitions % 2:
        raise RefusedError(
            f"{scenario.file}: repetitions: {scenario.repetitions} of alternating order; make it an even number of {ROUNDS_MIN} or more"
        )
    for kind in KINDS:
        one = own["sets"][kind]
        if one["events"] < one["files"]:
            raise RefusedError(
                f"{at}.sets.{kind}.files: {one['files']} files for {one['events']} events. Ask for fewer files"
            )
    farm = own.get("farm")
    if farm and farm["rounds"] % 2:
        raise RefusedError(
            f"{at}.farm.rounds: {farm['rounds']} rounds do not balance the order. Make it an even number"
        )
    if farm and farm["nodes"] > own["sets"]["full"]["files"]:
        raise RefusedError(
            f"{at}.farm.nodes: {farm['nodes']} nodes for {own['sets']['full']['files']} files. Ask for fewer nodes"
        )


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/concurrent_analysis.json of this run."""
    scenario = context.scenario
    cpus = Cpus.of(context.machine.call("cpu_topology"))
    plan = Plan(scenario.workloads[NAME], cpus, scenario.repetitions, scenario.seed)
    return checked(Campaign(Reader.of(context), plan, ObservedTargets(context), report).run())


def every_number_of_workers_should_have_been_measured_in_every_repetition(
    context: RunContext, found: ConcurrentAnalysis
) -> None:
    """Fails when a point is missing on a target; a masked point is there, with its reason."""
    turns, layout = range(1, context.scenario.repetitions + 1), found.layouts[0]
    measured = {(one.storage, one.analysis, one.layout, one.workers, one.repetition) for one in found.points}
    wanted = {
        (storage.name, kind, layout, workers, turn)
        for storage in found.storages
        if storage.kind == "target"
        for kind in KINDS
        for workers in found.worker_counts
        for turn in turns
    }
    if missing := sorted(wanted - measured):
        raise AssertionError(f"not measured: {missing}")


def every_job_should_have_read_its_share(context: RunContext, found: ConcurrentAnalysis) -> None:
    """Fails when the files of a set were not all read in a point, or one of them twice."""
    files = {(one.storage, one.analysis, one.layout): one.files for one in found.sets}
    for one in found.points:
        key = (one.storage, one.analysis, one.layout)
        if sum(record.files for record in one.records) != files[key]:
            raise AssertionError(f"{key} with {one.workers} workers: not every file was read once")


WORKLOAD = Workload(
    NAME,
    plan,
    run,
    action="analyse_files_concurrently",
    check=check,
    checks=(
        every_number_of_workers_should_have_been_measured_in_every_repetition,
        every_job_should_have_read_its_share,
    ),
)


@dataclass(frozen=True)
class Plan:
    """The workload's plan for this candidate."""

    parameters: dict[str, Any]
    cpus: Cpus
    repetitions: int
    seed: int

    @property
    def cores(self) -> int:
        return len(self.cpus.cores)

    @property
    def counts(self) -> list[int]:
        return worker_counts(self.cores, self.parameters["workers_beyond"])

    def set_of(self, kind: Kind, layout: Layout) -> SetPlan:
        own = self.parameters["sets"][kind]
        return SetPlan(
            kind, layout, own["events"], own["files"], own["event_size"], own["cluster_events"], self.parameters["compression"], self.seed,
            self.cores,
        )  # fmt: skip


class Campaign:
    """The whole workload. `run` returns results/concurrent_analysis.json; raises BenchError that names what broke."""

    def __init__(self, reader: Reader, plan: Plan, targets: Targets, report: Report) -> None:
        self._reader, self._plan, self._targets, self._report = reader, plan, targets, report
        self._own = plan.parameters
        self._sets: list[document.Set] = []
        self._points: list[document.Point] = []
        self._storages: list[document.Storage] = []
        self._farm: document.Farm | None = None
        self._versions: dict[str, str] = {}
        self._done = 0
        names = self._own.get("storages", [NAME])
        each = len(KINDS) * (
            len(self._own["layouts"]) + plan.repetitions * (len(plan.counts) + len(self._own["layouts"]) - 1)
        )
        self._steps = len(names) * each + bool(self._own.get("farm")) + len(KINDS) * bool(self._own.get("slow_disk"))

    def _say(self, text: str, seconds: float, steps: int = 1) -> None:
        self._done += steps
        self._report(text, self._done, self._steps, seconds)

    def run(self) -> ConcurrentAnalysis:
        reference = self._targets.reference()
        self._measure(reference, farm=True)
        for name in self._own.get("storages", [])[1:]:
            target = self._targets.open(name)
            try:
                self._measure(target, farm=False)
            except BenchError:
                self._targets.close(target)
                raise
            self._targets.close(target)
        if self._own.get("slow_disk"):
            self._slow_disk(_storage(reference))
        return ConcurrentAnalysis(
            schema_version=1,
            cores=self._plan.cores,
            cpus=list(self._plan.cpus.order),
            drop_caches=self._own["drop_caches"],
            layouts=self._own["layouts"],
            compression=self._own["compression"],
            worker_counts=self._plan.counts,
            versions=self._versions,
            storages=self._storages,
            sets=self._sets,
            points=self._points,
            farm=self._farm,
            limits=[f"{one.name}: {one.reason}" for one in self._storages if one.reason],
        )

    def _measure(self, target: OpenTarget, farm: bool) -> None:
        """Every set on one target, one after another; the farm on the first full one."""
        storage = _storage(target)
        self._storages.append(document.Storage(storage.name, "target", storage.text, list(storage.devices), None, None))
        for kind in KINDS:
            for place, layout in enumerate(self._own["layouts"]):
                wanted = self._plan.set_of(kind, layout)
                self._say(f"{storage.name}: writing the {kind} set ({layout})", wanted.raw_bytes / ROOM_BYTES)
                with self._reader.generated(storage, wanted) as (folder, made):
                    self._keep_set(storage.name, wanted, made)
                    self._scan(storage, folder, wanted, self._plan.counts if place == 0 else [self._plan.cores])
                    if farm and kind == "full" and place == 0 and self._own.get("farm"):
                        self._farm = self._measure_farm(storage, folder, wanted)

    def _keep_set(self, storage: str, wanted: SetPlan, made: AnalysisSet) -> None:
        self._versions = made.versions
        self._sets.append(
            document.Set(storage, wanted.kind, wanted.layout, made.shape, len(made.files), made.bytes, made.truth)
        )

    def _scan(self, storage: Storage, folder: Path, wanted: SetPlan, counts: Sequence[int]) -> None:
        """Measures a set; passes over small sets are one call, since a reader takes longer to start than to read them."""
        for repetition in range(1, self._plan.repetitions + 1):
            ordered = list(counts if repetition % 2 else reversed(counts))
            for group in [ordered] if wanted.raw_bytes < PASS_BYTES_MAX else [[one] for one in ordered]:
                workers = ",".join(map(str, group))
                self._say(
                    f"{storage.name}: {wanted.kind} ({wanted.layout}), {workers} workers, repetition {repetition}",
                    STARTING_S,
                    len(group),
                )
                options = [
                    f"--set={folder}",
                    f"--analysis={wanted.kind}",
                    f"--workers={workers}",
                    *self._common(storage),
                ]
                name = f"analysis-{storage.name}-{wanted.name}-{repetition:02d}-{group[0]:03d}"
                found = self._reader.run("points", options, name, AnalysisPoints, len(group) * wanted.read_s)
                for one in found.points:
                    self._keep_point(storage.name, wanted, one, repetition)

    def _common(self, storage: Storage) -> list[str]:
        drop = ["--drop-caches"] if self._own["drop_caches"] else []
        return [*(f"--device={name}" for name in storage.devices), *drop]

    def _keep_point(self, storage: str, wanted: SetPlan, found: Pass, repetition: int) -> None:
        self._points.append(
            document.Point(
                storage,
                wanted.layout,
                repetition,
                found.analysis,
                found.workers,
                found.devices,
                found.records,
                found.result,
            )
        )

    def _measure_farm(self, storage: Storage, folder: Path, wanted: SetPlan) -> document.Farm | None:
        """Measures the farm; None where the candidate has fewer cores than the farm has nodes."""
        asked, cores = self._own["farm"], self._plan.cpus.cores
        if len(cores) < asked["nodes"]:
            return None
        self._say(
            f"farm of {asked['nodes']} nodes on Dask",
            FARM_STARTING_S + 2 * asked["rounds"] * wanted.raw_bytes / ROOM_BYTES,
        )
        options = [
            f"--set={folder}", f"--analysis={wanted.kind}", f"--nodes={asked['nodes']}", f"--workers={len(cores) // asked['nodes']}",
            f"--rounds={asked['rounds']}", f"--cpus={','.join(map(str, cores))}", *self._common(storage),
        ]  # fmt: skip
        found = self._reader.run("farm", options, "analysis-farm", AnalysisFarm, 2 * asked["rounds"] * wanted.read_s)
        return document.Farm(found.analysis, found.nodes, found.rounds)

    def _slow_disk(self, storage: Storage) -> None:
        """Measures the slow disk as a contrast; a machine that cannot hold a device back has none, and says why."""
        asked, layout = self._own["slow_disk"], self._own["layouts"][0]
        held = document.Limits(asked["read_iops"], asked["read_bandwidth_size"])
        text = (
            f"a loop device on {storage.name}, held to {held.read_iops} read requests/s and "
            f"{decimal_label(held.read_bytes_per_s)}/s"
        )
        devices, reason = set[str](), None
        for kind in KINDS:
            whole = self._plan.set_of(kind, layout)
            wanted = replace(whole, events=max(whole.files, round(asked["share"] * whole.events)))
            self._say(
                f"{SLOW_DISK}: {kind}, {len(self._plan.counts)} numbers of workers", wanted.raw_bytes / ROOM_BYTES
            )
            with self._reader.generated(storage, wanted) as (folder, made):
                try:
                    found = self._held_back(storage, folder, wanted)
                except BenchError as error:
                    reason = f"it could not be measured: {error}"
                    break
                self._keep_set(SLOW_DISK, wanted, made)
            devices |= {one.name for point in found.points for one in point.devices}
            for point in found.points:
                self._keep_point(SLOW_DISK, wanted, point, point.repetition)
        self._storages.append(document.Storage(SLOW_DISK, SLOW_DISK, text, sorted(devices), held, reason))

    def _held_back(self, storage: Storage, folder: Path, wanted: SetPlan) -> AnalysisSlowDisk:
        asked = self._own["slow_disk"]
        image = storage.scratch / f"{PREFIX}{SLOW_DISK}.img"
        options = [
            f"--set={folder}", f"--analysis={wanted.kind}", f"--image={image}", f"--read-iops={asked['read_iops']}",
            f"--read-bytes-per-s={asked['read_bandwidth_size']}", f"--workers={','.join(map(str, self._plan.counts))}",
            f"--repetitions={asked['repetitions']}",
        ]  # fmt: skip
        limit_s = len(self._plan.counts) * asked["repetitions"] * wanted.read_s
        return self._reader.run("slow-disk", options, f"analysis-{SLOW_DISK}-{wanted.kind}", AnalysisSlowDisk, limit_s)


def _storage(target: OpenTarget) -> Storage:
    document, drives = target.document, target.document.drives
    models = ", ".join(sorted({drive.model or drive.name for drive in drives})) or "no drive that the kernel names"
    several = f"{len(drives)} x " if len(drives) > 1 else ""
    text = f"{document.filesystem} on {several}{models}"
    return Storage(target.name or "target", text, target.scratch, (target.device,) if target.device else ())
