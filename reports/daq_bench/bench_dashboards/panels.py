"""The kinds of panel that the dashboards use, each a typed value that becomes Grafana's JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import ClassVar

from daq_bench.bench_dashboards.influxql import Query
from daq_bench.bench_dashboards.looks import PLAIN, DataLink, Json, Override, Thresholds, Unit, Word, mappings

WORST = "worst"  # the column of the one row that a tile with `whose` shows
NOT_THE_TIME = "/^(?!time$).*/i"  # Grafana counts the time among "all fields"
MOST_POINTS = (
    300  # of each series of a graph: what a panel of usual width shows, and a third of what Grafana asks for by itself
)
LANES = 12  # of a page: names stay legible
FAST_GAP_S, SLOW_GAP_S = 10, 60  # some five samples
SLOW = frozenset({  # read each 5 s to 30 s; all others each second or two
    "ipmi_sensor", "ipmi_power", "redfish_sensor", "memory_bandwidth", "cpu_throttle", "pcie_link", "pcie_errors", "telemetry_agent",
})  # fmt: skip
CALCULATIONS = {"lastNotNull": "Last *", "max": "Max", "mean": "Mean", "min": "Min"}  # the headings of Grafana's legend
DATA_SOURCE: Json = {"type": "influxdb", "uid": "${datasource}"}


@dataclass(frozen=True)
class Target:
    """One query of a panel. `alias` names its series: `$tag_device` is a tag's value, `$col` the column's name.

    `needs`: fields ("measurement.field") that only some hardware, or some loads, have. Where no such field was collected the
    query stays empty, and nowhere else."""

    query: Query
    alias: str = ""
    table: bool = False
    needs: tuple[str, ...] = ()
    counts: bool = False  # no row is an answer, too: of a count of 0, or of what is found where something is wrong
    time: str = ""  # of a merged table: the column that its time becomes; empty: left out

    def json(self, reference: str) -> Json:
        return {
            "refId": reference,
            "datasource": DATA_SOURCE,
            "query": self.query.render(),
            "rawQuery": True,
            "resultFormat": "table" if self.table else "time_series",
            "alias": self.alias,
        }


@dataclass(frozen=True)
class Panel(ABC):
    """The fields of all kinds. `description` says what to look for. `needs`: as for its targets, for all of them."""

    kind: ClassVar[str]

    title: str
    description: str
    targets: tuple[Target, ...]
    unit: Unit
    thresholds: Thresholds = PLAIN
    overrides: tuple[Override, ...] = ()
    needs: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    decimals: int | None = None
    words: tuple[Word, ...] = ()
    no_value: str = ""
    time_from: str = ""
    most_points: int = 0  # of each series; 0: one for each pixel
    links: tuple[DataLink, ...] = ()

    def json(self, identifier: int, position: Json) -> Json:
        made: Json = {
            "id": identifier,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": DATA_SOURCE,
            "gridPos": position,
            "fieldConfig": {"defaults": self._defaults(), "overrides": [one.json() for one in self.overrides]},
            "options": self.options(),
            "targets": [one.json(letter) for letter, one in zip(ascii_uppercase, self.targets, strict=False)],
        }
        transformations = list(self.transformations())
        if transformations:
            made["transformations"] = transformations
        if self.time_from:
            made["timeFrom"] = self.time_from
        if self.most_points:
            made["maxDataPoints"] = self.most_points
        return made

    def _defaults(self) -> Json:
        made: Json = {
            "unit": self.unit,
            "thresholds": self.thresholds.json(of_numbers=self.unit is not Unit.TEXT and self.kind != "timeseries"),
            "mappings": mappings(self.words),
            "color": {"mode": self.colour_mode()},
            "custom": self.custom(),
        }
        decimals = 0 if self.decimals is None and self.unit is Unit.COUNT and self.kind != "table" else self.decimals
        optional = {"min": self.least, "max": self.most, "decimals": decimals, "noValue": self.no_value or None}
        made.update({key: value for key, value in optional.items() if value is not None})
        if self.links:
            made["links"] = [link.json() for link in self.links]
        return made

    def colour_mode(self) -> str:
        return "thresholds"

    @abstractmethod
    def options(self) -> Json:
        """Returns Grafana's options of the panel, by its kind."""

    def custom(self) -> Json:
        return {}

    def transformations(self) -> Iterable[Json]:
        return ()


