"""The part of docs/self-qualification.md, or of a scenario's own page, that is measured: what the campaign counted, with intervals, by
hazard, and what it did not see. It holds no date. The rest of a page is written there."""

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
    """Returns the text between the page's marks."""
    rows = found.rows
    parts = [
        _counted(found),
        "## Outcomes against the truth\n\n" + confusion(rows),
        "## By hazard\n\n" + _by_hazard(rows, kinds_of(found.scenario)),
        "## Without any hazard, by pace\n\n" + _by_pace(rows),
        "## Runs that erred\n\n" + errors(rows),
        "## Mutants of the bench\n\n" + _mutants(found),
    ]
    return "\n".join(parts)


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
        f"## How often the bench erred\n\n{len(rows)} runs, seeds {found.first} to {last}, of the scenario `{found.scenario}`; "
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
        + f"\nNeither seen nor explained: {_wrapped(blind)}.\n"
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
