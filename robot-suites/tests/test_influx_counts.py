"""Points of a run counted in a real InfluxDB: exactly, whatever fields the points of a series have, on 1.8 and on 2."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from daq_bench.audit.good.small_run import some_run
from influx2_server import Influx2Server
from ruamel.yaml import YAML

from daq_bench.bench_model.bundle.spool_content import read_content
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.evidence import telemetry_account
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.rig.base.bundle import Bundle, now_utc
from daq_bench.rig.base.influx import Influx, InfluxError
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.telemetry.agent import Agent
from daq_bench.rig.telemetry.influx_counts import PAGE, count_points, counts_document, rejected, retention_s
from daq_bench.rig.telemetry.influx_server import LocalInflux

DECLARED: dict[str, dict[str, Any]] = YAML(typ="safe").load(Layout().inventory / "metrics.yml")["measurements"]
VALUES = {"integer": "7i", "float": "1.5", "boolean": "true", "string": '"a b, c"'}
NAMES = ("plain", r"with\ blank", r"comma\,equals\=", "quo'te\"d")  # as line protocol writes them


def points_of_all(run: str, seed: int, each: int = 25) -> list[str]:
    """Points of every declared measurement: some of its tags, any of its fields, some series and times twice."""
    chosen, now = random.Random(seed), time.time_ns()
    lines = []
    for measurement, declared in DECLARED.items():
        for _ in range(each):
            tags = [tag for tag in declared["tags"] if tag not in ("run", "host") and chosen.random() < 0.6]
            fields = list(declared["fields"])
            picked = chosen.sample(fields, chosen.randint(1, len(fields)))
            head = [measurement, "host=h", f"run={run}", *(f"{tag}={chosen.choice(NAMES)}" for tag in tags)]
            body = ",".join(f"{name}={VALUES[declared['fields'][name]['type']]}" for name in picked)
            # A few in the future: the candidate's clock may be ahead of the server's.
            lines.append(f"{','.join(head)} {body} {now + chosen.randint(-20, 20) * 1_000_000_000}\n")
    return lines


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_declared_measurement_is_counted_exactly(server: Influx, tmp_path: Path, seed: int) -> None:
    """With the bundle's numbers as a guess, with a wrong guess and with none; another run's points are not counted."""
    run = f"counted {seed}'s \\ run" if seed == 3 else f"counted-{seed}"
    tag = run.replace(" ", r"\ ")
    lines = points_of_all(tag, seed)
    spool = tmp_path / "points.lp"
    spool.write_text("".join(lines), encoding="utf-8")
    content = read_content(spool)
    server.write("bench", "".join(lines + points_of_all(f"other-{seed}", 100 + seed)))
    expected = content.points()
    assert sum(content.lines().values()) > sum(expected.values()), "no point twice: the test would prove less"
    series = content.points_by_series()
    wrong = {key: number + 1 for key, number in series.items()}
    for guess in (series, *([{}, wrong] if seed == 1 else [])):
        found = count_points(server, run, guess)
        assert Counter({name: found.get(name, 0) for name in DECLARED}) == expected
        assert set(found) == set(expected)


def test_a_real_agents_run_is_accounted_for(server: Influx, tmp_path: Path) -> None:
    """Every measurement that this machine has, at 10 Hz, with events: the account finds nothing to name."""
    bundle = Bundle.create(tmp_path, "here", "", "snb")
    bundle.event("phase", "snb_record", 'a "phase", with blanks')
    agent = Agent(Layout().agent, bundle, server, {"host": "a host", "run": bundle.id}, period_s=0.1)
    agent.start()
    time.sleep(3)
    stopped_utc = now_utc()
    assert agent.stop() == 0
    bundle.write("telemetry/influx-counts.json", counts_document(server, bundle, stopped_utc))
    made = telemetry_account.of_bundle(bundle.path, some_run())
    assert made is not None
    account = as_document(made)
    check_document(account, "telemetry-account", "telemetry_account.json")
    assert account["invalid"] == account["limits"] == []
    assert {"bench_event", "cpu", "telemetry_agent"} <= set(account["measurements"])
    assert account["measurements"]["bench_event"]["expected"] == 1
    for name, row in account["measurements"].items():
        assert row["present"] == row["stored"] > 0, name
        assert row["differences"] == [], name


def test_a_lost_point_and_one_too_many_are_seen(server: Influx, tmp_path: Path) -> None:
    spool, now = tmp_path / "points.lp", time.time_ns()
    lines = [f"cpu,run=lossy busy_fraction=0.5 {now + number}\n" for number in range(100)]
    spool.write_text("".join(lines), encoding="utf-8")
    server.write("bench", "".join(lines[:-1]))
    guess = read_content(spool).points_by_series()
    assert count_points(server, "lossy", guess)["cpu"] == 99
    server.write(
        "bench", f"{lines[-1]}cpu,run=lossy,core=0 busy_fraction=0.5 {now}\nmemory,run=lossy free_bytes=1i {now}\n"
    )
    assert count_points(server, "lossy", guess) == {"cpu": 101, "memory": 1}


def test_points_of_one_series_are_counted_over_many_pages(server: Influx) -> None:
    """No field is in every point, so that the server's counts of fields are of no use."""
    now, number = time.time_ns(), 2 * PAGE + 1
    fields = ("busy_fraction", "user_fraction", "idle_fraction")
    lines = [f"cpu,run=paged {fields[index % 3]}=0.5 {now + index}" for index in range(number)]
    for start in range(0, number, 5000):
        server.write("bench", "\n".join(lines[start : start + 5000]))
    assert count_points(server, "paged", {})["cpu"] == number
    assert count_points(server, "paged", {("cpu", (("run", "paged"),)): PAGE})["cpu"] == number


