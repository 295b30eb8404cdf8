"""Requirement profiles: bounds on metrics, under conditions. Raises ProfileError (file, line, field, remedy)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from daq_bench.bench_model.base.direction import Comparison, Severity
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.base.units import convert, dimension, in_digits, never_negative, same_unit
from daq_bench.bench_model.profiles.candidates import CANDIDATE_BOUNDS
from daq_bench.bench_model.profiles.common import check_id, plain
from daq_bench.bench_model.profiles.composed import Requirements, check_alone, read_requirements
from daq_bench.bench_model.profiles.metrics import ResultMetric
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.profiles.sizes import sizes_in_bytes
from daq_bench.bench_model.profiles.yaml_source import YamlSource, check

MOST = 1e30  # [P] in a metric's unit: beyond anything that is measured, and what is reckoned with it stays finite


@dataclass(frozen=True)
class Requirement:
    """One bound on one metric; `bound` is a number in `unit`, or the name of something the candidate declares."""

    id: str
    text: str
    metric: str
    comparison: Comparison
    bound: float | str
    unit: str
    statistic: Literal["min", "max", "median"]
    severity: Severity
    scales_with_load: bool
    source: str
    guard_band: float = 0.0  # in `unit`: met only when inside the bound by as much


@dataclass(frozen=True)
class Conditions:
    """The conditions under which a run counts as evidence at full scale.

    `load`: what is demanded, in absolute terms, by workload and parameter (bench_model.evidence.demanded_load). `metrics`: what is
    bounded."""

    scale_min: float
    target_kinds: tuple[str, ...]
    load: dict[str, Any] | None = None
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class RequirementProfile:
    """A requirement file: its conditions and its requirements in the order of the file."""

    id: str
    title: str
    file: Path
    conditions: Conditions
    requirements: tuple[Requirement, ...]


def load_requirements(file: Path, metrics: dict[str, ResultMetric], stored: bool = False) -> RequirementProfile:
    """The requirement profile in `file`, with what it includes; every metric must be known and every unit must fit its metric.

    `stored`: in a run bundle."""
    source = read_requirements(file)
    if stored:
        check_alone(source)
    check(source, "requirement")
    document = plain(source.data)
    check_id(source, document["id"])
    requirements = []
    for index, entry in enumerate(document["requirements"]):
        metric = metrics.get(entry["metric"])
        if metric and same_unit(entry["unit"], metric.unit):  # 1 degC between two temperatures is 1 K
            entry["unit"] = metric.unit
        _check_requirement(source, index, entry, metrics)
        if not stored:  # of a bundle the reader's own profile says that it is another one
            _check_statistic(source, ("requirements", index, "statistic"), entry)
            _check_reach(source, ("requirements", index), entry, metrics[entry["metric"]])
        requirements.append(Requirement(**{"scales_with_load": False, **entry}))
    ids = [requirement.id for requirement in requirements]
    for index, identifier in enumerate(ids):
        if identifier in ids[:index]:
            raise source.refused(index, "id", f"id {identifier!r} stands twice", "Number them apart")
    if not stored:
        _check_sides(source, requirements, metrics)
        _check_together(source, requirements, metrics)
    conditions = document["conditions"]
    return RequirementProfile(
        id=document["id"],
        title=document["title"],
        file=file,
        conditions=Conditions(
            float(conditions.get("scale_min", 1)),
            tuple(conditions["target_kinds"]),
            sizes_in_bytes(source, ("conditions", "load"), conditions.get("load")),
            tuple(requirement.metric for requirement in requirements),
        ),
        requirements=tuple(requirements),
    )


def _check_requirement(source: YamlSource, index: int, entry: dict[str, Any], metrics: dict[str, ResultMetric]) -> None:
    at = ("requirements", index)
    if entry.get("guard_band") and entry["comparison"] == "equal":
        raise source.error(
            (*at, "guard_band"), "an exact value cannot be met by a distance", "Remove it, or use at_least or at_most"
        )
    if entry["metric"] not in metrics:
        remedy = nearest(entry["metric"], metrics, "daq-bench list metrics")
        raise source.error((*at, "metric"), f"metric {entry['metric']!r} is not in inventory/metrics.yml", remedy)
    units = [metrics[entry["metric"]].unit]
    if isinstance(entry["bound"], str):
        units.append(CANDIDATE_BOUNDS[entry["bound"]][1])
    for unit in units:
        try:
            convert(1.0, unit, entry["unit"])
        except ValueError as error:
            raise source.error((*at, "unit"), str(error), f"Use a unit that {unit!r} converts to") from None
    for key in ("bound", "guard_band"):
        if isinstance(value := entry.get(key, 0), (int, float)) and abs(convert(value, entry["unit"], units[0])) > MOST:
            raise source.error((*at, key), f"nothing measures {value:g} {entry['unit']}", "Write a number that is less")
    _check_bound(source, (*at, "bound"), entry, metrics[entry["metric"]])


def _check_statistic(source: YamlSource, at: tuple[str | int, ...], entry: dict[str, Any]) -> None:
    """The extreme on the bound's good side would let one good repetition cover all bad ones."""
    comparison, statistic, bound = entry["comparison"], entry["statistic"], entry["bound"]
    wanted: tuple[str, ...] = {"at_least": ("min", "median"), "at_most": ("max", "median"), "equal": ("min", "max")}[
        comparison
    ]
    if comparison == "equal" and bound == 0 and never_negative(entry["unit"]):
        wanted = ("max",)
    if statistic not in wanted:
        raise source.error(
            at,
            f"statistic {statistic!r} contradicts {comparison} {bound}: the best repetition would hide all others",
            f"Use {' or '.join(wanted)}",
        )


