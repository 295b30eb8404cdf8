"""results/raid_comparison.json: what follows from the rounds that `raid_vs_3dxp` measured, the telemetry and the inventory.

A pure function of the bundle. A masked visit is in no figure; a disturbed one stays in all of them and is named, with what
disturbed it if an event of the run tells, and the comparison without the disturbed rounds stands beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from daq_bench.bench_model.base.units import GB
from daq_bench.bench_model.behaviour.record_power import Reading, power_readings
from daq_bench.bench_model.bundle.files import find_document, read_json_lines
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document, as_document, moment
from daq_bench.bench_model.profiles.candidates import Candidate, load_candidate
from daq_bench.bench_model.profiles.published import FOLDER, PublishedDevice, load_published, of_metric
from daq_bench.bench_model.statistics.paired import CONFIDENCE, Pair, compare
from daq_bench.bench_model.workloads.raid_vs_3dxp.facts import (
    Figure,
    added_power,
    amplification,
    cost,
    endurance,
    rack_units,
)

RESULTS = "raid_vs_3dxp.json"
METRICS = "raid_vs_3dxp"
UNKNOWN = "unknown: no event of the run explains it"
BEYOND_MIN = 10  # [P] values that must lie beyond a percentile
BELOW = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}  # share of the values below
# name, unit, and where a visit has it
QUANTITIES = (
    ("throughput", "B/s", ("write", "throughput_bytes_per_s")),
    ("latency_p99", "us", ("paced", "p99")),
    ("latency_p99_9", "us", ("paced", "p99_9")),
    ("kernel_cpu", "s/GB", ("write", "kernel_cpu_s_per_gb")),
)


def of_bundle(bundle: Path, run: Run) -> Document | None:
    """None for a run without such a comparison."""
    found = find_document(bundle, f"results/{RESULTS}")
    if found is None:
        return None
    candidate = load_candidate(bundle / "profiles" / "lab.yml", run.candidate.name)
    published = load_published(bundle / "profiles" / FOLDER)
    return document(found, candidate, published, power_readings(bundle), hazard_events(bundle))


def is_given(percentile: str, count: int) -> bool:
    """Says whether so many values have this percentile."""
    return count * (1 - BELOW[percentile]) >= BEYOND_MIN


def hazard_events(bundle: Path) -> list[dict[str, Any]]:
    """The run's events of kind `hazard`: {at_s, text}."""
    events = read_json_lines(bundle, "events.jsonl")
    return [
        {"at_s": moment(one["time_utc"]).timestamp(), "text": one["text"]} for one in events if one["kind"] == "hazard"
    ]


def document(
    found: Document,
    candidate: Candidate,
    published: Mapping[str, PublishedDevice],
    power: Sequence[Reading],
    hazards: Sequence[Mapping[str, Any]],
) -> Document:
    """The document from the rounds (results/raid_vs_3dxp.json) and what else the bundle knows."""
    visits = {name: _visits_of(found, name, power) for name in found["targets"]}
    for name, own in visits.items():
        serials = [drive["serial"] or "" for drive in found["targets"][name]["drives"]]
        for one in own:
            one["cause"] = cause_of(one, serials, hazards)
    comparisons = [
        _comparison(visits[found["reference"]], visits[name], name, quantity)
        for name in found["sets"]
        for quantity in QUANTITIES
    ]
    targets = [
        _target(found, name, visits[name], candidate, published) for name in [found["reference"], *found["sets"]]
    ]
    judged, reasons = _judged(found, visits, targets)
    return {
        "schema_version": 1,
        "confidence": CONFIDENCE,
        "reference": found["reference"],
        "judged_set": found["judged_set"],
        "targets": targets,
        "comparisons": comparisons,
        "disturbed": _disturbed(comparisons, visits),
        "judged": judged,
        "published": _published(published),
        "reasons": reasons,
    }


def _visits_of(found: Document, name: str, power: Sequence[Reading]) -> list[dict[str, Any]]:
    """The target's visits in the order of the run, with what a visit's figures give together."""
    own = []
    for one in found["rounds"]:
        for visit in one["visits"]:
            if visit["target"] != name:
                continue
            write = visit["write"]
            volume = write["bytes_written"] / GB
            kernel = write["machine_kernel_cpu_s"] / volume if volume else None
            added = added_power(power, one["idle"], write)
            own.append(
                {
                    **visit,
                    "group": one["group"],
                    "round": one["round"],
                    "reference_first": one["reference_first"],
                    "write": {**write, "kernel_cpu_s_per_gb": kernel},
                    "added_power": added,
                }
            )
    return own


