"""The right outcome of a simulated run and the cause that must be named: from what was injected and what it did to the model, never from
the verdict's code.

The rules restate what the documents promise (docs/adr/0002, docs/detection.md): a wrong machine is refused, or is no evidence; a bench that
broke is an ERROR; evidence that cannot be trusted is INADMISSIBLE whatever the drive did; then the candidate's own harm is a FAIL; and
a candidate that nothing harmed passes. Near the limit of a rule that has one, both outcomes are right (`EDGES`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from daq_bench.bench_model.documents.verdict import ERROR, FAIL, INADMISSIBLE, PASS
from daq_bench.candidate_kit.sizes import parse_size
from daq_bench.simulation.machine import FREE_SHARE
from daq_bench.simulation.physics.drawing import DEMAND, takes_raw_drives
from daq_bench.simulation.physics.server import STUCK, Server

REFUSED = "REFUSED"
# Hazard -> (harmless up to, harmful from), by its strength. In between the bench may decide either way.
EDGES: dict[str, tuple[float, float]] = {
    "clock_step": (0.9, 1.15),  # s
    "agent_silent": (3.5, 7.0),  # s without any sample; five periods are no gap
    "drive_sensor_silent": (8.5, 12.5),  # s without one drive's temperature
    "bmc_hangs": (18.0, 32.0),  # s
    "clock_offset": (0.9, 1.15),  # s
    "short_record": (0.004, 0.016),  # share of a record's time
    "short_soak": (0.025, 0.035),  # share of the least time of a soak
    "source": (0.009, 0.011),  # share of a record that the source did not offer
}
# Share of others, of all CPUs or of what the load wrote: up to the first a miss stays the candidate's, from the second on it is nobody's.
BESIDE = (0.09, 0.11)  # docs/detection.md: 10 %
NOT_OF_PACE = (
    "hot",
    "hot, and its sensor lies",
    "bit_flips",
    "torn_writes",
    "lost_writes",
    "misplaced_writes",
    "trailer_lost",
    "short life",
)
# s without the temperature of a SAS drive, which only its health log tells, every 10 s: five periods are no gap
SAS_SENSOR_SILENT = (39.5, 50.5)
HEADROOM_K_MIN = 1  # of a drive below its own warning temperature
# A stuck reading hides how far its drive's temperature moved. Less than a degree is less than a sensor of whole degrees shows. The least
# room that a drive is bought with (physics/drawing.py) is 8 K below its warning: a reading that hides as much says nothing of that room,
# whatever the drive did with it, and no PASS can rest on it. It accuses nobody, either.
HIDDEN_K = (1, 8)
SENSOR_DEGC_MAX = 149  # no drive goes on so hot, and the agent believes no sensor that tells more
SOAK_HEADROOM_K_MIN = 5  # TH-03
SOAK_S = {"thermal": 1830.0, "market-thermal": 1800.0}  # least time
SOAK_SHORT = 0.1  # share of it whose lack the workload itself takes for a fault of the bench
RECORD_S = 100.0  # the record that a soak is held against
LOSS_EDGE = 0.003  # of the demand: about the loss of nothing at all the sampling of the counters decides
INVALIDATING = ("sysctl_reset", "firmware_changed", "governor_reset")  # as harms: the model notes them when they last
INSIDE = 1.05  # a server is good where it lies 5 % inside every bound
RECORD_BYTES = DEMAND * RECORD_S
SOAKED_BYTES, WORN_BYTES = 64 * 2**30, 512 * 2**30  # the files that a soak and a wear experiment overwrite
YEARS, RECORDS_PER_YEAR, NOMINAL_RECORD_BYTES = 10, 12, 1e12  # END-03; a record at 10 GB/s
KEPT_FREE_BYTES = 1e9
LARGE_BLOCK_BYTES, CONFIRMED_S = (
    8 * 2**20,
    60.0,
)  # of a scan's points those decide whose blocks are so large, and that last
PASS_SHARE, PASSES, WRITE_BUDGET_BYTES = 0.8, 6, 100e12  # of saturation: share of a drive that each pass writes
BUDGET_OVERHEAD = 1.02  # what a pass is reserved with
FALL, LEVEL, EDGE_S = (
    (0.75, 0.85),
    0.85,
    8,
)  # a fall to four fifths is a cliff; s at either end that may be a start or a drain
ROUNDS, ROUNDS_MAX = 5, 25  # of a steady-state test: those by which it is judged, and the most that it has
UNDECIDED = 0.05  # so near below the bound nobody need be certain
RING_SHARE = 0.8  # of the rings' room, from which on the dataflow is BUSY
RINGS_BYTES = 10 * 512 * 2**20
SYMPTOM = r"SNB-0[1-5]|TH-04|a record would have lost"
BESIDE_WORDS = r"dip: host_contention|others wrote|other processes (took|wrote) "
# The words that must be said of each cause, by every source that the report quotes.
NAMED: dict[str, str] = {
    "swapped_drive": r"serial|no drive SIM",
    "counterfeit_serial": r"model of SIM",
    "swapped_after_preflight": r"[Ii]dentity",
    "network_cut": r"connection to simulated lost",
    "power_cut": r"connection to simulated lost",
    "pulled": r"Input/output error|I/O error|controller is down",
    "control_disk_full": r"spool's disk failed|No space left",
    "clock_step": r"clock (was|stepped)",
    "agent_silent": r"has a gap",
    "bmc_hangs": r"Telemetry of ipmi has a gap",
    "bmc_zero_watts": r"Telemetry of ipmi",
    "sensor_stuck": r"never moved and is no evidence",
    "drive_sensor_silent": r"temperature of drive \S+ was not read|has a gap",
    "sysctl_reset": r"Tuning aio-max-nr",
    "governor_reset": r"Tuning cpu-governor|source offered only",
    "source": r"source offered only|counts .* where the scenario asked for",
    "firmware_changed": r"Firmware: drive",
    "hot": r"SNB-06|TH-03",
    "hot, and its sensor lies": r"minutes above (its|the) warning temperature|SNB-06|TH-03|never moved and is no evidence",
    "bit_flips": r"SNB-04",
    "torn_writes": r"SNB-04",
    "lost_writes": r"SNB-04",
    "misplaced_writes": r"SNB-04",
    "trailer_lost": r"not closed by its writer",
    "clock_offset": r"clock was",
    "short_record": r"counts .* where the scenario asked for",
    "short_soak": r"the soak (wrote for|lasted) |counts .* where the scenario asked for",
    "less_asked": r"The load is .* of one readout unit|are held at .* of one readout unit",
    "unrecorded": r"did not record",
    "mixed_up": r"drives and those whose temperature was watched differ",
    "members_unknown": r"drives under the target folder|Which drives carry",
    "too small": r"too small",
    "slow blocks": r"SNB-07",
    "slow rounds": r"SS-02",
    "short life": r"END-03",
    "slow pass": r"SAT-0[1-4]",
    "slow set": r"RVX-01",
    "early cliff": r"SAT-0[1-4]",
    "pass without a record": r"cannot show that .* fit before the rate falls",
    "beyond its budget": r"write_budget",
    "not emptied": r"sampled places read as zeros|places read back were empty",
    "lost": SYMPTOM,
    "busy": SYMPTOM,
    "buffer": SYMPTOM,
    "throttle": r"throttling: |SNB-06|TH-01",
    "fan_failure": r"throttling: |SNB-06|TH-0[134]",
    "other_load": BESIDE_WORDS,
    "other_cpu": BESIDE_WORDS,
}
OTHERS = {"other_load", "other_cpu", "other_device"}
HEATING = ("hot_sensor_stuck", "throttle_once", "throttle_recurring", "throttle_creeping", "throttle_from_start")


@dataclass(frozen=True)
class Truth:
    """`outcomes`: those that are right. `causes`: the harm of each entry and the pattern that must name it."""

    outcomes: frozenset[str]
    causes: tuple[tuple[str, str], ...] = ()

    @property
    def passes(self) -> bool:
        """A good candidate, of which there is good evidence."""
        return self.outcomes == {PASS}

    @property
    def may_pass(self) -> bool:
        return PASS in self.outcomes

    def is_named(self, said: list[str]) -> bool:
        """Every cause is named somewhere. Without a harm there is nothing to name."""
        return all(any(re.search(pattern, text) for text in said) for _, pattern in self.causes)


def truth_of(server: Server) -> Truth:
    """The truth of a run that has ended."""
    harms = server.harms
    if server.is_sold and (room := _room(server)):
        return Truth(room, (("too small", NAMED["too small"]),))
    if harms.keys() & {"swapped_drive", "counterfeit_serial"}:
        return _only(REFUSED, next(kind for kind in ("swapped_drive", "counterfeit_serial") if kind in harms))
    if server.saturates and (kind := _no_pass_fits(server)):
        return _only(REFUSED, kind)
    for kind in ("swapped_after_preflight", "members_unknown"):
        if kind in harms:
            return _only(INADMISSIBLE, kind)
    for kind in ("network_cut", "power_cut"):
        if kind in harms:
            return _only(ERROR, kind)
    if (
        server.compares and server.failed and server.spec.judged.name not in server.failed
    ):  # a gap, and no fault of the judged set
        return Truth(frozenset({ERROR, INADMISSIBLE}), (("pulled", NAMED["pulled"]),))
    if "pulled" in harms:  # noted when the load met it: its tool's own answer is there (docs/adr/0002)
        return _only(FAIL, "pulled")
    if "short_soak" in harms:
        return _short_soak(server)
    return _of_evidence(server)


def _room(server: Server) -> frozenset[str]:
    """The outcomes of a target that cannot hold a record, or the file that is overwritten; none where it can. Only a finished file system
    shows its own share."""
    if takes_raw_drives(server.scenario):
        return frozenset()
    if server.compares:  # each of its targets holds 64 GB: the smallest drive that is sold has 480
        return frozenset()
    spec, record = server.spec, RECORD_BYTES * server.scale
    record = SOAKED_BYTES if server.soaks else WORN_BYTES if server.wears else record
    if spec.capacity_bytes < record + (0 if spec.raw else KEPT_FREE_BYTES):
        return frozenset({REFUSED})
    if not spec.raw and FREE_SHARE[spec.filesystem] * spec.capacity_bytes < record + KEPT_FREE_BYTES:
        return frozenset({REFUSED, ERROR})
    return frozenset()


def _no_pass_fits(server: Server) -> str:
    """Why a drive is no subject of the saturation run; empty where it is: a pass holds no record, or six exceed the write budget."""
    size = PASS_SHARE * server.spec.capacity_bytes
    if size < RECORD_BYTES:
        return "pass without a record"
    return "beyond its budget" if PASSES * size * BUDGET_OVERHEAD > WRITE_BUDGET_BYTES else ""


def _short_soak(server: Server) -> Truth:
    """A soak that ends long before its time has measured nothing, and breaks the run; a little before, it is no evidence."""
    short = 1 - len(server.soaked) / SOAK_S[server.scenario]
    if abs(short - SOAK_SHORT) < 0.01:
        return Truth(frozenset({ERROR, INADMISSIBLE}))
    return _only(ERROR, "short_soak") if short > SOAK_SHORT else _of_evidence(server)


def _only(outcome: str, kind: str) -> Truth:
    return Truth(frozenset({outcome}), ((kind, NAMED[kind]),))


def _of_evidence(server: Server) -> Truth:
    """A run that came to its end: is it evidence, and of what?"""
    harmed = candidates_harm(server)
    invalid, doubtful = _invalidated(server)
    base = {FAIL} if harmed else {PASS}
    if harmed == ["hot, and its sensor lies"]:  # nobody has a reading that fails the drive: it must not pass
        base = {FAIL, INADMISSIBLE}
    undecided = _scanned_share(server) > 1 - UNDECIDED  # whether the slow blocks miss their bound, which others do, too
    told = [kind for kind in harmed if not (undecided and kind == "slow blocks" and len(harmed) > 1)]
    causes = tuple((kind, NAMED[kind]) for kind in told)
    if invalid:
        return Truth(frozenset({INADMISSIBLE}), tuple((kind, NAMED[kind]) for kind in invalid))
    if server.is_sold and not harmed and not is_well_inside(server):
        base = {PASS, INADMISSIBLE}
    if server.soaks and not harmed and soaks_record_loses(server, 1 - LOSS_EDGE):
        base = base | {PASS, FAIL}
    if (harmed == ["slow blocks"] and undecided) or (harmed == ["slow rounds"] and _rounds_undecided(server)):
        base = {FAIL, INADMISSIBLE}
    if server.compares and harmed and min(_judged_rates(server)) > (1 - UNDECIDED) * DEMAND * server.scale:
        base = {FAIL, INADMISSIBLE}
    if server.saturates and harmed and not _surely_slow(server):
        base = {FAIL, INADMISSIBLE}
    if server.saturates and not harmed and _early_fall(server) < FALL[1]:
        base = base | {FAIL}
    if not harmed and HIDDEN_K[0] < server.hidden_k < HIDDEN_K[1]:
        doubtful = True
    if limits := _limited(server):  # what fails, fails all the same
        base = base if harmed else {INADMISSIBLE}
        causes = causes or tuple((kind, NAMED[kind]) for kind in limits)
    if harmed and not set(harmed) & set(NOT_OF_PACE) and _others_share(server) > BESIDE[0]:
        if _others_share(server) >= BESIDE[1]:
            return Truth(frozenset({INADMISSIBLE}), (("not alone", _named_process(server)),))
        base |= {INADMISSIBLE}
    if (
        OTHERS & server.fired and harmed and server.soaks
    ):  # its own rule: what it says it wrote, against what the drives took
        base |= {INADMISSIBLE}
    if server.is_sold and harmed and server.hottest_degc > SENSOR_DEGC_MAX:
        base = base | {INADMISSIBLE}  # no sensor tells so much, and a drive without a reading is no evidence
    if doubtful:
        return Truth(frozenset(base | {INADMISSIBLE}), ())
    return Truth(frozenset(base), causes)


def _others_share(server: Server) -> float:
    """The largest share that other processes took in any load. What they wrote beside a soak another rule tells: it has no own series."""
    shares = (
        one.cpu_share if server.soaks else max(one.cpu_share, one.written_share) for one in server.others_of.values()
    )
    return max(shares, default=0.0)


def _named_process(server: Server) -> str:
    """The words on the first line of a verdict that blames nobody, for a process whose name the agent passes on. The workload of a soak may
    say before that others wrote, without a name."""
    return BESIDE_WORDS if server.soaks else rf"machine was not alone: .*\({re.escape(server.spec.others_name)} "


def _limited(server: Server) -> list[str]:
    """Why a PASS would not count, though a FAIL does."""
    more = ["sensor_stuck"] if server.hidden_k >= HIDDEN_K[1] else []
    if takes_raw_drives(server.scenario) and server.spec.zero_share < 1:
        more.append("not emptied")
    return [kind for kind in ("control_disk_full", "less_asked") if kind in server.harms] + more


def candidates_harm(server: Server) -> list[str]:
    """Returns what the server did to the data, or to itself, that its buyer must not accept; the deepest cause that a bench can see."""
    if server.soaks:
        return _soaks_harm(server)
    if server.is_steady_state:
        return _rounds_harm(server)
    if server.saturates:
        return _passes_harm(server)
    if server.wears:
        return ["short life"] if _years(server) < YEARS else []
    if server.compares:
        return ["slow set"] if min(_judged_rates(server), default=2 * DEMAND) < DEMAND * server.scale else []
    harms = server.harms
    found: list[str] = [
        kind
        for kind in ("bit_flips", "torn_writes", "lost_writes", "misplaced_writes", "trailer_lost")
        if kind in harms
    ]
    if server.least_headroom_k < HEADROOM_K_MIN:
        lies = server.fired & set(STUCK)
        found.append("hot, and its sensor lies" if lies else "hot")
    if _scanned_share(server) < 1 and server.is_sold:
        found.append(_why_slow(server, "slow blocks"))
    slow: list[str] = [kind for kind in ("lost", "busy") if kind in harms]
    if server.most_owed > parse_size(server.spec.transient_buffer):
        slow.append("buffer")
    if slow:
        found.append(_why_slow(server, slow[0]))
    return list(dict.fromkeys(found))


def _scanned_share(server: Server) -> float:
    """The worst confirmation of a large block size against the demand; far above it where none was made."""
    rates = [rate for block, seconds, rate in server.scanned if block >= LARGE_BLOCK_BYTES and seconds >= CONFIRMED_S]
    return min(rates, default=2 * DEMAND) / (DEMAND * server.scale)


def is_well_inside(server: Server) -> bool:
    """Says whether a run without harm lies 5 % inside every bound: what the drives took in each second of each record would have kept
    a demand 5 % larger out of BUSY, in a buffer 5 % smaller; so would each confirmation; and no drive came nearer to its limit.
    A soak is where no drive throttled, each kept 5 % more of its headroom, and a record at a demand 5 % larger would have lost nothing
    in a buffer 5 % smaller, begun in any second."""
    if server.saturates:
        return _passes_are_good(server)
    if server.wears:
        return _years(server) >= INSIDE * YEARS
    if server.compares:
        return _compared_is_good(server)
    if (
        server.is_steady_state
    ):  # all that its drive could take in each second of those rounds was 5 % more than the demand
        seconds = [rate for one in server.rounds[-ROUNDS:] for rate in one]
        return min(seconds, default=0.0) >= INSIDE * DEMAND and len(server.rounds) < ROUNDS_MAX
    if server.soaks:
        headroom = min(server.soaked_headroom_k, default=0)
        return headroom >= INSIDE * SOAK_HEADROOM_K_MIN and not soaks_record_loses(server, 1 / INSIDE, 1 / INSIDE)
    buffer = parse_size(server.spec.transient_buffer) / INSIDE
    for paces in server.paces.values():
        held = most = 0.0
        for pace in paces[: round(RECORD_S)]:
            held = max(0.0, held + INSIDE * DEMAND - pace)
            most = max(most, held)
        if most > min(buffer, RING_SHARE * RINGS_BYTES / INSIDE):
            return False
    return _scanned_share(server) >= INSIDE and server.least_headroom_k >= INSIDE * HEADROOM_K_MIN


def _rounds_harm(server: Server) -> list[str]:
    """Steady state: the drive took less than the demand of sequential 128 KiB writes in one of the rounds by which it is judged."""
    return ["slow rounds"] if min(_last_rounds(server), default=2 * DEMAND) < DEMAND * server.scale else []


def _last_rounds(server: Server) -> list[float]:
    """Mean rates of the test's last five rounds: it ends with the first five that are steady."""
    return [sum(one) / len(one) for one in server.rounds[-ROUNDS:] if one]


