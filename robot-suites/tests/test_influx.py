"""The bench's own InfluxDB and the history in it, against a real server on loopback."""

import json
import socket
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from rig.bundle import Bundle
from rig.history import publish_verdict, server_version, undelivered
from rig.influx_server import LocalInflux, free_port
from rig.settings import Layout

VERDICT: dict[str, Any] = {
    "outcome": "INADMISSIBLE",
    "requirements": [
        {"id": "SNB-01", "outcome": "INADMISSIBLE", "measured": 0, "margin_percent": None},
        {"id": "SNB-07", "outcome": "INADMISSIBLE", "measured": 3.5, "margin_percent": 278.7},
    ],
}


def rows(url: str, query: str) -> list[list[Any]]:
    """Rows of an InfluxQL query; errors come as HTTP 200 with an `error` field, so that is looked for."""
    parameters = urllib.parse.urlencode({"db": "bench", "q": query})
    with urllib.request.urlopen(f"{url}/query?{parameters}", timeout=10) as answer:
        document = json.load(answer)
    assert "error" not in json.dumps(document), document
    series = document["results"][0].get("series", [])
    return [row for one in series for row in one["values"]]


@pytest.fixture
def finished(tmp_path: Path) -> Bundle:
    bundle = Bundle.create(tmp_path, "this-machine", "", "dune-snb")
    bundle.save_run(
        state="finished",
        finished_utc="2026-01-31T12:00:00.000Z",
        candidate={"name": "this-machine"},
        scenario={"id": "dune-snb"},
    )
    bundle.write("verdict.json", VERDICT)
    (bundle.path / "telemetry" / "points.lp").touch()
    return bundle


def test_a_second_start_finds_the_running_server(influx: LocalInflux) -> None:
    url = influx.running_url()
    assert url is not None
    assert influx.start(1) == url
    assert server_version(url) == "1.8.10"


def test_every_listener_is_on_loopback(influx: LocalInflux) -> None:
    pid = (influx.directory / "influxd.pid").read_text(encoding="ascii")
    sockets = {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if "socket" in str(link.readlink())}
    listening = 0
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                listening += 1
                assert fields[1].startswith("0100007F:"), f"{table}: {fields[1]} is not 127.0.0.1"
    assert listening >= 2  # HTTP and RPC


def test_a_port_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert free_port(taken) != taken
        server = LocalInflux(Layout().influxd, tmp_path / "second")
        url = server.start(taken)
        assert url != f"http://127.0.0.1:{taken}"
        assert server.stop() is True
    assert server.running_url() is None
    assert server.stop() is False


def test_the_verdict_reaches_the_history_once(influx: LocalInflux, finished: Bundle) -> None:
    url = influx.running_url()
    assert url is not None
    urllib.request.urlopen(
        urllib.request.Request(f"{url}/query?q=CREATE+DATABASE+bench", method="POST"), timeout=10
    ).close()
    assert undelivered(finished.path)
    assert publish_verdict(finished.path, url)
    assert publish_verdict(finished.path, url)
    assert not undelivered(finished.path)
    found = rows(
        url, f"SELECT requirement, outcome, measured, margin_percent FROM bench_verdict WHERE run = '{finished.id}'"
    )
    assert sorted(row[1:] for row in found) == [
        ["SNB-01", "INADMISSIBLE", 0, None],
        ["SNB-07", "INADMISSIBLE", 3.5, 278.7],
        ["overall", "INADMISSIBLE", None, None],
    ]


def test_without_a_server_the_verdict_stays_undelivered(finished: Bundle) -> None:
    assert publish_verdict(finished.path, f"http://127.0.0.1:{free_port(20000)}") is False
    assert undelivered(finished.path)
