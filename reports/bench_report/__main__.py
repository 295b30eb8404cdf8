"""`python -m bench_report render runs/<id>`: writes report.html and report.pdf into the bundle.

`compare` and `lot` make documents on several runs.

Exit status 0 when all is written, 1 when --check found a difference, 2 when a bundle cannot be reported on; then stderr has one
line that says why.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench_model.errors import BenchError

from .comparison import command as comparison
from .lot import command as lot


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench_report", description="Reports on run bundles.")
    commands = parser.add_subparsers(dest="command", required=True)
    render_parser = commands.add_parser("render", help="write report.html and report.pdf into a run bundle")
    render_parser.add_argument("bundle", type=Path, help="the run bundle, for example runs/latest")
    render_parser.set_defaults(run=_render)
    comparison.add_parser(commands)
    lot.add_parser(commands)
    chosen = parser.parse_args(arguments)
    try:
        done: int = chosen.run(chosen)
    except BenchError as error:
        print(f"bench_report: {error}", file=sys.stderr)
        return 2
    return done


def _render(chosen: argparse.Namespace) -> int:
    from .render import render  # late: a mistyped argument need not wait for matplotlib and WeasyPrint

    for path in render(chosen.bundle):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
