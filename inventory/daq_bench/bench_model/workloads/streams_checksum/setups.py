"""The setups that `streams_checksum` compares on a candidate; they follow from the scenario's parameters and its cores alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from daq_bench.bench_model.workloads.streams_checksum.document import Placement, Planned, Setup, Variant

ORIGINAL: Final = "zlib"
THREADED: tuple[Variant, ...] = ("thread-per-chunk", "pool-cv", "pool-busy")
CORES: Final = "cores"  # a placement: one CPU of each physical core
ALL: Final = "all"
PLACEMENTS: tuple[Placement, ...] = (CORES, ALL)


@dataclass(frozen=True)
class Cpus:
    """The candidate's usable CPUs (on_candidate/reading/cpu_topology.py). `order`: one CPU of each core first, their siblings behind."""

    cores: tuple[int, ...]
    order: tuple[int, ...]
    packages: int | None
    smt: str | None

    @staticmethod
    def of(topology: dict[str, Any]) -> Cpus:
        cpus = sorted(topology["cpus"], key=lambda one: (one["thread"], one["core"]))
        packages = {one["package"] for one in cpus}
        return Cpus(
            cores=tuple(one["cpu"] for one in cpus if one["thread"] == 0),
            order=tuple(one["cpu"] for one in cpus),
            packages=None if None in packages else len(packages),
            smt=topology["smt"],
        )

    @property
    def has_siblings(self) -> bool:
        return len(self.order) > len(self.cores)

    def of_placement(self, placement: Placement) -> tuple[int, ...]:
        return self.cores if placement == CORES else self.order

    def threads(self, asked: Sequence[int], placement: Placement) -> list[int]:
        """The numbers of threads that have a CPU each, the whole placement's included."""
        most = len(self.of_placement(placement))
        return sorted({*(number for number in asked if number <= most), most})


def application_threads(variant: Variant, cpus: Cpus) -> int:
    return len(cpus.cores) if variant in THREADED else 1


def comparisons(parameters: dict[str, Any], cpus: Cpus) -> list[Planned]:
    """All pairs in the order in which a round measures them.

    Where the CPUs have siblings there are two series for each variant, else every CPU is a physical core."""
    event, small = parameters["streams"]["event_size"], parameters["throughput"]["small_event_size"]
    variants: list[Variant] = parameters["throughput"]["variants"]
    asked: list[int] = parameters["throughput"]["threads"]
    original = Setup(ORIGINAL, 1, ALL, event)
    found = []
    for variant in variants:
        found.append(Planned("switched-off", f"{variant}, 1 thread", Setup(variant, 1, ALL, event), original))
        for placement in PLACEMENTS if cpus.has_siblings else PLACEMENTS[1:]:
            for threads in cpus.threads(asked, placement):
                if threads > 1 or placement == CORES:
                    label = f"{variant}, {threads} thread{'s' if threads > 1 else ''}"
                    setup = Setup(variant, threads, placement, event)
                    found.append(Planned("threads", label, setup, original))
    first, cores = variants[0], len(cpus.cores)
    found.append(
        Planned(
            "small-events",
            f"{first}, {cores} threads, small events",
            Setup(first, cores, ALL, small),
            Setup(ORIGINAL, 1, ALL, small),
        )
    )
    own = parameters["application_variant"]
    found.append(
        Planned("application", f"{own}, as deployed", Setup(own, application_threads(own, cpus), ALL, event), original)
    )
    found.append(Planned("ceiling", "no checksum at all", Setup("off", 1, ALL, event), original))
    if cpus.has_siblings:
        found.append(
            Planned(
                "smt",
                f"{first}, siblings added",
                Setup(first, len(cpus.order), ALL, event),
                Setup(first, cores, CORES, event),
            )
        )
    return found


def beyond(asked: Sequence[int], cpus: Cpus) -> list[dict[str, Any]]:
    """The numbers of threads that were asked for and that the candidate has no CPUs for: {threads, reason}."""
    count, cores = len(cpus.order), len(cpus.cores)
    have = f"{cores} physical core{'s' if cores > 1 else ''}"
    have += f" and {count} CPUs with their siblings" if cpus.has_siblings else ""
    return [{"threads": number, "reason": f"the candidate has {have}"} for number in asked if number > count]
