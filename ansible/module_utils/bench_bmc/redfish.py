"""One server's BIOS and power switch through its BMC's Redfish service, by OpenStack's client sushy.

Promises: the certificate is verified unless the caller says otherwise; every call and every wait is bounded; an
unreachable BMC, a certificate that is not trusted and a refused user are told apart, each with its remedy.
Runs on the control node, in the bench's Python environment. Knows nothing of Ansible.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
import sushy
from ansible.module_utils.bench_bmc.bios import GRACEFUL_S_MAX, NO_SETTINGS, Firmware, text_of
from ansible.module_utils.bench_bmc.errors import BmcError, BmcSilentError
from sushy import auth, connector, exceptions

CONNECT_S_MAX, READ_S_MAX = 10, 60
TRIES, TRY_PAUSE_S = 2, 1  # of one request; what waits for a BMC tries on anyway
POLL_S = 2.0
NO_REDFISH = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
HTTP_NOT_FOUND, HTTP_NOT_ALLOWED = 404, 405
ACCEPTED, NO_CONTENT = 202, 204
TASK_RUNS, TASK_REFUSED = (
    ("Starting", "Running", "Stopping", "Cancelling"),
    ("Exception", "Killed", "Cancelled", "Interrupted"),
)
TASK_S_MAX = 60.0
OK, BAD_REQUEST, UNAUTHORIZED = 200, 400, 401
# Messages that say no more than that all is well, or that a restart is still to come.
NO_REFUSAL = ("Success", "SystemResetRequired", "ResetRequired")
EXTENDED_INFO = "@Message.ExtendedInfo"
TAG_REFUSED = (412, 428)  # an entity tag that does not match, and one that is missing
REGISTRIES, BIOS_REGISTRY = "/redfish/v1/Registries", "biosattributeregistry"
REGISTRY_VERSION = re.compile(r"(?:[._]v?\d+)(?:[._]\d+)*(?:\.json)?$|\.json$", re.IGNORECASE)
APPLY_TIME_TYPE = "#Settings.v1_1_0.PreferredApplyTime"
JOB_WAITS = ("Scheduled", "New", "Pending", "ReadyForExecution", "Scheduling", "Waiting")
NOT_THERE = (400, 404, 405, 410, 501)  # what BMCs answer for a resource that they do not have
AT_ONCE_S_MAX = 20.0  # until an attribute that needs no reset reads back; iDRAC takes some seconds
POWER_OFF_S_MAX = 60.0

logging.getLogger("sushy").addHandler(logging.NullHandler())  # its warnings would land in Ansible's output
logging.getLogger("sushy").propagate = False


@dataclass(frozen=True)
class Service:
    """Describes where the Redfish service is and how it is entered."""

    address: str
    port: int
    user: str
    password: str
    password_from: str  # what holds the password, for messages
    ca_file: str = ""  # empty: the certificates that Python's requests trusts
    insecure: bool = False
    fingerprint: str = ""  # SHA-256 of the certificate itself; such a one is trusted, whoever signed it
    system: str = (
        ""  # which of several systems: the last part of its path; empty: the only one, or the only one with a BIOS
    )

    def __repr__(self) -> str:
        """Describe it without the password."""
        return f"Service({self.url}, user {self.user})"

    @property
    def url(self) -> str:
        """Return the base URL."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"https://{host}:{self.port}"

    @property
    def where(self) -> str:
        """Name the service for people."""
        return f"BMC {self.address} port {self.port}, user {self.user} (Redfish)"


@dataclass(frozen=True)
class Settings:
    """The resource that takes pending settings: its path, what it shows, its entity tag and its actions."""

    path: str
    attributes: dict[str, Any]
    tag: str
    actions: dict[str, Any]

    def tags(self) -> list[str]:
        """Return the entity tags to try, in this order: as the service gave it, its strong form, any, none."""
        strong = self.tag.removeprefix("W/")
        return list(dict.fromkeys([*filter(None, (self.tag, strong)), *([] if self.tag else [""]), "*", ""]))


@dataclass(frozen=True)
class Refusal:
    """A service's refusal of attributes: its words, those by attribute where it names some, and whether it took the others."""

    said: str = ""
    named: Mapping[str, str] = field(default_factory=dict)
    took_others: bool = False


