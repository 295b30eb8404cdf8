"""The storage application with a multi-threaded checksum (ATLAS): what handing out chunks costs, what the threads gain, what falls back,
whether a server's share of the demand is carried, and whether every file has the checksum that it should.

Throughput is measured in pairs: a setup and the original, the single-threaded zlib, directly after one another, the original first in odd
rounds and last in even ones. All pairs of a round follow one another, so that a pair's rounds are spread over the whole time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.base.units import GB, binary_label, decimal_label, in_digits
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.documents.tools.checksum import Checksum, VariantSpeed
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.streams_checksum.document import Planned, Setup, StreamsChecksum, Variant
from daq_bench.bench_model.workloads.streams_checksum.runs import paced, unpaced
from daq_bench.bench_model.workloads.streams_checksum.setups import (
    ALL,
    ORIGINAL,
    THREADED,
    Cpus,
    application_threads,
    beyond,
    comparisons,
)
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.workloads.shared.base import Report, Workload, at_least_half
from daq_bench.rig.workloads.shared.plan import Ground, Need, Step
from daq_bench.rig.workloads.shared.site import COMPLETE, DAMAGED, Site
from daq_bench.rig.workloads.streams_checksum.application import Application, Telemetry

NAME = "streams_checksum"
ROUNDS_MIN = 4  # fewer give no interval that is worth having (bench_model.statistics.paired)
RUN_EXTRA_S = 0.7  # queues to fill, files to flush
HEADER_BYTES = 65  # daqwriter's smallest event
IDENTITY_FILE_SHARE = (
    16  # files of an identity run: so many at least, so that more than one of each large stream is closed
)


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """Its parts; how many CPUs the candidate has is not known, so that all asked threads are counted, without and with siblings.

    The last file of each stream takes its full size while it is written."""
    own = scenario.workloads[NAME]
    throughput, overhead, identity = own["throughput"], own["overhead"], own["identity"]["run_size"]
    open_files = len(own["streams"]["shares"]) * own["streams"]["file_size"]

    def step(name: str, seconds: float, size: float, what: str, times: int = 1) -> Step:
        total = math.ceil(size) + open_files if size else 0
        text = f"{what}, and a file of {own['streams']['file_size']} B for each stream = {decimal_label(total)}"
        return Step(name, seconds, size, total, text, times=times)

    points = (len(THREADED) + 1) * len(throughput["threads"]) + 1
    runs = 2 * scenario.repetitions * (len(throughput["variants"]) * 2 * len(throughput["threads"]) + 4)
    a_run = min(throughput["run_size"], ground.written(throughput["seconds"])) if throughput["sink"] == "target" else 0
    largest = throughput["run_size"] if a_run else 0
    found = [
        Step("cost of handing out chunks", 1.5 * points * overhead["repetitions"] * overhead["seconds_per_point"]),
        step("files of each variant", 5.0, identity, "identity.run_size", len(THREADED) + 2),
        replace(
            step("pairs", throughput["seconds"] + RUN_EXTRA_S, largest, "throughput.run_size", runs),
            bytes_written=a_run,
        ),
    ]
    for name, rate, seconds in rates(scenario):
        size = rate * seconds
        what = f"the {name} rate, {in_digits(rate / GB)} GB/s x {in_digits(seconds, 9)} s"
        found.append(step(f"{name} rate", seconds + size / ground.rate_bytes_per_s, size, what))
    return found


def rates(scenario: Scenario) -> list[tuple[str, float, float]]:
    """(name, one server's share in B/s at the scenario's scale, s) of the paced runs."""
    demand = scenario.workloads[NAME]["demand"]
    each = scenario.scale / demand["servers"]
    return [(name, demand[f"{name}_rate_size"] * each, float(demand[f"{name}_s"])) for name in ("sustained", "peak")]


def _memory(scenario: Scenario) -> Need:
    own = scenario.workloads[NAME]["streams"]
    each = own["queue_size"] + 2 * own["io_depth"] * own["block_size"]  # daqwriter keeps twice the depth
    size = len(own["shares"]) * each
    return Need(
        size,
        f"streams: {len(own['shares'])} queues of {binary_label(own['queue_size'])}, with the blocks in flight, need {decimal_label(size)}",
    )


def check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    """Refuses what daqwriter would refuse later, and what would give no comparison."""
    own, at = scenario.workloads[NAME], f"{scenario.file}: workloads.{NAME}"
    streams, shares = own["streams"], own["streams"]["shares"]
    if scenario.repetitions < ROUNDS_MIN or scenario.repetitions % 2:
        raise RefusedError(
            f"{scenario.file}: repetitions: {scenario.repetitions} pairs of alternating order; make it an even number of "
            f"{ROUNDS_MIN} or more"
        )
    if abs(sum(shares) - 1) > 1e-6:
        raise RefusedError(f"{at}.streams.shares: their sum is {sum(shares):g}. Make it 1")
    if max(shares) != shares[0]:
        raise RefusedError(f"{at}.streams.shares: {shares[0]:g} is not the largest. Name the largest first")
    threads = own["throughput"]["threads"]
    if threads != sorted(set(threads)):
        raise RefusedError(f"{at}.throughput.threads: {threads} is not ascending. Sort it, each number once")
    largest = math.ceil(streams["event_size"] * (1 + streams["event_spread"]))
    for key, least in (("queue_size", 2 * largest), ("file_size", largest)):
        if streams[key] < least:
            raise RefusedError(
                f"{at}.streams.{key}: {streams[key]} B is too small for events of up to {largest} B. Make it {least} B or more"
            )
    small = own["throughput"]["small_event_size"]
    for key, size in (("streams.event_size", streams["event_size"]), ("throughput.small_event_size", small)):
        if size < HEADER_BYTES:
            raise RefusedError(f"{at}.{key}: {size} B is less than an event's header. Make it {HEADER_BYTES} B or more")
    for key, size in (
        ("identity.run_size", own["identity"]["run_size"]),
        ("throughput.run_size", own["throughput"]["run_size"]),
    ):
        if size < largest:
            raise RefusedError(f"{at}.{key}: {size} B holds no event of up to {largest} B. Make it larger")
    for name, rate, _ in rates(scenario):
        if rate < 1:
            raise RefusedError(f"{at}.demand.{name}_rate_size: one server's share is below 1 B/s. Ask for more")


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/streams_checksum.json of this run."""
    tags = {"host": context.bundle.run.candidate.name, "run": context.bundle.id}
    plan = Plan(context.scenario, Telemetry(context.places.workload_file, tags))
    return run_streams_checksum(Site.of(context), plan, report)


