"""docs/self-qualification.md, or a scenario's own page: what the campaign counted, with intervals, by hazard, and what it did not see.

It holds no date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from daq_bench.bench_model.lot.sampling import passing_share, passing_share_at_least
from daq_bench.simulation.campaign import FAULT, HEAT_FAULT, Row
from daq_bench.simulation.mutants import Seen, named
from daq_bench.simulation.physics.drawing import kinds_of
from daq_bench.simulation.physics.hazards import STRENGTHS

OUTCOMES = ("PASS", "FAIL", "INADMISSIBLE", "ERROR", "REFUSED")
SEEDS_SHOWN = 12

HEAD = """# Self-qualification

This page is for who asks how often the bench itself errs. `make self-qualify` wrote it; the rows behind it are in
`build/self-qualification/`. Change nothing here by hand. The [thermal soak](self-qualification-thermal.md) and the
[servers that are sold](self-qualification-market.md) have pages of their own.

A seed draws a server (its drives' pace against the demand, cache, garbage collection, heat, buffer) and the hazards that befall it; the
bench is not told. A physical model writes what daqwriter, fio, smartctl, nvme, ipmitool and the telemetry agent would have
written; from their texts on everything is the bench's own code: the workload, its journal, telemetry's account, all derived documents,
the judge. The truth of a run follows from what was injected and what it did to the model (`robot-suites/daq_bench/simulation/truth.py`),
never from the verdict's code. Hazards are drawn from harmless to severe, so that PASS is right for some of them.
"""

SOAK_HEAD = """# Self-qualification: the thermal soak

This page is the second half of [self-qualification](self-qualification.md), which says how a run is simulated, and what its truth rests on.
`make self-qualify SIMULATED=thermal` wrote it; the rows behind it are in `build/self-qualification/`. Change nothing here by hand.

The drives are those of the same seeds, cooled so that steady writing leaves them 8 to 30 K below their own warning temperature, or with
tight cooling 8 K below to 6 K above it; some are told to throttle 12 K below it. Into the soak go heat, a load beside it, slow drives and
whatever else can befall it. A run must not pass where a drive slowed itself down for heat, came within 5 K of its warning temperature, or
took so little in any 100 s of the soak that a record would have lost data.
"""

HELD = """"Held by" are the fewest criteria that object to a run beside the mutant's own. Where a mutant alone is not seen, they are taken
away: the run must still be refused with the mutant's criterion, and pass without it, so that each criterion is shown to decide. Why
others always object, too:

- SNB-01, SNB-02, SNB-03: a lost superchunk cannot be read back (SNB-03), and a ring loses only when it is over its high watermark (SNB-02).
- SNB-03, SNB-04: a stored superchunk that does not read back is damaged, and the read-back itself says "damaged" (gaps_of_plan).
- SNB-05: preflight refuses a declared buffer that is smaller than the rings; more than it is needed only while the rings are BUSY.
- scaled_down: a load below the demand is preconditioned over less of the drive, which the conditioning states (stated).
- source and load: a superchunk that the source did not offer is missing in the counts of the load. Both have the same limit of 99 %.
"""

SOAK_HELD = """"Held by" and "without those" mean what they mean for the record. Why others always object, too:

- TH-01, TH-03: a drive whose throttling begins at its warning temperature, or a little below it, has come within 5 K of it.
- TH-02: throttling within the record's length is throttling (TH-01).
- load, gaps_of_plan: a soak that ended early is too short by its count of seconds, and by the plan.

TH-05 and TH-06 are advisory: they decide no outcome, so that no mutant of them could be seen.
"""

SOAK_MODEL = """## What the model leaves out

All that [self-qualification](self-qualification.md) lists, but for daqwriter's records, and besides:

- The scenario is `simulated-thermal`: the bounds of `thermal` word for word; a soak of half an hour, the least that the bench takes for an
  equilibrium, where the shipped one may last four hours. The drives' time constants are minutes.
- There is no fan sweep: the modelled BMC turns no fans, and what it would answer to commands would have been made up.
- An outcome is held against the truth, and not each requirement. A run that fails for heat may count the onset too early: where the rate
  fell for another reason and stayed low (garbage collection), and a drive becomes hot minutes later, the fall counts as the onset (TH-02).
- The temperature that a soak is heading for (TH-05), and causes of dips (TH-06), are advisory and decide nothing here.
- A soak counts as short, or a record as lost, within the edges of truth.py (`EDGES`, `LOSS_EDGE`), where either outcome is right.
"""

MODEL = """## What the model leaves out

- The scenario is `{scenario}`, one whole readout unit. The soak is the only other one simulated; `make audit` tries the rules of all.
- Time goes in steps of a second, and so do daqwriter's records, where the real ones come every 0.1 s: shorter events have no shape.
- Robot Framework, Ansible and SSH are not started: what they do with a candidate is called in the same order. A fault in them is not seen.
- Drives have one cache, one stage of garbage collection, two stages of heat and two steps of throttling. No queue, no latency of single
  requests beyond a mean, no wear-out, no file system, no interference between drives but the stripe's slowest.
- A processor has no temperature, no frequency and no C-states: a governor that is reset shows in the source's pace alone.
- The telemetry agent has the collectors block_device, temperature, kernel_log, ipmi, smart and workload; the others are absent.
- A slow drive, a wrong NUMA node and a perfect counterfeit are named by the requirement that is missed, and by nothing else: no reading
  of a run tells them from a drive that is slow by itself. "Cause named" asks for no more there.
- A sensor that is stuck is so from the first reading to the last. It is caught where the drive's temperature must have moved (what it
  wrote, its like beside it, its own counts), and then the run is INADMISSIBLE however cool the drive was: a reading that hides 8 K or
  more, the least room of a drive of this model, is no evidence (`HIDDEN_K` in truth.py). One that sticks in mid-run while its drive is
  hot for less than a minute, or does not count its minutes, is not caught.
