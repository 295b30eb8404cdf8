"""Evidence of an imaginary run at full scale in which everything is right; tests spoil one thing at a time. And a bundle's end."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from daq_bench.audit.good import results_of
from daq_bench.audit.good.case import COLLECTORS, account, case_of, evidence_of, telemetry

from daq_bench.bench_model.bundle.evidence import Evidence
from daq_bench.bench_model.bundle.files import survey
from daq_bench.bench_model.bundle.provenance import MANIFEST, is_evidence, manifest_of
from daq_bench.bench_model.documents.struct import Struct, as_document
from daq_bench.bench_model.verdict.judging import VERDICT, judge_bundle
from daq_bench.bench_model.workloads.model import Model
from daq_bench.bench_model.workloads.table import MODELS


def setting(status: str, **changes: str) -> dict[str, Any]:
    """One entry of facts/tuning.json."""
    asked = {"id": "cpu-governor", "role": "cpu", "subject": "cpu0", "asked": "performance", "before": "powersave"}
    return {**asked, "applied": "performance", "read_back": "performance", "status": status, "detail": "", **changes}


def large_blocks(
    run: Evidence, rate: float, seconds: float = 90.0, scatter: float = 0.001, repetitions: int = 6
) -> None:
    """The scan's repetitions of large blocks lie evenly from `scatter` below `rate` to as much above; samples of 250 ms scatter by 1 %."""
    found, most = run.results["results/block_scan.json"]["large_blocks"], repetitions
    found["repetitions"] = [one for one in found["repetitions"] if one["repetition"] <= most]
    confirm = run.run["scenario"]["parameters"]["workloads"]["block_scan"]["confirm"]
    assert run.scenario is not None
    copy = run.scenario["workloads"]["block_scan"]["confirm"]
    confirm["repetitions"] = copy["repetitions"] = most
    for one in found["repetitions"]:
        end = 2 * (one["repetition"] - 1) / max(most - 1, 1) - 1
        one.update(_measured(rate * (1 + scatter * end), seconds, one["repetition"]))
    found["seconds_per_repetition"] = seconds
    confirm["seconds_per_repetition"] = copy["seconds_per_repetition"] = seconds


def _measured(rate: float, seconds: float, seed: int) -> dict[str, Any]:
    generator = random.Random(seed)
    shares = [generator.gauss(1, 0.01) for _ in range(int(seconds * 4))]
    samples = [rate * share * len(shares) / sum(shares) for share in shares]
    written = int(rate * seconds)
    return {
        "throughput_bytes_per_s": rate,
        "throughput_bytes_per_s_samples": samples,
        "runtime_s": seconds,
        "bytes_written": written,
        "device_bytes_written": written,
    }


def evidence(repetitions: int | None = None) -> Evidence:
    """A whole unit's load for 100 s on the candidate's own file system."""
    return deepcopy(_evidence(repetitions))


@cache
def _evidence(repetitions: int | None) -> Evidence:
    case = case_of("snb-100s")
    if repetitions is not None:
        document = {**case.scenario.document, "repetitions": repetitions}
        case.scenario = replace(case.scenario, repetitions=repetitions, repetitions_max=repetitions, document=document)
    return evidence_of(case, results_of(case))


def asked_otherwise(workload: str, **changes: Any) -> Evidence:
    """A good run of the same scenario with other parameters of one workload, which its documents agree on throughout."""
    case = case_of("snb-100s")
    document = deepcopy(case.scenario.document)
    document["workloads"][workload] |= changes
    workloads = {**case.scenario.workloads, workload: {**case.scenario.workloads[workload], **changes}}
    case.scenario = replace(case.scenario, document=document, workloads=workloads)
    return evidence_of(case, results_of(case))


def record(run: Evidence, repetition: int = 0) -> dict[str, Any]:
    """One repetition of results/snb_record.json."""
    found: dict[str, Any] = run.results["results/snb_record.json"]["repetitions"][repetition]
    return found


