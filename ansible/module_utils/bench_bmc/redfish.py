"""One server's BIOS and power switch through its BMC's Redfish service, by OpenStack's client sushy.

Promises: the certificate is verified unless the caller says otherwise; every call and every wait is bounded; an
unreachable BMC, a certificate that is not trusted and a refused user are told apart, each with its remedy.
Runs on the control node, in the bench's Python environment. Knows nothing of Ansible.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sushy
from ansible.module_utils.bench_bmc.bios import Firmware, text_of
from ansible.module_utils.bench_bmc.errors import BmcError, BmcSilentError
from sushy import auth, connector, exceptions

CONNECT_S_MAX, READ_S_MAX = 10, 60
TRIES, TRY_PAUSE_S = 2, 1  # of one request; what waits for a BMC tries on anyway
POLL_S = 2.0
NO_REDFISH = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
NOT_THERE = (400, 404, 405, 410, 501)  # what BMCs answer for a resource that they do not have
AT_ONCE_S_MAX = 20.0  # until an attribute that needs no reset reads back; iDRAC takes some seconds
POWER_OFF_S_MAX = 60.0
GRACEFUL_S_MAX = 180.0  # an operating system with services to stop; then the power is cut

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


def fault_of(service: Service, error: Exception) -> BmcError:
    """Turn a failure of the client into one message with cause and remedy."""
    text = " ".join(str(error).split())
    if isinstance(error, exceptions.AccessError):
        return BmcError(
            f"{service.where}: it refuses this user and password. Remedy: correct bmc.user or the password in"
            f" {service.password_from}, unlock the user, or give it the right to configure"
        )
    if isinstance(error, exceptions.ConnectionError):
        if "CERTIFICATE_VERIFY_FAILED" in text or "certificate verify failed" in text:
            reason = text.partition("certificate verify failed: ")[2].partition(" (_ssl")[0] or "not verified"
            return BmcError(
                f"{service.where}: its certificate is not trusted: {reason}. Remedy: name the file with the CA's"
                " certificate in bmc.redfish_ca_file, or write bmc.insecure: true to go without verification"
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
        return BmcSilentError(f"{service.where}: it failed by itself: {said_by(error)}. Remedy: reset the BMC")
    return BmcError(f"{service.where}: {text}")


@contextlib.contextmanager
def speaking_to(service: Service) -> Iterator[None]:
    """Whatever the service answers, also what is no Redfish (of which the client makes all kinds of errors), becomes a BmcError."""
    try:
        yield
    except exceptions.SushyError as error:
        raise fault_of(service, error) from error
    except NO_REDFISH as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise BmcError(
            f"{service.where}: its answer is no sound Redfish document ({said}). Remedy: reset or update the BMC"
        ) from error


def reason_of(text: str) -> str:
    """Shorten the client's chain of exceptions to its last link."""
    return text.rpartition("Caused by ")[2].rstrip(")") if "Caused by " in text else text


def connect(service: Service) -> System:
    """Log in and find the one computer system. Raises BmcError."""
    if service.ca_file and not service.insecure and not os.path.isfile(service.ca_file):
        raise BmcError(
            f"bmc.redfish_ca_file: {service.ca_file} does not exist; correct the path (relative to the repository)"
        )
    verify: bool | str = not service.insecure and (service.ca_file or True)
    link = connector.Connector(
        service.url,
        verify=verify,
        server_side_retries=TRIES,
        server_side_retries_delay=TRY_PAUSE_S,
        default_request_timeout=READ_S_MAX,
        connect_timeout=CONNECT_S_MAX,
    )
    # Neither a proxy nor ~/.netrc of whoever runs the bench may come between.
    link._session.trust_env = False
    with speaking_to(service):
        root = sushy.Sushy(
            service.url, auth=auth.BasicAuth(service.user, service.password), connector=link, server_side_retries=TRIES
        )
        try:
            return System(service, root, root.get_system())
        except exceptions.UnknownDefaultError as error:
            raise BmcError(f"{service.where}: it does not manage exactly one system ({error})") from error


