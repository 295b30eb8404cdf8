"""Other people's text, made safe for a terminal and a log: a candidate, a drive and a tool choose their words themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def printable(text: str) -> str:
    """Returns the text without characters that move a terminal's cursor or turn the direction of its lines."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def printable_lines(text: str) -> str:
    """Returns `printable` of each line; tabs stay, too."""
    return "".join(one if one.isprintable() or one in "\n\t" else printable(one) for one in text)


def say(console: Console, text: str) -> None:
    """Prints a message as it is: no word of it is markup, and no line is broken."""
    console.print(printable_lines(text), highlight=False, soft_wrap=True, markup=False, emoji=False)
