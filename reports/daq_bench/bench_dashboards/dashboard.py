"""A whole dashboard: checked against the declarations, and as JSON of Grafana's schema 39."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from daq_bench.bench_dashboards.declared import Declared
from daq_bench.bench_dashboards.furniture import (
    TAG,
    Annotation,
    FieldTexts,
    Link,
    TagValues,
    data_source_variable,
    report_base_variable,
)
from daq_bench.bench_dashboards.influxql import MINUTES, Query
from daq_bench.bench_dashboards.layout import Section, placed
from daq_bench.bench_dashboards.looks import Json
from daq_bench.bench_dashboards.panels import Panel
from daq_bench.bench_model.base.errors import BenchError

SCHEMA_VERSION = 39  # Grafana 10.4 and 11
OWN_VARIABLES = frozenset({"datasource", "report_base"})


@dataclass(frozen=True)
class Dashboard:
    """One dashboard; `uid` is also its file's name and its address."""

    uid: str
    title: str
    description: str
    sections: tuple[Section, ...]
    variables: tuple[TagValues, ...]
    annotations: tuple[Annotation, ...] = ()
    links: tuple[Link, ...] = ()
    begin: str = "now-15m"
    end: str = "now"
    refresh: str = ""
    timezone: str = "browser"

    def panels(self) -> Iterator[Panel]:
        for section in self.sections:
            yield from section.panels()

    def queries(self) -> Iterator[tuple[str, Query]]:
        """Every query with words that name it."""
        for panel in self.panels():
            for target in panel.targets:
                yield f"{self.title} / {panel.title}", target.query
        for annotation in self.annotations:
            yield f"{self.title} / annotation {annotation.name}", annotation.query

    def check(self, declared: Declared) -> None:
        """Raises BenchError for a name that metrics.yml does not declare, and for a variable that the dashboard has not got."""
        known: set[str] = set(OWN_VARIABLES)
        for variable in self.variables:
            place = f"{self.title} / variable {variable.name}"
            measurement = declared.measurement(variable.measurement, place, variable.policy == MINUTES)
            own = () if isinstance(variable, FieldTexts) else (variable.tag,)
            measurement.require_tags((*own, *(tag for tag, _ in variable.where)), place)
            if variable.field:
                measurement.require_field(variable.field, place, number=False)
            _known({name for _, name in variable.where} | {name for name in (variable.unlike,) if name}, known, place)
            known.add(variable.name)
        for place, query in self.queries():
            query.check(declared, place)
            _known(query.variables, known, place)
        for panel in self.panels():
            for need in panel.needs:
                name, _, field = need.partition(".")
                declared.measurement(name, panel.title).require_field(field, panel.title, number=False)

    def json(self, declared: Declared) -> Json:
        self.check(declared)
        variables = [data_source_variable(), *(one.json() for one in self.variables), report_base_variable()]
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": [TAG],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": True,
            "graphTooltip": 1,
            "fiscalYearStartMonth": 0,
            "weekStart": "",
            "timezone": self.timezone,
            "time": {"from": self.begin, "to": self.end},
            "timepicker": {"refresh_intervals": ["5s", "10s", "30s", "1m", "5m", "15m", "1h"]},
            "refresh": self.refresh,
            "liveNow": False,
            "annotations": {"list": [one.json() for one in self.annotations]},
            "links": [one.json() for one in self.links],
            "templating": {"list": variables},
            "panels": placed(self.sections),
        }

    def text(self, declared: Declared) -> str:
        """The file's content; the same on every machine."""
        return json.dumps(self.json(declared), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _known(used: set[str] | frozenset[str], known: set[str], place: str) -> None:
    for name in sorted(used - known):
        raise BenchError(f"{place}: there is no variable {name!r} before it; known are {', '.join(sorted(known))}")
