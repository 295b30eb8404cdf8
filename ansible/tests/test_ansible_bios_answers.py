"""What BMCs answer to a change of BIOS attributes that they do not take, or take in part: a small service gives the answers that public
reports show, and the real client reads them."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from ansible.module_utils.bench_bmc import bios_control, redfish
from ansible.module_utils.bench_bmc.bios import Firmware, plan, record_of
from ansible.module_utils.bench_bmc.bios_control import Control, Terms
from ansible.module_utils.bench_bmc.errors import BmcError
from ansible.module_utils.bench_bmc.first_values import FirstValues
from ansible.module_utils.bench_bmc.redfish import Service, System, registry_of
from playbook_runs import ANSIBLE

VENDORS: dict[str, Any] = yaml.safe_load((ANSIBLE / "roles/bios/vars/main/vendors.yml").read_text())["__bios_vendors"]
SETTINGS, REGISTRIES = "/redfish/v1/Systems/system/Bios/Settings", "/redfish/v1/Registries"
REGISTRY = f"{REGISTRIES}/BiosAttributeRegistry"
Taker = Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]


class Answers(ThreadingHTTPServer):
    """A service with a settings resource: `taker` answers each change."""

    def __init__(self, taker: Taker, registry: list[dict[str, Any]]) -> None:
        self.taker, self.registry, self.asked = taker, registry, list[set[str]]()
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Answers

    def do_GET(self) -> None:
        """Give the settings resource, which shows nothing, or the registry."""
        entries = {"RegistryEntries": {"Attributes": self.server.registry}}
        members = {"Members": [{"@odata.id": REGISTRY}]}
        self._send(200, {REGISTRY: entries, REGISTRIES: members}.get(self.path, {}))

    def do_PATCH(self) -> None:
        """Ask the taker."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(set(body["Attributes"]))
        self._send(*self.server.taker(body["Attributes"]))

    def _send(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[Answers, System]]]:
    running: list[Answers] = []

    def start(
        taker: Taker, attributes: dict[str, Any], registry: Any = (), settings: Any = None
    ) -> tuple[Answers, System]:
        server = Answers(taker, list(registry))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        link = redfish.client(Service("127.0.0.1", 1, "u", "p", "X"), f"http://127.0.0.1:{server.server_address[1]}")
        stated = {"@Redfish.Settings": {"SettingsObject": {"@odata.id": SETTINGS}, **(settings or {})}}
        bios = type("Bios", (), {
            "path": SETTINGS.rpartition("/")[0], "json": stated, "attributes": attributes, "supported_apply_times": [],
            "refresh": lambda self, force: None,
        })()  # fmt: skip
        root = type("Root", (), {"_conn": link, "json": {}})()
        return server, System(Service("127.0.0.1", 1, "u", "p", "X"), root, type("One", (), {"bios": bios})())

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def not_writable(name: str) -> dict[str, Any]:
    said = f"The property {name} is a read only property and cannot be assigned a value."
    return {
        "Message": said,
        "MessageArgs": [name],
        "MessageId": "Base.1.8.1.PropertyNotWritable",
        "MessageSeverity": "Warning",
    }


def test_an_answer_that_the_client_gives_up_is_another_one_for_it_alone() -> None:
    """Whoever keeps the service's answer still has it as it came."""
    told = {"@odata.id": "/redfish/v1/Systems/1", "Bios": None, "Attributes": {"Knob": None}}
    answer = requests.Response()
    answer.status_code, answer.url, answer.raw = (
        200,
        "https://bmc/redfish/v1/Systems/1",
        io.BytesIO(json.dumps(told).encode()),
    )
    made = redfish.examined(answer)
    assert answer.json() == told
    assert made.json() == {"Id": "1", "@odata.id": "/redfish/v1/Systems/1", "Attributes": {"Knob": None}}
    assert (made.status_code, made.url) == (200, answer.url)
    assert redfish.examined(made) is made


