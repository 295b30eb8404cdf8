"""The bench wears drives, or fills somebody's disk, only when somebody has agreed to it."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.rig.base.terminal import printable

REFUSED = "Nothing was written. Agree with YES=1 (--yes), or ask for less (`daq-bench plan` says what a request costs)"


def agree(asked: str, yes: bool, console: Console, refused: str = REFUSED) -> None:
    """Returns when `asked` is agreed to, or is empty. On a terminal it is asked; elsewhere raises RefusedError unless `yes`."""
    if not asked or yes:
        return
    if not (console.is_terminal and sys.stdin is not None and sys.stdin.isatty()):
        raise RefusedError(f"{asked}. {refused}")
    try:
        answer = console.input(f"{escape(printable(asked))}. Go on? \\[y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise RefusedError(f"{asked}, and nobody agreed to it. {refused}")