def _check_bound(source: YamlSource, at: tuple[str | int, ...], entry: dict[str, Any], metric: ResultMetric) -> None:
    """A bound that everything meets, or nothing, is a slip of the pen. A margin whose own bounds begin at zero may be asked for at zero."""
    bound, unit = entry["bound"], entry["unit"]
    if isinstance(bound, str) or not never_negative(unit):
        return
    is_margin = bound == 0 and metric.bounds is not None and metric.bounds[0] == 0
    if entry["comparison"] == "at_least" and bound <= 0 and not is_margin:
        raise source.error(at, f"at least {bound} {unit} is met by anything", "Raise it")
    if bound < 0:
        raise source.error(at, f"nothing measures {bound} {unit}", "Write it above zero")


# What a lower load does not lower: a share, a time or a temperature is asked for whole at every scale.
UNSCALED = ("ratio", "time", "temperature", "difference of temperatures")


def _check_reach(source: YamlSource, at: tuple[str | int, ...], entry: dict[str, Any], metric: ResultMetric) -> None:
    """A bound that no value of this metric meets, or every one, is a slip of the pen too: most often percent for a share."""
    comparison, bound, unit = entry["comparison"], entry["bound"], entry["unit"]
    if entry.get("scales_with_load") and dimension(unit) in UNSCALED:
        text = f"a {dimension(unit)} is not smaller at a smaller load, so that its bound does not scale"
        raise source.error((*at, "scales_with_load"), text, "Leave it out")
    exact = dimension(unit) in ("count", "size", "ratio")
    if comparison == "equal" and (metric.nature == "estimated" or not exact):
        text = f"no measured {metric.name} equals a bound exactly"
        raise source.error((*at, "comparison"), text, "Use at_least or at_most")
    if isinstance(bound, str):
        return
    guard = entry.get("guard_band", 0)
    if metric.unit == "count" and bound != int(bound):
        raise source.error((*at, "bound"), f"nothing counts {bound}", "Write a whole number")
    if comparison == "at_most" and never_negative(unit) and bound < guard:
        text = f"at most {bound} {unit} by at least {guard} is met by nothing"
        raise source.error((*at, "guard_band"), text, "Lower it, or raise the bound")
    asked = bound + (guard if comparison == "at_least" else 0)
    least, most = (convert(one, metric.unit, unit) for one in metric.bounds or (-MOST, MOST))
    none = asked == 0 and exact and metric.nature == "observed" and comparison != "at_least"
    if not (least <= asked <= most or none):
        anything = comparison == ("at_least" if asked < least else "at_most")
        shown = f"{comparison.replace('_', ' ')} {asked:.6g} {unit}".removesuffix(" 1")
        text = f"{shown} is met by {'anything' if anything else 'nothing'}"
        remedy = f"Mind the unit: write a number from {_amount(least, unit)} to {_amount(most, unit)}"
        raise source.error((*at, "bound"), text, remedy)
    highest = _highest(metric, unit)
    if highest is None:
        return
    shown = _amount(highest, unit)
    remedy = "Mind the unit: the whole is 1 with unit '1', and 100 with unit percent"
    if comparison == "at_most" and bound >= highest:
        text = f"at most {_amount(bound, unit)} is met by anything: {metric.name} is at most {shown}"
    elif comparison != "at_most" and bound + guard > highest:
        text = f"nothing measures {_amount(bound + guard, unit)}: {metric.name} is at most {shown}"
    elif comparison != "at_most" and unit == "percent" and metric.unit != unit and 0 < bound <= 1:
        text = f"{bound} percent of a share asks for next to nothing"
    else:
        return
    raise source.error((*at, "bound"), text, remedy)


