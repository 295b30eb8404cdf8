"""The table of the trials by process killed and phase, written into docs/crash-trials.md."""

from __future__ import annotations

from collections.abc import Sequence

from bench_model.base.places import REPOSITORY
from crash_trials.campaign import Row
from crash_trials.processes import KINDS
from rig.base.bundle import write_text_atomically

DOCUMENT = REPOSITORY / "docs" / "crash-trials.md"
BEGIN, END = "<!-- measured: make crash-trials -->", "<!-- end of what was measured -->"
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


def write(rows: Sequence[Row]) -> None:
    """Replaces what stands between the page's two marks."""
    text = DOCUMENT.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    write_text_atomically(DOCUMENT, f"{head}{BEGIN}\n\n{table(rows)}\n\n{END}{tail}")
