"""A Redfish service that answers with whatever documents it is given, read as the roles bios and fans read one."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import sushy
from ansible.module_utils.bench_bmc.redfish import Service, System, speaking_to
from sushy import exceptions

SERVICE = Service("127.0.0.1", 443, "user", "password", "BENCH_PASSWORD")
ROOT = "/redfish/v1/"
SYSTEM = f"{ROOT}Systems/1"
BESIDE = "/redfish/v1/Managers/1/Oem/Dell/DellAttributes/System.Embedded.1"


def resource(path: str, kind: str, **rest: Any) -> dict[str, Any]:
    return {"@odata.id": path, "@odata.type": f"#{kind}", "Id": path.rpartition("/")[2] or "Root", "Name": kind, **rest}


DOCUMENTS = {
    ROOT: resource(ROOT, "ServiceRoot.v1_5_0.ServiceRoot", RedfishVersion="1.6.0", UUID="1", Systems={"@odata.id": f"{ROOT}Systems"},
                   Links={"Sessions": {"@odata.id": f"{ROOT}Sessions"}}),
    f"{ROOT}Systems": resource(f"{ROOT}Systems", "ComputerSystemCollection.ComputerSystemCollection",
                               Members=[{"@odata.id": SYSTEM}], **{"Members@odata.count": 1}),
    SYSTEM: resource(SYSTEM, "ComputerSystem.v1_5_0.ComputerSystem", Manufacturer="Dell", PowerState="On", UUID="1",
                     Bios={"@odata.id": f"{SYSTEM}/Bios"}, Status={"State": "Enabled"},
                     Actions={"#ComputerSystem.Reset": {"target": f"{SYSTEM}/Reset",
                                                        "ResetType@Redfish.AllowableValues": ["On", "ForceOff"]}}),
    f"{SYSTEM}/Bios": resource(f"{SYSTEM}/Bios", "Bios.v1_0_4.Bios", AttributeRegistry="R", Attributes={"SysProfile": "Custom", "N": 1},
                               **{"@Redfish.Settings": {"SettingsObject": {"@odata.id": f"{SYSTEM}/Bios/Settings"}}}),
    f"{SYSTEM}/Bios/Settings": resource(f"{SYSTEM}/Bios/Settings", "Bios.v1_0_4.Bios", Attributes={"SysProfile": "Custom"}),
    BESIDE: resource(BESIDE, "DellAttributes.v1_0_0.DellAttributes", Attributes={"ThermalSettings.1.FanSpeedOffset": "Off"}),
}  # fmt: skip


class Said(NamedTuple):
    """One answer, in the form of the client's HTTP library."""

    text: str
    status_code: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012

    @property
    def content(self) -> bytes:
        return self.text.encode("utf-8", "surrogatepass")

    def json(self) -> Any:
        return json.loads(self.text)


class Answering:
    """In place of the client's connection."""

    def __init__(self, documents: Any) -> None:
        self.documents = documents if isinstance(documents, dict) else {}

    def get(self, path: str = "", **_options: Any) -> Said:
        path = path if path in self.documents else path.rstrip("/") if isinstance(path, str) else ""
        if path not in self.documents:
            raise exceptions.ResourceNotFoundError("GET", path, Said("{}", 404))
        return Said(json.dumps(self.documents[path]))

    def set_auth(self, _auth: Any) -> None:
        """Sushy asks for it."""

    def set_http_basic_auth(self, _user: str, _password: str) -> None:
        """Sushy asks for it."""


def seen_of(text: str) -> Any:
    """Returns what the role bios learns of the service whose documents, by path, are `text`. Raises BmcError."""
    with speaking_to(SERVICE):
        documents = json.loads(text)
        root = sushy.Sushy(SERVICE.url, auth=sushy.auth.BasicAuth("user", "password"), connector=Answering(documents))
        system = System(SERVICE, root, root.get_system())
    system.look_beside([BESIDE])
    firmware = system.firmware()
    assert firmware is None or all(isinstance(name, str) for name in firmware.current)
    return [system.manufacturer, system.power, firmware and firmware.after_reboot("SysProfile")]
