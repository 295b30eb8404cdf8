"""The evidence that covers the plan of the streams with their checksums."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from daq_bench.bench_model.documents.struct import Document, as_document
from daq_bench.bench_model.workloads.model import Asked, Beside, Count, Model, of_result, stated
from daq_bench.bench_model.workloads.plan import INVALIDATES, Plan, Problem, column, counting, follows, rows, tool
from daq_bench.bench_model.workloads.streams_checksum import analysis
from daq_bench.bench_model.workloads.streams_checksum.document import StreamsChecksum, StreamsChecksumAnalysis
from daq_bench.bench_model.workloads.streams_checksum.setups import (
    ALL,
    ORIGINAL,
    THREADED,
    Cpus,
    application_threads,
    beyond,
    comparisons,
)

FUSED = "fused"
PACES = ("sustained", "peak")
DUE_SHARE_MIN = 0.97  # [P] of rate times time that a pace must have made due


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    """Every comparison that the candidate's CPUs allow in every round, the demand, and a look at the files of every variant and pace."""
    own, told = plan.parameters, document["cpus"]
    cpus = Cpus(tuple(told["cores"]), tuple(told["order"]), told["packages"], told["smt"])
    yield from _streams_as_asked(plan, document, cpus)
    planned, found = comparisons(own, cpus), document["comparisons"]
    yield from rows("comparison", [one.label for one in planned], column(found, "label"))
    keys = ("kind", "label", "setup", "reference")
    again = [as_document(one) for one in planned]
    yield from follows("the comparisons", [{key: one[key] for key in keys} for one in found], again)
    for one in found:
        yield from _rounds(plan, one)
    yield from _overhead(own, cpus, document)
    yield from _demand(plan, cpus, document["demand"])
    yield from _verification(document)


def _streams_as_asked(plan: Plan, document: Document, cpus: Cpus) -> Iterator[Problem]:
    own = plan.parameters
    variant = own["application_variant"]
    asked = {
        "application": {"variant": variant, "threads": application_threads(variant, cpus)},
        "shares": own["streams"]["shares"],
        "event_bytes": own["streams"]["event_size"],
        "small_event_bytes": own["throughput"]["small_event_size"],
        "throughput": {key: own["throughput"][key] for key in ("variants", "threads", "sink", "seconds")},
        "rounds": plan.repetitions,
        "not_measured": beyond(own["throughput"]["threads"], cpus),
    }
    yield from follows("what was asked for", {key: document[key] for key in asked}, asked)
    if set(cpus.cores) - set(cpus.order) or document["cpus"]["has_siblings"] is not cpus.has_siblings:
        yield "the CPUs contradict each other", INVALIDATES


def _rounds(plan: Plan, one: Document) -> Iterator[Problem]:
    """One pair of each round, in alternating order; both runs of it count."""
    what, pairs = f"{one['label']}: round", one["pairs"]
    yield from rows(what, range(1, plan.repetitions + 1), column(pairs, "round"))
    for pair in pairs:
        if pair["reference_first"] is not (pair["round"] % 2 == 1):
            yield f"{what} {pair['round']} was not in its turn", INVALIDATES
        runs = [(f"{pair['round']}, {kind}", pair[kind]) for kind in ("reference", "measured")]
        yield from counting(what, runs)
        for name, run in runs:
            if run["reason"] is None and (run["failed"] or run["bytes_per_s"] <= 0 or run["written_bytes"] <= 0):
                yield f"{what} {name} wrote nothing or failed, and counts", INVALIDATES


def _overhead(own: Document, cpus: Cpus, document: Document) -> Iterator[Problem]:
    points, turns = document["overhead"]["points"], own["overhead"]["repetitions"]
    threads = cpus.threads(sorted({1, *own["throughput"]["threads"]}), ALL)
    yield from follows("the overhead's event", document["overhead"]["event_bytes"], own["overhead"]["event_size"])
    planned = [(variant, number) for variant in THREADED for number in threads]
    yield from rows("the overhead of", planned, [(one["variant"], one["threads"]) for one in points], _threads)
    yield from counting("the overhead of", ((_threads((one["variant"], one["threads"])), one) for one in points))
    for one in points:
        name = _threads((one["variant"], one["threads"]))
        for key in ("ns", "share_ns"):
            if len(one[key]) != turns:
                yield f"the overhead of {name} has {len(one[key])} of {turns} turns"
    identity = document["identity"]
    if identity["splits"] is None or identity["splits"]["comparisons"] <= 0:
        yield "no split of an event was compared with zlib"
    elif identity["splits"]["bytes"] != own["overhead"]["split_size"]:
        yield f"splits of {identity['splits']['bytes']} B were compared", INVALIDATES
    yield from follows("the wrong checksums", identity["wrong"], int(identity["mismatch"] is not None))


def _threads(key: tuple[str, int]) -> str:
    return f"{key[0]} with {key[1]} threads"


