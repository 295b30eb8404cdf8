"""Wrong evidence, made from good evidence by rules that know no workload: a new scenario's mutants exist without anyone writing them.

A mutant differs from the good run in one place. Its class names the change of that place. `NOTHING_RESTS_ON` lists the places on which
no verdict rests; a change anywhere else that still passes is a wrong PASS."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import msgspec
from msgspec.inspect import LiteralType

from daq_bench.bench_model.bundle.evidence import FILES, Evidence
from daq_bench.bench_model.documents.derived import DriveTemperature
from daq_bench.bench_model.documents.results import Reasoned
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.evidence.measured import found_at, found_in, with_holes
from daq_bench.bench_model.evidence.schemas import TYPES
from daq_bench.bench_model.profiles.metrics import ResultMetric
from daq_bench.bench_model.profiles.requirements import Requirement, RequirementProfile

Path = tuple[str | int, ...]
Change = Callable[[Any], Any]
DROPPED = object()


@dataclass(frozen=True)
class Mutant:
    """`place`: file and path in it, with `[]` for any row. `apply` changes a copy of the file's document."""

    kind: str
    file: str
    place: str
    apply: Callable[[Document], None]


# Free text, names, and values that only a report shows: a verdict does not read them. Indices are `[]`; `*` stands for any text.
NOTHING_RESTS_ON: tuple[str, ...] = (
    "*:schema_version",
    # Titles, names and sources, which a report prints; the metrics that a workload may yield, which the requirements ask for by name.
    "run.json:scenario.parameters.id",
    "run.json:scenario.parameters.title",
    "run.json:scenario.parameters.source",
    "run.json:scenario.parameters.requirement",
    "run.json:scenario.parameters.repetitions*",  # stands beside its parameters, too, and is read there
    "run.json:scenario.parameters.workloads.*.yields*",
    "run.json:scenario.parameters.scale",  # 1 where it is left out; held against scenario.scale where it is not
    "run.json:target.filesystem",  # shown; the kind of the target decides
    "run.json:target.drives[].model",  # an emulated drive names itself; `candidate.virtual` and identity's checks do, too
    "telemetry/summary.json:collectors[].duration_s_mean",  # without it a collector's pace is its period, which is stricter
    "run.json:target.name",
    "run.json:target.device.model",  # the same of an array, which has none
    "run.json:target.device.serial",
    "run.json:target.device.members*",
    "run.json:target.device.raid_level",
    "run.json:target.drives[].size_bytes",  # the capacity is that of target.device
    # A target that could not be emptied is no easier to write to; without `used_bytes` less of it counts as full (ADR 36).
    "results/snb_record.json:conditioning[].purge.done",
    "results/snb_record.json:conditioning[].used_bytes",
    "results/*:*conditioning[].remarks*",
    "results/*:*conditioning[].purge.text",
    # What an older daqwriter did not tell of a record; what the judged fields beside them say already.
    "results/snb_record.json:repetitions[].minidaq.trigger",
    "results/snb_record.json:repetitions[].minidaq.transient_buffer.busy_*",
    "results/snb_record.json:repetitions[].minidaq.superchunks.emitted",
    "results/snb_record.json:repetitions[].minidaq.parameters.data_path",
    "results/snb_record.json:repetitions[].minidaq.parameters.applications",
    "results/snb_record.json:repetitions[].minidaq.cpu.copied_bytes",
    "results/block_scan.json:*large_blocks.throughput_bytes_per_s",  # the scan's lowest point: drawn beside the repetitions that decide
    "results/block_scan.json:*large_blocks.repetitions[].throughput_bytes_per_s_samples[]",  # one window of many may be missing
    "results/thread_scan.json:*points[].throughput_bytes_per_s_samples[]",  # the same of a point that decides
    "results/saturation.json:repetitions[].ended_by",  # "bytes" or "span", both whole; coverage holds every other word against the status
    "results/snb_record.json:repetitions[].minidaq.engine",  # printed: no scenario asks for one
    "run.json:target.drives[].serial",  # identity's checks hold it, where the inventory declares one
    "results/lan.json:ports[].operstate",  # the load that went through the port says that it was up
    "run.json:further_targets*",
    "run.json:state_reason",  # of a finished run
    "run.json:demand.nominal_bytes_per_s",
    "*:settings[].applied",
    "*:*placement*",
    "*:*engine_note",
    "*:*hottest_sensor*",
    "results/drive_temperature.json:device",
    "*:*large_blocks.throughput_bytes_per_s_samples*",  # of the scan's lowest point: drawn beside the repetitions that decide
    "*:*memory_locked",
    "*:*preallocate",
    "*:*parameters.filesystem",
    "*:*transient_buffer.extrapolat*",
    "*:*alone_first",
    "*:*.first",
    "*:activities*",  # of interference: how the bench ran each, for the report
    "*:*.synthetic.throughput_bytes_per_s_samples*",  # drawn, not judged
    # Values that follow from telemetry and inventory of drive sets: only advisory requirements bound them; `check-bundle` makes them again.
    "results/raid_comparison.json:targets*",
    "results/raid_comparison.json:comparisons*",
    "results/raid_comparison.json:disturbed*",
    "results/raid_comparison.json:published*",
    "results/raid_comparison.json:confidence",
    "results/raid_comparison.json:judged.added_*",
    "results/raid_comparison.json:judged.throughput_gb_per_s_per_u*",
    "results/raid_comparison.json:judged.endurance_bytes",
    "results/raid_vs_3dxp.json:*latency_us.p99_99",  # shown; p99_9 decides
    "results/steady_state.json:tests[].notes*",  # remarks for the report
    "results/raid_vs_3dxp.json:targets.*.device*",
    "results/raid_vs_3dxp.json:targets.*.layout*",
    "results/raid_vs_3dxp.json:targets.*.filesystem",
    "results/raid_vs_3dxp.json:targets.*.model",
    "results/raid_vs_3dxp.json:targets.*.size_bytes",
    "results/raid_comparison.json:reasons",
    "results/*:*.latency_us.max",
    "results/hot_store.json:*.waited_s",  # time that a thread waited for the other, for the report
    "results/hot_store.json:*.cpu_us_per_operation",
    "results/hot_store.json:*.latency_us*",
    "results/minidaq_scan.json:points[].throughput_bytes_per_s_samples*",
    "results/minidaq_scan.json:points[].copy_share",  # advisory
    "results/minidaq_scan.json:points[].cpu_seconds_per_gb",
    "results/steady_state.json:capacity_bytes",
    "results/steady_state.json:intervals*",  # of the window's means, for the report: the range of its rounds decides
    "results/steady_state.json:*latency_us.p*",  # the judged ones stand in the summary
    "results/lan.json:ports[].pcie*",
    # What a port says of itself, printed: an emulated one has no speed, driver or firmware. The transfers and what was read back decide.
    "results/lan.json:ports[].speed",
    "results/lan.json:ports[].mtu_bytes",
    "results/lan.json:ports[].txqueuelen",
    "results/lan.json:ports[].driver",
    "results/lan.json:ports[].firmware",
    "results/lan.json:ports[].numa_node",
    "results/lan.json:transfers[].attempts",  # a remark of the report; the last attempt is what was measured
    "results/block_scan.json:*points[].throughput_bytes_per_s_samples[]",  # drawn; the plateau follows from the points' own rates
    "results/endurance.json:*.nand_bytes",  # of the write amplification, which is bounded as advice only
    "results/endurance.json:drives[].model",  # printed; the id tells a drive
    "results/streams_checksum.json:cpus.packages",  # a machine may not tell; the threads follow from the CPUs
    "results/streams_checksum.json:identity.combine_ns",  # printed; null where it was not measured
    "results/concurrent_analysis.json:versions*",  # of the libraries, printed
    "results/concurrent_analysis.json:farm.rounds[].runs[].result.fit",  # of one node alone; that of all nodes follows in the rates
    "results/raid_vs_3dxp.json:*.write.throughput_bytes_per_s_samples[]",  # drawn of the sets that do not decide; the judged one's follow
    # The plateau's advisory figures, and the samples of points that do not decide.
    "results/telemetry_account.json:collectors[].missed_samples",
)