- A BMC that lies tells 0 W or repeats a value. Sensors that drift, and BMCs that lie credibly, are not in it.
- One that tells 0 W fails with all of its sensors in the model. Those of a real one may go on
  ([crash-trials.md](crash-trials.md), bmc_zero_watts).
- The truth near a limit of the bench's own (a clock 1 s off, five periods of silence) allows either outcome (`EDGES` in truth.py).
- The intervals speak of the model's servers. How often real servers have which fault is not known here.

## Levels 2 and 3

Level 2 (light candidates in network namespaces, with real sshd and programs) is `make crash-trials`, which kills the bench's own processes
or plants faults (`HAZARDS=light`). Level 3 (the virtual candidate: NVMe drives, power, BMC, fans, clock) is `make crash-trials
HAZARDS=virtual`. They strike tens of times, not thousands: [crash-trials.md](crash-trials.md) has which fault each level made, how often,
how it ended, and what that found. Firmware that changed, drives' heat and clocks that are off from the beginning are of this level alone.
"""


@dataclass(frozen=True)
class Measured:
    """Everything that one `make self-qualify` measured."""

    rows: Sequence[Row]
    first: int
    scenario: str
    canary: Row
    mutants: Sequence[Seen]
    cases: int


def text_of(found: Measured) -> str:
    """The whole page."""
    rows = found.rows
    soak = found.scenario == "thermal"
    parts = [
        SOAK_HEAD if soak else HEAD,
        _counted(found),
        "## Outcomes against the truth\n\n" + confusion(rows),
        "## By hazard\n\n" + _by_hazard(rows, kinds_of(found.scenario)),
        "## Without any hazard, by pace\n\n" + _by_pace(rows),
        "## Runs that erred\n\n" + errors(rows),
        "## Mutants of the bench\n\n" + _mutants(found),
        SOAK_MODEL if soak else MODEL.format(scenario=found.scenario),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _counted(found: Measured) -> str:
    rows, soak = found.rows, found.scenario == "thermal"
    bad = [row for row in rows if "PASS" not in row.right]
    good = [row for row in rows if row.is_good]
    caused = [row for row in bad if row.causes]
    lines = [
        ("wrong PASS (the run must not pass and does)", bad, lambda row: row.wrong_pass),
        ("false alarm (a good candidate fails)", good, lambda row: row.false_alarm),
        ("good candidate refused (no PASS for any reason)", good, lambda row: row.refused_good),
        ("right outcome", rows, lambda row: row.is_right),
        ("cause named, of the runs that have one", caused, lambda row: row.named),
        (
            f"counts of {'bytes' if soak else 'superchunks'} or points differ from the model's",
            rows,
            lambda row: row.invented,
        ),
    ]
    counts = table(("what", "count", "of", "share", "95 % interval"), (share(*line) for line in lines))
    wrong = sum(row.wrong_pass for row in bad)
    upper = 1 - passing_share_at_least(len(bad) - wrong, len(bad))
    last = found.first + len(rows) - 1
    cpu = sum(row.cpu_s for row in rows) / len(rows)
    return (
        f"## What was counted\n\n{len(rows)} runs, seeds {found.first} to {last}, of the scenario `{found.scenario}`; "
        f"{cpu:.2f} s of CPU for each.\n\n{counts}\nIntervals are Clopper and Pearson's. "
        f"**Wrong PASS: {wrong} of {len(bad)} runs that must not pass; with 95 % confidence\nat most {100 * upper:.2g} % of such runs.** "
        f"The canary ({HEAT_FAULT if soak else FAULT}) was "
        f"found: {found.canary.outcome}.\n"
    )


def share(what: str, of: Sequence[Row], holds: Callable[[Row], bool]) -> tuple[str, ...]:
    count = sum(map(holds, of))
    if not of:
        return what, "0", "0", "", ""
    low, high = passing_share(count, len(of))
    return what, str(count), str(len(of)), f"{100 * count / len(of):.2f} %", f"{100 * low:.2f} to {100 * high:.2f} %"


def confusion(rows: Sequence[Row]) -> str:
    truths = sorted({" or ".join(row.right) for row in rows}, key=lambda text: (text.count("or"), text))
    counted = Counter((" or ".join(row.right), row.outcome) for row in rows)
    body = ((truth, *(_count(counted[truth, outcome]) for outcome in OUTCOMES)) for truth in truths)
    return (
        table(("right is", *OUTCOMES), body) + "\nREFUSED: by preflight, before anything was changed (exit status 2).\n"
    )


def _by_hazard(rows: Sequence[Row], kinds: Sequence[str]) -> str:
    body = []
    for kind in kinds:
        drawn = [row for row in rows if kind in row.hazards]
        acted = [row for row in drawn if kind in row.fired]
        bad = [row for row in acted if "PASS" not in row.right]
        harmless = [row for row in acted if row.is_good]
        body.append(
            (
                kind,
                f"{STRENGTHS[kind][0]:g} to {STRENGTHS[kind][1]:g}",
                *(_count(len(part)) for part in (drawn, acted, bad)),
                str(sum(row.wrong_pass for row in bad)),
                of(sum(row.is_right for row in acted), len(acted)),
                of(sum(row.named for row in bad), len(bad)),
                of(sum(row.outcome == "PASS" for row in harmless), len(harmless)),
            )
        )
    heads = (
        "hazard",
        "strength",
        "drawn",
        "acted",
        "must not pass",
        "wrong PASS",
        "right",
        "cause named",
        "harmless: passed",
    )
    return (
        "Drawn, and acted: a hazard whose moment a run does not reach does nothing. Several may befall one run, and a slow "
        "server\nmay have one too, so that the rows overlap. Units stand in `robot-suites/daq_bench/simulation/physics/hazards.py`.\n\n"
        + table(heads, body)
    )


def _by_pace(rows: Sequence[Row]) -> str:
    body = []
    for pace in ("ample", "above", "at", "below"):
        own = [row for row in rows if row.pace == pace and not row.hazards]
        good = [row for row in own if row.is_good]
        body.append(
            (
                pace,
                str(len(own)),
                str(len(good)),
                of(sum(row.outcome == "PASS" for row in good), len(good)),
                of(sum(row.is_right for row in own), len(own)),
                str(sum(row.wrong_pass for row in own)),
            )
        )
    return table(
        ("array's pace against the demand", "runs", "good", "of them passed", "right outcome", "wrong PASS"), body
    )


def errors(rows: Sequence[Row]) -> str:
    lists = [
        ("Wrong PASS", [row for row in rows if row.wrong_pass]),
        ("Good candidate that did not pass", [row for row in rows if row.refused_good]),
        ("Another wrong outcome", [row for row in rows if not row.is_right and not row.wrong_pass and not row.is_good]),
        ("Counts differ from the model's", [row for row in rows if row.invented]),
        ("Cause not named", [row for row in rows if row.causes and not row.named]),
    ]
    return "".join(_listed(what, found) for what, found in lists)


def _listed(what: str, found: Sequence[Row]) -> str:
    if not found:
        return f"- {what}: none\n"
    kinds = Counter("+".join(row.causes) or "+".join(row.hazards) or row.pace for row in found)
    told = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common(6))
    seeds = ", ".join(str(row.seed) for row in found[:SEEDS_SHOWN])
    more = f" and {len(found) - SEEDS_SHOWN} more" if len(found) > SEEDS_SHOWN else ""
    return f"- {what}: {len(found)} (by cause: {told})\n  Seeds {seeds}{more}\n"


def _mutants(found: Measured) -> str:
    rows = [_mutant(one) for one in found.mutants]
    blind = [one.name for one in found.mutants if not one.is_explained]
    return (
        f"Each criterion of the bench is dropped or shifted in turn and judges {found.cases} runs that must not pass, made for this: each "
        "hazard at its\nhardest on an ample server, and servers a little below and above the demand. The suite's stop at a failed identity "
        "test is taken away,\nso that the judge is left to object. A mutant is seen when it lets one of them pass.\n\n"
        + table(("mutant", "what it looks after", "wrong PASS", "runs with", "held by", "without those"), rows)
        + f"\nNeither seen nor explained: {_wrapped(blind)}.\n\n{SOAK_HELD if found.scenario == 'thermal' else HELD}"
    )


def _mutant(one: Seen) -> tuple[str, ...]:
    held = ", ".join(map(named, one.held_by))
    without = f"{len(one.then)} wrong PASS: {_kinds(one.then)}" if one.then else ""
    return one.name, one.what, str(len(one.kinds)), _kinds(one.kinds), held, without


def _kinds(kinds: Iterable[str]) -> str:
    counted = Counter(kinds)
    return ", ".join(list(counted)[:3]) + (f" and {len(counted) - 3} more" if len(counted) > 3 else "")


def _wrapped(names: Sequence[str]) -> str:
    lines, line = [], ""
    for name in names:
        if len(line) + len(name) > 120:
            lines.append(line)
            line = ""
        line += f"{name}, "
    return "\n".join([*map(str.rstrip, lines), line.rstrip(", ")]) if names else "none"


def of(count: int, total: int) -> str:
    return f"{count} of {total}" if total else ""


def _count(number: int) -> str:
    return str(number) if number else ""


def table(heads: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *body]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)
