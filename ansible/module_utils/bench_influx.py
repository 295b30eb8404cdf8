"""Talks HTTP to an InfluxDB server, for the modules that administer one.

Promises: secrets travel in headers and bodies only, never in a URL, and appear in no message; an InfluxQL error, which
comes with HTTP 200, is an error here too. Runs on the server's host under its own Python: standard library only.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

REQUEST_S_MAX = 30.0
# A difference from the wanted state: the fault in words, and the call that puts it right.
Difference = tuple[str, Callable[[], Any]]


class InfluxError(Exception):
    """The server did not do what it was asked; the text is its reason. `status` is 0 when it did not answer."""

    def __init__(self, text: str, status: int = 0) -> None:
        """Keep the HTTP status beside the text."""
        super().__init__(text)
        self.status = status


def basic(user: str, password: str) -> str:
    """Return the Authorization header of a user of InfluxDB 1.x."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


def call(
    url: str, method: str, path: str, authorization: str = "", query: dict[str, str] | None = None, body: Any = None
) -> Any:
    """Make one request and return the decoded answer (None when it is empty).

    `body` goes as JSON when it is a dict or a list, as a form when it is text that is already encoded.
    """
    headers = {"Authorization": authorization} if authorization else {}
    data = None
    if isinstance(body, str):
        data, headers["Content-Type"] = body.encode(), "application/x-www-form-urlencoded"
    elif body is not None:
        data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
    address = url.rstrip("/") + path + (f"?{urllib.parse.urlencode(query)}" if query else "")
    request = urllib.request.Request(address, data=data, headers=headers, method=method)
    # A proxy of the environment is for the world outside, not for this server.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=REQUEST_S_MAX) as answer:
            text = answer.read().decode("utf-8")
    except urllib.error.HTTPError as error:
        raise InfluxError(reason(error), error.code) from None
    except (urllib.error.URLError, OSError) as error:
        raise InfluxError(f"{url} does not answer: {getattr(error, 'reason', error)}") from None
    try:
        return json.loads(text) if text.strip() else None
    except (ValueError, RecursionError):
        raise InfluxError(
            f"{url} answers as no InfluxDB does: {text[:100]!r}. Correct influx_url", answer.status
        ) from None


def reason(error: urllib.error.HTTPError) -> str:
    """Return what the server says of a failed request."""
    text = error.read().decode("utf-8", "replace").strip()
    try:
        document = json.loads(text)
    except ValueError:
        return f"HTTP {error.code}: {text[:300]}"
    said = document.get("error") or document.get("message") or text if isinstance(document, dict) else text
    return f"HTTP {error.code}: {said}"


def influxql(url: str, authorization: str, statement: str, database: str = "") -> list[dict[str, Any]]:
    """Run one statement; return its rows, each with its series' name as `_series`."""
    form = urllib.parse.urlencode({"q": statement, "db": database})
    document = call(url, "POST", "/query", authorization, body=form) or {}
    if not isinstance(document, dict):
        raise InfluxError(f"{url} answers as no InfluxDB does: {str(document)[:100]!r}. Correct influx_url", 200)
    result = (document.get("results") or [{}])[0]
    error = document.get("error") or result.get("error")
    if error:
        raise InfluxError(str(error), 200)
    return [
        {"_series": series.get("name", ""), **dict(zip(series["columns"], row))}
        for series in result.get("series", [])
        for row in series.get("values", [])
    ]


def wait_until_up(url: str, seconds: float) -> bool:
    """Wait for the server to answer /ping; return whether it did."""
    until_s = time.monotonic() + seconds
    while True:
        try:
            call(url, "GET", "/ping")
            return True
        except InfluxError:
            if time.monotonic() >= until_s:
                return False
            time.sleep(0.2)


def converge(server: Any, change: bool) -> list[str]:
    """Return the differences found; with `change`, also put them right and compare again."""
    lines: list[str] = []
    for place, stage in enumerate(server.stages()):
        found: list[Difference] = stage()
        lines += [text for text, _put_right in found]
        if change:
            for _text, put_right in found:
                put_right()
        elif found and place == 0:  # a server that nobody has set up yet answers no further question
            return [*lines, *server.unasked]
    if change:
        left = [text for stage in server.stages() for text, _put_right in stage()]
        if left:
            raise InfluxError(f"the server took every request, but still: {'; '.join(left)}")
    return lines


def administer(module: Any, server: Any) -> None:
    """Bring `server` to its module's wanted state, or only compare, and end the module with the differences."""
    url, wait_s = module.params["url"], module.params["wait_s"]
    if not wait_until_up(url, 0 if module.check_mode else wait_s):
        if module.check_mode:
            module.exit_json(changed=True, differences=["the server does not run yet"], version="")
        module.fail_json(
            msg=f"InfluxDB does not answer at {url} within {wait_s:g} s: see `journalctl -u daq-bench-influxdb` on the"
            " server; a port that is taken is named there"
        )
    asked = module.params["mode"] == "apply"
    try:
        lines = converge(server, asked and not module.check_mode)
        version = str((call(url, "GET", "/health") or {}).get("version", "unstated"))
    except (InfluxError, ValueError, KeyError) as error:
        module.fail_json(msg=f"InfluxDB at {url}: {error}")
    module.exit_json(changed=bool(lines) and asked, differences=lines, version=version)
