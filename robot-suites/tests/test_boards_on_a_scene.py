"""Expected values of the boards' tiles, tables, lanes and graphs on a scene, on a real InfluxDB; with the marker `grafana`, what Grafana's
own functions make of them: text with unit, colour, name."""

from __future__ import annotations

import copy
import html
import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from board_scene import (
    COMPARE,
    DAY_S,
    DRIVE_HEALTH,
    FLEET,
    GREY,
    LANES,
    LINES,
    NOTHING,
    RUN_LIVE,
    TABLES,
    TILES,
    Ago,
    Expected,
    ExpectedLine,
    ExpectedTable,
    choices_of,
    history_lines,
    range_of,
    raw_lines,
)
from dashboard_trials import set_up_as_the_role
from grafana_code import Grafana, draw
from graph_scene import GRAPHS, Graph, compared_lines, flow_lines
from influx2_server import BINARY_VARIABLE, ORGANISATION, Influx2Server

from daq_bench.bench_dashboards.boards.fleet import NOW, STATES
from daq_bench.bench_dashboards.common import CANDIDATE
from daq_bench.bench_dashboards.dashboard import Dashboard
from daq_bench.bench_dashboards.declared import Declared
from daq_bench.bench_dashboards.interpolation import ROUNDED_S, Range, interpolated
from daq_bench.bench_dashboards.looks import DECISIONS
from daq_bench.bench_dashboards.trial import Server, values_of
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.telemetry.influx_server import LocalInflux, create_database

Json = dict[str, Any]
SCENE = "board_scene"
LANES_OF = "Outcome of each candidate, night by night"
DECLARED = Declared.load()


@pytest.fixture(scope="module")
def now_ms() -> int:
    return time.time_ns() // 10**9 * 1000


