"""A good DAQ day: nothing that goes on beside the burst costs it anything."""

from __future__ import annotations

from typing import Any

from daq_bench.audit.good.case import Case

from daq_bench.bench_model.documents.struct import Document, as_document
from daq_bench.bench_model.workloads.interference import disturbers_of, ratio, slowdown_of
from daq_bench.rig.workloads.interference.workload import LEAD_S, SAMPLE_S, demand_of


def documents(case: Case) -> dict[str, Document]:
    parameters, rounds = case.plan("interference").parameters, case.scenario.repetitions
    cells = [
        _cell(case, victim, other, rounds)
        for victim in parameters["victims"]
        for other in disturbers_of(victim, parameters["disturbers"])
    ]
    mine = [cell for cell in cells if cell["victim"] == "burst"]
    burst = (
        [_row("none", "solo", mine), *(_row(cell["disturber"], "disturbed", [cell]) for cell in mine)] if mine else []
    )
    names = list(dict.fromkeys([*parameters["victims"], *parameters["disturbers"]]))
    return {
        "results/interference.json": {
            "schema_version": 1,
            "seconds": case.scenario.duration_s,
            "rounds": rounds,
            "lead_s": LEAD_S,
            "sample_s": SAMPLE_S,
            "burst_bytes_per_s": demand_of(case.scenario).offered_bytes_per_s,
            "activities": [
                {"name": name, "measure": "latency", "unit": "us", "larger_is_better": False, "command": [name]}
                for name in names
            ],
            "cells": cells,
            "burst": burst,
            "reasons": {},
        }
    }


def _cell(case: Case, victim: str, disturber: str, rounds: int) -> dict[str, Any]:
    pairs: list[dict[str, Any]] = []
    for number in range(1, rounds + 1):
        runs = {"solo": _run(case, victim, 1000.0), "disturbed": _run(case, victim, 1200.0)}
        slowdown = ratio(runs["solo"]["value"], runs["disturbed"]["value"], larger_is_better=False)
        pairs.append({"round": number, "alone_first": number % 2 == 1, **runs, "slowdown": slowdown, "reason": None})
    found = slowdown_of([pair["slowdown"] for pair in pairs])
    return {
        "victim": victim,
        "disturber": disturber,
        "pairs": pairs,
        "slowdown": as_document(found) if found else None,
        "reason": None,
    }


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


def _row(name: str, kind: str, cells: list[dict[str, Any]]) -> dict[str, Any]:
    told = [pair[kind]["more"] for cell in cells for pair in cell["pairs"]]
    return {
        "disturber": name,
        "n": len(told),
        "masked": 0,
        "offered_superchunks": sum(one["offered_superchunks"] for one in told),
        "lost_superchunks": 0,
        "busy_count": 0,
        "buffer_needed_bytes": 40_000_000,
    }