class NotTakenError(Exception):
    """The service names properties that it did not take."""

    def __init__(self, refusal: Refusal) -> None:
        """Keep what it said."""
        super().__init__(refusal.said)
        self.refusal = refusal


class Registry(NamedTuple):
    """The word of the attribute registry: the values that are offered, what is read-only, and what is a command or a secret."""

    offered: dict[str, list[str]] = {}  # noqa: RUF012 (never written to)
    fixed: frozenset[str] = frozenset()
    unkept: frozenset[str] = frozenset()


def fault_of(service: Service, error: Exception) -> BmcError:
    """Turn a failure of the client into one message with cause and remedy."""
    text = " ".join(str(error).split())
    if isinstance(error, exceptions.AccessError) and "PasswordChangeRequired" in text:
        return BmcError(
            f"{service.where}: {said_by(error)} Remedy: log in once to the BMC's web page as {service.user} and change the password, as it"
            f" demands for one that was delivered with it; then put the new one into {service.password_from}"
        )
    if isinstance(error, exceptions.AccessError):
        said = words_of(error.extended_info).rstrip(".")
        words = f" ({said})" if said else ""
        return BmcError(
            f"{service.where}: it refuses this user and password{words}. Remedy: correct bmc.user or the password in"
            f" {service.password_from}, unlock the user, or give it the right to configure"
        )
    if isinstance(error, exceptions.ConnectionError):
        if "Fingerprints did not match" in text:
            return BmcError(
                f"{service.where}: its certificate is not the one of bmc.redfish_fingerprint, so that no password was sent. Remedy: find"
                " out whether the BMC got a new certificate, or another machine answers; then correct the fingerprint"
            )
        if "NO_CERTIFICATE_OR_CRL_FOUND" in text:
            return BmcError(
                f"{service.where}: no certificate stands in {service.ca_file}. Remedy: name a file with the CA's certificate (PEM) in"
                " bmc.redfish_ca_file"
            )
        if "CERTIFICATE_VERIFY_FAILED" in text or "certificate verify failed" in text:
            reason = text.partition("certificate verify failed: ")[2].partition(" (_ssl")[0] or "not verified"
            return BmcError(
                f"{service.where}: its certificate is not trusted: {reason}. Remedy: name the file with the CA's"
                " certificate in bmc.redfish_ca_file, or the SHA-256 of a self-signed one in bmc.redfish_fingerprint;"
                " bmc.insecure: true goes without verification"
            )
        if "doesn't match" in text or "Hostname mismatch" in text or "IP address mismatch" in text:
            return BmcError(
                f"{service.where}: its certificate is for another name. Remedy: use the certificate's name as"
                " bmc.address, or give the BMC a certificate for this one"
            )
        return BmcSilentError(
            f"{service.where}: it does not answer. Remedy: check bmc.address and bmc.redfish_port, that the BMC is on"
            f" this network and that Redfish is enabled in it. Reason: {reason_of(text)}"
        )
    if isinstance(error, exceptions.ServerSideError):
        return BmcSilentError(
            f"{service.where}: it failed by itself: {said_by(error).rstrip('.')}. Remedy: wait a few minutes, in case that it is starting;"
            " then reset the BMC"
        )
    return BmcError(f"{service.where}: {text}")


@contextlib.contextmanager
def speaking_to(service: Service) -> Iterator[None]:
    """Whatever the service answers, also what is no Redfish (of which the client makes all kinds of errors), becomes a BmcError."""
    try:
        yield
    except exceptions.SushyError as error:
        raise fault_of(service, error) from error
    except NotTakenError as error:
        told = "; ".join(f"{name}: {said}" for name, said in error.refusal.named.items())
        raise BmcError(f"{service.where}: it refused what it was asked: {told}") from error
    except NO_REDFISH as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise BmcError(
            f"{service.where}: its answer is no sound Redfish document ({said}). Remedy: reset or update the BMC"
        ) from error


def reason_of(text: str) -> str:
    """Shorten the client's chain of exceptions to its last link."""
    return text.rpartition("Caused by ")[2].rstrip(")") if "Caused by " in text else text


