"""The hot store (DAQDB paper): semantics on every engine, one node against value size beside Redis, kills, scale out.

Everything on the candidate runs under `on_candidate/hot_store_nodes.py`, which ends servers, network namespaces and folders with itself."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.documents.struct import Kind
from daq_bench.bench_model.documents.tools.hotstore import HotstoreBench, HotstoreSemantics, HotstoreVerify
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.hot_store.document import HotStoreRuns
from daq_bench.bench_model.workloads.hot_store.figures import (
    BACKLOG_PARTS,
    CONSUMER,
    ENGINES,
    HEIRS,
    NODE,
    RESTART,
    SAMPLE_S,
)
from daq_bench.bench_model.workloads.hot_store.runs import loss_of, raw_of
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.hot_store import plans
from daq_bench.rig.workloads.shared.base import Report, Workload
from daq_bench.rig.workloads.shared.plan import Ground, Need, Step
from daq_bench.rig.workloads.shared.site import left

NAME = "hot_store"
CLUSTER_MASTERS, CLUSTER_REPLICAS = 3, 1
EMPTY_SCAN_S = 3.0
KILL_S = 4.0  # starting servers, and the comparison
WRITEBACK_S = 30.0  # vm.dirty_expire_centisecs: the age at which Linux writes a page back
CONSUMER_KILLS_MOST = (
    3  # on a busy machine the others may have done all before: a consumer that held nothing shows nothing
)
SEMANTICS_CAPACITY = 64 << 20
TARGET_STORE = "hot-store"
TEXTS = {
    RESTART: "Every acknowledged operation is there after kill -9 and a restart",
    CONSUMER: "A killed consumer's events come back, and none is completed twice",
    NODE: "The loss of a node loses no acknowledged event",
}


def _of(scenario: Scenario) -> dict[str, Any]:
    return scenario.workloads[NAME]


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """The parts. Only the points on the target write there: their store once, and again as often as the kernel writes its pages back."""
    own = _of(scenario)
    scale, size = own["scale_out"], own["capacity_size"] if own.get("target_too", True) else 0
    seconds = own["seconds_per_point"] + 2 * plans.WARM_UP_S
    room = f"the hot store on the target, capacity_size {decimal_label(size)} ({size} B)"
    points = len(turns(own, scenario.repetitions))
    written = min(ground.written(seconds), size * (1 + seconds / WRITEBACK_S))
    semantics_s = 4 * (own["semantics"]["lease_s"] + EMPTY_SCAN_S)
    return [
        Step("points in memory", seconds, times=2 * points),
        *([Step("points on the target", seconds, written, size, room, times=points)] if size else []),
        Step("clients", seconds, times=len(own["client_counts"])),
        Step("semantics", semantics_s, times=len(ENGINES)),
        Step("kills", own["kills"]["seconds"] + 2 * EMPTY_SCAN_S + KILL_S, times=2 * len(ENGINES)),
        Step("scale out", scale["seconds"] + 6.0, times=len(scale["nodes"]) * len(scale["deployments"])),
    ]


def turns(parameters: dict[str, Any], repetitions: int) -> list[tuple[int, int]]:
    """(repetition, value size) in the order of measuring: a size's repetitions lie a whole pass apart."""
    return [(number, size) for number in range(1, repetitions + 1) for size in parameters["value_sizes"]]


def _memory(scenario: Scenario) -> Need:
    size = _of(scenario)["capacity_size"]
    return Need(size, f"capacity_size: the hot store's fast level needs {size} B in memory")


