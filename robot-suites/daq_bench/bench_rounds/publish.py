"""`python -m daq_bench.bench_rounds.publish --write FILE.md --parts agent,ingest`: puts these parts' last results between FILE's two marks,
with date and machine; for a part with many points only its criteria. It refuses quick looks and measurements on a busy machine, since they
are no claim."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from daq_bench.bench_model.base.command_line import Parser
from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_rounds import document, tables
from daq_bench.bench_rounds.part import Documents
from daq_bench.bench_rounds.parts import TABLE, known_parts

MOST_POINTS = 12  # in a table that people read; the JSON has the others
BEGIN, END = "<!-- measured: written by", "<!-- measured: end -->"


def text_of(documents: Documents, names: Sequence[str]) -> str:
    """Markdown of the parts' sections. RefusedError where a part is missing, or does not count as a claim."""
    found = {one["part"]: one for one in documents}
    for name in names:
        if name not in found:
            raise RefusedError(f"part {name} was not measured: make bench PARTS={','.join(names)}")
        if found[name]["reservations"]:
            raise RefusedError(f"part {name} is no claim: {'; '.join(found[name]['reservations'])}. Measure again")
    lines = []
    for name in names:
        lines += [f"From `make bench`: {tables.machine_line(found[name])}.", ""]
        # One level below the file's own headings, which the part's would interrupt.
        short = len(found[name]["points"]) > MOST_POINTS
        section = tables.section(found[name], known_parts()[name], short=short)
        lines += [f"##{line}" if line.startswith("## ") else line for line in section]
    return "\n".join(lines).strip() + "\n"


def replaced(old: str, new: str, file: Path) -> str:
    """`old` with `new` between its marks."""
    lines = old.splitlines(keepends=True)
    begins = [place for place, line in enumerate(lines) if line.startswith(BEGIN)]
    ends = [place for place, line in enumerate(lines) if line.startswith(END)]
    if len(begins) != 1 or len(ends) != 1 or begins[0] > ends[0]:
        raise RefusedError(f"{file} must have one line that begins with {BEGIN!r} and below it one with {END!r}")
    return "".join([*lines[: begins[0] + 1], new, *lines[ends[0] :]])


def main(arguments: Sequence[str] | None = None) -> int:
    """0: written; 2: refused, and nothing was written."""
    made = Parser(prog="daq_bench.bench_rounds.publish", description=__doc__)
    made.add_argument("--write", type=Path, required=True, metavar="FILE.md")
    made.add_argument("--parts", required=True, help="names of the parts, with commas between them")
    made.add_argument("--results", type=Path, default=Path("build/bench"), help="directory of the results")
    asked = made.parse_args(arguments)
    try:
        names = asked.parts.split(",")
        if unknown := [name for name in names if name not in TABLE]:
            raise RefusedError(f"--parts {asked.parts}: no part {', '.join(unknown)}. {nearest(unknown[0], TABLE)}")
        text = text_of(document.load(asked.results, names), names)
        old = asked.write.read_text(encoding="utf-8")
        asked.write.write_text(replaced(old, text, asked.write), encoding="utf-8")
    except (BenchError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
