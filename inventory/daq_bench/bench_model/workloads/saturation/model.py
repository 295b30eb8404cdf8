"""The evidence that covers the plan of the saturation: its passes, and the account of the bytes that they were to write."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.workloads import preconditioning
from daq_bench.bench_model.workloads.model import Asked, Beside, Count, Model, of_result, stated
from daq_bench.bench_model.workloads.plan import (
    INVALIDATES,
    Plan,
    Problem,
    accounted,
    by_the_drives,
    column,
    counting,
    follows,
    on_kind,
    rows,
    tool,
)
from daq_bench.bench_model.workloads.saturation import analysis, passes
from daq_bench.bench_model.workloads.saturation.document import Saturation, SaturationAnalysis


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    """Each pass once, over all that was asked for, on a target that was shown to be fresh, with an account that adds up."""
    found = document["repetitions"]
    yield from rows("pass", range(1, plan.repetitions + 1), column(found, "number"))
    for one in found:
        what = f"pass {one['number']}"
        yield from tool(what, one["status"])
        yield from on_kind(what, one["target_kind"], plan)
        yield from ((f"{what}: {text}", INVALIDATES) for text in passes.contradictions(one))
        if not any(passes.contradictions(one)):
            yield from (f"{what}: {text}" for text in passes.holes(one))
        yield from preconditioning.on_target(one["conditioning"], one["capacity_bytes"])
        asked = passes.asked_bytes(plan.parameters, one["capacity_bytes"])
        yield from follows(f"{what}: what was asked for", one["asked_bytes"], asked)
        if one["written_bytes"] < one["asked_bytes"]:
            yield f"{what} wrote {one['written_bytes']} B of {one['asked_bytes']} B"
        if why := passes.not_fresh(one):
            yield f"{what}: {why}"
        if (one["ended_by"] in ("bytes", "span")) is not (one["status"] == "complete"):
            yield f"{what} is {one['status']!r} and was ended by {one['ended_by']!r}", INVALIDATES
    yield from counting("pass", ((str(one["number"]), one) for one in found))
    seen = [one["series"]["t_s"] for one in found]
    if any(times in seen[:place] for place, times in enumerate(seen)):
        yield "the samples of one pass stand for another one, too", INVALIDATES
    ledger = document["ledger"]
    yield from rows("the account's entry", range(1, len(ledger) + 1), column(ledger, "number"))
    yield from accounted(ledger)
    spent = sum(one["reserved_bytes"] if one["charged_bytes"] is None else one["charged_bytes"] for one in ledger)
    yield from follows("what was spent", document["spent_bytes"], spent)
    for entry, one in zip(ledger[-len(found) :], found, strict=True):
        what = f"the account of pass {one['number']}"
        if entry["kind"] != "pass":
            yield f"{what} is one of a {entry['kind']}", INVALIDATES
        yield from follows(f"{what}: the drives' count", one["device_bytes_written"], by_the_drives(entry))
        serials = sorted(entry["before"]["written_bytes"])
        yield from follows(f"{what}: its drives", sorted(document["experiment"]["serials"]), serials)


def _analysis(plan: Plan, document: Document, found: Document) -> Iterator[Problem]:
    yield from follows("the analysis", found, analysis.document(document))


def _pass(asked: Asked, around: Document) -> float:
    """Bytes that one pass writes: all that the target had when it began, or the part of it that was asked for."""
    part = asked.own.get("span_size")
    return float(around["capacity_bytes"] * float(asked.own.get("free_share", 1))) if part is None else float(part)


MODEL = Model(
    coverage,
    (
        Count("repetitions[].asked_bytes", _pass),
        Count("repetitions[].written_bytes", _pass),
        Count("cliff_free_bytes", stated("cliff_free_size")),
    ),
    (Beside(analysis.NAME, of_result(analysis.FILE, analysis.document), _analysis, SaturationAnalysis),),
    result=Saturation,
)
