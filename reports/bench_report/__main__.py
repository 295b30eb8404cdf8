"""`python -m bench_report render runs/<id>`: writes report.html, report.pdf and report-data.json into the bundle.
`python -m bench_report check runs/<id>`: renders them once more and says, as JSON, where those of the bundle differ.

Exit status 0 when that was done, 2 when the bundle cannot be reported on; then stderr has one line that says why.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench_model.errors import BenchError


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench_report", description="Reports on run bundles.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("render", "write the reports into a run bundle"),
        ("check", "render them again and compare, without writing"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("bundle", type=Path, help="the run bundle, for example runs/latest")
        command.add_argument(
            "--signer", metavar="KEY", help="the key by which the reports are signed, for their own words"
        )
        if name == "render":
            command.add_argument(
                "--altered", type=int, default=0, metavar="N", help="files altered since the bundle was sealed"
            )
    chosen = parser.parse_args(arguments)
    try:
        # Late: a mistyped argument need not wait for matplotlib and WeasyPrint.
        if chosen.command == "check":
            from .check import compared

            print(json.dumps(compared(chosen.bundle, chosen.signer), ensure_ascii=False))
        else:
            from .render import render

            for path in render(chosen.bundle, chosen.signer, chosen.altered):
                print(path)
    except BenchError as error:
        print(f"bench_report: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