def _judged_rates(server: Server) -> list[float]:
    """Rates of the writes to the judged set, one in each round."""
    return [one.rate for one in server.visits if one.target == server.spec.judged.name]


def _compared_is_good(server: Server) -> bool:
    """The judged set took 5 % more than the demand in every second of its writes."""
    seconds = [pace for one in server.visits if one.target == server.spec.judged.name for pace in one.could]
    return min(seconds, default=0.0) >= INSIDE * DEMAND


def _years(server: Server) -> float:
    """How long the shortest-lived drive lasts at twelve records a year, by the bytes that reached it for each that was written."""
    spec = server.spec
    each = RECORDS_PER_YEAR * NOMINAL_RECORD_BYTES / spec.own.data_drives
    return min(one.life_bytes for one in spec.drives) / each


def _passes_harm(server: Server) -> list[str]:
    """Saturation: a record of 924 GB at the begin of a pass would not have been taken at the demand, or the rate fell before its end."""
    found = ["slow pass"] if min(map(_of_record, server.passes), default=2 * DEMAND) < DEMAND * server.scale else []
    return found or (["early cliff"] if _early_fall(server) < FALL[0] else [])


def _record_ends(rates: list[float], size: float = RECORD_BYTES) -> int:
    """The second in which so many bytes had been written since the begin of a pass."""
    return int(np.searchsorted(np.cumsum(rates), size)) + 1