def every_pair_should_have_been_run_in_alternating_order(context: RunContext, document: StreamsChecksum) -> None:
    """Fails when a comparison lacks a round, or when the original did not come first in every other one."""
    wanted = [(number, number % 2 == 1) for number in range(1, context.scenario.repetitions + 1)]
    short = [
        one.label
        for one in document.comparisons
        if [(pair.round, pair.reference_first) for pair in one.pairs] != wanted
    ]
    if short or not document.comparisons:
        raise AssertionError(f"pairs are missing or in the wrong order: {', '.join(short) or 'all of them'}")


def at_least_half_of_the_runs_should_count(context: RunContext, document: StreamsChecksum) -> None:
    """Fails when most runs are masked, so that nothing could be compared."""
    pairs = [pair for one in document.comparisons for pair in one.pairs]
    at_least_half("runs", [one for pair in pairs for one in (pair.reference, pair.measured)])


def every_run_that_left_files_should_have_been_read_back(context: RunContext, document: StreamsChecksum) -> None:
    """Fails when nobody looked at the files of a variant or of a paced run. The verdict judges the findings."""
    names = [one.name for one in document.verification]
    missing = [one.name for one in document.demand if one.name not in names]
    empty = [one.name for one in document.verification if not one.files]
    if missing or empty or not names:
        raise AssertionError(f"not read back: {missing}; nothing to read back: {empty}")


WORKLOAD = Workload(
    NAME,
    plan,
    run,
    action="record_streams_with_checksum",
    memory=_memory,
    check=check,
    checks=(
        every_pair_should_have_been_run_in_alternating_order,
        at_least_half_of_the_runs_should_count,
        every_run_that_left_files_should_have_been_read_back,
    ),
)


@dataclass(frozen=True)
class Plan:
    """The plan besides the site: the scenario, and the file for the paced runs' records (None: no file)."""

    scenario: Scenario
    telemetry: Telemetry | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        return self.scenario.workloads[NAME]


