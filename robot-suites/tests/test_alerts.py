"""Every alert rule on a real InfluxDB: a scene of candidates with known answers, and mutants of each rule that it must notice."""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from alert_trials import RefusedError, fired
from influx2_server import ORGANISATION, Influx2Server

from daq_bench.bench_dashboards import alerts, looks
from daq_bench.bench_dashboards.declared import Declared
from daq_bench.bench_dashboards.trial import Server
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.run.watch import CLOSING_PHASE
from daq_bench.rig.telemetry.history import BEGUN, JUDGING, kept_event
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.telemetry_agent.base.point import Encoder, FieldValue, Point
from daq_bench.virtual_candidate.ports import free_ports

MINUTE_NS = 60 * 10**9
HOUR = 60  # minutes
DAY = 24 * HOUR
QUOTED = "srv 'a' \"b\", rack=3"
RULES: dict[str, dict[str, Any]] = {
    rule["uid"].removeprefix("daq-bench-"): rule
    for rule in json.loads(alerts.text(Declared.load()))["groups"][0]["rules"]
}


class Scene:
    """Line protocol of points whose age is in minutes, for the database and for its history."""

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns
        self.live: list[str] = []
        self.history: list[str] = []

    def put(
        self, host: str, run: str, measurement: str, age: float, tags: dict[str, str], history: bool = False, **fields: FieldValue
    ) -> None:  # fmt: skip
        point = Point(measurement, tuple(sorted(tags.items())), fields, self.now_ns - int(age * MINUTE_NS))
        line = Encoder({"host": host, "run": run}).encode(point)
        (self.history if history else self.live).append(kept_event(line) if history else line)

    def phase(self, host: str, run: str, age: float, source: str = "snb_record", history: bool = False) -> None:
        self.put(host, run, "bench_event", age, {"kind": "phase", "source": source}, history, text="what began")

    def telemetry(self, host: str, run: str, *ages: float, **tags: str) -> None:
        for age in ages:
            self.put(host, run, "telemetry_agent", age, {"collector": "cpu", **tags}, staleness_s=0.5)

    def verdict(self, host: str, age: float, outcome: str, requirement: str = "overall", **fields: FieldValue) -> None:
        tags = {"scenario": "dune-snb", "requirement": requirement, "model": "m"}
        point = Point(
            "bench_verdict",
            tuple(sorted(tags.items())),
            {"outcome": outcome, **fields},
            self.now_ns - int(age * MINUTE_NS),
        )
        self.history.append(Encoder({"host": host}).encode(point))
        if requirement == "overall":
            self.run(host, age, outcome, outcome=outcome)

    def run(self, host: str, age: float, word: str, **fields: FieldValue) -> None:
        at_ns = self.now_ns - int(age * MINUTE_NS)
        self.history.append(
            Encoder({"host": host}).encode(Point("bench_run", (("run", f"{age}"),), {"word": word, **fields}, at_ns))
        )

    def drive(
        self, host: str, measurement: str, device: str, age: float, sensor: str = "", **fields: FieldValue
    ) -> None:
        tags = {"device": device, "serial": f"S-{device}", "model": "m", **({"sensor": sensor} if sensor else {})}
        self.put(host, "r", measurement, age, tags, **fields)

    def open_run(self, host: str, run: str, *ages: float) -> None:
        """A run that began with the first of its telemetry's ages, and that nothing has ended."""
        self.phase(host, run, ages[0])
        self.telemetry(host, run, *ages)

    def ended_run(self, host: str, run: str, began: float, ended: float) -> None:
        self.open_run(host, run, began, ended)
        self.phase(host, run, ended, CLOSING_PHASE)
        for source, age in (("snb_record", began), (CLOSING_PHASE, ended)):
            self.phase(host, run, age, source, history=True)
        self.judged(host, run, ended)

    def judged(self, host: str, run: str, age: float) -> None:
        """The last event of a run, which alone is kept with the run's id (rig.telemetry.history)."""
        self.put(host, run, "bench_event", age, {"kind": "verdict", "source": "judge"}, True, text="PASS")


