"""A candidate's way to telemetry: the real agent's writer, the relay, and a real InfluxDB behind it that holds other people's history."""

from __future__ import annotations

import http.client
import random
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from agent_helpers import scripted_http

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.rig.base.influx import Influx, check
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.rig.telemetry.remote_agent import influx_through
from daq_bench.rig.telemetry.write_relay import BODY_BYTES_MAX, CONNECTIONS_MAX, WRITE_PATH, WriteRelay
from daq_bench.telemetry_agent.delivery.influx import Destination, InfluxWriter, Rejected, Retryable
from daq_bench.virtual_candidate import tls
from daq_bench.virtual_candidate.ports import free_ports

TAGS = {"host": "rack 1,left", "run": "20260131T120000Z-a"}
OURS = rb"host=rack\ 1\,left,run=20260131T120000Z-a"


@pytest.fixture
def database(influx: LocalInflux) -> Influx:
    """A database with one foreign point in it, the same for each test."""
    found = Influx(influx.start(), "relayed")
    for statement in ('DROP DATABASE "relayed"', 'CREATE DATABASE "relayed"'):
        found.query(statement)
    found.write("relayed", "drive,host=other,run=old secret=42i 1\n")
    return found


@pytest.fixture
def relay(database: Influx) -> Iterator[WriteRelay]:
    made = WriteRelay(database, TAGS)
    made.start()
    yield made
    made.stop()


def writer(relay: WriteRelay, token: str | None = None) -> InfluxWriter:
    return InfluxWriter(Destination(f"http://127.0.0.1:{relay.port}", "bench", "bench", token or relay.token))


def ask(relay: WriteRelay, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=60)
    connection.request(method, path, body, {"Authorization": f"Token {relay.token}", **headers})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def series(influx: Influx) -> list[str]:
    return [row[0] for one in influx.query("SHOW SERIES") for row in one["values"]]


def test_the_agents_lines_arrive_and_nothing_of_others_is_touched(relay: WriteRelay, database: Influx) -> None:
    agents = writer(relay)
    agents.write(b'cpu,%b,cpu=0 busy=0.5 10\nnote,%b text="two words, a=b" 11\n# a comment\n\n' % (OURS, OURS), 30)
    agents.write(b"cpu,cpu=1,%b busy=0.25 10\n" % OURS, 30)  # over the same connection
    [found] = database.query("SELECT busy FROM cpu WHERE run = '20260131T120000Z-a' AND host = 'rack 1,left'")
    assert sorted(row[1] for row in found["values"]) == [0.25, 0.5]
    [note] = database.query("SELECT text FROM note")
    assert note["values"] == [[11, "two words, a=b"]]
    assert "drive,host=other,run=old" in series(database)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/query?db=relayed&q=SELECT+*+FROM+drive"),
        ("POST", "/query?db=relayed&q=DROP+DATABASE+relayed"),
        ("POST", "/write?db=relayed"),
        ("POST", "/api/v2/write/../../query?q=DROP+DATABASE+relayed"),
        ("POST", "http://127.0.0.1/query?q=DROP+DATABASE+relayed"),
        ("POST", "/api/v2/delete?bucket=relayed"),
        ("POST", "/api/v2/query"),
        ("POST", "/api/v2/%77rite"),
        ("GET", WRITE_PATH),
        ("HEAD", "/ping"),
        ("GET", "/debug/pprof/heap"),
        ("DELETE", WRITE_PATH),
        ("OPTIONS", "*"),
        ("CONNECT", "127.0.0.1:8086"),
    ],
)
def test_nothing_else_is_open(relay: WriteRelay, database: Influx, method: str, path: str) -> None:
    before = series(database)
    status, said = ask(relay, method, path, b"cpu,%b busy=1 1\n" % OURS)
    assert status in (403, 501), said
    assert b"42" not in said
    assert b"influx" not in said.lower()
    assert series(database) == before


def test_the_query_of_a_write_names_no_other_database_policy_or_precision(relay: WriteRelay, database: Influx) -> None:
    database.query('CREATE DATABASE "others"')
    status, said = ask(
        relay, "POST", f"{WRITE_PATH}?bucket=others/autogen&org=x&precision=s", b"cpu,%b busy=1 7\n" % OURS
    )
    assert (status, said) == (204, b"")
    [found] = database.query("SELECT busy FROM cpu")
    assert found["values"] == [[7, 1]]
    assert Influx(database.url, "others").query("SHOW SERIES") == []


def test_only_the_token_of_this_run_opens_it(relay: WriteRelay, database: Influx) -> None:
    other = WriteRelay(database, TAGS)
    for token in (other.token, relay.token[:-1], relay.token + "x", "bench:bench"):
        with pytest.raises(Retryable, match="401"):
            writer(relay, token).write(b"cpu,%b busy=1 1\n" % OURS, 30)
    assert ask(relay, "POST", WRITE_PATH, Authorization="")[0] == 401
    assert series(database) == ["drive,host=other,run=old"]
    other._server.server_close()


