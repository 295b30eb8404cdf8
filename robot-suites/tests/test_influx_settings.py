"""Tells which InfluxDB a run uses, and what its user is told when the settings are wrong."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from agent_helpers import scripted_http
from influx2_server import ORGANISATION, Influx2Server

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.candidate_kit.influx_answers import WRITE_TIMEOUT_S
from daq_bench.candidate_kit.influxql import duration_s
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.influx import Influx, InfluxError, check, chosen
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.telemetry.agent import Agent
from daq_bench.rig.telemetry.history import influx_of
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.rig.telemetry.write_relay import DELIVER_S_MAX
from daq_bench.virtual_candidate.ports import free_ports

URL = "http://metrics-01:8086"


def test_nobody_names_a_server_and_the_benchs_own_is_used() -> None:
    assert chosen(None, None, {"DAQ_BENCH_INFLUX_TOKEN": "of another server"}) is None


def test_the_command_line_comes_before_the_environment_before_the_inventory() -> None:
    inventory = {"url": "http://inventory:1", "organisation": "daq", "database": "theirs"}
    environment = {"INFLUX_URL": "http://environment:2", "INFLUX_BUCKET": "ours"}
    found = chosen("http://line:3", inventory, environment)
    assert found == Influx("http://line:3", "ours", "daq")
    found = chosen(None, inventory, environment)
    assert found == Influx("http://environment:2", "ours", "daq")
    assert chosen(None, inventory, {}) == Influx("http://inventory:1", "theirs", "daq")
    assert chosen(None, inventory, {}).history == "theirs/history"  # type: ignore[union-attr]


def test_tokens_come_from_the_environment_and_are_in_no_text() -> None:
    environment = {"DAQ_BENCH_INFLUX_TOKEN": "w-s3cret", "DAQ_BENCH_INFLUX_READ_TOKEN": "r-s3cret", "INFLUX_URL": URL}
    found = chosen(None, None, environment)
    assert found is not None
    assert (found.token, found.read_token) == ("w-s3cret", "r-s3cret")
    assert "s3cret" not in f"{found!r} {found.told()} {found.agent_arguments}"
    assert chosen(None, None, {"INFLUX_TOKEN": "older", "INFLUX_URL": URL}).read_token == "older"  # type: ignore[union-attr]
    assert influx_of(found.told()) == replace(found, token="", read_token="")


@pytest.mark.parametrize(
    ("environment", "inventory", "message"),
    [
        ({"INFLUX_URL": "metrics-01"}, None, "INFLUX_URL='metrics-01' is no address of a server: write http://HOST:8086"),
        ({"INFLUX_URL": "http://a:b"}, None, "INFLUX_URL='http://a:b' is no address of a server"),
        ({"INFLUX_URL": "http://u:p@m:8086"}, None, "must not hold a password: put it into the environment variable"),
        ({"INFLUX_BUCKET": "b"}, None, "INFLUX_BUCKET is set, but not INFLUX_URL: set INFLUX_URL"),
        ({"INFLUX_URL": URL, "INFLUX_BUCKET": "b", "INFLUX_DATABASE": "d"}, None, "contradict each other: set one of them"),
        ({}, {"url": URL, "token": "x"}, "unknown key 'token'. A token never stands in the inventory"),
        ({}, {"url": "ftp://m"}, "inventory: bench_influxdb.url='ftp://m' is no address"),
        ({}, "http://m", "bench_influxdb is 'http://m'; write it as {url:"),
        ({"INFLUX_URL": URL, "DAQ_BENCH_INFLUX_TOKEN": "s3cret\n"}, None, "DAQ_BENCH_INFLUX_TOKEN holds a line end"),
        ({"INFLUX_URL": URL, "DAQ_BENCH_INFLUX_READ_TOKEN": "s3\x00ret"}, None, "DAQ_BENCH_INFLUX_READ_TOKEN holds"),
        ({"INFLUX_URL": URL, "INFLUX_TOKEN": "s3cret\udcff"}, None, "INFLUX_TOKEN holds a line end or another"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_naming_the_variable(
    environment: dict[str, str], inventory: object, message: str
) -> None:
    with pytest.raises(RefusedError) as refusal:
        chosen(None, inventory, environment)  # type: ignore[arg-type]
    assert message in str(refusal.value)
    assert "s3" not in str(refusal.value)


def test_a_server_that_does_not_answer_is_no_refusal() -> None:
    assert "does not answer" in str(check(Influx(f"http://127.0.0.1:{free_ports(1)[0]}")))


@contextlib.contextmanager
def saying(answer: bytes, pause_s: float = 0.0) -> Iterator[str]:
    """A server on loopback that says this to whoever comes, in pieces of 64 bytes with a pause before each; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with listening.accept()[0] as client:
                        client.recv(65536)
                        for start in range(0, len(answer), 64):
                            time.sleep(pause_s)
                            client.sendall(answer[start : start + 64])

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


