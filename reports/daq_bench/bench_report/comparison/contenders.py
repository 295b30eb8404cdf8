"""Run bundles as contenders: runs of one candidate (and target) are repetitions of each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from daq_bench.bench_model.base.direction import Better
from daq_bench.bench_model.base.units import GB, convert, in_digits
from daq_bench.bench_model.behaviour.record_power import PER_RATE
from daq_bench.bench_model.documents.derived import PowerOfRecord, RecordPower
from daq_bench.bench_model.documents.verdict import Judgement
from daq_bench.bench_model.evidence.measured import measure
from daq_bench.bench_model.profiles.requirements import Requirement
from daq_bench.bench_model.tender.buyer_files import Prices, Weights
from daq_bench.bench_model.tender.contenders import (
    COST,
    DENSITY,
    ENDURANCE,
    POWER,
    REPETITIONS,
    RUNS,
    Backing,
    Contender,
    Figure,
    Question,
    Series,
)
from daq_bench.bench_model.tender.ownership import ownership
from daq_bench.bench_model.verdict.decision import MET, MISSED, UNDECIDED
from daq_bench.bench_model.workloads.raid_vs_3dxp import facts as raid_facts
from daq_bench.bench_report.comparison.bundles import Source

Bound = float | str


def questions_of(sources: Sequence[Source], weights: Weights) -> list[Question]:
    """The requirements that all runs pose, in the profile's order."""
    rows: dict[str, Judgement] = {}
    for source in sources:
        for row in source.verdict.requirements if source.verdict else ():
            rows.setdefault(row.id, row)
    bounds: dict[str, Bound] = {}
    for source in sources:
        if source.profile is not None:
            bounds = {one.id: one.bound for one in source.profile.requirements}
            break
    return [question_of(row, bounds.get(row.id, row.bound or 0.0), weights, row.better) for row in rows.values()]


def question_of(asked: Judgement | Requirement, bound: Bound, weights: Weights, better: Better | None) -> Question:
    return Question(
        asked.id, asked.text, asked.metric, asked.comparison, bound, asked.unit, asked.severity, weights.margin(asked.id),
        asked.statistic or "", better,
    )  # fmt: skip


def speed_of(questions: Sequence[Question]) -> str | None:
    """The requirement that stands for throughput: the first lower bound on a rate, a mandatory one if there is one."""
    rates = [one for one in questions if one.comparison == "at_least" and one.unit.endswith("B/s")]
    return min(rates, key=lambda one: one.severity != "mandatory").id if rates else None


def grouped(sources: Sequence[Source]) -> dict[str, list[Source]]:
    """Runs by contender, in the order of their first run."""
    found: dict[str, list[Source]] = {}
    for source in sources:
        found.setdefault(source.name, []).append(source)
    return found


def contender_of(
    name: str, runs: Sequence[Source], questions: Sequence[Question], speed: str | None, prices: Prices | None
) -> Contender:
    """Makes a contender from its runs that count. One run: its repetitions are its values; several: each run's judged value is one.

    Its power per throughput is what the requirement on it judges, where there is one: one name has one value."""
    series = {question.id: _series(runs, question) for question in questions}
    asked_power = next((one.id for one in questions if one.metric == PER_RATE), None)
    series[POWER] = series[asked_power] if asked_power else _power(runs)
    figures, currency = _agreed_figures(name, runs, prices)
    if prices is not None and prices.energy is not None:
        figures |= ownership(
            prices.energy, prices.currency, figures[COST], currency, [_watts(source) for source in runs]
        )
    room = figures["rack_units"].value
    if speed is not None and room:
        asked = next(one for one in questions if one.id == speed)
        series[DENSITY] = _scaled(series[speed], convert(1.0, asked.unit, "B/s") / GB / room)
    decisions = {question.id: _decision(runs, question.id) for question in questions}
    return Contender(
        name=name,
        units=RUNS if len(runs) > 1 else REPETITIONS,
        series=series,
        decisions={key: value for key, value in decisions.items() if value},
        figures=figures,
        barred=_barred(runs, decisions, questions),
        currency=currency,
        runs=tuple(one.run.run_id for one in runs),
        devices=devices_text(runs[0]),
    )


def _series(runs: Sequence[Source], question: Question) -> Series:
    rows = [source.row(question.id) for source in runs]
    backing = tuple(
        _backing(source, row)
        for source, row in zip(runs, rows, strict=True)
        if row is not None and row.measured is not None
    )
    if len(runs) > 1:
        return Series(tuple(None if row is None else row.measured for row in rows), backing=backing)
    row = rows[0]
    if row is None or row.measured is None:
        return Series(())
    values = runs[0].values(row)
    return Series(values, row.confidence_interval if len(values) == 1 else None, backing)


def _backing(source: Source, row: Judgement) -> Backing:
    return Backing(row.n or 0, _samples(source, row), row.confidence_interval is not None)


def _samples(source: Source, row: Judgement) -> int | None:
    """The fewest samples that stand behind a value of the run; None where the metric has none."""
    asked = next((one for one in source.profile.requirements if one.id == row.id), None) if source.profile else None
    metric = source.metrics.get(row.metric)
    document = source.document(metric.file) if asked and metric and metric.samples else None
    if document is None or asked is None or metric is None:
        return None
    series = measure(asked, metric, {metric.file: document}).series
    return min(map(len, series)) if series else None


