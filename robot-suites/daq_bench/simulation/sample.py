"""A simulated bundle finished as a real run's is: judged with its mark, sealed, rendered. Every page says that it is simulated."""

from __future__ import annotations

from pathlib import Path

from daq_bench.bench_model.verdict.judging import judge_bundle
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.checking.reporting import render_and_seal
from daq_bench.rig.checking.sealing import seal_evidence


def finish_sample(bundle: Bundle, *, rendered: bool = True) -> Path:
    """Returns the bundle's folder. Raises BenchError where the report cannot be rendered."""
    verdict = judge_bundle(bundle.path)
    bundle.write("verdict.json", verdict)
    bundle.event("verdict", "judge", verdict.outcome, reasons=verdict.reasons)
    seal_evidence(bundle.path)
    if rendered:
        render_and_seal(bundle.path)
    return bundle.path
