"""A look at a server's BMC: who made it, which BIOS attributes the tuning would set, whether fans can be set. Reads only.

The vendors' names and values are those of the roles bios and fans."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.yaml_source import read_yaml
from daq_bench.rig.base.module_utils import use_module_utils
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.provision import secret_of

NO_ATTRIBUTES = "the BMC shows no BIOS attributes (some show them only for a licence, or once the server has started)"
ASKED = {"power_profile": "maximum-performance", "cstates": "off", "turbo": "on", "memory_speed": "maximum"}


@dataclass(frozen=True)
class Setting:
    """One tuning of the firmware: `attributes` as they are now and as they would be; `obstacle` where this BIOS cannot."""

    name: str
    asked: str
    attributes: str = ""
    obstacle: str = ""


@dataclass
class Firmware:
    """The BMC's account. `fault`: why its Redfish service is not usable; `fans_fault`: why fans cannot be set over the network."""

    manufacturer: str = ""
    vendor: str = ""
    fault: str = ""
    fans_fault: str = ""
    settings: list[Setting] = field(default_factory=list)


def look(layout: Layout, name: str, bmc: dict[str, Any]) -> Firmware:
    """Asks the BMC of `bench_candidate.bmc` by Redfish and by IPMI. Raises BenchError only where its password is not to be had."""
    use_module_utils(layout)
    from ansible.module_utils.bench_bmc.errors import BmcError, password_of

    try:
        password = password_of("", bmc["password_env"], secret_of(layout, name, bmc))
    except BmcError as error:
        raise BenchError(
            f"{error}, or name the file that holds it (bmc.password_file; --bmc-password-file of discover)"
        ) from None
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    found = Firmware()
    try:
        _redfish(layout, bmc, password, found)
    except BmcError as error:
        found.fault = _without(password, error)
    except Exception as error:  # what a BMC answers may break its client anywhere
        found.fault = _without(password, f"Redfish: its answer cannot be read ({type(error).__name__}: {error})")
    try:
        found.fans_fault = _fans(layout, bmc, password)
    except (BmcError, OSError, ValueError) as error:
        found.fans_fault = _without(password, error)
    return found


def _without(password: str, error: object) -> str:
    """One line that cannot hold the password, whoever worded it."""
    return " ".join(str(error).split()).replace(password, "***")


def _vendors(file: Path, key: str) -> dict[str, Any]:
    found: dict[str, Any] = plain(read_yaml(file).data)[key]
    return found


def _redfish(layout: Layout, bmc: dict[str, Any], password: str, found: Firmware) -> None:
    from ansible.module_utils.bench_bmc.bios import NO_SETTINGS, joined, plan, resolve_bonds, text_of
    from ansible.module_utils.bench_bmc.bios_control import vendor_key
    from ansible.module_utils.bench_bmc.redfish import Service, connect

    ca_file = str(layout.home / bmc["redfish_ca_file"]) if "redfish_ca_file" in bmc else ""
    service = Service(
        bmc["address"],
        bmc.get("redfish_port", 443),
        bmc["user"],
        password,
        bmc.get("password_file", bmc["password_env"]),
        ca_file,
        bmc.get("insecure", False),
        bmc.get("redfish_fingerprint", ""),
        bmc.get("redfish_system", ""),
    )
    system = connect(service)
    try:
        found.manufacturer = system.manufacturer
        vendors = _vendors(layout.ansible / "roles/bios/vars/main/vendors.yml", "__bios_vendors")
        found.vendor = vendor_key(vendors, bmc.get("vendor", ""), found.manufacturer, service.where)
        firmware = system.firmware()
    finally:
        system.close()
    if firmware is None or not firmware.current:
        # No fault: its fans and its sensors can be used all the same.
        found.settings = [Setting(name, asked, obstacle=NO_ATTRIBUTES) for name, asked in ASKED.items()]
        return
    # Each by itself: a profile and the single settings that it holds are alternatives.
    for name, asked in ASKED.items():
        each = plan(vendors, found.vendor, name, asked, firmware)
        resolve_bonds([each], firmware)
        now = joined(firmware.current, [wish.attribute for wish in each.wishes])
        then = ", ".join(f"{wish.attribute}={wish.value}" for wish in each.wishes)
        bound = next((wish.bound_to for wish in each.wishes if wish.bound_to), "")
        obstacle = each.unsupported or each.fallback or (f"can be set only with {bound}" if bound else "")
        moved = [wish for wish in each.wishes if text_of(firmware.current.get(wish.attribute)) != wish.value]
        if moved and not firmware.settable and not all(system.is_at_once(wish.attribute) for wish in moved):
            obstacle = obstacle or NO_SETTINGS
        words = f"now {now}, would set {then}" if moved else f"{now} already"
        found.settings.append(Setting(name, asked, "" if obstacle else words, " ".join(obstacle.split())))


def _fans(layout: Layout, bmc: dict[str, Any], password: str) -> str:
    """Why fans cannot be set over the network; empty where they can."""
    from ansible.module_utils.bench_bmc.fan_control import vendor_of
    from ansible.module_utils.bench_bmc.ipmi import Bmc, CommandRefusedError, Ipmi

    at = Bmc(
        bmc["address"],
        bmc.get("ipmi_port", 623),
        bmc["user"],
        bmc.get("cipher_suite", 17),
        password,
        bmc.get("password_file", bmc["password_env"]),
    )
    vendors = _vendors(layout.ansible / "roles/fans/vars/main/vendors.yml", "__fans_vendors")
    try:
        return str(vendor_of(Ipmi(at), bmc.get("vendor", ""), vendors).unsupported or "")
    except CommandRefusedError as error:
        return f"its BMC refused a question: {error}"
