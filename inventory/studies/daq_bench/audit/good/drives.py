"""Good drives: steady from the first round on, cool under their load, and hardly worn by it."""

from __future__ import annotations

import json
from typing import Any, cast

import numpy as np
from daq_bench.audit.good.case import RATE, STARTED_UTC, Case
from daq_bench.audit.good.record import server
from msgspec import convert

from daq_bench.bench_model.behaviour import dip_documents
from daq_bench.bench_model.behaviour.dip_documents import Scenery
from daq_bench.bench_model.behaviour.load_windows import Window
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks
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
from daq_bench.rig.workloads.endurance.step import fill_step, mix_step
from daq_bench.rig.workloads.shared.fio import PERCENTILES
from daq_bench.rig.workloads.shared.fio_job import JobFiles
from daq_bench.rig.workloads.shared.wear_account import reserved_bytes
from daq_bench.rig.workloads.steady_state import workload as steady
from daq_bench.rig.workloads.steady_state.tests import Point, Test, tests_of
from daq_bench.rig.workloads.thermal import workload as thermal_workload
from daq_bench.rig.workloads.thermal.watch import rule_of
from daq_bench.simulation.tools.daqwriter import write_document

LOGICAL_BYTES = 512
DRIVE, BEGIN_S = "nvme0n1", 1_800_000_000.0


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
    own = case.plan("endurance").parameters
    budget = own["write_budget"] if "write_budget" in own else own["write_budget_size"]
    spent, number, steps, ledger = 0, 0, list[Document](), list[Document]()
    start = [_health(0)]
    while True:
        step = fill_step(own) if number == 0 else mix_step(own, number - 1)
        if spent + reserved_bytes(step.asked_bytes, 1) > budget and number > 1:
            break
        entry = _entry(number, step.kind, step.asked_bytes, spent)
        spent, number = spent + step.asked_bytes, number + 1
        ledger.append(entry)
        steps.append(_step(case, entry, step.sequential_bytes, step.random_bytes, _health(spent)))
    found = _experiment(case, own, start, steps, ledger, budget)
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


def _health(written: int) -> Document:
    nothing = dict.fromkeys(("percentage_used", "media_errors", "power_cycles", "unsafe_shutdowns"), 0)
    counts = {"written_bytes": 10**9 + written, "step_bytes": 512_000, "nand_bytes": 10**9 + written}
    spare = {"available_spare": 100, "available_spare_threshold": 10}
    return {"id": "IMG1", "name": DRIVE, "counter": "nvme", **counts, **nothing, **spare}


def _entry(number: int, kind: str, asked: int, spent: int) -> Document:
    def counted(written: int) -> Document:
        return {"epoch": "boot-1", "written_bytes": {"IMG1": 10**9 + written}}

    return {
        "run": "imaginary",
        "number": number,
        "kind": kind,
        "reserved_utc": STARTED_UTC,
        "asked_bytes": asked,
        "reserved_bytes": reserved_bytes(asked, 1),
        "before": counted(spent),
        "settled_utc": STARTED_UTC,
        "after": counted(spent + asked),
        "counted_bytes": asked,
        "charged_bytes": asked,
        "charged_by": "drives",
    }


def _step(case: Case, entry: Document, sequential: int, random: int, health: Document) -> Document:
    rate, size = case.around(RATE), entry["asked_bytes"]
    parts = {"sequential": sequential, "random": random} if random else {"sequential": sequential}
    jobs = [
        {"name": name, "written_bytes": part, "duration_s": size / rate, "throughput_bytes_per_s": part * rate / size}
        for name, part in parts.items()
    ]
    return {
        "number": entry["number"],
        "kind": entry["kind"],
        "asked_bytes": size,
        "sequential_bytes": sequential,
        "random_bytes": random,
        "counted_bytes": size,
        "written_bytes": size,
        "duration_s": size / rate,
        "throughput_bytes_per_s": rate,
        "jobs": jobs,
        "health": [health],
        "admissible": True,
        "reason": None,
    }


def _experiment(
    case: Case, own: Document, start: list[Document], steps: list[Document], ledger: list[Document], budget: int
) -> Document:
    names = ("file_size", "step_size", "sequential_block_size", "random_block_size")
    spent = sum(one["charged_bytes"] for one in ledger)
    return {
        "schema_version": 1,
        "tool": "fio",
        "pattern": {
            **{f"{name.removesuffix('_size')}_bytes": own[name] for name in names},
            **{key: own[key] for key in ("random_percent", "io_depth")},
        },
        "demand": own["demand"],
        "drives": [{"id": "IMG1", "name": DRIVE, "model": "Imaginary 9000", "capacity_bytes": case.capacity_bytes}],
        "writes_per_byte_max": 1,
        "opening": {"epoch": "boot-1", "drives": start},
        "epoch": "boot-1",
        "at_start": start,
        "at_end": steps[-1]["health"],
        "steps": steps,
        "ended": "the next step does not fit into the write budget",
        "limits": [],
        "reasons": {},
        "experiment": {"candidate": "imaginary", "scenario": case.scenario.id, "target": "", "serials": ["IMG1"]},
        "write_budget_bytes": budget,
        "spent_before_bytes": 0,
        "spent_bytes": spent,
        "left_bytes": budget - spent,
        "overrun_bytes": 0,
        "invalid": [],
        "ledger": ledger,
    }


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
    found = {
        "schema_version": 1,
        "tool": "fio",
        "tool_version": "fio-3.33",
        "load": {
            "block_bytes": own["block_size"],
            "io_depth": own["io_depth"],
            "file_bytes": own["file_size"],
            "rate_limit_bytes_per_s": own.get("rate_size"),
            "condition": "overwrite of a file that was written once before",
        },
        "rule": as_document(rule),
        "record": {"demand_bytes_per_s": demand.offered_bytes_per_s, "duration_s": demand.duration_s},
        "sustained": [{key: one[key] for key in ("name", "start_utc_s", "end_utc_s")} for one in (*loads, *points)],
        "soak": loads[0],
        "cool_down": {"start_utc_s": loads[0]["end_utc_s"], "end_utc_s": loads[0]["end_utc_s"] + soak["cool_down_s"]},
        "hazards": [],
        "fan_sweep": {"status": "done" if sweep else "not asked", "reason": None, "points": points},
    }
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
    capacity = own.get("span_size", case.capacity_bytes)
    asked = asked_bytes(own, capacity)
    rows, ledger = list[Document](), list[Document]()
    for number in range(1, plan.repetitions + 1):
        entry = _entry(number - 1, "pass", asked, asked * (number - 1))
        ledger.append({**entry, "number": number})
        written = _pass(case, own, asked)
        rows.append(
            saturation_workload.row(
                number, case.raw, capacity, asked, _fresh(case, number, asked, capacity), written, asked
            )
        )
    found = {
        "schema_version": 1,
        "tool": "daqwriter",
        "tool_version": "daqwriter 0.1.0",
        "block_bytes": own["block_size"],
        "io_depth": own["io_depth"],
        "sample_s": own["sample_s"],
        "purge": own["purge"],
        "cliff_free_bytes": own["cliff_free_size"],
        "repetitions": rows,
        "limits": [],
        "invalid": [],
        "experiment": {"candidate": "imaginary", "scenario": case.scenario.id, "target": "", "serials": ["IMG1"]},
        "write_budget_bytes": own["write_budget"],
        "spent_before_bytes": 0,
        "spent_bytes": asked * plan.repetitions,
        "left_bytes": own["write_budget"] - asked * plan.repetitions,
        "ledger": ledger,
    }
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
