"""The 100 Gbit/s LAN (LHCb): bandwidth and latency against message size, many to one, all to all, event building, and each setting's
contribution. Over perftest where all nodes have RDMA devices, over iperf3 and netprobe where they have TCP alone.

The candidate's entry in the inventory names its port and its peers (`network`); without one, the nodes are network namespaces of the
candidate with shaped ports: a rehearsal."""

from __future__ import annotations

from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.lan import plans
from daq_bench.rig.workloads.lan.site import LanSite
from daq_bench.rig.workloads.shared.base import Report, Workload
from daq_bench.rig.workloads.shared.plan import Ground, Step

NAME = "lan"
NODES_MIN = 4
PAIRS_MIN = 4  # fewer give no interval that is worth having (bench_model.statistics.paired)
EXTRA_S, TRIAL_EXTRA_S = 1.2, 1.0  # making and removing the network, starting the tools
CROWDS = (plans.MANY_TO_ONE, plans.ALL_TO_ALL)
BUILDS = (plans.ONE_BUILDER, plans.ALL_BUILDERS)
GBIT = 1.25e8


def _of(scenario: Scenario) -> dict[str, Any]:
    return scenario.workloads[NAME]


def _counts(scenario: Scenario) -> tuple[int, int]:
    """Returns (transfers of the scans, halves of the settings' pairs); settings that the candidate may lack are counted."""
    own = _of(scenario)
    each = len(own["message_sizes"]) + len(own["bidirectional_sizes"]) + len(own["latency_sizes"])
    scans = (
        len(own["topologies"]) * each
        + scenario.repetitions
        + len(CROWDS)
        + len(BUILDS) * len(own["building"]["fragment_sizes"])
    )
    listed = len(own["settings"]["list"])
    return scans, 4 * own["settings"]["pairs"] * (listed + 1) if listed else 0


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """Transfers over TCP; nothing is written to the target."""
    own = _of(scenario)
    scans, halves = _counts(scenario)
    warm_up_s, settings = own["warm_up_s"], own["settings"]
    return [
        Step("transfers", own["seconds_per_size"] + warm_up_s + EXTRA_S, times=scans),
        Step("settings", settings["seconds"] + warm_up_s + TRIAL_EXTRA_S, times=halves),
    ]


def check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    """Refuses a plan that could not be measured."""
    own, at = _of(scenario), f"{scenario.file}: workloads.{NAME}"
    declared = candidate.document.get("network")
    emulated = own.get("emulated")
    if declared is None and emulated is None:
        raise RefusedError(
            f"{at}: the candidate {candidate.name} has no `network` with peers in the inventory, and the scenario no `emulated`. Declare "
            "its port and peers (docs/network.md), or take lan-100g-rehearsal"
        )
    if declared is not None and len({peer["address"] for peer in declared["peers"]} | {declared["address"]}) <= len(
        declared["peers"]
    ):
        raise RefusedError(f"inventory: {candidate.name}: network: two nodes have the same address. Give each its own")
    if declared is None and emulated is not None and emulated["port_rate_size"] < own["need_size"]:
        raise RefusedError(
            f"{at}.need_size: {decimal_label(own['need_size'])}/s cannot be carried by ports of "
            f"{decimal_label(emulated['port_rate_size'])}/s (emulated.port_rate_size). Ask for less, or give the ports more"
        )
    if own["settings"]["list"] and (own["settings"]["pairs"] < PAIRS_MIN or own["settings"]["pairs"] % 2):
        raise RefusedError(
            f"{at}.settings.pairs: {own['settings']['pairs']} pairs of alternating order; make it an even number of {PAIRS_MIN} or more"
        )
    names = [one["id"] for one in own["settings"]["list"]]
    if len(set(names)) != len(names):
        raise RefusedError(f"{at}.settings.list: a setting stands there twice. Name each once")
    for key in ("seconds_per_size", "warm_up_s"):
        if own[key] != round(own[key]):
            raise RefusedError(
                f"{at}.{key}: {own[key]:g} is no whole number of seconds, which iperf3 and perftest need. Round it"
            )


def limits(scenario: Scenario) -> list[str]:
    if not _of(scenario).get("emulated"):
        return []
    return ["The network may be one of namespaces on one machine, where no card, cable or switch takes part"]


