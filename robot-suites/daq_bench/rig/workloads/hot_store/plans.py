"""The plans that the hot store's workload gives `on_candidate/hot_store_nodes.py`, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.workloads.hot_store.figures import SAMPLE_S

Plan = dict[str, Any]
Step = dict[str, Any]

WARM_UP_S = 1.0
START_S = 60.0  # time that a step may take beyond its own: reserving the store's room, forming a cluster, an idle machine's noise
NODE_TIMEOUT_MS = 2000
REDIS_MAXMEMORY_BYTES = 1 << 30
PATIENCE_S = 30.0
DRAINED_S = 1.0  # consumers are done when there was nothing to claim for this long
DRAIN_FACTOR = 20  # consumers may take this many times as long as the producers
WORK_S = 2.0  # the consumers' work together; one of them is killed in its middle


@dataclass(frozen=True)
class Tools:
    """`output`: the candidate's folder for results. `memory`: a folder in memory that a plan makes and removes."""

    hotstore: Path
    output: Path
    memory: Path

    def bench(
        self,
        name: str,
        seconds: float,
        value_bytes: int,
        store: Sequence[str],
        *options: str,
        warm_up_s: float = WARM_UP_S,
    ) -> list[str]:
        return [
            str(self.hotstore),
            "bench",
            *store,
            f"--value-size={value_bytes}",
            f"--seconds={seconds:g}",
            f"--warm-up={warm_up_s:g}",
            f"--interval={SAMPLE_S:g}",
            f"--json={self.output / name}.json",
            *options,
        ]

    def verify(self, name: str, value_bytes: int, store: Sequence[str]) -> list[str]:
        return [
            str(self.hotstore), "verify", *store, f"--value-size={value_bytes}", "--ack-log={folder}/acks",
            f"--json={self.output / name}.json",
        ]  # fmt: skip


def embedded(directory: str, capacity: int) -> list[str]:
    return ["--engine=lmdb", f"--dir={directory}", f"--capacity={capacity}"]


def distributed(engine: str, replicas: int = 0, location: str = "hash") -> list[str]:
    return [
        f"--engine={engine}", "--endpoint={endpoint}", f"--replicas={replicas}", f"--location={location}",
        f"--patience={PATIENCE_S:g}",
    ]  # fmt: skip


def process(name: str, argv: Sequence[str], at: str | None = None, kill_after_s: float | None = None) -> dict[str, Any]:
    return {"name": name, "argv": list(argv), "at": at, "kill_after_s": kill_after_s}


def run(processes: Sequence[dict[str, Any]], seconds: float, **more: Any) -> Step:
    return {"do": "run", "processes": list(processes), "timeout_s": seconds + START_S, **more}


def began(kind: str, owner: str = "consumer") -> str:
    """The log that `hotstore bench` makes when its store is open and its threads begin; `consumer` is its own default owner."""
    return f"{{folder}}/acks/{kind}-{owner}-0.acks"


def plan(tools: Tools, steps: Sequence[Step], masters: int = 0, **more: Any) -> Plan:
    return {
        "folder": str(tools.memory),
        "network": "loopback",
        "masters": masters,
        "maxmemory_bytes": REDIS_MAXMEMORY_BYTES,
        "node_timeout_ms": NODE_TIMEOUT_MS,
        "steps": list(steps),
        **more,
    }


def consumers_of_which_one_dies(
    tools: Tools, name: str, store: Sequence[str], value_bytes: int, events: int, lease_s: float
) -> list[Step]:
    """Events are put; then three processes claim and complete them, and one of them is killed in mid-work."""
    log = "--ack-log={folder}/acks"
    feed = tools.bench(
        f"{name}-feed", 60, value_bytes, store, "--consumers=0", f"--events={events}", log, "--owner=feed"
    )
    hold_s = 6 * WORK_S / events  # six threads share them
    claim = ["--producers=0", "--consumers=2", "--consume=getany", f"--lease={lease_s:g}", f"--hold={hold_s:g}", log]
    work = [
        process(
            f"consumer {number}",
            tools.bench(
                f"{name}-consumer-{number}", 60, value_bytes, store, *claim, f"--owner=c{number}",
                f"--until-empty={2 * lease_s:g}",
            ),
            kill_after_s=WORK_S / 2 if number == 0 else None,
        )
        for number in range(3)
    ]  # fmt: skip
    check = tools.verify(f"{name}-verify", value_bytes, store)
    begun = began("consume", "c0")
    return [run([process("feed", feed)], 60), run(work, 60, kill_from=begun), run([process("verify", check)], 60)]


