"""The differences between vendors' BMCs: identities, Redfish paths, BIOS attributes. Data, with its sources.

Attribute names and values are those that the vendors' own Redfish services use; a virtual BMC offers the few that a bench sets.

Sources: Dell, "Integrated Dell Remote Access Controller 9 attribute registry" (BIOS.Setup); HPE, "UEFI workload-based performance
tuning guide for Gen10" and the iLO 5 BIOS attribute registry; Supermicro, "Redfish reference guide" and the BIOS attribute registry
of X11 and H11 boards; Lenovo, "XClarity Controller REST API guide" and the UEFI settings of ThinkSystem servers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Attribute:
    """A BIOS attribute of type Enumeration."""

    name: str
    values: tuple[str, ...]
    default: str
    read_only: bool = False
    only_with: tuple[str, str] | None = (
        None  # can be set only while this attribute has, or is about to have, this value
    )
    # Cannot be set while this attribute has, or is about to have, one of these values: they move it.
    not_with: tuple[str, tuple[str, ...]] | None = None


@dataclass(frozen=True)
class Vendor:
    """One vendor's BMC as it presents itself."""

    key: str
    manufacturer: str
    iana: int  # manufacturer id in IPMI's Get Device ID (IANA private enterprise number)
    attributes: tuple[Attribute, ...]
    system: str = "1"
    manager: str = "1"
    chassis: str = "1"
    settings: str = "Settings"  # last part of the path of the pending attributes, below Bios
    # Pending attributes are applied at a reset only when a job was made for it: @Redfish.SettingsApplyTime, or POST to Jobs.
    needs_job: bool = False
    # A change of the settings must name their entity tag (If-Match), else it is refused with 412 or 428.
    tag_demanded: int = 0
    # The fan mode that an attribute's value sets when it comes into force: attribute -> value -> fan mode.
    fan_modes: dict[str, dict[str, str]] = field(default_factory=dict)
    # Attributes of the manager that are in force at once, and the end of their resource's path below it.
    at_once: tuple[Attribute, ...] = ()
    at_once_path: str = ""
    # Attributes that follow from another one's value when it comes into force: (attribute, value) -> what follows.
    implied: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)

    def attribute(self, name: str) -> Attribute | None:
        return next((each for each in (*self.attributes, *self.at_once) if each.name == name), None)

    @property
    def registry(self) -> str:
        """Id of the BIOS attribute registry."""
        return "BiosAttributeRegistry.v1_0_0"


_ON_OFF = ("Enabled", "Disabled")
_ENABLE = ("Enable", "Disable")
# A profile holds the attributes that it sets: the registries make them read-only unless it is Custom.
_DELL_CUSTOM = ("SysProfile", "Custom")
_HPE_CUSTOM = ("WorkloadProfile", "Custom")
_HPE_MOVING = ("WorkloadProfile", ("LowLatency", "HighPerformanceCompute(HPC)"))
_LENOVO_CUSTOM = ("OperatingModes_ChooseOperatingMode", "CustomMode")

