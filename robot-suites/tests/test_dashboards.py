"""Every query of the dashboards on a real InfluxDB: filled with every declared field, and by a real agent beside a real load."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from daq_bench.audit.good.small_run import candidate, scenario, some_run, target
from dashboard_trials import all_tried, by_the_minute, by_the_minute_2, set_up_as_the_role, unexcused
from influx2_server import ORGANISATION, Influx2Server

from daq_bench.bench_dashboards.boards.compare import DASHBOARD as COMPARE
from daq_bench.bench_dashboards.boards.drive_health import DASHBOARD as DRIVE_HEALTH
from daq_bench.bench_dashboards.boards.drive_history import DASHBOARD as DRIVE_HISTORY
from daq_bench.bench_dashboards.boards.fleet import DASHBOARD as FLEET
from daq_bench.bench_dashboards.boards.run_live import DASHBOARD as RUN_LIVE
from daq_bench.bench_dashboards.catalogue import DASHBOARDS
from daq_bench.bench_dashboards.common import HERE
from daq_bench.bench_dashboards.dashboard import Dashboard
from daq_bench.bench_dashboards.declared import METRICS
from daq_bench.bench_dashboards.influxql import Query, chosen, highest
from daq_bench.bench_dashboards.interpolation import Choice, Every, Range, interpolated
from daq_bench.bench_dashboards.trial import Server, Tried, choices_of, range_of, values_of
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.behaviour.aligned import EPOCH_NS, WITH_DRAIN
from daq_bench.bench_model.bundle.line_protocol import points_of
from daq_bench.bench_model.documents.run import RequirementOfRun
from daq_bench.rig.base.bundle import Bundle, now_utc
from daq_bench.rig.base.influx import HISTORY, Influx
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.telemetry.agent import Agent
from daq_bench.rig.telemetry.history import kept_event, publish
from daq_bench.rig.telemetry.influx_room import Room
from daq_bench.rig.telemetry.influx_server import LocalInflux, create_database
from daq_bench.telemetry_agent.base.point import Encoder, FieldValue, Point

LAYOUT = Layout()
TEST_PORT = 18486
MINUTE_NS = 60 * 10**9
# Names that a careless query would take for a pattern, or for the end of one.
HOST, RUN, OTHER_RUN = "bench-01.example.org (rack/3)", "20260131T120000Z-bench-01-it's", "20260130T120000Z-bench-01"
DEVICES = ("nvme0n1", "md/raid5.a", "sd[a]")
KEPT = ("bench_verdict", "bench_run", "aligned_run")
WORDS = {
    "kind": ("fan", "temperature", "some", "phase", "test", "hazard", "busy", "error", "verdict", "telemetry"),
    "core": ("total", "0", "1"),
    "device": DEVICES,
    "extent": ("", "span"),
    "requirement": ("overall", "SNB-01"),
    "label": ("Composite",),
    "phase": ("record",),
}
VALUES: dict[str, FieldValue] = {"integer": 7, "float": 1.5, "boolean": True, "string": "PASS"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalInflux]:
    """InfluxDB 1.8, as the bench itself starts it."""
    made = LocalInflux(LAYOUT.influxd, tmp_path_factory.mktemp("influxdb-dashboards"))
    made.start(TEST_PORT)
    yield made
    made.stop()


def synthetic_points(measurement: str, declared: dict[str, Any], run: str, now_ns: int) -> Iterator[Point]:
    """Three points of every field of a measurement, for every combination of the words that queries tell apart."""
    names = [tag for tag in declared["tags"] if tag not in ("host", "run")]
    fields = {
        each: run if name == "of_run" else FIELD_VALUES.get((measurement, name), VALUES[field["type"]])
        for name, field in declared["fields"].items()
        for each in ([name.replace("*", device) for device in DEVICES] if "*" in name else [name])
    }
    for words in product(*(WORDS.get(tag, ("x",)) for tag in names)):
        tags = tuple(sorted((key, word) for key, word in zip(names, words, strict=True) if word))
        for second in range(3):
            # Grown from one to the next, so that a counter has a rate.
            grown = {name: value + second if type(value) is int else value for name, value in fields.items()}
            yield Point(
                measurement, tags, grown, (EPOCH_NS if measurement == "aligned_run" else now_ns) + second * 10**9
            )


FIELD_VALUES: dict[tuple[str, str], FieldValue] = {
    ("bench_verdict", "decision"): "met",
    ("bench_event", "text"): "what happened",
    ("aligned_run", "load"): "record 1",
    ("bench_run", "started_ns"): 1_769_860_800 * 10**9,
}


def fill(influx: Influx, now_ns: int) -> None:
    """Writes every declared measurement for two runs, one after the other as those of one candidate are."""
    for run, at_ns in ((RUN, now_ns), (OTHER_RUN, now_ns - 5 * MINUTE_NS)):
        for name, declared in yaml.safe_load(METRICS.read_text(encoding="utf-8"))["measurements"].items():
            encoder = Encoder({"host": HOST, "run": run} if "run" in declared["tags"] else {"host": HOST})
            lines = [encoder.encode(point) for point in synthetic_points(name, declared, run, at_ns)]
            influx.write(influx.history if name in KEPT else influx.database, "".join(lines))
            if name == "bench_event":  # once more, by the rig
                influx.write(influx.history, "".join(map(kept_event, lines)))


@pytest.fixture(scope="module")
def filled(server: LocalInflux) -> Server:
    url = server.running_url()
    assert url is not None
    fill(Influx(url), time.time_ns())
    by_the_minute(Server(url), time.time_ns() // 10**6 - 600_000)
    return Server(url)


SEVERAL: dict[str, Choice] = {"run": RUN, "device": DEVICES, "run_a": RUN, "run_b": OTHER_RUN, "host": HOST}
ONE: dict[str, Choice] = {**SEVERAL, "device": DEVICES[1]}


@pytest.mark.parametrize("wanted", [SEVERAL, ONE, {"host": HOST}], ids=["several drives", "one drive", "all"])
def test_every_query_finds_what_is_declared(filled: Server, wanted: dict[str, Choice]) -> None:
    """Also those that need hardware: a synthetic fill has all of it."""
    found = all_tried(filled, RUN, wanted)
    assert len(found) > 100
    assert [one for one in found if not one.rows] == []


def test_the_choice_narrows_the_rows(filled: Server) -> None:
    """A query whose condition matched everything, or nothing, would pass the test above or fail it; this tells them apart."""
    few = {one.place: one.rows for one in all_tried(filled, RUN, ONE)}
    many = {one.place: one.rows for one in all_tried(filled, RUN, SEVERAL)}
    place = "Run live / Write rate of each drive"
    assert many[place] == len(DEVICES) * few[place]


def test_variables_are_chained_and_runs_come_newest_first(filled: Server) -> None:
    run_a, run_b, load = COMPARE.variables
    assert values_of(filled, run_a, {})[:2] == [RUN, OTHER_RUN]
    assert values_of(filled, run_b, {"run_a": RUN}) == [OTHER_RUN]
    assert values_of(filled, run_b, {"run_a": OTHER_RUN}) == [RUN]
    assert choices_of(filled, COMPARE, {})["run_b"] == OTHER_RUN
    assert values_of(filled, load, {"run_a": RUN}) == ["record 1"]
    with pytest.raises(BenchError, match="run_a does not offer 'nemo'"):
        choices_of(filled, COMPARE, {"run_a": "nemo"})
    assert values_of(filled, load, {"run_a": "nemo"}) == []


def scene(server: LocalInflux, database: str, *lines: str) -> Server:
    url = server.running_url()
    assert url is not None
    Server(url).rows(f"CREATE DATABASE {database}")
    Influx(url, database=database).write(database, "\n".join(lines) + "\n")
    return Server(url, database)


def asked(on: Server, board: Dashboard, title: str, shown: Range) -> list[list[Any]]:
    """Returns what the panel's first query answers, whatever is chosen."""
    panel = next(panel for panel in board.panels() if panel.title == title)
    choices: dict[str, Choice] = dict.fromkeys(("host", "run", "device"), Every.VALUE)
    return on.rows(interpolated(panel.targets[0].query.render(), choices, shown))


