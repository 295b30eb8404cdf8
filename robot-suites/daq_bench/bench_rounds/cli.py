"""The command line of `make bench`: checks before the start, the parts in order, a document for each, one summary."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.command_line import Parser
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_rounds import document, tables
from daq_bench.bench_rounds.measuring import machine
from daq_bench.bench_rounds.measuring.progress import TimeLeft
from daq_bench.bench_rounds.measuring.rounds import run_points
from daq_bench.bench_rounds.measuring.tools import INFLUXD_VARIABLE, Tools
from daq_bench.bench_rounds.part import Documents, Part, Settings
from daq_bench.bench_rounds.parts import TABLE, known_parts
from daq_bench.rig.base.bundle import now_utc
from daq_bench.rig.base.shell import LocalShell

ALL_HOLD, MISSED, USAGE, INTERRUPTED = 0, 1, 2, 130


def chosen_parts(text: str) -> list[Part]:
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in TABLE]
    if unknown:
        raise argparse.ArgumentTypeError(f"no part {', '.join(map(repr, unknown))}. {nearest(unknown[0], TABLE)}")
    return [part for part in known_parts().values() if {part.name, part.along} & set(names)]


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog=f"{called} bench" if (called := os.environ.get("DAQ_BENCH_NAME")) else "bench_rounds", description=__doc__
    )
    made.add_argument("--parts", type=chosen_parts, default=",".join(TABLE), help="parts to run (default: %(default)s)")
    made.add_argument("--quick", action="store_true", help="a look of a few minutes; never the claim")
    made.add_argument(
        "--scratch", type=Path, default=Path("build/bench/scratch"), help="directory on the drive of interest"
    )
    made.add_argument("--output", type=Path, default=Path("build/bench"), help="directory of the results")
    made.add_argument("--daqwriter", type=Path, default=Path("build/native-writer/daqwriter"))
    made.add_argument("--agent", type=Path, default=Path("build/telemetry_agent.pyz"), help="the agent's artefact")
    made.add_argument(
        "--influxd",
        type=Path,
        default=Path(os.environ.get(INFLUXD_VARIABLE) or "build/tools/influxd"),
        help=f"InfluxDB 1.8 server (default: {INFLUXD_VARIABLE}, or %(default)s)",
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """0: all criteria hold; 1: one is missed or undecided; 2: usage, or refused before anything was measured; 130: interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        return run(parser().parse_args(arguments))
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return USAGE


def run(asked: argparse.Namespace) -> int:
    settings, parts = Settings(asked.quick), asked.parts
    asked.output.mkdir(parents=True, exist_ok=True)
    with machine.scratch_folder(asked.scratch) as scratch:
        tools = Tools(
            LocalShell(),
            asked.daqwriter.resolve(),
            scratch,
            agent=asked.agent.resolve(),
            influxd=asked.influxd.resolve(),
        )
        for part in parts:
            part.require(tools)
        facts = machine.facts(scratch)
        needs = {part.name: part.space_bytes(settings) for part in parts}
        machine.require_space(asked.scratch, needs, facts["free_bytes"])
        warning = machine.busy_warning(facts["busy_share_before"])
        circumstances = {"machine": facts, "versions": tools.versions(), "warnings": [warning] if warning else []}
        planned = sum(point.expected_s() for part in parts for point in part.points(settings, tools))
        further = 0.0 if settings.quick else sum(part.extra_s for part in parts)
        progress = TimeLeft(planned)
        if warning:
            progress.say(f"Warning: {warning}.")
        progress.say(f"About {planned / 60:.0f} min, and up to {further / 60:.0f} more where ratios scatter.")
        finished: Documents = []
        interrupted = False
        try:
            for part in parts:
                finished.append(run_part(part, settings, tools, progress, finished, circumstances, asked.output))
        except KeyboardInterrupt:
            interrupted = True
    text = tables.summary(finished, known_parts(), interrupted)
    (asked.output / "summary.md").write_text(text, encoding="utf-8")
    print(text, end="")
    if interrupted:
        return INTERRUPTED
    return MISSED if tables.missed(finished) or tables.undecided(finished) else ALL_HOLD


def run_part(
    part: Part,
    settings: Settings,
    tools: Tools,
    progress: TimeLeft,
    finished: Documents,
    circumstances: dict[str, Any],
    output: Path,
) -> dict[str, Any]:
    started, points, notes = now_utc(), part.points(settings, tools), []
    # A part that measures nothing itself looks at this run's other parts, or, alone, at documents of earlier runs.
    others = finished or (document.load(output, [name for name in TABLE if name != part.name]) if part.derive else [])
    if part.derive and not others:
        raise BenchError(f"part {part.name} looks at the other parts' results, and {output} has none: run one of them")
    if points:
        try:
            with part.hold(settings, tools) as notes:
                run_points(points, progress, part.extra_s)
        except BenchError as error:
            for point in points:
                point.fail(str(error))
    made = document.make(part, settings, points, others, notes, {**circumstances, "started_utc": started})
    path = document.save(made, output)
    progress.say(f"{part.name}: {path}")
    return made
