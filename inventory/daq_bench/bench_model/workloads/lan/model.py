"""The evidence that covers the plan of the LAN: every transfer, and each half of each setting's pairs, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from daq_bench.bench_model.bundle.evidence import Document
from daq_bench.bench_model.statistics.paired import Pair, compare
from daq_bench.bench_model.workloads.lan.analysis import (
    ALL,
    JUDGED_KINDS,
    KINDS,
    TUNED,
    UNTUNED,
    judged_of,
    of_bundle,
    read_backs,
)
from daq_bench.bench_model.workloads.lan.document import Lan, LanAnalysis
from daq_bench.bench_model.workloads.lan.transfers import summed
from daq_bench.bench_model.workloads.model import Beside, Count, Model, stated
from daq_bench.bench_model.workloads.plan import INVALIDATES, Plan, Problem, column, counting, follows, rows

IPERF_BYTES_MAX = 1 << 20  # iperf3's own limit of a write
BANDWIDTHS = {"tcp": ("iperf3",), "rdma": ("ib_write_bw", "ib_read_bw", "ib_send_bw")}
LATENCY = {"tcp": "netprobe latency", "rdma": "ib_read_lat"}
MANY_TO_ONE, ALL_TO_ALL = "many to one", "all to all"
ONE_BUILDER, ALL_BUILDERS = "one builder", "all builders"


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    """Every message size over every topology, the repetitions, the crowds, event building, and each half of each setting's pairs, once.

    A setting of the scenario's list that the ports do not take is a hole; of what provisioning applied the candidate has what it has."""
    yield from _network(plan, document)
    transfers = document["transfers"]
    yield from rows("transfer", [*_scans(plan, document), *_trials(plan, document)], [_named(one) for one in transfers])
    yield from (f"the setting {one['id']} was not tried: {one['reason']}" for one in _left_out(plan, document))
    for name, count in Counter(column(transfers, "id")).items():
        if count > 1:
            yield f"transfer {name} stands there {count} times", INVALIDATES
    gone = column(_left_out(plan, document), "id")
    tried = [one for one in plan.parameters["settings"]["list"] if one["id"] not in gone]
    for one in transfers:
        yield from _flows(one)
        yield from _windows(one)
        yield from _records(tried, one)


def _network(plan: Plan, document: Document) -> Iterator[Problem]:
    """The network is the one that was asked for, at the run's scale; its nodes are each there once."""
    own, network = plan.parameters, document["network"]
    emulated = own.get("emulated") if network["kind"] == "namespaces" else None
    if network["kind"] == "namespaces" and emulated is None:
        yield "the nodes are namespaces, and the scenario asks for hosts", INVALIDATES
    planned = {
        "nodes": emulated["nodes"] if emulated else network["nodes"],
        "port_bytes_per_s": emulated["port_rate_size"] * plan.scale if emulated else None,
        "queue_bytes": emulated["queue_size"] if emulated else None,
        "topologies": own["topologies"] if emulated else network["topologies"][:1],
    }
    yield from follows("the network", {key: network[key] for key in planned}, planned)
    yield from rows(
        "port of", [f"node{number}" for number in range(network["nodes"])], column(document["ports"], "node")
    )
    said = {key: document[key] for key in ("scale", "need_bytes_per_s", "building", "settings")}
    settings = {key: own["settings"][key] for key in ("pairs", "seconds")}
    asked = {
        "scale": plan.scale,
        "need_bytes_per_s": own["need_size"] * plan.scale,
        "building": {"in_flight": own["building"]["in_flight"]},
        "settings": settings,
    }
    yield from follows("what was asked of the network", said, asked)


def _named(one: Document) -> str:
    """Returns a name that only this transfer of a plan has."""
    trial = one["trial"]
    if trial:
        both = ", both ways" if one["bidirectional"] else ""
        return f"{_trial(trial['experiment'], trial['pair'], trial['side'], trial['quantity'])}{both}"
    number = one["id"] if one["kind"] == "confirmation" else ""
    return _label(one["kind"], one["topology"], one["operation"], one["message_bytes"], one["bidirectional"], number)