def _of_record(rates: list[float]) -> float:
    """Mean rate of the record at the begin of a pass."""
    first = rates[: _record_ends(rates)]
    return sum(first) / len(first)


def _early_fall(server: Server) -> float:
    """The rate from some second of that record to the end of the pass, against that before it: the least of all passes."""
    least = 1.0
    for rates in server.passes:
        sums, ends = np.cumsum(rates), np.arange(EDGE_S, max(EDGE_S, min(_record_ends(rates), len(rates) - EDGE_S)))
        if len(ends):
            before, after = sums[ends - 1] / ends, (sums[-1] - sums[ends - 1]) / (len(rates) - ends)
            least = min(least, float((after / before).min()))
    return least


def _surely_slow(server: Server) -> bool:
    """Says whether every pass was level and below the demand: six passes are judged together, and one whose rate declines has no figure."""
    level = all(min(one) >= LEVEL * max(one) for one in server.passes)
    return level and max(map(_of_record, server.passes)) < (1 - UNDECIDED) * DEMAND * server.scale


def _passes_are_good(server: Server) -> bool:
    """Each pass took a record 5 % larger at a demand 5 % larger in every second, and was level to its end."""
    for rates in server.passes:
        first = rates[: _record_ends(rates, INSIDE * RECORD_BYTES)]
        if min(first) < INSIDE * DEMAND or min(rates) < LEVEL * max(rates):
            return False
    return bool(server.passes)


