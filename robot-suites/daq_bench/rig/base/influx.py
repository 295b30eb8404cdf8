"""Chooses a run's InfluxDB and speaks to it: 1.8 without a token, 1.8 with `user:password` as the token, or 2.x.

The command line comes first, then the environment, then the inventory; if none names a server, the bench uses its own on loopback.
A token comes from the environment alone and travels in a header: it is in no command line, no file of the bundle and no message."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.documents.run import TelemetryOfRun

DATABASE = "bench"
HISTORY = "history"  # retention policy that outlives the raw telemetry; in 2.x, the bucket DATABASE/history
TOKEN, READ_TOKEN = "DAQ_BENCH_INFLUX_TOKEN", "DAQ_BENCH_INFLUX_READ_TOKEN"  # names of variables
TOKEN_BEFORE = "INFLUX_TOKEN"  # the token's older name
URL, ORGANISATION, DATABASE_NAMES = "INFLUX_URL", "INFLUX_ORG", ("INFLUX_DATABASE", "INFLUX_BUCKET")
INVENTORY_KEY = "bench_influxdb"  # variable of the candidate, or of a group, in the inventory
INVENTORY_KEYS = ("url", "organisation", "database")
TIMEOUT_S = 10.0


class InfluxError(Exception):
    """The server did not do what it was asked. `status` is the HTTP status, 0 when there was no answer."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Influx:
    """A server, the database (2.x: bucket) of the telemetry, and the rights that the rig has got."""

    url: str
    database: str = DATABASE
    organisation: str = ""
    token: str = field(default="", repr=False)
    read_token: str = field(default="", repr=False)
    configured: bool = True  # False: the bench's own

    @property
    def history(self) -> str:
        """Bucket of the history, in the spelling that both 1.8 and 2.x know."""
        return f"{self.database}/{HISTORY}"

    @property
    def agent_arguments(self) -> list[str]:
        """The agent's options; the token is in its environment."""
        organisation = [f"--org={self.organisation or DATABASE}"] if self.token else []
        return [f"--influx-url={self.url}", f"--database={self.database}", *organisation]

    @property
    def agent_environment(self) -> dict[str, str]:
        """The token as the agent's environment; empty without one, so that a token meant for another server never gets to this one."""
        return {TOKEN: self.token, READ_TOKEN: "", TOKEN_BEFORE: ""}

    def told(self) -> TelemetryOfRun:
        """run.json's `telemetry`, for a later replay."""
        return TelemetryOfRun(self.url, self.database, self.organisation, self.configured)

    def write(self, bucket: str, lines: str, timeout_s: float = TIMEOUT_S) -> None:
        """Stores lines in `bucket`, DATABASE or DATABASE/POLICY. Raises InfluxError."""
        status, text, _ = self._send(self._write_path(bucket), lines.encode(), self.token, timeout_s)
        if status != 204:
            raise InfluxError(f"HTTP {status}: {_reason(text)}", status)

    def deliver(self, lines: bytes, timeout_s: float) -> tuple[int, str, str | None]:
        """Sends telemetry for somebody else, who gets the answer: (status, text, Retry-After). Raises InfluxError without one."""
        return self._send(self._write_path(self.database), lines, self.token, timeout_s)

    def _write_path(self, bucket: str) -> str:
        query = urllib.parse.urlencode({"org": self.organisation or DATABASE, "bucket": bucket, "precision": "ns"})
        return f"/api/v2/write?{query}"

    def query(self, statement: str, timeout_s: float = 60.0) -> list[dict[str, Any]]:
        """Returns the series that an InfluxQL statement gives, times in ns. Raises InfluxError, also for errors that come as HTTP 200."""
        form = urllib.parse.urlencode({"db": self.database, "epoch": "ns", "q": statement}).encode()
        status, text, _ = self._send("/query", form, self.read_token or self.token, timeout_s)
        return series_of(status, text)

    def _send(self, path: str, body: bytes, token: str, timeout_s: float) -> tuple[int, str, str | None]:
        headers = {"Authorization": f"Token {token}"} if token else {}
        request = urllib.request.Request(self.url.rstrip("/") + path, body, headers)
        # The environment's proxy serves the world outside, not the laboratory's server.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout_s) as answer:
                return int(answer.status), answer.read().decode("utf-8", "replace"), None
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode("utf-8", "replace"), error.headers.get("Retry-After")
        except (OSError, ValueError, urllib.error.URLError) as error:
            raise InfluxError(f"{self.url} does not answer: {getattr(error, 'reason', error)}") from None


