"""A good DAQ day: nothing that goes on beside the burst costs it anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from daq_bench.audit.good.case import Case

from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.workloads.interference import ratio
from daq_bench.rig.workloads.interference.activities import Setting
from daq_bench.rig.workloads.interference.workload import Plan, cell_of, demand_of, document
from daq_bench.rig.workloads.shared.fio_job import JobFiles


def documents(case: Case) -> dict[str, Document]:
    own, demand = case.plan("interference").parameters, demand_of(case.scenario)
    setting = Setting(Path("daqwriter"), demand, own, Path("/data"), cast(JobFiles, None), case.scenario.seed)
    plan = Plan(setting, demand.duration_s, case.scenario.repetitions, own["victims"], own["disturbers"], {})
    cells = [cell_of(at, [_pair(case, at[0], number) for number in range(1, plan.rounds + 1)]) for at in plan.cells()]
    activities = [
        {"name": name, "measure": "latency", "unit": "us", "larger_is_better": False, "command": [name]}
        for name in dict.fromkeys([*plan.victims, *plan.disturbers])
    ]
    return {"results/interference.json": {**document(plan, cells), "activities": activities}}


def _pair(case: Case, victim: str, number: int) -> dict[str, Any]:
    runs = {"solo": _run(case, victim, 1000.0), "disturbed": _run(case, victim, 1200.0)}
    slowdown = ratio(runs["solo"]["value"], runs["disturbed"]["value"], larger_is_better=False)
    return {"round": number, "alone_first": number % 2 == 1, **runs, "slowdown": slowdown, "reason": None}


def _run(case: Case, victim: str, value: float) -> dict[str, Any]:
    demand = demand_of(case.scenario)
    counts = {
        "offered_superchunks": int(demand.record_bytes / demand.superchunk_bytes),
        "lost_superchunks": 0,
        "busy_count": 0,
        "buffer_needed_bytes": 40_000_000,
    }
    return {
        "value": case.around(value, 0.01),
        "reason": None,
        "started_s": 1000.0,
        "ended_s": 1000.0 + demand.duration_s,
        "more": counts if victim == "burst" else {},
    }