def _nobody(host: str) -> Machine:
    raise BenchError(f"no run is under way that could link to the peer {host}")


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/lan.json of this run."""
    reach = context.facilities.peer if context.facilities else _nobody
    link = context.candidate.document.get("network", {}).get("link", "switch")
    site = LanSite.of(context, emulated_of(context.scenario), reach)
    return Campaign(site, context.scenario, link, report).run()


def every_message_size_should_have_been_measured(context: RunContext, document: dict[str, Any]) -> None:
    """Fails when a size lacks its bandwidth or its latency in a topology; a measured one may still turn out not to count."""
    asked = context.scenario.workloads[NAME]
    for kind, key in (("bandwidth", "message_sizes"), ("latency", "latency_sizes")):
        wanted = {(topology, size) for topology in document["network"]["topologies"] for size in asked[key]}
        found = {(one["topology"], one["message_bytes"]) for one in document["transfers"] if one["kind"] == kind}
        if wanted - found:
            raise AssertionError(f"{kind} not measured: {sorted(wanted - found)}")


def every_pair_of_settings_should_have_both_halves(context: RunContext, document: dict[str, Any]) -> None:
    """Fails when a half is missing, or the untuned one did not come first in every other pair."""
    halves = [one["trial"] for one in document["transfers"] if one["trial"]]
    for experiment in {one["experiment"] for one in halves}:
        for quantity in ("bandwidth", "latency"):
            own = [one for one in halves if (one["experiment"], one["quantity"]) == (experiment, quantity)]
            wanted = {
                (pair, side) for pair in range(1, document["settings"]["pairs"] + 1) for side in ("untuned", "tuned")
            }
            turned = {one["first"] == (one["pair"] % 2 == 1) for one in own if one["side"] == "untuned"}
            if {(one["pair"], one["side"]) for one in own} != wanted or turned != {True}:
                raise AssertionError(f"{experiment}, {quantity}: halves are missing or in the wrong order")


WORKLOAD = Workload(
    NAME,
    plan,
    run,
    action="load_network",
    check=check,
    limits=limits,
    program="netprobe",
    checks=(every_message_size_should_have_been_measured, every_pair_of_settings_should_have_both_halves),
)


def emulated_of(scenario: Scenario) -> dict[str, Any]:
    """The emulated network at the scenario's scale: {nodes, rate_bytes_per_s, queue_bytes}; only used where there are no peers."""
    own = _of(scenario).get("emulated") or {"nodes": NODES_MIN, "port_rate_size": 0, "queue_size": 0}
    return {
        "nodes": own["nodes"],
        "rate_bytes_per_s": own["port_rate_size"] * scenario.scale or None,
        "queue_bytes": own["queue_size"],
    }


