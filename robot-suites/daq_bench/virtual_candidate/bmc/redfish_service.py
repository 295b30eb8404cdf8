"""The Redfish service of the virtual BMC: `python -m daq_bench.virtual_candidate.bmc.redfish_service DIRECTORY PORT TLS-DIRECTORY`.

TLS and basic authentication on 127.0.0.1. The password comes in through the environment, never through the command line. Reads and
changes only the state files in DIRECTORY, which the IPMI side shares; every change that a client asks for goes to commands.log."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import ssl
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from daq_bench.virtual_candidate.bmc import mockup
from daq_bench.virtual_candidate.bmc.bios import Bios, Refusal
from daq_bench.virtual_candidate.bmc.mockup import Document, Mockup, Values
from daq_bench.virtual_candidate.bmc.power import Power
from daq_bench.virtual_candidate.bmc.sensors import Sensors
from daq_bench.virtual_candidate.emulated import qemu
from daq_bench.virtual_candidate.emulated.qmp import Qmp, QmpError
from daq_bench.virtual_candidate.files import append_json_line, read_json
from daq_bench.virtual_candidate.hardware import INLET, POWER

USER_VARIABLE = "VIRTUAL_BMC_USER"
PASSWORD_VARIABLE = "VIRTUAL_BMC_PASSWORD"
BODY_BYTES_MAX = 65536
WATCH_S = 0.5
PLANTED = "answers.json"  # {"POST /redfish/...": {status, document}}
OPEN_PATHS = ("/redfish", "/redfish/v1")  # open by the standard, so that a client can identify the service

# Names of Supermicro's fan modes in its Redfish extension -> names in hardware.FAN_MODES.
SUPERMICRO_FAN_MODES = {"Standard": "standard", "FullSpeed": "full", "Optimal": "optimal", "HeavyIO": "heavy-io"}
_FAN_MODE_NAMES = {name: key for key, name in SUPERMICRO_FAN_MODES.items()}


class ProblemError(Exception):
    """An answer that is an error."""

    def __init__(self, status: HTTPStatus, *refusals: Refusal) -> None:
        super().__init__(refusals[0].text)
        self.status = status
        self.refusals = list(refusals)


def problem(status: HTTPStatus, message: str, text: str) -> ProblemError:
    return ProblemError(status, Refusal(message, "", text))


class Service:
    """The resources' answers, without HTTP."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bios = Bios(directory)
        self.power = Power(directory)
        self.sensors = Sensors(directory)
        self.vendor = self.bios.vendor
        self.jobs: list[str] = []
        self._mockup = Mockup(self.vendor)
        self.at = self._mockup.at
        read = self.sensors.read
        self._values: Values = {
            "power_state": lambda: "On" if self.power.is_on() else "Off",
            "system_state": lambda: "Enabled" if self.power.is_on() else "StandbyOffline",
            "attributes": self.bios.current,
            "pending": self.bios.pending,
            "at_once": self.bios.at_once,
            "registry_attributes": lambda: mockup.registry_attributes(self.vendor),
            "registry_dependencies": lambda: mockup.registry_dependencies(self.vendor),
            "watts": lambda: read(POWER),
            "inlet_degc": lambda: read(INLET),
            "temperatures": lambda: mockup.temperatures(self.at["thermal"], read),
            "fans": lambda: mockup.fans(self.at["thermal"], read),
            "fan_mode": lambda: _FAN_MODE_NAMES[self.sensors.fan_mode().name],
            "jobs": lambda: [mockup.link(path) for path in self.jobs],
            "jobs_count": lambda: len(self.jobs),
        }

    def planted(self, question: str) -> tuple[HTTPStatus, Document] | None:
        """The answer that `answers.json` has to a question ("POST /redfish/..."), whatever it asks: what firmware says in a bad hour."""
        file = self.directory / PLANTED
        found = read_json(file).get(question) if file.exists() else None
        return None if found is None else (HTTPStatus(found["status"]), found["document"])

    def readable(self) -> list[str]:
        """The path of every resource that can be read."""
        return [*self._mockup.resources, *self.jobs]

    def document(self, path: str) -> Document:
        """The resource at one of these paths, as it is now."""
        return self._job(path) if path in self.jobs else self._mockup.filled(path, self._values)

    def patch(self, path: str, body: Document) -> Document:
        """Changes a resource and returns it. Raises ProblemError for a change that is not possible."""
        if path == self.at["settings"]:
            return self._set_attributes(body)
        if path == self.at.get("at_once"):
            attributes = body.get("Attributes") or {}
            known = [each.name for each in self.vendor.at_once]
            refusals = self.bios.refusals(attributes) + [
                Refusal("PropertyUnknown", name, f"The attribute {name} is not known to this manager.")
                for name in attributes
                if name not in known
            ]
            if refusals or not attributes:
                raise ProblemError(HTTPStatus.BAD_REQUEST, *refusals)
            self.bios.set_at_once(attributes)
            return self.document(path)
        if path == self.at.get("fan_mode"):
            mode = body.get("Mode")
            if mode not in SUPERMICRO_FAN_MODES:
                allowed = ", ".join(SUPERMICRO_FAN_MODES)
                text = f"The value {mode!r} of the property Mode is not in its list: {allowed}."
                raise problem(HTTPStatus.BAD_REQUEST, "PropertyValueNotInList", text)
            self.sensors.set_fan_mode(SUPERMICRO_FAN_MODES[mode])
            return self.document(path)
        raise problem(HTTPStatus.METHOD_NOT_ALLOWED, "OperationNotAllowed", f"{path} cannot be changed.")

    def post(self, path: str, body: Document) -> str | None:
        """Carries out an action; returns the path of the resource that it has made, if any."""
        if path == self.at["reset"]:
            self._reset(body.get("ResetType"))
        elif path == self.at["reset_bios"]:
            self.bios.reset_to_defaults()
        elif path == self.at.get("delete_job"):
            if not self.jobs or body.get("JobID") != self.jobs[-1].rpartition("/")[2] or not self.bios.scheduled:
                text = f"There is no job {body.get('JobID')} that could be deleted."
                raise problem(HTTPStatus.BAD_REQUEST, "ActionParameterNotSupported", text)
            self.bios.clear()
            self.jobs.pop()
        elif path == self.at.get("clear_pending"):
            if self.bios.scheduled:
                text = "The pending values are committed to a job; delete the job."
                raise problem(HTTPStatus.BAD_REQUEST, "OperationFailed", text)
            self.bios.clear()
        elif path == self.at.get("jobs"):
            if body.get("TargetSettingsURI") != self.at["settings"]:
                text = f"TargetSettingsURI must be {self.at['settings']}."
                raise problem(HTTPStatus.BAD_REQUEST, "ActionParameterNotSupported", text)
            self.bios.schedule()
            self.jobs.append(f"{self.at['jobs']}/JID_{len(self.jobs) + 1:012d}")
            return self.jobs[-1]
        else:
            raise problem(HTTPStatus.METHOD_NOT_ALLOWED, "OperationNotAllowed", f"{path} takes no POST.")
        return None

    def _set_attributes(self, body: Document) -> Document:
        attributes = body.get("Attributes")
        apply = body.get("@Redfish.SettingsApplyTime")
        unknown = sorted(set(body) - {"Attributes", "@Redfish.SettingsApplyTime"})
        if unknown or not isinstance(attributes, dict) or not attributes:
            text = f"Expected the object Attributes, found {', '.join(unknown) or 'none'}."
            raise problem(HTTPStatus.BAD_REQUEST, "PropertyMissing", text)
        if apply is not None and (not isinstance(apply, dict) or apply.get("ApplyTime") != "OnReset"):
            text = f"The value {apply!r} of @Redfish.SettingsApplyTime is not in its list: ApplyTime OnReset."
            raise problem(HTTPStatus.BAD_REQUEST, "PropertyValueNotInList", text)
        if self.vendor.needs_job and self.bios.scheduled:
            # As iDRAC 9: nothing else can be made pending until the job ran or was deleted.
            text = "Pending configuration values are already committed, unable to perform another set operation."
            raise problem(HTTPStatus.BAD_REQUEST, "OperationFailed", text)
        refusals = self.bios.refusals(attributes)
        if refusals:
            raise ProblemError(HTTPStatus.BAD_REQUEST, *refusals)
        self.bios.set(attributes, with_job=apply is not None)
        if self.vendor.needs_job and apply is not None:
            self.jobs.append(f"{self.at['jobs']}/JID_{len(self.jobs) + 1:012d}")
        return self.document(self.at["settings"])

    def _reset(self, kind: Any) -> None:
        actions = {
            "On": self.power.on,
            "ForceOn": self.power.on,
            "ForceOff": self.power.off,
            "GracefulShutdown": self.power.shutdown,
            "ForceRestart": self.power.reset,
            "PowerCycle": self.power.cycle,
        }
        if kind == "GracefulRestart":  # takes as long as the guest's shutdown does: the answer must not wait for it
            threading.Thread(target=self.power.restart_gracefully, daemon=True).start()
        elif kind in actions:
            actions[kind]()
        else:
            reset = self.document(self.at["system"])["Actions"]["#ComputerSystem.Reset"]
            allowed = ", ".join(reset["ResetType@Redfish.AllowableValues"])
            text = f"The value {kind!r} of the parameter ResetType is not in its list: {allowed}."
            raise problem(HTTPStatus.BAD_REQUEST, "ActionParameterValueNotInList", text)

    def _job(self, path: str) -> Document:
        # Only the newest job can still wait: a reset carries out all pending ones.
        waits = path == self.jobs[-1] and self.bios.scheduled
        return {
            **mockup.link(path),
            "@odata.type": "#DellJob.v1_0_0.DellJob",
            "Id": path.rpartition("/")[2],
            "Name": "Configure BIOS",
            "JobType": "BIOSConfiguration",
            "JobState": "Scheduled" if waits else "Completed",
        }