def _rounds_undecided(server: Server) -> bool:
    """Five rounds are judged by their range: where some of them reach the demand, or nearly, nobody need be certain. A drive that never
    became steady has no figures."""
    return max(_last_rounds(server)) > (1 - UNDECIDED) * DEMAND * server.scale or len(server.rounds) >= ROUNDS_MAX


def _soaks_harm(server: Server) -> list[str]:
    """The same of a soak. No drive may slow itself down, nor come near its own warning temperature; and a record of 100 s anywhere in the
    soak would have lost nothing."""
    found: list[str] = []
    if server.throttled:
        found.append("throttle")
    if min(server.soaked_headroom_k, default=999) < SOAK_HEADROOM_K_MIN:
        found.append("hot, and its sensor lies" if server.fired & set(STUCK) else "hot")
    if soaks_record_loses(server, 1 + LOSS_EDGE):
        found.append(_why_slow(server, "lost"))
    return list(dict.fromkeys(found))


def soaks_record_loses(server: Server, factor: float = 1.0, room: float = 1.0) -> bool:
    """Says whether a record at the demand over `factor` would have lost data, begun in any second of the soak with an empty buffer;
    `room`: so much of that buffer."""
    rates = np.array(server.soaked) if server.soaked else np.zeros(0)
    length, buffer = round(RECORD_S), room * parse_size(server.spec.transient_buffer)
    starts = len(rates) - length + 1
    held, most = np.zeros(max(0, starts)), 0.0
    for second in range(length if starts > 0 else 0):
        held = np.maximum(0.0, held + server.scale * DEMAND / factor - rates[second : second + starts])
        most = max(most, float(held.max()))
    return most > buffer


