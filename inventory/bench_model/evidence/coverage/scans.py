"""Coverage of the records, of the scans, and of what disturbs a burst."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from bench_model.base.units import binary_label
from bench_model.bundle.evidence import Document
from bench_model.statistics.plateau import find_plateau, is_large
from bench_model.workloads import interference as slowdown
from bench_model.workloads import latency_under_load as load_latency
from bench_model.workloads import minidaq_scan as minidaq_curve
from bench_model.workloads import thread_scan as thread_scaling
from bench_model.workloads.plan import (
    FAILS,
    INVALIDATES,
    SOUND,
    Plan,
    Problem,
    agreeing,
    column,
    counting,
    follows,
    repetitions,
    rows,
    tool,
)


def snb_record(plan: Plan, document: Document) -> Iterator[Problem]:
    found, conditions = document["repetitions"], plan.parameters.get("conditions") or [None]
    yield from repetitions("records", plan, len(found), len(conditions))
    yield from rows("a record in the condition", conditions, list(dict.fromkeys(one["condition"] for one in found)))
    for condition in conditions:
        of_this = sum(1 for one in found if one["condition"] == condition)
        if of_this < plan.repetitions:
            said = f" in the condition {condition}" if condition else ""
            yield f"{of_this} of {plan.repetitions} planned records{said} are there"
    for number, one in enumerate(found, start=1):
        yield from _record(f"record {number}", one)
        yield from _asked_of_writer(f"record {number}", plan, one["minidaq"]["parameters"])
    identifiers = [one["minidaq"]["parameters"]["record_id"] for one in found]
    for identifier, count in Counter(identifiers).items():
        if count > 1:
            yield f"record {identifier} stands there {count} times", INVALIDATES


def _record(name: str, repetition: Document) -> Iterator[Problem]:
    """One record: its tools' words, and counts that add up."""
    minidaq, verify = repetition["minidaq"], repetition["verify"]
    yield from tool(f"the writer of {name}", minidaq["status"], SOUND[:1])
    yield from tool(f"the read-back of {name}", verify["status"], SOUND[1:])
    if verify["trailer_status"] != "complete":
        yield f"{name} was not closed by its writer: trailer {verify['trailer_status']!r}", FAILS
    if verify["record_id"] != minidaq["parameters"]["record_id"]:
        yield f"the read-back of {name} is of another record", INVALIDATES
    written, counts = minidaq["superchunks"], verify["superchunks"]
    damaged = sum(counts[kind] for kind in ("missing", "duplicated", "out_of_order", "corrupt", "torn", "stale"))
    share = counts["present"] / written["offered"] if written["offered"] else None
    size, series = minidaq["parameters"]["superchunk_bytes"], minidaq["series"]
    applications = minidaq["applications"]
    said = {
        "what was offered is not what was stored and lost": written["offered"]
        == written["stored"] + written["lost"] + written["abandoned"],
        "more was offered than intended": written["offered"] <= written["intended"],
        "the links' losses are not the record's": sum(written["lost_per_link"]) == written["lost"]
        and len(written["lost_per_link"]) == minidaq["parameters"]["links"],
        "the bytes are not those of the superchunks": minidaq["bytes"]["payload"] == written["stored"] * size,
        "the series does not add up to the record": sum(series["stored_bytes"]) == minidaq["bytes"]["payload"]
        and sum(series["offered_bytes"]) == written["offered"] * size
        and len({len(series[key]) for key in ("t_s", "offered_bytes", "stored_bytes", "backlog_bytes")}) == 1,
        "the applications do not add up to the record": all(
            sum(one[key] for one in applications) == written[key] for key in ("offered", "stored", "lost")
        ),
        "an application ended otherwise than the record": all(
            one["status"] == minidaq["status"] for one in applications
        ),
        "the read-back is of fewer or more superchunks than were stored": sum(
            counts[kind] for kind in ("present", "missing", "corrupt", "torn", "stale")
        )
        == written["stored"],
        "the read-back speaks of other losses": verify["lost_at_source"] == written["lost"],
        "the trailer is complete and is not": verify["complete_trailer"] is (verify["trailer_status"] == "complete"),
        "damage is not the sum of its kinds": repetition["damaged_superchunks"] == damaged,
        "the verified share is not what was read back over what was offered": repetition["verified_fraction"] == share,
    }
    for text, holds in said.items():
        if not holds and minidaq["status"] == "complete":
            yield f"{name} contradicts itself: {text}", INVALIDATES