def _label(kind: str, topology: str, operation: str, size: int, bidirectional: bool = False, number: str = "") -> str:
    both = ", both ways" if bidirectional else ""
    return f"{number or kind}, {topology}, {operation}{both}, {size} B"


def _trial(experiment: str, pair: int, side: str, quantity: str) -> str:
    return f"{experiment}: pair {pair}, {side}, {quantity}"


def _scans(plan: Plan, document: Document) -> Iterator[str]:
    own, network, engine = plan.parameters, document["network"], document["engine"]
    operations, latency = BANDWIDTHS[engine], LATENCY[engine]
    largest, last = max(own["message_sizes"]), network["topologies"][-1]
    for topology in network["topologies"]:
        for name in operations:
            yield from (_label("bandwidth", topology, name, size) for size in own["message_sizes"])
        for size in own["bidirectional_sizes"]:
            yield _label("bandwidth", topology, operations[0], size, True)
        yield from (_label("latency", topology, latency, size) for size in own["latency_sizes"])
    for number in range(1, plan.repetitions + 1):
        yield _label("confirmation", last, operations[0], largest, False, f"confirmation-{number}")
    if network["nodes"] > 2 and last == "switch":
        for name in (MANY_TO_ONE, ALL_TO_ALL):
            yield _label("crowd", last, name, min(largest, IPERF_BYTES_MAX))
        for name in (ONE_BUILDER, ALL_BUILDERS):
            yield from (_label("build", last, name, size) for size in own["building"]["fragment_sizes"])


def _left_out(plan: Plan, document: Document) -> list[Document]:
    listed = column(plan.parameters["settings"]["list"], "id")
    return [one for one in document["left_out"] if one["id"] in listed]


def _trials(plan: Plan, document: Document) -> Iterator[str]:
    """Each tried setting by itself and all together: of those that provisioning applied the transfers themselves tell the names."""
    own, gone = plan.parameters["settings"], column(_left_out(plan, document), "id")
    listed = column(own["list"], "id")
    found = dict.fromkeys(one["trial"]["experiment"] for one in document["transfers"] if one["trial"])
    more = [name for name in found if name not in (*listed, ALL)] if own["provisioned"] else []
    tried = [*(name for name in listed if name not in gone), *more]
    for name in (*tried, ALL) if tried else ():
        for pair in range(1, own["pairs"] + 1):
            for side in (UNTUNED, TUNED):
                yield from (_trial(name, pair, side, quantity) for quantity in ("bandwidth", "latency"))


def _flows(one: Document) -> Iterator[Problem]:
    """As many tools as the operation takes ran, and each ended well."""
    many = one["nodes"]
    planned = {MANY_TO_ONE: many - 1, ALL_TO_ALL: many * (many - 1), ALL_BUILDERS: many}.get(one["operation"], 1)
    names = set(column(one["flows"], "name"))
    if len(names) != planned or len(one["flows"]) != planned:
        yield f"{one['id']}: {len(names)} of {planned} flows are there", INVALIDATES
    for flow in one["flows"]:
        if flow["returncode"] != 0:
            yield f"{one['id']}: {flow['tool']} ({flow['name']}) ended with exit status {flow['returncode']}"


def _windows(one: Document) -> Iterator[Problem]:
    """Every counter of every port was read at both ends of the window."""
    for window in (one["window"], *one["peers"].values()):
        read = (
            [{node: sorted(port) for node, port in window[end]["ports"].items()} for end in ("begin", "end")]
            if window
            else []
        )
        if read and read[0] != read[1]:
            yield f"{one['id']}: the ports' counters were not the same at both ends of its window", INVALIDATES


def _records(tried: Iterable[Document], one: Document) -> Iterator[Problem]:
    """Each setting of the scenario that a trial puts into force was read back in it."""
    trial, found = one["trial"], set(column(one["settings"], "id"))
    for setting in tried if trial else ():
        own = trial["side"] == TUNED and trial["experiment"] in (setting["id"], ALL)
        if (TUNED if own else UNTUNED) in setting and setting["id"] not in found:
            yield f"{one['id']}: nobody read back the setting {setting['id']}"


