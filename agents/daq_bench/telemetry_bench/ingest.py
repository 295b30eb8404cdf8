"""150 simulated agents into one InfluxDB on this machine: the points per second that it sustains, that none is lost, that the agents'
memory is bounded, and how an outage of the server ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.units import MIB
from daq_bench.bench_rounds import columns
from daq_bench.bench_rounds.criteria import Criterion, at_most, each
from daq_bench.bench_rounds.measuring.rounds import Contender, Point
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import Tools
from daq_bench.bench_rounds.part import Column, Documents, Part, Settings
from daq_bench.telemetry_bench import backlog
from daq_bench.telemetry_bench.fleet_trial import Trial, run_trial
from daq_bench.telemetry_bench.influx import Server, influxd, require_influxd, version

AGENTS = 150
PERIOD_S = 1.0  # of an agent at the nominal rate
FACTORS, QUICK_FACTORS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0), (0.5, 1.0, 2.0)
NOMINAL = 1.0
OUTAGE_S = 5.0
BEFORE_OUTAGE_S = 5.0
DRAIN_S = 120.0
OFFERED_MIN = 0.99  # of the demanded load; with less the simulator, not the server, was measured
# Our choice, from no requirement: the agents retry after 10 s at the latest, and then have to work off the outage.
CATCH_UP_MAX_S = 30.0
MEMORY_BYTES_MAX = 64 * MIB  # of each agent, as of the real one
POINT_BYTES = 260  # about, for a line in the spool, and for the same point in the server's log and blocks
POINTS_PER_SAMPLE = 160  # about

FLEET, SERVER = "agents", "InfluxDB"
OUTAGE, DISK = "outage of 5 s", "disk use"


def settle_s(settings: Settings) -> float:
    """The first samples create the series, which costs more than later ones."""
    return settings.seconds(8.0, 4.0)


def window_s(settings: Settings) -> float:
    return settings.seconds(30.0, 8.0)


def after_outage_s(settings: Settings) -> float:
    return settings.seconds(45.0, 20.0)


def factors(settings: Settings) -> tuple[float, ...]:
    return QUICK_FACTORS if settings.quick else FACTORS


@dataclass
class Scan:
    """The findings of the rates so far: `ended` says why higher ones are not tried."""

    sustained: float | None = None
    ended: str | None = None
    stored: int = 0


def measure_rate(settings: Settings, tools: Tools, scan: Scan, factor: float) -> Sample:
    """Measures all agents at `factor` samples a second each."""
    if scan.ended:
        return Sample(more={"not_tried": 1.0, "factor": factor})
    sample = run(tools, scan, trial(settings, factor, f"x{factor:g}"))
    if sample.more["offered_share"] < OFFERED_MIN:  # perhaps something else ran at that moment
        sample = run(tools, scan, trial(settings, factor, f"x{factor:g}-again"))
    if sample.more["offered_share"] < OFFERED_MIN:
        scan.ended = "not offered"
    elif sample.more["growth"] > backlog.GROWTH_MAX:
        scan.ended = "not sustained"
    else:
        scan.sustained = factor
    return sample


def measure_outage(settings: Settings, tools: Tools, scan: Scan) -> Sample:
    """At the highest sustained rate the server stops answering for a while."""
    if scan.sustained is None:
        raise BenchError("no rate was sustained, so that none could be taken up again after an outage")
    window = BEFORE_OUTAGE_S + OUTAGE_S + after_outage_s(settings)
    asked = trial(settings, scan.sustained, "outage")
    return run(tools, scan, replace(asked, window_s=window, before_outage_s=BEFORE_OUTAGE_S, outage_s=OUTAGE_S))


def measure_disk(tools: Tools, scan: Scan) -> Sample:
    """Measures last how much the points of all rates take, once they are all in the server's blocks."""
    server: Server = tools.held["server"]
    if not scan.stored:
        raise BenchError("no point was stored")
    before = server.disk_bytes()
    server.settle(tools)
    after = server.disk_bytes()
    per_million = 1e6 / scan.stored
    more = {
        "disk_bytes_per_million": after * per_million,
        "disk_bytes_per_million_at_once": before * per_million,
        "stored": float(scan.stored),
    }
    return Sample(more=more)