RECORD_PARAMETERS = {  # of the scenario, and their names in daqwriter's document
    "links": "links",
    "superchunk_bytes": "superchunk_bytes",
    "superchunk_rate_hz": "superchunk_rate_hz",
    "ring_size": "ring_bytes_per_link",
    "block_size": "block_bytes",
    "io_depth": "io_depth",
    "checksum": "checksum",
}


def _asked_of_writer(name: str, plan: Plan, told: Document) -> Iterator[Problem]:
    """The writer was told what the scenario asks for, paced, and wrote to a target."""
    asked = {RECORD_PARAMETERS[key]: plan.parameters[key] for key in RECORD_PARAMETERS}
    asked |= {"scale": plan.scale, "duration_s": plan.duration_s, "mode": "continuous", "paced": True}
    links, size, rate = (plan.parameters[key] for key in ("links", "superchunk_bytes", "superchunk_rate_hz"))
    offered = links * size * float(rate) * plan.scale
    if told["offered_bytes_per_s"] is None or not math.isclose(told["offered_bytes_per_s"], offered, rel_tol=1e-6):
        yield (
            f"the writer of {name} was to offer {told['offered_bytes_per_s']} B/s instead of {offered:g} B/s",
            INVALIDATES,
        )
    for key, value in asked.items():
        if told[key] != value:
            yield f"the writer of {name} was told {key} {told[key]!r} instead of {value!r}", INVALIDATES
    if told["target_kind"] not in ("scratch-file", "raw-device"):
        yield f"the writer of {name} wrote to {told['target_kind']!r}, which is no target", INVALIDATES


def block_scan(plan: Plan, document: Document) -> Iterator[Problem]:
    tools = plan.parameters.get("tools") or ["fio"]
    scans = [document, *document["others"]]
    yield from rows("the scan with", tools, [scan["tool"] for scan in scans])
    for scan in scans:
        points = scan["points"]
        yield from rows(
            f"{scan['tool']}: block size", plan.parameters["block_sizes"], column(points, "block_bytes"), binary_label
        )
        yield from counting(f"{scan['tool']}: block size", ((binary_label(one["block_bytes"]), one) for one in points))
        yield from _sampled(f"{scan['tool']}: block size", scan, points)
        plateau = find_plateau(
            [(one["block_bytes"], one["throughput_bytes_per_s"]) for one in points if one["admissible"]]
        )
        made = (plateau.throughput_bytes_per_s, plateau.from_block_bytes) if plateau else (None, None)
        said = scan["plateau"]["throughput_bytes_per_s"], scan["plateau"]["from_block_bytes"]
        yield from follows(f"{scan['tool']}: the plateau", said, made)

        yield from _large_blocks(plan, scan)


def _large_blocks(plan: Plan, scan: Document) -> Iterator[Problem]:
    """Each large block size as often as `confirm` asks for; without it the scan's own lowest point stands there, once."""
    asked, found = plan.parameters.get("confirm"), scan["large_blocks"]["repetitions"]
    what = f"{scan['tool']}: the repetition of"
    entries = [(f"{binary_label(one['block_bytes'])}, number {one['repetition']}", one) for one in found]
    if asked:
        large = [size for size in plan.parameters["block_sizes"] if is_large(size)]
        planned = [f"{binary_label(size)}, number {n}" for n in range(1, asked["repetitions"] + 1) for size in large]
        yield from rows(what, planned, [name for name, _ in entries])
        if scan["large_blocks"]["seconds_per_repetition"] != asked["seconds_per_repetition"]:
            yield "the repetitions of large blocks were asked to last otherwise than the scenario says", INVALIDATES
        short = [
            name for name, one in entries if one["runtime_s"] < RUNTIME_SHARE_MIN * asked["seconds_per_repetition"]
        ]
        yield from (f"{what} {name} lasted too short" for name in short)
    yield from counting(what, entries)
    yield from _sampled(what, scan, found)


RUNTIME_SHARE_MIN = 0.97  # [P] of its time that a point must have been measured for
SAMPLES_SHARE_MIN = 0.9  # [P] of the windows that a point's time holds: a tool's first or last one may be cut short


def _sampled(what: str, scan: Document, points: Iterable[Document]) -> Iterator[Problem]:
    """Each point that counts has a sample of each window of its time."""
    for one in points:
        planned = one["runtime_s"] / scan["sample_s"]
        if one["admissible"] and len(one["throughput_bytes_per_s_samples"]) < SAMPLES_SHARE_MIN * planned - 1:
            found = len(one["throughput_bytes_per_s_samples"])
            yield f"{what} {binary_label(one['block_bytes'])} has {found} samples of {planned:.0f}"


