"""The tables of docs/crash-trials.md: trials by process killed and phase; the hazards of each level and how their runs ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daq_bench.bench_model.base.marked_page import renew
from daq_bench.bench_model.base.places import REPOSITORY
from daq_bench.bench_model.documents.verdict import PASS
from daq_bench.bench_model.lot.sampling import passing_share_at_least
from daq_bench.crash_trials.campaign import Row
from daq_bench.crash_trials.hazards import Hazard, Struck
from daq_bench.crash_trials.processes import KINDS

DOCUMENT = REPOSITORY / "docs" / "crash-trials.md"
BEGIN, END = "<!-- measured: make crash-trials -->", "<!-- end of what was measured -->"
HAZARDS_BEGIN = "<!-- measured: make crash-trials HAZARDS={level} -->"
PHASES = (
    "before the bundle",
    "provision",
    "identity",
    "block_scan",
    "snb_record",
    "verify",
    "telemetry",
    "restore",
    "report",
)


def table(rows: Sequence[Row]) -> str:
    """Markdown: trials in which the process was killed, by phase; behind a slash those to which the judge objected."""
    struck = [row for row in rows if row.struck]
    lines = [f"| process | {' | '.join(PHASES)} | all |", "|---" * (len(PHASES) + 2) + "|"]
    for kind in KINDS:
        cells = [_cell([row for row in struck if row.kind == kind and row.phase == phase]) for phase in PHASES]
        lines.append(f"| {kind} | {' | '.join(cells)} | {_cell([row for row in struck if row.kind == kind])} |")
    seeds = ", ".join(str(row.seed) for row in rows if row.objections) or "none"
    said = f"{len(rows)} trials, seeds {_ranges([row.seed for row in rows])}: a process was killed in {len(struck)};"
    return "\n".join(
        [f"{said} the judge objected in {sum(bool(row.objections) for row in rows)} (seeds: {seeds}).", "", *lines]
    )


def _cell(rows: Sequence[Row]) -> str:
    bad = sum(bool(row.objections) for row in rows)
    return (f"{len(rows)}/{bad}" if bad else str(len(rows))) if rows else ""


def _ranges(seeds: Sequence[int]) -> str:
    found: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if found and found[-1][1] == seed - 1:
            found[-1][1] = seed
        else:
            found.append([seed, seed])
    return ", ".join(f"{first} to {last}" if last > first else str(first) for first, last in found)


def hazard_table(hazards: Sequence[Hazard[Any]], rows: Sequence[Struck]) -> str:
    """Markdown: each hazard, what is right, and how many runs ended so, were named rightly and left nothing."""
    lines = ["| hazard | how | right | runs | ended right | of them nothing to object |", "|---" * 6 + "|"]
    for one in hazards:
        own = [row for row in rows if row.kind == one.kind]
        right = [row for row in own if row.outcome in row.right]
        clean = sum(not row.objections for row in right)
        right_is = " or ".join(sorted(one.right)) + (", its cause named" if one.named else "")
        lines.append(f"| {one.kind} | {one.how} | {right_is} | {len(own)} | {len(right)} | {clean} |")
    harmless = {one.kind for one in hazards if one.harmless}
    good = [row for row in rows if row.kind in harmless]
    bad = [row for row in rows if PASS not in row.right and row.kind not in harmless]
    told = [
        f"{len(rows)} runs. Another outcome than the right one: {_at_most(sum(row.outcome not in row.right for row in rows), len(rows))}."
    ]
    if any(PASS in one.right for one in hazards):  # else no trial can pass, and not to have passed says nothing
        told.append(f"Wrong PASS: {_at_most(sum(row.wrong_pass for row in bad), len(bad), ' that must not pass')}.")
    told.append(
        f"False alarm: {_at_most(sum(bool(row.objections) for row in good), len(good), ' in which nothing harms the candidate')}."
    )
    said = [
        *told,
        *(
            f"- {row.kind}, seed {row.seed}: {row.outcome}: {'; '.join(row.objections)[:200]}"
            for row in rows
            if row.objections
        ),
    ]
    return "\n".join([*lines, "", *said])


def _at_most(count: int, total: int, of: str = "") -> str:
    """With the one-sided upper end of the share."""
    upper = f" (95 %: at most {100 * (1 - passing_share_at_least(total - count, total)):.0f} %)" if total else ""
    return f"{count} of {total}{of}{upper}"


def write(rows: Sequence[Row]) -> None:
    """Renews the page's table of the trials."""
    renew(DOCUMENT, BEGIN, END, f"\n{table(rows)}\n")


def write_hazards(level: str, hazards: Sequence[Hazard[Any]], rows: Sequence[Struck]) -> None:
    """Renews the page's table of one level's hazards."""
    renew(DOCUMENT, HAZARDS_BEGIN.format(level=level), END, f"\n{hazard_table(hazards, rows)}\n")