def trial(settings: Settings, factor: float, name: str) -> Trial:
    """At `factor` times the nominal rate."""
    return Trial(name, AGENTS, PERIOD_S / factor, settle_s(settings), window_s(settings), DRAIN_S)


def run(tools: Tools, scan: Scan, asked: Trial) -> Sample:
    sample = run_trial(tools, tools.held["server"], asked)
    scan.stored += int(sample.more["stored"])
    return sample


def points(settings: Settings, tools: Tools) -> list[Point]:
    scan = Scan()
    short = settle_s(settings) + window_s(settings) + 5
    long = settle_s(settings) + BEFORE_OUTAGE_S + OUTAGE_S + after_outage_s(settings) + 5
    rates = [
        Point(
            {"factor": factor, "agents": AGENTS, "samples_per_s": factor / PERIOD_S},
            f"{AGENTS} agents, {factor:g} x",
            [Contender(FLEET, partial(measure_rate, settings, tools, scan, factor), short)],
            [],
            1,
            1,
        )
        for factor in factors(settings)
    ]
    outage = Contender(FLEET, partial(measure_outage, settings, tools, scan), long)
    disk = Contender(SERVER, partial(measure_disk, tools, scan), 10.0)
    return [*rates, Point({"outage_s": OUTAGE_S}, OUTAGE, [outage], [], 1, 1), Point({}, DISK, [disk], [], 1, 1)]


@contextmanager
def hold(settings: Settings, tools: Tools) -> Iterator[list[str]]:
    with influxd(tools) as server:
        tools.held["server"] = server
        yield [
            f"{version(tools)}. Agents and server share this machine's CPUs: with more of them both would go further.",
            "Asked: agents x samples per second x points per sample (64 logical CPUs, 8 NVMe drives, their sensors). "
            f"Masked: the simulator itself offered less than {OFFERED_MIN:.0%} of it, which says nothing of the server; "
            "it is tried once more, and higher rates are not tried.",
        ]


def conditions(settings: Settings) -> dict[str, Any]:
    return {
        "agents": AGENTS,
        "nominal_samples_per_s": 1 / PERIOD_S,
        "agent": "a process each with the agent's own encoder, spool, cursor and delivery; replayed readings",
        "settle_s": settle_s(settings),
        "window_s": window_s(settings),
        "sustained": f"the backlog grows by at most {backlog.GROWTH_MAX:.0%} of what is offered",
        "missing": "points collected by the agents less points counted in InfluxDB by query, after delivery has ended",
        "outage": f"influxd stands still (SIGSTOP) for {OUTAGE_S:g} s at the highest sustained rate",
        "caught_up": "from its return until the backlog is no larger than at its largest before the outage",
        "disk": "index, blocks and log, after everything was stored in blocks, for all rates. Series are short: an upper bound",
    }


def quantity(point: dict[str, Any], name: str) -> float | None:
    return columns.median_of(point, FLEET, name)


def masked(point: dict[str, Any]) -> bool:
    share = quantity(point, "offered_share")
    return share is not None and share < OFFERED_MIN


def not_tried(point: dict[str, Any]) -> bool:
    return quantity(point, "not_tried") is not None


def sustained(point: dict[str, Any]) -> bool:
    growth = quantity(point, "growth")
    return growth is not None and not masked(point) and growth <= backlog.GROWTH_MAX


def of_rates(measured: Documents) -> Documents:
    return [point for point in measured if "factor" in point["key"]]