@dataclass(frozen=True)
class TimeSeries(Panel):
    """Lines over time. `limits`: thresholds are drawn as lines; `points`: each value is marked, since they are days apart.

    A line ends where no sample came for `gap_s`: a pause is not drawn as if something had been measured in it. So each interval without
    a sample is a null (`fill(null)`), and nulls are bridged as far as collectors are apart: the intervals of a long range are longer."""

    kind = "timeseries"
    stacked: bool = False
    steps: bool = False
    limits: bool = False
    points: bool = False
    legend: tuple[str, ...] = ("lastNotNull", "max")
    gap_s: float = 0  # 0: by how often its measurements are read
    rename: tuple[str, str] | None = None  # pattern of a line's name, and what it reads instead ($1: a group)
    most_points: int = MOST_POINTS

    def __post_init__(self) -> None:
        asked = (
            replace(one, query=replace(one.query, fill="null")) if one.query.every else one for one in self.targets
        )
        object.__setattr__(self, "targets", tuple(asked))

    @property
    def gap_ms(self) -> int:
        slow = any(one.query.measurement in SLOW for one in self.targets)
        return int(1000 * (self.gap_s or (SLOW_GAP_S if slow else FAST_GAP_S)))

    @property
    def many(self) -> bool:
        """Each device, core or sensor has a line of its own: no areas, and the legend beside the graph. Runs are one or two."""
        names = [target.alias.replace("$tag_run", "") for target in self.targets]
        return any("$tag_" in name or "$col" in name for name in names)

    def transformations(self) -> Iterable[Json]:
        if self.rename:
            pattern, reading = self.rename
            yield {"id": "renameByRegex", "options": {"regex": pattern, "renamePattern": reading}}

    def colour_mode(self) -> str:
        return "palette-classic"

    def options(self) -> Json:
        legend: Json = {
            "displayMode": "table" if self.legend else "list",
            "placement": "right" if self.many else "bottom",
            "showLegend": True,
            "calcs": list(self.legend),
        }
        if self.many and self.legend:
            worst = self.legend[-1]
            legend |= {"sortBy": CALCULATIONS[worst], "sortDesc": worst != "min"}
        return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}

    def custom(self) -> Json:
        return {
            "drawStyle": "line",
            "lineInterpolation": "stepAfter" if self.steps else "linear",
            "lineWidth": 2,
            "fillOpacity": 30 if self.stacked else 0 if self.many else 8,
            "showPoints": "always" if self.points else "auto",
            "spanNulls": True if self.points else self.gap_ms,
            "insertNulls": False,
            "stacking": {"mode": "normal" if self.stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "line" if self.limits else "off"},
            "axisSoftMin": 0,
        }


@dataclass(frozen=True)
class Stat(Panel):
    """One value, large enough to be read across a room; the whole tile takes the threshold's colour.

    `whose`: the query answers with one row, of the column `WORST` and of tags: the tile says below the value whose it is."""

    kind = "stat"
    calculation: str = "lastNotNull"
    text: bool = False  # the value is a text, not a number
    per_series: bool = False
    whose: bool = False

    def options(self) -> Json:
        reduced: Json = {
            "values": self.whose,
            "calcs": [self.calculation],
            "fields": f"/^{WORST}$/" if self.whose else NOT_THE_TIME if self.text else "",
        }
        if self.whose:
            reduced["limit"] = 1
        return {
            "reduceOptions": reduced,
            "orientation": "auto",
            "textMode": "value_and_name" if self.per_series or self.whose else "value",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "center",
            "showPercentChange": False,
        }


@dataclass(frozen=True)
class BarGauge(Panel):
    """A bar for each series between `least` and `most`."""

    kind = "bargauge"

    def options(self) -> Json:
        return {
            "reduceOptions": {"values": False, "calcs": ["lastNotNull"], "fields": ""},
            "orientation": "horizontal",
            "displayMode": "basic",  # in its value's colour; `lcd` colours each cell by its place: a healthy link had red cells
            "valueMode": "color",
            "namePlacement": "left",
            "showUnfilled": True,
            "sizing": "auto",
            "minVizWidth": 8,
            "minVizHeight": 16,
        }