class Handler(BaseHTTPRequestHandler):
    """HTTP around `service`: authentication, JSON, entity tags."""

    service: Service
    credentials: bytes  # user:password
    protocol_version = "HTTP/1.1"
    server_version = "VirtualBMC/1.0"
    timeout = 30  # an idle connection must not keep its thread for ever

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_PATCH(self) -> None:
        self._answer(self._patch)

    def do_POST(self) -> None:
        self._answer(self._post)

    def do_PUT(self) -> None:
        self._answer(self._refuse)

    def do_DELETE(self) -> None:
        self._answer(self._refuse)

    def log_message(self, format: str, *arguments: Any) -> None:
        """One line per request; a request's line and status hold no secret."""
        sys.stderr.write(f"{self.log_date_time_string()} {format % arguments}\n")

    @property
    def _resource(self) -> str:
        return self.path.partition("?")[0].rstrip("/")

    def _get(self) -> None:
        document = self._found()
        self._send(HTTPStatus.OK, document, {"ETag": _tag(document)})

    def _patch(self) -> None:
        before = self._found()
        body = self._body()
        wanted = self.headers.get("If-Match")
        demanded = self.service.vendor.tag_demanded
        if wanted is None and demanded and self._resource == self.service.at["settings"]:
            raise problem(
                HTTPStatus(demanded), "PreconditionRequired", "The request must name an entity tag in If-Match."
            )
        if wanted not in (None, "*", _tag(before)):
            text = f"{self._resource} was changed meanwhile; read it again."
            raise problem(HTTPStatus.PRECONDITION_FAILED, "PreconditionFailed", text)
        self._log(body)
        self._send(HTTPStatus.OK, self.service.patch(self._resource, body))

    def _post(self) -> None:
        body = self._body()
        self._log(body)
        made = self.service.post(self._resource, body)
        if made:
            self._send(HTTPStatus.ACCEPTED, {"@odata.id": made}, {"Location": made})
        else:
            self._send(HTTPStatus.NO_CONTENT, None)

    def _refuse(self) -> None:
        self._found()
        text = f"{self._resource} does not take {self.command}."
        raise problem(HTTPStatus.METHOD_NOT_ALLOWED, "OperationNotAllowed", text)

    def _answer(self, work: Callable[[], None]) -> None:
        try:
            self._authenticate()
            planted = self.service.planted(f"{self.command} {self._resource}")
            if planted is None:
                work()
            else:
                self.close_connection = True  # the body is not read
                self._send(*planted)
        except ProblemError as found:
            # The body may not have been read: the next request on this connection would begin inside of it.
            self.close_connection = True
            realm = {"WWW-Authenticate": 'Basic realm="BMC"'} if found.status == HTTPStatus.UNAUTHORIZED else {}
            self._send(found.status, mockup.error(found.refusals), realm)

    def _authenticate(self) -> None:
        if self.command == "GET" and self._resource in OPEN_PATHS:
            return
        scheme, _, encoded = self.headers.get("Authorization", "").partition(" ")
        try:
            given = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            given = b""
        if scheme.lower() != "basic" or not hmac.compare_digest(given, self.credentials):
            text = "User name and password are needed, or wrong."
            raise problem(HTTPStatus.UNAUTHORIZED, "InsufficientPrivilege", text)

    def _found(self) -> Document:
        if self._resource not in self.service.readable():
            raise problem(HTTPStatus.NOT_FOUND, "ResourceMissingAtURI", f"There is no resource at {self._resource}.")
        return self.service.document(self._resource)

    def _body(self) -> Document:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            text = f"Content-Length must be from 0 to {BODY_BYTES_MAX} bytes."
            raise problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "MalformedJSON", text)
        try:
            document = json.loads(self.rfile.read(int(length)) or b"{}")
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise problem(HTTPStatus.BAD_REQUEST, "MalformedJSON", "The body is no JSON object.")
        return document

    def _log(self, body: Document) -> None:
        line = {"via": "redfish", "method": self.command, "path": self._resource, "body": body}
        append_json_line(self.service.directory / "commands.log", line)

    def _send(self, status: HTTPStatus, document: Document | None, headers: dict[str, str] | None = None) -> None:
        content = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("OData-Version", "4.0")
        self.send_header("Cache-Control", "no-cache")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if document is not None:
            self.send_header("Content-Type", "application/json;charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _tag(document: Document) -> str:
    return f'"{hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]}"'


class Server(ThreadingHTTPServer):
    """The handshake happens in the connection's own thread: a client that does not finish it keeps nobody else waiting."""

    daemon_threads = True

    def __init__(self, port: int, handler: type[Handler], context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs one line, no traceback: a client that goes away or does not trust the certificate is no fault of the service."""
        fault = sys.exc_info()[1]
        if isinstance(fault, (OSError, ssl.SSLError)):
            sys.stderr.write(f"connection from {client_address[0]}: {fault}\n")
        else:
            super().handle_error(request, client_address)


def watch_resets(directory: Path) -> None:
    """Tells the BIOS of restarts that the guest does by itself, for as long as the service runs."""
    while True:
        # Without a machine, or while it is off, nobody answers there.
        with suppress(QmpError, OSError), Qmp(directory, qemu.EVENTS_SOCKET) as qmp:
            while True:
                if qmp.wait_event("RESET", WATCH_S, guest=True):
                    Power(directory).guest_reset()
                qmp.execute("query-status")  # fails when QEMU has ended
        time.sleep(WATCH_S)


def main() -> int:
    directory, port = Path(sys.argv[1]), int(sys.argv[2])
    tls = Path(sys.argv[3])
    # Removed from the environment, so that processes started from here do not get them.
    credentials = f"{os.environ.pop(USER_VARIABLE)}:{os.environ.pop(PASSWORD_VARIABLE)}"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls / "server.pem", tls / "server.key")
    handler = type("BmcHandler", (Handler,), {"service": Service(directory), "credentials": credentials.encode()})
    server = Server(port, handler, context)
    threading.Thread(target=watch_resets, args=(directory,), daemon=True).start()
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
