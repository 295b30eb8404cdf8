"""The evidence that covers the plan of the endurance: its steps, its drives, and what they were charged."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.bundle.evidence import Document
from daq_bench.bench_model.workloads.endurance import projection
from daq_bench.bench_model.workloads.endurance.document import Endurance, EnduranceProjection
from daq_bench.bench_model.workloads.model import Beside, Count, Model, stated
from daq_bench.bench_model.workloads.plan import INVALIDATES, Plan, Problem, accounted, column, counting, follows, rows


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
    yield from counting("step", ((str(step["number"]), step) for step in steps))
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
    yield from _unread(document)
    before, after = ({one["id"]: one for one in document[key]} for key in ("at_start", "at_end"))
    for drive in before.keys() & after.keys():
        for key in ("written_bytes", "media_errors", "percentage_used", "power_cycles", "unsafe_shutdowns"):
            first, last = before[drive][key], after[drive][key]
            if (first is None) != (last is None) or (first is not None and last < first):
                yield f"{key} of drive {drive} went from {first} to {last}", INVALIDATES
    yield from accounted(document["ledger"])
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


TOLD = (
    "media_errors",
    "percentage_used",
    "power_cycles",
    "unsafe_shutdowns",
    "available_spare",
    "available_spare_threshold",
)


def _unread(document: Document) -> Iterator[Problem]:
    """A drive told the same of its health each time: where its log could not be read once, nobody knows what it would have said."""
    opening, start = document["opening"], {one["id"]: one for one in document["at_start"]}
    readings = [(f"after step {step['number']}", step["health"]) for step in document["steps"]]
    if opening["epoch"] == document["epoch"]:  # else nothing is counted from it
        readings.insert(0, ("at the opening", opening["drives"]))
    for when, health in readings:
        for one in health:
            first = start.get(one["id"], one)
            for key in TOLD:
                if (first[key] is None) is not (one[key] is None):
                    yield f"{key} of drive {one['id']} is {first[key]} at the start and {one[key]} {when}"


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