@pytest.mark.parametrize("status", [403, 405])
def test_openbmc_says_at_the_property_what_is_read_only(serve: Any, status: int) -> None:
    """ibm-openbmc/bmcweb#70: 403, in newer ones 405, and no `error`. It is no refusal of the user."""

    def taker(attributes: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "hb_debug_console" in attributes:
            return status, {"hb_debug_console@Message.ExtendedInfo": [not_writable("hb_debug_console")]}
        return 200, {}

    server, system = serve(taker, {"hb_debug_console": "Enabled", "pvm_boot": "A"})
    refused = system.set_attributes({"hb_debug_console": "Disabled", "pvm_boot": "B"})
    assert set(refused) == {"hb_debug_console"} and "is a read only property" in refused["hb_debug_console"]
    assert server.asked[-1] == {"pvm_boot"}


def test_a_user_without_the_right_is_still_told_so(serve: Any) -> None:
    told = {
        "error": {"@Message.ExtendedInfo": [{"MessageId": "Base.1.8.InsufficientPrivilege", "Message": "No right."}]}
    }
    _, system = serve(lambda attributes: (403, told), {"A": "1"})
    with pytest.raises(BmcError, match="it refuses this user and password"):
        system.set_attributes({"A": "2"})


def test_one_refused_attribute_keeps_the_others_from_no_job(serve: Any) -> None:
    """dell/iDRAC-Redfish-Scripting#189: iDRAC names it; #249: after a job was made it takes nothing more."""
    taken: list[dict[str, Any]] = []

    def taker(attributes: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        said = {
            "Message": "Pending configuration values are already committed.",
            "MessageArgs": [],
            "RelatedProperties": [],
        }
        if "PxeDev2EnDis" in attributes:
            said = {
                "Message": "An incorrect object value is entered.",
                "MessageArgs": ["PxeDev2EnDis"],
                "RelatedProperties": ["PxeDev2EnDis"],
            }
        elif not taken:
            taken.append(attributes)
            return 200, {}
        return 400, {"error": {"code": "Base.1.5.GeneralError", "@Message.ExtendedInfo": [said]}}

    now = {"PxeDev1EnDis": "Disabled", "PxeDev2EnDis": "Disabled", "PxeDev3EnDis": "Disabled", "SysProfile": "Custom"}
    _, system = serve(taker, now)
    wanted = {
        "PxeDev1EnDis": "Enabled",
        "PxeDev2EnDis": "disabled",
        "PxeDev3EnDis": "Enabled",
        "SysProfile": "PerfOptimized",
    }
    refused = system.set_attributes(wanted)
    assert set(refused) == {"PxeDev2EnDis"} and "An incorrect object value is entered." in refused["PxeDev2EnDis"]
    assert taken == [{name: value for name, value in wanted.items() if name != "PxeDev2EnDis"}]


@pytest.mark.parametrize("key", ["Attributes/ProcC1E@Message.ExtendedInfo", "ProcC1E@Message.ExtendedInfo"])
def test_what_a_service_takes_in_part_is_not_sent_again(serve: Any, key: str) -> None:
    """DSP0266, 7.6.4: 200, and a message at each property that was left."""
    annotated = {key: [not_writable("ProcC1E")]}
    document = annotated if key.startswith("Attributes/") else {"Attributes": {**annotated, "ProcC1E": "Enabled"}}
    server, system = serve(lambda attributes: (200, document), {"ProcC1E": "Enabled", "MemFrequency": "800"})
    refused = system.set_attributes({"ProcC1E": "Disabled", "MemFrequency": "MaxPerf"})
    assert set(refused) == {"ProcC1E"} and "is a read only property" in refused["ProcC1E"]
    assert server.asked == [{"ProcC1E", "MemFrequency"}]


def test_that_a_restart_is_needed_is_no_refusal(serve: Any) -> None:
    """HewlettPackard/python-ilorest-library#135, and a success at the property."""
    told = {
        "error": {"@Message.ExtendedInfo": [{"MessageId": "iLO.2.14.SystemResetRequired"}]},
        "Sriov@Message.ExtendedInfo": [{"MessageId": "Base.1.8.Success", "Message": "Done."}],
    }
    _, system = serve(lambda attributes: (200, told), {"Sriov": "Enabled"})
    assert system.set_attributes({"Sriov": "Disabled"}) == {}


def test_what_the_bios_says_after_its_start_is_in_the_record(serve: Any) -> None:
    """iLO takes whatever it is sent, and says in @Redfish.Settings after the start what became of it
    (HewlettPackard/python-ilorest-library#91); AMI has a message there before any change (DMTF/Redfish-Tacklebox#55)."""
    messages = [
        {"MessageId": "Base.1.0.SettingsFailed"},
        {"MessageId": "Base.1.0.PropertyValueNotInList", "MessageArgs": ["nonsense", "ProcTurbo"]},
        {"MessageId": "Base.1.0.Success", "RelatedProperties": ["#/Attributes/Sriov"]},
    ]
    _, system = serve(
        lambda attributes: (200, {}), {"ProcTurbo": "Enabled", "Sriov": "Enabled"}, (), {"Messages": messages}
    )
    firmware = system.firmware()
    assert firmware is not None and firmware.told == {
        "ProcTurbo": "Base.1.0.PropertyValueNotInList (nonsense, ProcTurbo)"
    }
    wanted = plan(VENDORS, "hpe", "turbo", "off", firmware)
    record = record_of(wanted, firmware.current, firmware, {}, {})
    assert record["status"] == "mismatch"
    assert record["detail"].endswith("; the BIOS says: Base.1.0.PropertyValueNotInList (nonsense, ProcTurbo)")


def test_commands_and_secrets_are_not_remembered(serve: Any, tmp_path: Path) -> None:
    """HPE's A42 (NVIDIA/libredfish, MIT): a command that is over would be given again. Gigabyte's Rome
    (Cray-HPE/csm-redfish-interface-emulator, BSD-3-Clause): SETUP001 is the administrator's password."""
    choices = [{"ValueName": "NoAction"}, {"ValueName": "Clear"}]
    registry = [
        {"AttributeName": "TpmOperation", "Type": "Enumeration", "WriteOnly": True, "Value": choices},
        {"AttributeName": "SETUP001", "Type": "Password", "ReadOnly": False},
        {"AttributeName": "ProcTurbo", "Type": "Enumeration", "Value": [{"ValueName": "Enabled"}, {"ValueName": "Disabled"}]},
    ]  # fmt: skip
    _, system = serve(
        lambda attributes: (200, {}), {"TpmOperation": "Clear", "SETUP001": "x", "ProcTurbo": "Enabled"}, registry
    )
    assert registry_of(system.root, system.system.bios).unkept == {"TpmOperation", "SETUP001"}
    state = FirstValues(str(tmp_path / "bios.json"), "it")
    Control(system, state, VENDORS, "hpe").apply({"turbo": "off"}, Terms(restart=False, wait_s=0))
    assert state.values["attributes"] == {"ProcTurbo": "Enabled"}


def test_what_no_table_has_for_a_vendor_is_said_so() -> None:
    found = plan(VENDORS, "supermicro", "cooling", "maximum", Firmware({"TurboMode_3D06": "Enable"}, {}))
    assert found.unsupported == "no attribute for it is known of this vendor's BIOS"
    found = plan(VENDORS, "supermicro", "turbo", "on", Firmware({"Other": "1"}, {}))
    assert found.unsupported == "the BIOS has no such attribute (looked for TurboMode or CorePerformanceBoost)"


class Dropping:
    """In place of a System: takes a change, and drops it at the start (lenovo/python-redfish-lenovo#174: held by the mode that is set)."""

    def __init__(self) -> None:
        self.current, self.pending, self.restarts = {"Processors_C1E": "Enabled"}, dict[str, str](), 0

    def look_beside(self, paths: Any) -> None:
        """Nothing is beside."""

    def forget_registry(self) -> None:
        """It has none."""

    def firmware(self) -> Firmware:
        return Firmware(dict(self.current), dict(self.pending))

    def set_attributes(self, attributes: dict[str, str]) -> dict[str, str]:
        self.pending = attributes
        return {}

    def restart(self, graceful_s: float) -> str:
        self.restarts, self.pending = self.restarts + 1, {}
        return "restarted"


def test_what_is_dropped_at_the_start_is_not_tried_for_ever(tmp_path: Path, monkeypatch: Any) -> None:
    """Each start costs the server ten minutes, and the bench its whole wait."""
    monkeypatch.setattr(bios_control, "POLL_S", 0.0)
    state, system = FirstValues(str(tmp_path / "bios.json"), "it"), Dropping()
    state.values = {"attributes": {"Processors_C1E": "Disabled"}}
    run = Control(system, state, VENDORS, "lenovo").restore(Terms(restart=True, wait_s=0))  # type: ignore[arg-type]
    assert system.restarts == 1
    assert [(one["id"], one["status"], one["detail"]) for one in run.records] == [
        ("bios-Processors_C1E", "mismatch", "was Disabled, reads Enabled")
    ]
