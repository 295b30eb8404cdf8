"""Tells how the plan is held against a result: the plan of one workload, and the counts that every workload takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from daq_bench.bench_model.base.differing import differences, shown
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document, Kind, read
from daq_bench.bench_model.profiles.sizes import SIZE_KEYS
from daq_bench.candidate_kit.sizes import parse_size

# EMPTY limits as LIMITS does, and leaves so little that the run is no rehearsal either: nothing was missed, since nothing was measured.
FAILS, LIMITS, INVALIDATES, EMPTY = "fails", "limits", "invalidates", "empty"
DEVICE_SHARE_MIN = 0.95  # of the bytes that a tool says it wrote, by the drives' own counters
COUNTED = (  # by the device, by the tool
    ("device_bytes_written", "bytes_written"),
    ("device_bytes_written", "written_bytes"),
)
# A tool's own word for how it ended. A result with no word, or another one, proves nothing.
SOUND = ("complete", "intact")
OF_STATUS = {
    "failed": (FAILS, "its target refused a request"),
    "damaged": (FAILS, "the data are damaged"),
    "incomplete": (FAILS, "the data are not all there"),
    "interrupted": (INVALIDATES, "somebody interrupted it"),
}
RAW = "raw-device"  # a kind of target
SAMPLES_SHARE_MIN = 0.9  # [P] of the windows that a point's time holds: a tool's first or last one may be cut short


@dataclass(frozen=True)
class Gap:
    """One thing that is wrong with a result: `effect` is FAILS, LIMITS, EMPTY or INVALIDATES."""

    text: str
    effect: str
    file: str


@dataclass(frozen=True)
class Plan:
    """One workload as planned. `parameters`: its own, sizes in bytes."""

    workload: str
    parameters: Document
    repetitions: int
    repetitions_max: int
    scale: float
    duration_s: float | None
    targets: tuple[str, ...]
    seed: int = 0
    capacity_bytes: int | None = None  # of the drive or set beneath the run's target
    target_kind: str = ""

    @property
    def file(self) -> str:
        return f"results/{self.workload}.json"


Problem = str | tuple[str, str]  # a hole's text, or (text, effect)
Coverage = Callable[[Plan, Document], Iterable[Problem]]
Held = Callable[[Plan, Document, Document], Iterable[Problem]]  # (plan, the workload's result, the document beside it)


def plan_of(run: Run, workload: str) -> Plan:
    """The plan of one workload of a run."""
    scenario, device = run.scenario, run.target.device
    return Plan(
        workload,
        in_bytes(scenario.parameters["workloads"][workload]),
        scenario.repetitions,
        max(scenario.repetitions, scenario.repetitions_max),
        scenario.scale,
        scenario.parameters.get("duration_s"),
        tuple(target.name for target in run.further_targets),
        scenario.seed,
        device.size_bytes if device else None,
        run.target.kind,
    )


def typed(document: Document, kind: type[Kind], file: str) -> Kind:
    """The result as its type. Raises ValueError, which coverage takes for a plan that cannot be held against its result."""
    try:
        return read(document, kind, file)
    except BenchError as error:
        raise ValueError(str(error)) from None


def in_bytes(node: Any) -> Any:
    """A scenario's parameters with each size in bytes, as the workload had them."""
    if isinstance(node, list):
        return [in_bytes(one) for one in node]
    if not isinstance(node, dict):
        return node
    return {key: _size(value) if key.endswith(SIZE_KEYS) else in_bytes(value) for key, value in node.items()}


def _size(value: Any) -> Any:
    return [parse_size(one) for one in value] if isinstance(value, list) else parse_size(value)


STATED_AS = {  # a parameter's name in results
    "file_size": "file_bytes",
    "block_size": "block_bytes",
    "capacity_size": "capacity_bytes",
    "client_value_size": "client_value_bytes",
    "cliff_free_size": "cliff_free_bytes",
    "need_size": "full_need_bytes_per_s",
}
CHOSEN_BY_THE_BENCH = "auto"  # by the hardware that is there: a result names its choice


def as_asked(plan: Plan, document: Document) -> Iterator[Problem]:
    """A result that repeats a parameter repeats it as asked for."""
    for name, asked in plan.parameters.items():
        said = document.get(STATED_AS.get(name, name), asked)
        scalar = all(isinstance(one, int | float | str) for one in (asked, said)) and asked != CHOSEN_BY_THE_BENCH
        if scalar and said not in (asked, _scaled(name, asked, plan)):
            yield f"{name} is {said!r} in the result and {asked!r} in the scenario", INVALIDATES


def _scaled(name: str, asked: Any, plan: Plan) -> Any:
    """A rate may stand in a result at the run's scale."""
    return float(asked) * plan.scale if name == "superchunk_rate_hz" else asked


def tool(name: str, status: object, sound: Sequence[str] = SOUND) -> Iterator[Problem]:
    """Yields the problem that a tool's own status states about its result."""
    if status in sound:
        return
    effect, why = OF_STATUS.get(str(status), (INVALIDATES, "that is no word for a result that counts"))
    yield f"{name} ended as {status!r}: {why}", effect


def rows(
    what: str, planned: Sequence[Any], found: Sequence[Any], label: Callable[[Any], str] = str
) -> Iterator[Problem]:
    """Planned rows that are missing, and found ones that stand twice, that nobody planned, or, of numbers, out of their order."""
    counted = Counter(found)
    if isinstance(planned, range) and any(after < before for before, after in pairwise(found)):
        yield f"the rows of {what} do not stand in their order", INVALIDATES
    for key in dict.fromkeys(planned):
        if not counted[key]:
            yield f"{what} {label(key)} was planned and is missing"
    for key, count in counted.items():
        if key not in planned:
            yield f"{what} {label(key)} was not planned", INVALIDATES
        elif count > 1:
            yield f"{what} {label(key)} stands there {count} times", INVALIDATES