def load_that_is_killed(
    tools: Tools,
    name: str,
    store: Sequence[str],
    value_bytes: int,
    seconds: float,
    between: Sequence[Step],
    killed: bool,
) -> list[Step]:
    """Put beside get-and-remove, with `killed` ended by kill -9 in mid-run; then `between`, and the comparison."""
    log = "--ack-log={folder}/acks"
    argv = tools.bench(f"{name}-load", seconds * (4 if killed else 1), value_bytes, store, log)
    load = process("load", argv, kill_after_s=seconds if killed else None)
    check = tools.verify(f"{name}-verify", value_bytes, store)
    begun = {"kill_from": began("put")} if killed else {}
    return [run([load], 4 * seconds, **begun), *between, run([process("verify", check)], PATIENCE_S)]


def node_that_is_lost(tools: Tools, name: str, value_bytes: int, seconds: float, replicas: int) -> list[Step]:
    """A master is killed under load and another takes over; at last it comes back as a replica, and the comparison is made again."""
    store = distributed("redis-cluster", replicas)
    log = "--ack-log={folder}/acks"
    feed = process(
        "feed", tools.bench(f"{name}-feed", 3 * seconds, value_bytes, store, "--consumers=0", "--wait=0.2", log)
    )
    return [
        run([feed], 3 * seconds + PATIENCE_S, kill_node=0, kill_after_s=seconds, kill_from=began("put")),
        run([process("verify", tools.verify(f"{name}-lost", value_bytes, store))], PATIENCE_S),
        {"do": "replace", "node": 0},
        run([process("verify again", tools.verify(f"{name}-verify", value_bytes, store))], PATIENCE_S),
    ]


def scale_out(
    tools: Tools, name: str, deployment: str, nodes: int, parameters: dict[str, Any], total: int
) -> tuple[Plan, list[str], list[str]]:
    """The plan, and the names of the producers' and of the consumers' documents. `total`: servers, replicas included.

    base: the producer of node i runs where node i is, and puts events that its location map keeps there.
    detached: producers are clients, and any node may have any event."""
    replicas, seconds, value = parameters["replicas"], parameters["seconds"], parameters["value_size"]
    base = deployment == "base"
    # A cluster has three masters at the least; a single node is a plain server.
    engine = "redis-cluster" if total > 1 else "redis"
    store = distributed(engine, replicas, "modulo" if base else "hash")
    networked = parameters["network"] == "namespaces"
    processes, producers, consumers = [], [], []
    take = [
        "--producers=0", f"--consumers={parameters['consumers_per_node']}", "--consume=getany", f"--until-empty={DRAINED_S:g}",
    ]  # fmt: skip
    for node in range(nodes):
        producers.append(f"{name}-producer-{node}")
        consumers.append(f"{name}-consumer-{node}")
        put = ["--consumers=0", f"--first-event={node}", f"--stride={nodes}"]
        # From the first operation to the last: every event that was put is then consumed, and every byte of it counted.
        putting = tools.bench(producers[-1], seconds, value, store, *put, warm_up_s=0)
        taking = tools.bench(
            consumers[-1], DRAIN_FACTOR * seconds, value, store, *take, f"--owner=c{node}", warm_up_s=0
        )
        places = (f"node{node}" if base else f"client{nodes + node}", f"client{node}") if networked else (None, None)
        processes += [process(producers[-1], putting, places[0]), process(consumers[-1], taking, places[1])]
    made = plan(
        tools, [run(processes, DRAIN_FACTOR * seconds)], masters=nodes, replicas=replicas, cluster=engine == "redis-cluster",
        network=parameters["network"], clients=2 * nodes,
    )  # fmt: skip
    return made, producers, consumers