def lose(run: Evidence, count: int, repetition: int = 0) -> None:
    """The record loses `count` superchunks, and every place of its documents says so."""
    one = record(run, repetition)
    minidaq, verify = one["minidaq"], one["verify"]
    superchunks, size = minidaq["superchunks"], minidaq["parameters"]["superchunk_bytes"]
    superchunks.update(lost=count, stored=superchunks["offered"] - count)
    superchunks["lost_per_link"][0] = count
    minidaq["applications"][0].update(lost=count, stored=superchunks["stored"])
    minidaq["bytes"]["payload"] = superchunks["stored"] * size
    minidaq["series"]["stored_bytes"][-1] -= count * size
    verify["lost_at_source"] = count
    verify["superchunks"].update(expected=superchunks["stored"], present=superchunks["stored"])
    one["verified_fraction"] = superchunks["stored"] / superchunks["offered"]


def scaled(run: Evidence, scale: float = 1.0, duration_s: float = 100.0) -> None:
    """The same run, asked for with SCALE= and DURATION=: everything that says so agrees. Call it before a loss is planted."""
    case = case_of("snb-100s")
    case.scenario = case.scenario.altered(scale, duration_s)
    scenario = run.run["scenario"]
    scenario["scale"] = scenario["parameters"]["scale"] = scale
    scenario["parameters"]["duration_s"] = duration_s
    run.run["demand"] = case.scenario.demand.as_document()
    run.results["results/snb_record.json"] = results_of(case)["results/snb_record.json"]


def conclude(bundle: Path) -> Path:
    """Judges the bundle and seals it, as a run does at its end."""
    text = json.dumps(as_document(judge_bundle(bundle)), ensure_ascii=False, indent=1)
    (bundle / VERDICT).write_text(text, encoding="utf-8")
    return seal(bundle)


def seal(bundle: Path) -> Path:
    """Seals a bundle as a run does, and as anybody without a key can."""
    (bundle / MANIFEST).write_bytes(manifest_of(bundle, [name for name in survey(bundle).files if is_evidence(name)]))
    return bundle


def surroundings(bundle: Path, run: dict[str, Any], collectors: Sequence[str] = COLLECTORS) -> None:
    """Writes a good run's bundle but for its workloads' results, for the drives that `run` names and `collectors` at work."""
    right = evidence()
    drives = [drive["name"] for drive in run["target"]["drives"]]
    for name, document in {
        "results/identity.json": right.identity,
        "results/sensor_coverage.json": {
            **right.results["results/sensor_coverage.json"],
            "longest_silence_s": dict.fromkeys(drives, 1.0),
        },
        "results/telemetry_account.json": account(collectors),
        "facts/tuning.json": right.tuning,
        "facts/tuning-verified.json": right.tuning_verified,
        "facts/tuning-after.json": right.tuning_after,
        "facts/clock.json": right.clock,
        "telemetry/summary.json": telemetry(collectors),
        f"profiles/scenarios/{run['scenario']['id']}.yml": run["scenario"]["parameters"],  # JSON is YAML too
    }.items():
        file = bundle / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8")


def made_up(name: str, **run: Any) -> dict[str, Any]:
    """run.json's `scenario` with one made-up workload, whose plan counts as covered (`covers_anything`)."""
    covers_anything(name)
    told = {"id": name, "scale": 1.0, "seed": 1, "repetitions": 1, "repetitions_max": 1, **run}
    parameters = {key: told[key] for key in ("id", "scale", "seed", "repetitions", "repetitions_max")}
    return {
        **told,
        "parameters": {**parameters, "duration_s": 100.0, "workloads": {name: {}}, **told.get("parameters", {})},
    }


LOAD_OF_MADE_UP = {"repetitions": 1, "telemetry_period_s": 1}  # stated by a profile: the workload has no schema


def covers_anything(name: str) -> None:
    """Tests of reports make up a workload of their own: whatever is in its result, its plan is covered."""
    MODELS.setdefault(name, Model(lambda plan, document: (), (), result=Struct))