def rests_on(mutant: Mutant) -> bool:
    """False where the verdict may stay the same."""
    where = f"{mutant.file}:{mutant.place}"
    return not any(fnmatchcase(where, one.replace("[]", "[[]]")) for one in NOTHING_RESTS_ON)


def advisory_only(mutant: Mutant, profile: RequirementProfile, metrics: dict[str, ResultMetric]) -> bool:
    """True for a derived document that no mandatory requirement reads, and that says nothing of the evidence itself."""
    read = {metrics[one.metric].file for one in profile.requirements if one.severity == "mandatory"}
    return TYPES.get(mutant.file) in (Reasoned, DriveTemperature) and mutant.file not in read


def with_document(evidence: Evidence, file: str, document: Document | None) -> Evidence:
    """The evidence with another document in a file's place; None: without it."""
    changes: dict[str, Any] = {}
    if file == "run.json":
        assert document is not None
        return replace(evidence, run=document)
    if file in FILES:
        changes[FILES[file]] = document
    results = {name: one for name, one in evidence.results.items() if name != file}
    if document is not None and file.startswith("results/"):
        results[file] = document
    return replace(evidence, results=results, **changes)


def applied(evidence: Evidence, mutant: Mutant) -> Evidence:
    """The evidence with the mutant's change."""
    document = next(one for name, one in evidence.documents() if name == mutant.file)
    if mutant.kind == "document missing":
        return with_document(evidence, mutant.file, None)
    changed = _apart(document)
    mutant.apply(changed)
    return with_document(evidence, mutant.file, changed)