def agreeing(what: str, entries: Iterable[tuple[str, Document]]) -> Iterator[Problem]:
    """A row's own `admissible` and `reason` say the same."""
    for name, row in entries:
        reason, admissible = row["reason"], row.get("admissible", row["reason"] is None)
        if admissible is not (reason is None):
            text = f"{what} {name} contradicts itself: admissible is {admissible!r} and the reason {reason!r}"
            yield text, INVALIDATES


def counting(what: str, entries: Iterable[tuple[str, Document]]) -> Iterator[Problem]:
    """Rows that were measured and do not count."""
    found = list(entries)
    yield from agreeing(what, found)
    yield from confirmed(what, found)
    refused = [(name, row) for name, row in found if row["reason"] is not None and row.get("admissible") is not True]
    for name, row in refused:
        yield f"{what} {name} does not count: {row['reason']}"
    if len(found) > 1 and len(refused) == len(found):
        yield f"not one {what} counts: {len(found)} of {len(found)} were refused", EMPTY


def sampled(what: str, sample_s: float, entries: Iterable[tuple[str, Document]]) -> Iterator[Problem]:
    """Each row that counts has a sample of each window of its time."""
    for name, row in entries:
        if row["admissible"] and (
            why := too_few_samples(row["throughput_bytes_per_s_samples"], row["runtime_s"], sample_s)
        ):
            yield f"{what} {name} {why}"


def too_few_samples(samples: Sequence[float], runtime_s: float, sample_s: float) -> str | None:
    """Why a point of `runtime_s` has too few samples of `sample_s` each; None when it has enough."""
    planned = runtime_s / sample_s
    if len(samples) >= SAMPLES_SHARE_MIN * planned - 1:
        return None
    longer = "give it more seconds (seconds_per_point, of a repetition seconds_per_repetition)"
    return f"has {len(samples)} of {planned:.0f} samples in {runtime_s:.2f} s: {longer}"


def confirmed(what: str, entries: Iterable[tuple[str, Document]]) -> Iterator[Problem]:
    """A row that counts wrote what it says, by the drives' own counters where there are any."""
    for name, row in entries:
        for counter, own in COUNTED:
            counted, said = row.get(counter), row.get(own)
            if not isinstance(counted, int) or not isinstance(said, int) or row["reason"] is not None:
                continue
            if counted < DEVICE_SHARE_MIN * said:
                yield f"{what} {name} counts, although the device counted {counted} B of {said} B", INVALIDATES


def with_counter(what: str, plan: Plan, entries: Iterable[tuple[str, Document]]) -> Iterator[Problem]:
    """Where a device is beneath, its own counter stands beside each row that counts."""
    for name, row in entries:
        if plan.capacity_bytes is not None and row["reason"] is None and row["device_bytes_written"] is None:
            yield f"{what} {name}: no counter of the device confirms its bytes"


def by_the_drives(entry: Document) -> int | None:
    """B that an account's drives took between two readings of their own; None where these do not compare."""
    before, after = entry["before"], entry["after"]
    if not before or not after or before["epoch"] != after["epoch"]:
        return None
    first, last = before["written_bytes"], after["written_bytes"]
    grown = [last[drive] - count for drive, count in first.items()] if first.keys() == last.keys() else []
    return sum(grown) if grown and min(grown) >= 0 else None


def accounted(ledger: Sequence[Document]) -> Iterator[Problem]:
    """The entries of an account stand in their order, and the drives' count of each follows from its two readings, as does `charged_by`."""
    numbers = column(ledger, "number")
    yield from follows("the order of the account", numbers, sorted(numbers))
    for one in ledger:
        what, counted, charged = f"entry {one['number']} of the account", one["counted_bytes"], one["charged_bytes"]
        yield from follows(f"{what}: the drives' count", counted, by_the_drives(one))
        if charged is not None:
            by = "reservation" if counted is None else "tool" if charged > counted else "drives"
            yield from follows(f"{what}: what it was charged by", one["charged_by"], by)


def on_kind(what: str, said: str, plan: Plan) -> Iterator[Problem]:
    """A tool wrote to a raw drive where the run's target is one, and to a file elsewhere."""
    yield from follows(f"{what}: the kind of target", said, RAW if plan.target_kind == RAW else "scratch-file")


def follows(what: str, said: Any, made: Any) -> Iterator[Problem]:
    """A figure that was made from rows is what those rows give again; the first place where a document is not is named."""
    for at, one, other in islice(differences(said, made), 1):
        where = f"{what}: {at}" if at else what
        yield (
            f"{where} does not follow from its rows: {shown(one)} stands there, and they give {shown(other)}",
            INVALIDATES,
        )


def repetitions(what: str, plan: Plan, found: int, stages: int = 1) -> Iterator[Problem]:
    """Between the least and the most repetitions that were planned, in each of `stages` conditions together."""
    least, most = plan.repetitions * stages, plan.repetitions_max * stages
    if found < least:
        yield f"{found} of {least} planned {what} are there"
    if found > most:
        yield f"{found} {what} are there and at most {most} were planned", INVALIDATES


def column(found: Iterable[Document], key: str) -> list[Any]:
    return [one[key] for one in found]