def _why_slow(server: Server, symptom: str) -> str:
    """The hazard that took the pace of a server which had enough of it; else the symptom alone."""
    if server.spec.pace in ("at", "below") or (server.is_sold and not _had_enough(server)):
        return symptom
    acted = [hazard for hazard in server.spec.hazards if hazard.kind in server.fired and hazard.strength > 0]
    kinds = {hazard.kind for hazard in acted}
    if kinds & {"slow_drive", "wrong_numa_node", "counterfeit_slow"}:
        return symptom  # no sensor tells them from a drive that is slow by itself
    if kinds & set(HEATING):
        return "throttle"
    return next((kind for kind in ("fan_failure", "other_load", "other_cpu") if kind in kinds), symptom)


def _had_enough(server: Server) -> bool:
    """Says whether a server of the market would have been fast enough if nothing had befallen it."""
    spec = server.spec
    group = spec.judged
    drive = min(spec.drives[number].steady_rate for number in group.drives) * group.data_drives
    limits = (group.ceiling * group.data_drives / len(group.drives), group.parity_rate)
    return min(drive, *(limit or drive for limit in limits)) >= INSIDE * DEMAND


def _invalidated(server: Server) -> tuple[list[str], bool]:
    """The kinds that certainly spoil the evidence, and whether another one may."""
    certain: list[str] = [kind for kind in INVALIDATING if kind in server.harms]
    doubtful = False
    sizes = {one.kind: abs(one.strength) for one in server.spec.hazards if one.kind in server.fired}
    if "short_record" in sizes and server.soaks:
        sizes["short_record"] = 0.0
        sizes["short_soak"] = max(0.0, 1 - len(server.soaked) / SOAK_S[server.scenario])
    if server.not_offered_share:
        sizes["source"] = server.not_offered_share
    edges = EDGES
    if server.spec.drives[0].transport == "sas":
        edges = {**EDGES, "drive_sensor_silent": SAS_SENSOR_SILENT}
    for kind, (harmless, harmful) in edges.items():
        size = sizes.get(kind, 0.0)
        if size >= harmful:
            certain.append(kind)
        elif size > harmless:
            doubtful = True
    if "bmc_zero_watts" in server.fired:
        certain.append("bmc_zero_watts")
    if "mixed_up" in server.harms:
        certain.append("mixed_up")
    if "unrecorded" in server.harms:  # and what it would have told cannot be named
        certain = ["unrecorded"]
    return certain, doubtful
