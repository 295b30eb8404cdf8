"""`python -m daq_bench.rig watch`: the runs that are going on, as a page of a terminal."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.base.units import GB, MB, in_digits
from daq_bench.bench_model.bundle.files import find_struct
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.bench_model.verdict.conclusion import conclude
from daq_bench.bench_model.verdict.judging import VERDICT
from daq_bench.bench_model.verdict.sentences import SIGNS, quantity
from daq_bench.rig.base.bundle import RUN
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.cli.arguments import Command, add_json, print_document, say, shown
from daq_bench.rig.run.clean_up import interrupts_as_exceptions
from daq_bench.rig.run.onlooker import DEAD, GOING_ON, Onlooker, Sight
from daq_bench.rig.run.progress import LOG_EVERY_S, clock

LOOK_EVERY_S = 2.0
OLD_PERIODS = 3  # of sampling: an older value says its age
WIDTH = 80  # where there is no terminal
STYLES = {"DEAD": "bold red", "fault": "red", "next": "bold"}


def _add_watch(command: argparse.ArgumentParser) -> None:
    command.add_argument("--runs", type=Path, metavar="FOLDER", help="where the bundles of the runs are (runs)")
    command.add_argument("--once", action="store_true", help="one look, instead of one every 2 s until all have ended")
    add_json(command, "one look")


def watch(options: argparse.Namespace) -> int:
    """Ends when no run is going on any more; Ctrl-C ends it before."""
    folder: Path = options.runs or Layout().runs
    if options.runs and not folder.is_dir():
        why = "it is a file" if folder.exists() else "there is no such folder"
        raise BenchError(f"{folder} holds no runs ({why}). Name the folder that `daq-bench qualify --runs` was given")
    onlooker = Onlooker(Path(shown(folder.absolute())), Layout())
    if options.json:
        print_document(options, {"runs": [asdict(one) for one in onlooker.look()]})
        return 0
    console = Console()
    console = console if console.is_terminal else Console(width=WIDTH)
    followed: set[str] = set()
    try:
        with interrupts_as_exceptions():
            sights = _follow(onlooker, console, followed, once=options.once)
    except KeyboardInterrupt:
        return 0
    ended = sorted(followed - {one.run for one in sights})
    for name in ended:
        say(options, printable(_end_of(folder / name)))
    if not sights and not ended:
        say(options, f"No run is going on in {shown(folder)}. `daq-bench qualify` starts one")
    return 0


def _follow(onlooker: Onlooker, console: Console, followed: set[str], *, once: bool) -> list[Sight]:
    """Returns the last look. `followed` gets the names of the runs that were seen going on."""

    def look() -> list[Sight]:
        sights = onlooker.look()
        followed.update(one.run for one in sights if one.state == GOING_ON)
        return sights

    sights = look()
    if once or not console.is_terminal:
        console.print(_page(sights))
        while not once and _any_goes_on(sights):
            time.sleep(LOG_EVERY_S)
            sights = look()
            console.print(_page(sights))
        return sights
    live = Live(_page(sights), console=console, auto_refresh=False)
    try:  # not `with`, which does not end what was stopped while it began: the cursor would stay hidden
        live.start(refresh=True)
        while _any_goes_on(sights):
            time.sleep(LOOK_EVERY_S)
            sights = look()
            live.update(_page(sights), refresh=True)
    finally:
        live.stop()
    return sights


def _end_of(bundle: Path) -> str:
    """How a run ended that somebody watched, by its stored verdict."""
    try:
        verdict, run = find_struct(bundle, VERDICT, Verdict), find_struct(bundle, RUN, Run)
    except BenchError as error:
        return f"{shown(bundle)} has ended: {in_words(error)}"
    if verdict is not None:
        return f"{shown(bundle)} has ended: {conclude(verdict).line}"
    return f"{shown(bundle)} has ended without a verdict{f': {run.state}, {run.state_reason}' if run and run.state_reason else ''}"


def _any_goes_on(sights: Sequence[Sight]) -> bool:
    return any(one.state == GOING_ON for one in sights)


def _page(sights: Sequence[Sight]) -> Group:
    parts: list[Text | Table] = []
    for one in sights:
        table = Table.grid(padding=(0, 2))
        for label, text in _rows(one, brief=len(sights) > 1):
            style = STYLES.get(label, "")
            table.add_row(Text(label, style=style), Text(printable(text), style=style, overflow="fold"))
        where = f", target {one.target}" if one.target else ""
        head = (
            f"{one.candidate}{where}: {one.scenario} at scale {in_digits(one.scale, 6)}" if one.candidate else one.run
        )
        parts += [Text()] if parts else []
        parts += [Text(printable(head), style="bold"), table]
    return Group(*parts)


def _rows(one: Sight, *, brief: bool) -> Iterator[tuple[str, str]]:
    """Returns what is said of one run, by label; briefly where several share the screen."""
    yield "run", one.run
    if one.candidate:
        place = f" ({one.phase_number} of {one.phases})" if one.phase_number else ""
        yield "phase", f"{one.phase}{place}{f': {one.step}' if one.step else ''}"
    if one.state == DEAD:
        age = "" if one.last_event_age_s is None else f"; its last event is {clock(one.last_event_age_s)} old"
        yield "DEAD", f"no process of this machine drives it any more{age}"
        yield from (("next", step) for step in one.next_step)
    if one.state == GOING_ON:
        yield from _live_rows(one)
    measured = []
    for so_far in one.requirements:
        if so_far.measured is not None:
            value, bound = quantity(so_far.measured, so_far.unit), quantity(so_far.bound, so_far.unit)
            text = "" if brief else f" {so_far.text}:"
            measured.append(f"{so_far.id}{text} {value}, asked {SIGNS[so_far.comparison]} {bound}")
    yield from (("so far", text) for text in (["; ".join(measured)] if brief and measured else measured))
    if missing := [so_far.id for so_far in one.requirements if so_far.measured is None]:
        yield "not yet", ", ".join(missing)
    yield from (("fault", text) for text in one.faults)


def _live_rows(one: Sight) -> Iterator[tuple[str, str]]:
    left = "" if one.left_s is None else f", about {clock(one.left_s)} left"
    foreseen = "; how long it takes is not known" if one.foreseen_s is None else f" of {clock(one.foreseen_s)} foreseen"
    yield "time", f"{clock(one.elapsed_s or 0.0)} elapsed{left}{foreseen}"
    old = _old(one.rates_age_s, one.period_s)
    rates = ", ".join(f"{name} {rate / GB:.3f} GB/s" for name, rate in one.rates_bytes_per_s.items())
    demand = "" if one.demand_bytes_per_s is None else f"; demand {one.demand_bytes_per_s / GB:.3f} GB/s"
    yield "rate", f"{rates or 'nothing is measured now'}{old if rates else ''}{demand}"
    if one.backlog_bytes is not None:
        share = "" if one.backlog_percent is None else f" ({one.backlog_percent:.1f} % of the buffer)"
        yield "backlog", f"{one.backlog_bytes / MB:.1f} MB{share}{f'; BUSY {one.busy} times' if one.busy else ''}{old}"
    if one.lost_superchunks is not None:
        yield "lost", f"{one.lost_superchunks} superchunks of the present record{old}"
    if hot := one.hottest:
        limit = "it states no warning limit"
        if hot.warning_degc is not None:
            side = "below" if hot.degc <= hot.warning_degc else "ABOVE"
            limit = f"{abs(hot.warning_degc - hot.degc):.0f} K {side} its own warning limit"
        yield "hottest", f"{hot.device} {hot.degc:.0f} degC, {limit}{_old(hot.age_s, hot.period_s)}"
    telemetry = "none yet" if one.telemetry_age_s is None else f"the newest point is {clock(one.telemetry_age_s)} old"
    yield "telemetry", telemetry


def _old(age_s: float | None, period_s: float) -> str:
    return f", {clock(age_s)} ago" if age_s is not None and age_s > OLD_PERIODS * period_s else ""


COMMANDS = {"watch": Command("show the runs that are going on", _add_watch, watch)}
