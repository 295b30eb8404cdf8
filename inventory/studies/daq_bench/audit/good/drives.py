"""Good drives: steady from the first round on, cool under their load, and hardly worn by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
from daq_bench.audit.good.case import RATE, STARTED_UTC, Case
from daq_bench.audit.good.record import server
from msgspec import convert, structs

from daq_bench.bench_model.behaviour import dip_documents
from daq_bench.bench_model.behaviour.dip_documents import Scenery
from daq_bench.bench_model.behaviour.load_windows import Window
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks
from daq_bench.bench_model.documents.results import Counters, WearEntry, WearExperiment, WearKind
from daq_bench.bench_model.documents.struct import Document, as_document, moment, read
from daq_bench.bench_model.documents.tools.synthetic import Write
from daq_bench.bench_model.workloads.endurance import projection as endurance_projection
from daq_bench.bench_model.workloads.endurance.document import Endurance
from daq_bench.bench_model.workloads.saturation import analysis as saturation_model
from daq_bench.bench_model.workloads.saturation.passes import asked_bytes
from daq_bench.bench_model.workloads.steady_state.rounds import WINDOW_ROUNDS, steady_window
from daq_bench.bench_model.workloads.thermal import soak as thermal_soak
from daq_bench.bench_model.workloads.thermal.document import Thermal
from daq_bench.rig.candidate.load_target import LoadTarget
from daq_bench.rig.workloads import saturation as saturation_workload
from daq_bench.rig.workloads.endurance import workload as endurance_workload
from daq_bench.rig.workloads.endurance.step import Plan, Step, fill_step, mix_step
from daq_bench.rig.workloads.shared.fio import PERCENTILES
from daq_bench.rig.workloads.shared.fio_job import JobFiles
from daq_bench.rig.workloads.shared.wear_account import OVERHEAD_SHARE, reserved_bytes
from daq_bench.rig.workloads.shared.wear_ledger import WearLedger
from daq_bench.rig.workloads.steady_state import workload as steady
from daq_bench.rig.workloads.steady_state.tests import Point, Test, tests_of
from daq_bench.rig.workloads.thermal import workload as thermal_workload
from daq_bench.rig.workloads.thermal.load import Plan as ThermalPlan
from daq_bench.rig.workloads.thermal.watch import rule_of
from daq_bench.simulation.tools.daqwriter import write_document

LOGICAL_BYTES = 512
DRIVE, BEGIN_S = "nvme0n1", 1_800_000_000.0
EPOCH = "boot-1"


def steady_state(case: Case) -> dict[str, Document]:
    """Tests that are all steady after five rounds, the least that the standard asks for."""
    own = case.plan("steady_state").parameters
    plan = steady.SteadyPlan(
        own, case.scenario.seed, cast(LoadTarget, None), DRIVE, case.capacity_bytes, cast(JobFiles, None)
    )
    tests = [_steady_test(case, test, own["seconds_per_point"]) for test in tests_of(own, LOGICAL_BYTES)]
    return {"results/steady_state.json": steady.document("fio-3.33", plan, LOGICAL_BYTES, tests)}


def _steady_test(case: Case, test: Test, seconds: float) -> Document:
    rounds = []
    for number in range(1, WINDOW_ROUNDS + 1):
        jobs = [_job(case, point, test.io_depth, seconds) for point in test.points]
        written = sum(job["write"]["io_bytes"] for job in jobs)
        rounds.append(steady.round_document(test, number, seconds, json.dumps({"jobs": jobs}), written))
    return steady.test_document(
        test, _conditioning(case, test.name), rounds, steady_window([one["value"] for one in rounds])
    )


def _conditioning(case: Case, label: str) -> Document:
    passes = {"passes": 2, "block_bytes": 131072, "io_depth": 32, "bytes_written": 2 * case.capacity_bytes}
    return {
        "condition": "preconditioned",
        "label": label,
        "started_utc": STARTED_UTC,
        "span_bytes": case.capacity_bytes,
        "capacity_bytes": case.capacity_bytes,
        "share_of_capacity": 1.0,
        "purge": {"method": "format", "text": "NVMe Format", "done": True, "zero_share": 1.0, "seconds": 10.0},
        "preconditioning": {**passes, "bytes_per_s": RATE, "seconds": 2 * case.capacity_bytes / RATE},
        "limits": [],
    }


def _job(case: Case, point: Point, io_depth: int, seconds: float) -> dict[str, Any]:
    size = point.block_bytes or 4096
    rate = case.around(1.05 * RATE * min(1.0, size / 131072))
    share = point.read_percent / 100
    sides = {
        "read": _side(rate * share, size, io_depth, seconds),
        "write": _side(rate * (1 - share), size, io_depth, seconds),
    }
    return {"jobname": point.name, "error": 0, **sides}


def _side(rate: float, size: int, io_depth: int, seconds: float) -> dict[str, Any]:
    """One side of a mix in fio's words. A side without operations has no latency either."""
    mean_ns = 20_000.0 * io_depth
    percentile = {f"{one:.6f}": mean_ns * (1 + one / 100) for one in PERCENTILES}
    return {
        "io_bytes": int(rate * seconds),
        "bw_bytes": rate,
        "iops": rate / size,
        "runtime": int(seconds * 1000) if rate else 0,
        "total_ios": int(rate * seconds / size),
        "lat_ns": {"mean": mean_ns, "max": 4 * mean_ns, "percentile": percentile},
    }


