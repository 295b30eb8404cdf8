"""What a module of this package makes: a part of the report, in the order in which it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..dataset import Bundle
from ..figures.canvas import Figure
from ..tables import Table


@dataclass(frozen=True)
class Lacking:
    """What should be here and is not, as a sentence without its capital."""

    text: str


Part = str | Figure | Table | Lacking  # a str is a paragraph of plain text


@dataclass(frozen=True)
class Section:
    """`name` is the anchor. A figure's name must be its own in the whole report."""

    name: str
    title: str
    parts: tuple[Part, ...]


Maker = Callable[[Bundle], Section | None]  # None: the run has nothing to do with it