@dataclass(frozen=True)
class StateTimeline(Panel):
    """One lane for each series; what is the same stays one bar. A bar ends `lasts_s` after its value: what is old is not the state."""

    kind = "state-timeline"
    lasts_s: float = 0

    def options(self) -> Json:
        return {
            "showValue": "auto",
            "rowHeight": 0.8,
            "perPage": LANES,  # since Grafana 11.1; before, all lanes share the height
            "mergeValues": False,
            "alignValue": "left",
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "single", "sort": "none"},
        }

    def custom(self) -> Json:
        lasting = {"insertNulls": int(self.lasts_s * 1000), "spanNulls": False} if self.lasts_s else {}
        return {"fillOpacity": 80, "lineWidth": 0, **lasting}


@dataclass(frozen=True)
class Heatmap(Panel):
    """Shows how many series are at which height: readable for two cores and for 256."""

    kind = "heatmap"
    bucket: int = 10

    def options(self) -> Json:
        return {
            "calculate": True,
            "calculation": {"yBuckets": {"mode": "size", "value": str(self.bucket)}},
            "color": {
                "mode": "scheme",
                "scheme": "Oranges",
                "fill": "dark-orange",
                "scale": "exponential",
                "exponent": 0.5,
                "steps": 64,
                "reverse": False,
            },
            "cellGap": 1,
            "yAxis": {"unit": self.unit, "axisPlacement": "left", "reverse": False, "min": 0, "max": 100},
            "legend": {"show": True},
            "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": False},
            "exemplars": {"color": "rgba(255,0,255,0.7)"},
            "filterValues": {"le": 1e-9},
            "rowsFrame": {"layout": "auto"},
            "showValue": "never",
        }


@dataclass(frozen=True)
class Table(Panel):
    """Rows, the columns in the order of `columns` (name in the answer, heading); others are left out."""

    kind = "table"
    columns: tuple[tuple[str, str], ...] = ()
    sort: str = ""  # heading, newest or largest first
    ascending: bool = False  # smallest first
    merged: bool = False  # rows of several targets that are equal in the first column become one
    sums: tuple[tuple[str, tuple[str, ...]], ...] = ()  # a column, and those that it adds up

    def options(self) -> Json:
        return {
            "showHeader": True,
            "cellHeight": "sm",
            "footer": {"show": False, "reducer": [], "countRows": False, "fields": ""},
            "sortBy": [{"displayName": self.sort, "desc": not self.ascending}] if self.sort else [],
        }

    def custom(self) -> Json:
        # Grafana's own least width of a column, 150 pixels, puts the margin off the screen.
        return {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False, "filterable": False, "minWidth": 60}

    def transformations(self) -> Iterable[Json]:
        if self.merged:
            # By the first tag alone, and each answer's time as a column of its own: two times would make two rows.
            for letter, one in zip(ascii_uppercase, self.targets, strict=False):
                of_time = {"renameByName": {"Time": one.time}} if one.time else {"excludeByName": {"Time": True}}
                yield {"id": "organize", "filter": {"id": "byRefId", "options": letter}, "options": of_time}
            yield {"id": "joinByField", "options": {"byField": self.columns[0][0], "mode": "outer"}}
        for name, parts in self.sums:
            summed = {"reducer": "sum", "include": list(parts)}
            yield {
                "id": "calculateField",
                "options": {"mode": "reduceRow", "reduce": summed, "alias": name, "replaceFields": False},
            }
        if self.columns:
            names = [name for name, _ in self.columns]
            yield {"id": "filterFieldsByName", "options": {"include": {"names": names}}}
            yield {
                "id": "organize",
                "options": {
                    "excludeByName": {},
                    "includeByName": {},
                    "indexByName": {name: index for index, name in enumerate(names)},
                    "renameByName": {name: heading for name, heading in self.columns if heading != name},
                },
            }
