"""The parts around the panels: variables, annotations, links."""

from __future__ import annotations

from dataclasses import dataclass

from daq_bench.bench_dashboards.influxql import Query, chosen, last, other_than, soon, texts
from daq_bench.bench_dashboards.looks import Colour, Json
from daq_bench.bench_dashboards.panels import DATA_SOURCE

TAG = "daq-bench"
ALL = "$__all"
# The role puts the users' own address in its place; by hand it is the variable's value.
REPORT_BASE = "/daq-bench-runs"
NEWEST_FIRST = 2  # Grafana: sorted by name, descending. A run's id begins with its time.
BY_NAME = 1
AS_ANSWERED = 0  # in the order of the query's rows


@dataclass(frozen=True)
class TagValues:
    """A variable whose values are those of a tag of a measurement, among the series that `where` chooses by other variables.

    In a policy that is not the database's default, InfluxDB 2 finds no tag values (SHOW TAG VALUES looks into the default one
    whatever FROM says): there the newest value of `field` is asked for, by tag. Grafana takes the first column after the time."""

    name: str
    label: str
    description: str
    tag: str
    measurement: str
    policy: str = ""
    field: str = ""
    where: tuple[tuple[str, str], ...] = ()  # (tag, variable)
    unlike: str = ""  # a variable whose value is not offered
    several: bool = False
    all_of_them: bool = False
    sort: int = BY_NAME
    newest_first: bool = False  # by the time of the newest value of `field`

    @property
    def query(self) -> str:
        if self.policy or self.newest_first:
            newest = last(self.field).named("newest")
            where = tuple(chosen(tag, variable) for tag, variable in self.where)
            where += (other_than(self.tag, self.unlike),) if self.unlike else ()
            where += (soon(),) if self.newest_first else ()
            inner = Query(self.measurement, (newest,), where, (self.tag,), policy=self.policy, in_range=False)
            return Query(inner, (), tags=(self.tag,), in_range=False, newest_first=self.newest_first).render()
        conditions = " AND ".join(chosen(tag, variable).text for tag, variable in self.where)
        return f'SHOW TAG VALUES FROM "{self.measurement}" WITH KEY = "{self.tag}"' + (
            f" WHERE {conditions}" if conditions else ""
        )

    def json(self) -> Json:
        every = {"selected": True, "text": ["All"] if self.several else "All", "value": [ALL] if self.several else ALL}
        return {
            "type": "query",
            "name": self.name,
            "label": self.label,
            "description": self.description,
            "datasource": DATA_SOURCE,
            "query": self.query,
            "refresh": 2,
            "sort": self.sort,
            "regex": "",
            "multi": self.several,
            "includeAll": self.all_of_them,
            "allValue": ".*" if self.all_of_them else None,
            "current": every if self.all_of_them else {},
            "options": [],
            "hide": 0,
            "skipUrlSync": False,
        }


def data_source_variable() -> Json:
    """Returns the variable that chooses the InfluxDB; the role's own is called daq-bench."""
    return {
        "type": "datasource",
        "name": "datasource",
        "label": "InfluxDB",
        "description": "The data source with the bench's telemetry (query language InfluxQL)",
        "query": "influxdb",
        "current": {"selected": True, "text": TAG, "value": TAG},
        "refresh": 1,
        "regex": "",
        "multi": False,
        "includeAll": False,
        "options": [],
        "hide": 0,
        "skipUrlSync": False,
    }


def report_base_variable() -> Json:
    """Returns the variable with the address of the served run bundles; hidden, since it is set once."""
    return {
        "type": "textbox",
        "name": "report_base",
        "label": "Reports at",
        "description": "Address below which the folder runs/ is served; links to reports begin with it",
        "query": REPORT_BASE,
        "current": {"selected": True, "text": REPORT_BASE, "value": REPORT_BASE},
        "options": [{"selected": True, "text": REPORT_BASE, "value": REPORT_BASE}],
        "hide": 2,
        "skipUrlSync": False,
    }


@dataclass(frozen=True)
class FieldTexts(TagValues):
    """A variable whose values are the texts of a field (`tag` is its name)."""

    @property
    def query(self) -> str:
        where = tuple(chosen(tag, variable) for tag, variable in self.where)
        column = texts(self.field).named(self.field)
        return Query(self.measurement, (column,), where, policy=self.policy, in_range=False).render()


@dataclass(frozen=True)
class Annotation:
    """Events drawn over every graph: a line, or a shaded stretch where the event has an end (`end_ms`)."""

    name: str
    colour: Colour
    query: Query
    kinds: tuple[str, ...] = ()  # of the events; where a run had no such event, there is nothing to draw
    enabled: bool = True

    def json(self) -> Json:
        return {
            "name": self.name,
            "datasource": DATA_SOURCE,
            "enable": self.enabled,
            "hide": self.enabled,  # one that is drawn needs no switch above the graphs
            "iconColor": self.colour,
            "target": {
                "refId": "Annotation",
                "fromAnnotations": True,
                "queryType": "tags",
                "query": self.query.render(),
                "textColumn": "text",
                "tagsColumn": "kind,source",
                # Grafana names an answer's columns by measurement and field.
                "timeEndColumn": f"{self.query.measurement}.end_ms",
                "titleColumn": "",
                "name": self.name,
                "limit": 0,
                "matchAny": False,
                "tags": [],
                "type": "",
            },
        }


@dataclass(frozen=True)
class Link:
    """A link to another dashboard, with the variables; `range`: with the time range too, or this one ("from=..&to=..")."""

    title: str
    url: str
    tooltip: str
    keep_range: bool = True
    variables: bool = True
    icon: str = "dashboard"
    new_tab: bool = False

    def json(self) -> Json:
        return {
            "type": "link",
            "title": self.title,
            "url": self.url,
            "tooltip": self.tooltip,
            "icon": self.icon,
            "tags": [],
            "asDropdown": False,
            "targetBlank": self.new_tab,
            "includeVars": self.variables,
            "keepTime": self.keep_range,
        }