def _demand(plan: Plan, cpus: Cpus, found: list[Document]) -> Iterator[Problem]:
    """Both paces, asked for as the scenario says; a run that does not count keeps nothing."""
    own = plan.parameters
    variant = own["application_variant"]
    yield from rows("the rate", PACES, column(found, "name"))
    yield from counting("the rate", ((one["name"], one) for one in found))
    for one in found:
        full = own["demand"][f"{one['name']}_rate_size"] / own["demand"]["servers"]
        asked = {
            "variant": variant,
            "threads": application_threads(variant, cpus),
            "full_bytes_per_s": full,
            "asked_bytes_per_s": full * plan.scale,
            "seconds": own["demand"][f"{one['name']}_s"],
        }
        what = f"the {one['name']} rate"
        yield from follows(what, {key: one[key] for key in asked}, asked)
        if one["reason"] is None:
            largest = own["streams"]["event_size"] * (1 + own["streams"]["event_spread"])
            yield from _kept(what, one, len(own["streams"]["shares"]) * largest)


def _kept(what: str, one: Document, next_bytes: float) -> Iterator[Problem]:
    """A paced run that counts had the whole time's load due but for each stream's next event, and its figures agree."""
    due, written = one["due_bytes"], one["written_bytes"]
    if due < DUE_SHARE_MIN * one["asked_bytes_per_s"] * one["seconds"] - next_bytes:
        yield f"{what}: only {due} B were due"
    yield from follows(f"{what}: what was kept", one["kept"], written / due)
    yield from follows(f"{what}: what the streams wrote", sum(column(one["streams"], "written_bytes")), written)
    if one["failed"] or one["error"] is not None:
        yield f"{what} failed ({one['error']}) and counts", INVALIDATES
    if written > one["offered_bytes"]:
        yield f"{what}: more was written than offered", INVALIDATES


def _verification(document: Document) -> Iterator[Problem]:
    """The files of each variant and of each pace were looked at, all of them, and read back intact."""
    planned = [*(f"identity-{variant}" for variant in (ORIGINAL, *THREADED, FUSED)), *PACES]
    found = document["verification"]
    yield from rows("the files of", planned, column(found, "name"))
    variants = {f"identity-{variant}": variant for variant in (ORIGINAL, *THREADED, FUSED)}
    closed = {one["name"]: sum(column(one["streams"], "files")) for one in document["demand"]}
    written = {one["name"]: one["written_bytes"] for one in document["demand"]}
    for one in found:
        what = f"the files of {one['name']}"
        yield from follows(what, one["variant"], variants.get(one["name"], document["application"]["variant"]))
        yield from tool(f"the read-back of {one['name']}", one["status"], ("intact",))
        events = one["events"]
        said = {
            "no file was looked at": one["files"] > 0 and one["bytes"] > 0,
            "not one file's checksum was taken by its definition": 0 < one["by_definition"] <= one["files"],
            "the manifest has no last line": one["closed"] is True,
            "not every event is there": 0 < events["expected"] == events["present"],
            "fewer or more bytes were read back than were written": one["bytes"]
            == written.get(one["name"], one["bytes"]),
            "fewer or more files are there than were closed": one["files"] == closed.get(one["name"], one["files"]),
        }
        yield from (f"{what}: {text}" for text, holds in said.items() if not holds)
        yield from follows(f"{what}: how many are wrong", one["wrong_files"], len(one["wrong"]))
        yield from follows(f"{what}: failed", one["failed"], one["status"] == "failed")


def _analysis(plan: Plan, document: Document, found: Document) -> Iterator[Problem]:
    """The analysis is the one of these rounds, whole."""
    yield from follows("the analysis", found, analysis.document(document))


def _load(key: str) -> Callable[[Asked, Document], float]:
    """Returns the rule for `key` of one paced load of the storage application; the load's name selects its rate."""

    def least(asked: Asked, load: Document) -> float:
        demand = asked.own["demand"]
        rate = demand[f"{load['name']}_rate_size"] / demand["servers"] * asked.scale
        seconds = demand[f"{load['name']}_s"]
        return float({"asked_bytes_per_s": rate, "seconds": seconds, "due_bytes": rate * seconds}[key])

    return least


def _times(plan: Plan, metric: str) -> int:
    """Returns how often the plan measures a metric; the cost of handing out chunks is measured by itself."""
    own = plan.parameters["overhead"]["repetitions"]
    return int(own) if metric == "streams_checksum.overhead" else plan.repetitions_max


MODEL = Model(
    coverage,
    (
        Count("throughput.seconds", stated("throughput", "seconds")),
        Count("rounds", lambda asked, _: asked.repetitions),
        *(Count(f"demand[].{key}", _load(key)) for key in ("asked_bytes_per_s", "seconds", "due_bytes")),
    ),
    (
        Beside(
            "results/streams_checksum_analysis.json",
            of_result(f"results/{analysis.RESULTS}", analysis.document),
            _analysis,
            StreamsChecksumAnalysis,
        ),
    ),
    times=_times,
    times_field=lambda metric: "overhead.repetitions" if metric == "streams_checksum.overhead" else "",
    result=StreamsChecksum,
)
