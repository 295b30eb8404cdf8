"""`bench_report compare`: makes comparison.html, .pdf and .json of bundles; with --check it says whether a document still follows."""

from __future__ import annotations

import argparse
from pathlib import Path

from daq_bench.bench_report.output.delivery import add_outputs, check_outputs, deliver

STEM = "comparison"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "compare 2 to 8 candidates, or the configurations of one raid-vs-3dxp run"
    parser = commands.add_parser("compare", help=text)
    text = "run bundles; runs of one candidate are repetitions"
    parser.add_argument("bundles", type=Path, nargs="+", metavar="RUN", help=text)
    parser.add_argument("--prices", type=Path, metavar="FILE", help="YAML: prices of contenders or drive models")
    text = "YAML: what counts how much, and which differences mean nothing"
    parser.add_argument("--weights", type=Path, metavar="FILE", help=text)
    add_outputs(parser, STEM)
    parser.set_defaults(run=run, variables={"prices": "PRICES", "weights": "WEIGHTS"})


def run(chosen: argparse.Namespace) -> int:
    """Returns the exit status; raises errors."""
    check_outputs(chosen)
    from daq_bench.bench_report.comparison.analysis import Asked, compare
    from daq_bench.bench_report.comparison.document import paper_of

    found, sources = compare(Asked(tuple(chosen.bundles), chosen.prices, chosen.weights))
    return deliver(chosen, STEM, found, max(source.moment for source in sources), paper_of)