def thread_scan(plan: Plan, document: Document) -> Iterator[Problem]:
    sizes, threads = plan.parameters["block_sizes"], plan.parameters["threads"]
    grid = [(number, size) for size in sizes for number in threads]
    yield from rows("the scan with", plan.parameters["tools"], column(document["scans"], "tool"))
    for scan in document["scans"]:
        what, points = f"{scan['tool']}: the point with", scan["points"]
        yield from rows(what, grid, [(one["threads"], one["block_bytes"]) for one in points], _thread_point)
        yield from counting(what, ((_thread_point((one["threads"], one["block_bytes"])), one) for one in points))
        found, _ = thread_scaling.summarize([_scaling_point(one) for one in points])
        yield from follows(f"{scan['tool']}: the summary", {key: scan[key] for key in found}, found)


def _scaling_point(one: Document) -> thread_scaling.Point:
    rate = one["throughput_bytes_per_s"] if one["admissible"] else None
    return thread_scaling.Point(one["threads"], one["block_bytes"], rate, one["cpu_system_percent"])


def _thread_point(key: tuple[int, int]) -> str:
    return f"{key[0]} thread{'s' if key[0] > 1 else ''} and blocks of {binary_label(key[1])}"


def minidaq_scan(plan: Plan, document: Document) -> Iterator[Problem]:
    """A request size below the plateau may be limited by the source: the plateau does not rest on it."""
    points, start = document["points"], document["plateau"]["from_request_bytes"]
    sizes = plan.parameters["request_sizes"]
    planned = [(size, number) for number in range(1, plan.repetitions + 1) for size in sizes]
    found = [(one["asked_request_bytes"], one["repetition"]) for one in points]
    yield from rows("request size", planned, found, lambda key: minidaq_curve.name_of(*key))
    needed = [one for one in points if start is None or one["asked_request_bytes"] >= start]
    yield from counting("request size", ((_request(one), one) for one in needed))
    made, _ = minidaq_curve.summarize(points)
    yield from follows("the plateau", document["plateau"], made["plateau"])
    yield from follows("the inhibits", document["inhibits"], made["inhibits"])
    for one in points:
        name, last = f"request size {_request(one)}", (one["runs"] or [None])[-1]
        said = one["inhibits"], one["throughput_bytes_per_s"]
        yield from follows(
            name, said, (minidaq_curve.inhibits_of(last), last["stored_bytes_per_s"]) if last else (None, None)
        )
        why = minidaq_curve.why_masked(one["limited_by"], last, one["synthetic"]["reason"])
        yield from follows(f"{name}: the reason", one["reason"], why)
        ratio = minidaq_curve.ratio_of(one, document["demand_bytes_per_s"]) if one["admissible"] else None
        yield from follows(f"{name}: the ratio", one["ratio_to_synthetic"], ratio)
        yield from _searched(name, one)


def _searched(name: str, point: Document) -> Iterator[Problem]:
    """A rate was found or not, and only an inhibit asks for a further, slower record."""
    search, runs = point["search"], point["runs"]
    found = [search[key] is not None for key in ("highest_bytes_per_s", "highest_trigger_rate_hz")]
    limits = ["nothing stood"] if not any(found) else ["inhibit", "source"]
    if all(found) and search["lowest_refused_bytes_per_s"] is None:
        limits = ["all asked"]
    if any(found) is not all(found) or point["limited_by"] not in limits or bool(runs) is not all(found):
        yield f"{name} contradicts itself: {point['limited_by']!r} is not how its search ended", INVALIDATES
    if not all(minidaq_curve.inhibits_of(run) for run in runs[:-1]):
        yield f"{name} contradicts itself: a record without inhibit is not its last", INVALIDATES


def _request(point: Document) -> str:
    return minidaq_curve.name_of(point["asked_request_bytes"], point["repetition"])