def document(
    plan: Plan,
    cpus: Cpus,
    identity: dict[str, Any],
    overhead: dict[str, Any],
    compared: list[dict[str, Any]],
    demand: list[dict[str, Any]],
    verification: list[dict[str, Any]],
) -> dict[str, Any]:
    """results/streams_checksum.json from its parts."""
    own = plan.parameters
    return {
        "schema_version": 1,
        "cpus": {
            "cores": list(cpus.cores),
            "order": list(cpus.order),
            "packages": cpus.packages,
            "smt": cpus.smt,
            "has_siblings": cpus.has_siblings,
        },
        "application": {
            "variant": own["application_variant"],
            "threads": application_threads(own["application_variant"], cpus),
        },
        "shares": own["streams"]["shares"],
        "event_bytes": own["streams"]["event_size"],
        "small_event_bytes": own["throughput"]["small_event_size"],
        "throughput": {key: own["throughput"][key] for key in ("variants", "threads", "sink", "seconds")},
        "rounds": plan.scenario.repetitions,
        "identity": identity,
        "overhead": overhead,
        "comparisons": compared,
        "not_measured": beyond(own["throughput"]["threads"], cpus),
        "demand": demand,
        "verification": verification,
        "limits": [],
    }


def run_streams_checksum(site: Site, plan: Plan, report: Report) -> dict[str, Any]:
    """Everything in turn; returns results/streams_checksum.json."""
    return _Runner(site, plan, report).run()


