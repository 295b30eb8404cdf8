"""`python -m bench_report render runs/<id>`: writes report.html and report.pdf into the bundle.
`trend RUNS... --candidate NAME`: trend.html, trend.pdf and trend.json over its runs. `nightly FOLDER`: nightly.html of a night.

Exit status 0 when both are written, 2 when the bundle cannot be reported on; then stderr has one line that says why.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench_model.errors import BenchError


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench_report", description="Reports on run bundles.")
    commands = parser.add_subparsers(dest="command", required=True)
    render_parser = commands.add_parser("render", help="write report.html and report.pdf into a run bundle")
    render_parser.add_argument("bundle", type=Path, help="the run bundle, for example runs/latest")
    trend_parser = commands.add_parser(
        "trend", help="write trend.html, trend.pdf and trend.json over one candidate's runs"
    )
    trend_parser.add_argument("runs", type=Path, nargs="+", help="a folder of run bundles, or bundles")
    trend_parser.add_argument("--candidate", required=True, help="its name in the inventory")
    trend_parser.add_argument("--scenario", help="id; the newest run's when left out")
    trend_parser.add_argument("-o", "--output", type=Path, help="folder for the documents (trend-NAME)")
    nightly_parser = commands.add_parser("nightly", help="write nightly.html into a night's folder")
    nightly_parser.add_argument("folder", type=Path, help="nightly/<id>")
    chosen = parser.parse_args(arguments)
    try:
        for path in _write(chosen):
            print(path)
    except BenchError as error:
        print(f"bench_report: {error}", file=sys.stderr)
        return 2
    return 0


def _write(chosen: argparse.Namespace) -> Iterable[Path]:
    """Imports late: a mistyped argument need not wait for matplotlib and WeasyPrint."""
    if chosen.command == "trend":
        from . import trend

        return trend.render(
            chosen.runs, chosen.candidate, chosen.scenario, chosen.output or Path(f"trend-{chosen.candidate}")
        )
    if chosen.command == "nightly":
        from . import nightly

        return nightly.render(chosen.folder)
    from .render import render

    return render(chosen.bundle)


if __name__ == "__main__":
    sys.exit(main())
