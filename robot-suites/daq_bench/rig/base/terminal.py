"""Other people's text, made safe for a terminal and a log: a candidate, a drive and a tool choose their words themselves.

And the question whether somebody agrees: the bench wears drives, or fills somebody's disk, only then."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from daq_bench.bench_model.base.errors import RefusedError

if TYPE_CHECKING:
    from rich.console import Console

REFUSED = "Nothing was written. Agree with YES=1 (--yes), or ask for less (`daq-bench plan` says what a request costs)"


def printable(text: str) -> str:
    """Returns the text without characters that move a terminal's cursor or turn the direction of its lines."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def printable_lines(text: str) -> str:
    """Returns `printable` of each line; tabs stay, too."""
    return "".join(one if one.isprintable() or one in "\n\t" else printable(one) for one in text)


def say(console: Console, text: str) -> None:
    """Prints a message as it is: no word of it is markup, and no line is broken."""
    console.print(printable_lines(text), highlight=False, soft_wrap=True, markup=False, emoji=False)


def agree(asked: str, yes: bool, console: Console, refused: str = REFUSED) -> None:
    """Returns when `asked` is agreed to, or is empty. On a terminal it is asked; elsewhere raises RefusedError unless `yes`."""
    from rich.markup import escape

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