DELL = Vendor(
    "dell",
    "Dell Inc. (emulated)",
    674,
    (
        Attribute(
            "SysProfile",
            (
                "PerfPerWattOptimizedDapc",
                "PerfPerWattOptimizedOs",
                "PerfOptimized",
                "PerfWorkStationOptimized",
                "Custom",
            ),
            "PerfPerWattOptimizedDapc",
        ),
        Attribute("ProcPwrPerf", ("SysDbpm", "OsDbpm", "MaxPerf"), "SysDbpm", only_with=_DELL_CUSTOM),
        Attribute("ProcCStates", ("Enabled", "Disabled", "Autonomous"), "Enabled", only_with=_DELL_CUSTOM),
        Attribute("ProcC1E", _ON_OFF, "Enabled", only_with=_DELL_CUSTOM),
        Attribute("ProcTurboMode", _ON_OFF, "Enabled", only_with=_DELL_CUSTOM),
        Attribute(
            "MemFrequency",
            ("MaxPerf", "MaxReliab", "3200MHz", "2933MHz", "2666MHz", "2400MHz"),
            "MaxPerf",
            only_with=_DELL_CUSTOM,
        ),
        # Moved by PerfOptimized besides (R750, BIOS 1.8.2, attribute registry in NVIDIA/libredfish's tests/mockups/dell).
        Attribute("WriteDataCrc", _ON_OFF, "Enabled", only_with=_DELL_CUSTOM),
        Attribute("PcieAspmL1", _ON_OFF, "Enabled", only_with=_DELL_CUSTOM),
        Attribute("MemPatrolScrub", ("Standard", "Extended", "Disabled"), "Extended", only_with=_DELL_CUSTOM),
        Attribute("UncoreFrequency", ("DynamicUFS", "MaxUFS"), "DynamicUFS", only_with=_DELL_CUSTOM),
        Attribute("SystemServiceTag", ("VCAND01",), "VCAND01", read_only=True),
    ),
    system="System.Embedded.1",
    manager="iDRAC.Embedded.1",
    chassis="System.Embedded.1",
    needs_job=True,
    at_once=(
        Attribute(
            "ThermalSettings.1.ThermalProfile",
            ("Default Thermal Profile Settings", "Maximum Performance", "Minimum Power", "Sound Cap"),
            "Default Thermal Profile Settings",
        ),
        Attribute("ThermalSettings.1.FanSpeedOffset", ("Off", "Low", "Medium", "High", "Max"), "Off"),
    ),
    at_once_path="Oem/Dell/DellAttributes/System.Embedded.1",
    fan_modes={"ThermalSettings.1.FanSpeedOffset": {"Max": "full", "Off": "standard"}},
    implied={
        ("SysProfile", "PerfOptimized"): {
            "ProcPwrPerf": "MaxPerf",
            "ProcCStates": "Disabled",
            "ProcC1E": "Disabled",
            "ProcTurboMode": "Enabled",
            "MemFrequency": "MaxPerf",
            "WriteDataCrc": "Disabled",
            "PcieAspmL1": "Disabled",
            "MemPatrolScrub": "Standard",
            "UncoreFrequency": "MaxUFS",
        },
        ("SysProfile", "PerfPerWattOptimizedDapc"): {
            "WriteDataCrc": "Enabled",
            "PcieAspmL1": "Enabled",
            "MemPatrolScrub": "Extended",
            "UncoreFrequency": "DynamicUFS",
            "ProcPwrPerf": "SysDbpm",
            "ProcCStates": "Enabled",
            "ProcC1E": "Enabled",
            "ProcTurboMode": "Enabled",
            "MemFrequency": "MaxPerf",
        },
    },
)

HPE = Vendor(
    "hpe",
    "HPE (emulated)",
    47196,
    (
        Attribute(
            "WorkloadProfile",
            (
                "GeneralPowerEfficientCompute",
                "GeneralPeakFrequencyCompute",
                "GeneralThroughputCompute",
                "LowLatency",
                "I/OThroughput",
                "HighPerformanceCompute(HPC)",
                "Custom",
            ),
            "GeneralPowerEfficientCompute",
        ),
        Attribute(
            "PowerRegulator",
            ("DynamicPowerSavings", "StaticLowPower", "StaticHighPerf", "OsControl"),
            "DynamicPowerSavings",
            only_with=_HPE_CUSTOM,
        ),
        Attribute("MinProcIdlePower", ("NoCStates", "C1E", "C6"), "C6", only_with=_HPE_CUSTOM),
        Attribute(
            "MinProcIdlePkgState", ("NoState", "C6NonRetention", "C6Retention"), "C6Retention", only_with=_HPE_CUSTOM
        ),
        Attribute(
            "EnergyPerfBias",
            ("MaxPerf", "BalancedPerf", "BalancedPower", "PowerSavingsMode"),
            "BalancedPerf",
            only_with=_HPE_CUSTOM,
        ),
        Attribute("ProcTurbo", _ON_OFF, "Enabled", only_with=_HPE_CUSTOM),
        Attribute(
            "MaxMemBusFreqMHz",
            ("Auto", "MaxMemBusFreq3200", "MaxMemBusFreq2933", "MaxMemBusFreq2667", "MaxMemBusFreq2400"),
            "Auto",
        ),
        Attribute(
            "ThermalConfig",
            ("OptimalCooling", "IncreasedCooling", "MaxCooling", "EnhancedCPUCooling"),
            "OptimalCooling",
        ),
        # Moved by two profiles of Intel servers and put back by none (U58, DL380a Gen11, BIOS attribute registry in spyroot/redfish_ctl).
        Attribute("Sriov", _ON_OFF, "Enabled", not_with=_HPE_MOVING),
        Attribute("IntelProcVtd", _ON_OFF, "Enabled", not_with=_HPE_MOVING),
        Attribute("ProcVirtualization", _ON_OFF, "Enabled", not_with=_HPE_MOVING),
        Attribute("ProcX2Apic", ("Enabled", "ForceEnabled", "Disabled"), "Enabled", not_with=_HPE_MOVING),
        Attribute(
            "AdvancedMemProtection",
            ("FastFaultTolerantADDDC", "AdvancedEcc", "MirroredMemory"),
            "FastFaultTolerantADDDC",
            not_with=_HPE_MOVING,
        ),
        Attribute("SerialNumber", ("VCAND01",), "VCAND01", read_only=True),
    ),
    implied={
        ("WorkloadProfile", "HighPerformanceCompute(HPC)"): {
            "Sriov": "Disabled",
            "IntelProcVtd": "Disabled",
            "ProcVirtualization": "Disabled",
            "ProcX2Apic": "Disabled",
            "AdvancedMemProtection": "AdvancedEcc",
        },
    },
    fan_modes={
        "ThermalConfig": {
            "OptimalCooling": "standard",
            "IncreasedCooling": "heavy-io",
            "MaxCooling": "full",
            "EnhancedCPUCooling": "heavy-io",
        }
    },
)

