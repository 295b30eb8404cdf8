"""Places panels: rows of panels that fill Grafana's 24 columns, under headings that may be folded."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_dashboards.looks import Json
from daq_bench.bench_dashboards.panels import Panel

COLUMNS = 24


class Row:
    """Panels beside each other, of the same width or of `widths` in columns; `height` in Grafana's units of some 38 pixels."""

    def __init__(self, height: int, *panels: Panel, widths: tuple[int, ...] = ()) -> None:
        self.height, self.panels = height, panels
        self.widths = widths or (COLUMNS // len(panels),) * len(panels)
        if sum(self.widths) != COLUMNS or len(self.widths) != len(panels):
            titles = ", ".join(panel.title for panel in panels)
            raise ValueError(f"the row with {titles} is {sum(self.widths)} columns wide, not {COLUMNS}")


class Section:
    """Rows under a heading; without one they stand at the top. Folded, they ask nothing of InfluxDB until opened."""

    def __init__(self, title: str, *rows: Row, folded: bool = False) -> None:
        self.title, self.rows, self.folded = title, rows, folded

    def panels(self) -> Iterator[Panel]:
        return (panel for row in self.rows for panel in row.panels)


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
            for panel, width in zip(row.panels, row.widths, strict=True):
                identifier += 1
                into.append(panel.json(identifier, {"h": row.height, "w": width, "x": x, "y": y}))
                x += width
            y += row.height
        if section.folded:
            y = top  # the rows below move up until the section is opened
    return made
