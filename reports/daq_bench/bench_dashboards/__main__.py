"""`python -m daq_bench.bench_dashboards write|preview|try`: make the dashboards, look at their layout, or run their queries.

Exit status 0; 1 when `try` finds a query that fails or gives nothing; 2 with one line on stderr for a dashboard that cannot be made."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from daq_bench.bench_dashboards.catalogue import write
from daq_bench.bench_dashboards.preview import write_preview
from daq_bench.bench_dashboards.trial import run_trial
from daq_bench.bench_model.base.command_line import Parser
from daq_bench.bench_model.base.errors import BenchError, in_words


def main(arguments: Sequence[str] | None = None) -> int:
    called = os.environ.get("DAQ_BENCH_NAME")
    parser = Parser(
        prog=f"{called} dashboards" if called else "bench_dashboards", description="Grafana dashboards of the bench."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write", help="write reports/dashboards/*.json and its alerting/*.json")
    preview = commands.add_parser("preview", help="write an HTML page with each dashboard's layout")
    preview.add_argument("file", type=Path)
    trial = commands.add_parser("try", help="run every query on an InfluxDB and say which give no rows")
    trial.add_argument("--influx-url", required=True)
    trial.add_argument("--database", default="bench")
    trial.add_argument("--token", help="of InfluxDB 2, or USER:PASSWORD of 1.8")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "write":
            for path in write():
                print(path)
        elif chosen.command == "preview":
            print(write_preview(chosen.file))
        else:
            return run_trial(chosen.influx_url, chosen.database, chosen.token or "")
    except (BenchError, OSError) as error:
        print(f"bench_dashboards: {in_words(error)}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