def scene(now_ns: int) -> Scene:
    made = Scene(now_ns)
    runs(made)
    records_and_verdicts(made)
    drives(made)
    return made


def runs(made: Scene) -> None:
    made.open_run("good", "g1", HOUR, 0)
    made.ended_run("good", "g0", 10 * HOUR, 9 * HOUR)
    made.open_run("silent", "s1", HOUR, 10)
    made.put("silent", "s1", "bench_event", 30, {"kind": "error", "source": CLOSING_PHASE}, text="no phase")
    made.ended_run("idle", "i1", 4 * HOUR, 3 * HOUR)
    # Its agent has ended as it should, and it is being judged.
    made.open_run("closing", "c1", HOUR, 10)
    made.phase("closing", "c1", 10, CLOSING_PHASE)
    # Its agent died; the run ended all the same.
    made.open_run("judged", "j1", 2 * HOUR, 1.5 * HOUR)
    made.judged("judged", "j1", HOUR)
    made.open_run("killed", "k1", 6 * HOUR, 5 * HOUR)
    made.open_run("killed long ago", "k2", 41 * HOUR, 40 * HOUR)
    made.open_run("long without an event", "e1", 40 * HOUR, 35 * HOUR)
    made.phase("telemetry too old", "t1", 35 * HOUR)
    made.telemetry("telemetry too old", "t1", 40 * HOUR)
    # Ended, then resumed under its own name.
    made.ended_run("resumed", "m1", 42 * HOUR, 40 * HOUR)
    made.open_run("resumed", "m1", HOUR, 10)
    made.open_run("overlapping", "o1", HOUR, 10)
    made.open_run("overlapping", "o2", 30, 0)
    made.open_run(QUOTED, 'it\'s "1"', HOUR, 10)
    made.open_run("clock ahead", "a1", 0, -HOUR)
    made.open_run("clock behind", "b1", HOUR, HOUR)
    # The agent on the control node goes on reading the BMC of a candidate that is dead.
    made.open_run("BMC alone", "d1", HOUR, 10)
    made.telemetry("BMC alone", "d1", 0, instance="bmc")


def records_and_verdicts(made: Scene) -> None:
    def record(host: str, run: str, age: float, lost: int) -> None:
        made.put(
            host, run, "daqwriter", age, {"command": "minidaq", "phase": "record"}, lost_superchunks=lost, busy_count=9
        )

    for host, run, age, lost in (
        ("good", "g1", 5, 0),
        ("lossy", "l0", 26 * HOUR, 169_682),
        ("lossy", "l1", 5, 3),
        ("lossy", "l1", 0, 3),
        ("overlapping", "o1", 10, 0),
        ("overlapping", "o2", 1, 7),
        ("clock ahead", "a1", -HOUR, 1),
        ("clock behind", "b1", HOUR, 2),
        (QUOTED, 'it\'s "1"', 10, 4),
    ):
        record(host, run, age, lost)
    for host, age, outcome, margin in (
        ("good", 9 * HOUR, "PASS", 12.0),
        ("missed", 30 * HOUR, "PASS", 1.0),
        ("missed", 6 * HOUR, "FAIL", -3.5),
        ("better now", 30 * HOUR, "FAIL", -2.0),
        ("better now", 6 * HOUR, "PASS", 2.0),
        ("inadmissible", 3 * DAY, "PASS", 9.0),
        ("inadmissible", HOUR, "INADMISSIBLE", -90.0),
        ("error", 4 * DAY, "FAIL", -4.0),
        ("error", HOUR, "ERROR", -80.0),
        ("stale", 20 * DAY, "FAIL", -5.0),
        ("retired", 40 * DAY, "PASS", 5.0),
        ("clock was years ahead", 3 * DAY, "PASS", 5.0),
        ("clock was years ahead", -900 * DAY, "PASS", 5.0),
        (QUOTED, 6 * HOUR, "FAIL", -1.0),
    ):
        made.verdict(host, age, outcome)
        made.verdict(host, age, outcome, "SNB-01", margin_percent=margin, measured=1.0)
    made.verdict("out of service", 20 * DAY, "PASS")
    made.run("out of service", 10 * DAY, "RETIRED")
    made.run("in service again", 10 * DAY, "RETIRED")
    made.run("in service again", 3 * DAY, "BEGUN")
    made.run("broken off", 2 * DAY, "BEGUN")
    made.verdict("good", 9 * HOUR, "PASS", "SNB-02", measured=1.0)  # without a margin
    made.verdict("inadmissible", HOUR, "PASS", "SNB-02", margin_percent=5.0)  # one requirement is not the run