class PinnedAdapter(requests.adapters.HTTPAdapter):
    """Takes the one certificate with that SHA-256 for the service's, before anything is sent, and asks nobody who signed it."""

    def __init__(self, pin: str) -> None:
        """Keep what the pool of connections gets."""
        self._pin = pin
        super().__init__()

    def init_poolmanager(self, *words: Any, **options: Any) -> None:
        """Hand the fingerprint to urllib3, which compares it."""
        super().init_poolmanager(*words, **{**options, "assert_fingerprint": self._pin})


def client(service: Service, url: str) -> connector.Connector:
    """Return the client, which has not logged in yet."""
    pin = service.fingerprint.replace(":", "").lower()
    verify: bool | str = not (service.insecure or pin) and (service.ca_file or True)
    link = connector.Connector(
        url,
        verify=verify,
        server_side_retries=TRIES,
        server_side_retries_delay=TRY_PAUSE_S,
        default_request_timeout=READ_S_MAX,
        connect_timeout=CONNECT_S_MAX,
    )
    link._session.hooks["response"].append(examined)
    # Neither a proxy nor ~/.netrc of whoever runs the bench may come between.
    link._session.trust_env = False
    if pin:
        link._session.mount("https://", PinnedAdapter(pin))
    return link


def connect(service: Service) -> System:
    """Log in and find the one computer system. Raises BmcError."""
    if service.ca_file and not service.insecure and not service.fingerprint and not os.path.isfile(service.ca_file):
        raise BmcError(
            f"bmc.redfish_ca_file: {service.ca_file} does not exist; correct the path (relative to the repository)"
        )
    link = client(service, service.url)
    with speaking_to(service):
        root = sushy.Sushy(
            service.url, auth=auth.BasicAuth(service.user, service.password), connector=link, server_side_retries=TRIES
        )
        return System(service, root, chosen_system(service, root.get_system_collection().get_members()))


def chosen_system(service: Service, systems: Sequence[Any]) -> Any:
    """Return the system that `service` names, else the only one, else the only one with a BIOS (an HGX baseboard has none)."""
    if service.system:
        named = [each for each in systems if each.path.rstrip("/").rpartition("/")[2] == service.system]
        if named:
            return named[0]
    elif len(systems) == 1:
        return systems[0]
    else:
        with_bios = [each for each in systems if _path((each.json or {}).get("Bios"))]
        if len(with_bios) == 1:
            return with_bios[0]
    if not systems:
        raise BmcError(
            f"{service.where}: it manages no system. Remedy: correct bmc.address to the server's own BMC (a chassis, a switch and a power"
            " shelf have one, too); where it is that, reset the BMC"
        )
    names = ", ".join(each.path.rstrip("/").rpartition("/")[2] for each in systems)
    wanted = f"no system {service.system}; it has" if service.system else f"{len(systems)} systems"
    raise BmcError(f"{service.where}: it manages {wanted}: {names}. Remedy: name one of them in bmc.redfish_system")


