"""`bench_report compare`: makes comparison.html, .pdf and .json of bundles; with --check it says whether a document still follows."""

from __future__ import annotations

import argparse
from pathlib import Path

from daq_bench.bench_model.base.command_line import Parser
from daq_bench.bench_report.output.delivery import add_outputs, check_outputs, deliver, say_marks
from daq_bench.bench_report.reading.door import TRUST, add_trust, trust_of

STEM = "comparison"


def add_parser(commands: argparse._SubParsersAction[Parser]) -> None:
    text = "compare 2 to 8 candidates, or the configurations of one raid-vs-3dxp run"
    parser = commands.add_parser("compare", help=text)
    text = "run bundles; runs of one candidate are repetitions"
    parser.add_argument("bundles", type=Path, nargs="+", metavar="RUN", help=text)
    parser.add_argument("--prices", type=Path, metavar="FILE", help="YAML: prices of contenders or drive models")
    text = "YAML: what counts how much, and which differences mean nothing"
    parser.add_argument("--weights", type=Path, metavar="FILE", help=text)
    text = "also rank runs that no trusted key signed: page 1 says so"
    parser.add_argument("--accept-unsigned", action="store_true", default=None, help=text)
    add_trust(parser)
    add_outputs(parser, STEM)
    parser.set_defaults(run=run, told_again=("prices", "weights", "accept_unsigned", *TRUST))


def run(chosen: argparse.Namespace) -> int:
    """Returns the exit status; raises errors."""
    check_outputs(chosen, STEM)
    from daq_bench.bench_report.comparison.analysis import Asked, compare
    from daq_bench.bench_report.comparison.document import paper_of

    found, sources = compare(Asked(tuple(chosen.bundles), chosen.prices, chosen.weights, trust_of(chosen)))
    say_marks(found.runs)
    return deliver(chosen, STEM, found, max(source.moment for source in sources), paper_of)