class _Runner:
    """Runs the parts and counts them for the progress display."""

    def __init__(self, site: Site, plan: Plan, report: Report) -> None:
        self._site, self._plan, self._own = site, plan, plan.parameters
        topology = site.machine.call("cpu_topology")
        self._cpus = Cpus.of(topology)
        self._application = Application(site, self._own["streams"], self._cpus, plan.scenario.seed)
        self._compared = comparisons(self._own, self._cpus)
        self._report, self._done = report, 0
        self._steps = 1 + 1 + len(THREADED) + 1 + plan.scenario.repetitions * len(self._compared) + 2
        self._verification: list[dict[str, Any]] = []

    def _say(self, text: str, seconds: float) -> None:
        self._done += 1
        self._report(text, self._done, self._steps, seconds)

    def run(self) -> dict[str, Any]:
        identity, overhead = self._overhead()
        every: tuple[Variant, ...] = (ORIGINAL, *THREADED, "fused")
        for variant in every:
            self._identity(variant)
        pairs = [self._round(number) for number in range(1, self._plan.scenario.repetitions + 1)]
        demand = [self._paced(*one) for one in rates(self._plan.scenario)]
        compared = [
            {**as_document(one), "pairs": [of_round[place] for of_round in pairs]}
            for place, one in enumerate(self._compared)
        ]
        return document(self._plan, self._cpus, identity, overhead, compared, demand, self._verification)

    def _overhead(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """({splits, wrong, combine_ns}, {event_bytes, points}) by daqwriter checksum, each thread on a CPU of its own."""
        own = self._own["overhead"]
        threads = self._cpus.threads(sorted({1, *self._own["throughput"]["threads"]}), ALL)
        points = len(threads) * (len(THREADED) + 1) + 1
        self._say("what handing out chunks costs", points * own["repetitions"] * own["seconds_per_point"])
        options = [
            f"--sizes={own['event_size']}",
            f"--threads={','.join(map(str, threads))}",
            f"--variants={','.join((ORIGINAL, *THREADED, 'fused'))}",
            f"--repetitions={own['repetitions']}",
            f"--time={own['seconds_per_point']:g}",
            f"--splits={own['split_size']}",
            f"--cpus={','.join(map(str, self._cpus.order))}",
            "--no-memory",
        ]
        limit_s = 120 + 4 * points * own["repetitions"] * own["seconds_per_point"]
        said = self._site.run_daqwriter(
            "checksum", options, "streams-checksum-overhead", Checksum, limit_s, (COMPLETE, DAMAGED)
        )
        found = {(str(row.variant), row.threads): row for row in said.variants}
        identity = {
            "splits": as_document(said.splits) if said.splits else None,
            "wrong": 1 if said.mismatch else 0,  # the first difference ends the measurement
            "mismatch": as_document(said.mismatch) if said.mismatch else None,
            "combine_ns": as_document(said.combine_ns) if said.combine_ns else None,
        }
        return identity, {
            "event_bytes": own["event_size"],
            "points": [
                _point(found.get((variant, number)), variant, number) for variant in THREADED for number in threads
            ],
        }

    def _identity(self, variant: Variant) -> None:
        """Files of this variant with as many threads as there are cores, whatever the events' sizes, looked at by other code."""
        size, name = self._own["identity"]["run_size"], f"identity-{variant}"
        self._say(f"files with the checksum of {variant}", 3 + size / 1e8)
        threads = len(self._cpus.cores) if variant in THREADED else 1
        # More threads than cores are no harm to what is computed, and one core alone would split nothing.
        setup = Setup(variant, max(2, threads) if variant in THREADED else 1, ALL, self._own["streams"]["event_size"])
        file_size = max(self._own["streams"]["event_size"] * 2, size // IDENTITY_FILE_SHARE)
        largest = math.ceil(setup.event_bytes * (1 + self._own["streams"]["event_spread"]))
        streams = {**self._own["streams"], "file_size": max(file_size, largest)}
        application = Application(self._site, streams, self._cpus, self._plan.scenario.seed)
        smallest = "--smallest-parallel=1"  # every event is shared out
        with application.directory(name) as directory:
            written = application.run(setup, directory, name, size / 1e8, f"--bytes={size}", smallest)
            self._verification.append(application.verified(setup, directory, name, written.totals.written_bytes))

    def _round(self, number: int) -> list[dict[str, Any]]:
        """One pair of each comparison; the reference comes first in odd rounds."""
        return [self._pair(number, one, place) for place, one in enumerate(self._compared)]

    def _pair(self, number: int, one: Planned, place: int) -> dict[str, Any]:
        reference_first = number % 2 == 1
        seconds = self._own["throughput"]["seconds"]
        self._say(f"round {number}: {one.label} against the original", 2 * (seconds + RUN_EXTRA_S))
        runs = {}
        for key in ("reference", "measured") if reference_first else ("measured", "reference"):
            setup = one.reference if key == "reference" else one.setup
            runs[key] = self._throughput(setup, f"{number}-{place}-{key}")
        return {"round": number, "reference_first": reference_first, **runs}

    def _throughput(self, setup: Setup, name: str) -> dict[str, Any]:
        own = self._own["throughput"]
        limits = [f"--duration={own['seconds']:g}"]
        if own["sink"] == "null":
            return unpaced(self._application.run(setup, None, name, own["seconds"], *limits), own["seconds"])
        limits.append(f"--bytes={own['run_size']}")
        with self._application.directory(name) as directory:
            return unpaced(self._application.run(setup, directory, name, own["seconds"], *limits), own["seconds"])

    def _paced(self, name: str, rate: float, seconds: float) -> dict[str, Any]:
        """One paced run of the application as it is to be deployed, and the look at its files."""
        own = self._own
        self._say(f"the {name} rate, {in_digits(rate / GB)} GB/s", seconds + rate * seconds / 1e9)
        variant = own["application_variant"]
        setup = Setup(variant, application_threads(variant, self._cpus), ALL, own["streams"]["event_size"])
        options = [f"--rate={round(rate)}", f"--duration={seconds:g}"]
        if self._plan.telemetry:
            options += self._plan.telemetry.options
        with self._application.directory(name) as directory:
            found = paced(self._application.run(setup, directory, name, seconds, *options), seconds)
            self._verification.append(self._application.verified(setup, directory, name, found["written_bytes"]))
        full = own["demand"][f"{name}_rate_size"] / own["demand"]["servers"]
        return {
            "name": name,
            "variant": setup.variant,
            "threads": setup.threads,
            "full_bytes_per_s": full,
            "asked_bytes_per_s": rate,
            "seconds": seconds,
            **found,
        }


def _point(row: VariantSpeed | None, variant: str, threads: int) -> dict[str, Any]:
    return {
        "variant": variant,
        "threads": threads,
        "ns": row.ns_samples if row else [],
        "share_ns": row.share_ns_samples if row else [],
        "reason": None if row else "a wrong checksum ended the measurement",
    }
