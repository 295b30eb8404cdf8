"""`python -m daq_bench.bench_report render runs/<id>`: writes report.html, report.pdf and report-data.json into the bundle.
`python -m daq_bench.bench_report check runs/<id>`: renders them once more and says, as JSON, where those of the bundle differ.
`compare` and `lot` make documents on several runs.
`trend` makes one over the runs of one candidate, `nightly` the page of a night, and `site` an index over all of them.
`history` brings the file up to date that these three ask first. `export-metrics` writes the newest runs as Prometheus reads them.

Exit status: 0 done, 1 --check found a difference, 2 a bundle cannot be reported on; then stderr has one line that
says why.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from daq_bench.bench_model.base.command_line import Parser, ended
from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.nights.night import LeftOut
from daq_bench.bench_report.comparison import command as comparison
from daq_bench.bench_report.lot import command as lot
from daq_bench.bench_report.reading.door import add_trust, admitted, trust_of

LEFT_OUT_NAMED = 4


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog=os.environ.get("DAQ_BENCH_NAME", "bench_report"), description="Reports on run bundles.")
    commands = parser.add_subparsers(dest="command", required=True)
    rendering = _of_one_run(commands, "render", "write the reports into a run bundle", _render)
    rendering.add_argument(
        "--altered", type=int, default=0, metavar="N", help="files altered since the bundle was sealed"
    )
    rendering.add_argument(
        "--different",
        action="append",
        default=[],
        metavar="FIELD",
        help="a field of its profiles that is not the checker's",
    )
    _of_one_run(commands, "check", "render them again and compare, without writing", _check)
    comparison.add_parser(commands)
    lot.add_parser(commands)
    _add_nights(commands)
    chosen = parser.parse_args(arguments)
    try:
        done: int = chosen.run(chosen)
    except (BenchError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        print(f"error: {in_words(error)}", file=sys.stderr)
        return 2
    return done


def _of_one_run(
    commands: argparse._SubParsersAction[Parser], name: str, text: str, run: object
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text)
    parser.add_argument("bundle", type=Path, help="the run bundle, for example runs/latest")
    parser.add_argument("--signer", metavar="KEY", help="the key by which the reports are signed, for their own words")
    parser.set_defaults(run=run)
    return parser


def _add_nights(commands: argparse._SubParsersAction[Parser]) -> None:
    trend = commands.add_parser("trend", help="write trend.html, .pdf and .json over one candidate's runs")
    _add_runs(trend, "a folder of run bundles, or bundles")
    trend.add_argument("--candidate", required=True, help="its name in the inventory")
    trend.add_argument("--scenario", help="id; the newest run's when left out")
    trend.add_argument("-o", "--output", type=Path, help="folder for the documents (trend-NAME)")
    add_trust(trend)
    trend.set_defaults(run=_trend)
    night = commands.add_parser("nightly", help="write nightly.html into a night's folder")
    night.add_argument("folder", type=Path, help="nightly/<id>")
    night.set_defaults(run=_nightly)
    site = commands.add_parser("site", help="write a static site over runs and nights")
    _add_runs(site, "a folder of run bundles, or bundles")
    site.add_argument("--nights", type=Path, default=Path("nightly"), metavar="FOLDER", help="the nights (nightly)")
    site.add_argument("-o", "--output", type=Path, default=Path("build/site"), help="folder of the site (build/site)")
    site.add_argument(
        "--copy", action="store_true", help="with the documents themselves, so that the folder can be moved"
    )
    add_trust(site)
    site.set_defaults(run=_site)
    exporting = commands.add_parser("export-metrics", help="write what Prometheus sees of the newest runs")
    _add_runs(exporting, "a folder of run bundles, or bundles")
    exporting.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE.prom", help="in node_exporter's textfile directory"
    )
    add_trust(exporting)
    exporting.set_defaults(run=_export)
    history = commands.add_parser("history", help="bring the index over a folder of bundles up to date")
    _add_runs(history, "a folder of run bundles")
    history.add_argument("--rebuild", action="store_true", help="read and judge every bundle again")
    add_trust(history)
    history.set_defaults(run=_history)


def _add_runs(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument("runs", type=Path, nargs="*", default=[Path("runs")], help=f"{text} (runs)")


# Imports come late, so that a mistyped argument does not wait for matplotlib and WeasyPrint.


def _render(chosen: argparse.Namespace) -> int:
    from daq_bench.bench_report.qualification.render import render

    for path in render(chosen.bundle, chosen.signer, chosen.altered, chosen.different):
        print(path)
    return 0


def _check(chosen: argparse.Namespace) -> int:
    from daq_bench.bench_report.qualification.check import compared

    print(json.dumps(compared(chosen.bundle, chosen.signer), ensure_ascii=False))
    return 0


def _trend(chosen: argparse.Namespace) -> int:
    from daq_bench.bench_report.trend.command import render

    folder = chosen.output or Path(f"trend-{chosen.candidate}")
    for path in render(chosen.runs, chosen.candidate, chosen.scenario, folder, trust_of(chosen)):
        print(path)
    return 0


def _nightly(chosen: argparse.Namespace) -> int:
    from daq_bench.bench_report.nightly import render

    for path in render(chosen.folder):
        print(path)
    return 0


def _site(chosen: argparse.Namespace) -> int:
    from daq_bench.bench_report.site import build

    pages, read, left_out = build(chosen.runs, chosen.nights, chosen.output, chosen.copy, trust_of(chosen))
    for page in pages:
        print(chosen.output / page)
    return _told(read, left_out)


def _export(chosen: argparse.Namespace) -> int:
    from daq_bench.bench_report.exporting import export

    count, read, left_out = export(chosen.runs, chosen.output, trust_of(chosen))
    said = (
        f"the newest of {count} kind{'s' * (count != 1)} of run" if count else "no run that counts, so no value of one"
    )
    print(f"{chosen.output}: {said}")
    return _told(read, left_out)


def _history(chosen: argparse.Namespace) -> int:
    from daq_bench.bench_model.nights.history_index import forget
    from daq_bench.bench_model.nights.run_history import read_all

    if chosen.rebuild:
        for folder in chosen.runs:
            forget(folder)
    nights, broken, _ = admitted(*read_all(chosen.runs), trust_of(chosen))
    many = "s" * (len(broken) != 1)
    left_out = f"{len(broken)} bundle{many} or folder{many} left out"
    print(f"{len(nights)} run{'s' * (len(nights) != 1)} that others may rest on, {left_out}")
    return _told(len(nights), broken)


def _told(read: int, left_out: Sequence[LeftOut]) -> int:
    """Names on stderr what is left out. Status 2 where there are bundles, and not one can be used; a run that goes on is no such."""
    for one in left_out[:LEFT_OUT_NAMED]:
        print(f"left out: {one.name}: {one.reason}", file=sys.stderr)
    if len(left_out) > LEFT_OUT_NAMED:
        print(f"left out: {len(left_out) - LEFT_OUT_NAMED} more", file=sys.stderr)
    if read or all(one.unfinished for one in left_out):
        return 0
    word = "the only bundle or folder" if len(left_out) == 1 else f"not one of the {len(left_out)} bundles or folders"
    can = "cannot" if len(left_out) == 1 else "can"
    print(
        f"error: {word} {can} be used. `daq-bench check-bundle runs/<run-id>` says what is wrong with one",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    # Setting pages makes millions of objects that stay until the end: the collector of cycles took a fifth of the time to look for others.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    sys.exit(ended(main))
