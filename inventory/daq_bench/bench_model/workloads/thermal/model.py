"""The evidence that covers the plan of the thermal soak: how long it lasted, and each fan speed that was asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.behaviour.service_curve import worst_record
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.workloads.model import RUNTIME_MIN, Asked, Beside, Count, Model, once, stated
from daq_bench.bench_model.workloads.plan import INVALIDATES, Plan, Problem, column, follows, rows
from daq_bench.bench_model.workloads.thermal.document import Thermal, ThermalSoak
from daq_bench.bench_model.workloads.thermal.soak import SOAK, of_bundle


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    """The soak ran for its least time, and each fan speed that was asked for was tried, or it is said why not."""
    parameters, soak = plan.parameters, document["soak"]
    length_s = soak["end_utc_s"] - soak["start_utc_s"]
    if length_s < RUNTIME_MIN * parameters["soak"]["min_s"] and soak["stopped_by"] != "throttling":
        yield f"the soak lasted {length_s:.0f} s of at least {in_digits(parameters['soak']['min_s'], 9)} s"
    sizes = {
        "block_bytes": "block_size",
        "file_bytes": "file_size",
        "io_depth": "io_depth",
        "rate_limit_bytes_per_s": "rate_size",
    }
    load = {key: parameters.get(name) for key, name in sizes.items()}
    yield from follows("the load", {key: document["load"][key] for key in load}, load)
    if document["cool_down"] is None:
        yield "the rest after the soak is missing"
    asked, sweep = parameters.get("fan_sweep"), document["fan_sweep"]
    if asked and sweep["status"] not in ("done", "stopped"):
        yield f"the fan sweep is {sweep['status']!r}: {sweep['reason']}"
    if (sweep["status"] in ("unsupported", "stopped")) is not (sweep["reason"] is not None):
        yield (
            f"the fan sweep contradicts itself: it is {sweep['status']!r}, and its reason {sweep['reason']!r}",
            INVALIDATES,
        )
    if not asked and sweep["status"] != "not asked":
        yield f"the fan sweep is {sweep['status']!r}, and none was asked for", INVALIDATES
    duties = asked["duties_percent"] if asked and sweep["status"] == "done" else []
    planned = [SOAK, *(f"fans at {duty} %" for duty in duties)]
    if sweep["status"] == "done":
        yield from rows("fan speed", duties, column(sweep["points"], "duty_percent"))
    yield from rows("the load", planned, [name for name in column(document["sustained"], "name") if name in planned])
    for one in (soak, *sweep["points"]):
        if one["bytes_written"] <= 0 or one["throughput_bytes_per_s"] <= 0:
            yield f"the load {one['name']} wrote nothing"
    record = {key: parameters["record"][key] for key in ("links", "superchunk_bytes", "superchunk_rate_hz")}
    demand = math.prod(float(value) for value in record.values()) * plan.scale
    if not math.isclose(document["record"]["demand_bytes_per_s"], demand, rel_tol=1e-9):
        yield (
            f"the record's demand is {in_digits(document['record']['demand_bytes_per_s'], 9)} B/s instead of {in_digits(demand, 9)} B/s",
            INVALIDATES,
        )


OTHERS_SHARE = 0.01  # [P] of the demand: two counts of the same bytes differ by less


def left_for_record(plan: Plan, document: Document, soak: Document) -> Iterator[Problem]:
    """The counters of the target show all that it took, others' bytes among them. A record gets no more than the load itself got: where
    that would have lost data while others wrote, the counters do not show that a record is held."""
    record, seen = soak["record"], soak["soak"]
    own = next((one.get("own") for one in document["sustained"] if one["name"] == SOAK), None)
    if not own or seen is None or record is None or record["worst_in_soak"] is None:
        return
    # A load's own line is the mean of the second before its time, and the counters' first step begins with the soak.
    rates = [float(rate) for _, rate in own[1:]]
    need, length_s = record["demand_bytes_per_s"], record["duration_s"]
    worst = worst_record(rates, 1.0, need, length_s, record["buffer_bytes"])
    if worst is None or worst.lost_bytes <= 0:
        return
    step_s, begin_s = seen["step_s"], worst.start_s
    taken = seen["throughput_bytes_per_s_samples"][round(begin_s / step_s) : round((begin_s + length_s) / step_s)]
    left = rates[round(begin_s) : round(begin_s + length_s)]
    others = sum(taken) / len(taken) - sum(left) / len(left) if taken else 0.0
    if others >= OTHERS_SHARE * need:
        yield (
            f"others wrote {others / 1e9:.3g} GB/s to the target beside the soak, in the {length_s:g} s from {begin_s:.0f} s on: of what "
            f"they left a record would have lost {worst.lost_bytes / 1e9:.3g} GB"
        )


def _soak_held(plan: Plan, document: Document, soak: Document) -> Iterator[Problem]:
    yield from follows("what ended the soak", document["soak"]["stopped_by"], soak["stopped_by"])
    yield from left_for_record(plan, document, soak)


LOG_START_S = 5.0  # that fio's log lacks


def _soak(asked: Asked, soak: Document) -> float | None:
    """Says when the soak may have ended: only heat ends it before its least length, of which fio's log lacks the first seconds."""
    if soak.get("stopped_by") in ("throttling", "danger"):
        return None
    return float(soak["start_utc_s"] + RUNTIME_MIN * asked.own["soak"]["min_s"] - LOG_START_S)


MODEL = Model(
    coverage,
    (
        Count("load.file_bytes", stated("file_size")),
        Count("soak.end_utc_s", _soak, 1.0),
        Count("record.demand_bytes_per_s", lambda asked, _: asked.rate("record") * asked.scale),
        Count("record.duration_s", stated("record", "duration_s")),
    ),
    (Beside("results/thermal_soak.json", of_bundle, _soak_held, ThermalSoak),),
    times=once,
    result=Thermal,
)