def _value(visit: Mapping[str, Any], where: tuple[str, str]) -> float | None:
    part, key = where
    if not visit[part]["admissible"]:
        return None
    value = visit[part]["latency_us"][key] if part == "paced" else visit[part][key]
    return None if value is None or value <= 0 else float(value)


def cause_of(visit: Mapping[str, Any], serials: Sequence[str], hazards: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns the run's events that disturbed this visit: faults in force on one of its drives, or on none in particular.

    A fault is in force from its event until one that says "released" of the same drive or of all."""
    begin, end = visit["write"]["begin_s"], visit["paced"]["end_s"]
    known = {serial for serial in serials if serial}
    in_force: dict[str, str] = {}
    suffered: list[str] = []
    for event in hazards:
        if event["at_s"] > end:
            break
        if event["at_s"] >= begin:
            suffered += [text for text in in_force.values() if text not in suffered]
        text = event["text"]
        named = next((serial for serial in known if serial in text), "")
        if "released" in text:
            in_force = {} if "every" in text else {key: was for key, was in in_force.items() if key != named}
        elif named or "drive " not in text:  # else it is a drive of another target
            in_force[named] = text
    suffered += [text for text in in_force.values() if text not in suffered]
    return "; ".join(suffered) or None


def _comparison(
    reference: Sequence[Mapping[str, Any]],
    own: Sequence[Mapping[str, Any]],
    name: str,
    quantity: tuple[str, str, tuple[str, str]],
) -> Document:
    """One quantity of one set against the reference of the same rounds."""
    label, unit, where = quantity
    beside = {(one["group"], one["round"]): one for one in reference}
    rounds, pairs = [], []
    for visit in own:
        other = beside[visit["group"], visit["round"]]
        values = (_value(other, where), _value(visit, where))
        ratio = values[1] / values[0] if values[0] is not None and values[1] is not None else None
        causes = [f"{which}: {one['cause']}" for which, one in ((name, visit), ("reference", other)) if one["cause"]]
        rounds.append(
            {
                "round": visit["round"],
                "reference_first": visit["reference_first"],
                "reference_value": values[0],
                "set_value": values[1],
                "ratio": ratio,
                "cause": "; ".join(causes) or None,
            }
        )
        if ratio is not None:
            pairs.append(Pair(visit["round"], visit["reference_first"], ratio))
    result = as_document(compare(pairs)) if pairs else None
    odd = set(result["outlier_rounds"]) if result else set()
    disturbed = {one["round"] for one in rounds if one["cause"]} | odd
    kept = [pair for pair in pairs if pair.round not in disturbed]
    for one in rounds:
        one["outlier"] = one["round"] in odd
        one["cause"] = one["cause"] or (UNKNOWN if one["outlier"] else None)
    return {
        "set": name,
        "quantity": label,
        "unit": unit,
        "rounds": rounds,
        "result": result,
        "undisturbed": as_document(compare(kept)) if kept and len(kept) < len(pairs) else None,
        "reason": None if pairs else _why_none(own, reference, where[0]),
    }


def _why_none(own: Sequence[Mapping[str, Any]], reference: Sequence[Mapping[str, Any]], part: str) -> str:
    said = [one[part]["reason"] for one in (*own, *reference) if one[part]["reason"]]
    return said[0] if said else "too few values for this percentile"


def _disturbed(comparisons: Sequence[Document], visits: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Document]:
    """Each set and round that stands out or that an event touched, once, with its cause and the quantities that show it."""
    found: dict[tuple[str, int], Document] = {}
    for one in comparisons:
        for turn in one["rounds"]:
            if turn["cause"] is None:
                continue
            entry = found.setdefault(
                (one["set"], turn["round"]),
                {"set": one["set"], "round": turn["round"], "cause": turn["cause"], "seen_in": []},
            )
            if entry["cause"] == UNKNOWN:
                entry["cause"] = turn["cause"]
            if turn["outlier"]:
                entry["seen_in"].append(one["quantity"])
    return list(found.values())


def _middle(values: Sequence[float | None]) -> Document:
    """n, geometric mean, median, least and largest of the values that count."""
    counted = [value for value in values if value is not None]
    if not counted:
        return {"n": 0, "mean": None, "median": None, "min": None, "max": None}
    return {
        "n": len(counted),
        "mean": geometric_mean(counted) if min(counted) > 0 else None,
        "median": median(counted),
        "min": min(counted),
        "max": max(counted),
    }


def _target(
    found: Document,
    name: str,
    visits: Sequence[Mapping[str, Any]],
    candidate: Candidate,
    published: Mapping[str, PublishedDevice],
) -> Document:
    """Everything that the table of the sets says of one target."""
    described = found["targets"][name]
    declared = candidate.aimed_at(name).target.declared
    layout, device = described["layout"] or {}, described["device"]
    sizes = [drive["size_bytes"] for drive in described["drives"]]
    rates = [_value(one, ("write", "throughput_bytes_per_s")) for one in visits]
    rate = _middle(rates)
    # A folder shares its drive with others, whose writes the drive counts too.
    written = amplification(visits) if described["layout"] else None
    units = rack_units(declared, candidate.document)
    watts = [_per(one["added_power"], one) for one in visits]
    return {
        "name": name,
        "role": "reference" if name == found["reference"] else "set",
        "raid_level": layout["raid"]["level"] if "raid" in layout else None,
        "chunk": layout.get("raid", {}).get("chunk"),
        "drives": [{"serial": drive["serial"], "model": drive["model"]} for drive in described["drives"]],
        "filesystem": described["filesystem"],
        "capacity_bytes": device["size_bytes"] if device else None,
        "throughput_bytes_per_s": {**rate, "values": rates},
        "latency_us": {
            key: _middle([_value(one, ("paced", key)) for one in visits])
            for key in ("p50", "p99", "p99_9", "p99_99", "max")
        },
        "lost_superchunks": sum(one["paced"]["lost_superchunks"] for one in visits),
        "masked": [
            {"round": one["round"], "part": part, "reason": one[part]["reason"]}
            for one in visits
            for part in ("write", "paced")
            if one[part]["reason"]
        ],
        "kernel_cpu_s_per_gb": _middle([_value(one, ("write", "kernel_cpu_s_per_gb")) for one in visits]),
        "process_cpu_s_per_gb": _middle(
            [
                one["write"]["process_cpu_s"] / (one["write"]["bytes_written"] / GB)
                for one in visits
                if one["write"]["bytes_written"]
            ]
        ),
        "md_threads_s_per_gb": _md_threads(visits),
        "device_bytes_per_byte": written,
        "added_power_w": _powers([one["added_power"] for one in visits]),
        "added_w_per_gb_per_s": _powers(watts),
        "rack_units": units.as_document(),
        "gb_per_s_per_u": rate["mean"] / GB / units.value if rate["mean"] and units.value else None,
        "endurance_bytes": endurance(declared, published, sizes, written).as_document(),
        "cost": cost(declared, len(sizes), device["size_bytes"] if device else None, rate["mean"]),
    }


def _per(power: Figure, visit: Mapping[str, Any]) -> Figure:
    """W per GB/s; the same number is J per GB, and a thousandth of J per TB."""
    rate = _value(visit, ("write", "throughput_bytes_per_s"))
    if power.value is None or rate is None:
        return Figure(None, power.basis if power.value is None else "the write is masked")
    return Figure(power.value / (rate / GB), power.basis)


def _powers(figures: Sequence[Figure]) -> Document:
    counted = [one.value for one in figures if one.value is not None]
    reason = next((one.basis for one in figures if one.value is None), None)
    return {
        "n": len(counted),
        "median": median(counted) if counted else None,
        "min": min(counted) if counted else None,
        "max": max(counted) if counted else None,
        "reason": reason,
    }


def _md_threads(visits: Sequence[Mapping[str, Any]]) -> float | None:
    """CPU s of the array's own kernel threads per GB taken; None for a single drive and for levels that have no thread."""
    writes = [one["write"] for one in visits if one["write"]["admissible"] and one["write"]["md_threads_cpu_s"]]
    volume = sum(one["bytes_written"] for one in writes) / GB
    return sum(sum(one["md_threads_cpu_s"].values()) for one in writes) / volume if volume else None


def _judged(
    found: Document, visits: Mapping[str, Sequence[Mapping[str, Any]]], targets: Sequence[Document]
) -> tuple[Document, dict[str, str]]:
    """The judged set's values, one per round, as requirements bound them; `reasons` for each metric that lacks one."""
    name = found["judged_set"]
    own = visits[name]
    target = next(one for one in targets if one["name"] == name)
    rates = [_value(one, ("write", "throughput_bytes_per_s")) for one in own]
    powers = [_per(one["added_power"], one) for one in own]
    units = target["rack_units"]["value"]
    judged: Document = {
        **_of_rounds(own, visits[found["reference"]]),
        "added_power_w": [one["added_power"].value for one in own],
        "added_power_w_per_gb_per_s": [one.value for one in powers],
        "added_energy_j_per_tb": [one.value * 1000 if one.value is not None else None for one in powers],
        "throughput_gb_per_s_per_u": [rate / GB / units if rate and units else None for rate in rates],
        "endurance_bytes": target["endurance_bytes"]["value"],
    }
    masked = [*target["masked"], *next(one["masked"] for one in targets if one["name"] == found["reference"])]
    stated = (
        f"round {masked[0]['round']}: {masked[0]['reason']}" if masked else "a percentile has too few values beyond it"
    )
    power = next((one.basis for one in powers if one.value is None), stated)
    whys = {
        "throughput": stated,
        "throughput_ratio": stated,
        "latency_p99_9": stated,
        "latency_p99_9_ratio": stated,
        "lost_superchunks": stated,
        "kernel_cpu_per_data": stated,
        "added_power": power,
        "power_per_throughput": power,
        "energy_per_data": power,
        "throughput_per_rack_unit": target["rack_units"].get("reason", stated),
        "endurance": target["endurance_bytes"].get("reason", stated),
    }
    keys = dict(zip(whys, (key for key in judged if key not in ("throughput_samples", "failed_writes")), strict=True))
    lacking = {
        metric
        for metric, key in keys.items()
        if judged[key] is None or (isinstance(judged[key], list) and None in judged[key])
    }
    return judged, {f"{METRICS}.{metric}": whys[metric] for metric in whys if metric in lacking}


def judged_of_rounds(found: Document) -> Document:
    """The judged set's values that follow from the rounds alone (results/raid_vs_3dxp.json), without power, size and wear."""
    mine, reference = (_visits_of(found, found[key], ()) for key in ("judged_set", "reference"))
    return _of_rounds(mine, reference)


def _of_rounds(own: Sequence[Mapping[str, Any]], reference: Sequence[Mapping[str, Any]]) -> Document:
    """One value per round, None where it is masked."""
    beside = {(one["group"], one["round"]): one for one in reference}

    def ratio(where: tuple[str, str]) -> list[float | None]:
        pairs = [(_value(one, where), _value(beside[one["group"], one["round"]], where)) for one in own]
        return [mine / other if mine is not None and other is not None else None for mine, other in pairs]

    return {
        "throughput_bytes_per_s": [_value(one, ("write", "throughput_bytes_per_s")) for one in own],
        "throughput_samples": [one["write"]["throughput_bytes_per_s_samples"] for one in own],
        "throughput_ratio": ratio(("write", "throughput_bytes_per_s")),
        "latency_us_p99_9": [_value(one, ("paced", "p99_9")) for one in own],
        "latency_p99_9_ratio": ratio(("paced", "p99_9")),
        "lost_superchunks": [None if one["paced"]["failed"] else one["paced"]["lost_superchunks"] for one in own],
        "failed_writes": [one["write"]["failed"] + one["paced"]["failed"] for one in own],
        "kernel_cpu_s_per_gb": [_value(one, ("write", "kernel_cpu_s_per_gb")) for one in own],
    }


def _published(devices: Mapping[str, PublishedDevice]) -> list[Document]:
    """Sequential write rates that others published, to draw beside what was measured."""
    return [
        {
            "id": device.id,
            "model": device.model,
            "kind": device.kind,
            "bytes_per_s": figure.in_base_units,
            "qualifier": figure.qualifier,
            "basis": figure.basis,
            "conditions": figure.conditions,
            "source": figure.source,
        }
        for device, figure in of_metric(devices, "sequential_write_throughput")
    ]
