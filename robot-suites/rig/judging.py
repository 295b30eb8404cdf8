"""Judges a run bundle from nothing but its own files, so that the verdict can be recomputed anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench_model import derived
from bench_model.errors import BenchError
from bench_model.evidence import Evidence
from bench_model.profiles import load_metrics, load_requirements
from bench_model.verdict import judge
from rig.bundle import Bundle, to_json

MOST_FIELDS = 4  # of one requirement in a complaint


def judge_bundle(bundle: Path) -> dict[str, Any]:
    """The content of verdict.json for `bundle`."""
    evidence = Evidence.load(bundle)
    profiles = bundle / "profiles"
    metrics = load_metrics(profiles / "metrics.yml")
    requirement = evidence.run["requirement"]["id"]
    verdict = judge(evidence, load_requirements(profiles / "requirements" / f"{requirement}.yml", metrics), metrics)
    document: dict[str, Any] = json.loads(to_json(verdict))  # tuples become lists, as in the file it is compared with
    return document


def check_bundle(path: Path) -> list[str]:
    """Every difference between the bundle and its manifest, and between its verdict and the recomputed one."""
    bundle = Bundle.open(path)
    problems = [f"{name}: missing, altered or added since the run" for name in bundle.altered_files()]
    stored = bundle.read("verdict.json")
    if stored is None:
        raise BenchError(f"{path} has no verdict.json: the run did not finish")
    made, faults = derived.documents(bundle.path)
    problems += [
        f"{name}: differs from what the bundle's telemetry and results give"
        for name, document in made.items()
        if (bundle.path / name).exists() and bundle.read(name) != json.loads(to_json(document))
    ]
    problems += [
        f"{fault.name}: cannot be computed again ({fault.reason})"
        for fault in faults
        if (bundle.path / fault.name).exists()
    ]
    recomputed = judge_bundle(bundle.path)
    return problems + _verdict_problems(stored, recomputed)


def _verdict_problems(stored: dict[str, Any], recomputed: dict[str, Any]) -> list[str]:
    """One line per field that differs; of the requirements one per requirement, with the fields that do."""
    problems = [
        f"verdict.json: {key} is {stored.get(key)!r}, recomputed {value!r}"
        for key, value in recomputed.items()
        if key != "requirements" and stored.get(key) != value
    ]
    before = {one["id"]: one for one in stored.get("requirements", [])}
    for one in recomputed["requirements"]:
        was = before.get(one["id"], {})
        changed = [f"{key} was {was.get(key)!r}, now {value!r}" for key, value in one.items() if was.get(key) != value]
        if changed:
            problems.append(f"verdict.json: {one['id']}: {'; '.join(changed[:MOST_FIELDS])}")
    gone = before.keys() - {one["id"] for one in recomputed["requirements"]}
    return problems + [f"verdict.json: {name} is no requirement of the bundle's profile" for name in sorted(gone)]
