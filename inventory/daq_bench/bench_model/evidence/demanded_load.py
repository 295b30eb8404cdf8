"""The load that a requirement profile demands, in absolute terms, against the scenario that ran.

Each parameter's schema says under `x-harder` which way a test gets harder, in the one place where the parameter is defined:
`larger`, `smaller`; `superset`: at least all of these; `prefix`: these first; `equal`: a test with another value is another test;
`later`: what stands there or further on in its `enum`; `given`: any value, but one; `free`: it cannot make the test easier. A parameter
that may be left out has a `default`, or says under `x-left-out` whether being without it is the `hardest` or the `easiest`; else it is
comparable with itself alone. `by-capacity`: left out it is as much as the target takes, and where that is demanded, every size will do:
the evidence is held against the target's own capacity (bench_model.workloads.preconditioning)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any

from daq_bench.bench_model.base.differing import same
from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import binary_label, decimal_label, in_digits
from daq_bench.bench_model.documents.run import DemandOfRun, Run
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.profiles.composed import read_requirements
from daq_bench.bench_model.profiles.requirements import RequirementProfile
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.profiles.sizes import LEFT_OUT, SIZE_KEYS
from daq_bench.bench_model.profiles.yaml_source import check, load_schema
from daq_bench.candidate_kit.sizes import parse_size

LOAD = ("conditions", "load")
OUTSIDE = ("scale", "workloads")  # of a scenario: `scale_min` states the first, the workloads stand beside duration_s
ALTERED = ("scale", "duration_s")  # by the command line
PACED = ("links", "superchunk_bytes", "superchunk_rate_hz")
RATE = ("applications", *PACED, "share")
DEMAND = ("real_bytes_per_s", "offered_bytes_per_s", "duration_s")
UNSTATED = "The requirement profile does not state the load that it demands, so that this may be less"
UNKNOWN = object()
SHOWN_MAX = 120  # characters of a value in a sentence


def check_load(profile: RequirementProfile, scenario: Scenario | None = None) -> None:
    """Raises ProfileError unless `profile` states every parameter of every workload that it bounds, here or in `scenario`."""
    source = read_requirements(profile.file)
    if profile.conditions.load is None:
        remedy = (
            "Add `load:` with the workloads, parameters and duration_s of a whole unit (docs/writing-a-requirement.md)"
        )
        raise source.error(("conditions",), "does not state the load that it demands", remedy)
    listed = set(profile.conditions.load) & set(workload_schemas())
    needed = bounded(profile.conditions.metrics, scenario.workloads if scenario else {})
    check(source, demanded_schema(needed | listed), LOAD)


def bounded(metrics: Collection[str], workloads: Mapping[str, Any]) -> set[str]:
    """The workloads that `metrics` are of: by the metrics' names, and by what `workloads` of a scenario yield."""
    named = {metric.partition(".")[0] for metric in metrics} & set(workload_schemas())
    return named | {name for name, own in workloads.items() if set(metrics) & set(own.get("yields", ()))}


@cache
def workload_schemas() -> dict[str, Any]:
    """The schema of each workload's parameters by its name, with every reference resolved."""
    scenario = load_schema("scenario")
    found: dict[str, Any] = _resolved(scenario["properties"]["workloads"], scenario)["properties"]
    return found