class System:
    """The computer system behind a Redfish service."""

    def __init__(self, service: Service, root: Any, system: Any) -> None:
        """Keep the client's objects."""
        self.service, self.root, self.system = service, root, system
        self._registry: Registry | None = None  # large; changes with a restart alone
        self._beside: Sequence[str] = ()
        self._at_once: dict[str, str] = {}  # attribute -> path of the resource that holds it

    @property
    def manufacturer(self) -> str:
        """Return what the BMC calls its maker."""
        return str(self.system.manufacturer or "")

    def close(self) -> None:
        """End the connection."""
        self.root._conn.close()

    def is_at_once(self, name: str) -> bool:
        """Say whether an attribute is of a resource beside the BIOS, in force at once."""
        return name in self._at_once

    def look_beside(self, paths: Sequence[str]) -> None:
        """Name resources whose attributes count beside those of the BIOS, and are in force at once; the first that is there is taken."""
        self._beside = paths

    def firmware(self) -> Firmware | None:
        """Read the BIOS attributes and those beside them; None where the service has none."""
        with speaking_to(self.service):
            beside = self._attributes_beside()
            try:
                bios = self.system.bios
                bios.refresh(force=True)
            except (exceptions.MissingAttributeError, exceptions.ResourceNotFoundError):
                return Firmware(beside, {}, {}) if beside else None
            if self._registry is None:
                self._registry = registry_of(self.root, bios)
            own = bios.attributes or {}
            settings = self._settings(bios)
            pending = {} if settings is None else settings.attributes
            stated = (bios.json or {}).get("@Redfish.Settings")
            told = named_in(stated.get("Messages"), own) if isinstance(stated, dict) else {}
            return Firmware({**beside, **own}, pending, *self._registry, settings is not None, told)

    def _attributes_beside(self) -> dict[str, Any]:
        for path in self._beside:
            try:
                found = self.root._conn.get(path).json().get("Attributes")
            except exceptions.HTTPError as error:
                if error.status_code in NOT_THERE:
                    continue
                raise  # it fails just now: its first values are still to be put back
            if not isinstance(found, dict):
                continue
            self._at_once = dict.fromkeys(found, path)
            return found
        return {}

    def _settings(self, bios: Any) -> Settings | None:
        """Return the resource that takes pending settings; None where the service has none.

        Some services have one and do not link it (older AMI firmware), or link it without a path: it is looked for at its usual places."""
        stated = (bios.json or {}).get("@Redfish.Settings")
        link = stated.get("SettingsObject") if isinstance(stated, dict) else None
        linked = link.get("@odata.id") if isinstance(link, dict) else None
        for path in [linked] if linked else [f"{bios.path.rstrip('/')}/{name}" for name in ("SD", "Settings")]:
            try:
                answer = self.root._conn.get(path)
                document = answer.json()
            except exceptions.HTTPError as error:
                # Some have the resource only once a setting was made pending (AMI): it is written to all the same where it is linked.
                if linked and error.status_code == HTTP_NOT_FOUND:
                    return Settings(path, {}, "", {})
                if error.status_code in NOT_THERE:
                    continue
                raise
            attributes, actions = document.get("Attributes"), document.get("Actions")
            tag = answer.headers.get("ETag") or document.get("@odata.etag") or ""
            return Settings(
                path,
                dict(attributes) if isinstance(attributes, dict) else {},
                str(tag),
                actions if isinstance(actions, dict) else {},
            )
        return None

    def set_attributes(self, attributes: dict[str, str]) -> dict[str, str]:
        """Make attributes pending; return the BMC's refusals by attribute. All at once, else those that it names apart from the others,
        else one by one to find out. Those that it names go first: what is taken may make a job (iDRAC), after which nothing more is."""
        beside = {name: value for name, value in attributes.items() if name in self._at_once}
        own = {name: value for name, value in attributes.items() if name not in beside}
        if beside and own:
            return {**self.set_attributes(beside), **self.set_attributes(own)}
        refusal = self._try_to_set_beside(beside) if beside else self._try_to_set(attributes)
        named = {name: value for name, value in attributes.items() if name in refusal.named}
        refusals = {name: _refused({name: value}, refusal.named[name]) for name, value in named.items()}
        if refusal.took_others or not refusal.said:
            return refusals
        if len(attributes) == 1:
            return refusals or dict.fromkeys(attributes, _refused(attributes, refusal.said))
        others = {name: value for name, value in attributes.items() if name not in named}
        for group in [named, others] if named and others else [{name: value} for name, value in attributes.items()]:
            refused = self.set_attributes(group)
            refusals = {**{name: said for name, said in refusals.items() if name not in group}, **refused}
        return refusals

    def _try_to_set(self, attributes: dict[str, str]) -> Refusal:
        with speaking_to(self.service):
            bios = self.system.bios
            settings = self._settings(bios)
            if settings is None:
                return Refusal(NO_SETTINGS, dict.fromkeys(attributes, NO_SETTINGS))
            body: dict[str, Any] = {"Attributes": self._typed(bios, attributes)}
            # Where the service offers the choice (iDRAC makes its job of it), it must be told; else a reset is the rule.
            if sushy.ApplyTime.ON_RESET in (bios.supported_apply_times or []):
                body["@Redfish.SettingsApplyTime"] = {"@odata.type": APPLY_TIME_TYPE, "ApplyTime": "OnReset"}
            return self._refusal(attributes, lambda: self._patch(settings, bios.path, body))

    @staticmethod
    def _typed(bios: Any, attributes: dict[str, str]) -> dict[str, Any]:
        """Return the values in the type that the BIOS has them in: a number and a truth value are no text."""
        typed: dict[str, Any] = {}
        for name, value in attributes.items():
            now = (bios.attributes or {}).get(name)
            if isinstance(now, bool) and value in ("true", "false"):
                typed[name] = value == "true"
            elif isinstance(now, int) and not isinstance(now, bool) and re.fullmatch(r"-?[0-9]{1,18}", value):
                typed[name] = int(value)
            else:
                typed[name] = value
        return typed

    def _patch(self, settings: Settings, bios_path: str, body: dict[str, Any]) -> str:
        """Send a change; return the refusal of a task that was made of it. Services differ in the entity tag: some demand one, some refuse
        a weak one, some take nothing but `*`; and some take the change at the Bios resource itself."""
        refused: exceptions.HTTPError | None = None
        for path in (settings.path, bios_path):
            for tag in settings.tags():
                try:
                    answer = self.root._conn._op("PATCH", path, data=body, headers={"If-Match": tag} if tag else None)
                except exceptions.HTTPError as error:
                    refused = refused or error
                    if error.status_code in TAG_REFUSED:
                        continue
                    if error.status_code == HTTP_NOT_ALLOWED and path != bios_path:
                        break
                    raise
                else:
                    return self._outcome(answer)
        if refused is not None:
            raise refused
        return ""

    def _outcome(self, answer: Any) -> str:
        """Wait for what the service took to do later (202, with the place of its task); return the task's refusal.

        A task that itself waits for the restart (iDRAC's job) is taken; so is one that is not over in time: what reads back will tell.
        Raises NotTakenError where it took some of the properties (DSP0266: then it says so at each of the others)."""
        if getattr(answer, "status_code", 0) == OK and (named := by_property(_json_of(answer))):
            raise NotTakenError(Refusal(" ".join(named.values()), named, took_others=True))
        place = (
            urlsplit(str(answer.headers.get("Location", ""))) if getattr(answer, "status_code", 0) == ACCEPTED else None
        )
        if place is None or not place.path.startswith("/redfish/"):
            return ""
        deadline = time.monotonic() + TASK_S_MAX
        while time.monotonic() < deadline:
            try:
                found = self.root._conn.get(
                    place.path
                )  # never of another host, which a location may name: the password goes along
            except exceptions.HTTPError as error:
                if error.status_code in NOT_THERE:
                    return ""  # it is over and forgotten
                raise
            document = {} if found.status_code == NO_CONTENT else found.json()
            state = document.get("TaskState", document.get("JobState"))
            if state in TASK_REFUSED:
                return words_of(document.get("Messages")) or f"its task ended as {state}"
            if state not in TASK_RUNS and (state or found.status_code != ACCEPTED):
                return ""
            time.sleep(POLL_S)
        return ""

    def clear_pending(self, jobs: Mapping[str, str]) -> bool:
        """Take back what is pending and not in force yet; say whether the service has a way to. `jobs`: the vendor's paths, for a service
        in which a job holds pending settings (iDRAC: nothing else can be set until it ran or was deleted)."""
        with speaking_to(self.service):
            settings = self._settings(self.system.bios)
            done = False
            for job in self._scheduled(jobs):
                self.root._conn._op("POST", jobs["delete"], data={"JobID": job})
                done = True
            target = next(
                (
                    str(action["target"])
                    for name, action in (settings.actions if settings else {}).items()
                    if name.endswith("ClearPending") and isinstance(action, dict) and action.get("target")
                ),
                "",
            )
            if target and not done:
                self.root._conn._op("POST", target, data={})
                done = True
            return done

    def _scheduled(self, jobs: Mapping[str, str]) -> list[str]:
        """Return the names of the jobs that wait to change the BIOS. One that ended since it was listed hides no other."""
        if not jobs:
            return []
        documents = [
            each if "JobState" in each else self._of_path(_path(each))
            for each in _rows(self._of_path(jobs["list"]).get("Members"))
        ]
        return [
            str(each.get("Id"))
            for each in documents
            if each.get("JobState") in JOB_WAITS and str(each.get("JobType", "BIOS")).upper().startswith("BIOS")
        ]

    def _of_path(self, path: str) -> dict[str, Any]:
        """Return the document at a path; an empty one where there is none."""
        try:
            found = self.root._conn.get(path).json() if path else {}
        except exceptions.HTTPError as error:
            if error.status_code in NOT_THERE:
                return {}
            raise
        return dict(found)

    def _try_to_set_beside(self, attributes: dict[str, str]) -> Refusal:
        """Set attributes that need no reset, and wait until they read back."""
        path = self._at_once[next(iter(attributes))]
        with speaking_to(self.service):
            refusal = self._refusal(
                attributes, lambda: self._outcome(self.root._conn.patch(path, data={"Attributes": attributes}))
            )
            deadline = time.monotonic() + AT_ONCE_S_MAX
            while not refusal.said and time.monotonic() < deadline:
                now = self._attributes_beside()
                if all(text_of(now.get(name)) == value for name, value in attributes.items()):
                    break
                time.sleep(POLL_S)
        return refusal

    @staticmethod
    def _refusal(attributes: Mapping[str, str], send: Callable[[], str]) -> Refusal:
        """Send; return the BMC's refusal of the values."""
        try:
            return Refusal(send())
        except NotTakenError as error:
            found = error.refusal
        except exceptions.HTTPError as error:
            found = Refusal(said_by(error), named_in(error.extended_info, attributes))
            if isinstance(error, exceptions.AccessError) and not found.named:
                raise
        return Refusal(found.said, {n: said for n, said in found.named.items() if n in attributes}, found.took_others)

    def forget_registry(self) -> None:
        """Read the attribute registry anew: what is read-only in it follows from values that a restart brought into force."""
        self._registry = None

    def restart(self, graceful_s: float = GRACEFUL_S_MAX) -> str:
        """Switch the machine off, gracefully if it lets itself, and on again; say which. Raises BmcError."""
        how = "the machine was off and was switched on"
        if self._is_on():
            how = self._switch_off(graceful_s)
        self._reset(sushy.ResetType.ON)
        self._await_power(True, POWER_OFF_S_MAX, "on")
        return how

    def switch_on_after(self, shutdown_s: float) -> bool:
        """Bring back a machine that was asked to shut down and may be doing so still, for at most shutdown_s; say whether it was off."""
        if not self._awaited(False, shutdown_s):
            return False
        self._reset(sushy.ResetType.ON)
        self._await_power(True, POWER_OFF_S_MAX, "on")
        return True

    @property
    def power(self) -> str:
        """Return on or off."""
        return "on" if self._is_on() else "off"

    def _switch_off(self, graceful_s: float) -> str:
        allowed = self.system.get_allowed_reset_system_values()
        if sushy.ResetType.GRACEFUL_SHUTDOWN in allowed:
            self._reset(sushy.ResetType.GRACEFUL_SHUTDOWN)
            if self._awaited(False, graceful_s):
                return "restarted by Redfish: graceful shutdown, then on"
            reason = f"it had not shut down {graceful_s:.0f} s after it was asked to"
        else:
            reason = "the BMC offers no graceful shutdown"
        self._reset(sushy.ResetType.FORCE_OFF)
        self._await_power(False, POWER_OFF_S_MAX, "off")
        return f"restarted by Redfish: forced off ({reason}), then on"

    def _reset(self, kind: Any) -> None:
        with speaking_to(self.service):
            self.system.reset_system(kind)

    def _is_on(self) -> bool:
        with speaking_to(self.service):
            self.system.refresh(force=True)
            state = self.system.power_state
        if state is None:
            said = text_of((self.system.json or {}).get("PowerState")) or "nothing"
            raise BmcSilentError(
                f"{self.service.where}: it does not say whether the machine is on (PowerState: {said}). Remedy: wait until the BMC has"
                " started, or reset it"
            )
        return bool(state == sushy.PowerState.ON)

    def _awaited(self, on: bool, seconds: float) -> bool:
        """Wait for a state of the power; a BMC that falls silent meanwhile is asked again."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if self._is_on() is on:
                    return True
            except BmcSilentError:
                if time.monotonic() > deadline:
                    raise
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)

    def _await_power(self, on: bool, seconds: float, name: str) -> None:
        if not self._awaited(on, seconds):
            raise BmcError(
                f"{self.service.where}: the machine is not {name} {seconds:.0f} s after it was told to;"
                " look at its console, then run this again"
            )


def registry_of(root: Any, bios: Any) -> Registry:
    """Return the word of the attribute registry; nothing where the BMC has no usable one: it is only an aid. A row without a name, or
    without what a Registry says, costs no other row."""
    try:
        entries = _registry_document(root, bios).get("RegistryEntries")
    except (exceptions.SushyError, NotTakenError, *NO_REDFISH):
        return Registry()
    found = _rows(entries.get("Attributes")) if isinstance(entries, dict) else []
    rows = {each["AttributeName"]: each for each in found if isinstance(each.get("AttributeName"), str)}
    current = bios.attributes or {}
    return Registry(
        {name: values_of(_rows(each.get("Value")), text_of(current.get(name))) for name, each in rows.items()},
        frozenset(name for name, each in rows.items() if True in (each.get("ReadOnly"), each.get("Immutable"))),
        frozenset(
            name for name, each in rows.items() if each.get("WriteOnly") is True or each.get("Type") == "Password"
        ),
    )


def _registry_document(root: Any, bios: Any) -> dict[str, Any]:
    """Read the attribute registry, and no other: BMCs have dozens. Its name is worded differently in each place (Supermicro's X13:
    BiosAttributeRegistry.v1_0_0 in Bios, BiosAttributeRegistry in the collection, BiosAttributeRegistry.1_0_0 in itself), or is not in Bios
    at all (NVIDIA's GB200): then it is the only one of a BIOS. Raises what the client does."""
    folder = _path((root.json or {}).get("Registries")) or REGISTRIES
    members = filter(None, map(_path, _rows(root._conn.get(folder).json().get("Members"))))
    names = {path: path.rstrip("/").rpartition("/")[2] for path in members}
    wanted = text_of((bios.json or {}).get("AttributeRegistry"))
    chosen = (
        [path for path, name in names.items() if name == wanted]
        or [path for path, name in names.items() if _stem(name) == _stem(wanted)]
        or [path for path, name in names.items() if _stem(name).startswith(BIOS_REGISTRY)]
    )
    if len(chosen) != 1:
        return {}
    file = root._conn.get(chosen[0]).json()
    places = [(str(row.get("Language")).lower(), _path(row, "Uri")) for row in _rows(file.get("Location"))]
    # The names of attributes and values are the same in every language; English is the one that all have.
    places.sort(key=lambda place: not place[0].startswith(("en", "default")))
    found = [place[1] for place in places if place[1]]
    return _json_of(root._conn.get(found[0])) if found else file


def _stem(name: str) -> str:
    """Return a registry's name without its version."""
    return REGISTRY_VERSION.sub("", name).lower()


def _path(link: Any, key: str = "@odata.id") -> str:
    """Return the path in a link; empty where there is none, or one of another host, which would get the password."""
    path = link.get(key) if isinstance(link, dict) else None
    return path if isinstance(path, str) and path.startswith("/") and not path.startswith("//") else ""


def values_of(allowed: Sequence[Mapping[str, Any]], now: str) -> list[str]:
    """Return the values of an attribute in the words that the BIOS uses: their names, but for a BIOS that shows, and takes, their display
    names (Supermicro's registries number the values)."""
    names = [text_of(value.get("ValueName")) for value in allowed]
    shown = [text_of(value.get("ValueDisplayName")) for value in allowed]
    return shown if now not in names and now in shown else names


def said_by(error: Any) -> str:
    """Return the BMC's own words on a refusal."""
    return words_of(error.extended_info) or str(error.detail or error.code)


def _refused(attributes: Mapping[str, str], said: str) -> str:
    return f"the BMC refused {', '.join(f'{n}={v}' for n, v in attributes.items())}: {said}"


def _json_of(answer: Any) -> dict[str, Any]:
    try:
        document = answer.json()
    except NO_REDFISH:
        return {}
    return document if isinstance(document, dict) else {}


def examined(answer: requests.Response, **_options: Any) -> requests.Response:
    """Return an answer as the client can read it; a hook of requests. Raises NotTakenError for one that says it at each property and has
    no `error`, so that the client finds no words (OpenBMC's bmcweb, which answers 403, newer ones 405, if a property is read-only)."""
    document = _json_of(answer)
    if answer.status_code < BAD_REQUEST:
        sound = _whole(document, urlsplit(str(answer.url)).path)
    else:
        named = {} if "error" in document else by_property(document)
        if named and answer.status_code not in (UNAUTHORIZED, *TAG_REFUSED):
            raise NotTakenError(Refusal(" ".join(named.values()), named))
        told = document.get("error")
        error = told if isinstance(told, dict) else {"message": text_of(told)}
        sound = {"error": {**error, EXTENDED_INFO: _rows(error.get(EXTENDED_INFO, document.get(EXTENDED_INFO)))}}
    return with_document(answer, sound) if document and sound != document else answer


def with_document(answer: requests.Response, document: dict[str, Any]) -> requests.Response:
    """Return the same answer with another document in it."""
    made = requests.Response()
    for name in ("status_code", "reason", "url", "headers", "cookies", "history", "request"):
        setattr(made, name, getattr(answer, name))
    made.raw, made.encoding = io.BytesIO(json.dumps(document).encode()), "utf-8"
    return made


def _whole(document: dict[str, Any], path: str) -> dict[str, Any]:
    """Return a resource in which nothing is missing without which the client gives all of it up: `Id` is the last part of its path; what
    is null is left out, as an action is that states no target. Values of attributes stay as they are."""
    sound = {"Id": path.rstrip("/").rpartition("/")[2], **_without_null(document)}
    actions = sound.get("Actions")
    if isinstance(actions, dict):
        sound["Actions"] = {
            name: each
            for name, each in actions.items()
            if not isinstance(each, dict) or "target" in each or name == "Oem"
        }
    return sound


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: each if key == "Attributes" else _without_null(each) for key, each in value.items() if each is not None
        }
    return [_without_null(each) for each in value] if isinstance(value, list) else value


