"""Provision and restore on firmware that real attribute registries describe: what a profile moves, holds and leaves is the registry's word.

The registries and dumps are public (their sources and licences lie with them) and no part of this project: they are unpacked from
`../shared/real-data` where that is there; elsewhere each test says so. test_ansible_bios.py has the same on the emulated BMC."""

from __future__ import annotations

import json
import operator
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.bench_bmc import bios_control
from ansible.module_utils.bench_bmc.bios import SETTINGS, VOLATILE, Firmware, parts_of, plan, text_of
from ansible.module_utils.bench_bmc.bios_control import Control, Terms
from ansible.module_utils.bench_bmc.first_values import FirstValues
from ansible.module_utils.bench_bmc.redfish import values_of
from playbook_runs import ANSIBLE

REAL_DATA = ANSIBLE.parent.parent / "shared/real-data"
VENDORS: dict[str, Any] = yaml.safe_load((ANSIBLE / "roles/bios/vars/main/vendors.yml").read_text())["__bios_vendors"]
CRAY, LIBREDFISH, CTL = "redfish-cray-hpe-emulator", "redfish-libredfish", "redfish-redfish-ctl"
HPE_A43 = "cray-hpe-emulator/mockups/DL325"
HPE_A47 = "cray-hpe-emulator/mockups/XL675d_A100"
HPE_A42 = "libredfish/tests/mockups/hpe/redfish/v1"
DELL = "libredfish/tests/mockups/dell/redfish/v1/Systems/System.Embedded.1/Bios"
SMC = "libredfish/tests/mockups/supermicro"
GIGABYTE = "cray-hpe-emulator/mockups/Gigabyte"
DGX = "libredfish/tests/mockups/nvidia_viking/redfish/v1"
GB200 = "libredfish/tests/mockups/nvidia_gb200/redfish/v1"
U58 = "redfish-ctl/tests/hpe_fixtures/_redfish_v1_"
# Archive, attributes in force, registry, vendor.
TREES = {
    "HPE A43 (DL325 Gen10 Plus)": (
        CRAY, f"{HPE_A43}/Systems/1/bios/index.json",
        f"{HPE_A43}/RegistryStore/registries/en/biosattributeregistrya43.v1_2_52/index.json", "hpe",
    ),
    "HPE A47 (XL675d Gen10 Plus)": (
        CRAY, f"{HPE_A47}/Systems/1/bios/index.json",
        f"{HPE_A47}/RegistryStore/registries/en/biosattributeregistrya47.v1_2_58/index.json", "hpe",
    ),
    "HPE A42 (DL385 Gen10 Plus v2)": (
        LIBREDFISH, f"{HPE_A42}/Systems/1/Bios/index.json",
        f"{HPE_A42}/registrystore/registries/en/biosattributeregistrya42.v1_2_60/index.json", "hpe",
    ),
    "HPE U58 (DL380a Gen11)": (
        CTL, f"{U58}Systems_1_Bios.json", f"{U58}registrystore_registries_en_biosattributeregistryu58.v1_2_44.json", "hpe",
    ),
    "Dell R750": (LIBREDFISH, f"{DELL}/index.json", f"{DELL}/BiosRegistry/index.json", "dell"),
    "Supermicro X13": (
        LIBREDFISH, f"{SMC}/redfish/v1/Systems/1/Bios/index.json", f"{SMC}/registries/BiosAttributeRegistry.1.0.0.json/index.json",
        "supermicro",
    ),
    "Gigabyte H262-Z63 (EPYC 7702)": (
        CRAY, f"{GIGABYTE}/Systems/Self/Bios/index.json", f"{GIGABYTE}/Registries/BiosAttributeRegistry.json/index.json", "gigabyte",
    ),
    "NVIDIA DGX H100": (
        LIBREDFISH, f"{DGX}/Systems/DGX/Bios/index.json", f"{DGX}/Registries/BiosAttributeRegistry113.en-US.1.1.3.json/index.json",
        "nvidia",
    ),
}  # fmt: skip
NVIDIA_GB200 = (
    LIBREDFISH, f"{GB200}/Systems/System_0/Bios/index.json",
    f"{GB200}/Registries/BiosAttributeRegistry/BiosAttributeRegistry/index.json", "nvidia",
)  # fmt: skip
# What is set before the bench comes: nothing, or a profile, or an administrator's own choice.
HPE_STARTS: list[dict[str, str]] = [{"WorkloadProfile": "GeneralPowerEfficientCompute"}, {"WorkloadProfile": "Custom"}]
DELL_OWN = {
    "SysProfile": "Custom", "ProcPwrPerf": "OsDbpm", "UncoreFrequency": "DynamicUFS",
    "MonitorMwait": "Disabled", "ProcC1E": "Enabled", "ProcCStates": "Enabled",
}  # fmt: skip
STARTS: dict[str, list[dict[str, str]]] = {
    "hpe": HPE_STARTS, "dell": [{"SysProfile": "PerfPerWattOptimizedDapc"}, DELL_OWN], "supermicro": [{}],
    "gigabyte": [{}, {"Rome0179": "Performance"}], "nvidia": [{}, {"PackageCState": "No Limit"}],
}  # fmt: skip
CONDITIONS: dict[str, Callable[[Any, Any], bool]] = {
    "EQU": operator.eq, "NEQ": operator.ne, "GTR": operator.gt, "GEQ": operator.ge, "LSS": operator.lt, "LEQ": operator.le,
}  # fmt: skip
HOLDING = ("ReadOnly", "GrayOut")
ROUNDS_MAX = 20  # until dependencies move nothing more