OTHERS = [
    b"drive,host=other,run=old secret=1i 1",
    b"cpu busy=1",
    b"cpu,host=rack\\ 1\\,left busy=1",  # of no run
    b"cpu,%b,run=old busy=1" % OURS,
    b"cpu,run=old,%b busy=1" % OURS,
    b"cpu,host=other,run=20260131T120000Z-a busy=1",
    b"cpu\\,%b busy=1" % OURS,  # the tags are a part of the measurement's name
    b"cpu,x=1\\,%b busy=1" % OURS,
    b"cpu,x=1\\ ,%b" % OURS,
    b" cpu,host=other,run=old busy=1",
    b"\tcpu,host=other,run=old busy=1",
    b"\x00cpu,host=other,run=old busy=1",
    b'note,%b text="a\ncpu,host=other,run=old busy=1"' % OURS,
    b'note,%b text="a\\\ncpu,host=other,run=old busy=1' % OURS,
    b"cpu,%b busy=1 1\r\ncpu,host=other,run=old busy=1 1\r" % OURS,
    b"cpu,%b busy=1\ncpu,host=other,run=old busy=1" % OURS,
    b"cpu," + b"x" * 70_000 + b"=1,%b busy=1" % OURS,
    b"cpu,%b" % OURS,
    b"\xff\xfe",
]


@pytest.mark.parametrize("line", OTHERS)
def test_lines_of_others_are_set_aside_with_the_reason(relay: WriteRelay, database: Influx, line: bytes) -> None:
    with pytest.raises(Rejected, match="line"):
        writer(relay).write(line + b"\n", 30)
    assert series(database) == ["drive,host=other,run=old"]


def test_whatever_the_relay_lets_through_influxdb_takes_for_lines_of_this_run(
    relay: WriteRelay, database: Influx
) -> None:
    """Bytes that both read: 4,000 bodies of pieces of line protocol, of which those that pass go to InfluxDB as they are."""
    drawn = random.Random(20260131)
    pieces = [
        b"cpu",
        b",",
        b"=",
        b" ",
        b"\\",
        b'"',
        b"\n",
        b"busy=1",
        b"run=old",
        b"run",
        b"host=other",
        OURS,
        b"," + OURS,
        b"x=1",
    ]
    pieces += [
        b"#",
        b"\t",
        b"\r",
        b"1",
        b"i",
        b"cpu,%b " % OURS,
        b"cpu,%b busy=1\n" % OURS,
        b'cpu,%b t="' % OURS,
        b"\xc3\xa9",
        b"\x0b",
    ]
    passed = 0
    for _ in range(4000):
        body = b"".join(drawn.choices(pieces, k=drawn.randint(1, 12)))
        if relay.refusal(body) is None:
            passed += 1
            database.deliver(body, 30)
    assert passed > 300
    found = [one for one in series(database) if one != "drive,host=other,run=old"]
    assert len(found) > 5
    for one in found:
        tags = one.replace(r"rack\ 1\,left", "us").split(",")[1:]
        assert tags.count("run=20260131T120000Z-a") == tags.count("host=us") == 1, one
        assert not [tag for tag in tags if tag in ("run=old", "host=other")], one


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Length": str(BODY_BYTES_MAX + 1)}, 413),
        ({"Content-Length": "99999999999999999999"}, 411),
        ({"Content-Length": "-1"}, 411),
        ({"Transfer-Encoding": "chunked", "Content-Length": "1"}, 411),
        ({"Content-Encoding": "gzip", "Content-Length": "1"}, 415),
    ],
)
def test_a_body_without_bound_or_in_disguise_is_not_read(
    relay: WriteRelay, headers: dict[str, str], status: int
) -> None:
    assert ask(relay, "POST", WRITE_PATH, b"", **headers)[0] == status


def test_a_server_that_is_gone_is_an_outage_and_the_agent_tries_again(relay: WriteRelay) -> None:
    gone = WriteRelay(Influx(f"http://127.0.0.1:{free_ports(1)[0]}"), TAGS)
    gone.start()
    with pytest.raises(Retryable, match=r"503.*does not answer"):
        writer(gone).write(b"cpu,%b busy=1 1\n" % OURS, 30)
    gone.stop()


def test_influxdbs_own_refusal_reaches_the_agent(relay: WriteRelay, database: Influx) -> None:
    agents = writer(relay)
    agents.write(b"cpu,%b busy=1.5 1\n" % OURS, 30)
    with pytest.raises(Rejected, match="field type conflict") as refused:
        agents.write(b'cpu,%b busy="text" 2\ncpu,%b busy=2.5 3\n' % (OURS, OURS), 30)
    assert refused.value.dropped == 1
    database.query('DROP DATABASE "relayed"')
    with pytest.raises(Retryable, match="database not found"):
        agents.write(b"cpu,%b busy=1.5 1\n" % OURS, 30)