def _analysis(plan: Plan, document: Document, found: Document) -> Iterator[Problem]:
    """Each transfer was looked at once; the repetitions, the crowds and event building count, and no other transfer failed.

    At a small message size the load's own CPU is the limit, and no requirement rests on it."""
    transfers = {one["id"]: one for one in document["transfers"] if one["kind"] != "setting"}
    made = [one for kind in KINDS for one in found[kind]]
    yield from rows("the analysis of", list(transfers), column(made, "id"))
    for kind in KINDS:
        for one in found[kind]:
            yield from _analysed(kind, one, transfers.get(one["id"], one))
    yield from _experiments(plan, document, found["settings"])
    records = [record for one in document["transfers"] for record in one["settings"]]
    yield from follows("the settings", found["tuned_settings"], read_backs(records))
    failed = sum(one["failed"] for one in made) + found["judged"]["failed_transfers"] * _any_masked(found["settings"])
    judged, reasons = judged_of(
        plan.parameters["need_size"] * plan.scale,
        {kind: found[kind] for kind in KINDS},
        found["settings"],
        records,
        failed,
    )
    yield from follows("what is judged", found["judged"], judged)
    yield from follows("the reasons", found["reasons"], reasons)


def _any_masked(settings: Iterable[Document]) -> bool:
    """Then a half of a pair failed, of which the analysis keeps no row; the mask is a hole by itself."""
    return any(one[key]["masked"] for one in settings for key in ("bandwidth", "latency"))


def _analysed(kind: str, one: Document, transfer: Document) -> Iterator[Problem]:
    name = one["id"]
    keys = ("kind", "topology", "operation", "bidirectional", "message_bytes", "nodes", "trial")
    yield from follows(name, {key: one[key] for key in keys}, {**{key: transfer[key] for key in keys}, "kind": kind})
    if one["failed"] is not (one["reason"] is not None and not one["starved"]):
        yield f"{name} contradicts itself: failed is {one['failed']!r} and the reason {one['reason']!r}", INVALIDATES
    needed = kind in JUDGED_KINDS or one["failed"]
    yield from (problem for problem in counting("transfer", [(name, one)]) if needed or not isinstance(problem, str))
    if "flows" in one:
        again = summed(transfer, one["flows"])
        yield from follows(name, {key: one[key] for key in again}, again)


def _experiments(plan: Plan, document: Document, settings: list[Document]) -> Iterator[Problem]:
    """Each experiment's ratios: one for each pair, and what they give together."""
    trials = [one["trial"] for one in document["transfers"] if one["trial"]]
    pairs = plan.parameters["settings"]["pairs"]
    yield from rows("the experiment", list(dict.fromkeys(column(trials, "experiment"))), column(settings, "id"))
    first = {(one["experiment"], one["pair"]): one["first"] for one in trials if one["side"] == UNTUNED}
    for one in settings:
        for quantity in ("bandwidth", "latency"):
            what, part = f"{one['id']}, {quantity}", one[quantity]
            yield from (f"{what}: {text}" for text in part["masked"])
            if part["n"] != pairs or len(part["ratios"]) != pairs:
                yield f"{what}: {part['n']} of {pairs} pairs count"
            else:
                turns = [Pair(n, first[one["id"], n], ratio) for n, ratio in enumerate(part["ratios"], start=1)]
                made = compare(turns)
                said = (part["ratio"], part["interval"], part["decision"])
                yield from follows(what, said, (made.ratio, made.interval, made.decision))


def _times(plan: Plan, metric: str) -> int:
    """Settings are measured in pairs of their own."""
    return int(plan.parameters["settings"]["pairs"]) if metric == "lan.latency_ratio" else plan.repetitions_max


MODEL = Model(
    coverage,
    (
        Count("seconds_per_size", stated("seconds_per_size")),
        Count("need_bytes_per_s", lambda asked, _: asked.own["need_size"] * asked.scale),
        Count("settings.pairs", stated("settings", "pairs")),
        Count("settings.seconds", stated("settings", "seconds")),
    ),
    (Beside("results/lan_analysis.json", of_bundle, _analysis, LanAnalysis),),
    times=_times,
    result=Lan,
)
