"""`python -m rig nightly` and `baseline`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from rig.base.settings import Layout
from rig.nightly.baselines import Baselines
from rig.nightly.job import Where
from rig.nightly.night import Nightly, new_folder
from rig.nightly.plan import load_plan

FOLDER = "nightly"


def add_to(commands: Any) -> None:
    """Adds both commands to argparse's sub-commands."""
    nightly = commands.add_parser(
        "nightly", help="run the acceptance subset on all candidates, compare with the baseline"
    )
    nightly.add_argument("--candidates", metavar="A,B", help="only these (all of the inventory's bench_nightly)")
    nightly.add_argument("--scenario", help="instead of the plan's")
    nightly.add_argument("--inventory", type=Path, metavar="FILE", help="inventory (inventory/lab.yml)")
    nightly.add_argument(
        "--runs", type=Path, default=Layout().runs, metavar="DIRECTORY", help="where run bundles go (runs)"
    )
    nightly.add_argument("--output", type=Path, metavar="DIRECTORY", help="where nights are kept (nightly)")
    nightly.add_argument("--resume", type=Path, metavar="NIGHT", help="go on with an interrupted night")
    nightly.add_argument("--time-limit-h", type=_positive, metavar="H", help="instead of the plan's")
    nightly.add_argument(
        "--keep-passes", type=_count, metavar="N", help="DELETE bundles of PASS beyond the newest N of each task"
    )
    nightly.add_argument("--influx-url", metavar="URL", help="an InfluxDB of your own")
    baseline = commands.add_parser("baseline", help="make a run what later nights are compared with")
    baseline.add_argument("run", type=Path, help="runs/<run-id>")
    baseline.add_argument("--output", type=Path, metavar="DIRECTORY", help="where nights are kept (nightly)")


def nightly(options: argparse.Namespace) -> int:
    layout = Layout()
    inventory = (options.inventory or layout.inventory / "lab.yml").resolve()
    candidates = [name for name in (options.candidates or "").split(",") if name]
    plan = load_plan(inventory, candidates, options.scenario)
    if options.time_limit_h is not None:
        plan = replace(plan, time_limit_s=3600.0 * options.time_limit_h)
    if options.keep_passes is not None:
        plan = replace(plan, keep_passes=options.keep_passes)
    folder = options.resume.resolve() if options.resume else new_folder(_nights(options))
    night = Nightly(plan, Where(inventory, options.runs.resolve(), options.influx_url), folder, Console(stderr=True))
    if options.resume:
        night.resume()
    return night.execute()


def baseline(options: argparse.Namespace) -> int:
    print(
        f"{Baselines(_nights(options)).choose(options.run.resolve())} is the baseline of its candidate, target and scenario"
    )
    return 0


def _nights(options: argparse.Namespace) -> Path:
    chosen: Path = options.output or Layout().repository / FOLDER
    return chosen.resolve()


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not above zero")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not 1 or more")
    return value


COMMANDS = {"nightly": nightly, "baseline": baseline}
