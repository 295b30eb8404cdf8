"""`daq-bench list`: what can be named on a command line. A table for people, a document for programs, bare names for a shell's completion.

Names come from folders and from one look into the inventory, so that a shell has them at once; a table reads each profile."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.command_line import Parser
from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.base.places import IN_CHECKOUT, REPOSITORY
from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.profiles.candidates import candidate_names, load_candidate

Row = dict[str, Any]
FAILED = 2
NONE_YET = {"runs": ". `daq-bench qualify` makes one"}
INVENTORY = REPOSITORY / "inventory"


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("kind", choices=list(KINDS), help="what to list")
    command.add_argument("--inventory", type=Path, metavar="FILE", help="inventory (inventory/lab.yml)")
    command.add_argument("--candidate", metavar="NAME", help="the targets of this candidate alone")
    command.add_argument("--json", action="store_true", help="the rows as JSON on standard output")
    command.add_argument("--names", action="store_true", help="names alone, one a line: for a shell's completion")


def run(options: argparse.Namespace) -> int:
    """A fault in one profile hides no other: it goes to stderr, and the exit status is 2."""
    if options.candidate and options.kind != "targets":
        raise BenchError(
            f"--candidate chooses among targets. Write `daq-bench list targets --candidate {options.candidate}`"
        )
    inventory = options.inventory or INVENTORY / "lab.yml"
    if options.names:
        for name in dict.fromkeys(names(options.kind, inventory, options.candidate)):
            print(name)
        return 0
    found = list(KINDS[options.kind](inventory, options.candidate))
    rows = [row for row in found if isinstance(row, dict)]
    faults = [row for row in found if isinstance(row, BenchError)]
    if options.json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        _print_table(options.kind, rows)
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    return FAILED if faults else 0


def main(words: list[str]) -> int:
    """The command without the others, whose modules a completion need not wait for."""
    parser = Parser(prog="daq-bench list", description="List what can be named on a command line.")
    add_arguments(parser)
    options = parser.parse_args(words)
    try:
        return run(options)
    except (BenchError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        print(f"error: {in_words(error)}", file=sys.stderr)
        return FAILED


def _print_table(kind: str, rows: list[Row]) -> None:
    """Columns as wide as they must be; the last, a sentence, runs on."""
    if not rows:
        print("there are none" + NONE_YET.get(kind, ""))
        return
    cells = [list(map(str, rows[0])), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool) or value is None:
        return "yes" if value else ""
    return in_digits(value, 15) if isinstance(value, float) else str(value)


def names(kind: str, inventory: Path, candidate: str | None = None) -> Iterator[str]:
    """Names alone, those of files and hosts without a look at what is in them. None has a character that no line of a shell shows."""
    yield from (name for name in _all_names(kind, inventory, candidate) if name and name.isprintable())


def _all_names(kind: str, inventory: Path, candidate: str | None) -> Iterator[str]:
    if kind == "candidates":
        yield from candidate_names(inventory)
    elif kind in ("scenarios", "requirements"):
        yield from (file.stem for file in _files(kind))
    else:
        column = kind.removesuffix("s")
        yield from (row[column] for row in KINDS[kind](inventory, candidate) if isinstance(row, dict))


Rows = Iterator[Row | BenchError]


def _candidates(inventory: Path, _: str | None) -> Rows:
    for name in candidate_names(inventory):
        try:
            one = load_candidate(inventory, name)
        except BenchError as error:
            yield error
            continue
        yield {
            "candidate": one.name, "connection": one.connection, "scenario": one.document.get("scenario"),
            "requirement": one.document.get("requirement"), "targets": len(one.targets), "description": one.description,
        }  # fmt: skip


def _targets(inventory: Path, candidate: str | None) -> Rows:
    for name in [candidate] if candidate else candidate_names(inventory):
        try:
            one = load_candidate(inventory, name)
        except BenchError as error:
            if candidate:
                raise
            yield error
            continue
        for target in one.targets:
            yield {
                "candidate": one.name, "target": target.name, "kind": target.kind,
                "run of its own": not target.comparison_only,
                "erased": target.serials if target.destroy or (target.storage or {}).get("destroy") else [],
                "place": target.directory or f"drive {target.drive_serial}",
            }  # fmt: skip


def _scenarios(_: Path, __: str | None) -> Rows:
    from daq_bench.bench_model.profiles.scenarios import load_scenario

    for file in _files("scenarios"):
        try:
            one = load_scenario(file)
        except BenchError as error:
            yield error
            continue
        yield {
            "scenario": one.id, "scale": one.scale, "duration_s": one.duration_s,
            "requirement": one.document.get("requirement"), "workloads": list(one.workloads), "title": one.title,
        }  # fmt: skip


def _requirements(_: Path, __: str | None) -> Rows:
    from daq_bench.bench_model.profiles.metrics import load_metrics
    from daq_bench.bench_model.profiles.requirements import load_requirements

    metrics = load_metrics(INVENTORY / "metrics.yml")
    for file in _files("requirements"):
        try:
            one = load_requirements(file, metrics)
        except BenchError as error:
            yield error
            continue
        yield {"requirement": one.id, "bounds": len(one.requirements), "title": one.title}


def _metrics(_: Path, __: str | None) -> Rows:
    from daq_bench.bench_model.profiles.metrics import load_metrics

    for one in load_metrics(INVENTORY / "metrics.yml").values():
        yield {
            "metric": one.name,
            "unit": one.unit,
            "better": one.better,
            "nature": one.nature,
            "description": one.description,
        }


def _files(folder: str) -> list[Path]:
    return sorted((INVENTORY / folder).glob("*.yml"), key=lambda file: file.stem)


def _runs(_: Path, __: str | None) -> Rows:
    """The newest first."""
    home = REPOSITORY if IN_CHECKOUT else Path.cwd()
    for folder in sorted((home / "runs").glob("*"), reverse=True):
        # `runs/latest` is a link to one of them.
        if (folder / "run.json").is_file() and not folder.is_symlink():
            yield {"run": f"runs/{folder.name}"}


KINDS: dict[str, Callable[[Path, str | None], Rows]] = {
    "candidates": _candidates,
    "scenarios": _scenarios,
    "requirements": _requirements,
    "targets": _targets,
    "metrics": _metrics,
    "runs": _runs,
}