def by_property(document: Mapping[str, Any]) -> dict[str, str]:
    """Return a service's words at each property that it did not take (`NAME@Message.ExtendedInfo`, also `Attributes/NAME@...`)."""
    inner = document.get("Attributes")
    found = {}
    for key, rows in [*document.items(), *(inner.items() if isinstance(inner, dict) else ())]:
        path = key[: -len(EXTENDED_INFO)] if key.endswith(EXTENDED_INFO) else ""
        said = words_of([row for row in _rows(rows) if _refuses(row)])
        if path and said:
            found[path.rpartition("/")[2]] = said
    return found


def named_in(messages: Any, attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return a service's words on attributes that its messages name: as what they relate to, else as their first argument that is one."""
    found: dict[str, str] = {}
    for row in filter(_refuses, _rows(messages)):
        related, arguments = (_texts(row.get(key)) for key in ("RelatedProperties", "MessageArgs"))
        names = [name for name in (path.rpartition("/")[2] for path in related) if name in attributes]
        for name in names or [name for name in arguments if name in attributes][:1]:
            found[name] = " ".join(filter(None, (found.get(name), _words(row))))
    return found


def _refuses(row: Mapping[str, Any]) -> bool:
    name = str(row.get("MessageId") or row.get("MessageID") or "").rpartition(".")[2]
    return name not in NO_REFUSAL and "OK" not in (row.get("Severity"), row.get("MessageSeverity"))


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _rows(messages: Any) -> list[dict[str, Any]]:
    rows = [messages] if isinstance(messages, dict) else messages if isinstance(messages, list) else []
    return [row for row in rows if isinstance(row, dict)]


def words_of(messages: Any) -> str:
    """Return a service's messages as text: of one that has no words, its identifier and arguments (HPE's iLO sends no others)."""
    return " ".join(filter(None, map(_words, _rows(messages))))


def _words(row: Mapping[str, Any]) -> str:
    if row.get("Message"):
        return str(row["Message"])
    name, arguments = row.get("MessageId") or row.get("MessageID"), row.get("MessageArgs")  # the second is of iLO 4
    told = ", ".join(map(str, arguments)) if isinstance(arguments, list) else ""
    return f"{name} ({told})" if name and told else str(name or "")
