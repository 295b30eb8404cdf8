"""The common command line of documents on several runs: their place, the command that makes them again, the check of a stored one."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from daq_bench.bench_model.base.errors import in_words
from daq_bench.bench_model.documents.several import RunBehind
from daq_bench.bench_model.documents.struct import Struct, as_document
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.document.beside import lines_of

if TYPE_CHECKING:  # the drawing libraries take seconds to load: a mistyped argument does not wait for them
    from daq_bench.bench_report.output.paper import Paper

RUNS_NAMED = 4


def add_outputs(parser: argparse.ArgumentParser, stem: str) -> None:
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help=f"folder for {stem}.html, {stem}.pdf and {stem}.json (build/{stem})",
    )
    text = f"recompute and compare with this {stem}.json instead; exit 1 if it differs"
    parser.add_argument("--check", type=Path, metavar="JSON", help=text)


def check_outputs(chosen: argparse.Namespace, stem: str) -> None:
    """Raises BundleError for both -o and --check; neither means the default folder."""
    if chosen.output is not None and chosen.check is not None:
        raise BundleError(chosen.command, "takes either -o DIR or --check JSON", "Name one of them")
    if chosen.check is None:
        chosen.output = chosen.output or Path("build") / stem


def deliver(
    chosen: argparse.Namespace, stem: str, found: Struct, moment: datetime, paper_of: Callable[..., Paper]
) -> int:
    """Writes the document, or checks one. Returns the exit status: 0 written, or the same; 1 --check found a difference."""
    from daq_bench.bench_report.output.paper import write

    text = json.dumps(as_document(found), ensure_ascii=False, indent=1) + "\n"
    if chosen.check is not None:
        return checked(chosen.check, text)
    for path in write(paper_of(found, command_of(chosen), moment), chosen.output, stem, text):
        print(path)
    return 0


def say_marks(runs: Sequence[RunBehind]) -> None:
    """Says on the terminal what stands beside each run in the document."""
    for line in lines_of((run.run_id, ", ".join(run.marks)) for run in runs):
        print(line, file=sys.stderr)


def command_of(chosen: argparse.Namespace) -> str:
    """Returns the command that makes the document again, with files by their names rather than their places on this machine."""
    names = [shlex.quote(f"runs/{path.resolve().name}") for path in chosen.bundles]
    runs = " ".join(names) if len(names) <= RUNS_NAMED else f"the {len(names)} runs above"
    return f"daq-bench {chosen.command} {runs}" + "".join(
        f" --{key.replace('_', '-')}"
        + ("" if value is True else f" {shlex.quote(value.name if isinstance(value, Path) else str(value))}")
        for key in chosen.told_again
        if (value := getattr(chosen, key)) is not None
    )


def checked(file: Path, again: str) -> int:
    """Returns 0 when `file` equals the document just computed, to the letter; else 1, with the first difference on stderr."""
    try:
        before = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(
            str(file), f"cannot be read: {in_words(error)}", "Name a document that this command wrote"
        ) from error
    if before == again:
        print(f"{file}: follows from these bundles")
        return 0
    number, was, now = _first_difference(before.splitlines(), again.splitlines())
    text = f"line {number} says {was.strip()!r}, these bundles give {now.strip()!r}"
    print(f"bench_report: {file}: {text}", file=sys.stderr)
    return 1


def _first_difference(before: Sequence[str], again: Sequence[str]) -> tuple[int, str, str]:
    for number, (was, now) in enumerate(zip(before, again, strict=False), 1):
        if was != now:
            return number, was, now
    end = min(len(before), len(again))
    return end + 1, "".join(before[end : end + 1]), "".join(again[end : end + 1])