def endurance(case: Case) -> dict[str, Document]:
    """Step after step until the budget is spent; the drive counts the written bytes, and no percent of its life is used."""
    own, start = case.plan("endurance").parameters, [_health(0)]
    ledger = _Ledger(case, own["write_budget"])
    drives = (structs.replace(case.run.target.drives[0], size_bytes=case.capacity_bytes),)
    plan = Plan(
        own, case.scenario.seed, cast(LoadTarget, None), cast(JobFiles, None), drives, 1, ledger.account.experiment
    )
    found = endurance_workload.opened(plan, ledger, EPOCH, start)
    step = fill_step(own)
    while reserved_bytes(step.asked_bytes, 1) <= ledger.left_bytes:
        entry = ledger.charged(step.kind, step.asked_bytes)
        health = [_health(ledger.spent_bytes)]
        found["steps"].append(endurance_workload.step_document(step, entry, _written(case, step), health))
        found["at_end"], step = health, mix_step(own, len(found["steps"]) - 1)
    found |= endurance_workload.account(ledger) | {"ended": "the next step does not fit into the write budget"}
    bounds = {
        one.metric.removeprefix("endurance.years_"): float(one.bound)
        for one in case.profile.requirements
        if one.metric.startswith("endurance.years_")
    }
    return {
        "results/endurance.json": found,
        endurance_projection.NAME: as_document(
            endurance_projection.document(convert(found, Endurance), {}, {}, bounds)
        ),
    }


class _Ledger(WearLedger):
    """The account of one drive, which counts all that is written, and no more; no file keeps it."""

    def __init__(self, case: Case, budget: int) -> None:
        experiment = WearExperiment("imaginary", case.scenario.id, "", ("IMG1",))
        super().__init__(Path("/nowhere"), experiment, budget, "imaginary", (), lambda: STARTED_UTC)
        self.open_with(EPOCH, [_health(0)])

    def save(self) -> None:
        """Does nothing."""

    def charged(self, kind: WearKind, asked: int) -> WearEntry:
        """The entry of a step that wrote what was asked of it."""
        spent = self.spent_bytes
        entry = self.reserve(kind, asked, reserved_bytes(asked, 1), _counters(spent))
        return self.settle(entry, asked, _counters(spent + asked))


def _counters(written: int) -> Counters:
    return Counters(EPOCH, {"IMG1": 10**9 + written})


def _health(written: int) -> Document:
    nothing = dict.fromkeys(("percentage_used", "media_errors", "power_cycles", "unsafe_shutdowns"), 0)
    counts = {"written_bytes": 10**9 + written, "step_bytes": 512_000, "nand_bytes": 10**9 + written}
    spare = {"available_spare": 100, "available_spare_threshold": 10}
    return {"id": "IMG1", "name": DRIVE, "counter": "nvme", **counts, **nothing, **spare}


def _written(case: Case, step: Step) -> Document:
    """fio's account of a step."""
    rate, size = case.around(RATE), step.asked_bytes
    parts = {"sequential": step.sequential_bytes, "random": step.random_bytes}
    jobs = [
        {"name": name, "written_bytes": part, "duration_s": size / rate, "throughput_bytes_per_s": part * rate / size}
        for name, part in parts.items()
        if part
    ]
    return {"written_bytes": size, "duration_s": size / rate, "throughput_bytes_per_s": rate, "jobs": jobs}


def thermal(case: Case) -> dict[str, Document]:
    """A soak and a fan sweep at one temperature, well below the drive's own limit."""
    own, demand = case.plan("thermal").parameters, thermal_workload.demand_of(case.scenario)
    soak = own["soak"]
    sweep: Document = own.get("fan_sweep") or {}
    rule = rule_of(own, soak["min_s"], soak["max_s"])
    loads = [_load(case, "soak", BEGIN_S, soak["min_s"])]
    points: list[Document] = []
    for percent in sweep.get("duties_percent", []):
        last = [*loads, *points][-1]
        point = _load(case, f"fans at {percent} %", last["end_utc_s"] + soak["cool_down_s"], sweep["min_s"])
        points.append({**point, "duty_percent": percent})
    plan = ThermalPlan(own, demand, cast(LoadTarget, None), Path(), Path(), [], case.run)
    end_s = loads[0]["end_utc_s"]
    cooling = {"start_utc_s": end_s, "end_utc_s": end_s + soak["cool_down_s"]}
    told = {"status": "done" if sweep else "not asked", "reason": None, "points": points}
    found = thermal_workload.document("fio-3.33", plan, rule, loads, cooling, [], told)
    scenery = _scenery(case, [*loads, *points])
    return {
        "results/thermal.json": found,
        "results/thermal_soak.json": as_document(thermal_soak.document(convert(found, Thermal), scenery)),
        "results/dips.json": dip_documents.dips_document(scenery),
        "results/throttling.json": dip_documents.throttling_document(scenery),
    }


