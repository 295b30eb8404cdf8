"""The plan of the workload `lan`: every transfer, in the order of a run. Its duration, progress and run, what must be in the result, and
its suite's checks follow from it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from daq_bench.bench_model.documents.struct import Struct
from daq_bench.workloads.lan.document import Lan, Point, Quantity, Side, Trial

GBIT = 1.25e8  # B/s
TCP, RDMA = "tcp", "rdma"
IPERF, PROBE_LATENCY, READ_LATENCY = "iperf3", "netprobe latency", "ib_read_lat"
RDMA_BANDWIDTHS = ("ib_write_bw", "ib_read_bw", "ib_send_bw")
BANDWIDTHS, LATENCY = {TCP: (IPERF,), RDMA: RDMA_BANDWIDTHS}, {TCP: PROBE_LATENCY, RDMA: READ_LATENCY}
LATENCIES = tuple(LATENCY.values())
MANY_TO_ONE, ALL_TO_ALL = "many to one", "all to all"
ONE_BUILDER, ALL_BUILDERS = "one builder", "all builders"
ALL = "all together"
UNTUNED: Literal["untuned"] = "untuned"
TUNED: Literal["tuned"] = "tuned"
SIDES: tuple[Side, Side] = (UNTUNED, TUNED)
QUANTITIES: tuple[Quantity, Quantity] = ("bandwidth", "latency")
JUDGED_KINDS = ("confirmation", "crowd", "build")
KINDS = ("bandwidth", "latency", *JUDGED_KINDS)  # of transfers; the settings' trials are compared in pairs
HELD = ("applied", "unchanged")  # of a setting's record: it was in force
IPERF_BYTES_MAX = 1 << 20  # iperf3's own limit of a write
NODES_MIN = 4
Number = int | float  # as its YAML's author wrote it
Settings = list[dict[str, Any]]  # that nodes put into force, as the candidate's program takes them


class Emulated(Struct, frozen=True):
    nodes: int
    port_rate_size: int
    queue_size: int


class Building(Struct, frozen=True):
    fragment_sizes: list[int]
    in_flight: int


class Asked(Struct, frozen=True):
    """A setting of each node's port; without `untuned` its other value is the one that is found."""

    id: str
    tuned: str | int
    untuned: str | int | UnsetType = UNSET


class Trials(Struct, frozen=True):
    pairs: int
    seconds: Number
    message_size: int
    latency_size: int
    provisioned: bool
    listed: list[Asked] = msgspec.field(name="list")


class Parameters(Struct, frozen=True):
    """`workloads.lan` of a scenario, sizes in bytes. inventory/schemas/workload-lan.schema.json says what each means."""

    engine: Literal["auto", "tcp", "rdma"]
    need_size: int
    topologies: list[str]
    message_sizes: list[int]
    bidirectional_sizes: list[int]
    latency_sizes: list[int]
    seconds_per_size: Number
    warm_up_s: Number
    streams: int
    building: Building
    settings: Trials
    emulated: Emulated | None = None

    @staticmethod
    def of(parameters: Mapping[str, Any]) -> Parameters:
        """Raises ValueError."""
        try:
            return msgspec.convert(parameters, Parameters)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None

    def seconds(self, point: Point) -> Number:
        """The measured time of a transfer."""
        return self.settings.seconds if point.trial else self.seconds_per_size

    @property
    def listed(self) -> list[str]:
        return [one.id for one in self.settings.listed]


def plan(
    asked: Parameters, repetitions: int, engine: str, topologies: Sequence[Any], nodes: int, settings: Sequence[str]
) -> Iterator[Point]:
    """Every transfer between so many nodes, each once: bandwidth and latency by message size, the repetitions at the largest, many nodes at
    once where the last topology has a switch, and the trials of `settings`."""
    operations, latency = BANDWIDTHS[engine], LATENCY[engine]
    largest, last = max(asked.message_sizes), topologies[-1]
    for topology in topologies:
        for operation in operations:
            for size in asked.message_sizes:
                yield Point.between_two("bandwidth", topology, operation, size)
        for size in asked.bidirectional_sizes:
            yield Point.between_two("bandwidth", topology, operations[0], size, bidirectional=True)
        for size in asked.latency_sizes:
            yield Point.between_two("latency", topology, latency, size)
    for number in range(1, repetitions + 1):
        yield Point(f"confirmation-{number}", "confirmation", last, operations[0], False, largest, 2, None)
    if nodes > 2 and last == "switch":
        for operation in (MANY_TO_ONE, ALL_TO_ALL):
            size = min(largest, IPERF_BYTES_MAX)
            yield Point(f"crowd-{_joined(operation)}", "crowd", last, operation, False, size, nodes, None)
        for operation in (ONE_BUILDER, ALL_BUILDERS):
            for size in asked.building.fragment_sizes:
                yield Point(f"build-{_joined(operation)}-{size}", "build", last, operation, False, size, nodes, None)
    yield from _trials(asked.settings, settings, topologies[0], operations[0], latency)


def of_result(asked: Parameters, repetitions: int, found: Lan) -> list[Point]:
    """The plan on the network that a result found, with the settings that its ports took: of those that provisioning applied its transfers
    tell the names."""
    gone = {one.id for one in found.left_out}
    tried = dict.fromkeys(one.trial.experiment for one in found.transfers if one.trial)
    more = [name for name in tried if name not in (*asked.listed, ALL)] if asked.settings.provisioned else []
    settings = [*(name for name in asked.listed if name not in gone), *more]
    return list(plan(asked, repetitions, found.engine, found.network.topologies, found.network.nodes, settings))


def _trials(asked: Trials, settings: Sequence[str], topology: Any, bandwidth: str, latency: str) -> Iterator[Point]:
    """Each setting alone, and all together; both sides of each pair, untuned first in odd pairs. All experiments of a pair follow one
    another: a drift meets all alike."""
    for pair in range(1, asked.pairs + 1) if settings else ():
        sides = SIDES if pair % 2 else SIDES[::-1]
        for experiment in (*settings, ALL):
            for side in sides:
                for quantity in QUANTITIES:
                    trial = Trial(experiment, pair, side, side == sides[0], quantity)
                    of = (bandwidth, asked.message_size) if quantity == "bandwidth" else (latency, asked.latency_size)
                    name = f"setting-{_joined(experiment)}-{pair}-{side}-{quantity}"
                    yield Point(name, "setting", topology, of[0], False, of[1], 2, trial)


def _joined(words: str) -> str:
    return words.replace(" ", "-")
