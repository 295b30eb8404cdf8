"""The load that was offered, as the results count it, against the one that the scenario in force asked for.

One table for all workloads. bench_model.evidence.demanded_load compares what a scenario asks for with the requirement profile. A count
that is missing or no number, and a complete measurement that counts less than was asked for, contradict the run: they invalidate
it. A shortfall of a measurement that its own tool calls failed, or that is masked, is only a limit: the candidate may be the cause."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench_model.bundle.evidence import Document
from bench_model.evidence.demanded_load import in_bytes, parameters_of

COUNTED_MIN = 0.99  # [P] share of what was asked for, as of the source's superchunks
LOG_START_S = 5.0
RUNTIME_MIN = 0.97  # [P] of a point's time, as its workload lets count
CUT_SHORT, CUT = ("failed", "interrupted"), "(cut short)"


@dataclass(frozen=True)
class Asked:
    """The parameters of one workload, sizes in bytes, and those of its scenario."""

    own: Mapping[str, Any]
    scale: float
    duration_s: float
    repetitions: int

    def rate(self, group: str | None = None) -> float:
        """B/s of the paced load at scale 1, all links."""
        paced = self.own[group] if group else self.own
        return float(paced["links"] * paced["superchunk_bytes"] * paced["superchunk_rate_hz"])


@dataclass(frozen=True)
class Count:
    """`path` of a number in results/<workload>.json, `[]` for each of a list, and the least that it must be.

    `least` gets what was asked and all that stands beside and above the number; None: nothing is asked of this one."""

    path: str
    least: Callable[[Asked, Document], float | None]
    share: float = COUNTED_MIN


def _own(*keys: str) -> Callable[[Asked, Document], float]:
    def least(asked: Asked, _: Document) -> float:
        found: Any = asked.own
        for key in keys:
            found = found[key]
        return float(found)

    return least


def _superchunks(asked: Asked, _: Document) -> float:
    return asked.rate() * asked.scale * asked.duration_s / float(asked.own["superchunk_bytes"])


def _rung(asked: Asked, point: Document) -> float | None:
    """Superchunks of one offered load of latency_under_load; a masked one was not offered in full, and says so."""
    if point.get("admissible") is False:
        return None
    each = asked.rate() * asked.scale / float(asked.own["superchunk_bytes"])
    return each * float(point["load_factor"]) * float(asked.own["seconds_per_point"])


def _soak(asked: Asked, soak: Document) -> float | None:
    """When the soak may have ended: only heat ends it before its least length, of which fio's log lacks the first seconds."""
    if soak.get("stopped_by") in ("throttling", "danger"):
        return None
    return float(soak["start_utc_s"] + RUNTIME_MIN * asked.own["soak"]["min_s"] - LOG_START_S)


def _pass(asked: Asked, around: Document) -> float:
    """Bytes that one pass writes: all that the target had when it began, or the part of it that was asked for."""
    part = asked.own.get("span_size")
    return float(around["capacity_bytes"] * asked.own.get("free_share", 1)) if part is None else float(part)


def _stream(key: str) -> Callable[[Asked, Document], float]:
    """Returns the rule for `key` of one paced load of the storage application; the load's name selects its rate."""

    def least(asked: Asked, load: Document) -> float:
        demand = asked.own["demand"]
        rate = demand[f"{load['name']}_rate_size"] / demand["servers"] * asked.scale
        seconds = demand[f"{load['name']}_s"]
        return float({"asked_bytes_per_s": rate, "seconds": seconds, "due_bytes": rate * seconds}[key])

    return least