# As a Go server with TLS (InfluxDB), nginx, InfluxDB 2.9, a captive portal and a proxy answer.
GO_TLS = "Client sent an HTTP request to an HTTPS server.\n"
NGINX_TLS = "<html>\r\n<head><title>400 The plain HTTP request was sent to HTTPS port</title></head>\r\n</html>"
NO_ORGANISATION = '{"code":"invalid","message":"Please provide either orgID or org"}'
PAGE = "<!DOCTYPE html><title>Log in to the guest network</title>"


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, GO_TLS, "Begin INFLUX_URL with https://"),
        (400, NGINX_TLS, "Begin INFLUX_URL with https://"),
        (400, NO_ORGANISATION, "Set INFLUX_ORG to the organisation's name (now 'bench')"),
        (200, PAGE, "HTTP 200: <!DOCTYPE html><title>Log in to the guest network</title>. Set INFLUX_URL"),
        (404, PAGE, "Set INFLUX_URL (or --influx-url, or the inventory's bench_influxdb.url)"),
        (302, "", "HTTP 302: it redirects to /elsewhere. Set INFLUX_URL"),
        (405, "", "Set INFLUX_URL"),
        (413, "Request Entity Too Large", "HTTP 413: Request Entity Too Large. Set INFLUX_URL"),
    ],
)
def test_an_answer_that_will_not_change_refuses_the_run(status: int, body: str, message: str) -> None:
    with scripted_http(lambda _body, _path: (status, body)) as url, pytest.raises(RefusedError) as refusal:
        check(Influx(url, token="s3cret"))
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (408, ""),
        (429, "slow down"),
        (500, '{"error":"write /wal/_00001.wal: no space left on device"}'),
        (502, "<html><title>502 Bad Gateway</title></html>"),  # a proxy before an InfluxDB that is being started
        (503, ""),
    ],
)
def test_an_answer_that_may_change_is_an_outage(status: int, body: str) -> None:
    with scripted_http(lambda _body, _path: (status, body)) as url:
        assert str(check(Influx(url))).startswith(f"HTTP {status}: ")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"", "Remote end closed connection without response"),
        (b"HTTP/1.1 204 No Content\r\nX: " + b"x" * 70000, "more than 65536 bytes"),
        (b"HTTP/1.1 500 Full\r\nContent-Length: 60\r\n\r\ncut", "IncompleteRead"),
        (b"HTTP/1.1 500 Full\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ncut", "IncompleteRead"),
    ],
)
def test_a_broken_answer_is_told_as_an_outage(answer: bytes, told: str) -> None:
    with saying(answer) as url:
        assert told in str(check(Influx(url)))


def test_a_server_of_another_kind_is_refused() -> None:
    with saying(b"SSH-2.0-OpenSSH_9.2p1\r\n") as url:
        with pytest.raises(RefusedError, match="does not speak HTTP"):
            check(Influx(url))
        with pytest.raises(RefusedError, match="does not speak TLS: begin INFLUX_URL with http://"):
            check(Influx(url.replace("http:", "https:")))
    with pytest.raises(RefusedError, match=r"no-such-host\.invalid:8086: does not answer"):  # RFC 6761: never there
        check(Influx("http://no-such-host.invalid:8086"))


