"""`python -m writer_bench.publish --write FILE.md`: puts what parts agent and ingest measured last between FILE's two marks, with date
and machine. Quick looks and measurements on a busy machine are no claim, and are refused."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench_model.errors import BenchError, RefusedError
from writer_bench import document, tables
from writer_bench.part import Documents
from writer_bench.parts import PARTS

NAMES = ("agent", "ingest")
BEGIN, END = "<!-- measured: written by", "<!-- measured: end -->"


def text_of(documents: Documents) -> str:
    """Markdown of the parts' sections. RefusedError where a part is missing, or does not count as a claim."""
    found = {one["part"]: one for one in documents}
    for name in NAMES:
        if name not in found:
            raise RefusedError(f"part {name} was not measured: make bench PARTS={','.join(NAMES)}")
        if found[name]["reservations"]:
            raise RefusedError(f"part {name} is no claim: {'; '.join(found[name]['reservations'])}. Measure again")
    lines = []
    for name in NAMES:
        lines += [f"From `make bench`: {tables.machine_line(found[name])}.", ""]
        # One level below the file's own headings, which the part's would interrupt.
        lines += [f"##{line}" if line.startswith("## ") else line for line in tables.section(found[name], PARTS[name])]
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
    made = argparse.ArgumentParser(prog="writer_bench.publish", description=__doc__)
    made.add_argument("--write", type=Path, required=True, metavar="FILE.md")
    made.add_argument("--results", type=Path, default=Path("build/bench"), help="directory of the results")
    asked = made.parse_args(arguments)
    try:
        text = text_of(document.load(asked.results, NAMES))
        old = asked.write.read_text(encoding="utf-8")
        asked.write.write_text(replaced(old, text, asked.write), encoding="utf-8")
    except (BenchError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
