"""The evidence that covers the plan of the LAN: every transfer, and each half of each setting's pairs, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import UNSET, to_builtins

from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.statistics.paired import Pair, compare
from daq_bench.bench_model.workloads.model import Beside, Count, Model, stated
from daq_bench.bench_model.workloads.plan import INVALIDATES, Plan, Problem, column, counting, follows, rows, typed
from daq_bench.workloads.lan.document import Building, Lan, LanAnalysis, Settings, Transfer
from daq_bench.workloads.lan.model.analysis import judged_of, of_bundle, read_backs
from daq_bench.workloads.lan.model.transfers import summed
from daq_bench.workloads.lan.plan import (
    ALL,
    ALL_BUILDERS,
    ALL_TO_ALL,
    JUDGED_KINDS,
    KINDS,
    MANY_TO_ONE,
    QUANTITIES,
    TUNED,
    UNTUNED,
    Asked,
    Parameters,
    of_result,
)


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    """Every message size over every topology, the repetitions, the crowds, event building, and each half of each setting's pairs, once.

    A setting of the scenario's list that the ports do not take is a hole; settings from provisioning stay as they are."""
    asked, found = Parameters.of(plan.parameters), typed(document, Lan, plan.file)
    yield from _network(plan, asked, found)
    planned = of_result(asked, plan.repetitions, found)
    yield from rows("transfer", [one.label for one in planned], [one.label for one in found.transfers])
    left_out = [one for one in found.left_out if one.id in asked.listed]
    yield from (f"the setting {one.id} was not tried: {one.reason}" for one in left_out)
    for name, count in Counter(one.id for one in found.transfers).items():
        if count > 1:
            yield f"transfer {name} stands there {count} times", INVALIDATES
    gone = {one.id for one in left_out}
    tried = [one for one in asked.settings.listed if one.id not in gone]
    points = {one.id: to_builtins(one) for one in planned}
    for transfer in found.transfers:
        if point := points.get(transfer.id):
            said = to_builtins(transfer)
            yield from follows(f"what {transfer.id} measures", {key: said[key] for key in point}, point)
        yield from _flows(transfer)
        yield from _windows(transfer)
        yield from _records(tried, transfer)


def _network(plan: Plan, asked: Parameters, found: Lan) -> Iterator[Problem]:
    """The network is the one that was asked for, at the run's scale; its nodes are each there once."""
    network, emulated = found.network, asked.emulated if found.network.kind == "namespaces" else None
    if network.kind == "namespaces" and emulated is None:
        yield "the nodes are namespaces, and the scenario asks for hosts", INVALIDATES
    planned = {
        "nodes": emulated.nodes if emulated else network.nodes,
        "port_bytes_per_s": emulated.port_rate_size * plan.scale if emulated else None,
        "queue_bytes": emulated.queue_size if emulated else None,
        "topologies": asked.topologies if emulated else network.topologies[:1],
    }
    yield from follows("the network", {key: getattr(network, key) for key in planned}, planned)
    yield from rows("port of", [f"node{number}" for number in range(network.nodes)], [one.node for one in found.ports])
    wanted = {
        "scale": plan.scale,
        "need_bytes_per_s": asked.need_size * plan.scale,
        "building": Building(asked.building.in_flight),
        "settings": Settings(asked.settings.pairs, asked.settings.seconds),
    }
    said = {key: getattr(found, key) for key in wanted}
    yield from follows("what was asked of the network", to_builtins(said), to_builtins(wanted))


def _flows(one: Transfer) -> Iterator[Problem]:
    """As many tools as the operation takes ran, and each ended well."""
    many = one.nodes
    planned = {MANY_TO_ONE: many - 1, ALL_TO_ALL: many * (many - 1), ALL_BUILDERS: many}.get(one.operation, 1)
    names = {flow.name for flow in one.flows}
    if len(names) != planned or len(one.flows) != planned:
        yield f"{one.id}: {len(names)} of {planned} flows are there", INVALIDATES
    for flow in one.flows:
        if flow.returncode != 0:
            yield f"{one.id}: {flow.tool} ({flow.name}) ended with exit status {flow.returncode}"


def _windows(one: Transfer) -> Iterator[Problem]:
    """Every counter of every port, and every CPU, was read at both ends of the window: a CPU that is missing may be the one that had
    nothing left."""
    if one.peers is UNSET:
        yield f"{one.id}: the windows of its peers are missing", INVALIDATES
    for window in (one.window, *(one.peers or {}).values()):
        if window is None:
            yield f"{one.id}: nobody read the counters and the CPUs of a host. Measure again", INVALIDATES
        read = (
            [{node: port.keys() for node, port in end.ports.items()} for end in (window.begin, window.end)]
            if window
            else []
        )
        if read and read[0] != read[1]:
            yield f"{one.id}: the ports' counters were not the same at both ends of its window", INVALIDATES
        cpus = [set(end.cpu) for end in (window.begin, window.end)] if window else []
        if cpus and cpus[0] != cpus[1]:
            odd = ", ".join(sorted(cpus[0] ^ cpus[1]))
            yield (
                f"{one.id}: {odd} was not read at both ends of its window. Let no CPU come or go during a run, and measure again",
                INVALIDATES,
            )


def _records(tried: Iterable[Asked], one: Transfer) -> Iterator[Problem]:
    """Each setting of the scenario that a trial puts into force was read back in it."""
    if (trial := one.trial) is None:
        return
    found = {record.id for record in one.settings}
    for setting in tried:
        own = trial.side == TUNED and trial.experiment in (setting.id, ALL)
        if (setting.tuned if own else setting.untuned) is not UNSET and setting.id not in found:
            yield f"{one.id}: nobody read back the setting {setting.id}"


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
    return any(one[key]["masked"] for one in settings for key in QUANTITIES)


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
        for quantity in QUANTITIES:
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
    times_field=lambda metric: "settings.pairs" if metric == "lan.latency_ratio" else "",
    result=Lan,
)