def drives(made: Scene) -> None:
    def heat(host: str, device: str, age: float, degc: float, warning_degc: float | None) -> None:
        limits = {} if warning_degc is None else {"warning_degc": warning_degc, "critical_degc": warning_degc + 10}
        made.drive(host, "smart_temperature", device, age, "composite", temperature_degc=degc, **limits)

    for device, age, degc, warning in (
        ("nvme0n1", 1, 74.0, 77.0),
        ("nvme1n1", 1, 72.0, 77.0),  # 5 K: not below
        ("nvme2n1", 10, 80.0, 77.0),
        ("nvme2n1", 1, 60.0, 77.0),  # cooler now
        ("nvme3n1", HOUR, 90.0, 77.0),  # nobody has measured it since
        ("sda", 1, 99.0, None),  # has no limit
    ):
        heat("hot", device, age, degc, warning)
    heat("good", "nvme0n1", 1, 50.0, 77.0)
    heat(QUOTED, "md/raid5.a", 1, 79.5, 77.0)

    def health(host: str, device: str, age: float, bits: int) -> None:
        made.drive(host, "smart", device, age, critical_warning=bits, endurance_group_warning=1)

    for device, age, bits in (
        ("nvme0n1", 1, 4),
        ("nvme1n1", 30, 4),
        ("nvme1n1", 5, 0),  # cleared
        ("nvme2n1", 20 * HOUR, 1),  # of the last night; nothing has cleared it
        ("nvme3n1", 4 * DAY, 1),
    ):
        health("warned", device, age, bits)
    health("good", "nvme0n1", 1, 0)
    made.drive("good", "smart", "sda", 1, power_on_hours=7)  # not NVMe
    health("clock ahead", "nvme0n1", -HOUR, 2)
    health("clock was years ahead", "nvme0n1", 5, 4)
    health("clock was years ahead", "nvme0n1", -900 * DAY, 0)


def of(names: str, *values: tuple[Any, ...]) -> dict[tuple[tuple[str, str], ...], float]:
    """Label sets, and the value of each."""
    return {tuple(sorted(zip(names.split(), one[:-1], strict=True))): float(one[-1]) for one in values}


def on_drive(host: str, device: str, value: float, *more: str) -> tuple[Any, ...]:
    return (host, device, f"S-{device}", "m", *more, value)


