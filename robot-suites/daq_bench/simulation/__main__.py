"""`make self-qualify`: the canary, the campaign, the mutants, and the page that says what they showed."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from daq_bench.bench_model.base.command_line import Parser
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.marked_page import renew
from daq_bench.bench_model.base.places import REPOSITORY
from daq_bench.simulation import market_document
from daq_bench.simulation.campaign import Campaign, Row, canary
from daq_bench.simulation.document import Measured, text_of
from daq_bench.simulation.mutants import cases_of, chosen_specs, trial
from daq_bench.simulation.physics.drawing import MARKET, is_sold, spec_of
from daq_bench.simulation.run import simulate
from daq_bench.simulation.sample import finish_sample

FOLDER = REPOSITORY / "build" / "self-qualification"
PAGES = REPOSITORY / "docs"
BEGIN, END = "<!-- measured: make self-qualify -->", "<!-- end of what was measured -->"
SHIPPED = ("snb-100s", "thermal", "steady-state", "saturation", "endurance", "raid-vs-3dxp")
RUNS, EACH = 1000, 2
INTERRUPTED, WRONG = 130, 1


def main() -> int:
    options = _options()
    try:
        return _sample(options) if options.sample else _qualify(options)
    except BenchError as error:
        print(f"self-qualify: {error}", file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        print("self-qualify: interrupted; the same command goes on from here", file=sys.stderr)
        return INTERRUPTED


def _options() -> argparse.Namespace:
    parser = Parser(prog="self-qualify", description=__doc__)
    parser.add_argument("--runs", type=_positive, default=RUNS, help=f"simulated runs (default {RUNS})")
    parser.add_argument("--seed", type=int, default=0, help="the first run's seed (default 0)")
    parser.add_argument(
        "--jobs", type=_positive, default=os.cpu_count() or 1, help="processes (default: one for each core)"
    )
    parser.add_argument(
        "--scenario",
        choices=("record", "snb-100s", "thermal", MARKET),
        default="record",
        help="snb-100s has the block scan, too; market is a scenario as shipped on servers drawn from what is sold",
    )
    parser.add_argument(
        "--shipped",
        choices=SHIPPED,
        help="with --scenario=market: the shipped scenario (default snb-100s)",
    )
    parser.add_argument(
        "--page",
        type=Path,
        help="the page to renew (default: the scenario's, in docs/; one that is not there begins as a copy of it)",
    )
    parser.add_argument(
        "--sample", type=Path, help="instead of a campaign: one whole bundle with its report, in this folder"
    )
    options = parser.parse_args()
    if options.shipped and options.scenario != MARKET:
        parser.error("--shipped names the scenario of the market's servers: say --scenario=market, too")
    if options.shipped not in (None, SHIPPED[0]):
        options.scenario = f"{MARKET}-{options.shipped}"
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: 1 or more was expected")
    return number


def _qualify(options: argparse.Namespace) -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="canary-", dir=FOLDER) as folder:
        found_canary = canary(Path(folder), options.scenario)
    seeds = range(options.seed, options.seed + options.runs)
    campaign = Campaign(seeds, options.scenario, FOLDER / f"rows-{options.scenario}.jsonl", options.jobs)
    rows = campaign.run(_Progress())
    if is_sold(options.scenario):  # the mutants are those of the record and of the soak
        return _told(
            rows, renewed(options, market_document.text_of(rows, options.seed, found_canary, options.scenario))
        )
    print("\nmutants of the bench", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=FOLDER) as folder:
        cases = list(cases_of(chosen_specs(EACH, options.scenario), Path(folder), options.scenario))
    measured = Measured(rows, options.seed, options.scenario, found_canary, trial(cases), len(cases))
    told = _told(rows, renewed(options, text_of(measured)))
    blind = [one.name for one in measured.mutants if not one.is_explained]
    if blind:
        print(f"self-qualify: no run shows what these are good for: {', '.join(blind)}", file=sys.stderr)
    return WRONG if blind else told


def renewed(options: argparse.Namespace, measured: str) -> Path:
    """Puts what was measured between the marks of the page, and returns its place."""
    own = options.scenario == "thermal" or is_sold(options.scenario)
    usual = PAGES / (f"self-qualification-{options.scenario}.md" if own else "self-qualification.md")
    page: Path = options.page or usual
    if not page.exists():
        shutil.copyfile(usual, page)
    renew(page, BEGIN, END, f"\n{measured}")
    return page


def _told(rows: Sequence[Row], page: Path) -> int:
    wrong = [row.seed for row in rows if row.wrong_pass]
    right = sum(row.is_right for row in rows)
    print(f"{len(rows)} runs, {right} right, {len(wrong)} wrong PASS{f': seeds {wrong}' if wrong else ''}; {page}")
    return WRONG if wrong else 0


def _sample(options: argparse.Namespace) -> int:
    """One run with everything that a real one has."""
    options.sample.mkdir(parents=True, exist_ok=True)
    run = simulate(spec_of(options.seed, options.scenario), options.sample, options.scenario)
    if run.bundle is None:
        raise BenchError(f"seed {options.seed} is refused before there is a bundle: {run.reasons[0]}")
    print(finish_sample(run.bundle))
    return 0


class _Progress:
    """Describes how many runs are made, and how long the others will take at the pace of those that this command made."""

    def __init__(self) -> None:
        self._began_s, self._first = time.monotonic(), -1

    def __call__(self, done: int, total: int) -> None:
        if self._first < 0:
            self._first = done
        made, took_s = done - self._first, time.monotonic() - self._began_s
        left = f", about {took_s * (total - done) / made / 60:.1f} min left" if made else ""
        print(f"\r{done} of {total} runs{left}   ", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