def _apart(node: Any) -> Any:
    """A copy as JSON has it: two places that share one object in memory, as a last step's state and that of the end, are two there."""
    if isinstance(node, dict):
        return {key: _apart(one) for key, one in node.items()}
    return [_apart(one) for one in node] if isinstance(node, list | tuple) else node


# Values -------------------------------------------------------------------------------------------------------------------------

NO_NUMBERS: dict[str, Change] = {
    "not a number": lambda _: math.nan,
    "infinite": lambda _: math.inf,
    "minus infinite": lambda _: -math.inf,
    "a number as text": str,
    "a truth value for a number": lambda _: True,
}
# Numbers that a tool may write by mistake. Where nothing else in the bundle tells the same, no judge can see them: `check-bundle` does,
# from the tools' own output. So such a class is here for judges that fall over, and `of_metrics` has it for the values that decide.
OTHER_SIZES: dict[str, Change] = {
    "zero": lambda one: type(one)(0),
    "a negative number": lambda one: -abs(one) or type(one)(-1),
    "a thousand times": lambda one: type(one)(one * 1000),
    "a thousandth": lambda one: type(one)(one / 1000),
    "KiB for kB": lambda one: type(one)(one / 1.024),
    "kB for KiB": lambda one: type(one)(one * 1.024),
}


def _changes(value: Any) -> Iterator[tuple[str, Change]]:
    """The possible changes to one value, by its kind."""
    yield "dropped", lambda _: DROPPED
    if value is not None:
        yield "null", lambda _: None
    if isinstance(value, bool):
        yield "flipped", lambda one: not one
    elif isinstance(value, int | float):
        yield from NO_NUMBERS.items()
        yield from ((kind, change) for kind, change in OTHER_SIZES.items() if change(value) != value)
    elif isinstance(value, str):
        yield "a number for text", lambda _: 7
    elif isinstance(value, list):
        yield "an object for a list", lambda _: {}
        if value:
            yield "emptied", lambda _: []
            yield from _of_rows(value)
    elif isinstance(value, dict):
        yield "a list for an object", lambda _: []
        if value:
            yield "emptied", lambda _: {}


