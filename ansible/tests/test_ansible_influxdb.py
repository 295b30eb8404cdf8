"""The influxdb role against a real InfluxDB under a real systemd, in a container."""

from __future__ import annotations

import base64
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nspawn import Container, container, missing_requirement
from playbook_runs import PlaybookRun, run_playbook

from daq_bench.virtual_candidate.ports import free_ports

pytestmark = pytest.mark.skipif(bool(missing_requirement()), reason=missing_requirement())

SECRETS = {
    "BENCH_INFLUXDB_ADMIN_PASSWORD": "admin-s3cret-'quoted",
    "BENCH_INFLUXDB_WRITER_PASSWORD": 'writer-s3cret-"\\x',
    "BENCH_INFLUXDB_READER_PASSWORD": "reader-s3cret",
}
ADMIN, WRITER, READER = "daq-bench-admin", "daq-bench-writer", "daq-bench-reader"
PASSWORDS = dict(zip((ADMIN, WRITER, READER), SECRETS.values(), strict=True))


def influxd() -> str:
    """Return the real server's binary; its absence is an error, as in the agent's tests."""
    binary = os.environ.get("INFLUXD_BIN", "")
    if not Path(binary).is_file():
        raise RuntimeError(f"INFLUXD_BIN={binary!r}: set it to an influxd 1.8 binary (make influxd builds one)")
    return str(Path(binary).resolve())  # Ansible runs in another folder


