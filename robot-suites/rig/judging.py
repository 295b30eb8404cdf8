"""Judges a run bundle from nothing but its own files, so that the verdict can be recomputed anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench_model.evidence import Evidence
from bench_model.profiles import load_metrics, load_requirements
from bench_model.verdict import judge
from rig.bundle import to_json


def judge_bundle(bundle: Path) -> dict[str, Any]:
    """The content of verdict.json for `bundle`."""
    evidence = Evidence.load(bundle)
    profiles = bundle / "profiles"
    metrics = load_metrics(profiles / "metrics.yml")
    requirement = evidence.run["requirement"]["id"]
    verdict = judge(evidence, load_requirements(profiles / "requirements" / f"{requirement}.yml", metrics), metrics)
    document: dict[str, Any] = json.loads(to_json(verdict))  # tuples become lists, as in the file it is compared with
    return document
