"""The influxdb role's 2.x part against a real InfluxDB 2 (INFLUXD2_BIN).

`make test` does not build InfluxDB 2, which takes six minutes and a Rust compiler: `make test-influx2` does, and runs this.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from nspawn import container, missing_requirement
from playbook_runs import PlaybookRun, run_playbook

from daq_bench.virtual_candidate.ports import free_ports

pytestmark = [pytest.mark.skipif(bool(missing_requirement()), reason=missing_requirement()), pytest.mark.influx2]
SECRETS = {"BENCH_INFLUXDB_ADMIN_PASSWORD": "admin-s3cret", "BENCH_INFLUXDB_ADMIN_TOKEN": "operator-s3cret"}


def ask(port: int, path: str, token: str, body: str | None = None) -> tuple[int, Any]:
    """Make a request with a token; return status and answer."""
    headers = {"Authorization": f"Token {token}"}
    data = None if body is None else body.encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)) as answer:
            text = answer.read().decode()
            return answer.status, json.loads(text) if text.strip() else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read().decode())


def query(port: int, token: str, statement: str) -> tuple[int, Any]:
    """Run InfluxQL, as Grafana does."""
    return ask(port, "/query?" + urllib.parse.urlencode({"db": "bench", "q": statement}), token)


def influxd2() -> str:
    """Return the real server's binary; its absence is an error."""
    binary = os.environ.get("INFLUXD2_BIN", "")
    if not Path(binary).is_file():
        raise RuntimeError(f"INFLUXD2_BIN={binary!r}: set it to an influxd 2 binary (`make test-influx2` builds one)")
    return str(Path(binary).resolve())  # Ansible runs in another folder


def test_a_server_of_version_2_is_set_up_with_tokens_of_least_rights(tmp_path: Path) -> None:
    """Apply, changed=0, rights asked of the server itself, drift put right, no secret in any output, restore."""
    (port,) = free_ports(1)
    variables = {
        "observability_services": ["influxdb"],
        "influxdb_major": 2,
        "influxdb_binary_source": influxd2(),
        "influxdb_port": port,
        "influxdb_downsampled_every": "5s",
    }
    with container(tmp_path / "host") as host:
        inventory = tmp_path / "inventory.yml"
        inventory.write_text(
            json.dumps({"all": {"children": {"observability": {"hosts": {"server": host.inventory()}}}}})
        )

        def run(action: str, **more: Any) -> PlaybookRun:
            merged = {**variables, "observability_action": action, **more}
            return run_playbook("observability.yml", inventory, merged, environment=SECRETS)

        first = run("apply")
        assert first.code == 0, first.output
        second = run("apply")
        assert (second.code, second.changed) == (0, 0), second.output
        directory = "/etc/daq-bench-influxdb"
        assert host.ssh(f"stat -c '%a %U' {directory}/*.token").stdout.split() == ["600", "root", "600", "root"]
        writer, reader = (
            host.ssh(f"cat {directory}/daq-bench-{role}.token").stdout.strip() for role in ("writer", "reader")
        )

        write = "/api/v2/write?org=bench&bucket=bench&precision=ns"
        minute_ns = (time.time_ns() // 60_000_000_000 - 5) * 60_000_000_000
        lines = [
            f"smart,device=a,run={run} passed={state},temperature_degc={degrees},power_on_hours={hours}i,state={text}"
            f" {minute_ns + at * 10**9}"
            for at, degrees, hours, state, text, run in (
                (1, 40, 7, "true", '"ok"', "z"),
                (30, 70, 8, "true", '"ok"', "z"),
                (59, 40, 9, "false", '"lower critical"', "a"),
            )
        ]
        line = "\n".join(lines)
        assert ask(port, write, writer, line)[0] == 204
        assert ask(port, write, reader, line)[0] in (401, 403, 404)
        status, document = query(port, reader, "SELECT temperature_degc FROM smart")
        assert (status, document["results"][0]["series"][0]["values"][0][1]) == (200, 40)
        status, document = query(port, reader, 'SELECT mean_temperature_degc FROM "bench_1m".smart')
        assert (status, "error" in json.dumps(document)) == (200, False)
        for table in ("smart", '"history".bench_verdict'):
            status, document = query(port, writer, f"SELECT * FROM {table}")
            assert status != 200 or "series" not in document["results"][0]
        # Five years old: older than the raw bucket accepts.
        old = f'bench_verdict,run=old outcome="FAIL" {time.time_ns() - 5 * 365 * 86400 * 10**9}'
        history = write.replace("bucket=bench", "bucket=bench/history")
        assert ask(port, write, writer, old)[0] == 422
        assert ask(port, history, reader, old)[0] in (401, 403, 404)
        assert ask(port, history, writer, old)[0] == 204
        document = query(port, reader, 'SELECT outcome FROM "history".bench_verdict')[1]
        assert document["results"][0]["series"][0]["values"][0][1] == "FAIL"
        for secret in (writer, reader):
            assert ask(port, "/api/v2/buckets", secret, '{"name": "mine", "orgID": "0000000000000001"}')[0] in (
                401,
                403,
                404,
            )
        drop = {"start": "1970-01-01T00:00:00Z", "stop": "2100-01-01T00:00:00Z"}
        assert ask(port, "/api/v2/delete?org=bench&bucket=bench", reader, json.dumps(drop))[0] in (401, 403, 404)
        assert ask(port, "/api/v2/delete?org=bench&bucket=bench/history", reader, json.dumps(drop))[0] in (
            401,
            403,
            404,
        )
        assert query(port, reader, "SELECT temperature_degc FROM smart")[1]["results"][0]["series"]

        # The task runs by itself, as its schedule has it.
        assert wait_for_minute_values(port, reader) == [[50, 70, 9, False, "lower critical"]]

        changed = run("verify", influxdb_raw_retention="7d")
        assert changed.code != 0
        assert "bucket bench keeps points for 2w, not 7d" in changed.text
        host.ssh(f"rm {directory}/daq-bench-reader.token")
        assert "token daq-bench-reader is missing" in run("apply").text
        assert run("verify").code == 0
        assert query(port, reader, "SELECT * FROM smart")[0] == 401  # the old token is gone

        everything = first.output + second.output + changed.output + host.ssh("journalctl --no-pager").stdout
        assert not [secret for secret in (*SECRETS.values(), writer, reader) if secret in everything]
        assert run("restore", influxdb_remove_data=True).code == 0
        assert host.ssh(f"ls {directory} /var/lib/daq-bench-influxdb").stdout == ""


def wait_for_minute_values(port: int, reader: str) -> list[Any]:
    """Wait for the values that the task writes for the minute of the points, and return them."""
    fields = "mean_temperature_degc, max_temperature_degc, last_power_on_hours, last_passed, last_state"
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        document = query(port, reader, f'SELECT {fields} FROM "bench_1m".smart')[1]
        series = document["results"][0].get("series")
        if series and None not in series[0]["values"][0]:  # the three streams of the task are written one after another
            return [row[1:] for row in series[0]["values"]]
        time.sleep(1)
    return []