def test_the_candidate_that_answered_last_is_chosen_and_what_runs_now_is_listed(server: LocalInflux) -> None:
    """By the alphabet, Run live opened on a server that had been silent for a day."""
    now_ns = time.time_ns()
    answers = (("alone", "r1", 24 * 60), ("busy", "r2", 0), ("busy", "r0", 60), ("calm", "r3", 30), ("eager", "r4", 1))
    on = scene(
        server,
        "newest_scene",
        *(
            f"telemetry_agent,host={host},run={run},collector={name} staleness_s=0.5 {now_ns - minutes * MINUTE_NS}"
            for host, run, minutes in answers
            for name in ("cpu", "smart")
        ),
    )
    for board in (RUN_LIVE, DRIVE_HEALTH):
        assert values_of(on, board.variables[0], {}) == ["busy", "eager", "calm", "alone"]
        assert choices_of(on, board, {"run": Every.VALUE})["host"] == "busy"
    now_ms = now_ns // 10**6
    rows = asked(on, FLEET, "Runs now", Range(now_ms - 120_000, now_ms + 1000))
    assert [(row[0] // 1000, row[1]) for row in rows] == [(now_ms // 1000, 0.5), ((now_ms - 60_000) // 1000, 0.5)]


def test_a_pause_is_a_gap_and_the_nearest_drive_is_named_by_its_own_limit(server: LocalInflux) -> None:
    """A pause of 47 s between two samples was drawn as a rising backlog. A drive at 68 degC whose limit is 70 is nearer than one at 75
    whose limit is 85."""
    now_ms = time.time_ns() // 10**9 * 1000
    seconds = [0, 1, 2, 49, 50]
    backlog = [f"daqwriter,host=h,run=r backlog_bytes={1 + s}i,offered_bytes={100 * s}i {(now_ms - 60_000 + 1000 * s) * 10**6}"
               for s in seconds]  # fmt: skip
    heat = [
        f"smart_temperature,host=h,run=r,device=nvme{drive}n1,serial=S{drive},sensor=composite temperature_degc={at},warning_degc={limit}"
        f" {now_ms * 10**6}"
        for drive, at, limit in ((0, 75, 85), (1, 68, 70))
    ]
    on = scene(server, "pause_scene", *backlog, *heat)
    shown = Range(now_ms - 60_000, now_ms + 1000)
    for title, known in (
        ("Backlog against the transient buffer", [1.0, 2.0, 3.0, 50.0, 51.0]),
        ("Offered and stored rate", [100.0] * 4),
    ):
        values = [row[1] for row in asked(on, RUN_LIVE, title, shown)]
        assert [value for value in values if value is not None] == pytest.approx(known)
        first, later = values.index(known[0]), len(values) - 1 - values[::-1].index(known[-1])
        assert values[first:later].count(None) == 46, "one for each second of the pause"
    assert [row[1:] for row in asked(on, DRIVE_HEALTH, "Margin to warning", shown)] == [["nvme1n1", "S1", 2]]


def test_evidence_that_does_not_count_has_no_margin_and_ages_are_told(server: LocalInflux) -> None:
    url, now_ns = server.running_url(), time.time_ns()
    assert url is not None
    day_ns = 24 * 60 * MINUTE_NS
    verdicts = (("a", "FAIL", -3.5, 1), ("b", "INADMISSIBLE", -90.0, 1), ("c", "PASS", 12.0, 20))
    lines = [
        f'bench_verdict,host={host},run=r,scenario=s,requirement={requirement},model=m outcome="{outcome}",'
        f'word="{"REHEARSAL" if outcome == "INADMISSIBLE" else outcome}",'
        f"margin_percent={margin} {now_ns - days * day_ns}"
        for host, outcome, margin, days in verdicts
        for requirement in ("overall", "SNB-01")
    ]
    lines += [f'bench_run,host={host},run=r,scenario=s word="{"REHEARSAL" if outcome == "INADMISSIBLE" else outcome}",'
              f'outcome="{outcome}" {now_ns - days * day_ns}' for host, outcome, _, days in verdicts]  # fmt: skip
    database = "fleet_scene"
    Server(url).rows(f"CREATE DATABASE {database}")
    Server(url).rows(f'CREATE RETENTION POLICY "history" ON "{database}" DURATION INF REPLICATION 1')
    writer = urllib.request.Request(f"{url}/write?db={database}&rp=history", "\n".join(lines).encode())
    with urllib.request.urlopen(writer, timeout=60) as answer:
        assert answer.status == 204
    choices: dict[str, Choice] = dict.fromkeys(("host", "scenario", "model", "requirement"), Every.VALUE)
    shown = Range(now_ns // 10**6 - 30 * day_ns // 10**6, now_ns // 10**6)
    panels = {panel.title: panel for panel in FLEET.panels()}

    def rows(title: str, nth: int = 0) -> list[list[Any]]:
        query = panels[title].targets[nth].query.render()
        return Server(url, database).rows(interpolated(query, choices, shown))

    assert [row[1:] for row in rows("Smallest newest margin")] == [["a", "SNB-01", -3.5]]
    assert [row[1] for row in rows("Newest run of each candidate")] == ["FAIL", "REHEARSAL", None], (
        "c is no longer green"
    )
    newest = rows("Newest run of each candidate", 1)
    assert [row[1] for row in newest] == ["FAIL", "REHEARSAL", "PASS"]
    assert [round((now_ns // 10**6 - row[0]) / 86_400_000) for row in newest] == [1, 1, 20]
    custom = panels["Outcome of each candidate, night by night"].json(1, {})["fieldConfig"]["defaults"]["custom"]
    assert custom["insertNulls"] == 36 * 3_600_000 and custom["spanNulls"] is False


FIRST_SCREEN_ROWS = 26  # the tiles and two rows of graphs; Grafana asks for what is on the screen
LARGE = "host=server-1,run=20261101T000000Z-server-1"


def many(measurement: str, tag: str, names: Iterable[str], fields: str) -> list[str]:
    """Series of the large server: one for each value of a tag."""
    return [f"{measurement},{LARGE},{tag}={name} {fields}" for name in names]


def series_of_a_large_server() -> list[str]:
    """Each series that Run live reads of a server with 24 drives of three sensors, 64 cores, two nodes, 12 fans, 30 warm places."""
    drives = [f"nvme{nth}n1" for nth in range(24)]
    rates = ",".join(f"{name}=2123456789.123456" for name in ("written_bytes_per_s", "read_bytes_per_s"))
    latencies = ",".join(f"{name}=0.000123456789" for name in ("write_latency_s", "read_latency_s"))
    shares = ",".join(
        f"{name}_fraction=0.123456789" for name in ("user", "system", "iowait", "irq", "softirq", "steal", "busy")
    )
    agent = ",".join(f"{name}=0.123456" for name in ("staleness_s", "duration_s", "lateness_s", "cpu_s", "tools_cpu_s"))
    counts = (
        "missed_samples",
        "undelivered_points",
        "unspooled_points",
        "rejected_points",
        "thinned_points",
        "rss_max_bytes",
        "spool_bytes",
    )
    return [
        *many("block_device", "device", drives, f"{rates},{latencies},queue_depth=31.123456"),
        *many("temperature", "device", [f"{drive},label=Composite" for drive in drives],
              "temperature_degc=68.85,warning_degc=76.85,critical_degc=81.85"),
        *many("temperature", "device", [f"{drive},label=Sensor\\ {nth}" for drive in drives for nth in (1, 2)], "temperature_degc=68.85"),
        *many("cpu", "core", ["total", *map(str, range(64))], shares),
        *many("interrupts", "core", [f"total,device={one}" for one in (*drives, "eth0", "eth1")],
              "interrupts_per_s=123456.789,remote_fraction=0.123456"),
        *many("numa", "node", "01", "remote_fraction=0.123456"),
        *many("memory_bandwidth", "domain", "01", "total_bytes_per_s=21234567891.123,written_bytes_per_s=11234567891.123"),
        *many("network", "interface", ("eth0", "eth1"), "received_bytes_per_s=1234.5678,transmitted_bytes_per_s=1234.5678"),
        *many("cpu_throttle", "package", "01", "core_throttle_count=0i,package_throttle_count=0i"),
        *many("pressure", "kind", [f"some,resource={one}" for one in ("cpu", "io", "memory")], "stalled_fraction=0.123456"),
        *many("ipmi_sensor", "sensor", [f"Fan{nth},kind=fan,entity=29.{nth}" for nth in range(12)], "speed_rpm=12345,severity=0i"),
        *many("ipmi_sensor", "sensor", [f"Temp{nth},kind=temperature,entity=3.{nth}" for nth in range(30)],
              "temperature_degc=45.5,severity=0i"),
        *many("rapl", "domain", ("package-0", "package-1", "dram-0", "dram-1"), "power_w=123.456789"),
        *many("telemetry_agent", "collector", [f"collector-{nth}" for nth in range(20)],
              f"{agent},{','.join(f'{one}=123456i' for one in counts)}"),
        f"memory,{LARGE} " + ",".join(f"{one}_bytes=123456789012i" for one in ("available", "cached", "dirty", "writeback")),
        f"cpu_frequency,{LARGE},core=0 frequency_hz=3123456789.1",
        f"ipmi_power,{LARGE} power_w=723.5",
        f"redfish_sensor,{LARGE},sensor=Inlet,chassis=1,resource=1 temperature_degc=23.5",
    ]  # fmt: skip


def test_a_refresh_of_run_live_is_light(server: LocalInflux) -> None:
    """A large server, the board's own range, all drives chosen: at most 600 kB for the whole board with its unfolded rows, and at most 20
    requests for the first screen. A panel is one request with all its queries, an annotation is another. InfluxDB answers each interval."""
    now_ns = time.time_ns() // 10**9 * 10**9
    series = series_of_a_large_server()
    lines = [f"{one} {now_ns - age_s * 10**9}" for age_s in range(0, 900, 10) for one in series]
    lines += [
        f"daqwriter,{LARGE},phase=record offered_bytes={123456789 * (900 - age_s)}i,stored_bytes={123456780 * (900 - age_s)}i,"
        "backlog_bytes=123000001i,buffer_bytes=924000000000i,lost_superchunks=0i,busy_count=0i,total_s=100,elapsed_s=5.5"
        f" {now_ns - age_s * 10**9}"
        for age_s in range(0, 900, 2)
    ]
    on = scene(server, "light_scene", *lines)
    board = json.loads(
        (LAYOUT.repository / "reports" / "dashboards" / "daq-bench-live.json").read_text(encoding="utf-8")
    )
    choices: dict[str, Choice] = dict.fromkeys(("host", "run", "device"), Every.VALUE)

    def weight(panel: dict[str, Any]) -> int:
        lasts_ms = {"1m": 60_000, "36h": 36 * 3_600_000, None: 900_000}[panel.get("timeFrom")]
        shown = Range(now_ns // 10**6 - lasts_ms, now_ns // 10**6)
        found = 0
        for one in panel["targets"]:
            interval = shown.interval(panel.get("maxDataPoints", 1000))
            query = interpolated(one["query"].replace("$__interval", interval), choices, shown)
            asked_for = urllib.parse.urlencode({"db": "light_scene", "q": query, "epoch": "ms"})
            with urllib.request.urlopen(f"{on.url}/query?{asked_for}", timeout=30) as answer:
                found += len(answer.read())
        return found

    unfolded = [panel for panel in board["panels"] if panel["type"] != "row"]
    folded = [panel for row in board["panels"] if row["type"] == "row" for panel in row["panels"]]
    weights = {panel["title"]: weight(panel) for panel in (*unfolded, *folded)}
    first = [panel for panel in unfolded if panel["gridPos"]["y"] + panel["gridPos"]["h"] <= FIRST_SCREEN_ROWS]
    switches = [one for one in board["annotations"]["list"] if one.get("enable")]
    print({title: one for title, one in weights.items() if one > 5000})
    assert len(first) == 12 and len(first) + len(switches) <= 20
    light = {panel["title"] for panel in unfolded if weights[panel["title"]] < 2000}
    tiles = {panel["title"] for panel in unfolded if panel["type"] in ("stat", "table")}
    assert light <= tiles, "each graph has its lines"
    assert sum(weights[panel["title"]] for panel in unfolded) <= 600_000, weights


def test_a_query_that_influxdb_refuses_is_an_error(filled: Server) -> None:
    """InfluxQL errors come with HTTP 200; a trial that took them for "no rows" would excuse a broken query."""
    with pytest.raises(BenchError, match="error parsing query"):
        filled.rows("SELECT FROM")
    with pytest.raises(BenchError, match="retention policy not found"):
        filled.rows('SELECT * FROM "no_such_policy"."cpu"')


def test_points_of_the_year_2000_are_refused_where_points_expire(filled: Server) -> None:
    """This is why the aligned series have a policy of their own."""
    filled.rows('CREATE RETENTION POLICY "month" ON "bench" DURATION 30d REPLICATION 1')
    request = urllib.request.Request(f"{filled.url}/write?db=bench&rp=month", f"aligned_run x=1 {EPOCH_NS}".encode())
    with pytest.raises(urllib.error.HTTPError, match="400") as refused:
        urllib.request.urlopen(request, timeout=60)
    assert "points beyond retention policy" in refused.value.read().decode()


@pytest.mark.influx2
def test_every_query_finds_what_is_declared_on_influxdb_2(influx2: Influx2Server, tmp_path: Path) -> None:
    """Through /query, where InfluxQL's database and policies are mapped to buckets; with the right to read alone."""
    set_up_as_the_role(influx2, tmp_path, "bench")
    buckets = ("bench", "bench/history")
    writer = influx2.token(*(("write", bucket) for bucket in buckets))
    fill(Influx(influx2.url, organisation=ORGANISATION, token=writer), time.time_ns())
    by_the_minute_2(influx2, "bench", days=1)
    server = Server(influx2.url, token=influx2.token(*(("read", bucket) for bucket in (*buckets, "bench_1m"))))
    for wanted in (SEVERAL, ONE, {"host": HOST}):
        assert [one for one in all_tried(server, RUN, wanted) if not one.rows] == []


# --- months, when raw points are gone ---

DAY_MS = 86_400_000
MONTHS = "months"
# Two runs within one minute, 60 days ago, and another 40 days ago; the drive grew hot and gave two errors in the second.
DRIVE_OF_MONTHS = "host=months,run={run},device=nvme0n1,serial=S0"
MONTHS_SCENE = (
    (60, 10, "r1", 40, 1, 90),
    (60, 40, "r2", 70, 3, 88),
    (40, 0, "r3", 50, 3, 87),
)


def months_lines(now_ms: int) -> str:
    lines = []
    for days, second, run, degc, errors, spare in MONTHS_SCENE:
        tags = DRIVE_OF_MONTHS.format(run=run)
        at_ns = ((now_ms - days * DAY_MS) // 60_000 * 60_000 + second * 1000) * 10**6
        lines += [
            f"smart,{tags},model=m media_errors={errors}i,available_spare_percent={spare}i,passed={str(errors < 3).lower()} {at_ns}",
            f"smart_temperature,{tags},model=m,sensor=composite temperature_degc={degc}.0 {at_ns}",
            f"temperature,{tags},label=Composite temperature_degc={degc}.0 {at_ns}",
            f"block_device,{tags} read_ios={errors}i {at_ns}",
        ]
    return "\n".join(lines) + "\n"


def months_of_1(server: LocalInflux, now_ms: int) -> Server:
    """Points as they came, values of a minute, the history, and then only what is kept."""
    url = server.running_url()
    assert url is not None
    create_database(url, MONTHS)
    on, influx = Server(url, MONTHS), Influx(url, MONTHS)
    influx.write(MONTHS, months_lines(now_ms))
    influx.write(f"{MONTHS}/history", f"bench_run,host=months,run=r3 started_ns=1i {now_ms * 10**6}\n")
    by_the_minute(on, now_ms - 61 * DAY_MS)
    on.rows(f'ALTER RETENTION POLICY "raw" ON "{MONTHS}" DURATION 30d REPLICATION 1')
    assert Room(url, Path("/none"), Path("/none"), MONTHS).delete_old(timedelta(days=30), datetime.now(UTC)) == 2
    return on


def months_of_2(influx2: Influx2Server, folder: Path, now_ms: int) -> Server:
    set_up_as_the_role(influx2, folder, MONTHS)
    buckets = (MONTHS, "bench_1m", f"{MONTHS}/history")
    influx = Influx(influx2.url, MONTHS, ORGANISATION, influx2.token(*(("write", one) for one in buckets)))
    influx.write(MONTHS, months_lines(now_ms))
    influx.write(f"{MONTHS}/history", f"bench_run,host=months,run=r3 started_ns=1i {now_ms * 10**6}\n")
    by_the_minute_2(influx2, MONTHS, days=61)
    gone = {"start": "1970-01-01T00:00:00Z", "stop": f"{datetime.now(UTC) - timedelta(days=30):%Y-%m-%dT%H:%M:%SZ}"}
    influx2.ask("POST", f"delete?org={ORGANISATION}&bucket={MONTHS}", gone)
    return Server(influx2.url, MONTHS, influx2.token(*(("read", one) for one in buckets)))


# Panel, and its values in the order of time.
OF_MONTHS: tuple[tuple[str, list[Any]], ...] = (
    ("Media errors", [3, 3]),
    ("Spare left", [88, 87]),
    ("Each drive's own sensors", [70, 50]),
    ("As the kernel reads them", [55, 50]),
    ("Newest values of each drive", [False, None, None, 87, 3]),
)


@pytest.mark.parametrize("version", ["1.8", pytest.param("2", marks=pytest.mark.influx2)])
def test_drive_history_shows_months_and_drive_health_no_longer_does(
    request: pytest.FixtureRequest, tmp_path: Path, version: str
) -> None:
    """By values; a query of another policy, of one run, or of another of the minute's values gives others."""
    now_ms = time.time_ns() // 10**6
    if version == "1.8":
        on = months_of_1(request.getfixturevalue("server"), now_ms)
    else:
        on = months_of_2(request.getfixturevalue("influx2"), tmp_path, now_ms)
    assert choices_of(on, DRIVE_HISTORY, {}) == {"host": "months", "device": Every.VALUE}
    assert values_of(on, DRIVE_HISTORY.variables[1], {"host": "months"}) == ["nvme0n1"]
    shown = Range(now_ms - 180 * DAY_MS, now_ms)

    def known(board: Dashboard, title: str, change: Callable[[Query], Query] = lambda query: query) -> list[Any]:
        panel = next(panel for panel in board.panels() if panel.title == title)
        choices: dict[str, Choice] = {"host": "months", "run": Every.VALUE, "device": ("nvme0n1",)}
        rows = on.rows(interpolated(change(panel.targets[0].query).render(), choices, shown))
        return (
            [row[1] for row in rows if row[1] is not None]
            if panel.kind != "table"
            else [cell for row in rows for cell in row[1:6]]
        )

    for title, values in OF_MONTHS:
        assert known(DRIVE_HISTORY, title) == values, title
        assert known(DRIVE_HEALTH, title) == [], title
        assert known(DRIVE_HISTORY, title, lambda query: replace(query, policy="")) == [], f"mutant of {title}"
    hottest = "Each drive's own sensors"
    assert known(DRIVE_HISTORY, hottest, lambda query: replace(query, select=(highest("mean_temperature_degc"),))) == [
        55,
        50,
    ]
    with_run = (*HERE, chosen("device"))
    of_one = [known(DRIVE_HISTORY, hottest, lambda query: replace(query, where=with_run))]
    assert of_one == [[70, 50]], "All runs are those without the tag, too"


# --- compare two runs ---

# (run, second after the begin, fields) of two loads at one time, as aligned_lines writes them: the second load's a nanosecond later.
TWO_RUNS = (
    ("r1", 0, 'load="record 1",stored_bytes_per_s=100.0,busy_fraction=0.5'),
    (
        "r1",
        0,
        'load="record 1",nvme0n1_written_bytes_per_s=60.0,nvme0n1_write_latency_s=0.1,nvme0n1_temperature_degc=40.0',
    ),
    ("r1", 0, 'load="record 1",md/raid5.a_written_bytes_per_s=40.0'),
    ("r1", 1, 'load="record 2",stored_bytes_per_s=900.0,busy_fraction=0.5'),
    ("r1", 1, 'load="record 2",nvme0n1_written_bytes_per_s=800.0,nvme0n1_temperature_degc=80.0'),
    ("r2", 0, 'load="record 1",stored_bytes_per_s=200.0,busy_fraction=0.5'),
    ("r2", 0, 'load="record 1",sdb_written_bytes_per_s=7.0'),
)


def of_side(
    on: Server, title: str, load: str, change: Callable[[Query], Query] = lambda query: query
) -> list[dict[str, Any]]:
    """Returns what each side of a panel of *Compare two runs* shows: values by the line's name, as Grafana's transformation renames it."""
    panel = next(panel for panel in COMPARE.panels() if panel.title == title)
    choices: dict[str, Choice] = {"run_a": "r1", "run_b": "r2", "load": load}
    shown = Range(EPOCH_NS // 10**6 - 10_000, EPOCH_NS // 10**6 + 120_000)
    sides = []
    for one in panel.targets:
        found: dict[str, Any] = {}
        for columns, rows in on.tables(interpolated(change(one.query).render(), choices, shown)):
            for place, column in enumerate(columns[1:], start=1):
                name = one.alias.replace("$col", column)
                for transformation in panel.json(1, {}).get("transformations", ()):
                    options = transformation["options"]
                    name = re.sub(options["regex"], options["renamePattern"].replace("$", "\\"), name)
                known = [row[place] for row in rows if row[place] is not None]
                found.update({name: known} if known else {})
        sides.append(found)
    return sides


@pytest.mark.parametrize("version", ["1.8", pytest.param("2", marks=pytest.mark.influx2)])
def test_two_runs_are_compared_load_by_load_and_drive_by_drive(
    request: pytest.FixtureRequest, tmp_path: Path, version: str
) -> None:
    """By values. Runs, loads and drives lie in one series for each run; each panel shows its own, and a run of before has its table."""
    lines = [f"aligned_run,host=h,run={run} {fields} {EPOCH_NS + nth}" for run, nth, fields in TWO_RUNS]
    lines += [
        f'bench_verdict,host=h,scenario=s,requirement={requirement} of_run="{run}",outcome="{outcome}",measured={measured} {at}'
        for run, requirement, outcome, measured, at in (
            ("r1", "overall", "FAIL", 0, 1), ("r1", "SNB-01", "FAIL", 3, 1), ("r2", "SNB-01", "PASS", 0, 2)
        )
    ]  # fmt: skip
    # As the bench wrote it before, and once more by a replay: the run counts once.
    lines += ['bench_verdict,host=h,scenario=s,run=r1,requirement=overall outcome="FAIL" 1']
    lines += [
        f'bench_run,host=h,scenario=s,run={run} outcome="FAIL",word="FAIL",started_ns=1i {at}'
        for run, at in (("r1", 1), ("r2", 2))
    ]
    if version == "1.8":
        url = request.getfixturevalue("server").running_url()
        create_database(url, "compared")
        on = Server(url, "compared")
        Influx(url, "compared").write("compared/history", "\n".join(lines) + "\n")
    else:
        influx2 = request.getfixturevalue("influx2")
        set_up_as_the_role(influx2, tmp_path, "compared")
        history = "compared/history"
        Influx(influx2.url, "compared", ORGANISATION, influx2.token(("write", history))).write(
            history, "\n".join(lines) + "\n"
        )
        on = Server(influx2.url, "compared", influx2.token(("read", history)))
    run_a, run_b, load = COMPARE.variables
    assert (values_of(on, run_a, {}), values_of(on, run_b, {"run_a": "r2"})) == (["r2", "r1"], ["r1"])
    assert [values_of(on, load, {"run_a": run}) for run in ("r1", "r2", "r")] == [
        ["record 1", "record 2"],
        ["record 1"],
        [],
    ]
    drives = "Write rate of each drive"
    assert of_side(on, "Stored rate", "record 1") == [{"A": [100.0]}, {"B": [200.0]}]
    assert of_side(on, "Stored rate", "record 2") == [{"A": [900.0]}, {}]
    assert of_side(on, drives, "record 1") == [{"A nvme0n1": [60.0], "A md/raid5.a": [40.0]}, {"B sdb": [7.0]}]
    assert of_side(on, drives, "record 2") == [{"A nvme0n1": [800.0]}, {}]
    assert of_side(on, "Drive temperature", "record 2") == [{"A nvme0n1": [80.0]}, {}]
    assert of_side(on, "Write latency at the device", "record 1") == [{"A nvme0n1": [0.1]}, {}]
    mixed = [
        of_side(on, drives, "record 1", change)
        for change in (
            lambda query: replace(query, where=query.where[1:]),
            lambda query: replace(query, where=query.where[:1]),
        )
    ]
    right = of_side(on, drives, "record 1")
    assert [one == right for one in mixed] == [False, False], "mutants: without the run, without the load"
    choices: dict[str, Choice] = {
        "run_a": "r1",
        "run_b": "r2",
        **dict.fromkeys(("host", "scenario", "model", "requirement"), Every.VALUE),
    }
    for side, said in (("A", ["SNB-01", "FAIL", 3]), ("B", ["SNB-01", "PASS", 0])):
        panel = next(panel for panel in COMPARE.panels() if panel.title == f"Requirements of run {side}")
        ((columns, rows),) = on.tables(interpolated(panel.targets[0].query.render(), choices, Range(0, 1000)))
        assert [[row[columns.index(name)] for name in ("requirement", "outcome", "measured")] for row in rows] == [said]
    counted = next(panel for panel in FLEET.panels() if panel.title == "Runs in this range")
    assert [row[1] for row in on.rows(interpolated(counted.targets[0].query.render(), choices, Range(0, 1000)))] == [2]


# --- a real agent beside a real load ---


@dataclass(frozen=True)
class Observed:
    bundle: Bundle
    server: Server


RECORD_S = 4.0


@pytest.fixture(scope="module")
def observed(server: LocalInflux, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """A bundle of the least kind: the agent at 5 Hz, daqwriter's record and its read-back, events, verdict."""
    url = server.running_url()
    assert url is not None
    folder = LAYOUT.build / "tests" / "dashboards"
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    bundle = Bundle.create(tmp_path_factory.mktemp("runs"), "here", "", "short")
    bundle.begin(
        some_run(
            started_utc=now_utc(),
            candidate=candidate("here"),
            scenario=scenario("short", parameters={"workloads": {"snb_record": {}}}),
            requirement=RequirementOfRun("short"),
            target=target(),
        )
    )
    bundle.workload_file.touch()
    agent = Agent(LAYOUT.agent, bundle, Influx(url), {"host": "here", "run": bundle.id}, period_s=0.2)
    agent.start()
    try:
        bundle.event("phase", "identity", "comparing the candidate with the inventory", step=1, steps=1)
        began = bundle.event("hazard", "rig", "inlet at 45 degC")
        bundle.event("phase", "snb_record", "record 1 of 1", step=1, steps=1)
        record(bundle, folder / "record.daq")
        bundle.event("hazard", "rig", "every hazard is released", released=True)
        bundle.span("hazard", "rig", "inlet at 45 degC", began)
        time.sleep(2)
    finally:
        assert agent.stop() == 0
        shutil.rmtree(folder)
    bundle.event("phase", "restore", "undoing every change to the machine", step=1, steps=1)
    bundle.save_run(state="finished", finished_utc=now_utc())
    bundle.write("verdict.json", VERDICT)
    bundle.event("verdict", "judge", "PASS", reasons=[])
    bundle.end_phase()
    assert publish(bundle.path, Influx(url)) is None
    by_the_minute(Server(url), time.time_ns() // 10**6 - 600_000)
    yield Observed(bundle, Server(url))


VERDICT: dict[str, Any] = {
    "outcome": "PASS",
    "requirements": [
        {
            "id": "SNB-07",
            "outcome": "PASS",
            "decision": "met",
            "measured": 3.5,
            "scaled_bound": 1.0,
            "margin_percent": 250.0,
        }
    ],
}


def record(bundle: Bundle, target: Path) -> None:
    """A rehearsal's record at some 0.2 GB/s, read back; both write their line protocol where the agent reads it."""
    common = [f"--line-protocol={bundle.workload_file}", f"--tag=run={bundle.id}"]
    for words in (
        ["minidaq", f"--duration={RECORD_S:g}", "--scale=0.02", *common, f"--json={bundle.path}/minidaq.json"],
        ["verify", *common, f"--json={bundle.path}/verify.json"],
    ):
        argv = [str(LAYOUT.daqwriter), words[0], f"--target={target}", *words[1:]]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads((bundle.path / "minidaq.json").read_text(encoding="utf-8"))
    bundle.write("results/snb_record.json", {"schema_version": 1, "repetitions": [{"minidaq": said}]})


def test_every_query_finds_rows_of_a_real_run(observed: Observed) -> None:
    """Without rows stays only what needs hardware, or a load, that this run's own telemetry shows it had not got."""
    bundle = observed.bundle
    wanted: dict[str, Choice] = {"host": "here", "run": bundle.id, "run_a": bundle.id}
    found = all_tried(observed.server, bundle.id, wanted)
    assert [one.text for one in unexcused(found, bundle.path)] == []


def test_an_empty_answer_is_excused_by_missing_hardware_alone(observed: Observed) -> None:
    """The exemption itself: a panel that needs what the run had is not excused."""
    silent = Tried("x", "SELECT", 0, ("smart.no_such_field",))
    speaking = Tried("y", "SELECT", 0, ("smart.no_such_field", "cpu_frequency.frequency_hz"))
    without = Tried("z", "SELECT", 0)
    assert unexcused([silent, without], observed.bundle.path) == [without]
    had_frequency = any(True for _ in points_of(observed.bundle.path / "telemetry/points.lp", {"cpu_frequency"}))
    assert unexcused([speaking], observed.bundle.path) == ([speaking] if had_frequency else [])


def test_moments_and_spans_of_every_kind_arrive(observed: Observed) -> None:
    """While it happens by the agent, at the end all of them once more into the history, with what came later; none twice."""
    bundle, server = observed.bundle, observed.server
    columns = '"kind", "text", "end_ms", "extent"'
    where = f"FROM {HISTORY}.bench_event WHERE host = 'here'"  # of this run alone, as its times say
    rows = server.rows(f"SELECT {columns} {where}")
    by_run = server.rows(f"SELECT text FROM {HISTORY}.bench_event WHERE run = '{bundle.id}'")
    assert [text for _, text in by_run] == [row[2] for row in rows if row[1] == "verdict"]
    spans = {(kind, text): (begin, end) for begin, kind, text, end, extent in rows if extent == "span"}
    moments = [(kind, text) for _, kind, text, _, extent in rows if extent is None]
    events = [(event.kind, event.text) for event in bundle.events()]
    assert sorted(moments) == sorted(events)
    live = server.rows(f"SELECT text FROM bench_event WHERE run = '{bundle.id}' AND host = 'here'")
    late = [text for kind, text in events if kind == "verdict" or text.startswith("undoing every change")]
    assert len(live) == len(rows) - len(late) - len(late[:1]) - 1  # their spans too: of restore, and of what it ended
    assert {kind for kind, _ in spans} >= {"phase", "hazard"}
    assert [text for kind, text in spans if kind == "phase"] == [text for kind, text in events if kind == "phase"]
    begin, end = spans["phase", "record 1 of 1"]
    assert end - begin >= RECORD_S * 1000
    assert all(end >= begin for begin, end in spans.values())
    assert publish(bundle.path, Influx(server.url)) is None
    assert len(server.rows(f"SELECT text {where}")) == len(rows)


def test_the_record_begins_at_the_epoch(observed: Observed) -> None:
    """Aligned on the trigger: nothing is stored before it, and each second holds what daqwriter offered in its own second.

    The expected values come from daqwriter's own clock since the trigger, so that a busy machine changes both alike."""
    query = (
        f"SELECT stored_bytes_per_s, offered_bytes_per_s FROM {HISTORY}.aligned_run WHERE run = '{observed.bundle.id}'"
    )
    rows = [row for row in observed.server.rows(query) if row[2]]
    offsets = [row[0] - EPOCH_NS // 10**6 for row in rows]
    assert offsets[: int(RECORD_S)] == [1000 * second for second in range(int(RECORD_S))]
    points = points_of(observed.bundle.workload_file, {"daqwriter"})
    said = [point.fields for point in points if point.tags["phase"] in WITH_DRAIN]
    offered = np.interp(
        np.arange(RECORD_S + 1),
        [0.0, *(float(fields["elapsed_s"]) for fields in said)],
        [0.0, *(float(fields["offered_bytes"]) for fields in said)],
    )
    # A record that began an interval late would hold nothing in its first second.
    assert [row[2] for row in rows[: int(RECORD_S)]] == pytest.approx(list(np.diff(offered)), rel=0.05)


def test_the_command_tries_the_newest_run(observed: Observed) -> None:
    """A user runs this command against a server of their own."""
    argv = [sys.executable, "-m", "daq_bench.bench_dashboards", "try", "--influx-url", observed.server.url]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{LAYOUT.repository}/reports:{LAYOUT.inventory}:{LAYOUT.repository}/agents",
    }
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)
    assert "queries for run " in done.stdout, done.stderr
    gone = subprocess.run([*argv[:-1], "http://127.0.0.1:9"], capture_output=True, text=True, env=environment, check=False)  # fmt: skip
    assert (gone.returncode, gone.stdout) == (2, "")
    assert gone.stderr.startswith("bench_dashboards: http://127.0.0.1:9: ")


def test_ranges_that_nobody_can_know_are_refused(observed: Observed) -> None:
    with pytest.raises(BenchError, match="run nemo: there is no telemetry of it"):
        range_of(observed.server, DASHBOARDS[0], "nemo")
    assert range_of(observed.server, COMPARE, "nemo") == Range(EPOCH_NS // 10**6 - 10_000, EPOCH_NS // 10**6 + 120_000)
