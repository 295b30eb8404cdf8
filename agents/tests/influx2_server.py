"""A real InfluxDB 2 for tests: loopback only, own directory, free port, ended by its process id.

Promise: as `influx_server`, with the binary of INFLUXD2_BIN (`make influxd2` builds one); without it an error that says so, never a
skipped test. Tests that use it carry the marker `influx2`."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from influx_server import InfluxServer

BINARY_VARIABLE = "INFLUXD2_BIN"
ORGANISATION, OPERATOR = "bench", "operator-s3cret"
BUCKETS = ("bench", "bench/history")


def binary() -> str:
    """The server's binary; its absence is an error."""
    path = os.environ.get(BINARY_VARIABLE, "")
    if not Path(path).is_file():
        raise RuntimeError(
            f"{BINARY_VARIABLE}={path!r}: set it to an influxd 2 binary (`make test-influx2` builds one)"
        )
    return path


class Influx2Server(InfluxServer):
    """One influxd 2 process, set up with the bench's organisation and buckets, and the operator's token."""

    def start(self) -> None:
        """Start, or start again after `kill`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        files = {"bolt-path": "bolt", "sqlite-path": "sqlite", "engine-path": "engine"}
        options = [f"--{option}={self.directory / name}" for option, name in files.items()]
        options += [
            f"--http-bind-address=127.0.0.1:{self.http_port}",
            "--reporting-disabled",
            "--log-level=warn",
            "--ui-disabled",
        ]
        with (self.directory / "influxd.log").open("ab") as log:
            environment = {**os.environ, "HOME": str(self.directory)}
            self._process = subprocess.Popen([binary(), *options], stdout=log, stderr=log, env=environment)
        self._wait_ready()
        if self.ask("GET", "setup")["allowed"]:
            self._set_up()

    def _set_up(self) -> None:
        body = {
            "username": "admin",
            "password": "admin-s3cret",
            "token": OPERATOR,
            "org": ORGANISATION,
            "bucket": BUCKETS[0],
        }
        self.ask("POST", "setup", body)
        for name in BUCKETS[1:]:
            self.ask("POST", "buckets", {"orgID": self.organisation_id(), "name": name, "retentionRules": []})

    def organisation_id(self) -> str:
        """The organisation's id."""
        return str(self.ask("GET", "orgs")["orgs"][0]["id"])

    def token(self, *rights: tuple[str, str]) -> str:
        """A new token with rights such as ("write", "bench/history")."""
        organisation = self.organisation_id()
        ids = {one["name"]: one["id"] for one in self.ask("GET", "buckets?limit=100")["buckets"]}
        permissions = [
            {"action": action, "resource": {"type": "buckets", "id": ids[name], "orgID": organisation}}
            for action, name in rights
        ]
        body = {"orgID": organisation, "description": "test", "permissions": permissions}
        return str(self.ask("POST", "authorizations", body)["token"])

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """A request of the operator; raises with the server's own words."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Token {OPERATOR}"}
        request = urllib.request.Request(f"{self.url}/api/v2/{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: HTTP {error.code}: {error.read().decode()}") from None
        return json.loads(text) if text.strip() else None
