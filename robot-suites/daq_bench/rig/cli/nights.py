"""`python -m daq_bench.rig nightly`, `baseline` and `gather`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.verdict import FAIL, INADMISSIBLE
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.terminal import printable, say
from daq_bench.rig.cli.arguments import Command, add_jobs, add_run, count, name_list, positive
from daq_bench.rig.cli.exits import EXIT
from daq_bench.rig.nightly.baselines import Baselines
from daq_bench.rig.nightly.job import Where
from daq_bench.rig.nightly.night import Nightly, new_folder
from daq_bench.rig.nightly.overdue import tell_overdue
from daq_bench.rig.nightly.plan import load_declared, load_plan
from daq_bench.rig.telemetry.influx_server import LocalInflux

FOLDER = "nightly"
JOBS = 4  # a control node gathers telemetry and renders reports for so many without trouble (docs/adr/0031)


def _add_nightly(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--candidates",
        type=name_list,
        default=(),
        metavar="A,B",
        help="only these (all of the inventory's bench_nightly)",
    )
    command.add_argument("--scenario", help="instead of the plan's")
    command.add_argument("--inventory", type=Path, metavar="FILE", help="inventory (inventory/lab.yml)")
    command.add_argument(
        "--runs", type=Path, default=Layout().runs, metavar="DIRECTORY", help="where run bundles go (runs)"
    )
    command.add_argument("--output", type=Path, metavar="DIRECTORY", help="where nights are kept (nightly)")
    command.add_argument("--resume", type=Path, metavar="NIGHT", help="go on with an interrupted night")
    command.add_argument("--time-limit-h", type=positive, metavar="H", help="instead of the plan's")
    command.add_argument(
        "--keep-passes", type=count, metavar="N", help="DELETE bundles of PASS beyond the newest N of each task"
    )
    command.add_argument("--influx-url", metavar="URL", help="an InfluxDB of your own")
    command.add_argument(
        "--overdue-h",
        type=positive,
        metavar="H",
        help="run nothing: say, and tell the plan's webhook, if no night has begun for so many hours, or one was killed (status 3)",
    )
    add_jobs(command, JOBS)


def nightly(options: argparse.Namespace) -> int:
    layout = Layout()
    inventory = (options.inventory or layout.inventory / "lab.yml").resolve()
    if options.overdue_h is not None:
        console, notify = Console(stderr=True), load_declared(inventory).notify
        late = tell_overdue(_nights(options), options.overdue_h, notify, lambda text: say(console, text))
        return EXIT[INADMISSIBLE] if late else 0
    plan = load_plan(inventory, options.candidates, options.scenario)
    if options.time_limit_h is not None:
        plan = replace(plan, time_limit_s=3600.0 * options.time_limit_h)
    if options.keep_passes is not None:
        plan = replace(plan, keeping=replace(plan.keeping, passes=options.keep_passes))
    nights = options.resume.resolve().parent if options.resume else _nights(options)
    Baselines(nights)  # a damaged file is told before a folder is made
    folder = options.resume.resolve() if options.resume else new_folder(nights)
    where = Where(inventory, options.runs.resolve(), options.influx_url, ("--yes",) if plan.accept_wear else ())
    night = Nightly(plan, where, folder, Console(stderr=True), options.jobs)
    try:
        return night.carry_out(goes_on=options.resume is not None)
    finally:
        try:
            LocalInflux(layout.influxd, layout.influx_data).stop_with_the_unit()
        except BenchError as error:  # the night itself ends as it ended
            say(Console(stderr=True), f"warning: {error}")


def _add_baseline(command: argparse.ArgumentParser) -> None:
    add_run(command)
    command.add_argument("--output", type=Path, metavar="DIRECTORY", help="where nights are kept (nightly)")


def baseline(options: argparse.Namespace) -> int:
    print(
        f"{Baselines(_nights(options)).choose(options.run.resolve())} is the baseline of its candidate, target and scenario"
    )
    return 0


def _add_gather(command: argparse.ArgumentParser) -> None:
    text = "a folder, or an address as fsspec takes it (s3://bucket/runs)"
    command.add_argument("--store", required=True, metavar="PLACE", help=text)
    command.add_argument("--runs", type=Path, default=Layout().runs, metavar="DIRECTORY", help="run bundles (runs)")
    command.add_argument("--fetch", action="store_true", help="from the store into --runs instead")
    command.add_argument("--whole", action="store_true", help="read back and hash what the store has already, too")


def gather(options: argparse.Namespace) -> int:
    from daq_bench.rig.store import gather as gathering
    from daq_bench.rig.store.place import Store, refused_by_client

    def say(one: gathering.Gathered) -> None:
        if one.what == gathering.REFUSED:
            print(f"refused: {printable(one.reason)}", file=sys.stderr)

    store, runs = Store(options.store), options.runs.resolve()
    try:
        found = (
            gathering.fetch(store, runs, say) if options.fetch else gathering.gather(runs, store, options.whole, say)
        )
    except OSError:
        raise
    except Exception as error:
        raise refused_by_client(options.store, error) from None
    print(", ".join(gathering.words(found)) or "there is nothing to gather")
    return EXIT[FAIL] if any(one.what == gathering.REFUSED for one in found) else 0


def _nights(options: argparse.Namespace) -> Path:
    chosen: Path = options.output or Layout().home / FOLDER
    return chosen.resolve()


COMMANDS = {
    "nightly": Command(
        "run the acceptance subset on all candidates, compare with the baseline",
        _add_nightly,
        nightly,
        needs_checkout=True,
    ),
    "gather": Command("copy sealed bundles into a store that several control nodes share", _add_gather, gather),
    "baseline": Command("choose the run that later nights are compared with", _add_baseline, baseline),
}
