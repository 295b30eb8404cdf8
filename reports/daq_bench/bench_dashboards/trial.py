"""Runs the queries of every panel, annotation and variable on a real InfluxDB, as Grafana would send them."""

from __future__ import annotations

import base64
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from daq_bench.bench_dashboards.catalogue import DASHBOARDS
from daq_bench.bench_dashboards.dashboard import Dashboard
from daq_bench.bench_dashboards.furniture import AS_ANSWERED, NEWEST_FIRST, TagValues
from daq_bench.bench_dashboards.influxql import lately, since, since_begin
from daq_bench.bench_dashboards.interpolation import Choice, Every, Range, interpolated
from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.candidate_kit.influxql import string_in

TIMEOUT_S = 30.0
OWN_RANGE = re.compile("|".join(re.escape(of(0).text).replace("0s", r"\d+s") for of in (since, lately)))
LONG_AGO = Range(0, 4_000_000_000_000)


@dataclass(frozen=True)
class Server:
    """InfluxDB's /query. `token`: of 2.x; for 1.8 with users, `USER:PASSWORD`."""

    url: str
    database: str = "bench"
    token: str = ""

    def rows(self, query: str) -> list[list[Any]]:
        """All rows of all series. Raises BenchError as `series` does."""
        return [row for _, rows in self.series(query) for row in rows]

    def series(self, query: str) -> list[tuple[dict[str, str], list[list[Any]]]]:
        """Tags and rows of each series. Raises BenchError as `tables` does."""
        return [(one.get("tags", {}), one["values"]) for one in self.answer(query)]

    def tables(self, query: str) -> list[tuple[list[str], list[list[Any]]]]:
        """Columns and rows of each series. Raises BenchError with the server's words; InfluxQL errors come with HTTP 200."""
        return [(one["columns"], one["values"]) for one in self.answer(query)]

    def answer(self, query: str) -> list[dict[str, Any]]:
        """All series as InfluxDB states them. Raises BenchError as `tables` does."""
        data = urllib.parse.urlencode({"db": self.database, "q": query, "epoch": "ms"}).encode()
        request = urllib.request.Request(f"{self.url}/query", data)
        if ":" in self.token:
            request.add_header("Authorization", "Basic " + base64.b64encode(self.token.encode()).decode())
        elif self.token:
            request.add_header("Authorization", f"Token {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                document = json.load(answer)
        except urllib.error.HTTPError as error:
            raise BenchError(f"{query}: HTTP {error.code}: {error.read().decode('utf-8', 'replace').strip()}") from None
        except (OSError, ValueError) as error:
            raise BenchError(f"{self.url}: {in_words(error)}") from None
        failed = document.get("error") or document["results"][0].get("error")
        if failed:
            raise BenchError(f"{query}: {failed}")
        found: list[dict[str, Any]] = document["results"][0].get("series", [])
        return found


@dataclass(frozen=True)
class Tried:
    """One query as sent, and how many rows came. `needs`: fields without which it may stay empty; `kinds`: events."""

    place: str
    text: str
    rows: int
    needs: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


def values_of(server: Server, variable: TagValues, choices: Mapping[str, Choice]) -> list[str]:
    """Returns the variable's values, in the order of its menu."""
    found = dict.fromkeys(str(row[1]) for row in server.rows(interpolated(variable.query, choices, LONG_AGO)))
    return list(found) if variable.sort == AS_ANSWERED else sorted(found, reverse=variable.sort == NEWEST_FIRST)


def _known(server: Server, text: str) -> int:
    """Counts the rows that hold a value: an interval without a sample has one of nulls."""
    return sum(any(cell is not None for cell in row[1:]) for row in server.rows(text))


def choices_of(server: Server, dashboard: Dashboard, wanted: Mapping[str, Choice]) -> dict[str, Choice]:
    """Returns a user's first choices: the first value of each variable, or All; `wanted` goes before. Raises BenchError for none."""
    chosen: dict[str, Choice] = {}
    for variable in dashboard.variables:
        offered = values_of(server, variable, chosen)
        if not offered and variable.unlike:
            # There is one run alone. Grafana leaves this side empty; its queries are tried all the same.
            offered = [str(chosen[variable.unlike])]
        if not offered and not variable.all_of_them:
            raise BenchError(f"{dashboard.title}: the variable {variable.name} has no value ({variable.query})")
        choice = wanted.get(variable.name, Every.VALUE if variable.all_of_them else offered[0])
        if isinstance(choice, str) and choice not in offered:
            raise BenchError(f"{dashboard.title}: {variable.name} does not offer {choice!r} but {', '.join(offered)}")
        chosen[variable.name] = choice
    return chosen


def tried(server: Server, dashboard: Dashboard, choices: Mapping[str, Choice], shown: Range) -> Iterator[Tried]:
    """Tries every query of the dashboard; one with a range of its own gets the whole range too: the run is over."""
    for panel in dashboard.panels():
        for target in panel.targets:
            text = OWN_RANGE.sub(since_begin().text, target.query.render())
            text = interpolated(text, choices, shown)
            place = f"{dashboard.title} / {panel.title}"
            yield Tried(place, text, _known(server, text) or int(target.counts), (*panel.needs, *target.needs))
    for annotation in dashboard.annotations:
        text = interpolated(annotation.query.render(), choices, shown)
        place = f"{dashboard.title} / annotation {annotation.name}"
        yield Tried(place, text, _known(server, text), kinds=annotation.kinds)


def range_of(server: Server, dashboard: Dashboard, run: str) -> Range:
    """Returns when the run's telemetry was taken; for a dashboard with a fixed range, that one."""
    if not dashboard.begin.startswith("now"):
        begin, end = (int(datetime.fromisoformat(one).timestamp() * 1000) for one in (dashboard.begin, dashboard.end))
        return Range(begin, end)
    place = f'FROM "telemetry_agent" WHERE "run" = {string_in(run)}'
    ends = [server.rows(f'SELECT {function}("staleness_s") {place}') for function in ("first", "last")]
    if not all(ends):
        raise BenchError(f"run {run}: there is no telemetry of it")
    # The verdict comes minutes after the last sample.
    return Range(int(ends[0][0][0]) - 60_000, int(ends[1][0][0]) + 600_000)


def run_trial(url: str, database: str, token: str) -> int:
    """Prints each query that gives nothing; 1 if one does without a reason."""
    server = Server(url.rstrip("/"), database, token)
    runs = sorted({str(row[1]) for row in server.rows('SHOW TAG VALUES FROM "telemetry_agent" WITH KEY = "run"')})
    if not runs:
        raise BenchError(f"{url}: the database {database} has no telemetry of any run")
    host = server.rows(f'SHOW TAG VALUES FROM "telemetry_agent" WITH KEY = "host" WHERE "run" = {string_in(runs[-1])}')
    wanted: dict[str, Choice] = {"run": runs[-1], "host": str(host[0][1])}
    empty = total = 0
    for dashboard in DASHBOARDS:
        choices = choices_of(server, dashboard, wanted)
        for one in tried(server, dashboard, choices, range_of(server, dashboard, runs[-1])):
            total += 1
            if not one.rows:
                excuse = ", ".join((*one.needs, *(f"events of kind {kind}" for kind in one.kinds)))
                print(f"{one.place}: {f'needs {excuse}' if excuse else 'NO ROWS'}\n    {one.text}")
                empty += not excuse
    print(f"{total} queries for run {runs[-1]}, {empty} without rows and without a reason")
    return 1 if empty else 0
