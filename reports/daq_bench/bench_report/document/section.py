"""The parts of a report: sections of parts, in the order in which they are read.

Promise: plain immutable data; the maker of a part knows neither its number nor its place (see `marks` for references).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle


@dataclass(frozen=True)
class Lacking:
    """A missing part of the report, as a sentence without its capital."""

    text: str


@dataclass(frozen=True)
class Warned:
    """Something that forbids a careless reading: its first words are set apart."""

    lead: str
    text: str


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str


@dataclass(frozen=True)
class Bullets:
    items: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Lines to be typed into a shell."""

    lead: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """A fact and its name; `known` is false where the value only says that it is not known."""

    label: str
    value: str
    known: bool = True


@dataclass(frozen=True)
class Facts:
    pairs: tuple[Pair, ...]


Part = str | Figure | Table | Lacking | Warned | Heading | Bullets | Code | Facts  # a str is a paragraph of plain text


@dataclass(frozen=True)
class Section:
    """`name` is the anchor. A figure's name must be unique in the whole report. An appendix is lettered and comes last. A section
    that is not `printed` stands in the attached data only, and is neither numbered nor referred to."""

    name: str
    title: str
    parts: tuple[Part, ...]
    appendix: bool = False
    printed: bool = True


Maker = Callable[[Bundle], Section | None]  # None: the run has nothing to do with it


def unfinished(bundle: Bundle, workload: str, title: str, lacking: str, name: str = "") -> Section | None:
    """The section of a workload whose result is not there: what is lacking, or None where the run was never asked for it."""
    asked = workload in bundle.run.scenario.workloads or workload in bundle.results
    return Section(name or workload.replace("_", "-"), title, (Lacking(lacking),)) if asked else None