ORDERED = {
    "number",
    "round",
}  # rows that have one follow one another in time; a table of repetitions tells each by its own words


def _of_rows(value: Sequence[Any]) -> Iterator[tuple[str, Change]]:
    if isinstance(value[0], dict):
        yield "first row removed", lambda rows: rows[1:]
        yield "last row removed", lambda rows: rows[:-1]
        yield "first row twice", lambda rows: [rows[0], *rows]
        yield "a row without content", lambda rows: [*rows, {}]
        yield "a row that is null", lambda rows: [*rows, None]
        if len(value) > 1 and not ORDERED.isdisjoint(value[0]):
            yield "first and last row swapped", lambda rows: [rows[-1], *rows[1:-1], rows[0]]


def of_values(evidence: Evidence) -> Iterator[Mutant]:
    """Every change to every value of every document, but only in the first and the last row of a list."""
    for file, document in evidence.documents():
        yield (
            Mutant("document missing", file, "", lambda _: None)
            if file != "run.json"
            else Mutant("emptied", file, "", lambda one: one.clear())
        )
        for path in paths(document):
            value = get(document, path)
            for kind, change in _changes(value):
                yield Mutant(kind, file, text(path), _at(path, change))


def paths(node: Any, at: Path = (), *, every_row: bool = False) -> Iterator[Path]:
    """The path of every value below `node`; in the first and the last entry of a list, unless `every_row` is asked for."""
    entries: Sequence[tuple[str | int, Any]] = ()
    if isinstance(node, dict):
        entries = list(node.items())
    elif isinstance(node, list):
        shown = range(len(node)) if every_row else sorted({0, len(node) - 1} if node else ())
        entries = [(index, node[index]) for index in shown]
    for key, value in entries:
        yield (*at, key)
        yield from paths(value, (*at, key), every_row=every_row)


def get(node: Any, path: Path) -> Any:
    for key in path:
        node = node[key]
    return node