class System:
    """The computer system behind a Redfish service."""

    def __init__(self, service: Service, root: Any, system: Any) -> None:
        """Keep the client's objects."""
        self.service, self.root, self.system = service, root, system
        self._offered: dict[str, list[str]] | None = None  # a registry is large, and does not change
        self._beside: Sequence[str] = ()
        self._at_once: dict[str, str] = {}  # attribute -> path of the resource that holds it

    @property
    def manufacturer(self) -> str:
        """Return what the BMC calls its maker."""
        return str(self.system.manufacturer or "")

    def close(self) -> None:
        """End the connection."""
        self.root._conn.close()

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
            if self._offered is None:
                self._offered = offered_by(bios)
            return Firmware({**beside, **(bios.attributes or {})}, self._pending(bios), self._offered)

    def _attributes_beside(self) -> dict[str, Any]:
        for path in self._beside:
            try:
                found = dict(self.root._conn.get(path).json()["Attributes"])
            except exceptions.HTTPError as error:
                if error.status_code in NOT_THERE:
                    continue
                raise  # it fails just now: its first values are still to be put back
            self._at_once = dict.fromkeys(found, path)
            return found
        return {}

    @staticmethod
    def _pending(bios: Any) -> dict[str, Any]:
        """Return what the settings resource shows; nothing where there is none, or only what differs."""
        try:
            return dict(bios.pending_attributes or {})
        except (*NO_REDFISH, exceptions.MissingAttributeError, exceptions.ResourceNotFoundError):
            return {}

    def set_attributes(self, attributes: dict[str, str]) -> dict[str, str]:
        """Make attributes pending; return the BMC's refusals by attribute. All at once, else one by one to find out."""
        beside = {name: value for name, value in attributes.items() if name in self._at_once}
        own = {name: value for name, value in attributes.items() if name not in beside}
        if beside and own:
            return {**self.set_attributes(beside), **self.set_attributes(own)}
        refusal = self._try_to_set_beside(beside) if beside else self._try_to_set(attributes)
        if not refusal:
            return {}
        if len(attributes) == 1:
            return dict.fromkeys(attributes, refusal)
        refusals: dict[str, str] = {}
        for name, value in attributes.items():
            refusals.update(self.set_attributes({name: value}))
        return refusals

    def _try_to_set(self, attributes: dict[str, str]) -> str:
        with speaking_to(self.service):
            bios = self.system.bios
            apply_times = bios.supported_apply_times or []
            # Where the service offers the choice (iDRAC makes its job of it), it must be told; else a reset is the rule.
            at_reset = sushy.ApplyTime.ON_RESET if sushy.ApplyTime.ON_RESET in apply_times else None
            return self._refusal(attributes, lambda: bios.set_attributes(attributes, apply_time=at_reset))

    def _try_to_set_beside(self, attributes: dict[str, str]) -> str:
        """Set attributes that need no reset, and wait until they read back."""
        path = self._at_once[next(iter(attributes))]
        with speaking_to(self.service):
            refusal = self._refusal(attributes, lambda: self.root._conn.patch(path, data={"Attributes": attributes}))
            deadline = time.monotonic() + AT_ONCE_S_MAX
            while not refusal and time.monotonic() < deadline:
                now = self._attributes_beside()
                if all(text_of(now.get(name)) == value for name, value in attributes.items()):
                    break
                time.sleep(POLL_S)
        return refusal

    @staticmethod
    def _refusal(attributes: dict[str, str], send: Callable[[], Any]) -> str:
        """Send; return the BMC's refusal of the values."""
        try:
            send()
        except exceptions.AccessError:
            raise
        except exceptions.HTTPError as error:
            return f"the BMC refused {', '.join(f'{n}={v}' for n, v in attributes.items())}: {said_by(error)}"
        return ""

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
            return bool(self.system.power_state == sushy.PowerState.ON)

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


def offered_by(bios: Any) -> dict[str, list[str]]:
    """Return the values that the attribute registry lists; nothing where the BMC has no usable one: it is only an aid."""
    try:
        registry = bios.get_attribute_registry()
        if registry is None:
            return {}
        return {
            each.name: [text_of(value.get("ValueName")) for value in each.allowable_values or []]
            for each in registry.registry_entries.attributes
        }
    except (exceptions.SushyError, *NO_REDFISH):
        return {}


def said_by(error: Any) -> str:
    """Return the BMC's own words on a refusal."""
    info = error.extended_info
    messages = [entry.get("Message", "") for entry in info if isinstance(entry, dict)] if isinstance(info, list) else []
    return " ".join(message for message in messages if message) or str(error.detail or error.code)