SUPERMICRO = Vendor(
    "supermicro",
    "Supermicro (emulated)",
    10876,
    (
        Attribute("PowerTechnology", ("Disable", "Energy Efficient", "Custom"), "Energy Efficient"),
        Attribute(
            "PowerPerformanceTuning",
            ("OS Controls EPB", "BIOS Controls EPB"),
            "OS Controls EPB",
            only_with=("PowerTechnology", "Custom"),
        ),
        Attribute(
            "ENERGY_PERF_BIAS_CFGMode",
            ("Maximum Performance", "Performance", "Balanced Performance", "Balanced Power", "Power"),
            "Balanced Performance",
            only_with=("PowerPerformanceTuning", "BIOS Controls EPB"),
        ),
        Attribute("TurboMode", _ENABLE, "Enable"),
        Attribute("CPUC6Report", (*_ENABLE, "Auto"), "Auto"),
        Attribute("EnhancedHaltState_C1E", _ENABLE, "Enable"),
        Attribute(
            "PackageCState",
            ("C0/C1 state", "C2 state", "C6(non Retention) state", "C6(Retention) state", "No Limit", "Auto"),
            "Auto",
        ),
        Attribute("MemoryFrequency", ("Auto", "2133", "2400", "2666", "2933", "3200"), "Auto"),
        Attribute("BMCFirmwareRevision", ("1.0",), "1.0", read_only=True),
    ),
    settings="SD",
)

LENOVO = Vendor(
    "lenovo",
    "Lenovo (emulated)",
    19046,
    (
        Attribute(
            "OperatingModes_ChooseOperatingMode",
            (
                "MaximumPerformance",
                "MaximumEfficiency",
                "Efficiency_FavorPerformance",
                "Efficiency_FavorPower",
                "MinimalPower",
                "CustomMode",
            ),
            "MaximumEfficiency",
        ),
        Attribute("Processors_CStates", ("Legacy", "Autonomous", "Disable"), "Legacy", only_with=_LENOVO_CUSTOM),
        Attribute("Processors_C1EnhancedMode", _ENABLE, "Enable", only_with=_LENOVO_CUSTOM),
        Attribute("Processors_TurboMode", _ENABLE, "Enable", only_with=_LENOVO_CUSTOM),
        Attribute(
            "Memory_MemorySpeed", ("MaxPerformance", "Balanced", "MinimalPower"), "Balanced", only_with=_LENOVO_CUSTOM
        ),
        Attribute("SystemInformation_SerialNumber", ("VCAND01",), "VCAND01", read_only=True),
    ),
    settings="Pending",
    tag_demanded=412,  # newer firmware (ansible-collections/community.general#11261)
    implied={
        ("OperatingModes_ChooseOperatingMode", "MaximumPerformance"): {
            "Processors_CStates": "Disable",
            "Processors_C1EnhancedMode": "Disable",
            "Processors_TurboMode": "Enable",
            "Memory_MemorySpeed": "MaxPerformance",
        },
        ("OperatingModes_ChooseOperatingMode", "MaximumEfficiency"): {
            "Processors_CStates": "Legacy",
            "Processors_C1EnhancedMode": "Enable",
            "Processors_TurboMode": "Enable",
            "Memory_MemorySpeed": "Balanced",
        },
    },
)

VENDORS = {vendor.key: vendor for vendor in (DELL, HPE, SUPERMICRO, LENOVO)}
DEFAULT_VENDOR = SUPERMICRO.key
