"""The paced record: its result's type, and what covers its plan."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.documents.results import Conditioning
from daq_bench.bench_model.documents.struct import Document, Struct
from daq_bench.bench_model.documents.tools.daqwriter import Verify, is_of_drive
from daq_bench.bench_model.documents.tools.minidaq import Minidaq
from daq_bench.bench_model.workloads import preconditioning
from daq_bench.bench_model.workloads.model import Asked, Count, Model, stated
from daq_bench.bench_model.workloads.plan import (
    FAILS,
    INVALIDATES,
    SOUND,
    Plan,
    Problem,
    on_kind,
    repetitions,
    rows,
    tool,
)

RECORD_PARAMETERS = {  # of the scenario, and their names in daqwriter's document
    "links": "links",
    "superchunk_bytes": "superchunk_bytes",
    "superchunk_rate_hz": "superchunk_rate_hz",
    "ring_size": "ring_bytes_per_link",
    "block_size": "block_bytes",
    "io_depth": "io_depth",
    "checksum": "checksum",
}


class Repetition(Struct, frozen=True):
    condition: str | None
    minidaq: Minidaq
    verify: Verify
    damaged_superchunks: int
    verified_fraction: float | None

    def named(self, number: int) -> str:
        """`2`, or `2, preconditioned`: how tables and figures call it."""
        return f"{number}, {self.condition}" if self.condition else str(number)


class Stopping(Struct, frozen=True):
    """Describes when a workload that may go on was told that it had enough."""

    repetitions_min: int
    repetitions_max: int
    confidence: float
    looks: list[dict[str, Any]]


class SnbRecord(Struct, frozen=True):
    """results/snb_record.json."""

    schema_version: Literal[1]
    repetitions: list[Repetition]
    conditioning: list[Conditioning]
    limits: list[str]
    stopping: Stopping


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
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
    yield from preconditioning.coverage(plan, document["conditioning"], found)


def target_failures(document: Document) -> Iterator[str]:
    """Tells where the target answered a request with an errno by which a failed drive is known (docs/adr/0002)."""
    for number, one in enumerate(document["repetitions"], start=1):
        for part, where in (("minidaq", "record"), ("verify", "the read-back of record")):
            if is_of_drive(one[part]):
                yield f"The target failed in {where} {number}: {one[part]['error']}"


def _ended(repetition: Document, part: str, name: str, sound: str) -> Iterator[Problem]:
    """A failure with another errno than a failed drive's is not the target's. Older writers told none."""
    said = repetition[part]
    of_drive = any(is_of_drive(one) for one in (said, repetition["minidaq"]))
    untold = "errno" not in said or (said["errno"] is None and part == "minidaq")
    if said["status"] == "failed" and not (of_drive or untold):
        yield f"{name} failed, and not by a drive: {said['error']}", INVALIDATES
    elif said["status"] != "failed" and said.get("errno") is not None:
        yield f"{name} contradicts itself: it ended as {said['status']!r} and was answered {said['errno']}", INVALIDATES
    else:
        yield from tool(name, said["status"], (sound,))


def _record(name: str, repetition: Document) -> Iterator[Problem]:
    """One record: its tools' words, and counts that add up."""
    minidaq, verify = repetition["minidaq"], repetition["verify"]
    yield from _ended(repetition, "minidaq", f"the writer of {name}", SOUND[0])
    yield from _ended(repetition, "verify", f"the read-back of {name}", SOUND[1])
    if verify["trailer_status"] != "complete" and verify["status"] != "failed":
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
        == written["stored"]
        or verify["status"] == "failed",
        # Without a trailer it cannot speak of any; the record then fails by the trailer that is missing.
        "the read-back speaks of other losses": verify["trailer_status"] is None
        or verify["lost_at_source"] == written["lost"],
        "the trailer is complete and is not": verify["complete_trailer"] is (verify["trailer_status"] == "complete"),
        "damage is not the sum of its kinds": repetition["damaged_superchunks"] == damaged,
        "the verified share is not what was read back over what was offered": repetition["verified_fraction"] == share,
    }
    for text, holds in said.items():
        if not holds and minidaq["status"] == "complete":
            yield f"{name} contradicts itself: {text}", INVALIDATES


def _asked_of_writer(name: str, plan: Plan, told: Document) -> Iterator[Problem]:
    """The writer was told what the scenario asks for, paced, and wrote to a target."""
    asked = {RECORD_PARAMETERS[key]: plan.parameters[key] for key in RECORD_PARAMETERS}
    asked |= {"scale": plan.scale, "duration_s": plan.duration_s, "mode": "continuous", "paced": True}
    links, size, rate = (plan.parameters[key] for key in ("links", "superchunk_bytes", "superchunk_rate_hz"))
    offered = links * size * float(rate) * plan.scale
    if told["offered_bytes_per_s"] is None or not math.isclose(told["offered_bytes_per_s"], offered, rel_tol=1e-6):
        yield (
            f"the writer of {name} was to offer {told['offered_bytes_per_s']} B/s instead of {in_digits(offered, 9)} B/s",
            INVALIDATES,
        )
    for key, value in asked.items():
        if told[key] != value:
            yield f"the writer of {name} was told {key} {told[key]!r} instead of {value!r}", INVALIDATES
    yield from on_kind(f"the writer of {name}", told["target_kind"], plan)


def _superchunks(asked: Asked, _: Document) -> float:
    return asked.rate() * asked.scale * asked.duration_s / float(asked.own["superchunk_bytes"])


MODEL = Model(
    coverage,
    (
        Count("repetitions[].minidaq.parameters.links", stated("links")),
        Count("repetitions[].minidaq.parameters.superchunk_bytes", stated("superchunk_bytes")),
        Count("repetitions[].minidaq.parameters.superchunk_rate_hz", stated("superchunk_rate_hz")),
        Count("repetitions[].minidaq.parameters.scale", lambda asked, _: asked.scale),
        Count("repetitions[].minidaq.superchunks.intended", _superchunks),
        Count("repetitions[].minidaq.superchunks.offered", _superchunks),
        Count("repetitions[].minidaq.time.record_s", lambda asked, _: asked.duration_s),
    ),
    result=SnbRecord,
)