EXPECTED = {
    "silent": of(
        "host run",
        ("silent", "s1", 1),
        ("killed", "k1", 1),
        ("resumed", "m1", 1),
        ("overlapping", "o1", 1),
        (QUOTED, 'it\'s "1"', 1),
        ("clock behind", "b1", 1),  # its newest telemetry is an hour old, as far as anybody can tell
        ("BMC alone", "d1", 1),
    ),
    "loss": of(
        "host run",
        ("lossy", "l1", 3),
        ("overlapping", "o2", 7),
        ("clock ahead", "a1", 1),
        ("clock behind", "b1", 2),
        (QUOTED, 'it\'s "1"', 4),
    ),
    "margin": of(
        "host scenario requirement", ("missed", "dune-snb", "SNB-01", -3.5), (QUOTED, "dune-snb", "SNB-01", -1)
    ),
    "temperature": of(
        "host device serial model sensor",
        on_drive("hot", "nvme0n1", 3, "composite"),
        on_drive(QUOTED, "md/raid5.a", -2.5, "composite"),
    ),
    "critical-warning": of(
        "host device serial model",
        on_drive("warned", "nvme0n1", 4),
        on_drive("warned", "nvme2n1", 1),
        on_drive("clock ahead", "nvme0n1", 2),
        on_drive("clock was years ahead", "nvme0n1", 4),
    ),
    "no-verdict": of(
        "host",
        *(
            (host, 1)
            for host in ("inadmissible", "error", "stale", "clock was years ahead", "in service again", "broken off")
        ),
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """InfluxDB 1.8, as the bench itself starts it."""
    made = LocalInflux(Layout().influxd, tmp_path_factory.mktemp("influxdb-alerts"))
    yield Server(made.start(free_ports(1)[0]))
    made.stop()


@pytest.fixture(scope="module")
def filled(server: Server) -> Server:
    fill(Influx(server.url))
    return server


def fill(influx: Influx) -> None:
    made = scene(time.time_ns())
    influx.write(influx.database, "".join(made.live))
    influx.write(influx.history, "".join(made.history))


def test_there_is_an_expectation_for_every_rule() -> None:
    assert list(EXPECTED) == list(RULES)


@pytest.mark.parametrize("uid", RULES)
def test_a_rule_fires_for_whom_it_should_and_for_nobody_else(filled: Server, uid: str) -> None:
    assert fired(filled, RULES[uid]) == pytest.approx(EXPECTED[uid])


def test_a_bench_that_does_nothing_alerts_nobody(server: Server) -> None:
    """No series at all: Grafana then takes the state for missing data."""
    server.rows('CREATE DATABASE "idle"')
    server.rows('CREATE RETENTION POLICY "history" ON "idle" DURATION INF REPLICATION 1')
    for rule in RULES.values():
        assert fired(Server(server.url, "idle"), rule) == {}
        assert rule["noDataState"] == "OK"


def test_clocks_an_hour_off_hide_no_silent_candidate_for_longer_than_they_are_off(server: Server) -> None:
    """Behind: told at once. Ahead: told once its newest telemetry is old by the server's clock. The others of it are no false alarm."""
    server.rows('CREATE DATABASE "clocks"')
    server.rows('CREATE RETENTION POLICY "history" ON "clocks" DURATION INF REPLICATION 1')
    made = Scene(time.time_ns())
    made.open_run("ahead", "a1", 0, -HOUR)
    made.open_run("ahead, silent for 50 min", "a2", 0, -10)
    made.open_run("ahead, silent for 63 min", "a3", HOUR, 3)
    made.open_run("behind, silent", "b1", 2 * HOUR, 1.2 * HOUR)
    Influx(server.url, "clocks").write("clocks", "".join(made.live))
    found = {uid: fired(Server(server.url, "clocks"), rule) for uid, rule in RULES.items()}
    silent = of("host run", ("ahead, silent for 63 min", "a3", 1), ("behind, silent", "b1", 1))
    assert found == {uid: silent if uid == "silent" else {} for uid in RULES}


SINCE = re.compile(r"(?: AND|(?<=WHERE)) time >= now\(\) - \d+s AND time <= now\(\)(?: \+ 1d)?")


def mutants(rule: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each time filter left out, each condition left out, and another reducer, limit and direction."""
    for index, asked in enumerate(rule["data"]):
        query = asked["model"].get("query", "")
        alone = re.finditer(r" WHERE \"\w+\" != '\w+'(?= GROUP)", query)
        for found in (
            *SINCE.finditer(query),
            *alone,
            *re.finditer(r"\"\w+\" (?:=|!=|=~|>) (?:'\w+'|/\S+/|\d+) AND ", query),
        ):
            other = copy.deepcopy(rule)
            text = f"{query[: found.start()]}{query[found.end() :]}"
            other["data"][index]["model"]["query"] = re.sub(r" WHERE(?= GROUP)", "", text)
            yield f"without {found.group()} at {found.start()}", other
    for key in ("type", "params"):
        other = copy.deepcopy(rule)
        evaluator = other["data"][-1]["model"]["conditions"][0]["evaluator"]
        evaluator[key] = (
            {"gt": "lt", "lt": "gt"}[evaluator["type"]] if key == "type" else [evaluator["params"][0] + 2.5]
        )
        yield f"another {key}", other


def is_noticed(server: Server, uid: str, rule: dict[str, Any]) -> bool:
    try:
        return fired(server, rule) != pytest.approx(EXPECTED[uid])
    except RefusedError:
        return True


MUTANTS = [pytest.param(uid, rule, id=f"{uid}: {name}") for uid, one in RULES.items() for name, rule in mutants(one)]


@pytest.mark.parametrize(("uid", "rule"), MUTANTS)
def test_the_scene_notices_a_mutant(filled: Server, uid: str, rule: dict[str, Any]) -> None:
    assert is_noticed(filled, uid, rule)


@pytest.mark.parametrize(
    ("uid", "right", "wrong"),
    [
        ("silent", '"staleness_s"', '"lateness_s"'),
        ("silent", '"text"', '"end_ms"'),
        ("silent", '"host", "run"', '"host"'),
        ("silent", '"history"."bench_event"', '"bench_event"'),
        ("loss", '"lost_superchunks"', '"busy_count"'),
        ("loss", '"host", "run"', '"host"'),
        ("margin", '"margin_percent"', '"measured"'),
        ("margin", "last(", "min("),
        ("temperature", '"warning_degc")', '"critical_degc")'),
        ("temperature", "last(", "max("),
        ("critical-warning", '"critical_warning"', '"endurance_group_warning"'),
        ("critical-warning", "last(", "max("),
        ("no-verdict", "PASS|FAIL", "PASS|FAIL|ERROR"),
        ("no-verdict", "+ -1.0", "+ 1.0"),
    ],
)
def test_the_scene_notices_a_wrong_name(filled: Server, uid: str, right: str, wrong: str) -> None:
    other = copy.deepcopy(RULES[uid])
    asked = [one["model"] for one in other["data"] if right in one["model"].get("query", "")]
    assert asked
    for model in asked:
        model["query"] = model["query"].replace(right, wrong)
    assert is_noticed(filled, uid, other)


def test_rules_boards_bench_and_page_mean_the_same_words() -> None:
    assert alerts.CLOSING_PHASE == CLOSING_PHASE
    assert (looks.BEGUN.value, looks.JUDGING.value) == (BEGUN, JUDGING)
    page = (Layout().repository / "docs" / "dashboards.md").read_text(encoding="utf-8")
    assert f"""'bench_run,host=srv-07 word="{looks.RETIRED.value}"'""" in page


@pytest.mark.influx2
def test_the_rules_fire_alike_on_influxdb_2(influx2: Influx2Server) -> None:
    buckets = ("alerts", "alerts/history")  # of their own: the server is shared with other tests
    for name in buckets:
        influx2.ask("POST", "buckets", {"orgID": influx2.organisation_id(), "name": name, "retentionRules": []})
    writer = influx2.token(*(("write", bucket) for bucket in buckets))
    fill(Influx(influx2.url, database="alerts", organisation=ORGANISATION, token=writer))
    reader = Server(influx2.url, "alerts", influx2.token(*(("read", bucket) for bucket in buckets)))
    assert {uid: fired(reader, rule) for uid, rule in RULES.items()} == {
        uid: pytest.approx(known) for uid, known in EXPECTED.items()
    }