def _load(case: Case, name: str, start_s: float, seconds: float) -> Document:
    return {
        "name": name,
        "stopped_by": "equilibrium",
        "start_utc_s": start_s,
        "end_utc_s": start_s + seconds,
        "bytes_written": int(RATE * seconds),
        "throughput_bytes_per_s": RATE,
    }


def _scenery(case: Case, loads: list[Document]) -> Scenery:
    end_s = loads[-1]["end_utc_s"] + 60
    times = np.arange(BEGIN_S - 60, end_s, 1.0)
    warmth = np.array([55 + case.random.gauss(0, 0.1) for _ in times])
    values = {
        ("temperature", "temperature_degc"): warmth,
        ("temperature", "warning_degc"): np.full(len(times), 70.0),
        ("temperature", "critical_degc"): np.full(len(times), 80.0),
        ("smart", "critical_warning"): np.zeros(len(times)),
        ("block_device", "written_bytes"): np.cumsum(np.full(len(times), RATE)),
    }
    names = [one["name"] for one in case.drives]
    tracks = Tracks(
        {(kind, drive, name): Track(times, each) for drive in names for (kind, name), each in values.items()}
    )
    windows = [
        Window(
            "thermal",
            one["name"],
            one["start_utc_s"],
            one["end_utc_s"],
            f"block_device {DRIVE} written_bytes",
            tuple(case.series(RATE, int(one["end_utc_s"] - one["start_utc_s"]))),
        )
        for one in loads
    ]
    return Scenery(case.run, tracks, windows, [])


def saturation(case: Case) -> dict[str, Document]:
    """Passes that each write all demanded bytes; the cache lasts for twice the record, and the drive is fast enough afterwards, too."""
    plan = case.plan("saturation")
    own = plan.parameters
    paid = int(own["write_budget"] / plan.repetitions / (1 + 2 * OVERHEAD_SHARE))
    case.capacity_bytes = min(case.capacity_bytes, paid)  # a drive for whose passes the budget lasts
    capacity = own.get("span_size", case.capacity_bytes)
    asked = asked_bytes(own, capacity)
    rows, ledger = list[Document](), _Ledger(case, own["write_budget"])
    for number in range(1, plan.repetitions + 1):
        ledger.charged("pass", asked)
        conditioning, written = _fresh(case, number, asked, capacity), _pass(case, own, asked)
        rows.append(saturation_workload.row(number, case.raw, capacity, asked, conditioning, written, asked))
    found = saturation_workload.document("daqwriter 0.1.0", own, ledger, rows)
    return {saturation_model.FILE: found, saturation_model.NAME: saturation_model.document(found)}


def _fresh(case: Case, number: int, asked: int, capacity: int) -> Document:
    found = _conditioning(case, f"saturation-{number}")
    of_pass = {"span_bytes": asked, "capacity_bytes": capacity, "share_of_capacity": asked / capacity}
    return {**found, "condition": "fresh", **of_pass, "preconditioning": None}


def _pass(case: Case, own: Document, asked: int) -> Write:
    """daqwriter's answer. The cache holds twice the bytes that must be free of cliffs."""
    cache, step = 2 * own["cliff_free_size"], own["sample_s"]
    fast, slow = 1.05 * RATE, 0.3 * RATE  # for a small part or drive, slow enough to give enough samples
    if case.scenario.scale < 1:
        cache, fast, slow = 3 * asked // 5, asked / (300 * step), asked / (1000 * step)
    amounts, left = list[int](), asked
    while left > 0:
        rate = case.around(fast if asked - left < cache else slow, 0.005)
        amounts.append(min(int(rate * step), left))
        left -= amounts[-1]
    times = [step * (place + 1) + case.random.uniform(0, 1e-4) for place in range(len(amounts))]
    times[-1] = times[-2] + amounts[-1] / (fast if asked <= cache else slow)  # the rest, at the rate that is in force
    told = {
        "target": saturation_workload.FILE, "pattern": "sequential", "block-size": own["block_size"], "threads": 1, "seed": 1,
        "io-depth": own["io_depth"], "span": asked, "condition": "fresh", "interval": step,
    }  # fmt: skip
    began_s = moment(STARTED_UTC).timestamp()
    told = write_document(server(case), told, asked, began_s, (times, amounts), "", own["block_size"])
    return read(told, Write, "a pass")
