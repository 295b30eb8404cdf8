"""The evidence that covers the plan of the endurance: its steps, its drives, and what they were charged."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.workloads.endurance import projection
from daq_bench.bench_model.workloads.endurance.document import TOLD, Endurance, EnduranceProjection
from daq_bench.bench_model.workloads.model import Beside, Count, Model, stated
from daq_bench.bench_model.workloads.plan import (
    DEVICE_SHARE_MIN,
    INVALIDATES,
    Plan,
    Problem,
    accounted,
    column,
    counting,
    follows,
    rows,
)


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    """The steps in their order until the budget ended them, and the same drives at the start, at the end and after each step."""
    steps, drives = document["steps"], column(document["drives"], "id")
    if not drives or len(set(drives)) < len(drives):
        yield "no drive was watched, or one of them twice", INVALIDATES
    yield from follows("the experiment's drives", sorted(document["experiment"]["serials"]), sorted(drives))
    for step in steps:
        written = sum(job["written_bytes"] for job in step["jobs"])
        yield from follows(f"step {step['number']}: what its jobs wrote", step["written_bytes"], written)
    if document["ended"] is None:
        yield "the experiment did not come to its end"
    first = steps[0]["number"] if steps else 0  # earlier runs on the same drives have numbers of their own
    yield from rows("step", range(first, first + len(steps)), column(steps, "number"))
    if not steps or steps[0]["kind"] != "fill":
        yield "the step that fills the file is missing"
    if not any(step["kind"] == "mix" for step in steps):
        yield "not one step of the mix was written"
    together = _counted_together(document)
    yield from counting("step", ((str(step["number"]), step) for step in steps if step["number"] not in together))
    for name, health in (
        ("opening", document["opening"]["drives"]),
        ("start", document["at_start"]),
        ("end", document["at_end"]),
    ):
        yield from rows(f"at the {name}, drive", drives, column(health, "id"))
    for step in steps:
        if step["admissible"] and step["counted_bytes"] is None:
            yield f"step {step['number']} counts, and the drives' own count of its bytes is missing"
        yield from rows(f"after step {step['number']}, drive", drives, column(step["health"], "id"))
    if steps:
        yield from follows("the drives' state at the end", document["at_end"], steps[-1]["health"])
    yield from _readings(document)
    yield from accounted(document["ledger"])
    entries = {entry["number"]: entry for entry in document["ledger"]}
    for step in steps:
        same = ("kind", "asked_bytes", "counted_bytes")
        entry = entries.get(step["number"], dict.fromkeys(same))
        what = f"step {step['number']} and its entry of the account"
        yield from follows(what, {key: step[key] for key in same}, {key: entry[key] for key in same})
    spent = sum(
        one["reserved_bytes"] if one["charged_bytes"] is None else one["charged_bytes"] for one in document["ledger"]
    )
    yield from follows("what was spent", document["spent_bytes"], spent)
    for entry in document["ledger"]:
        if entry["charged_by"] == "drives":
            charged, counted = entry["charged_bytes"], entry["counted_bytes"]
            # An interrupted step is charged its reservation at most.
            right = counted if counted is None or charged == counted else min(counted, entry["reserved_bytes"])
            yield from follows(f"entry {entry['number']} of the account: what was charged", charged, right)
    overrun = max(0, spent - document["write_budget_bytes"])
    yield from follows("the overrun", document["overrun_bytes"], overrun)


COUNTS = (
    "written_bytes",
    "media_errors",
    "power_cycles",
    "unsafe_shutdowns",
)  # percentage_used is the drive's own estimate
MISSING_MAX = 1  # [P] readings in a row: the drives are seen once in two steps at least


def _read(document: Document, drive: str, key: str) -> list[tuple[str, int | None]]:
    """Each reading of the run and the value of a field; None where the drive did not tell, or the kernel counted in its place."""
    start = next((one for one in document["at_start"] if one["id"] == drive), None)
    readings = [("at the start", document["at_start"])]
    readings += [(f"after step {step['number']}", step["health"]) for step in document["steps"]]
    found = list[tuple[str, int | None]]()
    for when, health in readings:
        one = next((one for one in health if one["id"] == drive), None)
        same = one is not None and start is not None and one["counter"] == start["counter"]
        found.append((when, one[key] if same and one else None))
    return found


def _readings(document: Document) -> Iterator[Problem]:
    """Only the first reading and the last decide; those between show that no count fell back. So one of them may be missing, but not two
    in a row, and not the one between the fill and the mix."""
    opening, counts = document["opening"], document["opening"]["epoch"] == document["epoch"]
    for drive in column(document["drives"], "id"):
        first = next((one for one in opening["drives"] if one["id"] == drive), None)
        told = {one["counter"] for one in document["at_start"] if one["id"] == drive}
        for key in ("written_bytes", *TOLD):
            found = _read(document, drive, key)
            opened = [("at the opening", first[key] if first["counter"] in told else None)] if counts and first else []
            known = [(when, value) for when, value in found if value is not None]
            if not known and all(value is None for _, value in opened):
                continue  # a drive that never tells it: its requirement has no value
            for when, value in (*opened, *found[:2], found[-1]):
                if value is None:
                    yield f"{key} of drive {drive} is missing {when}"
            missing = [value is None for _, value in found]
            for place in range(len(found) - MISSING_MAX):
                if all(missing[place : place + MISSING_MAX + 1]):
                    when = f"from {found[place][0]} to {found[place + MISSING_MAX][0]}"
                    yield f"{key} of drive {drive} is missing {when}: nobody knows what it did meanwhile"
            compared = known if key in COUNTS else [*known[:1], *known[-1:]] if key == "percentage_used" else []
            for (when, value), (later, other) in pairwise(compared):
                if other < value:
                    yield f"{key} of drive {drive} went from {value} {when} to {other} {later}", INVALIDATES


def _counted_together(document: Document) -> set[int]:
    """Numbers of steps that a missing reading divides, and whose bytes the readings before and after confirm together."""
    steps, drives = document["steps"], column(document["drives"], "id")
    written = [[value for _, value in _read(document, drive, "written_bytes")] for drive in drives]
    found = set[int]()
    for place in range(1, len(steps)):
        before, between, after = ([one[at] for one in written] for at in (place - 1, place, place + 1))
        told = [
            (first, last) for first, last in zip(before, after, strict=True) if first is not None and last is not None
        ]
        if None not in between or len(told) < len(drives):
            continue
        both = steps[place - 1 : place + 1]
        asked, counted = sum(one["asked_bytes"] for one in both), sum(last - first for first, last in told)
        whole = all(one["written_bytes"] >= one["asked_bytes"] and one["counted_bytes"] is None for one in both)
        if (
            whole
            and counted >= DEVICE_SHARE_MIN * asked
            and all(one["admissible"] is False and one["reason"] for one in both)
        ):
            found |= {one["number"] for one in both}
    return found


MODEL = Model(
    coverage,
    (
        Count("pattern.file_bytes", stated("file_size")),
        Count("pattern.step_bytes", stated("step_size")),
        Count("write_budget_bytes", stated("write_budget")),
    ),
    (Beside(projection.NAME, projection.of_bundle, kind=EnduranceProjection),),
    result=Endurance,
)
