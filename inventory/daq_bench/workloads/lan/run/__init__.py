"""The 100 Gbit/s LAN (LHCb): bandwidth and latency against message size, many to one, all to all, event building, and each setting's
contribution. Over perftest where all nodes have RDMA devices, over iperf3 and netprobe where they have TCP alone.

The candidate's entry in the inventory names its port and its peers (`network`); without one, the nodes are network namespaces of the
candidate with shaped ports: a rehearsal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.base import Report, Workload
from daq_bench.rig.workloads.shared.plan import Ground, Step
from daq_bench.workloads.lan.document import Lan, Point, Trial
from daq_bench.workloads.lan.plan import (
    ALL,
    HELD,
    NODES_MIN,
    QUANTITIES,
    RDMA,
    TCP,
    TUNED,
    Emulated,
    Parameters,
    Settings,
    of_result,
    plan,
)
from daq_bench.workloads.lan.run.ports import check_ports
from daq_bench.workloads.lan.run.site import LanSite
from daq_bench.workloads.lan.run.tools import Setting, Tools

NAME = "lan"
PAIRS_MIN = 4  # fewer give no interval that is worth having (bench_model.statistics.paired)
EXTRA_S, TRIAL_EXTRA_S = 1.2, 1.0  # making and removing the network, starting the tools


def _of(scenario: Scenario) -> Parameters:
    return Parameters.of(scenario.workloads[NAME])


def _expected(scenario: Scenario) -> list[Point]:
    """The plan over TCP on as many nodes as the scenario needs; settings that the candidate may lack are counted."""
    own = _of(scenario)
    nodes = own.emulated.nodes if own.emulated else NODES_MIN
    return list(plan(own, scenario.repetitions, TCP, own.topologies, nodes, own.listed))


def steps(scenario: Scenario, ground: Ground) -> list[Step]:
    """Nothing is written to the target."""
    own, points = _of(scenario), _expected(scenario)
    trials = sum(one.trial is not None for one in points)
    return [
        Step("transfers", own.seconds_per_size + own.warm_up_s + EXTRA_S, times=len(points) - trials),
        Step("settings", own.settings.seconds + own.warm_up_s + TRIAL_EXTRA_S, times=trials),
    ]


def check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    """Refuses a plan that could not be measured."""
    own, at = _of(scenario), f"{scenario.file}: workloads.{NAME}"
    declared, emulated, settings = candidate.document.get("network"), own.emulated, own.settings
    if declared is None and emulated is None:
        raise RefusedError(
            f"{at}: the candidate {candidate.name} has no `network` with peers in the inventory, and the scenario no `emulated`. Declare "
            "its port and peers (docs/network.md); lan-100g-rehearsal runs without them, and decides nothing"
        )
    if declared is not None:
        addresses = [declared["address"], *(peer["address"] for peer in declared["peers"])]
        if len(set(addresses)) < len(addresses):
            raise RefusedError(
                f"inventory: {candidate.name}: network: two nodes have the same address. Give each its own"
            )
    elif emulated is not None and emulated.port_rate_size < own.need_size:
        raise RefusedError(
            f"{at}.need_size: {decimal_label(own.need_size)}/s cannot be carried by ports of "
            f"{decimal_label(emulated.port_rate_size)}/s (emulated.port_rate_size). Ask for less, or give the ports more"
        )
    if settings.listed and (settings.pairs < PAIRS_MIN or settings.pairs % 2):
        raise RefusedError(
            f"{at}.settings.pairs: {settings.pairs} pairs of alternating order; make it an even number of {PAIRS_MIN} or more"
        )
    if len(set(own.listed)) != len(own.listed):
        raise RefusedError(f"{at}.settings.list: a setting stands there twice. Name each once")
    for key, seconds in (("seconds_per_size", own.seconds_per_size), ("warm_up_s", own.warm_up_s)):
        if seconds != round(seconds):
            raise RefusedError(
                f"{at}.{key}: {seconds:g} is no whole number of seconds, which iperf3 and perftest need. Round it"
            )


def limits(scenario: Scenario) -> list[str]:
    if not _of(scenario).emulated:
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


def _points(context: RunContext, document: dict[str, Any]) -> tuple[list[Point], Sequence[Point]]:
    """The plan, and the measurements."""
    found = read(document, Lan, f"results/{NAME}.json")
    return of_result(_of(context.scenario), context.scenario.repetitions, found), found.transfers


def every_message_size_should_have_been_measured(context: RunContext, document: dict[str, Any]) -> None:
    """Fails when a size lacks its bandwidth or its latency in a topology; a measured one may still turn out not to count."""
    for kind in QUANTITIES:
        wanted, found = (
            {(one.topology, one.message_bytes) for one in points if one.kind == kind}
            for points in _points(context, document)
        )
        if wanted - found:
            raise AssertionError(f"{kind} not measured: {sorted(wanted - found)}")


def every_pair_of_settings_should_have_both_halves(context: RunContext, document: dict[str, Any]) -> None:
    """Fails when a half is missing, or the untuned one did not come first in every other pair."""
    planned, found = ({one.trial for one in points if one.trial} for points in _points(context, document))
    for experiment, quantity in sorted({(one.experiment, one.quantity) for one in planned ^ found}):
        raise AssertionError(f"{experiment}, {quantity}: halves are missing or in the wrong order")


WORKLOAD = Workload(
    NAME,
    steps,
    run,
    action="load_network",
    check=check,
    check_peers=check_ports,
    limits=limits,
    program="netprobe",
    checks=(every_message_size_should_have_been_measured, every_pair_of_settings_should_have_both_halves),
)


def emulated_of(scenario: Scenario) -> dict[str, Any]:
    """The emulated network at the scenario's scale: {nodes, rate_bytes_per_s, queue_bytes}; only used where there are no peers."""
    own = _of(scenario).emulated or Emulated(NODES_MIN, 0, 0)
    rate = own.port_rate_size * scenario.scale or None
    return {"nodes": own.nodes, "rate_bytes_per_s": rate, "queue_bytes": own.queue_size}


