"""A report as a whole, whatever it is about: its front page, its sections, and the numbers of everything in them.

Promise: figures, tables and sections are numbered in the order in which they are read, appendices are lettered; each has an anchor of its
own; the same document feeds HTML, PDF and the attached data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from daq_bench.bench_report.base.marks import Numbers
from daq_bench.bench_report.document.alignment import Filled, filled
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.section import Bullets, Code, Facts, Heading, Lacking, Part, Section, Warned
from daq_bench.bench_report.document.table import Table

KINDS: Mapping[type, str] = {
    Figure: "figure", Table: "table", Lacking: "lacking", Warned: "warned", Heading: "heading", Bullets: "bullets", Code: "code",
    Facts: "facts", str: "text",
}  # fmt: skip


@dataclass(frozen=True)
class Document:
    """`running_left` and `running_right` head each page; `seal` names the evidence at its foot (see docs/provenance.md).

    `front` are the tables and figures of the first page, which are numbered first."""

    kind: str  # such as "Qualification report"
    title: str
    subject: str
    keywords: tuple[str, ...]
    running_left: str
    running_right: str
    seal: str
    finished: datetime
    front: tuple[Table | Figure, ...]
    sections: tuple[Section, ...]
    attachments: Mapping[str, bytes] = field(default_factory=dict)  # further files to attach, by name


@dataclass(frozen=True)
class Placed:
    """A part with its number and anchor; both are empty for what is not numbered."""

    kind: str
    part: Part
    label: str = ""
    anchor: str = ""
    cells: tuple[tuple[Filled, ...], ...] = ()  # of a table


@dataclass(frozen=True)
class PlacedSection:
    number: str
    name: str
    title: str
    appendix: bool
    parts: tuple[Placed, ...]


@dataclass(frozen=True)
class Laid:
    """The document with everything numbered."""

    front: tuple[Placed, ...]
    sections: tuple[PlacedSection, ...]
    numbers: Numbers
    attached: tuple[PlacedSection, ...] = ()  # of the data only

    def _all(self) -> Iterator[Placed]:
        yield from self.front
        for section in self.sections:
            yield from section.parts

    @property
    def figures(self) -> tuple[Placed, ...]:
        return tuple(one for one in self._all() if one.kind == "figure")

    @property
    def tables(self) -> tuple[Placed, ...]:
        return tuple(one for one in self._all() if one.kind == "table")


class _Counter:
    """Hands out numbers and anchors. The first part of a name is what references to that name mean."""

    def __init__(self) -> None:
        self.labels: dict[tuple[str, str], tuple[str, str]] = {}
        self._count = {"figure": 0, "table": 0}

    def place(self, part: Part) -> Placed:
        kind = KINDS[type(part)]
        if not isinstance(part, Figure | Table):
            return Placed(kind, part)
        self._count[kind] += 1
        number = self._count[kind]
        label, anchor = f"{kind.capitalize()} {number}", f"{kind}-{number}"
        self.labels.setdefault((kind, part.name), (label, anchor))
        return Placed(kind, part, label, anchor, filled(part) if isinstance(part, Table) else ())


def lay_out(document: Document) -> Laid:
    counter = _Counter()
    front = tuple(counter.place(part) for part in document.front)
    body = [one for one in document.sections if one.printed and not one.appendix]
    numbers = [str(number) for number, _ in enumerate(body, 1)]
    appendices = [one for one in document.sections if one.printed and one.appendix]
    letters = [chr(ord("A") + number) for number, _ in enumerate(appendices)]
    placed = tuple(
        PlacedSection(number, one.name, one.title, one.appendix, tuple(counter.place(part) for part in one.parts))
        for number, one in zip([*numbers, *letters], [*body, *appendices], strict=True)
    )
    for one in placed:
        word = "Appendix" if one.appendix else "Section"
        counter.labels[("section", one.name)] = (f"{word} {one.number}", one.name)
    attached = tuple(
        PlacedSection(
            "", one.name, one.title, one.appendix, tuple(Placed(KINDS[type(part)], part) for part in one.parts)
        )
        for one in document.sections
        if not one.printed
    )
    return Laid(front, placed, Numbers(counter.labels), attached)