class RegistryFirmware:
    """A server's firmware as its attribute registry describes it (DMTF DSP0268, AttributeRegistry: Dependencies of the type Map), in the
    place of the Redfish client: it takes what is not held, and moves at each start what the values in force move."""

    def __init__(self, attributes: dict[str, Any], registry: dict[str, Any]) -> None:
        self.current, self.pending = dict(attributes), dict[str, Any]()
        entries = registry["RegistryEntries"]
        self.entries = {each["AttributeName"]: each for each in entries["Attributes"]}
        self.maps = [
            each["Dependency"]
            for each in entries.get("Dependencies") or []
            if each.get("Type") == "Map" and each["Dependency"].get("MapToAttribute") in attributes
        ]
        self.service = type("Service", (), {"where": "the registry's firmware"})()
        self.restarts = 0
        self.start()

    def look_beside(self, paths: Any) -> None:
        """Nothing is beside."""

    def is_at_once(self, name: str) -> bool:
        """All attributes need a restart."""
        return False

    def forget_registry(self) -> None:
        """The module works out at each question what is held."""

    def clear_pending(self, jobs: Mapping[str, str]) -> bool:
        """HPE and Supermicro have no such action."""
        return False

    def held(self, values: Mapping[str, Any]) -> frozenset[str]:
        """Attributes that cannot be set beside these values."""
        held = {name for name, each in self.entries.items() if each.get("ReadOnly") is True and not self._mapped(name)}
        for each in self.maps:
            if each.get("MapToProperty") in HOLDING and self._applies(each, values):
                (held.add if each["MapToValue"] is True else held.discard)(each["MapToAttribute"])
        return frozenset(held)

    def firmware(self) -> Firmware:
        offered = {
            name: values_of(each.get("Value") or [], text_of(self.current.get(name)))
            for name, each in self.entries.items()
        }
        return Firmware(dict(self.current), dict(self.pending), offered, self.held(self.current))

    def set_attributes(self, attributes: dict[str, str]) -> dict[str, str]:
        wanted = {**self.current, **self.pending, **attributes}
        held = self.held(wanted)
        refused = {name: f"{name} is read-only" for name in attributes if name in held or name not in self.current}
        for name, value in attributes.items():
            if name not in refused:
                now = self.current[name]
                self.pending[name] = int(value) if isinstance(now, int) and not isinstance(now, bool) else value
        return refused

    def restart(self, graceful_s: float) -> str:
        self.restarts += 1
        self.current.update(self.pending)
        self.pending = {}
        self.start()
        return "restarted"

    def start(self) -> None:
        """Move what the values in force move."""
        for _round in range(ROUNDS_MAX):
            moved = {
                each["MapToAttribute"]: each["MapToValue"]
                for each in self.maps
                if each.get("MapToProperty") == "CurrentValue" and self._applies(each, self.current)
            }
            if moved.items() <= self.current.items():
                return
            self.current.update(moved)

    def _mapped(self, name: str) -> bool:
        return any(each["MapToAttribute"] == name and each.get("MapToProperty") in HOLDING for each in self.maps)

    def _applies(self, dependency: dict[str, Any], values: Mapping[str, Any]) -> bool:
        result: bool | None = None
        for term in dependency.get("MapFrom") or []:
            if term.get("MapFromProperty", "CurrentValue") != "CurrentValue" or term["MapFromAttribute"] not in values:
                return False
            now, other = values[term["MapFromAttribute"]], term.get("MapFromValue")
            try:
                true = CONDITIONS[term["MapFromCondition"]](now, other)
            except TypeError:  # a number against a text
                true = term["MapFromCondition"] == "NEQ"
            joined = term.get("MapTerms")
            result = true if result is None else (result or true) if joined == "OR" else (result and true)
        return bool(result)


