"""The dashboards as files: Grafana's own types accept them, layout, names; and how their queries are filled in."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import alerting as grafana_alerting
from grafana_foundation_sdk.models import bargauge, heatmap, stat, statetimeline, table, timeseries, units
from grafana_foundation_sdk.models import dashboard as grafana
from grafana_foundation_sdk.models import expr as grafana_expr

from daq_bench.bench_dashboards import alerts, catalogue
from daq_bench.bench_dashboards.boards.fleet import MARGIN
from daq_bench.bench_dashboards.catalogue import DASHBOARDS, FOLDER, files
from daq_bench.bench_dashboards.common import HERE
from daq_bench.bench_dashboards.dashboard import Dashboard
from daq_bench.bench_dashboards.declared import Declared
from daq_bench.bench_dashboards.furniture import TagValues
from daq_bench.bench_dashboards.influxql import (
    MINUTES,
    Query,
    chosen,
    equals,
    highest,
    last,
    mean,
    over_time,
    present_as,
    total,
    value,
)
from daq_bench.bench_dashboards.interpolation import Every, Range, interpolated
from daq_bench.bench_dashboards.layout import Row, Section, placed
from daq_bench.bench_dashboards.looks import MARGIN_TO_WARNING, NONE_ALLOWED, Unit
from daq_bench.bench_dashboards.panels import SLOW, Stat, Target, TimeSeries
from daq_bench.bench_dashboards.preview import write_preview
from daq_bench.bench_model.base.errors import BenchError

DECLARED = Declared.load()
FILES = {Path(name).stem: json.loads(text) for name, text in sorted(files(DECLARED).items())}
OPTIONS = {
    "timeseries": None,  # their options' legend has a type of its own; checked by name below
    "stat": stat.Options,
    "bargauge": bargauge.Options,
    "heatmap": heatmap.Options,
    "state-timeline": statetimeline.Options,
    "table": table.Options,
}
# By Grafana's convention these are chosen by a type of panel and not listed for all.
UNIT_IDS = {value for name, value in vars(units).items() if isinstance(value, str) and not name.startswith("_")}


def panels_of(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Returns all panels, those of folded rows too, without headings."""
    for panel in document["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def test_the_same_files_are_made_each_time_and_tests_have_them_where_grafana_takes_them() -> None:
    assert {file.name: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.json")} == files(DECLARED)
    assert files(DECLARED) == files(Declared.load())
    assert {name: json.loads(text)["schemaVersion"] for name, text in files(DECLARED).items()} == {
        f"daq-bench-{name}.json": 39 for name in ("compare", "drive-history", "drives", "fleet", "live")
    }


def test_writing_removes_old_dashboards_of_the_bench_and_nobody_elses(tmp_path: Path) -> None:
    for name in ("daq-bench-old.json", "mine.json", "README.md"):
        (tmp_path / name).write_text("{}")
    catalogue.write(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {*files(DECLARED), "alerting", "mine.json", "README.md"}


@pytest.mark.parametrize("document", FILES.values(), ids=FILES)
def test_grafanas_own_types_know_every_key(document: dict[str, Any]) -> None:
    """Reading them into the types that Grafana 11 generates from its schema, and writing them again, would drop unknown keys."""
    again = json.loads(JSONEncoder(sort_keys=True).encode(grafana.Dashboard.from_json(document)))
    lost = list(missing(document, again))
    # A target of a query, an annotation's or a variable's query belong to the data source, not to Grafana's schema.
    assert [path for path in lost if not re.search(r"annotations\.list\.\d+\.target|targets\.\d+", path)] == []


def missing(here: Any, there: Any, path: str = "") -> Iterator[str]:
    """Yields the paths of keys that `there` lacks, and of values that differ."""
    if isinstance(here, dict):
        for key, inner in here.items():
            if not isinstance(there, dict) or key not in there:
                # Written as absent, which Grafana takes alike.
                if inner is not None:
                    yield f"{path}.{key}"
            else:
                yield from missing(inner, there[key], f"{path}.{key}")
    elif isinstance(here, list):
        if not isinstance(there, list) or len(here) != len(there):
            yield path
        else:
            for index, inner in enumerate(here):
                yield from missing(inner, there[index], f"{path}.{index}")
    elif here != there:
        yield f"{path}: {here!r} became {there!r}"


@pytest.mark.parametrize("document", FILES.values(), ids=FILES)
def test_each_panels_options_are_known_to_its_kind(document: dict[str, Any]) -> None:
    for panel in panels_of(document):
        kind = OPTIONS[panel["type"]] or timeseries.Options
        known = json.loads(JSONEncoder().encode(kind.from_json(panel["options"])))
        unknown = panel["options"].keys() - known.keys() - {"showPercentChange", "cellHeight", "perPage"}
        assert unknown == set(), panel["title"]


@pytest.mark.parametrize("document", FILES.values(), ids=FILES)
def test_panels_fill_the_grid_without_overlap_or_hole(document: dict[str, Any]) -> None:
    """Rows follow each other from the top; a folded row's panels stand below its heading."""
    folded = [panel["panels"] for panel in document["panels"] if panel["type"] == "row" and panel["collapsed"]]
    for group in (document["panels"], *folded):
        cells: Counter[tuple[int, int]] = Counter()
        for panel in group:
            at = panel["gridPos"]
            assert at["x"] + at["w"] <= 24
            cells.update((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"]))
        assert set(cells.values()) == {1}, "panels overlap"
        rows = {y for _, y in cells}
        assert rows == set(range(min(rows), max(rows) + 1)), "a row is empty"
        assert len(cells) == 24 * len(rows), "a row has a hole"


@pytest.mark.parametrize("document", FILES.values(), ids=FILES)
def test_names_are_unique_and_everything_is_said(document: dict[str, Any]) -> None:
    assert document["schemaVersion"] == 39
    panels = list(panels_of(document))
    ids = [panel["id"] for panel in (*panels, *(one for one in document["panels"] if one["type"] == "row"))]
    assert len(ids) == len(set(ids))
    titles = [panel["title"] for panel in panels]
    assert [title for title, number in Counter(titles).items() if number > 1] == []
    for panel in panels:
        assert len(panel["description"]) > 20 or panel["type"] == "stat", panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNIT_IDS, panel["title"]
        assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["value"] is None
        assert panel["datasource"] == {"type": "influxdb", "uid": "${datasource}"}
        references = [target["refId"] for target in panel["targets"]]
        assert references, panel["title"]
        assert len(references) == len(set(references))
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


def test_dashboards_and_files_go_by_the_same_name() -> None:
    assert {document["uid"] for document in FILES.values()} == set(FILES)
    assert len({document["title"] for document in FILES.values()}) == len(FILES)


@pytest.mark.parametrize("document", FILES.values(), ids=FILES)
def test_variables_exist_and_no_run_is_written_in(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    names = {variable["name"] for variable in document["templating"]["list"]}
    assert set(re.findall(r"\$\{(\w+):regex\}", text)) <= names
    assert set(re.findall(r"\$\{(\w+):(?:raw|queryparam)\}", text)) <= names
    assert re.search(r"20[2-9]\d{5}T\d{6}Z|dune-snb|this-machine|nvme\d", text) is None
    for link in document["links"]:
        uid = re.match(r"/d/([\w-]+)", link["url"])
        assert uid is not None
        assert uid.group(1) in FILES


@pytest.mark.parametrize("document", FILES.values(), ids=FILES)
def test_links_lead_to_variables_that_are_there(document: dict[str, Any]) -> None:
    """A link that sets a variable that the other dashboard lacks would be silently ignored."""
    for uid, query in re.findall(r"/d/(daq-bench-\w+)\?([^\"]*)", json.dumps(document)):
        others = {variable["name"] for variable in FILES[uid]["templating"]["list"]}
        for name in re.findall(r"var-(\w+)=", query):
            assert name in others, f"{uid} has no variable {name}"


@pytest.mark.parametrize("document", FILES.values(), ids=FILES)
def test_a_missing_value_is_neither_good_nor_bad(document: dict[str, Any]) -> None:
    """Grafana gives it the first step's colour: grey. One tile is red then: telemetry that nobody sends."""
    for panel in panels_of(document):
        defaults = panel["fieldConfig"]["defaults"]
        if panel["type"] not in ("stat", "bargauge", "table") or defaults["unit"] == "string":
            continue
        steps = [defaults["thresholds"]["steps"]]
        for override in panel["fieldConfig"]["overrides"]:
            steps += [one["value"]["steps"] for one in override["properties"] if one["id"] == "thresholds"]
        expected = "red" if panel["title"] == "Telemetry's age" else "#808080"
        assert {one[0]["color"] for one in steps} == {expected}, panel["title"]
        assert all(one[1]["value"] < -1e12 for one in steps), panel["title"]


@pytest.mark.parametrize("document", FILES.values(), ids=FILES)
def test_lines_end_where_nothing_was_measured(document: dict[str, Any]) -> None:
    for panel in panels_of(document):
        if panel["type"] == "timeseries":
            custom = panel["fieldConfig"]["defaults"]["custom"]
            queries = [target["query"] for target in panel["targets"]]
            if custom["showPoints"] == "always":  # days apart
                assert custom["spanNulls"] is True, panel["title"]
                continue
            assert all(one.endswith("fill(null)") for one in queries if "time($__interval)" in one), panel["title"]
            bridged_s = custom["spanNulls"] / 1000
            # Drives answer each minute or slower; over months, no gap is a night, a weekend or a holiday.
            long = {"daq-bench-drives": 6 * 3600, "daq-bench-drive-history": 4 * 86400}.get(document["uid"])
            slow = any(f'"{name}"' in one for one in queries for name in SLOW)
            assert bridged_s == (long or (60 if slow else 10)), panel["title"]
            assert custom["insertNulls"] is False, "of a long range each interval would be a gap"
            assert 0 < panel["maxDataPoints"] <= 300


def test_each_board_opens_with_its_own_range_and_a_choice_goes_along_where_it_means_the_same() -> None:
    """Drive health at 15 minutes and Run live at 7 days show nothing, and no candidate is called All."""
    carried = {
        (uid, re.match(r"/d/([\w-]+)", link["url"]).group(1))  # type: ignore[union-attr]
        for uid, document in FILES.items()
        for link in document["links"]
        if link["includeVars"] and "from=" not in link["url"]
    }
    assert carried == set(permutations(("daq-bench-live", "daq-bench-drives", "daq-bench-drive-history"), 2))
    assert not any(link["keepTime"] for document in FILES.values() for link in document["links"])


def test_a_board_of_one_candidate_opens_on_the_one_that_answered_last() -> None:
    for uid in ("daq-bench-live", "daq-bench-drives"):
        host = next(one for one in FILES[uid]["templating"]["list"] if one["name"] == "host")
        assert (
            host["sort"] == 0
            and host["current"] == {}
            and host["query"]
            == (
                'SELECT "host" FROM (SELECT last("staleness_s") AS "newest" FROM "telemetry_agent" '
                'WHERE time <= now() + 1d GROUP BY "host") ORDER BY time DESC'
            )
        )


def panel_of(uid: str, title: str) -> dict[str, Any]:
    return next(panel for panel in panels_of(FILES[uid]) if panel["title"] == title)


def test_what_is_kept_for_months_is_read_by_the_board_of_months_alone() -> None:
    """All queries of Drive history read values of a minute, and no query of another board does. Nobody chooses a run there."""
    for uid, document in FILES.items():
        queries = [target["query"] for panel in panels_of(document) for target in panel["targets"]]
        assert {MINUTES in query for query in queries} == {uid == "daq-bench-drive-history"}, uid
    (names,) = [
        {one["name"] for one in document["templating"]["list"]} for uid, document in FILES.items() if "history" in uid
    ]
    assert names == {"datasource", "host", "device", "report_base"}


def test_axes_legends_and_digits_fit_what_they_show() -> None:
    live = "daq-bench-live"
    assert panel_of(live, "NUMA: what crosses between nodes")["fieldConfig"]["defaults"]["max"] == 1
    assert panel_of("daq-bench-drives", "Spare left")["fieldConfig"]["defaults"]["max"] == 100
    legend = panel_of(live, "Kernel time of each core")["options"]["legend"]
    assert (legend["sortBy"], legend["sortDesc"]) == ("Max", True)
    for title, decimals in (
        ("Lost superchunks", 0),
        ("BUSY and lost superchunks", 0),
        ("Queue depth of each drive", 1),
    ):
        assert panel_of(live, title)["fieldConfig"]["defaults"]["decimals"] == decimals
    for panel in (one for document in FILES.values() for one in panels_of(document) if one["type"] == "table"):
        assert "decimals" not in panel["fieldConfig"]["defaults"], "a count has none, a rate as many as it needs"
    for title in ("Margin to warning",):
        for uid in (live, "daq-bench-drives"):
            assert panel_of(uid, title)["fieldConfig"]["defaults"]["unit"] == "kelvin"


def test_the_live_board_is_light() -> None:
    """24 drives asked for 2.5 MB each 5 s."""
    live = FILES["daq-bench-live"]
    assert live["refresh"] == "10s"
    switches = [one["name"] for one in live["annotations"]["list"] if not one["hide"]]
    assert switches == ["Tests and suites"]


def test_panels_with_a_line_for_each_core_stay_light() -> None:
    """128 cores, and some 24 bytes for each value: below 100 kB at each refresh."""
    found = [panel for document in FILES.values() for panel in panels_of(document) if "GROUP BY time($__interval), \"core\"" in
             panel["targets"][0]["query"]]  # fmt: skip
    assert len(found) == 2
    assert all(0 < panel["maxDataPoints"] * 128 * 24 < 100_000 for panel in found)


def test_a_tile_that_names_the_worst_shows_one_row() -> None:
    """Grafana's own getFieldDisplayValues makes the tile's name of the row's texts where values are shown as they are."""
    found = {panel["title"]: panel for document in FILES.values() for panel in panels_of(document)
             if "/^worst$/" in json.dumps(panel["options"])}  # fmt: skip
    assert {"Margin to warning", "Most worn", "Least spare", "Smallest newest margin"} <= set(found)
    for panel in found.values():
        assert panel["options"]["reduceOptions"] == {
            "values": True,
            "calcs": ["lastNotNull"],
            "fields": "/^worst$/",
            "limit": 1,
        }
        assert panel["options"]["textMode"] == "value_and_name"
        (target,) = panel["targets"]
        assert target["resultFormat"] == "table"
        assert ' AS "worst" FROM ' in target["query"]


def test_green_is_nowhere_what_may_be_old() -> None:
    """A tile asks for the last minute or the last 36 h; the one column of words that is green asks for them by itself."""
    green = [
        (panel["title"], panel.get("timeFrom"))
        for document in FILES.values()
        for panel in panels_of(document)
        if panel["type"] in ("stat", "bargauge", "table") and '"green"' in json.dumps(panel["fieldConfig"])
    ]
    own_range = ("Newest run of each candidate", "Candidates by newest outcome")
    assert green and {lasts for title, lasts in green if title not in own_range} == {"1m", "36h"}
    fields = panel_of("daq-bench-fleet", own_range[0])["fieldConfig"]
    (column,) = (one for one in fields["overrides"] if '"green"' in json.dumps(one))
    assert column["matcher"]["options"] == "Outcome" and '"green"' not in json.dumps(fields["defaults"])
    for title in own_range:
        fresh = [
            one["query"] for one in panel_of("daq-bench-fleet", title)["targets"] if ' AS "result"' in one["query"]
        ]
        lasts_s = [int(begin) for one in fresh for begin in re.findall(r"time >= now\(\) - (\d+)s", one)]
        assert len(lasts_s) == len(fresh) > 0 and max(lasts_s) == 129600
        assert all("time <= now()" in one and "now() + 1d" not in one for one in fresh), "nor is what is still to come"


def test_a_lane_is_as_high_as_its_name_however_many_there_are() -> None:
    """150 candidates: of the panel's height, title, axis, legend and pages take 130 pixels."""
    lanes = panel_of("daq-bench-fleet", "Outcome of each candidate, night by night")
    assert (lanes["gridPos"]["h"] * 38 - 8 - 130) / lanes["options"]["perPage"] >= 18


def test_annotations_have_an_end_where_they_say_so() -> None:
    for document in FILES.values():
        for annotation in document["annotations"]["list"]:
            target = annotation["target"]
            span = "\"extent\" = 'span'" in target["query"]
            assert ('"end_ms"' in target["query"]) is span, annotation["name"]
            assert target["timeEndColumn"] == "bench_event.end_ms"


# --- alert rules ---

ALERTS = json.loads(alerts.text(DECLARED))
REPOSITORY = FOLDER.parents[1]


def test_the_file_of_alert_rules_is_made_where_the_role_takes_it() -> None:
    assert (FOLDER / catalogue.ALERTS_FILE).read_text(encoding="utf-8") == alerts.text(DECLARED)
    role = (REPOSITORY / "ansible/roles/grafana/vars/main.yml").read_text(encoding="utf-8")
    assert f"/{catalogue.ALERTS_FILE.as_posix()}'" in role
    assert f"__grafana_data_source: {alerts.DATA_SOURCE}\n" in role
    provider = REPOSITORY / "ansible/roles/grafana/templates/dashboards.yaml.j2"
    assert f"folder: {alerts.FOLDER}\n" in provider.read_text(encoding="utf-8"), "one folder for both"


def test_grafanas_own_types_know_every_key_of_an_alert_rule() -> None:
    """The file's keys are those of Grafana's provisioning API, but for the group's, and but for a range in seconds."""
    assert ALERTS.keys() == {"apiVersion", "groups"} and ALERTS["apiVersion"] == 1
    (group,) = ALERTS["groups"]
    assert group.keys() == {"orgId", "name", "folder", "interval", "rules"}
    for rule in group["rules"]:
        again = json.loads(JSONEncoder(sort_keys=True).encode(grafana_alerting.Rule.from_json(rule)))
        assert [path for path in missing(rule, again) if not path.startswith(".data.")] == []
        assert (rule["noDataState"], rule["execErrState"]) == ("OK", "Error")
        known = {
            "reduce": grafana_expr.TypeReduce,
            "math": grafana_expr.TypeMath,
            "threshold": grafana_expr.TypeThreshold,
        }
        for asked in rule["data"]:
            assert asked.keys() == {"refId", "queryType", "relativeTimeRange", "datasourceUid", "model"}
            assert asked["relativeTimeRange"].keys() == {"from", "to"}
            model = asked["model"]
            if asked["datasourceUid"] == "__expr__":
                kind = known[model["type"]]
                assert list(missing(model, json.loads(JSONEncoder().encode(kind.from_json(model))))) == [], model
            else:
                assert (asked["datasourceUid"], model["rawQuery"], model["resultFormat"]) == (
                    "daq-bench",
                    True,
                    "time_series",
                )


def test_alert_rules_are_told_apart_and_say_what_is_wrong_and_what_to_do() -> None:
    (group,) = ALERTS["groups"]
    rules = group["rules"]
    assert len({rule["uid"] for rule in rules}) == len({rule["title"] for rule in rules}) == len(rules)
    page = (REPOSITORY / "docs/dashboards.md").read_text(encoding="utf-8")
    for rule in rules:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert f"- **{rule['title']}** ({rule['labels']['severity']})\n" in page
        texts = rule["annotations"]
        assert texts.keys() == {"summary", "description"}
        assert texts["summary"].endswith(".") and "{{ .Labels.host }}" in texts["summary"]
        # Provisioning expands dollar signs in annotations; and a name that is no letter is no name in a math expression.
        assert "$" not in "".join(texts.values())
        named = set(re.findall(r"\.Labels\.(\w+)", texts["summary"]))
        grouped = re.findall(r"GROUP BY ([^)]*)$", rule["data"][0]["model"]["query"])
        assert named <= set(re.findall(r"\w+", grouped[0])), rule["title"]
        assert all(
            re.fullmatch("[A-Z]", one["refId"]) and one["refId"] == one["model"]["refId"] for one in rule["data"]
        )


ADDED_UP = {
    name: Query(name, (present_as(1, of).named("x"),)) for name, of in (("smart", "passed"), ("bench_event", "text"))
}


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        (Query("daqwriter", (highest("lost"),)), "daqwriter has no field 'lost'"),
        (Query((Query("smart", (present_as(1, "passes").named("x"),)),), (total("x"),)), "smart has no field 'passes'"),
        (Query((Query("smart", (value("passed").named("x"),)),), (total("y"),)), "y is no column or group"),
        (
            Query((ADDED_UP["smart"], ADDED_UP["bench_event"]), (total("x"),)),
            "nothing up across measurements",
        ),
    ],
)  # fmt: skip
def test_an_alert_rule_of_undeclared_names_fails_the_build(query: Query, complaint: str) -> None:
    with pytest.raises((BenchError, ValueError), match=f"alert rule t: .*{complaint}"):
        alerts.Rule("u", "t", "warning", "s", "r", query, 60).json(DECLARED)


def test_limits_of_alert_rules_are_those_of_the_tiles() -> None:
    by_uid = {
        rule["uid"]: rule["data"][-1]["model"]["conditions"][0]["evaluator"] for rule in ALERTS["groups"][0]["rules"]
    }
    assert by_uid["daq-bench-temperature"] == {"type": "lt", "params": [MARGIN_TO_WARNING.steps[1][0]]}
    assert by_uid["daq-bench-margin"] == {"type": "lt", "params": [MARGIN.steps[0][0]]}
    assert by_uid["daq-bench-loss"] == {"type": "gt", "params": [NONE_ALLOWED.steps[0][0] - 1]}
    assert alerts.BAR_LASTS_S == 36 * 3600


# --- refusals of the builder ---


def dashboard_with(query: Query, **changes: Any) -> Dashboard:
    panel = TimeSeries("t", "d", (Target(query),), Unit.COUNT, **changes)
    variables = tuple(TagValues(name, name, name, name, "telemetry_agent") for name in ("host", "run"))
    return Dashboard("u", "U", "d", (Section("", Row(8, panel)),), variables)


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        (over_time("gpu", mean("x"), HERE, "host"), "measurement 'gpu' is not declared"),
        (over_time("memory", mean("swap_bytes"), HERE, "host"), "memory has no field 'swap_bytes'; declared are "),
        (over_time("memory", mean("free_bytes"), HERE, "dimm"), "memory has no tag 'dimm'; declared are host, run"),
        (over_time("memory", mean("free_bytes"), (equals("node", "0"),)), "memory has no tag 'node'"),
        (over_time("smart", highest("media_errors"), (), policy=MINUTES), "smart by the minute has no field 'media_errors'"),
        (over_time("smart", highest("min_media_errors"), (), policy=MINUTES), "has no field 'min_media_errors'"),
        (over_time("smart", highest("max_passed"), (), policy=MINUTES), "smart by the minute has no field 'max_passed'"),
        (over_time("smart", highest("last_passed"), (), policy=MINUTES), "'last_passed' of smart by the minute is of type boolean"),
        (over_time("smart", highest("max_media_errors"), HERE, policy=MINUTES), "smart by the minute has no tag 'run'"),
        (over_time("bench_event", mean("text"), HERE), "field 'text' of bench_event is of type string, and the query needs"),
        (Query("smart", (highest("passed"),)), "field 'passed' of smart is of type boolean"),
        (over_time("memory", mean("free_bytes"), (chosen("host", "server"),)), "there is no variable 'server' before it"),
        (Query(Query("memory", (last("swap_bytes").named("x"),)), (mean("x"),)), "memory has no field 'swap_bytes'"),
    ],
)  # fmt: skip
def test_what_is_not_declared_fails_the_build(query: Query, complaint: str) -> None:
    with pytest.raises(BenchError, match=re.escape(complaint)) as refused:
        dashboard_with(query).json(DECLARED)
    assert str(refused.value).startswith("U / t: ")


def test_a_need_that_is_not_declared_fails_too() -> None:
    with pytest.raises(BenchError, match="no field 'swap_bytes'"):
        dashboard_with(over_time("memory", mean("free_bytes"), HERE), needs=("memory.swap_bytes",)).json(DECLARED)


def test_strings_and_booleans_may_be_asked_for_as_they_are() -> None:
    dashboard_with(Query("bench_event", (last("text"),), HERE)).check(DECLARED)
    dashboard_with(Query("smart", (value("passed"),), HERE)).check(DECLARED)


def test_a_column_that_the_inner_query_lacks_is_a_fault_of_the_code() -> None:
    inner = Query("memory", (last("free_bytes").named("free"),), by=("host",))
    with pytest.raises(ValueError, match="used, run is no column or group of the inner query"):
        dashboard_with(Query(inner, (mean("used"),), by=("run",))).check(DECLARED)


def test_a_row_has_24_columns() -> None:
    panel = Stat("t", "d", (), Unit.COUNT)
    with pytest.raises(ValueError, match="the row with t, t is 23 columns wide, not 24"):
        Row(4, panel, panel, widths=(12, 11))


def test_what_is_below_a_folded_section_moves_up() -> None:
    panel = Stat("t", "d", (), Unit.COUNT)
    row = Row(5, panel)
    made = placed((Section("", row), Section("a", row, row, folded=True), Section("b", row)))
    assert [(one["type"], one["gridPos"]["y"]) for one in made] == [("stat", 0), ("row", 5), ("row", 6), ("stat", 7)]
    assert [one["gridPos"]["y"] for one in made[1]["panels"]] == [6, 11]


# --- how Grafana fills in a query ---

SHOWN = Range(1_700_000_000_000, 1_700_003_600_000)


@pytest.mark.parametrize(
    ("choice", "condition"),
    [
        ("nvme0n1", '"device" =~ /^nvme0n1$/'),
        ("md/raid-5.a", r'"device" =~ /^md\/raid-5\.a$/'),
        (("nvme0n1",), '"device" =~ /^nvme0n1$/'),
        (("sda", "sd[b]"), r'"device" =~ /^(sda|sd\[b\])$/'),
        (Every.VALUE, '"device" =~ /^.*$/'),
        ("a$b", r'"device" =~ /^a\$b$/'),
        ("", '"device" =~ /^$/'),
    ],
)
def test_a_choice_becomes_a_regular_expression(choice: Any, condition: str) -> None:
    query = over_time("block_device", mean("busy_fraction"), (chosen("device"),), "device")
    assert interpolated(query.render(), {"device": choice}, SHOWN) == (
        f'SELECT mean("busy_fraction") FROM "block_device" WHERE {condition} AND '
        'time >= 1700000000000ms and time <= 1700003600000ms GROUP BY time(5s), "device" fill(none)'
    )


def test_nothing_is_left_for_grafana_to_guess() -> None:
    with pytest.raises(BenchError, match="nothing is chosen for the variable run"):
        interpolated('"run" =~ /^${run:regex}$/', {}, SHOWN)
    with pytest.raises(BenchError, match="a dollar sign is left"):
        interpolated("\"run\" = '$run'", {"run": "r"}, SHOWN)


def test_numbers_are_written_without_an_exponent() -> None:
    """InfluxQL knows none."""
    assert (value("a") / 1e6).text == '(("a" * 1.0) / 1000000.0)'
    assert (value("a") * 0.25 - value("b")).text == '(("a" * 0.25) - "b")'


def test_a_preview_shows_every_panel(tmp_path: Path) -> None:
    text = write_preview(tmp_path / "preview.html").read_text(encoding="utf-8")
    for document in FILES.values():
        for panel in document["panels"]:
            assert panel["title"].replace("'", "&#x27;") in text
    places = re.findall(r'style="left:([\d.]+)%;top:\d+px;width:calc\(([\d.]+)%', text)
    assert (
        len(places) == text.count('style="left:')
        and max(float(left) + float(width) for left, width in places) <= 100.001
    )


def test_intervals_are_rounded_as_grafana_does() -> None:
    """Its own function confirms them: `make test-grafana`."""
    assert [Range(0, 900_000).interval(points) for points in (1000, 300, 90, 60)] == ["1s", "2s", "10s", "15s"]
    assert [Range(0, days * 86_400_000).interval() for days in (7, 30, 400)] == ["600s", "1800s", "43200s"]
    assert all(len(dashboard.uid) <= 40 for dashboard in DASHBOARDS)  # Grafana's limit


def test_the_inlet_by_redfish_stands_beside_ipmis_temperatures() -> None:
    """A machine that tells its inlet by Redfish alone would show none otherwise. Each series has its own excuse for staying empty."""
    found = [panel for document in FILES.values() for panel in panels_of(document)]
    panels = [panel for panel in found if panel["title"] == "Temperatures in the server"]
    assert panels
    for panel in panels:
        queries = [target["query"] for target in panel["targets"]]
        assert any('FROM "redfish_sensor"' in query for query in queries), queries
        assert any('FROM "ipmi_sensor"' in query for query in queries), queries
