"""`bench_report lot`: makes lot.html, .pdf and .json of bundles; with --check it says whether a document still follows."""

from __future__ import annotations

import argparse
from pathlib import Path

from daq_bench.bench_model.base.command_line import Parser
from daq_bench.bench_report.output.delivery import add_outputs, check_outputs, deliver, say_marks
from daq_bench.bench_report.reading.door import TRUST, add_trust, trust_of

STEM = "lot"


def add_parser(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser("lot", help="what runs on drives of one model say about the lot that they came from")
    text = (
        "run bundles, each on one drive or comparing single drives; or a folder of bundles, to take those of the model"
    )
    parser.add_argument("bundles", type=Path, nargs="+", metavar="RUN", help=text)
    parser.add_argument("--lot-size", type=int, metavar="N", help="drives in the lot, the tested ones included")
    text = "drives in a stripe; all tested ones when left out"
    parser.add_argument("--stripe", type=int, metavar="M", help=text)
    parser.add_argument("--model", help="the model, where the runs have drives of several")
    text = "the requirement that is drawn; the first rate when left out"
    parser.add_argument("--requirement", metavar="ID", help=text)
    add_trust(parser)
    add_outputs(parser, STEM)
    parser.set_defaults(run=run, told_again=("lot_size", "stripe", "model", "requirement", *TRUST))


def run(chosen: argparse.Namespace) -> int:
    """Returns the exit status; raises errors."""
    check_outputs(chosen, STEM)
    from daq_bench.bench_report.lot.analysis import Asked, lot
    from daq_bench.bench_report.lot.choice import bundles_of
    from daq_bench.bench_report.lot.document import paper_of

    chosen.bundles = bundles_of(chosen.bundles, chosen.model)
    asked = Asked(
        tuple(chosen.bundles), chosen.lot_size, chosen.stripe, chosen.model, chosen.requirement, trust_of(chosen)
    )
    found, runs = lot(asked)
    say_marks(found.runs)
    return deliver(chosen, STEM, found, max(run.moment for run in runs), paper_of)