def check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    parameters = _of(scenario)
    least = 8 * max([*parameters["value_sizes"], parameters["client_value_size"]])
    if parameters["capacity_size"] < max(least, SEMANTICS_CAPACITY):
        raise RefusedError(
            f"{scenario.file}: workloads.hot_store.capacity_size: {parameters['capacity_size']} B are too little for a load. "
            f"Give {max(least, SEMANTICS_CAPACITY)} B or more"
        )
    scale = parameters["scale_out"]
    few = [nodes for nodes in scale["nodes"] if 1 < nodes < CLUSTER_MASTERS]
    if few:
        raise RefusedError(
            f"{scenario.file}: workloads.hot_store.scale_out.nodes: {few[0]} nodes are no Redis Cluster, which has three masters at "
            "the least. Give 1, and 3 or more"
        )


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/hot_store_runs.json of this run."""
    scenario = context.scenario
    return Campaign(HotSite.of(context), scenario.workloads[NAME], scenario.repetitions, scenario.seed, report).run()


def every_value_size_should_have_been_measured(context: RunContext, store: HotStoreRuns) -> None:
    """Fails when a point of a repetition is missing."""
    asked = turns(context.scenario.workloads[NAME], context.scenario.repetitions)
    measured = [(point.repetition, point.value_bytes) for point in store.points]
    if measured != asked:
        raise AssertionError(f"asked for (repetition, value size in B) {asked}, measured {measured}")


def every_row_of_the_matrix_should_be_there_for_every_engine(context: RunContext, store: HotStoreRuns) -> None:
    """Fails when `hotstore semantics` was not asked on an engine, gave other rows there, or nothing was killed on it."""
    killed = {row.engine for row in store.losses}
    raw = raw_of(context.raw)
    rows = {tuple(row["id"] for row in raw(store.semantics[engine])["rows"]) for engine in ENGINES}
    if killed != set(ENGINES) or len(rows) != 1:
        raise AssertionError(
            f"killed on {sorted(killed)}; {len(rows)} different lists of rows on {len(ENGINES)} engines"
        )


def every_deployment_should_have_been_measured(context: RunContext, store: HotStoreRuns) -> None:
    """Fails when a deployment or a number of nodes is missing."""
    asked = context.scenario.workloads[NAME]["scale_out"]
    wanted = {(kind, nodes) for kind in asked["deployments"] for nodes in asked["nodes"]}
    found = {(point.deployment, point.nodes) for point in store.scale_out.points}
    if wanted != found:
        raise AssertionError(f"not measured: {sorted(wanted - found)}")


WORKLOAD = Workload(
    NAME,
    plan,
    run,
    action="put_claim_and_remove_events",
    memory=_memory,
    check=check,
    stem="hot_store_runs",
    program="hotstore",
    checks=(
        every_value_size_should_have_been_measured,
        every_row_of_the_matrix_should_be_there_for_every_engine,
        every_deployment_should_have_been_measured,
    ),
)


@dataclass(frozen=True)
class HotSite:
    """The workload's places. `scratch`: on the target. `work`: the tools' output on the candidate; `raw`: the same in the bundle."""

    machine: Machine
    tools: plans.Tools
    scratch: Path
    work: Path
    raw: Path

    @staticmethod
    def of(context: RunContext) -> HotSite:
        work, run_id = context.places.raw, context.bundle.path.name
        tools = plans.Tools(context.places.hotstore, work, Path("/dev/shm") / f"daq-hot-store-{run_id}")
        return HotSite(context.machine, tools, context.scratch, work, context.raw)

    def carry_out(self, plan: plans.Plan) -> list[dict[str, Any]]:
        """Returns the result of each step. Raises BenchError when a process failed by itself, also one that was to be killed."""
        timeout_s = 120 + sum(step.get("timeout_s", plans.START_S + step.get("seconds", 0)) for step in plan["steps"])
        done: list[dict[str, Any]] = self.machine.call("hot_store_nodes", json.dumps(plan), timeout_s=timeout_s)
        for step, said in zip(plan["steps"], done, strict=True):
            meant = {one["name"] for one in step.get("processes", []) if one.get("kill_after_s") is not None}
            for one in said.get("processes", []):
                ended = one["name"] in meant and one["returncode"] == -signal.SIGKILL
                if not ended and one["returncode"] not in (0, 1, 3):
                    raise BenchError(
                        f"hotstore ({one['name']}) ended with exit status {one['returncode']}: {one['stderr']}"
                    )
        return done

    def keep(self, name: str) -> HotstoreBench:
        """Brings `name`.json of hotstore bench into the bundle; raises BenchError where it is no whole answer."""
        return self.kept(name, HotstoreBench)

    def kept(self, name: str, kind: type[Kind]) -> Kind:
        """The same of any of hotstore's commands."""
        found = left(self.machine, None, f"hotstore ({name})", self.work, self.raw, name, kind)
        if isinstance(found, HotstoreBench) and found.status != "complete":
            raise BenchError(f"hotstore bench ({name}) ended as {found.status}: {found.error or 'no reason given'}")
        return found