class Campaign:
    """The whole workload on one site."""

    def __init__(self, site: LanSite, scenario: Scenario, link: str, report: Report) -> None:
        """`link`: how the candidate is wired to its peers, direct or switch; namespaces can be wired either way."""
        self._site, self._scenario, self._own, self._report = site, scenario, _of(scenario), report
        self._topologies = self._own.topologies if site.kind == "namespaces" else [link]
        self._ports = site.describe()
        self._tools = self._choose()
        self._done, self._steps = 0, len(_expected(scenario))
        self._left_out: list[dict[str, str]] = []

    def _choose(self) -> Tools:
        """perftest if it is asked for, or if every node has an RDMA device and none asks for TCP."""
        own, site = self._own, self._site
        devices = {port["node"]: port["rdma_devices"][0] for port in self._ports if port["rdma_devices"]}
        if own.engine == RDMA and len(devices) < site.count:
            without = [port["node"] for port in self._ports if not port["rdma_devices"]]
            raise BenchError(
                f"{self._scenario.file}: workloads.{NAME}.engine: rdma, but {', '.join(without)} has no RDMA device at its port. Take "
                "auto or tcp, or load the card's RDMA driver"
            )
        chosen = devices if own.engine != TCP and len(devices) == site.count else {}
        return Tools(site.netprobe, own.warm_up_s, own.streams, own.building.in_flight, chosen)

    def run(self) -> dict[str, Any]:
        """results/lan.json."""
        own, site, scale = self._own, self._site, self._scenario.scale
        transfers = [self._carry_out(one) for one in self._plan([]) if not one.trial]
        settings = self._settings()
        transfers += [self._carry_out(one, settings) for one in self._plan(settings) if one.trial]
        emulated = site.emulated if site.kind == "namespaces" else {}
        return {
            "schema_version": 1,
            "engine": self._tools.engine,
            "network": {
                "kind": site.kind,
                "nodes": site.count,
                "topologies": self._topologies,
                "port_bytes_per_s": emulated.get("rate_bytes_per_s"),
                "queue_bytes": emulated.get("queue_bytes"),
            },
            "scale": scale,
            "full_need_bytes_per_s": own.need_size,
            "need_bytes_per_s": own.need_size * scale,
            "seconds_per_size": own.seconds_per_size,
            "warm_up_s": own.warm_up_s,
            "streams": own.streams,
            "building": {"in_flight": own.building.in_flight},
            "settings": {"pairs": own.settings.pairs, "seconds": own.settings.seconds},
            "ports": self._ports,
            "left_out": self._left_out,
            "transfers": transfers,
            "limits": [],
        }

    def _plan(self, settings: Sequence[Setting]) -> Iterator[Point]:
        names = [one.id for one in settings]
        repetitions, engine = self._scenario.repetitions, self._tools.engine
        return plan(self._own, repetitions, engine, self._topologies, self._site.count, names)

    def _carry_out(self, point: Point, settings: Sequence[Setting] = ()) -> dict[str, Any]:
        self._done += 1
        seconds = self._own.seconds(point)
        what = point.label if point.trial else f"{point.operation}, {point.topology}, {point.message_bytes} B"
        self._report(what, self._done, max(self._steps, self._done), seconds + self._own.warm_up_s + EXTRA_S)
        asked = in_force(point.trial, settings) if point.trial else []
        return self._site.carry_out(self._tools.load(point, seconds, asked), self._own.warm_up_s)

    def _settings(self) -> list[Setting]:
        """Returns settings to try: those that the ports have and take, and those of provisioning. Others are left out with a reason."""
        found = []
        for setting in map(Setting.of, self._own.settings.listed):
            records = [one for state in (setting.untuned, setting.tuned) for one in self._site.try_settings(state)]
            bad = next((one for one in records if one["status"] not in HELD), None)
            if bad:
                self._left_out.append({"id": setting.id, "reason": f"{bad['at']}: {bad['detail']}"})
            else:
                found.append(setting)
        for name, before in self._site.provisioned().items() if self._own.settings.provisioned else ():
            if files := {path: value for path, value in before.items() if path.startswith("/")}:
                found.append(Setting(name, [{"id": name, "files": files}], []))
            else:
                reason = "it is a service's, which is not switched within a run"
                self._left_out.append({"id": name, "reason": reason})
        return found


def in_force(trial: Trial, settings: Sequence[Setting]) -> Settings:
    """The settings of one side of a trial. Untuned side: all are untuned; tuned side: the tried one, or all of them, are tuned."""
    tuned = [trial.side == TUNED and trial.experiment in (one.id, ALL) for one in settings]
    states = (one.tuned if so else one.untuned for one, so in zip(settings, tuned, strict=True))
    return [entry for state in states for entry in state]