def test_connections_without_end_start_no_threads_without_end(relay: WriteRelay, database: Influx) -> None:
    idle = [socket.create_connection(("127.0.0.1", relay.port), timeout=60) for _ in range(CONNECTIONS_MAX)]
    for one in idle:
        one.sendall(b"POST ")
    beyond = [socket.create_connection(("127.0.0.1", relay.port), timeout=60) for _ in range(3)]
    for one in beyond:
        with suppress(ConnectionResetError):
            assert one.recv(1024) == b""  # closed without an answer
    for one in (*idle, *beyond):
        one.close()
    for _ in range(600):
        try:
            writer(relay).write(b"cpu,%b busy=1 1\n" % OURS, 30)
            break
        except Retryable:
            continue
    assert [row for one in database.query("SELECT busy FROM cpu") for row in one["values"]] == [[1, 1]]


def test_what_a_candidate_sends_reaches_no_terminal(relay: WriteRelay, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(("127.0.0.1", relay.port), timeout=60) as raw:
        raw.sendall(b"\x1b]0;owned\x07 / HTTP/1.1\r\n\r\n")
        raw.recv(4096)
    with socket.create_connection(("127.0.0.1", relay.port), timeout=60) as raw:
        raw.sendall(
            f"POST {WRITE_PATH} HTTP/1.1\r\nAuthorization: Token {relay.token}\r\nContent-Length: 9\r\n\r\n".encode()
        )
        raw.shutdown(socket.SHUT_WR)
        assert b"400" in raw.recv(4096)
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")


def candidate(forwards: bool, forwarded: list[tuple[str, int]]) -> Any:
    """A machine behind SSH; only its way back matters here."""

    def forward_back(host: str, port: int) -> int:
        if not forwards:
            raise BenchError("dqm-01 forwards no port: administratively prohibited (AllowTcpForwarding of its sshd)")
        forwarded.append((host, port))
        return 4711

    return SimpleNamespace(link=SimpleNamespace(forward_back=forward_back))


@pytest.mark.parametrize("url", ["http://127.0.0.1:8086", "https://metrics-01:8086"])
def test_a_candidate_behind_ssh_gets_the_relay_and_a_token_of_its_own(url: str) -> None:
    secret = Influx(url, token="writers", read_token="readers")
    relay = WriteRelay(secret, TAGS)
    forwarded: list[tuple[str, int]] = []
    there = influx_through(candidate(True, forwarded), relay, secret)
    assert forwarded == [("127.0.0.1", relay.port)]
    assert (there.url, there.token, there.read_token) == ("http://127.0.0.1:4711", relay.token, "")
    assert "writers" not in "".join(there.agent_arguments) + str(there.agent_environment)
    relay._server.server_close()


@pytest.mark.parametrize(
    ("url", "ours"),
    [
        ("http://127.0.0.1:8086", True),
        ("http://127.8.8.8:8086", True),
        ("http://localhost:8086", True),
        ("http://[::1]:8086", True),
        ("http://10.0.0.1:8086", False),
        ("https://metrics-01:8086", False),
    ],
)
def test_a_candidate_that_forwards_no_port_reaches_a_server_elsewhere_directly(
    url: str, ours: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    influx = Influx(url, token="writers")
    relay = WriteRelay(influx, TAGS)
    if ours:
        with pytest.raises(BenchError, match="AllowTcpForwarding"):
            influx_through(candidate(False, []), relay, influx)
    else:
        assert influx_through(candidate(False, []), relay, influx) is influx
        assert f"it writes to {url} itself, with the writer's token" in capsys.readouterr().err
    relay._server.server_close()


def test_a_server_with_a_certificate_of_the_laboratory_is_reached_where_the_control_node_trusts_it(
    database: Influx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real agent's writer, the relay, TLS, and a real InfluxDB behind it, as nginx before it would be."""
    tls.create(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")

    def passed_on(body: bytes, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(urlsplit(database.url).netloc, timeout=60)
        kind = "application/x-www-form-urlencoded" if path.startswith("/query") else "text/plain"
        connection.request("POST", path.split(" ")[0], body, {"Content-Type": kind})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    with scripted_http(passed_on, context) as url:
        behind = replace(database, url=url)
        relay = WriteRelay(behind, TAGS)
        relay.start()
        remedy = r"is not trusted: .*certificate.*\. Let SSL_CERT_FILE name the certificate of the authority"
        with pytest.raises(RefusedError, match=remedy):
            check(behind)
        with pytest.raises(Retryable, match=r"HTTP 503: https://.* has a certificate that is not trusted"):
            writer(relay).write(b"behind,%b busy=1 1\n" % OURS, 60)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert check(behind) is None
        writer(relay).write(b"behind,%b busy=1 1\n" % OURS, 60)
        relay.stop()
    [found] = database.query("SELECT busy FROM behind")
    assert found["values"] == [[1, 1]]


def test_both_kinds_of_influxdb_take_the_lines(server: Influx) -> None:
    relay = WriteRelay(server, TAGS)
    relay.start()
    writer(relay).write(b"relayed,%b busy=1 1\n" % OURS, 60)
    relay.stop()
    [found] = server.query("SELECT busy FROM relayed WHERE run = '20260131T120000Z-a'")
    assert found["values"] == [[1, 1]]
