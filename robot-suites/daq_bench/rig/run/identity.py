"""Compares the candidate with what the inventory declares, before anything is written to it."""

from __future__ import annotations

from daq_bench.bench_model.documents.facts import Identity, IdentityCheck
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import check_identity, planned_checks, survey


def compare(context: RunContext) -> list[IdentityCheck]:
    """Makes all checks that the inventory declares, and writes results/identity.json."""
    context.phase("identity", "comparing the candidate with the inventory", 1, 1, 1.0)
    checks = check_identity(context.candidate, survey(context.machine, context.target_path))
    context.bundle.write("results/identity.json", Identity(1, planned_checks(context.candidate), checks))
    return checks
