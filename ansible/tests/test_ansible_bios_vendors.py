"""The role bios' table of vendors against observed firmware: names, values, fallbacks, and what a profile holds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible.module_utils.bench_bmc.bios import Firmware, found_names, plan, record_of, resolve_bonds, to_write
from ansible.module_utils.bench_bmc.bios_control import vendor_key
from ansible.module_utils.bench_bmc.errors import BmcError
from playbook_runs import ANSIBLE

VENDORS: dict[str, Any] = yaml.safe_load((ANSIBLE / "roles/bios/vars/main/vendors.yml").read_text())["__bios_vendors"]
WHOLE = {"power_profile": "maximum-performance", "cstates": "off", "turbo": "on", "memory_speed": "maximum"}


def test_an_unknown_vendor_is_refused_by_name() -> None:
    """It is refused both when the inventory names it and when the system's Manufacturer is in no entry."""
    assert vendor_key(VENDORS, "", "Super Micro Computer, Inc.", "BMC") == "supermicro"
    assert vendor_key(VENDORS, "", "Hewlett Packard Enterprise", "BMC") == "hpe"
    assert vendor_key(VENDORS, "", "GIGABYTE", "BMC") == "gigabyte"
    assert vendor_key(VENDORS, "", "NVIDIA", "BMC") == "nvidia"
    with pytest.raises(
        BmcError, match=r"bmc.vendor is acme; known to the role bios: dell, gigabyte, hpe, lenovo, nvidia, redfish"
    ):
        vendor_key(VENDORS, "acme", "", "BMC")
    with pytest.raises(
        BmcError, match=r"its Manufacturer 'Acme Corp' is no known vendor; set bmc.vendor to one of dell"
    ):
        vendor_key(VENDORS, "", "Acme Corp", "BMC")


def test_a_setting_that_a_profile_holds_is_not_written() -> None:
    """It is written only when the profile is, or becomes, the one that sets it free."""
    held = Firmware({"SysProfile": "PerfOptimized", "ProcCStates": "Enabled"}, {})
    plans = [plan(VENDORS, "dell", "cstates", "off", held)]
    resolve_bonds(plans, held)
    assert to_write(plans, held) == {}
    free = Firmware({"SysProfile": "PerfOptimized", "ProcCStates": "Enabled"}, {"SysProfile": "Custom"})
    plans = [plan(VENDORS, "dell", "cstates", "off", free)]
    resolve_bonds(plans, free)
    assert to_write(plans, free) == {"ProcCStates": "Disabled"}