def _resolved(node: Any, root: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_resolved(one, root) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        file, _, pointer = node["$ref"].partition("#")
        aim = whole = load_schema(file.removesuffix(".schema.json")) if file else root
        for key in filter(None, pointer.split("/")):
            aim = aim[key]
        node = {**_resolved(aim, whole), **{key: value for key, value in node.items() if key != "$ref"}}
    return {key: _resolved(value, root) for key, value in node.items()}


def demanded_schema(workloads: set[str]) -> dict[str, Any]:
    """The schema of `conditions.load`: what the scenario's schema asks for, and also what that lets be left out."""
    scenario = load_schema("scenario")
    own = {key: value for key, value in scenario["properties"].items() if key not in OUTSIDE}
    paced = own["duration_s"].pop("x-paces")
    own = own if workloads & set(paced) else {key: value for key, value in own.items() if key != "duration_s"}
    demanded = _demanded({"properties": own, "required": list(own)})
    schemas = workload_schemas()
    parts = {name: _demanded(schemas[name]) for name in sorted(workloads)}
    return {
        **demanded,
        "properties": {**demanded["properties"], **parts},
        "required": [*demanded["required"], *parts],
    }


def _demanded(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema of a demanded object: all its parameters are required, but for the free ones, which are left out."""
    required, kept = schema.get("required", []), {}
    for name, one in schema["properties"].items():
        if one.get("x-harder") == "free":
            continue
        inner = _demanded(one) if _is_group(one) else one
        if one.get("x-harder") == "given":
            inner = {"const": "given", "description": f"`given`, or `{LEFT_OUT}`: {one.get('description', '')}"}
        may_lack = name not in required and "default" not in one
        kept[name] = {"oneOf": [{"const": LEFT_OUT}, inner], **_described(one, may_lack)} if may_lack else inner
    words = {"description": schema["description"]} if "description" in schema else {}
    return {"type": "object", "additionalProperties": False, "properties": kept, "required": list(kept), **words}


def _described(schema: Mapping[str, Any], may_lack: bool) -> dict[str, str]:
    text = schema.get("description", "a parameter of the scenario")
    return {"description": f"{text} (or `{LEFT_OUT}`)"} if may_lack else {}


def _is_group(schema: Mapping[str, Any]) -> bool:
    """An object that is compared parameter by parameter."""
    return "properties" in schema and "x-harder" not in schema


def unstated(metrics: Collection[str], load: Mapping[str, Any] | None, parameters: Document) -> list[str]:
    """In what a stored profile that bounds `metrics` leaves the load open: what is not stated could have been anything."""
    if load is None:
        return [UNSTATED]
    ran = parameters.get("workloads")
    known = {name: own for name, own in ran.items() if _yields(own)} if isinstance(ran, dict) else {}
    missing = sorted(bounded(metrics, known) - set(load))
    return (
        [f"The requirement profile does not state the load that it demands of {', '.join(missing)}"] if missing else []
    )


def _yields(own: Any) -> bool:
    return (
        isinstance(own, dict)
        and isinstance(own.get("yields"), list)
        and all(isinstance(one, str) for one in own["yields"])
    )


def less_than_demanded(parameters: Document, load: Mapping[str, Any] | None) -> Iterator[str]:
    """One sentence for the scenario, and for each workload, in what it was easier than demanded: names, values, both sides."""
    if load is None:
        return
    schemas, scenario = workload_schemas(), load_schema("scenario")["properties"]
    beside = {*OUTSIDE, *(() if set(load) & set(scenario["duration_s"]["x-paces"]) else ("duration_s",))}
    own = {key: {"x-harder": "free"} if key in beside else one for key, one in scenario.items()}
    yield from _sentence("The scenario", list(_easier(own, load, parameters, "")))
    ran = parameters.get("workloads")
    for name in load:
        if name not in schemas:
            continue
        if not isinstance(ran, dict) or not isinstance(ran.get(name), dict):
            yield f"The scenario does not run {name}, which the requirement profile demands"
            continue
        yield from _sentence(name, list(_easier(schemas[name]["properties"], load[name], ran[name], "")))
        yield from _rate(name, load[name], ran[name], parameters.get("scale", 1))


def _sentence(who: str, parts: list[str]) -> Iterator[str]:
    if parts:
        yield f"{who} asks for less than the requirement profile demands: {'; '.join(parts)}"


def _easier(schemas: Mapping[str, Any], demanded: Any, ran: Mapping[str, Any], path: str) -> Iterator[str]:
    """`io_depth is 16 where 8 is demanded` for each parameter below `path` that is not as hard as demanded."""
    demanded = demanded if isinstance(demanded, dict) else {}
    for name, schema in schemas.items():
        at = f"{path}{name}"
        if schema.get("x-harder") == "free":
            continue
        if name not in demanded:
            yield f"{at}: the profile does not state what it demands"
            continue
        wanted, found = demanded[name], ran.get(name, schema.get("default", LEFT_OUT))
        if _is_group(schema) and isinstance(wanted, dict) and isinstance(found, dict):
            yield from _easier(schema["properties"], wanted, found, f"{at}.")
        elif not as_hard(schema, name, wanted, found):
            yield f"{at} is {_shown(name, found)} where {_demand_in_words(schema, name, wanted, found)} is demanded"
    for name in sorted(str(key) for key in ran if key not in schemas):
        yield f"{path}{name} is a parameter that this bench does not know"


def as_hard(schema: Mapping[str, Any], name: str, demanded: Any, ran: Any) -> bool:
    """Says whether a test with `ran` is no easier than the one with `demanded`. A value that cannot be understood is easier."""
    if LEFT_OUT in (demanded, ran):  # neither of two equal strings hides a value: no parameter takes this text
        if schema.get("x-left-out") == "by-capacity":
            return demanded == LEFT_OUT and (ran == LEFT_OUT or _is_amount(_comparable(name, ran)))
        rank = {"hardest": ran, "easiest": demanded}.get(schema.get("x-left-out", ""))
        return demanded == ran or rank == LEFT_OUT
    compare = _later(schema) if schema.get("x-harder") == "later" else _COMPARE.get(schema.get("x-harder", ""))
    wanted, found = _comparable(name, demanded), _comparable(name, ran)
    return compare is not None and UNKNOWN not in (wanted, found) and compare(wanted, found)


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _later(schema: Mapping[str, Any]) -> Callable[[Any, Any], bool]:
    order: list[Any] = schema["enum"]
    return lambda wanted, found: wanted in order and found in order[order.index(wanted) :]


def _comparable(name: str, value: Any) -> Any:
    """Sizes in bytes, also in lists and objects; UNKNOWN for a value that is no size, or no number."""
    try:
        return in_bytes(name, value)
    except (ValueError, OverflowError):
        return UNKNOWN


def in_bytes(name: str, value: Any) -> Any:
    """`value` of the parameter `name`, each size in it in bytes. Raises ValueError for an invalid number."""
    if isinstance(value, dict):
        return {key: in_bytes(key, one) for key, one in value.items()}
    if isinstance(value, list):
        return [in_bytes(name, one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no number")
    return parse_size(value) if name.endswith(SIZE_KEYS) and not isinstance(value, bool) else value


def _numbers(rule: Callable[[float, float], bool]) -> Callable[[Any, Any], bool]:
    def compare(wanted: Any, found: Any) -> bool:
        known = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (wanted, found))
        return known and rule(wanted, found)

    return compare


def _lists(rule: Callable[[list[Any], list[Any]], bool]) -> Callable[[Any, Any], bool]:
    return lambda wanted, found: isinstance(wanted, list) and isinstance(found, list) and rule(wanted, found)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "larger": _numbers(lambda wanted, found: found >= wanted),
    "smaller": _numbers(lambda wanted, found: found <= wanted),
    "superset": _lists(lambda wanted, found: all(any(same(one, other) for other in found) for one in wanted)),
    "prefix": _lists(lambda wanted, found: bool(wanted) and found[: len(wanted)] == wanted),
    "equal": same,
    "given": lambda wanted, found: wanted == "given" and isinstance(found, str) and bool(found.strip()),
}


_WORDS = {
    "larger": "at least ",
    "smaller": "at most ",
    "superset": "also ",
    "prefix": "first of all ",
    "later": "at least ",
}


def _demand_in_words(schema: Mapping[str, Any], name: str, wanted: Any, found: Any) -> str:
    kind = schema.get("x-harder", "")
    if kind == "superset" and isinstance(wanted, list) and isinstance(found, list):
        have = _comparable(name, found)
        wanted = [one for one in wanted if have is UNKNOWN or _comparable(name, one) not in have]
    return ("" if wanted == LEFT_OUT else _WORDS.get(kind, "")) + _shown(name, wanted)


def _shown(name: str, value: Any) -> str:
    if isinstance(value, list):
        text = f"[{', '.join(_shown(name, one) for one in value)}]"
    elif isinstance(value, dict):
        text = f"{{{', '.join(f'{key}: {_shown(str(key), one)}' for key, one in value.items())}}}"
    elif name.endswith(SIZE_KEYS) and isinstance(size := _comparable(name, value), int) and size >= 1000:
        text = binary_label(size) if size % 1000 else decimal_label(size)
    else:
        text = "left out" if value == LEFT_OUT else str(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def _rate(name: str, wanted: Any, ran: Mapping[str, Any], scale: Any) -> Iterator[str]:
    """The paced load in GB/s, where a scenario asks for fewer bytes at its scale 1 than the profile demands."""
    for group in (None, "burst", "paced"):
        try:
            one, other = (side[group] if group else side for side in (wanted, ran))
            used = [key for key in RATE if key in one]
            due, offered = (math.prod(float(side[key]) for key in used) / 1e9 for side in (one, other))
            factor = 1.0 if "share" in used else float(scale)  # a stated share of a unit is offered at any scale
        except (KeyError, TypeError, ValueError, OverflowError):
            continue  # no paced load, or a parameter that is named above
        if set(PACED) <= set(used) and offered < due:
            factors = " x ".join(f"{key} {in_digits(float(other[key]), 15)}" for key in used)
            shown = f"{in_digits(offered * factor)} GB/s ({factors} x scale {in_digits(factor, 6)})"
            yield f"{name} offers {shown}; {in_digits(due)} GB/s are demanded"


def contradictions(run: Run, scenario: Document | None) -> Iterator[str]:
    """Says where run.json does not agree with itself, or with the bundle's copy of the scenario, on what was asked for."""
    parameters = run.scenario.parameters
    if not parameters:
        yield "run.json does not say with which parameters the scenario ran (scenario.parameters)"
        return
    if scenario is None:
        yield "The bundle has no readable copy of its scenario (profiles/scenarios/)"
    else:
        told, copied = ({key: one[key] for key in one if key not in ALTERED} for one in (parameters, scenario))
        differing = sorted(key for key in {*told, *copied} if told.get(key) != copied.get(key))
        if differing:
            yield f"run.json and the bundle's copy of the scenario differ in {', '.join(differing)}"
    for key, default in (("id", None), ("scale", 1), ("seed", None), ("repetitions", 1)):
        told = getattr(run.scenario, key)
        if told != parameters.get(key, default):
            yield f"run.json's scenario.{key} is {told} and {parameters.get(key, default)} in its parameters"
    yield from _demand(run.demand, parameters)


def _demand(told: DemandOfRun | None, parameters: Document) -> Iterator[str]:
    """run.json's `demand` against what follows from the parameters of snb_record."""
    workloads = parameters.get("workloads")
    record: Any = workloads.get("snb_record") if isinstance(workloads, dict) else None
    if record is None and not told:
        return
    try:
        links, size, rate = (record[key] for key in PACED)
        scale, duration = float(parameters.get("scale", 1)), float(parameters["duration_s"])
        due = Demand(links, size, float(rate), scale, duration).as_document()
        told_wrongly = [key for key in DEMAND if not math.isclose(getattr(told, key), due[key], rel_tol=1e-9)]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):  # None, or parameters that are no load
        told_wrongly = ["demand"]
    if told_wrongly:
        yield f"run.json's demand ({', '.join(told_wrongly)}) does not follow from the scenario's parameters"