def judge(measured: Documents) -> list[Criterion]:
    ran = [point for point in measured if FLEET in point["contenders"] and not not_tried(point)]
    missing = {point["label"]: quantity(point, "missing") for point in ran}
    memory = {point["label"]: quantity(point, "agent_memory_bytes") for point in ran}
    caught_up = {point["label"]: quantity(point, "caught_up_s") for point in measured if point["label"] == OUTAGE}
    in_mib = {label: None if value is None else value / MIB for label, value in memory.items()}
    return [
        judge_sustained(of_rates(measured)),
        each("ingest.missing", "points collected and not found in InfluxDB", missing, 0, at_most),
        each("ingest.memory", "peak memory of an agent, MiB", in_mib, MEMORY_BYTES_MAX / MIB, at_most),
        each("ingest.outage", "caught up after the outage, s", caught_up, CATCH_UP_MAX_S, at_most),
    ]


def judge_sustained(rates: Documents) -> Criterion:
    """Looks at the rates up to the first that was not sustained. Undecided where the simulator could not offer the nominal rate."""
    id_, text = "ingest.sustained", "highest sustained rate, in units of every agent's 1 sample per second"
    highest: float | None = None
    for point in rates:
        if not sustained(point):
            factor = point["key"]["factor"]
            if factor <= NOMINAL and masked(point):
                share = quantity(point, "offered_share")
                why = f"of {factor:g} x the simulator offered {share:.1%} only, beside the server on the same CPUs"
                return Criterion(id_, text, NOMINAL, highest, False, undecided=why)
            break
        highest = point["key"]["factor"]
    met = highest is not None and highest >= NOMINAL
    misses = () if met or not rates else (f"{rates[0]['label']} and up" if highest is None else f"above {highest:g} x",)
    return Criterion(id_, text, NOMINAL, highest, met, misses)


def state(point: dict[str, Any]) -> str:
    if point["key"].get("factor") is None or FLEET in point["errors"]:
        return "-"
    if not_tried(point):
        return "not tried"
    if masked(point):
        return f"masked: {quantity(point, 'offered_share'):.1%} offered"
    growth = quantity(point, "growth")
    assert growth is not None
    return "yes" if sustained(point) else f"no: backlog grows by {growth:.0%} of it"


def unmasked(column: Column) -> Column:
    """The column's text only where the load that was asked for was there, so that it says something about the server."""
    header, shown = column
    return header, lambda point: "masked" if masked(point) else shown(point)


def value(header: str, name: str, form: str = "{:.0f}", unit: float = 1.0, contender: str = FLEET) -> Column:
    return columns.ranged(header, contender, name, form, unit)


PART = Part(
    name="ingest",
    title=f"{AGENTS} simulated agents into one InfluxDB",
    points=points,
    hold=hold,
    conditions=conditions,
    judge=judge,
    columns=[
        value("asked, points/s", "asked_per_s"),
        value("offered, points/s", "offered_per_s"),
        unmasked(value("stored, points/s", "settled_per_s")),
        ("sustained", state),
        unmasked(value("largest backlog, points", "backlog_max")),
        value("points in all", "collected"),
        value("missing", "missing"),
        value("an agent's memory, MiB", "agent_memory_bytes", "{:.1f}", MIB),
        value("agents' CPU in all, s", "agents_cpu_s", "{:.1f}"),
        unmasked(value("influxd, % of one core", "server_cpu_percent")),
        value("influxd, MiB", "server_memory_bytes", "{:.0f}", MIB),
        unmasked(value("caught up after, s", "caught_up_s", "{:.1f}")),
        value("disk, MB per million points", "disk_bytes_per_million", "{:.1f}", 1e6, SERVER),
    ],
    limit=lambda point: "",
    # All spools of the highest rate, and the server's data of every rate's points.
    space_bytes=lambda settings: int(
        AGENTS
        / PERIOD_S
        * POINTS_PER_SAMPLE
        * POINT_BYTES
        * (settle_s(settings) + window_s(settings))
        * sum(factors(settings))
    ),
    require=lambda tools: require_influxd(tools.influxd),
)