@pytest.fixture(scope="module", params=["1.8", pytest.param("2", marks=pytest.mark.influx2)])
def on(request: pytest.FixtureRequest, now_ms: int, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """Sets the scene up as the bench's own server and as the role do."""
    if request.param == "1.8":
        local: LocalInflux = request.getfixturevalue("influx")
        url = local.running_url()
        assert url is not None
        create_database(url, SCENE)
        on, influx = Server(url, SCENE), Influx(url, SCENE)
    else:
        if not Path(os.environ.get(BINARY_VARIABLE, "")).is_file():
            pytest.skip(f"{BINARY_VARIABLE} names no InfluxDB 2: `make influxd2` builds one")
        influx2: Influx2Server = request.getfixturevalue("influx2")
        set_up_as_the_role(influx2, tmp_path_factory.mktemp("role"), SCENE)
        buckets = (SCENE, f"{SCENE}/history")
        influx = Influx(influx2.url, SCENE, ORGANISATION, influx2.token(*(("write", one) for one in buckets)))
        on = Server(influx2.url, SCENE, influx2.token(*(("read", one) for one in buckets)))
    influx.write(SCENE, raw_lines(now_ms * 10**6) + flow_lines(now_ms * 10**6))
    influx.write(f"{SCENE}/history", history_lines(now_ms * 10**6) + compared_lines())
    return on


@pytest.fixture(scope="module")
def grafana() -> Iterator[Grafana]:
    with Grafana() as running:
        yield running


def panel_of(board: Dashboard, title: str) -> Json:
    """Returns the panel's JSON as Grafana reads it."""
    document = board.json(DECLARED)
    every = [inner for one in document["panels"] for inner in (one["panels"] if one["type"] == "row" else [one])]
    every += [one for one in document["panels"] if one["type"] != "row"]
    found: Json = next(one for one in every if one["title"] == title)
    return found


def of_candidate(one: Expected) -> str:
    return f"{one.board.uid}-{one.title}-{one.candidate}"


@pytest.mark.parametrize("one", TILES, ids=of_candidate)
def test_each_tile_asks_for_the_value_of_now(on: Server, now_ms: int, one: Expected) -> None:
    """The panels show the expected values; a value that is old, or another candidate's, would be a wrong one."""
    panel = panel_of(one.board, one.title)
    shown = range_of(one.board, panel.get("timeFrom", ""), now_ms)
    rows = [row[1:] for row in on.rows(interpolated(panel["targets"][0]["query"], choices_of(one.candidate), shown))]
    assert rows == one.rows


def test_every_tile_has_its_expected_value() -> None:
    tiles = {
        (board.uid, panel.title)
        for board in (RUN_LIVE, DRIVE_HEALTH, FLEET, COMPARE)
        for panel in board.panels()
        if panel.kind in ("stat", "bargauge")
    }
    assert {(one.board.uid, one.title) for one in TILES} == tiles


def drawn(on: Server, panel: Json, candidate: str, shown: Range) -> dict[str, list[tuple[int, float]]]:
    """What InfluxDB answers to a graph's queries, without the intervals in which nothing was measured, by the lines' names."""
    found: dict[str, list[tuple[int, float]]] = {}
    renamed = [one["options"] for one in panel.get("transformations") or () if one["id"] == "renameByRegex"]
    for target in panel["targets"]:
        query = target["query"].replace("$__interval", shown.interval(panel["maxDataPoints"]))
        for one in on.answer(interpolated(query, choices_of(candidate), shown)):
            told = {f"tag_{tag}": value for tag, value in one.get("tags", {}).items()}
            for place, column in enumerate(one["columns"][1:], 1):
                name = re.sub(
                    r"\$(\w+)", lambda word, told=told | {"col": column}: told.get(word[1], ""), target["alias"]
                )
                for rule in renamed:
                    name = re.sub(rule["regex"], rule["renamePattern"].replace("$", "\\"), name)
                rows = [(row[0], row[place]) for row in one["values"] if row[place] is not None]
                if rows:
                    assert name not in found, f"two lines are named {name}"
                    found[name] = rows
    return found


def expected_lines(graph: Graph, panel: Json, shown: Range) -> dict[str, list[tuple[int, float]]]:
    """Values at the begin of their intervals; at their own time where the graph has no intervals."""
    binned = "time($__interval)" in panel["targets"][0]["query"]
    every_ms = int(shown.interval(panel["maxDataPoints"])[:-1]) * 1000 if binned else 1
    return {
        one.name: [((shown.end_ms - int(age_s * 1000)) // every_ms * every_ms, value) for age_s, value in one.values]
        for one in graph.lines
    }


def same_lines(found: dict[str, list[tuple[int, float]]], wanted: dict[str, list[tuple[int, float]]]) -> bool:
    return {name: [at for at, _ in rows] for name, rows in found.items()} == {
        name: [at for at, _ in rows] for name, rows in wanted.items()
    } and all(
        value == pytest.approx(known)
        for name, rows in wanted.items()
        for (_, known), (_, value) in zip(rows, found[name], strict=True)
    )


def of_graph(one: Graph) -> str:
    return f"{one.board.uid}-{one.title}"


@pytest.mark.parametrize("one", GRAPHS, ids=of_graph)
def test_each_graph_asks_for_the_values_that_were_measured(on: Server, now_ms: int, one: Graph) -> None:
    panel = panel_of(one.board, one.title)
    shown = range_of(one.board, "", now_ms)
    found, wanted = drawn(on, panel, one.candidate, shown), expected_lines(one, panel, shown)
    assert same_lines(found, wanted), (found, wanted)


SWAPPED = {"mean": "max", "max": "min", "min": "max"}


def altered(query: str) -> Iterator[str]:
    """Mutants of a graph's query: another function of an interval, each condition that the board itself sets left out, no grouping."""
    yield re.sub(r"\b(mean|max|min)\(", lambda found: f"{SWAPPED[found[1]]}(", query)
    for condition in re.findall(r"\"\w+\" !?= '[^']*' AND ", query):
        yield query.replace(condition, "")
    names = re.findall(r', "(\w+)"', query.rpartition("GROUP BY")[2])
    if set(names) - {"host", "run", "serial", "sensor", "function", "entity", "chassis", "resource"}:
        yield re.sub(r"(GROUP BY time\([^)]*\))[^)]*? fill", r"\1 fill", query)


@pytest.mark.parametrize("one", [one for one in GRAPHS if one.mutants], ids=of_graph)
def test_a_mutant_of_a_graph_is_noticed(on: Server, now_ms: int, one: Graph) -> None:
    """Each query of a graph that has lines of the scene, altered by itself."""
    panel = panel_of(one.board, one.title)
    shown = range_of(one.board, "", now_ms)
    wanted, tried = expected_lines(one, panel, shown), 0
    for nth, target in enumerate(panel["targets"]):
        if not drawn(on, {**panel, "targets": [target]}, one.candidate, shown):
            continue  # hardware that this candidate has not got
        for query in altered(target["query"]):
            targets = [
                {**other, "query": query} if place == nth else other for place, other in enumerate(panel["targets"])
            ]
            try:
                noticed = not same_lines(drawn(on, {**panel, "targets": targets}, one.candidate, shown), wanted)
            except (AssertionError, KeyError):  # two lines of one name, or one that is gone
                noticed = True
            unchanging = "warning_degc" in query or "critical_degc" in query
            assert noticed or unchanging, query
            tried += 1
    assert tried


def test_every_panel_has_an_expected_value() -> None:
    stated = {(one.board.uid, one.title) for one in (*TILES, *TABLES, *GRAPHS)}
    stated |= {(board.uid, title) for board, title, _, _ in LINES} | {(FLEET.uid, LANES_OF)}
    for board in (RUN_LIVE, DRIVE_HEALTH, FLEET, COMPARE):
        titles = {panel.title for panel in board.panels()}
        assert titles == {title for uid, title in stated if uid == board.uid}, board.uid


def test_a_candidate_of_years_ahead_is_not_the_menus_first(on: Server) -> None:
    """Run live opens on the first one: years long it would be that of a clock that was wrong once."""
    offered = values_of(on, CANDIDATE, {})
    assert offered[0] == "fast" and "far" not in offered


def test_every_word_of_the_history_has_a_candidate() -> None:
    """A word that the scene has not got could be counted, named or coloured wrongly unnoticed."""
    (tiles,) = (one.shown for one in TILES if one.title == "Candidates by newest outcome")
    assert {(one["name"], one["colour"]) for one in tiles} == {(one.text, one.colour) for one in STATES} | {
        ("none", GREY)
    }
    every = {cell for table in TABLES for row in table.rows for cell in row if isinstance(cell, tuple)}
    assert {word.text for word in DECISIONS} | {word.text for word in NOW} <= {text for text, _ in every}


def of_table(one: ExpectedTable) -> str:
    return f"{one.board.uid}-{one.title}-{one.candidate}"


# --- by Grafana's own code ---


@pytest.mark.grafana
@pytest.mark.parametrize("one", TILES, ids=of_candidate)
def test_each_tile_shows_what_is_expected(on: Server, grafana: Grafana, now_ms: int, one: Expected) -> None:
    panel = panel_of(one.board, one.title)
    shown = range_of(one.board, panel.get("timeFrom", ""), now_ms)
    assert grafana.shown(on, panel, choices_of(one.candidate), shown) == {"tiles": one.shown}


@pytest.mark.grafana
@pytest.mark.parametrize("one", TABLES, ids=of_table)
def test_each_table_shows_what_is_expected(on: Server, grafana: Grafana, now_ms: int, one: ExpectedTable) -> None:
    panel = panel_of(one.board, one.title)
    shown = range_of(one.board, panel.get("timeFrom", ""), now_ms)
    found = grafana.shown(on, panel, choices_of(one.candidate), shown)["table"]
    assert tuple(found["columns"]) == one.columns
    began = {
        row: tuple(moment(now_ms, known) if isinstance(known, Ago) else known for known in row) for row in one.rows
    }
    rows = tuple(
        tuple(
            (cell["text"], cell["colour"]) if isinstance(known, tuple) else cell["text"]
            for cell, known in zip(row, wanted, strict=True)
        )
        for row, wanted in zip(found["rows"], one.rows, strict=True)
    )
    assert rows == tuple(began.values())


OTHERS = {"last": "first", "max": "min", "min": "max", "mean": "max"}
CONDITION = re.compile(
    r"""\"\w+\" (?:!=|=~) (?:'[^']*'|/[^$/]+/)|time [<>]=? (?:\$\{__from\}ms|now\(\)(?: [-+] \w+)?)"""
)


def mutants_of(query: str) -> Iterator[str]:
    """Mutants of a query: without each of the board's own conditions and ends of a time; another function."""
    for found in CONDITION.finditer(query):
        yield f"{query[: found.start()]}time >= 0{query[found.end() :]}"
    if "$timeFilter" in query:  # one of a query within a query bounds both
        yield query.replace("$timeFilter", "time >= 0")
    for found in re.finditer(r"\b(last|max|min|mean)\(", query):
        yield f"{query[: found.start(1)]}{OTHERS[found[1]]}{query[found.end(1) :]}"


# Shown alike without it: `overall` has no decision and no margin, so that it has no row.
OVERALL = {"Newest value of each requirement", "Smallest newest margin"}


@pytest.mark.grafana
@pytest.mark.parametrize(("uid", "title"), sorted({(one.board.uid, one.title) for one in (*TABLES, *TILES)}))
def test_a_mutant_of_a_query_is_noticed(on: Server, grafana: Grafana, now_ms: int, uid: str, title: str) -> None:
    """By one candidate's table or tile at least."""
    shows = [one for one in (*TABLES, *TILES) if (one.board.uid, one.title) == (uid, title)]
    panel = panel_of(shows[0].board, title)

    def shown(of: Json) -> list[Json]:
        return [
            grafana.shown(on, of, choices_of(one.candidate), range_of(one.board, panel.get("timeFrom", ""), now_ms))
            for one in shows
        ]

    seen = shown(panel)
    alike: dict[str, list[int]] = {}  # but for the word that they count: one mutant for all of them
    for nth, target in enumerate(panel["targets"]):
        alike.setdefault(re.sub(r"\^\([\w ]+\)\$", "", target["query"]), []).append(nth)
    for places in alike.values():
        mutants = [mutants_of(panel["targets"][nth]["query"]) for nth in places]
        for queries in zip(*mutants, strict=True):
            other = copy.deepcopy(panel)
            for nth, query in zip(places, queries, strict=True):
                other["targets"][nth]["query"] = query
            alike_without = title in OVERALL and "overall" not in queries[0]
            assert alike_without or shown(other) != seen, queries[0]


def moment(now_ms: int, ago: Ago) -> str:
    return f"{datetime.fromtimestamp(now_ms / 1000 - ago.minutes * 60, UTC):%Y-%m-%d %H:%M:%S}"


@pytest.mark.grafana
@pytest.mark.parametrize(
    "alter",
    [
        lambda query: re.sub(r'"(likely_cause|next_step)"', r'last("\1") AS "\1"', query),
        lambda query: query.replace('"likely_cause", "next_step"', '"next_step" AS "likely_cause", "likely_cause" AS "next_step"'),
        lambda query: query.replace("last(", "first("),
    ],
    ids=["each newest by itself", "swapped", "the oldest"],
)  # fmt: skip
def test_a_cause_that_is_another_runs_is_noticed(
    on: Server, grafana: Grafana, now_ms: int, alter: Callable[[str], str]
) -> None:
    """Each newest by itself: a run of an older bench would show the cause of the run before."""
    (one,) = (each for each in TABLES if each.title == "Newest run of each candidate" and not each.candidate)
    panel = asking(panel_of(one.board, one.title), alter)
    found = grafana.shown(on, panel, choices_of(one.candidate), range_of(one.board, "", now_ms))["table"]
    advice = slice(one.columns.index("Likely cause"), one.columns.index("Next") + 1)
    advised = [tuple(cell["text"] for cell in row[advice]) for row in found["rows"]]
    assert advised != [row[advice] for row in one.rows]


@pytest.mark.grafana
@pytest.mark.parametrize(("board", "title", "candidate", "wanted"), LINES)
def test_lines_have_names_colours_and_figures(
    on: Server,
    grafana: Grafana,
    now_ms: int,
    board: Dashboard,
    title: str,
    candidate: str,
    wanted: tuple[ExpectedLine, ...],
) -> None:
    found = grafana.shown(on, panel_of(board, title), choices_of(candidate), range_of(board, "", now_ms))["lines"]
    seen = [
        ExpectedLine(one["name"], one["colour"], one["dashed"], tuple(one["calcs"])) for one in found if one["values"]
    ]
    assert seen == list(wanted)


@pytest.mark.grafana
@pytest.mark.parametrize("one", GRAPHS, ids=of_graph)
def test_a_graph_shows_names_colours_and_figures(on: Server, grafana: Grafana, now_ms: int, one: Graph) -> None:
    panel = panel_of(one.board, one.title)
    found = grafana.shown(on, panel, choices_of(one.candidate), range_of(one.board, "", now_ms))["lines"]
    seen = {line["name"]: line for line in found if line["values"]}
    assert {name: tuple(line["calcs"]) for name, line in seen.items()} == {
        line.name: line.figures for line in one.lines
    }
    for known in one.lines:
        line = seen[known.name]
        assert line["dashed"] is known.dashed
        assert line["colour"] == known.colour or not known.colour


@pytest.mark.grafana
def test_a_limit_is_drawn_and_stands_in_no_legend(on: Server, grafana: Grafana, now_ms: int) -> None:
    """A legend that begins with the highest would show 48 limits of 24 drives before the hottest drive."""
    for board, title, limits in (
        (RUN_LIVE, "Drive temperature against its own limits", 1),
        (DRIVE_HEALTH, "Each drive's own sensors", 1),
    ):
        found = grafana.shown(on, panel_of(board, title), choices_of("calm"), range_of(board, "", now_ms))["lines"]
        drawn_ones = [one for one in found if one["values"]]
        assert [one["dashed"] for one in drawn_ones if not one["listed"]] == [True] * limits
        assert not any(one["dashed"] for one in drawn_ones if one["listed"])


@pytest.mark.grafana
def test_each_core_is_in_the_heat_map_however_busy_it_is(grafana: Grafana, now_ms: int) -> None:
    """By Grafana's own incrRoundDn: a row of 0.3 or of 0.6 got no count, and one that began at the axis' end was not drawn."""
    panel = panel_of(RUN_LIVE, "How many cores are how busy")
    busy = [percent / 100 * 99.99 for percent in range(0, 101, 5)]
    answers = [
        [
            {"name": "cpu", "tags": {"core": str(nth)}, "columns": ["time", "busy_fraction"], "values": [[now_ms, one]]}
            for nth, one in enumerate(busy)
        ]
    ]
    rows = grafana.heat(panel, answers, Range(now_ms - 900_000, now_ms))
    assert rows == {row: 3 if row == 0 else 2 for row in range(0, 100, 10)}, "21 cores"


@pytest.mark.grafana
def test_a_bar_of_the_fleet_ends_after_36_hours(on: Server, grafana: Grafana, now_ms: int) -> None:
    """A candidate that was not run for 20 days is no longer green."""
    panel = panel_of(FLEET, LANES_OF)
    found = grafana.shown(on, panel, choices_of(""), range_of(FLEET, "", now_ms))["lanes"]
    seen = {}
    for lane in found:
        states = [
            (
                round((now_ms - one["at"]) / 60_000),
                (one["text"], one["colour"]) if "text" in one else None,
            )
            for one in lane["states"]
        ]
        before = [None, *(state for _, state in states)]
        seen[lane["name"]] = tuple(one for one, last in zip(states, before, strict=False) if one[1] != last)
    assert seen == LANES


@pytest.mark.grafana
def test_the_interval_is_grafanas(grafana: Grafana) -> None:
    """The bench rounds an interval to the seconds that Grafana takes, just below each bound and at it."""
    units = {"s": 1, "m": 60, "h": 3600, "d": DAY_S, "w": 7 * DAY_S, "y": 365 * DAY_S}
    for below_s, _ in ROUNDED_S:
        for range_ms in (int(below_s * 300_000) - 1, int(below_s * 300_000)):
            theirs = grafana.interval(Range(0, range_ms), 300)
            assert Range(0, range_ms).interval(300) == f"{int(theirs[:-1]) * units[theirs[-1]]}s", theirs


def asking(panel: Json, alter: Callable[[str], str]) -> Json:
    """Returns a mutant: a panel whose queries are altered."""
    changed = copy.deepcopy(panel)
    for one in changed["targets"]:
        one["query"] = alter(one["query"])
    return changed


def without_time(panel: Json) -> Json:
    """Whatever was written last, however old it is."""
    return asking(panel, lambda query: query.replace("$timeFilter", "time > 0"))


def of_another_reducer(panel: Json) -> Json:
    changed = copy.deepcopy(panel)
    changed["options"]["reduceOptions"] |= {"values": False, "calcs": ["count"]}
    return changed


def of_another_function(panel: Json) -> Json:
    swapped = {"max(": "min(", "min(": "max(", "last(": "first("}
    return asking(panel, lambda query: re.sub(r"(max|min|last)\(", lambda found: swapped[found.group()], query))


def of_another_unit(panel: Json) -> Json:
    changed = copy.deepcopy(panel)
    changed["fieldConfig"]["defaults"] |= {"unit": "percent", "decimals": 3}
    return changed


def of_whole_numbers(panel: Json) -> Json:
    return asking(panel, lambda query: query.replace(" * 1.0", ""))


def without_thresholds(panel: Json) -> Json:
    changed = copy.deepcopy(panel)
    changed["fieldConfig"]["defaults"]["thresholds"]["steps"] = [{"color": "green", "value": None}]
    return changed


def without_mappings(panel: Json) -> Json:
    changed = copy.deepcopy(panel)
    changed["fieldConfig"]["defaults"]["mappings"] = []
    return changed


# Each change, and the tiles (board, title, candidate) that must then show something else.
MUTANTS: tuple[tuple[Callable[[Json], Json], tuple[tuple[Dashboard, str, str], ...]], ...] = (
    (
        without_time,
        (
            (RUN_LIVE, "Runs now", "silent"),
            (RUN_LIVE, "Phase", "gone"),
            (RUN_LIVE, "Left of this load", "gone"),
            (RUN_LIVE, "Lost superchunks", "busy"),
            (RUN_LIVE, "Buffer in use", "gone"),
            (RUN_LIVE, "Fullest buffer", "gone"),
            (RUN_LIVE, "Telemetry's age", "gone"),
        ),
    ),
    # Where the query leaves one value, only one that counts or compares gives another.
    (of_another_reducer, tuple((RUN_LIVE, title, "busy") for title in ("Lost superchunks", "Buffer in use", "Phase", "Telemetry's age"))),
    (of_another_function, (
        *((RUN_LIVE, title, "busy") for title in ("Phase", "Buffer in use", "Fullest buffer", "Margin to warning", "Telemetry's age")),
        *((DRIVE_HEALTH, title, "busy") for title in ("Critical warning", "Most media errors", "Most worn", "Least spare",
                                                      "Margin to warning", "Time above critical")),
        (RUN_LIVE, "Lost superchunks", "silent"), (FLEET, "Smallest newest margin", ""), (COMPARE, "Largest backlog", ""))),
    (of_another_unit, tuple((one.board, one.title, one.candidate) for one in TILES if one.candidate in ("calm", "busy")
                            and one.title not in ("Runs now", "Phase", "Outcome") and one.shown != [NOTHING])),
    (of_whole_numbers, ((RUN_LIVE, "Fullest buffer", "busy"),)),
    (without_thresholds, tuple((one.board, one.title, one.candidate) for one in TILES
                               if "green" not in {each["colour"] for each in one.shown} and one.title not in ("Outcome", "Outcomes"))),
    (without_mappings, ((COMPARE, "Outcomes", ""),)),
)  # fmt: skip


@pytest.mark.grafana
@pytest.mark.parametrize("change", [change for change, _ in MUTANTS])
def test_a_mutant_of_a_tile_is_noticed(
    on: Server, grafana: Grafana, now_ms: int, change: Callable[[Json], Json]
) -> None:
    """The mutants drop a time filter, thresholds or words, or take another reducer, another unit or a division of whole numbers."""
    places = dict(MUTANTS)[change]
    noticed = {}
    for one in TILES:
        place = (one.board, one.title, one.candidate)
        if place in places:
            panel = panel_of(one.board, one.title)
            shown = range_of(one.board, panel.get("timeFrom", ""), now_ms)
            noticed[place] = grafana.shown(on, change(panel), choices_of(one.candidate), shown) != {"tiles": one.shown}
    assert len(noticed) == len(places) and all(noticed.values()), noticed


# --- drawn by Grafana's own components ---


def of_title(dom: str, title: str) -> str:
    """Returns the part of the page that draws a panel."""
    found = re.search(rf'data-title="{re.escape(html.escape(title, quote=False))}".*?(?=data-title=|$)', dom, re.DOTALL)
    assert found is not None, title
    return found.group()


def events_of(on: Server, board: Dashboard, candidate: str, now_ms: int) -> list[Json]:
    """Returns what the annotations that are switched on draw over each graph of the board."""
    found = []
    for one in board.annotations:
        if one.enabled:
            for series in on.answer(
                interpolated(one.query.render(), choices_of(candidate), range_of(board, "", now_ms))
            ):
                ends = series["columns"].index("end_ms") if "end_ms" in series["columns"] else 0
                found += [{"colour": one.colour, "begin": row[0], "end": row[ends]} for row in series["values"]]
    return found


@pytest.mark.grafana
@pytest.mark.pictures
@pytest.mark.parametrize(
    ("board", "candidate"),
    [(RUN_LIVE, "busy"), (RUN_LIVE, "silent"), (RUN_LIVE, "calm"), (DRIVE_HEALTH, "busy"), (FLEET, ""), (COMPARE, "")],
)
def test_a_board_is_drawn(on: Server, grafana: Grafana, now_ms: int, board: Dashboard, candidate: str) -> None:
    """Each tile and each cell's text is on the page; the picture is kept for eyes."""
    document = board.json(DECLARED)
    panels = [panel for panel in document["panels"] if panel["type"] != "row"]
    asked = [
        grafana.asked(on, panel, choices_of(candidate), range_of(board, panel.get("timeFrom", ""), now_ms))
        for panel in panels
    ]
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) * 38 + 60
    dom = draw(asked, f"{board.uid}-{candidate}", height, events_of(on, board, candidate, now_ms))
    for panel in panels:
        assert html.escape(panel["title"], quote=False) in of_title(dom, panel["title"])
    for one in TILES:
        if (one.board, one.candidate) == (board, candidate):
            texts = re.sub(r"<[^>]*>", "", of_title(dom, one.title))
            for tile in one.shown:
                assert tile["text"].replace(" ", "") in html.unescape(texts).replace(" ", ""), one.title