def tree(place: tuple[str, str, str, str], folder: Path) -> RegistryFirmware:
    archive, bios, registry, _vendor = place
    file = REAL_DATA / f"{archive}.tar.xz"
    if not file.is_file():
        pytest.skip(f"{file.name} is not here: it is public data that this project does not contain")
    documents = []
    with tarfile.open(file) as packed:
        for member in packed:
            if member.name.removeprefix("./") in (bios, registry):
                packed.extract(member, folder, filter="data")
    for path in (bios, registry):
        documents.append(json.loads((folder / path).read_text(encoding="utf-8")))
    return RegistryFirmware(documents[0]["Attributes"], documents[1])


@pytest.mark.parametrize(
    ("name", "start"), [(name, start) for name, (*_files, vendor) in TREES.items() for start in STARTS[vendor]]
)
def test_restore_puts_a_real_server_s_firmware_back(
    name: str, start: dict[str, str], tmp_path: Path, monkeypatch: Any
) -> None:
    """All attributes, whoever moved them."""
    monkeypatch.setattr(bios_control, "POLL_S", 0.0)
    vendor = TREES[name][-1]
    system = tree(TREES[name], tmp_path)
    assert system.set_attributes(start) == {}
    system.restart(0)
    assert start.items() <= system.current.items()
    before = dict(system.current)

    def control() -> Control:
        return Control(system, FirstValues(str(tmp_path / "state/bios.json"), "it"), VENDORS, vendor)  # type: ignore[arg-type]

    asked = {"power_profile": "maximum-performance", "cstates": "off", "turbo": "on", "memory_speed": "maximum"}
    control().apply(asked, Terms(restart=True, wait_s=0))
    moved = {attribute for attribute, value in system.current.items() if value != before[attribute]}
    assert moved, "the profile moved nothing, so that nothing is shown"
    back = control().restore(Terms(restart=True, wait_s=0))
    left = {attribute for attribute, value in system.current.items() if value != before[attribute]}
    assert not left, {attribute: (before[attribute], system.current[attribute]) for attribute in left}
    assert system.pending == {} and not (tmp_path / "state/bios.json").exists()
    assert {record["status"] for record in back.records} <= {"applied", "unchanged"}
    print(f"{name}: {len(moved)} attributes moved, {system.restarts} restarts")


@pytest.mark.parametrize(
    "name", [name for name, (*_files, vendor) in TREES.items() if vendor in ("gigabyte", "nvidia")]
)
def test_the_table_s_names_and_values_are_the_registry_s(name: str, tmp_path: Path) -> None:
    """Each value, also one that no run has asked for: these vendors' names are known from one BIOS, which must have all of them."""
    offered = tree(TREES[name], tmp_path).firmware().offered
    for entries in VENDORS[TREES[name][-1]]["settings"].values():
        for part in [part for entry in entries for part in parts_of(entry)]:
            assert {value for values in part["values"].values() for value in values} <= set(offered[part["attribute"]])


def test_a_gb200_has_no_attribute_for_what_is_set(tmp_path: Path) -> None:
    """Whichever vendor's names are tried: its BMC states no Manufacturer."""
    firmware = tree(NVIDIA_GB200, tmp_path).firmware()
    for vendor in ("nvidia", "redfish"):
        for setting in SETTINGS:
            said = plan(VENDORS, vendor, setting, "off", firmware).unsupported
            assert said.startswith(("the BIOS has no such attribute", "no attribute for it is known"))


def test_what_changes_by_itself_is_not_remembered() -> None:
    for name in ("Date", "SystemTime", "UefiBootSeq", "BootOrder", "HddSeq", "SysPassword", "OneTimeBootDevice"):
        assert VOLATILE.fullmatch(name), name
    for name in ("BootMode", "PowerOnDelayTime", "ProcVirtualization", "TimeZone", "PostBootProgress"):
        assert not VOLATILE.fullmatch(name), name
