"""The evidence that covers the plan of the comparison of sets of drives with a reference drive."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.workloads.model import Beside, Count, Model, stated
from daq_bench.bench_model.workloads.plan import (
    DEVICE_SHARE_MIN,
    INVALIDATES,
    Plan,
    Problem,
    column,
    counting,
    follows,
    rows,
)
from daq_bench.bench_model.workloads.raid_vs_3dxp import analysis
from daq_bench.bench_model.workloads.raid_vs_3dxp.document import RaidComparison, RaidVs3Dxp

NEAR_PACE = 0.03  # [P] of the pace: a short record begins and ends with an arrival
NEAR_RATE = 1e-3  # a window is stated by the clock's time of day, which has few digits left for a short write


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    """Each set is visited once in each round, the reference beside it; each visit wrote what was asked, and counts."""
    own, rounds = plan.parameters, document["rounds"]
    yield from follows("the sets", document["sets"], own["sets"])
    asked = {key: own[key] for key in ("write_size", "block_size", "threads", "io_depth")}
    yield from follows("the write", document["write"], asked)
    yield from follows(
        "the paced record", document["paced"], {"offered_bytes_per_s": _pace(own), "seconds": own["paced"]["seconds"]}
    )
    yield from rows("target", [own["reference"], *own["sets"]], list(document["targets"]))
    visited = [(visit["target"], one["round"]) for one in rounds for visit in one["visits"]]
    of_sets = [key for key in visited if key[0] != own["reference"]]
    planned = [(name, turn) for name in own["sets"] for turn in range(1, own["rounds"] + 1)]
    yield from rows("visit of", planned, of_sets, _visit_name)
    for one in rounds:
        yield from _round(own, document["targets"], one)
    yield from _of_targets(document)


def _visit_name(key: tuple[str, int]) -> str:
    return f"{key[0]} in round {key[1]}"


def _pace(own: Document) -> float:
    paced = own["paced"]
    each = paced["superchunk_bytes"] * float(paced["superchunk_rate_hz"])
    return float(paced["links"] * each * paced["share"])


def _round(own: Document, targets: Document, one: Document) -> Iterator[Problem]:
    name, visits = f"group {one['group']}, round {one['round']}", one["visits"]
    if column(visits, "target").count(own["reference"]) != 1:
        yield f"{name}: the reference was not visited once", INVALIDATES
    if one["reference_first"] is not (one["round"] % 2 == 1):
        yield f"{name}: the order does not alternate", INVALIDATES
    for visit in visits:
        where = f"{name}, {visit['target']}:"
        yield from counting(where, ((part, visit[part]) for part in ("write", "paced")))
        yield from _visit(own, where, visit["write"], visit["paced"])
        drives = column(targets[visit["target"]]["drives"], "name")
        yield from _on_drives(where, drives, visit["write"])


def _on_drives(where: str, drives: list[str], write: Document) -> Iterator[Problem]:
    """The drives' own counters confirm what was written, and the rate has samples."""
    counted = write["device_bytes_written"]
    yield from rows(f"{where} the counter of", drives, list(counted))
    if write["admissible"] and counted and sum(counted.values()) < DEVICE_SHARE_MIN * write["bytes_written"]:
        yield (
            f"{where} the drives counted {sum(counted.values())} B of {write['bytes_written']} B, and it counts",
            INVALIDATES,
        )
    if write["admissible"] and not write["throughput_bytes_per_s_samples"]:
        yield f"{where} the write has no samples"


def _visit(own: Document, where: str, write: Document, paced: Document) -> Iterator[Problem]:
    """A visit that counts wrote all of it at the rate that it states, on the drives themselves, and lost nothing."""
    elapsed = write["end_s"] - write["begin_s"]
    stated = write["throughput_bytes_per_s"] * elapsed
    lasted = paced["end_s"] - paced["begin_s"]
    stored = paced["offered_superchunks"] - paced["lost_superchunks"]
    given = [
        name for name in analysis.BELOW if name != "p99_99" and analysis.is_given(name, stored)
    ]  # that one is only drawn
    said = {
        "the write is not of the size that was asked for": not write["admissible"]
        or write["bytes_written"] == own["write_size"],
        "the rate is not that of the bytes and their time": not write["admissible"]
        or math.isclose(stated, write["bytes_written"], rel_tol=NEAR_RATE),
        "the paced record had another rate": not paced["admissible"]
        or math.isclose(paced["offered_bytes_per_s"], _pace(own), rel_tol=NEAR_PACE),
        "the paced record ended early": not paced["admissible"] or lasted >= own["paced"]["seconds"] * (1 - NEAR_RATE),
        "superchunks were lost and the record counts": not (paced["lost_superchunks"] and paced["admissible"]),
        "its latency lacks a percentile that its superchunks give": not paced["admissible"]
        or None not in [paced["latency_us"][name] for name in given],
        "it offered nothing": not paced["admissible"] or paced["offered_superchunks"] > 0,
        "it failed and counts": not any(part["failed"] and part["admissible"] for part in (write, paced)),
    }
    yield from ((f"{where} {text}", INVALIDATES) for text, holds in said.items() if not holds)


def _of_targets(document: Document) -> Iterator[Problem]:
    """Checks that the workload repeats among its limits what it says of its targets."""
    for name, one in document["targets"].items():
        if one["kind"] == "scratch-file" and not any(
            f" {name} is a scratch file" in text for text in document["limits"]
        ):
            yield f"{name} is a scratch file, and the limits do not say so", INVALIDATES
        serials = column(one["drives"], "serial")
        if one["kind"] == "filesystem" and (
            not serials
            or len(set(serials)) < len(serials)
            or not all(text and isinstance(text, str) for text in serials)
        ):
            yield f"which drives carry {name} is not known: serials {serials}"
        for text in one["tuning_wrong"]:
            if f"Tuning of {name}: {text}" not in document["invalid"]:
                yield f"tuning of {name}: {text}", INVALIDATES


def _comparison(plan: Plan, document: Document, found: Document) -> Iterator[Problem]:
    """Checks that the judged values follow from the rounds; power, size and wear rest on telemetry and inventory."""
    again = analysis.judged_of_rounds(document)
    yield from follows("what is judged", {key: found["judged"][key] for key in again}, again)
    for key in ("reference", "judged_set"):
        yield from follows(key, found[key], plan.parameters[key])


def _paced(paced: Mapping[str, Any]) -> float:
    return float(paced["links"] * paced["superchunk_rate_hz"] * paced["share"] * paced["seconds"])


MODEL = Model(
    coverage,
    (
        Count("write.write_size", stated("write_size")),
        Count("paced.seconds", stated("paced", "seconds")),
        Count("paced.offered_bytes_per_s", lambda asked, _: asked.rate("paced") * asked.own["paced"]["share"]),
        Count("rounds[].visits[].write.bytes_written", stated("write_size")),
        Count("rounds[].visits[].paced.offered_superchunks", lambda asked, _: _paced(asked.own["paced"])),
    ),
    (Beside("results/raid_comparison.json", analysis.of_bundle, _comparison, RaidComparison),),
    times=lambda plan, _: int(plan.parameters["rounds"]),
    times_field=lambda _: "rounds",
    result=RaidVs3Dxp,
)
