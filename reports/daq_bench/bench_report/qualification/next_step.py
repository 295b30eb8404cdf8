"""The likely cause and the next step on page 1: those of the model, but for a bundle on which nobody may rest."""

from __future__ import annotations

from daq_bench.bench_model.verdict.advice import Advice, NextStep, advise
from daq_bench.bench_model.verdict.advice import next_step as step_of
from daq_bench.bench_report.reading.dataset.bundle import Bundle


def advice(bundle: Bundle) -> Advice:
    verdict, run = bundle.verdict, bundle.run
    if bundle.provenance.altered or (bundle.again and bundle.again.contradicts):
        check = f"daq-bench check-bundle runs/{run.run_id}"
        return Advice("", NextStep("Rest nothing on this bundle. Ask for the sealed original, and check it:", (check,)))
    if verdict is None:
        return Advice("", step_of(run, None, bundle.grounds))
    return advise(run, verdict, bundle.grounds)


def next_step(bundle: Bundle) -> NextStep:
    return advice(bundle).step
