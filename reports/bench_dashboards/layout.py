"""Places panels: rows of panels that fill Grafana's 24 columns, under headings that may be folded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench_dashboards.looks import Json
from bench_dashboards.panels import Panel

COLUMNS = 24


@dataclass(frozen=True)
class Row:
    """Panels beside each other, each with its width in columns; `height` in Grafana's units of some 38 pixels."""

    height: int
    panels: tuple[tuple[Panel, int], ...]

    def __post_init__(self) -> None:
        width = sum(one for _, one in self.panels)
        if width != COLUMNS:
            titles = ", ".join(panel.title for panel, _ in self.panels)
            raise ValueError(f"the row with {titles} is {width} columns wide, not {COLUMNS}")


@dataclass(frozen=True)
class Section:
    """Rows under a heading; without one they stand at the top. Folded, they ask nothing of InfluxDB until opened."""

    title: str
    rows: tuple[Row, ...]
    folded: bool = False

    def panels(self) -> Iterator[Panel]:
        for row in self.rows:
            yield from (panel for panel, _ in row.panels)


def placed(sections: tuple[Section, ...]) -> list[Json]:
    """Grafana's `panels`, top to bottom, left to right, with ids in that order."""
    made: list[Json] = []
    identifier, y = 0, 0
    for section in sections:
        into = made
        if section.title:
            identifier += 1
            heading: Json = {
                "id": identifier,
                "type": "row",
                "title": section.title,
                "collapsed": section.folded,
                "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y},
                "panels": [],
            }
            made.append(heading)
            y += 1
            into = heading["panels"] if section.folded else made
        top = y
        for row in section.rows:
            x = 0
            for panel, width in row.panels:
                identifier += 1
                into.append(panel.json(identifier, {"h": row.height, "w": width, "x": x, "y": y}))
                x += width
            y += row.height
        if section.folded:
            y = top  # the rows below move up until the section is opened
    return made