def text(path: Path) -> str:
    """The path as text, such as `repetitions[].minidaq.status`."""
    return "".join("[]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


def _at(path: Path, change: Change) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        parent = get(document, path[:-1])
        new = change(parent[path[-1]])
        if new is DROPPED:
            del parent[path[-1]]
        else:
            parent[path[-1]] = new

    return apply


# Words --------------------------------------------------------------------------------------------------------------------------

WORD = re.compile(r"(^|_)(status|state|reason|outcome|kind)$")
OTHER_WORDS = (
    "",
    "failed",
    "incomplete",
    "interrupted",
    "running",
    "unknown",
    "damaged",
    "mismatch",
    "COMPLETE",
    "ok ",
)


def of_words(evidence: Evidence) -> Iterator[Mutant]:
    """Every word that states how something ended, replaced by every other such word; every reason, where there was none."""
    for file, document in evidence.documents():
        for path in paths(document):
            if isinstance(path[-1], str) and WORD.search(path[-1]):
                for word in OTHER_WORDS:
                    if word != get(document, path):
                        yield Mutant("another word", file, text(path), _at(path, partial(_instead, word)))


def of_allowed_words(evidence: Evidence) -> Iterator[Mutant]:
    """Every word that its document's type takes from a list, replaced by every other one of the list."""
    for file, document in evidence.documents():
        if file not in TYPES:
            continue
        kind = msgspec.inspect.type_info(TYPES[file])
        for path in paths(document):
            old = get(document, path)
            for word in _allowed(kind, path) if isinstance(old, str) else ():
                if word != old:
                    yield Mutant("another allowed word", file, text(path), _at(path, partial(_instead, word)))


def _allowed(kind: msgspec.inspect.Type, path: Path) -> list[str]:
    """The words of the list that a type has at this place; none where it takes any text."""
    kinds = [kind]
    for key in path:
        kinds = [one for each in kinds for one in _below(each, key)]
    return [str(word) for one in kinds for each in _each(one) if isinstance(each, LiteralType) for word in each.values]


def _each(kind: msgspec.inspect.Type) -> Iterator[msgspec.inspect.Type]:
    """A type's alternatives, each without what is only noted beside it."""
    if isinstance(kind, msgspec.inspect.Metadata):
        yield from _each(kind.type)
    elif isinstance(kind, msgspec.inspect.UnionType):
        for one in kind.types:
            yield from _each(one)
    else:
        yield kind


def _below(kind: msgspec.inspect.Type, key: str | int) -> Iterator[msgspec.inspect.Type]:
    for one in _each(kind):
        if isinstance(one, msgspec.inspect.StructType):
            yield from (field.type for field in one.fields if field.encode_name == key)
        elif isinstance(one, msgspec.inspect.DictType):
            yield one.value_type
        elif isinstance(one, msgspec.inspect.ListType | msgspec.inspect.VarTupleType):
            yield one.item_type


def _instead(new: Any, _old: Any) -> Any:
    return new


# Judged values ------------------------------------------------------------------------------------------------------------------


def of_metrics(
    evidence: Evidence,
    profile: RequirementProfile,
    metrics: dict[str, ResultMetric],
    run_bound: Callable[[Requirement], float],
) -> Iterator[Mutant]:
    """For each mandatory requirement and each value that its metric reads, mutants in which that value violates the bound, or is better
    than all the evidence that it came with."""
    for requirement in profile.requirements:
        metric = metrics[requirement.metric]
        document = evidence.results.get(metric.file)
        if requirement.severity != "mandatory" or document is None:
            continue
        values = found_at(metric.path, document) or []
        bound = run_bound(requirement)
        for path in _places_of(document, metric.path, values):
            yield Mutant("a value beyond its bound", metric.file, text(path), _at(path, _beyond(requirement, bound)))
            if metric.samples or metric.interval:
                yield Mutant(
                    "a value better than its samples", metric.file, text(path), _at(path, _better(requirement))
                )
                yield Mutant("a value in a better unit", metric.file, text(path), _at(path, _better(requirement, 1000)))
            if requirement.comparison != "at_least" and metric.unit in NEVER_BELOW_ZERO:
                yield Mutant(
                    "a value below zero", metric.file, text(path), _at(path, lambda value: type(value)(-abs(value) - 1))
                )


def _beyond(requirement: Requirement, bound: float) -> Change:
    """A value of the same kind on the wrong side, by far: units do not matter."""

    def change(value: Any) -> Any:
        if requirement.comparison == "at_least":
            return type(value)(0)
        worse = abs(value) * 1000 + abs(bound) * 1e12 + 1
        return int(worse) if isinstance(value, int) else worse

    return change


NEVER_BELOW_ZERO = ("B", "count", "s", "ms", "us", "B/s", "percent")


def _better(requirement: Requirement, times: float = 2.0) -> Change:
    factor = times if requirement.comparison == "at_least" else 1 / times
    return lambda value: value * factor


def _places_of(document: Document, path: str, values: Sequence[Any]) -> Iterator[Path]:
    """The places of a metric's values in the document: a place counts when the metric reads another number there."""
    probe, searched = -123456789.0, with_holes(document)
    for place in paths(document, every_row=True):
        value = get(document, place)
        if isinstance(value, bool) or not isinstance(value, int | float) or value not in values:
            continue
        parent = get(searched, place[:-1])
        parent[place[-1]], kept = probe, parent[place[-1]]
        found = found_in(path, searched) or []
        parent[place[-1]] = kept
        if probe in found:
            yield place


def sample(mutants: Sequence[Mutant], most: int, seed: int) -> list[Mutant]:
    """At most so many of each class, the same ones each time."""
    by_kind: dict[str, list[Mutant]] = {}
    for one in mutants:
        by_kind.setdefault(one.kind, []).append(one)
    chooser = random.Random(seed)
    return [one for each in by_kind.values() for one in (each if len(each) <= most else chooser.sample(each, most))]