COUNTS: dict[str, tuple[Count, ...]] = {
    "snb_record": (
        Count("repetitions[].minidaq.parameters.links", _own("links")),
        Count("repetitions[].minidaq.parameters.superchunk_bytes", _own("superchunk_bytes")),
        Count("repetitions[].minidaq.parameters.superchunk_rate_hz", _own("superchunk_rate_hz")),
        Count("repetitions[].minidaq.parameters.scale", lambda asked, _: asked.scale),
        Count("repetitions[].minidaq.superchunks.intended", _superchunks),
        Count("repetitions[].minidaq.superchunks.offered", _superchunks),
        Count("repetitions[].minidaq.time.record_s", lambda asked, _: asked.duration_s),
    ),
    "block_scan": (
        Count("seconds_per_point", _own("seconds_per_point")),
        Count("file_bytes", _own("file_size")),
        Count("points[].runtime_s", _own("seconds_per_point"), RUNTIME_MIN),
    ),
    "thread_scan": (
        Count("seconds_per_point", _own("seconds_per_point")),
        Count("file_bytes", _own("file_size")),
    ),
    "read_scan": (
        Count("seconds_per_point", _own("seconds_per_point")),
        Count("file_bytes", _own("file_size")),
        Count("scans[].points[].runtime_s", _own("seconds_per_point"), RUNTIME_MIN),
    ),
    "minidaq_scan": (
        Count("applications", _own("applications")),
        Count("links", _own("links")),
        Count("superchunk_bytes", _own("superchunk_bytes")),
        Count("demand_bytes_per_s", lambda asked, _: asked.own["applications"] * asked.rate() * asked.scale),
        Count("seconds_per_point", _own("seconds_per_point")),
        Count("synthetic_threads", _own("synthetic_threads")),
    ),
    "latency_under_load": (
        Count("links", _own("links")),
        Count("superchunk_bytes", _own("superchunk_bytes")),
        Count("seconds_per_point", _own("seconds_per_point")),
        Count("points[].offered", _rung),
    ),
    "steady_state": (
        Count("seconds_per_point", _own("seconds_per_point")),
        Count("span_bytes", lambda asked, own: asked.own.get("span_size", own.get("capacity_bytes"))),
    ),
    "thermal": (
        Count("load.file_bytes", _own("file_size")),
        Count("soak.end_utc_s", _soak, 1.0),
        Count("record.demand_bytes_per_s", lambda asked, _: asked.rate("record") * asked.scale),
        Count("record.duration_s", _own("record", "duration_s")),
    ),
    "endurance": (
        Count("pattern.file_bytes", _own("file_size")),
        Count("pattern.step_bytes", _own("step_size")),
        Count("write_budget_bytes", _own("write_budget")),
    ),
    "saturation": (
        Count("repetitions[].asked_bytes", _pass),
        Count("repetitions[].written_bytes", _pass),
        Count("cliff_free_bytes", _own("cliff_free_size")),
    ),
    "interference": (
        Count("seconds", lambda asked, _: asked.duration_s),
        Count("rounds", lambda asked, _: asked.repetitions),
        Count("burst_bytes_per_s", lambda asked, _: asked.rate("burst") * asked.scale),
    ),
    "raid_vs_3dxp": (
        Count("write.write_size", _own("write_size")),
        Count("paced.seconds", _own("paced", "seconds")),
        Count("paced.offered_bytes_per_s", lambda asked, _: asked.rate("paced") * asked.own["paced"]["share"]),
        Count("rounds[].visits[].write.bytes_written", _own("write_size")),
        Count("rounds[].visits[].paced.offered_superchunks", lambda asked, _: _paced(asked.own["paced"])),
    ),
    "streams_checksum": (
        Count("throughput.seconds", _own("throughput", "seconds")),
        Count("rounds", lambda asked, _: asked.repetitions),
        Count("demand[].asked_bytes_per_s", _stream("asked_bytes_per_s")),
        Count("demand[].seconds", _stream("seconds")),
        Count("demand[].due_bytes", _stream("due_bytes")),
    ),
    "hot_store": (
        Count("seconds_per_point", _own("seconds_per_point")),
        Count("redis_clients", _own("redis_clients")),
        Count("client_value_bytes", _own("client_value_size")),
        Count("scale_out.replicas", _own("scale_out", "replicas")),
    ),
    "lan": (
        Count("seconds_per_size", _own("seconds_per_size")),
        Count("need_bytes_per_s", lambda asked, _: asked.own["need_size"] * asked.scale),
        Count("settings.pairs", _own("settings", "pairs")),
        Count("settings.seconds", _own("settings", "seconds")),
    ),
    "concurrent_analysis": (Count("sets[].shape.events", lambda asked, around: _events(asked, around)),),
}


def _paced(paced: Mapping[str, Any]) -> float:
    return float(paced["links"] * paced["superchunk_rate_hz"] * paced["share"] * paced["seconds"])


def _events(asked: Asked, around: Document) -> float:
    """Events of a set of files; those of the slow disk are a declared share of them."""
    slow = [one["name"] for one in around["storages"] if one["kind"] == "slow-disk"]
    share = asked.own["slow_disk"]["share"] if around["storage"] in slow else 1
    return float(asked.own["sets"][around["kind"]]["events"] * share)


def miscounted(run: Document, results: Mapping[str, Document]) -> Iterator[tuple[str, str, bool]]:
    """(file, sentence, invalidates) for each count that is missing, no number, or short of what the scenario asked for."""
    parameters = parameters_of(run)
    workloads = parameters.get("workloads")
    for name, own in workloads.items() if isinstance(workloads, dict) else ():
        file = f"results/{name}.json"
        if name not in COUNTS or file not in results:
            continue
        try:
            asked = Asked(
                in_bytes(name, own),
                float(parameters.get("scale", 1)),
                float(parameters.get("duration_s", math.nan)),
                int(parameters.get("repetitions", 1)),
            )
            for count in COUNTS[name]:
                yield from _short(file, count, asked, results[file])
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            yield (
                file,
                f"{file} cannot be held against what the scenario asked for ({type(error).__name__}: {error})",
                True,
            )


def _short(file: str, count: Count, asked: Asked, document: Document) -> Iterator[tuple[str, str, bool]]:
    found = list(_values(document, count.path.split("."), "", {}))
    if not found:
        yield file, f"{file} counts nothing under {count.path}", True
    for at, value, around in found:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            shown = "missing" if value is None else repr(value)[:60]
            yield file, f"{file}: {at} is {shown}, so that the load is not known", True
            continue
        least = count.least(asked, around)
        if least is not None and not value >= count.share * least:
            yield file, f"{file}: {at} counts {value:.6g} where the scenario asked for {least:.6g}", not around[CUT]


def _values(node: Any, path: list[str], at: str, around: Document) -> Iterator[tuple[str, Any, Document]]:
    """(path in words, number, what stands beside and above it). Unlike of a JMESPath, of this nothing missing is passed over."""
    own = node if isinstance(node, dict) else {}
    around = {**around, **own, CUT: around.get(CUT, False) or _cut_short(own)}
    key, many = path[0].removesuffix("[]"), path[0].endswith("[]")
    here, below = f"{at}.{key}" if at else key, own.get(key)
    if len(path) == 1:
        yield here, below, around
    elif not many:
        yield from _values(below, path[1:], here, around)
    else:
        for index, one in enumerate(below if isinstance(below, list) else [None]):
            yield from _values(one, path[1:], f"{here}[{index}]", around)


def _cut_short(node: Document) -> bool:
    return node.get("status") in CUT_SHORT or node.get("failed") is True or node.get("admissible") is False