class Campaign:
    """The whole workload on one site."""

    def __init__(self, site: LanSite, scenario: Scenario, link: str, report: Report) -> None:
        """`link`: how the candidate is wired to its peers, direct or switch; of namespaces both can be made."""
        self._site, self._scenario, self._own, self._report = site, scenario, _of(scenario), report
        self._topologies = self._own["topologies"] if site.kind == "namespaces" else [link]
        self._ports = site.describe()
        self._tools = self._choose()
        self._done, self._steps = 0, sum(_counts(scenario))
        self._left_out: list[dict[str, str]] = []

    def _choose(self) -> plans.Tools:
        """perftest if it is asked for, or if every node has an RDMA device and none asks for TCP."""
        asked, warm_up_s = self._own["engine"], self._own["warm_up_s"]
        devices = {port["node"]: port["rdma_devices"][0] for port in self._ports if port["rdma_devices"]}
        if asked == plans.RDMA and len(devices) < self._site.count:
            without = [port["node"] for port in self._ports if not port["rdma_devices"]]
            raise BenchError(
                f"{self._scenario.file}: workloads.{NAME}.engine: rdma, but {', '.join(without)} has no RDMA device at its port. Take "
                "auto or tcp, or load the card's RDMA driver"
            )
        chosen = devices if asked != plans.TCP and len(devices) == self._site.count else {}
        return plans.Tools(self._site.netprobe, warm_up_s, self._own["streams"], chosen)

    def run(self) -> dict[str, Any]:
        """results/lan.json."""
        own, site = self._own, self._site
        transfers = [self._carry_out(one) for one in self._scans()]
        settings = self._settings()
        transfers += [self._carry_out(one) for one in self._trials(settings)]
        return {
            "schema_version": 1,
            "engine": self._tools.engine,
            "network": {
                "kind": site.kind, "nodes": site.count, "topologies": self._topologies,
                "port_bytes_per_s": site.emulated["rate_bytes_per_s"] if site.kind == "namespaces" else None,
                "queue_bytes": site.emulated["queue_bytes"] if site.kind == "namespaces" else None,
            },
            "scale": self._scenario.scale,
            "full_need_bytes_per_s": own["need_size"],
            "need_bytes_per_s": own["need_size"] * self._scenario.scale,
            "seconds_per_size": own["seconds_per_size"],
            "warm_up_s": own["warm_up_s"],
            "streams": own["streams"],
            "building": {"in_flight": own["building"]["in_flight"]},
            "settings": {"pairs": own["settings"]["pairs"], "seconds": own["settings"]["seconds"]},
            "ports": self._ports,
            "left_out": self._left_out,
            "transfers": transfers,
            "limits": [],
        }  # fmt: skip

    def _carry_out(self, transfer: plans.Transfer) -> dict[str, Any]:
        self._done += 1
        what = f"{transfer.operation}, {transfer.topology}, {transfer.message_bytes} B"
        if transfer.trial:
            what = f"{transfer.trial['experiment']}: pair {transfer.trial['pair']}, {transfer.trial['side']}, {transfer.trial['quantity']}"
        self._report(
            what, self._done, max(self._steps, self._done), transfer.seconds + self._own["warm_up_s"] + EXTRA_S
        )
        return self._site.carry_out(transfer, self._own["warm_up_s"])

    def _scans(self) -> list[plans.Transfer]:
        own, tools, count, seconds = self._own, self._tools, self._site.count, self._own["seconds_per_size"]
        operations = plans.RDMA_OPERATIONS if tools.engine == plans.RDMA else (plans.TCP_OPERATION,)
        found: list[plans.Transfer] = []
        for topology in self._topologies:
            found += [
                tools.bandwidth(topology, name, size, seconds) for name in operations for size in own["message_sizes"]
            ]
            found += [
                tools.bandwidth(topology, operations[0], size, seconds, bidirectional=True)
                for size in own["bidirectional_sizes"]
            ]
            found += [tools.latency(topology, size, seconds) for size in own["latency_sizes"]]
        last = self._topologies[-1]
        found += [
            tools.bandwidth(
                last,
                operations[0],
                max(own["message_sizes"]),
                seconds,
                kind="confirmation",
                id=f"confirmation-{number}",
            )
            for number in range(1, self._scenario.repetitions + 1)
        ]
        if count > 2 and last == "switch":
            found += [
                tools.crowd(name, count, min(max(own["message_sizes"]), plans.IPERF_BYTES_MAX), seconds)
                for name in CROWDS
            ]
            building = own["building"]
            found += [
                tools.build(name, count, size, building["in_flight"], seconds)
                for name in BUILDS
                for size in building["fragment_sizes"]
            ]
        return found

    def _settings(self) -> list[plans.Setting]:
        """Returns settings to try: those that the ports have and take, and those of provisioning. Others are left out with a reason."""
        found = []
        for one in self._own["settings"]["list"]:
            setting = plans.Setting.of(one)
            records = [
                record for state in (setting.untuned, setting.tuned) for record in self._site.try_settings(state)
            ]
            bad = next((record for record in records if record["status"] not in ("applied", "unchanged")), None)
            if bad:
                self._left_out.append({"id": one["id"], "reason": f"{bad['at']}: {bad['detail']}"})
            else:
                found.append(setting)
        if self._own["settings"]["provisioned"]:
            for name, before in self._site.provisioned().items():
                files = {path: value for path, value in before.items() if path.startswith("/")}
                if not files:
                    self._left_out.append(
                        {"id": name, "reason": "it is a service's, which is not switched within a run"}
                    )
                    continue
                found.append(plans.Setting(name, [{"id": name, "files": files}], []))
        return found

    def _trials(self, settings: list[plans.Setting]) -> list[plans.Transfer]:
        own = self._own["settings"]
        if not settings:
            return []
        sizes = (own["message_size"], own["latency_size"])
        return list(plans.trials(settings, own["pairs"], self._tools, self._topologies[0], sizes, own["seconds"]))
