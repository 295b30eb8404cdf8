"""One `raid-vs-3dxp` run as contenders: each of its targets, in pairs wherever two shared rounds in alternating order."""

from __future__ import annotations

from daq_bench.bench_model.behaviour.record_power import power_readings
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.documents.verdict import INADMISSIBLE
from daq_bench.bench_model.evidence.measured import measure
from daq_bench.bench_model.profiles.requirements import Requirement
from daq_bench.bench_model.tender.buyer_files import Prices, Weights
from daq_bench.bench_model.tender.contenders import (
    COST,
    DENSITY,
    ENDURANCE,
    POWER,
    ROUNDS,
    Contender,
    Figure,
    Question,
    Series,
)
from daq_bench.bench_model.verdict.decision import MET, decide, estimate
from daq_bench.bench_model.verdict.verdict import bounds
from daq_bench.bench_model.workloads.raid_vs_3dxp import analysis as raid_comparison
from daq_bench.bench_model.workloads.raid_vs_3dxp.document import RaidVs3Dxp
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.comparison.bundles import COUNTS, Source
from daq_bench.bench_report.comparison.contenders import priced, question_of

FILE = f"results/{raid_comparison.RESULTS}"
DERIVED = "results/raid_comparison.json"
OF_REFERENCE = "_ratio"  # metrics that compare with the reference already


def is_comparison(source: Source) -> bool:
    return source.document(FILE) is not None


def names_of(source: Source) -> list[str]:
    """The run's targets, the reference first."""
    found = _plain(source)
    return [found["reference"], *found["sets"]]


def _plain(source: Source) -> Document:
    found = source.document(FILE)
    if found is None or source.result(raid_comparison.METRICS, RaidVs3Dxp) is None:
        raise BundleError(f"{source.root}/{FILE}", "is missing", "Name a run of scenario raid-vs-3dxp")
    return found


def configurations(source: Source, prices: Prices | None, weights: Weights) -> tuple[list[Contender], list[Question]]:
    """Returns the contenders and the requirements that each is held against. Raises BundleError for a bundle without its profiles."""
    profile, candidate = source.profile, source.candidate
    if profile is None or candidate is None:
        raise BundleError(
            f"{source.root}/profiles", "the run's requirement profile, metrics or inventory entry is missing",
            "Its configurations cannot be judged one by one without them; use the bundle as the run left it",
        )  # fmt: skip
    asked = [one for one in profile.requirements if not one.metric.endswith(OF_REFERENCE)]
    questions = [question_of(one, one.bound, weights, source.metrics[one.metric].better) for one in asked]
    found = _plain(source)
    power, hazards = power_readings(source.root), raid_comparison.hazard_events(source.root)
    made = []
    for name in names_of(source):
        aimed = {**found, "judged_set": name}
        document = raid_comparison.document(aimed, candidate, source.published, power, hazards)
        made.append(_contender(source, name, aimed, document, asked, prices))
    return made, questions


def sets_of(source: Source) -> Document | None:
    """Returns what the run's own comparison says of its targets; None without its inventory entry, and for what an ERROR left."""
    if source.candidate is None or source.outcome not in (*COUNTS, INADMISSIBLE):
        return None
    power, hazards = power_readings(source.root), raid_comparison.hazard_events(source.root)
    return raid_comparison.document(_plain(source), source.candidate, source.published, power, hazards)


def _contender(
    source: Source, name: str, found: Document, document: Document, asked: list[Requirement], prices: Prices | None
) -> Contender:
    target = next(one for one in document["targets"] if one["name"] == name)
    judged = document["judged"]
    series: dict[str, Series] = {
        POWER: Series(tuple(judged["added_power_w_per_gb_per_s"])),
        DENSITY: Series(tuple(judged["throughput_gb_per_s_per_u"])),
    }
    decisions, barred = {}, []
    for requirement in asked:
        metric = source.metrics[requirement.metric]
        values = measure(requirement, metric, {DERIVED: document})
        series[requirement.id] = Series(values.values)
        if values.values:
            _, scaled = bounds(requirement, source.run)
            known = estimate(requirement, metric, values, source.run.scenario.seed)
            decided = decide(requirement.comparison, scaled, requirement.guard_band, known)
            decisions[requirement.id] = decided.decision
        if requirement.severity == "mandatory" and decisions.get(requirement.id) != MET:
            barred.append(f"{requirement.id} {decisions.get(requirement.id, 'not measured')}")
    figures, currency = _figures(name, target, prices)
    positions = tuple(
        (one["group"], one["round"], visit["position"])
        for one in found["rounds"]
        for visit in one["visits"]
        if visit["target"] == name
    )
    level = target["raid_level"]
    layout = f"RAID {level}, " if level is not None else ""
    models = [drive["model"] or "unnamed drive" for drive in target["drives"]]
    return Contender(
        name=name,
        units=ROUNDS,
        series=series,
        decisions=decisions,
        figures=figures,
        barred="" if not barred else "not every mandatory requirement is met: " + ", ".join(barred),
        positions=positions,
        currency=currency,
        runs=(source.run.run_id,),
        devices=layout + (f"{len(models)} \u00d7 {models[0]}" if models else "no drive of its own is known"),
    )


def _figures(name: str, target: Document, prices: Prices | None) -> tuple[dict[str, Figure], str]:
    money = target["cost"]
    figures = {
        COST: Figure(money["total"], str(money.get("basis") or money.get("reason"))),
        "rack_units": _figure(target["rack_units"]),
        ENDURANCE: _figure(target["endurance_bytes"]),
    }
    return priced(figures, str(money["currency"] or ""), prices, name, [drive["model"] for drive in target["drives"]])


def _figure(document: Document) -> Figure:
    return Figure(document["value"], str(document.get("basis") or document.get("reason")))