def series_of(status: int, text: str) -> list[dict[str, Any]]:
    """Returns the series of an answer. Raises InfluxError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise InfluxError(f"HTTP {status}: {_reason(text)}", status) from None
    results = (document.get("results") or [{}]) if isinstance(document, dict) else None
    if not isinstance(results, list) or not isinstance(results[0], dict):
        raise InfluxError(f"HTTP {status}: {_reason(text)} is no answer of an InfluxDB", status)
    error = document.get("error") or document.get("message") or results[0].get("error")
    if status != 200 or error:
        raise InfluxError(f"HTTP {status}: {str(error or _reason(text))[:300]}", status)
    series = results[0].get("series") or []
    if not isinstance(series, list) or not all(isinstance(one, dict) for one in series):
        raise InfluxError(f"HTTP {status}: {_reason(text)} is no answer of an InfluxDB", status)
    return series


def _reason(text: str) -> str:
    """Returns the server's reason for a failed request."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()[:300]
    said = (document.get("error") or document.get("message")) if isinstance(document, dict) else None
    return str(said or text)[:300]


def chosen(
    url: str | None, inventory: Mapping[str, Any] | None = None, environment: Mapping[str, str] = os.environ
) -> Influx | None:
    """Returns the server that somebody named, None if nobody did. `url` is the command line's. Raises RefusedError for bad settings."""
    if inventory is not None and not isinstance(inventory, Mapping):
        raise RefusedError(
            f"inventory: {INVENTORY_KEY} is {inventory!r}; write it as {{url: http://HOST:8086, database: {DATABASE}}}"
        )
    told = dict(inventory or {})
    if unknown := [key for key in told if key not in INVENTORY_KEYS]:
        hint = (
            f"A token never stands in the inventory: set the environment variable {TOKEN}" if "token" in unknown else ""
        )
        raise RefusedError(
            f"inventory: {INVENTORY_KEY} has the unknown key {unknown[0]!r}. {hint or nearest(str(unknown[0]), INVENTORY_KEYS)}"
        )
    address = url or environment.get(URL) or told.get("url")
    if not address:
        for name in (ORGANISATION, *DATABASE_NAMES):
            if environment.get(name):
                raise RefusedError(f"{name} is set, but not {URL}: set {URL}=http://HOST:8086, or unset {name}")
        return None
    where = "--influx-url" if url else URL if environment.get(URL) else f"inventory: {INVENTORY_KEY}.url"
    check_url(str(address), where)
    made = Influx(
        url=str(address),
        database=_database(environment) or str(told.get("database", DATABASE)),
        organisation=environment.get(ORGANISATION) or str(told.get("organisation", "")),
    )
    return with_tokens(made, environment)


def with_tokens(influx: Influx, environment: Mapping[str, str] = os.environ) -> Influx:
    """The same server with the tokens of the environment."""
    token = environment.get(TOKEN) or environment.get(TOKEN_BEFORE, "")
    return replace(influx, token=token, read_token=environment.get(READ_TOKEN) or token)


def _database(environment: Mapping[str, str]) -> str:
    given = {name: environment[name] for name in DATABASE_NAMES if environment.get(name)}
    if len(set(given.values())) > 1:
        raise RefusedError(
            f"{' and '.join(f'{key}={value}' for key, value in given.items())} contradict each other: set one of them"
        )
    return next(iter(given.values()), "")


def check_url(url: str, where: str) -> None:
    """Raises RefusedError when `url` is no address of a server, or holds a password."""
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        raise RefusedError(f"{where}={url!r} is no address of a server: write http://HOST:8086")
    if parts.username or parts.password:
        raise RefusedError(
            f"{where} must not hold a password: put it into the environment variable {TOKEN} (1.8: as user:password)"
        )


def check(influx: Influx) -> str | None:
    """Returns why the server takes no telemetry for now, None if it takes it; tries it by an empty write.

    Raises RefusedError when the server answers that the settings are wrong: waiting does not help then."""
    try:
        influx.write(influx.database, "", TIMEOUT_S)
    except InfluxError as error:
        if error.status in (401, 403, 404):
            raise RefusedError(f"InfluxDB at {influx.url}: {error}. {_remedy(influx, error)}") from None
        return str(error)
    return None


def _remedy(influx: Influx, error: InfluxError) -> str:
    if error.status == 401:
        what = "is not one that it knows" if influx.token else "is not set"
        return f"{TOKEN} {what}: set it to a token that may write (2.x), or to user:password (1.8)"
    if error.status == 403:
        return f"{TOKEN} may not write to {influx.database!r}: use the writer's token of `make observability`"
    if "organization" in str(error):
        return f"Set {ORGANISATION} to the organisation's name (now {influx.organisation or DATABASE!r})"
    return f"Set {DATABASE_NAMES[0]} to the database (2.x: the bucket), or create {influx.database!r} with `make observability`"


def reading_problem(error: InfluxError) -> str:
    """Returns why a read failed, with the remedy where a right is missing."""
    if error.status in (401, 403) or "not authorized" in str(error):
        return f"the token may not read ({error}); set {READ_TOKEN} to one that may"
    return str(error)
