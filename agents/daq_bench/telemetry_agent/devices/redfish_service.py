"""Reads documents of one BMC's Redfish service over TLS.

Promise: only GET; one limit of time for all that a sample asks, also against a BMC that sends a byte a second; documents and their pages
are bounded; no proxy and no path beyond this service, so that the password goes to nobody else. A redirect is followed only to the same
path with a slash at its end, at this service, whatever host it names. The password comes from the environment and is in no message.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import re
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from daq_bench.candidate_kit.bounded_http import bounded_response

DOCUMENT_BYTES_MAX = 4 * 2**20  # Thermal of a large server has 100 kB
PAGES_MAX = 32
REQUEST_S_MIN = 0.05
# iLO 4, Lenovo's x3650 M5 and older Supermicros answer so for a path without it (ansible/ansible#48296, bb-Ricardo/check_redfish#187).
MOVED = (301, 302, 307, 308)
PATH = re.compile(r"/redfish/v1(?:/[!-\x22$-~]*)?")  # printable ASCII; what follows a # points into the document


class Address(NamedTuple):
    """Where the service is and how its certificate is checked (`ca_file` empty: against the system's)."""

    host: str
    port: int
    user: str
    ca_file: str = ""
    insecure: bool = False
    fingerprint: str = (
        ""  # SHA-256 of the certificate itself, in small hexadecimal digits: such a one is trusted, whoever signed it
    )
    system: str = (
        ""  # which of several systems: the last part of its path; empty: the only one, or the only one with a BIOS
    )


class Session:
    """One connection, for one sample: a BMC closes those that wait. Every failure is an OSError."""

    def __init__(self, address: Address, password: str, limit_s: float) -> None:
        self._until_s = time.monotonic() + limit_s
        token = base64.b64encode(f"{address.user}:{password}".encode()).decode("ascii")
        self._headers = {"Authorization": f"Basic {token}", "Accept": "application/json", "OData-Version": "4.0"}
        self._connection = Pinned(address, limit_s) if address.fingerprint else _plain(address, limit_s)
        self._connection.response_class = bounded_response(self._until_s)  # type: ignore[assignment]

    def __enter__(self) -> Session:
        """Nothing is opened before the first question."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the connection."""
        self._connection.close()

    def get(self, path: Any) -> dict[str, Any]:
        """The document at a path."""
        if not isinstance(path, str) or not PATH.fullmatch(path.partition("#")[0]):
            raise OSError(f"a link leads to {repr(path)[:80]}, which is no path of this service")
        path = path.partition("#")[0]
        try:
            status, body, moved_to = self._exchange(path)
            if status in MOVED and moved_to == f"{path}/":
                status, body, _ = self._exchange(moved_to)
        except http.client.HTTPException as error:
            raise OSError(f"{path}: no sound HTTP: {type(error).__name__}") from None
        except OSError as error:
            # The message goes into bundles, which vendors get: a certificate's fault names the address.
            raise OSError(f"{path}: {str(error).replace(self._connection.host, '(withheld)')}") from None
        if status != http.HTTPStatus.OK:
            raise OSError(f"{path}: HTTP status {status}")
        return _document(path, body)

    def pages(self, path: Any, name: str) -> dict[str, Any]:
        """The document with the array `name` put together from all of its pages (`NAME@odata.nextLink`)."""
        document = self.get(path)
        rows, following, seen = document.get(name), document.get(f"{name}@odata.nextLink"), {path}
        while following is not None and isinstance(rows, list):
            page = self.get(following)
            if following in seen or len(seen) == PAGES_MAX:
                raise OSError(f"{path}: {name} has pages without end")
            seen.add(following)
            more = page.get(name)
            rows += more if isinstance(more, list) else []
            following = page.get(f"{name}@odata.nextLink")
        return document

    def _exchange(self, path: str) -> tuple[int, bytes, str]:
        """(status, body, the path that a redirect names)."""
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("no answer in time")
        self._connection.timeout = max(REQUEST_S_MIN, left_s)
        if self._connection.sock is not None:
            self._connection.sock.settimeout(self._connection.timeout)
        whole = False
        try:
            self._connection.request("GET", path, headers=self._headers)
            response = self._connection.getresponse()
            body = response.read(DOCUMENT_BYTES_MAX + 1)
            if len(body) > DOCUMENT_BYTES_MAX:
                raise OSError(f"a document of more than {DOCUMENT_BYTES_MAX // 2**20} MiB")
            whole = response.isclosed()
            return response.status, body, urlsplit(response.headers.get("Location") or "").path
        finally:
            if not whole:
                self._connection.close()


def link(document: Mapping[str, Any], name: str) -> Any:
    """The path in a link; None where there is none."""
    found = document.get(name)
    return found.get("@odata.id") if isinstance(found, Mapping) else None


def links(value: Any) -> list[Any]:
    """The paths in an array of links."""
    return [one.get("@odata.id") for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


class Pinned(http.client.HTTPSConnection):
    """A connection to the one certificate with that fingerprint; nothing is sent to another."""

    def __init__(self, address: Address, limit_s: float) -> None:
        super().__init__(
            address.host, address.port, timeout=limit_s, context=_context(address._replace(insecure=True, ca_file=""))
        )
        self._fingerprint = address.fingerprint

    def connect(self) -> None:
        """Raises OSError for another certificate."""
        super().connect()
        found = hashlib.sha256(self.sock.getpeercert(binary_form=True) or b"").hexdigest()
        if not hmac.compare_digest(found, self._fingerprint):
            self.close()
            raise OSError(f"its certificate has another fingerprint than the one that is trusted: {found}")


def _plain(address: Address, limit_s: float) -> http.client.HTTPSConnection:
    return http.client.HTTPSConnection(address.host, address.port, timeout=limit_s, context=_context(address))


def _context(address: Address) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=address.ca_file or None)
    if address.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _document(path: str, body: bytes) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):  # said below
        found = json.loads(body)
        if isinstance(found, dict):
            return found
    raise OSError(f"{path}: no sound JSON object: {body[:60]!r}")