def _highest(metric: ResultMetric, unit: str) -> float | None:
    return None if metric.highest is None else convert(metric.highest, metric.unit, unit)


def _amount(value: float | str, unit: str) -> str:
    return f"{value if isinstance(value, str) else in_digits(value, 6)} {unit}".removesuffix(" 1")


def _check_together(
    source: Requirements, requirements: Sequence[Requirement], metrics: dict[str, ResultMetric]
) -> None:
    """Two mandatory bounds that exclude each other let no candidate pass."""
    bounded = [
        (index, one)
        for index, one in enumerate(requirements)
        if one.severity == "mandatory" and not isinstance(one.bound, str)
    ]
    for (_, first), (index, second) in combinations(bounded, 2):
        if first.metric != second.metric:
            continue
        unit = metrics[first.metric].unit
        ends = [_reach(one, unit) for one in (first, second)]
        if max(low for low, _ in ends) > min(high for _, high in ends):
            text = f"{first.id} and {second.id} contradict each other: no value of {first.metric} meets both"
            raise source.refused(index, "bound", text, "Correct one of them, or make one advisory")


def _check_sides(source: Requirements, requirements: Sequence[Requirement], metrics: dict[str, ResultMetric]) -> None:
    """A mandatory bound that the best values miss lets the worst candidate pass alone. Two bounds of both sides are a range, and meant."""
    mandatory = [(index, one) for index, one in enumerate(requirements) if one.severity == "mandatory"]
    for index, one in mandatory:
        metric = metrics[one.metric]
        if metric.better in (None, "neither"):
            continue
        side: Comparison = "at_least" if metric.better == "more" else "at_most"
        both = any(other.metric == one.metric and other.comparison == side for _, other in mandatory)
        if one.comparison == side or (both and one.comparison != "equal") or _is_best(one, metric):
            continue
        asked = f"{one.comparison.replace('_', ' ')} {_amount(one.bound, one.unit)}"
        text = f"{asked} is missed by the better values: {metric.better} is better of {one.metric}"
        range_ = "" if one.comparison == "equal" else f"; for a range, add a mandatory {side} to it"
        raise source.refused(index, "comparison", text, f"Use {side}, or make it advisory{range_}")


def _is_best(requirement: Requirement, metric: ResultMetric) -> bool:
    """Says whether an exact bound is the best value that there is."""
    best = 0.0 if metric.better == "less" else _highest(metric, requirement.unit)
    return requirement.comparison == "equal" and requirement.bound == best


def _reach(requirement: Requirement, unit: str) -> tuple[float, float]:
    """The lowest and the highest value in `unit` that meets it."""
    bound, guard = (convert(float(one), requirement.unit, unit) for one in (requirement.bound, requirement.guard_band))
    low = -math.inf if requirement.comparison == "at_most" else bound + guard
    return low, math.inf if requirement.comparison == "at_least" else bound - guard


# Metrics that follow from any run, whatever its workloads: the watched hardware, the drives' own account of their wear, the air.
OF_EVERY_RUN = ("hardware", "wear", "surroundings")


def check_yields(profile: RequirementProfile, scenario: Scenario) -> None:
    """Raises ProfileError when a requirement bounds a metric that the scenario does not yield."""
    source = read_requirements(profile.file)
    for index, requirement in enumerate(profile.requirements):
        if requirement.metric.partition(".")[0] not in OF_EVERY_RUN and not scenario.answers(requirement.metric):
            raise source.refused(
                index,
                "metric",
                f"{requirement.id} bounds {requirement.metric!r}, which scenario {scenario.id!r} does not yield",
                f"Name its own requirements (--requirement), another scenario, or add the workload to {scenario.file}",
            )