def _scaled(series: Series, factor: float) -> Series:
    interval = None if series.interval is None else (series.interval[0] * factor, series.interval[1] * factor)
    return Series(tuple(None if value is None else value * factor for value in series.values), interval)


def _power(runs: Sequence[Source]) -> Series:
    """Returns W of the whole server per GB/s stored: for each run the mean of its records."""
    of_runs: list[list[float | None]] = []
    for source in runs:
        of_runs.append([one.w_per_gb_per_s for one in _records(source)])
    if len(runs) == 1:
        return Series(tuple(of_runs[0]))
    return Series(tuple(map(_mean, of_runs)))


def _watts(source: Source) -> float | None:
    """Returns the server's mean power over the records of one run, in W."""
    return _mean([one.mean_w for one in _records(source)])


def _records(source: Source) -> list[PowerOfRecord]:
    found = source.result("record_power", RecordPower)
    return found.records if found else []


def _mean(values: Sequence[float | None]) -> float | None:
    """Returns the mean; None where a value is missing, since the mean of the others would be that of another run."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _decision(runs: Sequence[Source], requirement: str) -> str:
    """Returns one decision for all runs: missed by one is missed; met by all is met; a run without it leaves it undecided."""
    rows = [source.row(requirement) for source in runs]
    said = {None if row is None else row.decision for row in rows}
    if MISSED in said:
        return MISSED
    return MET if said == {MET} else UNDECIDED if any(row is not None for row in rows) else ""


def _barred(runs: Sequence[Source], decisions: Mapping[str, str], questions: Sequence[Question]) -> str:
    failed = sum(source.outcome == "FAIL" for source in runs)
    mandatory = [one.id for one in questions if one.severity == "mandatory"]
    missed = [key for key in mandatory if decisions.get(key) == MISSED]
    if not failed:
        unmet = [f"{key} {decisions.get(key) or 'not judged'}" for key in mandatory if decisions.get(key) != MET]
        nothing = "" if mandatory else "no mandatory requirement was judged"
        return f"not every mandatory requirement is met: {', '.join(unmet)}" if unmet else nothing
    of = "its run" if len(runs) == 1 else f"{failed} of its {len(runs)} runs"
    return f"FAIL in {of}" + (f": misses {', '.join(missed)}" if missed else "")


def _agreed_figures(name: str, runs: Sequence[Source], prices: Prices | None) -> tuple[dict[str, Figure], str]:
    """Returns the figures that all runs of a contender declare alike; it drops a figure in which they contradict each other."""
    declared = [declared_figures(name, source, prices) for source in runs]
    agreed: dict[str, Figure] = {}
    for key, figure in declared[0][0].items():
        values = dict.fromkeys(figures[key].value for figures, _ in declared)
        said = " and ".join("none" if value is None else in_digits(value, 15) for value in values)
        agreed[key] = figure if len(values) == 1 else Figure(None, f"its runs declare different ones: {said}")
    currencies = {currency for _, currency in declared}
    if len(currencies) > 1:
        agreed[COST] = Figure(None, f"its runs declare different currencies: {', '.join(sorted(currencies))}")
    return agreed, declared[0][1] if agreed[COST].value is not None else ""


def declared_figures(name: str, source: Source, prices: Prices | None) -> tuple[dict[str, Figure], str]:
    """Price, rack units and endurance with where they come from; and the price's currency."""
    none = Figure(None, "the bundle has no inventory entry (profiles/lab.yml)")
    candidate = source.candidate
    drives = source.run.target.drives
    models, sizes = [one.model for one in drives], [one.size_bytes or 0 for one in drives]
    figures = {COST: none, "rack_units": none, ENDURANCE: none}
    currency = ""
    if candidate is not None:
        declared = candidate.target.declared
        room = raid_facts.rack_units(declared, candidate.document)
        level = source.run.target.devices[0].raid_level if source.run.target.devices else None
        # Only where nothing is written twice is what the drives take what the target takes.
        taken = 1.0 if level in (None, "raid0", "linear") and sizes else None
        life = raid_facts.endurance(declared, source.published, sizes, taken)
        money = raid_facts.cost(declared, len(sizes), None, None)
        figures = {
            COST: Figure(money["total"], str(money.get("basis") or money.get("reason"))),
            "rack_units": Figure(room.value, room.basis),
            ENDURANCE: Figure(life.value, life.basis),
        }
        currency = str(money["currency"] or "")
    return priced(figures, currency, prices, name, models)


def priced(
    figures: dict[str, Figure], currency: str, prices: Prices | None, name: str, models: Sequence[str | None]
) -> tuple[dict[str, Figure], str]:
    """The figures with the buyer's price, where his file has one or nothing else is known; and its currency."""
    if prices is not None:
        amount, basis = prices.of(name, models)
        if amount is not None or figures[COST].value is None:
            return {**figures, COST: Figure(amount, basis)}, prices.currency if amount is not None else ""
    return figures, currency


def devices_text(source: Source) -> str:
    """`4 x MODEL` for the table of contenders."""
    models = [one.model or "unnamed drive" for one in source.run.target.drives]
    if not models:
        return "no single drive was recorded"
    counts = {model: models.count(model) for model in models}
    return ", ".join(f"{number} \u00d7 {model}" if number > 1 else model for model, number in counts.items())