# Boards as their BMCs showed them: the sources are those of vendors.yml.
BOARDS: dict[str, tuple[str, str, str, dict[str, str], dict[str, str]]] = {
    "Supermicro X11/X12": (
        "supermicro", "power_profile", "maximum-performance",
        {"PowerTechnology": "Energy Efficient", "PowerPerformanceTuning": "OS Controls EPB", "ENERGY_PERF_BIAS_CFGmode": "Power"},
        {"PowerTechnology": "Custom", "PowerPerformanceTuning": "BIOS Controls EPB", "ENERGY_PERF_BIAS_CFGmode": "Extreme Performance"},
    ),
    "Supermicro X13": (
        "supermicro", "power_profile", "balanced",
        {"PowerPerformanceTuning": "OS Controls EPB", "ENERGY_PERF_BIAS_CFGmode": "Power"},
        {"PowerPerformanceTuning": "BIOS Controls EPB", "ENERGY_PERF_BIAS_CFGmode": "Balanced Performance"},
    ),
    "Supermicro H13": (
        "supermicro", "power_profile", "maximum-performance",
        {"PowerProfileSelection": "Efficiency Mode", "DeterminismControl": "Auto", "DeterminismEnable": "Auto"},
        {"PowerProfileSelection": "High Performance Mode"},
    ),
    "Supermicro H12": (
        "supermicro", "power_profile", "maximum-performance",
        {"DeterminismControl": "Auto", "DeterminismEnable": "Enable Performance Determinism"},
        {"DeterminismControl": "Manual", "DeterminismEnable": "Disable Performance Determinism"},
    ),
    "HPE with EPYC": ("hpe", "turbo", "off", {"ProcAMDBoost": "Enabled"}, {"ProcAMDBoost": "Disabled"}),
    "Lenovo": (
        "lenovo", "power_profile", "balanced",
        {"OperatingModes_ChooseOperatingMode": "Efficiency_FavorPower"},
        {"OperatingModes_ChooseOperatingMode": "Efficiency_FavorPerformance"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("board", BOARDS)
def test_each_board_s_own_names_are_known(board: str) -> None:
    """A board whose setting has a name that other boards use too gets its own alternative."""
    vendor, setting, asked, current, expected = BOARDS[board]
    firmware = Firmware(current, {})
    chosen = plan(VENDORS, vendor, setting, asked, firmware)
    assert (chosen.unsupported, chosen.fallback) == ("", "")
    assert to_write([chosen], firmware) == expected


def test_a_fallback_is_never_said_as_applied() -> None:
    """PowerTechnology alone is set, and is not what was asked."""
    old = Firmware({"PowerTechnology": "Energy Efficient"}, {})
    chosen = plan(VENDORS, "supermicro", "power_profile", "maximum-performance", old)
    assert to_write([chosen], old) == {"PowerTechnology": "Disable"}
    now = Firmware({"PowerTechnology": "Disable"}, {})
    record = record_of(chosen, old.current, now, {"PowerTechnology": "Disable"}, {})
    assert record["status"] == "unsupported"
    assert record["detail"].startswith("a fallback is in force (PowerTechnology=Disable), which is not maximum-perf")


def test_names_are_found_with_the_suffix_that_the_vendor_s_data_allows() -> None:
    """Supermicro numbers its attributes on some boards."""
    suffix = VENDORS["supermicro"]["suffix"]
    present = {"TurboMode_00A7": "Enable", "TurboModeX": "", "QuietBoot_0027": "Enable"}
    assert found_names("TurboMode", suffix, present) == ["TurboMode_00A7"]
    assert found_names("TurboMode", "", present) == []
    firmware = Firmware(present, {})
    assert to_write([plan(VENDORS, "supermicro", "turbo", "off", firmware)], firmware) == {"TurboMode_00A7": "Disable"}
    present = {"CPUC6Report#0840": "Enable", "PackageCState#0843": "No Limit", "CPUC6Report#084": "Enable"}
    chosen = plan(VENDORS, "supermicro", "cstates", "off", Firmware(present, {}))
    assert to_write([chosen], Firmware(present, {})) == {
        "CPUC6Report#0840": "Disable",
        "PackageCState#0843": "C0/C1 state",
    }


@pytest.mark.parametrize(("asked", "written"), [("maximum", {"ThermalConfig": "MaxCooling"}), ("automatic", {})])
def test_hpe_s_fans_are_a_bios_setting(asked: str, written: dict[str, str]) -> None:
    """The values are those of HPE's attribute registry."""
    offered = {"ThermalConfig": ["OptimalCooling", "IncreasedCooling", "MaxCooling", "EnhancedCPUCooling"]}
    firmware = Firmware({"ThermalConfig": "OptimalCooling"}, {}, offered)
    chosen = plan(VENDORS, "hpe", "cooling", asked, firmware)
    assert (to_write([chosen], firmware), chosen.unsupported) == (written, "")
    # A BIOS that offers other words, and other makers': said, and nothing written.
    other = Firmware({"ThermalConfig": "A"}, {}, {"ThermalConfig": ["A", "B"]})
    refused = plan(VENDORS, "hpe", "cooling", asked, other)
    assert "does not offer" in refused.unsupported and to_write([refused], other) == {}
    assert "no such attribute" in plan(VENDORS, "dell", "cooling", asked, firmware).unsupported


def test_every_vendor_s_entry_is_complete() -> None:
    """Each entry has a source, and values for each word that may be asked."""
    words = {
        "cstates": {"on", "off"},
        "turbo": {"on", "off"},
        "memory_speed": {"maximum", "auto"},
        "cooling": {"maximum", "automatic"},
    }
    for key, data in VENDORS.items():
        assert data["source"], key
        for setting, entries in data["settings"].items():
            for entry in entries:
                for part in entry.get("all", [entry]):
                    asked = set(part["values"])
                    assert "maximum-performance" in asked if setting == "power_profile" else asked == words[setting], (
                        key
                    )