class Server:
    """The role's host, and the server that the role made."""

    def __init__(self, host: Container, directory: Path) -> None:
        """Choose ports; nothing is started."""
        self.host, self.directory = host, directory
        self.port, self.rpc_port = free_ports(2)
        self.variables: dict[str, Any] = {
            "observability_services": ["influxdb"],
            "influxdb_binary_source": influxd(),
            "influxdb_port": self.port,
            "influxdb_rpc_port": self.rpc_port,
            "influxdb_downsampled_every": "1s",
        }

    def run(self, action: str, *arguments: str, secrets: dict[str, str] | None = None, **variables: Any) -> PlaybookRun:
        """Run the playbook."""
        inventory = self.directory / "inventory.yml"
        hosts = {"server": self.host.inventory()}
        inventory.write_text(json.dumps({"all": {"children": {"observability": {"hosts": hosts}}}}))
        merged = {**self.variables, "observability_action": action, **variables}
        environment = SECRETS if secrets is None else secrets
        return run_playbook("observability.yml", inventory, merged, *arguments, environment=environment)

    def ask(self, user: str, statement: str, password: str | None = None) -> tuple[int, Any]:
        """Run InfluxQL as a user; return the HTTP status and the answer."""
        form = urllib.parse.urlencode({"q": statement, "db": "bench"}).encode()
        credentials = f"{user}:{PASSWORDS[user] if password is None else password}"
        return self._post("/query", form, {"Authorization": "Basic " + base64.b64encode(credentials.encode()).decode()})

    def write(self, user: str, lines: str, bucket: str = "bench") -> tuple[int, Any]:
        """Write as the agent does: /api/v2/write with a token, which 1.8 takes as user:password."""
        headers = {"Authorization": f"Token {user}:{PASSWORDS[user]}"}
        return self._post(f"/api/v2/write?org=bench&bucket={bucket}&precision=ns", lines.encode(), headers)

    def _post(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read().decode()
                return answer.status, json.loads(text) if text.strip() else None
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read().decode())

    def listeners(self) -> set[str]:
        """Return the addresses on which our server listens, from the kernel's own table (the network is the host's)."""
        pid = self.host.ssh("systemctl show --property=MainPID --value daq-bench-influxdb").stdout.strip()
        sockets = self.host.ssh(f"readlink /proc/{pid}/fd/*").stdout
        inodes = {name[len("socket:[") : -1] for name in sockets.split() if name.startswith("socket:[")}
        found = set()
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    host, port = fields[1].split(":")
                    found.add(f"{'127.0.0.1' if host == '0100007F' else host}:{int(port, 16)}")
        return found

    def rows(self, statement: str, user: str = ADMIN) -> list[list[Any]]:
        """Return the rows that a user gets."""
        status, document = self.ask(user, statement)
        assert status == 200, document
        return [row for series in document["results"][0].get("series", []) for row in series["values"]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One container for the whole module."""
    directory = tmp_path_factory.mktemp("influxdb")
    with container(directory / "host") as host:
        yield Server(host, directory)


def test_a_server_is_set_up_once_with_users_of_least_rights_and_removed(server: Server) -> None:
    """Check mode, apply, changed=0, rights asked of the server itself, drift put right, restore."""
    check = server.run("apply", "--check")
    assert check.code == 0, check.output
    assert server.host.ssh("ls /etc/daq-bench-influxdb").returncode != 0

    first = server.run("apply")
    assert first.code == 0, first.output
    assert first.changed > 0
    second = server.run("apply")
    assert (second.code, second.changed) == (0, 0), second.output

    assert server.write(WRITER, f"smart,device=a passed=true,temperature_degc=40 {time.time_ns()}")[0] == 204
    assert server.write(READER, f"smart,device=a temperature_degc=41 {time.time_ns()}")[0] == 403
    assert [row[1] for row in server.rows("SELECT temperature_degc FROM smart", READER)] == [40]
    for user, statement in (
        (WRITER, "SELECT * FROM smart"),
        (WRITER, "DROP DATABASE bench"),
        (READER, "DROP MEASUREMENT smart"),
        (READER, "CREATE DATABASE mine"),
        (READER, "SHOW USERS"),
    ):
        status, document = server.ask(user, statement)
        said = json.dumps(document)
        assert status == 403 or "not authorized" in said or "requires admin privilege" in said, (user, statement, said)
    assert server.ask(READER, "SHOW DATABASES", "wrong")[0] == 401

    policies = {row[0]: (row[1], row[4]) for row in server.rows("SHOW RETENTION POLICIES ON bench")}
    assert policies == {"raw": ("336h0m0s", True), "bench_1m": ("0s", False), "history": ("0s", False)}
    assert server.write(WRITER, f'bench_verdict,run=r outcome="PASS" {time.time_ns()}', "bench/history")[0] == 204
    # Five years old: older than the raw policy accepts.
    old = f'bench_verdict,run=old outcome="FAIL" {time.time_ns() - 5 * 365 * 86400 * 10**9}'
    assert server.write(WRITER, old)[0] == 400
    assert server.write(WRITER, old, "bench/history")[0] == 204
    outcomes = {row[1] for row in server.rows('SELECT outcome FROM "history"."bench_verdict"', READER)}
    assert outcomes == {"PASS", "FAIL"}
    assert server.ask(READER, "SHOW RETENTION POLICIES")[0] == 200  # the account asks for them
    assert server.listeners() == {f"127.0.0.1:{server.port}", f"127.0.0.1:{server.rpc_port}"}

    check_downsampling(server)

    server.rows(f'GRANT ALL ON bench TO "{READER}"')
    server.rows("ALTER RETENTION POLICY raw ON bench DURATION 7d")
    server.rows('DROP CONTINUOUS QUERY "bench_1m_smart" ON bench')
    # As an earlier version of the role made it: one for all measurements.
    server.rows(
        'CREATE CONTINUOUS QUERY "bench_1m" ON bench BEGIN SELECT mean(*) INTO bench.bench_1m.:MEASUREMENT '
        "FROM bench.raw./.*/ GROUP BY time(1m), * END"
    )
    drift = server.run("verify")
    assert drift.code != 0
    assert f"user {READER} may ALL PRIVILEGES on bench, not READ on bench alone" in drift.text
    assert "retention policy raw is 168h0m0s, default, not 14d" in drift.text
    assert "continuous query bench_1m is not wanted; continuous query bench_1m_smart is missing" in drift.text
    assert server.run("apply").changed > 0
    assert server.run("verify").code == 0

    changed = {**SECRETS, "BENCH_INFLUXDB_READER_PASSWORD": "another-s3cret"}
    assert f"user {READER} has another password" in server.run("apply", secrets=changed).text
    assert server.ask(READER, "SHOW DATABASES", "another-s3cret")[0] == 200

    wrong = server.run("apply", secrets={**SECRETS, "BENCH_INFLUXDB_ADMIN_PASSWORD": "wrong"})
    assert wrong.code != 0
    assert f"refuses the password of the administrator {ADMIN}" in wrong.text

    journal = server.host.ssh("journalctl --no-pager; cat /etc/systemd/system/daq-bench-influxdb.service").stdout
    everything = journal + first.output + second.output + drift.output + wrong.output
    assert "s3cret" not in everything

    restored = server.run("restore")
    assert restored.code == 0, restored.output
    assert "stays (influxdb_remove_data: true removes it)" in restored.text
    left = (
        "ls /etc/systemd/system/daq-bench-influxdb.service /etc/daq-bench-influxdb /usr/local/libexec/daq-bench/influxd"
    )
    assert server.host.ssh(left).stdout == ""
    assert server.host.ssh("ls /var/lib/daq-bench-influxdb").stdout.split() == ["data", "meta", "wal"]
    assert server.run("restore", influxdb_remove_data=True).code == 0
    assert server.host.ssh("ls /var/lib/daq-bench-influxdb; id daq-bench-influxdb").stdout == ""
    again = server.run("restore", influxdb_remove_data=True)
    assert (again.code, again.changed) == (0, 0), again.output


def awaited(server: Server, statement: str) -> list[list[Any]]:
    """Rows that a continuous query makes: each measurement has its own, and the server runs them one after the other, once a minute."""
    until_s = time.monotonic() + 180
    while not (found := server.rows(statement, READER)) and time.monotonic() < until_s:
        time.sleep(0.5)
    return found


def check_downsampling(server: Server) -> None:
    """The continuous queries really run: means, maxima and last values of whole minutes, also of points that came late, of all runs."""
    minute_ns = (time.time_ns() // 60_000_000_000 - 10) * 60_000_000_000
    lines = [
        f"smart,device=b,run={run} passed={state},temperature_degc={degrees},power_on_hours={hours}i {minute_ns + second * 10**9}"
        for second, degrees, hours, state, run in (
            (1, 40, 7, "true", "one"),
            (30, 70, 8, "true", "one"),
            (59, 40, 9, "false", "another"),
        )
    ]
    lines.append(f'ipmi_sensor,sensor=Fan1 state="lower critical" {minute_ns}')
    assert server.write(WRITER, "\n".join(lines))[0] == 204
    statement = (
        "SELECT mean_temperature_degc, max_temperature_degc, last_power_on_hours, last_passed "
        "FROM \"bench_1m\".smart WHERE device = 'b'"
    )
    assert [row[1:] for row in awaited(server, statement)] == [[50, 70, 9, False]]
    counted = server.rows("SELECT count(max_temperature_degc) FROM \"bench_1m\".smart WHERE device = 'b' GROUP BY run")
    assert [row[1] for row in counted] == [1], "two runs, and one series"
    states = awaited(server, 'SELECT last_state FROM "bench_1m".ipmi_sensor')
    assert [row[1] for row in states] == ["lower critical"]


@pytest.mark.parametrize(
    ("variables", "secrets", "message"),
    [
        ({}, {}, "influxdb_admin_password is empty. Give it in Ansible Vault, or in the environment variable"),
        ({"influxdb_address": "0.0.0.0"}, SECRETS, "or consent with influxdb_allow_plain_http: true"),
        ({"influxdb_deb_source": "/x.deb"}, SECRETS, "influxdb_deb_source and influxdb_binary_source are both set"),
        ({"influxdb_binary_source": "/bin/true"}, SECRETS, "needed is 1.8 or newer of major version 1"),
        ({"influxdb_major": 3}, SECRETS, "value of influxdb_major must be one of: 1, 2"),
        ({"observability_services": ["influx"]}, SECRETS, "observability_services is influx"),
    ],
)
def test_what_cannot_work_is_refused_with_the_remedy(
    server: Server, variables: dict[str, Any], secrets: dict[str, str], message: str
) -> None:
    """The role refuses it before the server runs."""
    run = server.run("apply", secrets=secrets, **variables)
    assert run.code != 0
    assert message in run.text
    assert server.host.ssh("systemctl is-active daq-bench-influxdb").stdout.strip() == "inactive"