def latency_under_load(plan: Plan, document: Document) -> Iterator[Problem]:
    """A rung beyond the demand may be more than the source can offer: no requirement rests on it."""
    points = document["points"]
    yield from rows("load factor", plan.parameters["load_factors"], column(points, "load_factor"), "{:g}".format)
    needed = [one for one in points if one["load_factor"] <= 1]
    yield from agreeing("load factor", ((f"{one['load_factor']:g}", one) for one in points))
    yield from counting("load factor", ((f"{one['load_factor']:g}", one) for one in needed))
    knee = load_latency.find_knee(points)
    demand = _demand(plan, document)
    judged = load_latency.judged_rate(knee, demand)
    yield from follows("the knee", document["knee"], {**knee, "judged_bytes_per_s": judged})
    at = next((one for one in points if one["load_factor"] == 1), None)
    made = (
        (load_latency.value_of(at, 99.9), load_latency.value_of(at, 99.999), at["lost"]) if at else (None, None, None)
    )
    yield from follows(
        "the row at the demand", tuple(document["at_demand"][key] for key in ("p99_9_us", "p99_999_us", "lost")), made
    )
    for one in points:
        name = f"load factor {one['load_factor']:g}"
        yield from rows(
            f"{name}: percentile", load_latency.PERCENTILES, column(one["percentiles"], "percentile"), "{:g}".format
        )
        odd = [
            each["percentile"] for each in one["percentiles"] if (each["us"] is None) != (each["reason"] is not None)
        ]
        if odd:
            yield f"{name}: percentile {odd[0]:g} has neither a value nor a reason, or both", INVALIDATES
        yield from follows(f"{name}: what was offered", one["offered"], one["stored"] + one["lost"])
        if not math.isclose(one["asked_bytes_per_s"], one["load_factor"] * demand, rel_tol=1e-9):
            yield (
                f"{name}: {one['asked_bytes_per_s']:g} B/s were asked for instead of {one['load_factor'] * demand:g} B/s",
                INVALIDATES,
            )


def _demand(plan: Plan, document: Document) -> float:
    """B/s that one scaled readout unit delivers, by the result's own parameters, which are the scenario's (`_as_asked`)."""
    per_link = document["superchunk_bytes"] * float(document["superchunk_rate_hz"])
    return float(document["links"] * per_link * plan.scale)


BURST = "burst"
ALL = "all"  # of interference: every disturber together


def disturbers_of(victim: str, asked: Sequence[str]) -> list[str]:
    """Each other activity alone, and all of them where that is more than one."""
    others = [name for name in asked if name != victim]
    return [*others, ALL] if len(others) > 1 else others


def interference(plan: Plan, document: Document) -> Iterator[Problem]:
    parameters, cells = plan.parameters, document["cells"]
    planned = [(one, other) for one in parameters["victims"] for other in disturbers_of(one, parameters["disturbers"])]
    yield from rows("cell", planned, [(one["victim"], one["disturber"]) for one in cells], " beside ".join)
    for cell in cells:
        what, pairs = f"{cell['victim']} beside {cell['disturber']}: pair", cell["pairs"]
        yield from rows(what, range(1, plan.repetitions + 1), column(pairs, "round"))
        yield from counting(what, ((str(pair["round"]), pair) for pair in pairs))
        for pair in pairs:
            whole = "; ".join(
                f"{kind}: {pair[kind]['reason']}" for kind in ("solo", "disturbed") if pair[kind]["reason"] is not None
            )
            yield from follows(f"{what} {pair['round']}: the reason", pair["reason"] or "", whole)
        found = slowdown.slowdown_of([pair["slowdown"] for pair in pairs if pair["slowdown"] is not None])
        yield from follows(f"{what}: the slowdown", cell["slowdown"], found.as_document() if found else None)
        if (cell["reason"] is None) is not (cell["slowdown"] is not None):
            yield f"{what}: a slowdown and a reason why there is none contradict each other", INVALIDATES
    if BURST in parameters["victims"]:
        yield from _bursts(plan, document)


def _bursts(plan: Plan, document: Document) -> Iterator[Problem]:
    """The burst's losses, alone and beside each disturber, over the runs of its cells."""
    mine = [cell for cell in document["cells"] if cell["victim"] == BURST]
    planned = {"none": ("solo", mine), **{cell["disturber"]: ("disturbed", [cell]) for cell in mine}}
    yield from rows("the burst beside", list(planned), column(document["burst"], "disturber"))
    for row in document["burst"]:
        kind, cells = planned.get(row["disturber"], ("solo", []))
        runs = [pair[kind] for cell in cells for pair in cell["pairs"]]
        told = [run["more"] for run in runs if run["reason"] is None]
        counts = ("offered_superchunks", "lost_superchunks", "busy_count", "buffer_needed_bytes")
        if any(type(one[key]) is not int for one in told for key in counts):
            yield f"a burst beside {row['disturber']} has a count that is no whole number", INVALIDATES
        if row["n"] != plan.repetitions * len(cells):
            yield f"{row['n']} of {plan.repetitions * len(cells)} bursts beside {row['disturber']} count"
        made = {
            "lost_superchunks": sum(one["lost_superchunks"] for one in told) if told else None,
            "busy_count": sum(one["busy_count"] for one in told) if told else None,
            "buffer_needed_bytes": max((one["buffer_needed_bytes"] for one in told), default=None),
            "offered_superchunks": sum(one["offered_superchunks"] for one in told),
        }
        yield from follows(f"the burst beside {row['disturber']}", {key: row[key] for key in made}, made)