def test_what_the_history_holds_is_no_telemetry(server: Influx) -> None:
    server.write("bench/history", f'bench_event,run=apart text="x" {time.time_ns()}')
    assert count_points(server, "apart", {}) == {}


def test_the_databases_retention_is_known(server: Influx, influx: LocalInflux) -> None:
    assert retention_s(server) is None
    short = replace(Influx(influx.start()), database="kept_for_a_week")
    short.query('CREATE DATABASE "kept_for_a_week" WITH DURATION 7d')
    assert retention_s(short) == 7 * 86400


@pytest.mark.parametrize("duration", [None, 7, "a week", "1.5h"])
def test_a_retention_that_is_no_duration_is_told(duration: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy or another server says such things: 0 would be for ever."""
    told = [{"columns": ["name", "duration", "default"], "values": [["autogen", duration, True]]}]
    monkeypatch.setattr(Influx, "query", lambda *asked: told)
    with pytest.raises(InfluxError, match=r"the retention of database .* is not a duration"):
        retention_s(Influx("http://127.0.0.1:1"))


def test_a_server_that_is_gone_is_a_reason_and_no_failure(tmp_path: Path) -> None:
    bundle = Bundle.create(tmp_path, "here", "", "snb")
    (bundle.path / "telemetry" / "points.lp").write_text("cpu,run=x a=1 1\n", encoding="utf-8")
    document = counts_document(Influx("http://127.0.0.1:9"), bundle, "2026-01-31T12:00:00Z")
    assert document.points is None
    assert "http://127.0.0.1:9 does not answer" in str(document.reason)


@pytest.mark.influx2
def test_a_token_that_may_only_write_is_told_from_an_outage(influx2: Influx2Server, tmp_path: Path) -> None:
    """The account then says which variable to set."""
    write_only = Influx(influx2.url, organisation="bench", token=influx2.token(("write", "bench")))
    write_only.write("bench", f"cpu,run=w busy_fraction=1 {time.time_ns()}")
    with pytest.raises(InfluxError):
        write_only.query("SELECT * FROM cpu")
    document = counts_document(write_only, Bundle.create(tmp_path, "here", "", "snb"), "2026-01-31T12:00:00Z")
    assert document.points is None
    assert "set DAQ_BENCH_INFLUX_READ_TOKEN to one that may" in str(document.reason)


def test_refused_lines_are_summed_up_by_measurement_and_reason(tmp_path: Path) -> None:
    file = tmp_path / "rejected.lp"
    assert rejected(file) == {}
    text = "# 2026-01-31T12:00:00Z HTTP 400: unable to parse 'cpu {n}': bad\ncpu,host=h x={n} 1\n"
    file.write_text(
        text.replace("{n}", "1") + text.replace("{n}", "2") + "# 2026-01-31T12:00:00Z HTTP 413\nm\\ 1 x=1 1\n",
        encoding="utf-8",
    )
    assert rejected(file) == {"cpu": {"HTTP 400: unable to parse '...': bad": 2}, "m 1": {"HTTP 413": 1}}