class Campaign:
    """The whole workload on one site."""

    def __init__(self, site: HotSite, parameters: dict[str, Any], repetitions: int, seed: int, report: Report) -> None:
        self.site, self.tools, self.parameters, self.seed, self.report = site, site.tools, parameters, seed, report
        self.turns = turns(parameters, repetitions)
        self.steps = len(self.turns) + len(parameters["client_counts"]) + 2 * len(ENGINES) + len(
            parameters["scale_out"]["nodes"]
        ) * len(parameters["scale_out"]["deployments"])  # fmt: skip
        self.step = 0

    def _begin(self, text: str, seconds: float) -> None:
        self.step += 1
        self.report(text, self.step, self.steps, seconds)

    def run(self) -> dict[str, Any]:
        """results/hot_store_runs.json: which raw documents hold what. `bench_model.workloads.hot_store.runs` makes the figures of them."""
        parameters = self.parameters
        scale = parameters["scale_out"]
        return {
            "schema_version": 1,
            "seed": self.seed,
            "seconds_per_point": parameters["seconds_per_point"],
            "capacity_bytes": parameters["capacity_size"],
            "redis_clients": parameters["redis_clients"],
            "client_value_bytes": parameters["client_value_size"],
            "memory_folder": "/dev/shm",
            "points": [self._point(repetition, size) for repetition, size in self.turns],
            "clients": [self._clients(count) for count in parameters["client_counts"]],
            "semantics": {engine: self._semantics(engine) for engine in ENGINES},
            "losses": [row for engine in ENGINES for row in self._kills(engine)],
            "scale_out": {
                "value_bytes": scale["value_size"],
                "replicas": scale["replicas"],
                "network": scale["network"],
                "consumers_per_node": scale["consumers_per_node"],
                "points": [self._scale(kind, nodes) for nodes in scale["nodes"] for kind in scale["deployments"]],
            },
        }

    def _point(self, repetition: int, value_bytes: int) -> dict[str, Any]:
        """Measures the embedded store and Redis in turns; which one is first alternates for a size, and between neighbouring sizes."""
        seconds, name = self.parameters["seconds_per_point"], f"{value_bytes}-repetition-{repetition}"
        self._begin(f"values of {value_bytes} B, repetition {repetition}", (3 * seconds) + 6)
        embedded, redis, drive = f"hot-store-{name}", f"hot-store-redis-{name}", None
        place = self.parameters["value_sizes"].index(value_bytes) + repetition
        for side in ("embedded", "redis") if place % 2 == 1 else ("redis", "embedded"):
            if side == "embedded":
                self._embedded_run(embedded, value_bytes, "{folder}/store")
            else:
                self._redis_run(redis, value_bytes, seconds)
        if self.parameters.get("target_too", True):
            drive = f"hot-store-target-{name}"
            try:
                self._embedded_run(drive, value_bytes, str(self.site.scratch / TARGET_STORE))
            finally:
                self._remove_target_store()
        return {
            "repetition": repetition,
            "value_bytes": value_bytes,
            "embedded": embedded,
            "redis": redis,
            "drive": drive,
        }

    def _embedded_run(self, name: str, value_bytes: int, directory: str, clients: int = 1) -> None:
        capacity, seconds = self.parameters["capacity_size"], self.parameters["seconds_per_point"]
        options = [f"--backlog={capacity // BACKLOG_PARTS}", f"--producers={clients}", f"--consumers={clients}"]
        argv = self.tools.bench(name, seconds, value_bytes, plans.embedded(directory, capacity), *options)
        self.site.carry_out(plans.plan(self.tools, [plans.run([plans.process(name, argv)], seconds)]))
        self.site.keep(name)

    def _redis_run(self, name: str, value_bytes: int, seconds: float) -> None:
        step = {
            "do": "reference", "value_bytes": value_bytes, "seconds": seconds, "sample_s": SAMPLE_S,
            "clients": self.parameters["redis_clients"],
        }  # fmt: skip
        said = self.site.carry_out(plans.plan(self.tools, [step], masters=1))[0]
        (self.site.raw / f"{name}.json").write_text(json.dumps(said, indent=1), encoding="utf-8")

    def _remove_target_store(self) -> None:
        store = self.site.scratch / TARGET_STORE
        for name in ("data.mdb", "lock.mdb", "hotstore.level", "hotstore.not-synced"):
            self.site.machine.remove(store / name)
        self.site.machine.run(["rmdir", "--", store], timeout_s=60)

    def _clients(self, count: int) -> dict[str, Any]:
        seconds = self.parameters["seconds_per_point"]
        self._begin(f"{count} clients of each kind", seconds + 2)
        name = f"hot-store-clients-{count}"
        self._embedded_run(name, self.parameters["client_value_size"], "{folder}/store", count)
        return {"clients": count, "document": name}

    def _semantics(self, engine: str) -> str:
        asked, name = self.parameters["semantics"], f"hot-store-semantics-{engine}"
        self._begin(f"semantics on {engine}", 4 * (asked["lease_s"] + EMPTY_SCAN_S))
        replicas = CLUSTER_REPLICAS if engine == "redis-cluster" else 0
        store = plans.distributed(engine, replicas)
        masters = CLUSTER_MASTERS if replicas else 1
        if engine == "lmdb":
            masters = 0
            store = [
                *plans.embedded("{folder}/fast", SEMANTICS_CAPACITY), "--level2-dir={folder}/large",
                f"--level2-capacity={SEMANTICS_CAPACITY}",
            ]  # fmt: skip
        else:
            store.append("--level2-endpoint={endpoint}")
        argv = [
            str(self.tools.hotstore), "semantics", *store, f"--consumers={asked['consumers']}", f"--events={asked['events']}",
            f"--lease={asked['lease_s']:g}", f"--seed={self.seed}", f"--json={self.tools.output / name}.json",
        ]  # fmt: skip
        steps = [plans.run([plans.process(name, argv)], 20 * asked["lease_s"] + asked["events"] / 20)]
        self.site.carry_out(plans.plan(self.tools, steps, masters=masters, replicas=replicas, cluster=bool(replicas)))
        self.site.kept(name, HotstoreSemantics)
        return name

    def _kills(self, engine: str) -> list[dict[str, Any]]:
        asked, value = self.parameters["kills"], self.parameters["client_value_size"]
        self._begin(f"kills on {engine}", 2 * asked["seconds"] + 4 * EMPTY_SCAN_S)
        replicas = CLUSTER_REPLICAS if engine == "redis-cluster" else 0
        if engine == "lmdb":
            store, servers = plans.embedded("{folder}/store", self.parameters["capacity_size"]), {}
        else:
            store = plans.distributed(engine, replicas)
            masters = CLUSTER_MASTERS if replicas else 1
            servers = {"masters": masters, "replicas": replicas, "cluster": bool(replicas), "append_only": True}
        lease_s = self.parameters["semantics"]["lease_s"]
        rows = []
        for attempt in range(1, CONSUMER_KILLS_MOST + 1):
            name = f"hot-store-consumers-{engine}{f'-attempt-{attempt}' if attempt > 1 else ''}"
            steps = plans.consumers_of_which_one_dies(self.tools, name, store, value, asked["events"], lease_s)
            row = self._killed(CONSUMER, engine, name, steps, servers)
            heirs = [f"{name}-consumer-{number}" for number in range(1, HEIRS + 1)]
            held = sum([self.site.keep(heir).returned_events for heir in heirs]) > 0
            if held or loss_of({**row, "heirs": []}, raw_of(self.site.raw))["lost"]:  # a loss is never measured away
                break
        rows.append({**row, "heirs": heirs})
        if engine == "redis-cluster":
            name = f"hot-store-node-{engine}"
            steps = plans.node_that_is_lost(self.tools, name, value, asked["seconds"], replicas)
            rows.append(self._killed(NODE, engine, name, steps, {**servers, "append_only": False}))
        else:
            name = f"hot-store-restart-{engine}"
            between = [] if engine == "lmdb" else [{"do": "restart"}]
            steps = plans.load_that_is_killed(
                self.tools, name, store, value, asked["seconds"], between, engine == "lmdb"
            )
            rows.append(self._killed(RESTART, engine, name, steps, servers))
        return rows

    def _killed(
        self, id_: str, engine: str, name: str, steps: list[plans.Step], servers: dict[str, Any]
    ) -> dict[str, Any]:
        self.site.carry_out(plans.plan(self.tools, steps, **servers))
        verified, least = f"{name}-verify", self.parameters["kills"]["acknowledged_min"]
        self.site.kept(verified, HotstoreVerify)
        return {
            "id": id_,
            "text": TEXTS[id_],
            "engine": engine,
            "verify": verified,
            "acknowledged_min": least,
            "heirs": [],
        }

    def _scale(self, deployment: str, nodes: int) -> dict[str, Any]:
        asked = self.parameters["scale_out"]
        self._begin(f"{deployment} deployment, {nodes} nodes", asked["seconds"] + 8)
        replicas = asked["replicas"] if nodes >= CLUSTER_MASTERS else 0
        name = f"hot-store-{deployment}-{nodes}"
        plan, producers, consumers = plans.scale_out(
            self.tools, name, deployment, nodes, {**asked, "replicas": replicas}, nodes * (1 + replicas)
        )
        said = self.site.carry_out(plan)[0]
        for each in (*producers, *consumers):
            self.site.keep(each)
        return {
            "deployment": deployment,
            "nodes": nodes,
            "producers": producers,
            "consumers": consumers,
            "network_bytes": said["network_bytes"],
            "drained_s": plans.DRAINED_S,
        }
