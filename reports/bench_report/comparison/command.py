"""`bench_report compare`: bundles in, comparison.html, .pdf and .json out; or, with --check, whether a document still follows from them."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from bench_model.yaml_source import check_document

from ..errors import BundleError

STEM, SCHEMA = "comparison", "comparison"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "compare", help="compare 2 to 8 candidates, or the configurations of one raid-vs-3dxp run"
    )
    parser.add_argument(
        "bundles", type=Path, nargs="+", metavar="RUN", help="run bundles; runs of one candidate are repetitions"
    )
    parser.add_argument("--prices", type=Path, metavar="FILE", help="YAML: prices of contenders or drive models")
    parser.add_argument(
        "--weights", type=Path, metavar="FILE", help="YAML: what counts how much, and which differences mean nothing"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder for comparison.html, .pdf and .json")
    parser.add_argument(
        "--check",
        type=Path,
        metavar="JSON",
        help="recompute and compare with this comparison.json instead; exit 1 if it differs",
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Exit status 0: written, or the same; 1: --check found a difference. Errors are raised."""
    # Late: a mistyped argument need not wait for matplotlib and WeasyPrint.
    from ..paper import write
    from .analysis import Asked, compare
    from .bundles import written
    from .document import paper_of

    if (chosen.output is None) == (chosen.check is None):
        raise BundleError("compare", "needs either -o DIR or --check JSON", "Name one of them")
    found, sources = compare(Asked(tuple(chosen.bundles), chosen.prices, chosen.weights))
    check_document(json.loads(written(found)), SCHEMA, "comparison.json")
    if chosen.check is not None:
        return checked(chosen.check, written(found))
    moment = max(source.run.finished or source.run.started for source in sources)
    for path in write(paper_of(found, commands(chosen), moment), chosen.output, STEM, written(found)):
        print(path)
    return 0


def commands(chosen: argparse.Namespace) -> tuple[str, ...]:
    """How to make the document again, by the names of files rather than their places on this machine."""
    runs = " ".join(f"runs/{shlex.quote(path.resolve().name)}" for path in chosen.bundles)
    extra = "".join(
        f" {key}={shlex.quote(file.name)}"
        for key, file in (("PRICES", chosen.prices), ("WEIGHTS", chosen.weights))
        if file
    )
    return (f'make compare RUNS="{runs}"{extra}',)


def checked(file: Path, again: str) -> int:
    """0 when `file` says what was just computed, to the letter; else 1 and the first difference on stderr."""
    try:
        before = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(str(file), f"cannot be read: {error}", "Name a document that this command wrote") from error
    if before == again:
        print(f"{file}: follows from these bundles")
        return 0
    lines = zip(before.splitlines(), again.splitlines(), strict=False)
    number, (was, now) = next(
        ((index, pair) for index, pair in enumerate(lines, 1) if pair[0] != pair[1]), (0, ("", "of another length"))
    )
    print(
        f"bench_report: {file}: line {number} says {was.strip()!r}, these bundles give {now.strip()!r}", file=sys.stderr
    )
    return 1