def test_a_server_that_trickles_is_given_up_within_the_limit() -> None:
    """Each read brings something, and all of it together would take a minute."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6400\r\n\r\n" + b"x" * 6400
    with saying(answer, 0.6) as url, pytest.raises(InfluxError, match="timed out"):
        Influx(url).write("bench", "", timeout_s=1.0)


def test_a_slow_server_is_waited_for_until_it_gives_up_itself() -> None:
    """By its own words: with less patience, a server that takes that long for each write would never be known to have stored one."""
    told = subprocess.run([Layout().influxd, "config"], capture_output=True, text=True, timeout=60, check=True).stdout
    patience_s = duration_s(tomllib.loads(told)["coordinator"]["write-timeout"])
    assert 0 < patience_s < WRITE_TIMEOUT_S < DELIVER_S_MAX


def test_a_database_that_is_missing_is_refused_with_the_variable(influx: LocalInflux) -> None:
    assert check(Influx(influx.start())) is None
    with pytest.raises(RefusedError, match="Set INFLUX_DATABASE to the database"):
        check(Influx(influx.start(), database="forgotten"))


@pytest.mark.influx2
def test_each_wrong_setting_of_version_2_is_named(influx2: Influx2Server) -> None:
    right = Influx(influx2.url, organisation=ORGANISATION, token=influx2.token(("write", "bench")))
    assert check(right) is None
    for wrong, message in (
        (replace(right, token=""), "DAQ_BENCH_INFLUX_TOKEN is not set"),
        (replace(right, token="bad"), "DAQ_BENCH_INFLUX_TOKEN is not one that it knows"),
        (replace(right, organisation="nobody"), "Set INFLUX_ORG to the organisation's name (now 'nobody')"),
        (replace(right, database="nothing"), "Set INFLUX_DATABASE to the database (2.x: the bucket)"),
        (replace(right, token=influx2.token(("read", "bench"))), "may not write to 'bench'"),
    ):
        with pytest.raises(RefusedError) as refusal:
            check(wrong)
        assert message in str(refusal.value)
        assert wrong.token not in str(refusal.value) or not wrong.token


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Influx]:
    """An InfluxDB 1.8 that asks for a password, with a user of all rights."""
    server = LocalInflux(Layout().influxd, tmp_path / "guarded")
    url = server.start(18286)
    Influx(url).query("CREATE USER \"operator\" WITH PASSWORD 's3crét:1' WITH ALL PRIVILEGES")
    server.stop()
    config = server.directory / "influxdb.conf"
    config.write_text(
        config.read_text(encoding="utf-8").replace("[http]", "[http]\n  auth-enabled = true"), encoding="utf-8"
    )
    process = subprocess.Popen(
        [server.influxd.absolute(), "-config", config.name],
        cwd=server.directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until_s = time.monotonic() + 20
    while check_quietly(Influx(url)) and time.monotonic() < until_s:
        time.sleep(0.1)
    yield Influx(url, token="operator:s3crét:1")
    process.terminate()
    process.wait()


def check_quietly(influx: Influx) -> bool:
    """Says whether nothing answers yet."""
    try:
        return check(influx) is not None
    except RefusedError:
        return False


def test_user_and_password_of_1_8_are_a_token(guarded: Influx) -> None:
    """For writing and for reading; nobody gets in without."""
    assert check(guarded) is None
    guarded.write("bench", "cpu,run=x busy_fraction=1 1")
    assert guarded.query("SELECT COUNT(*) FROM cpu")[0]["values"] == [[0, 1]]
    with pytest.raises(RefusedError, match="DAQ_BENCH_INFLUX_TOKEN is not set"):
        check(replace(guarded, token=""))
    assert base64.b64encode(guarded.token.encode()).decode() not in repr(guarded)


def agent_run(influx: Influx, folder: Path) -> Bundle:
    """A second of a real agent that delivers to `influx`."""
    bundle = Bundle.create(folder, "here", "", "snb")
    bundle.workload_file.touch()
    agent = Agent(Layout().agent, bundle, influx, {"host": "here", "run": bundle.id}, period_s=0.2)
    agent.start()
    pid = agent._process.pid if agent._process else 0
    words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    time.sleep(1.5)
    assert agent.stop() == 0
    assert not influx.token or influx.token not in words
    return bundle


def test_an_interruption_while_it_starts_leaves_no_agent(
    influx: LocalInflux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = Bundle.create(tmp_path, "here", "", "snb")
    bundle.workload_file.touch()
    agent = Agent(Layout().agent, bundle, Influx(influx.start()), {"host": "here", "run": bundle.id})
    begun: list[subprocess.Popen[str]] = []

    def interrupted(process: subprocess.Popen[str]) -> bool:
        begun.append(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(agent, "_says_ready", interrupted)
    with pytest.raises(KeyboardInterrupt):
        agent.start()
    assert begun[0].poll() is not None


def test_the_agent_delivers_with_a_token_that_is_nowhere_to_be_seen(
    server: Influx, guarded: Influx, tmp_path: Path
) -> None:
    """Neither in its command line nor in any file of the bundle; on 1.8 with a password, and on 2."""
    for influx in (guarded, server):
        bundle = agent_run(influx, tmp_path)
        summary = bundle.read("telemetry/summary.json")
        assert summary is not None
        assert summary["points"]["undelivered"] == 0 < summary["points"]["delivered"]
        texts = [file.read_bytes() for file in bundle.path.rglob("*") if file.is_file()]
        assert not influx.token or not any(influx.token.encode() in text for text in texts)


def test_a_token_for_another_server_stays_here(
    influx: LocalInflux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bench's own server gets none, although the environment has one."""
    monkeypatch.setenv("DAQ_BENCH_INFLUX_TOKEN", "of-another-server")
    own = Influx(influx.start(), configured=False)
    assert own.agent_environment["DAQ_BENCH_INFLUX_TOKEN"] == ""
    summary = agent_run(own, tmp_path).read("telemetry/summary.json")
    assert summary is not None
    assert summary["points"]["delivered"] > 0


@pytest.mark.parametrize("url", ["metrics-01:8086", "http://u:p@metrics-01:8086"])
def test_the_command_refuses_before_anything_is_written(tmp_path: Path, url: str) -> None:
    argv = [sys.executable, "-m", "daq_bench.rig", "qualify", "--runs", str(tmp_path / "runs"), "--influx-url", url]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, env={**os.environ})
    assert done.returncode == 2
    assert done.stderr.startswith("error: --influx-url")
    assert not (tmp_path / "runs").exists()
