"""Chooses a run's InfluxDB and speaks to it: 1.8 without a token, 1.8 with `user:password` as the token, or 2.x.

The command line comes first, then the environment, then the inventory; if none names a server, the bench uses its own on loopback.
A token comes from the environment alone and travels in a header: it is in no command line, no file of the bundle and no message."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.documents.run import TelemetryOfRun
from daq_bench.candidate_kit.bounded_http import bounded_response
from daq_bench.candidate_kit.influx_answers import (
    NO_INFLUXDB,
    TLS,
    WRITE_TIMEOUT_S,
    blames_lines,
    is_sendable,
    set_up_fault,
)
from daq_bench.candidate_kit.influx_answers import ORGANISATION as OF_ORGANISATION

DATABASE = "bench"
HISTORY = "history"  # retention policy that outlives the raw telemetry; in 2.x, the bucket DATABASE/history
TOKEN, READ_TOKEN = "DAQ_BENCH_INFLUX_TOKEN", "DAQ_BENCH_INFLUX_READ_TOKEN"  # names of variables
TOKEN_BEFORE = "INFLUX_TOKEN"  # the token's older name
URL, ORGANISATION, DATABASE_NAMES = "INFLUX_URL", "INFLUX_ORG", ("INFLUX_DATABASE", "INFLUX_BUCKET")
INVENTORY_KEY = "bench_influxdb"  # variable of the candidate, or of a group, in the inventory
INVENTORY_KEYS = ("url", "organisation", "database")
STORED = 204
OF_THE_MOMENT = (408, 425, 429)  # the statuses of 4xx that a later attempt may not get
ANOTHER_ADDRESS = f"Set {URL} (or --influx-url, or the inventory's {INVENTORY_KEY}.url) to the address of an InfluxDB"


class InfluxError(Exception):
    """The server did not do what it was asked. `status` is the HTTP status, 0 when there was no answer.

    `remedy`: what to correct, where the way to the server is set up wrongly and waiting does not help."""

    def __init__(self, text: str, status: int = 0, remedy: str = "") -> None:
        super().__init__(text)
        self.status, self.remedy = status, remedy

    @property
    def blames_lines(self) -> bool:
        """Whether a line of the write is at fault, which no later attempt gets stored."""
        return blames_lines(self.status, str(self).partition(": ")[2])


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

    def write(self, bucket: str, lines: str, timeout_s: float = WRITE_TIMEOUT_S) -> None:
        """Stores lines in `bucket`, DATABASE or DATABASE/POLICY. Raises InfluxError."""
        status, text, _ = self._send(self._write_path(bucket), lines.encode(), self.token, timeout_s)
        if status != STORED:
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
        kind = "application/x-www-form-urlencoded"
        status, text, _ = self._send("/query", form, self.read_token or self.token, timeout_s, kind)
        return series_of(status, text)

    def _send(
        self, path: str, body: bytes, token: str, timeout_s: float, kind: str = "text/plain; charset=utf-8"
    ) -> tuple[int, str, str | None]:
        """(status, text, Retry-After) within `timeout_s` in all.

        Asks no proxy, which serves the world outside. Follows no redirection: the token is this server's."""
        headers: dict[str, str | bytes] = {"Content-Type": kind, "Connection": "close"}
        if token:
            headers["Authorization"] = f"Token {token}".encode()
        parts = urllib.parse.urlsplit(self.url)
        scheme = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = scheme(parts.hostname or "", parts.port, timeout=timeout_s)
        connection.response_class = bounded_response(time.monotonic() + timeout_s)  # type: ignore[assignment]
        try:
            connection.request("POST", parts.path.rstrip("/") + path, body, headers)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise InfluxError(f"{self.url} {_words_of(error)}", 0, _remedy_of_the_way(error)) from None
        finally:
            connection.close()
        if 300 <= answer.status < 400:
            text = f"it redirects to {answer.headers.get('Location')}"
        return answer.status, text, answer.headers.get("Retry-After")


def _words_of(error: Exception) -> str:
    """Returns the server's fault in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"has a certificate that is not trusted: {_on_one_line(error.verify_message)}"
    # The text of a ValueError repeats the header that it is about.
    words = "" if isinstance(error, ValueError) else getattr(error, "strerror", None) or str(error)
    return f"does not answer: {_on_one_line(words) or type(error).__name__}"


def _remedy_of_the_way(error: Exception) -> str:
    """Returns what to correct where no later attempt gets further; empty for what may be an outage."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "Let SSL_CERT_FILE name the certificate of the authority that signed it, or correct the server's certificate"
    if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
        return f"The server does not speak TLS: begin {URL} with http://"
    if isinstance(error, socket.gaierror) and error.errno in (socket.EAI_NONAME, socket.EAI_NODATA):
        return ANOTHER_ADDRESS
    if isinstance(error, http.client.BadStatusLine) and not isinstance(error, http.client.RemoteDisconnected):
        return f"The server does not speak HTTP. {ANOTHER_ADDRESS}"
    return ""


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
        return _on_one_line(text)
    said = (document.get("error") or document.get("message")) if isinstance(document, dict) else None
    return _on_one_line(str(said or text))


def _on_one_line(text: str) -> str:
    return " ".join(text.split())[:300]


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
    """The same server with the tokens of the environment. Raises RefusedError for one that no header can carry."""
    for name in (TOKEN, TOKEN_BEFORE, READ_TOKEN):
        if not is_sendable(environment.get(name, "")):
            raise RefusedError(f"{name} holds a line end or another control character: set it to the token alone")
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
        influx.write(influx.database, "")
    except InfluxError as error:
        if remedy := error.remedy or _remedy(influx, error):
            said = str(error).removeprefix(f"{influx.url} ").rstrip(".")
            raise RefusedError(f"InfluxDB at {influx.url}: {said}. {remedy}") from None
        return str(error)
    return None


def _remedy(influx: Influx, error: InfluxError) -> str:
    """Returns what to correct; empty for an answer that a later attempt may not get. An empty write has no line that could be at fault."""
    status = error.status
    if status == 0 or status >= 500 or status in OF_THE_MOMENT:
        return ""
    if status == 401:
        what = "is not one that it knows" if influx.token else "is not set"
        return f"{TOKEN} {what}: set it to a token that may write (2.x), or to user:password (1.8)"
    if status == 403:
        return f"{TOKEN} may not write to {influx.database!r}: use the writer's token of `make observability`"
    fault = set_up_fault(str(error).partition(": ")[2])
    if fault == TLS:
        return f"Begin {URL} with https://"
    if fault == OF_ORGANISATION:
        return f"Set {ORGANISATION} to the organisation's name (now {influx.organisation or DATABASE!r})"
    if fault == NO_INFLUXDB or status != 404:
        return ANOTHER_ADDRESS
    return f"Set {DATABASE_NAMES[0]} to the database (2.x: the bucket), or create {influx.database!r} with `make observability`"


def reading_problem(error: InfluxError) -> str:
    """Returns why a read failed, with the remedy where a right is missing."""
    if error.status in (401, 403) or "not authorized" in str(error):
        return f"the token may not read ({error}); set {READ_TOKEN} to one that may"
    return str(error)
