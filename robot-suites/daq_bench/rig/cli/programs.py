"""The commands of `daq-bench` that are programs of other parts: reports, dashboards, the bench's own measurements, the virtual candidate.

They are started, not imported: reports read bundles and know no host, and this part of the house reaches hosts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from daq_bench.rig.base.settings import Layout
from daq_bench.rig.cli.arguments import require_checkout
from daq_bench.rig.cli.completion import NAME


@dataclass(frozen=True)
class Program:
    """`words`: module and first arguments; `help`: its line in the list of commands."""

    words: tuple[str, ...]
    help: str
    needs_checkout: bool = False


PROGRAMS = {
    "compare": Program(("daq_bench.bench_report", "compare"), "compare candidates, or the configurations of one run"),
    "lot": Program(("daq_bench.bench_report", "lot"), "tell what drives of one model say about their lot"),
    "trend": Program(("daq_bench.bench_report", "trend"), "render the trend of a candidate over its runs"),
    "site": Program(("daq_bench.bench_report", "site"), "write a static site over all runs and nights"),
    "history": Program(("daq_bench.bench_report", "history"), "bring the index over a folder of bundles up to date"),
    "export-metrics": Program(
        ("daq_bench.bench_report", "export-metrics"), "write what Prometheus sees of the newest runs"
    ),
    "dashboards": Program(
        ("daq_bench.bench_dashboards",), "write Grafana's dashboards, preview them, or try their queries"
    ),
    "bench": Program(("daq_bench.bench_rounds",), "measure the bench itself against other tools", needs_checkout=True),
    "virtual": Program(
        ("daq_bench.virtual_candidate",), "start (up) or end (down) the virtual candidate", needs_checkout=True
    ),
}


def run_program(words: Sequence[str]) -> int:
    """Hands all further words over; the program's exit status is ours. Raises BenchError where it needs a checkout and there is none."""
    program = PROGRAMS[words[0]]
    if program.needs_checkout:
        require_checkout(Layout(), words[0])
    module, *first = program.words
    argv = [sys.executable, "-m", module, *first, *words[1:]]
    return subprocess.run(argv, env={**os.environ, "DAQ_BENCH_NAME": NAME}, check=False).returncode
