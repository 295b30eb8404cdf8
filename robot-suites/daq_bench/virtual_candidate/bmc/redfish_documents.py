"""The Redfish resources as documents. Pure: state in, JSON-able values out. Schema names: DMTF DSP8010."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daq_bench.virtual_candidate.bmc.bios import Refusal
from daq_bench.virtual_candidate.hardware import FANS, INLET, POWER, SENSORS
from daq_bench.virtual_candidate.vendors import Vendor

ROOT = "/redfish/v1"
RESET_TYPES = ("On", "ForceOn", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle")
# Names of Supermicro's fan modes in its Redfish extension -> names in hardware.FAN_MODES.
SUPERMICRO_FAN_MODES = {"Standard": "standard", "FullSpeed": "full", "Optimal": "optimal", "HeavyIO": "heavy-io"}

Document = dict[str, Any]


def paths(vendor: Vendor) -> dict[str, str]:
    """The paths of this vendor's resources."""
    system = f"{ROOT}/Systems/{vendor.system}"
    manager = f"{ROOT}/Managers/{vendor.manager}"
    chassis = f"{ROOT}/Chassis/{vendor.chassis}"
    registry = f"{ROOT}/Registries/{vendor.registry}"
    return {
        "system": system,
        "reset": f"{system}/Actions/ComputerSystem.Reset",
        "bios": f"{system}/Bios",
        "settings": f"{system}/Bios/{vendor.settings}",
        "reset_bios": f"{system}/Bios/Actions/Bios.ResetBios",
        "manager": manager,
        "jobs": f"{manager}/Oem/Dell/Jobs",
        "delete_job": f"{manager}/Oem/Dell/DellJobService/Actions/DellJobService.DeleteJobQueue",
        "clear_pending": f"{system}/Bios/{vendor.settings}/Actions/Oem/DellManager.ClearPending",
        "at_once": f"{manager}/{vendor.at_once_path}",
        "fan_mode": f"{manager}/Oem/Supermicro/FanMode",
        "chassis": chassis,
        "power": f"{chassis}/Power",
        "thermal": f"{chassis}/Thermal",
        "thermal_subsystem": f"{chassis}/ThermalSubsystem",
        "thermal_metrics": f"{chassis}/ThermalSubsystem/ThermalMetrics",
        "environment": f"{chassis}/EnvironmentMetrics",
        "inlet": f"{chassis}/Sensors/InletTemp",
        "registry": registry,
        "registry_file": f"{registry}/{vendor.registry}.json",
    }


def resource(path: str, kind: str, identifier: str, name: str, **rest: Any) -> Document:
    return {"@odata.id": path, "@odata.type": f"#{kind}", "Id": identifier, "Name": name, **rest}


def collection(path: str, kind: str, members: list[str]) -> Document:
    return {
        "@odata.id": path,
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "Name": f"{kind} collection",
        "Members": [link(member) for member in members],
        "Members@odata.count": len(members),
    }


def link(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def service_root(vendor: Vendor) -> Document:
    links = {name: link(f"{ROOT}/{name}") for name in ("Systems", "Chassis", "Managers", "Registries")}
    return resource(
        f"{ROOT}/",
        "ServiceRoot.v1_5_0.ServiceRoot",
        "RootService",
        "Root service",
        RedfishVersion="1.6.0",
        UUID="a1234567-89ab-cdef-a123-456789abcdef",
        Vendor=vendor.manufacturer.split(" (")[0].removesuffix(" Inc."),
        Product="Virtual candidate",
        **links,
    )


def system(vendor: Vendor, is_on: bool) -> Document:
    at = paths(vendor)
    reset = {"target": at["reset"], "ResetType@Redfish.AllowableValues": list(RESET_TYPES)}
    return resource(
        at["system"],
        "ComputerSystem.v1_5_0.ComputerSystem",
        vendor.system,
        "System",
        SystemType="Physical",
        Manufacturer=vendor.manufacturer,
        Model="Virtual candidate (QEMU)",
        SerialNumber="VCAND01",
        BiosVersion="1.0",
        PowerState="On" if is_on else "Off",
        Status={"State": "Enabled" if is_on else "StandbyOffline", "Health": "OK"},
        Bios=link(at["bios"]),
        Links={"Chassis": [link(at["chassis"])], "ManagedBy": [link(at["manager"])]},
        Actions={"#ComputerSystem.Reset": reset},
    )


def bios(vendor: Vendor, attributes: dict[str, str]) -> Document:
    at = paths(vendor)
    settings = {
        "@odata.type": "#Settings.v1_1_0.Settings",
        "SettingsObject": link(at["settings"]),
        "SupportedApplyTimes": ["OnReset"],
    }
    return resource(
        at["bios"],
        "Bios.v1_0_4.Bios",
        "Bios",
        "BIOS attributes in force",
        AttributeRegistry=vendor.registry,
        Attributes=attributes,
        Actions={"#Bios.ResetBios": {"target": at["reset_bios"]}},
        **{"@Redfish.Settings": settings},
    )


def bios_settings(vendor: Vendor, attributes: dict[str, str]) -> Document:
    at = paths(vendor)
    clear = {"#DellManager.ClearPending": {"target": at["clear_pending"]}} if vendor.needs_job else {}
    return resource(
        at["settings"],
        "Bios.v1_0_4.Bios",
        vendor.settings,
        "BIOS attributes after the next reset",
        AttributeRegistry=vendor.registry,
        Attributes=attributes,
        **({"Actions": clear} if clear else {}),
    )


def registry_location(vendor: Vendor) -> Document:
    at = paths(vendor)
    return resource(
        at["registry"],
        "MessageRegistryFile.v1_1_0.MessageRegistryFile",
        vendor.registry,
        "Where the BIOS attribute registry is",
        Registry=vendor.registry,
        Languages=["en"],
        Location=[{"Language": "en", "Uri": at["registry_file"]}],
    )


def registry(vendor: Vendor) -> Document:
    entries = [
        {
            "AttributeName": attribute.name,
            "DisplayName": attribute.name,
            "Type": "Enumeration",
            "ReadOnly": attribute.read_only,
            "DefaultValue": attribute.default,
            "ResetRequired": True,
            "Value": [{"ValueName": value, "ValueDisplayName": value} for value in attribute.values],
        }
        for attribute in vendor.attributes
    ]
    return {
        "@odata.type": "#AttributeRegistry.v1_3_0.AttributeRegistry",
        "Id": vendor.registry,
        "Name": "BIOS attribute registry",
        "Language": "en",
        "OwningEntity": vendor.manufacturer,
        "RegistryVersion": "1.0.0",
        "RegistryEntries": {"Attributes": entries, "Dependencies": _dependencies(vendor)},
    }


def _dependencies(vendor: Vendor) -> list[Document]:
    """Says which attributes are read-only while another one has not a certain value (DSP0268, AttributeRegistry, Dependencies)."""
    return [
        {
            "DependencyFor": attribute.name,
            "Type": "Map",
            "Dependency": {
                "MapFrom": [
                    {
                        "MapFromAttribute": attribute.only_with[0],
                        "MapFromProperty": "CurrentValue",
                        "MapFromCondition": "NEQ",
                        "MapFromValue": attribute.only_with[1],
                    }
                ],
                "MapToAttribute": attribute.name,
                "MapToProperty": "ReadOnly",
                "MapToValue": True,
            },
        }
        for attribute in vendor.attributes
        if attribute.only_with
    ]


def chassis(vendor: Vendor) -> Document:
    at = paths(vendor)
    return resource(
        at["chassis"],
        "Chassis.v1_9_0.Chassis",
        vendor.chassis,
        "Chassis",
        ChassisType="RackMount",
        Manufacturer=vendor.manufacturer,
        Model="Virtual candidate (QEMU)",
        Status={"State": "Enabled", "Health": "OK"},
        Power=link(at["power"]),
        Thermal=link(at["thermal"]),
        ThermalSubsystem=link(at["thermal_subsystem"]),
        EnvironmentMetrics=link(at["environment"]),
        Links={"ComputerSystems": [link(at["system"])], "ManagedBy": [link(at["manager"])]},
    )


def power(vendor: Vendor, read: Callable[[str], int]) -> Document:
    path = paths(vendor)["power"]
    watts = read(POWER)
    control = {
        "@odata.id": f"{path}#/PowerControl/0",
        "MemberId": "0",
        "Name": "System power control",
        "PowerConsumedWatts": watts,
        "PowerMetrics": dict.fromkeys(("AverageConsumedWatts", "MinConsumedWatts", "MaxConsumedWatts"), watts),
    }
    return resource(path, "Power.v1_5_0.Power", "Power", "Power", PowerControl=[control])


def thermal(vendor: Vendor, read: Callable[[str], int]) -> Document:
    path = paths(vendor)["thermal"]
    temperatures = [sensor for sensor in SENSORS if sensor.unit == "degrees_C"]
    fans = [sensor for sensor in SENSORS if sensor.name in [fan.name for fan in FANS]]
    return resource(
        path,
        "Thermal.v1_5_0.Thermal",
        "Thermal",
        "Thermal",
        Temperatures=[
            {
                "@odata.id": f"{path}#/Temperatures/{index}",
                "MemberId": str(index),
                "Name": sensor.name,
                "SensorNumber": sensor.number,
                "ReadingCelsius": read(sensor.name),
                "UpperThresholdNonCritical": sensor.thresholds["unc"],
                "UpperThresholdCritical": sensor.thresholds["uc"],
                "PhysicalContext": "Intake" if sensor.name == INLET else "SystemBoard",
                "Status": {
                    "State": "Enabled",
                    "Health": "OK" if read(sensor.name) < sensor.thresholds["unc"] else "Warning",
                },
            }
            for index, sensor in enumerate(temperatures)
        ],
        Fans=[
            {
                "@odata.id": f"{path}#/Fans/{index}",
                "MemberId": str(index),
                "Name": sensor.name,
                "Reading": read(sensor.name),
                "ReadingUnits": "RPM",
                "LowerThresholdCritical": sensor.thresholds["lc"],
                "Status": {
                    "State": "Enabled",
                    "Health": "OK" if read(sensor.name) > sensor.thresholds["lc"] else "Critical",
                },
            }
            for index, sensor in enumerate(fans)
        ],
    )


def thermal_subsystem(vendor: Vendor) -> Document:
    at = paths(vendor)
    path = at["thermal_subsystem"]
    metrics = link(at["thermal_metrics"])
    return resource(
        path, "ThermalSubsystem.v1_0_0.ThermalSubsystem", "ThermalSubsystem", "Thermal", ThermalMetrics=metrics
    )


def thermal_metrics(vendor: Vendor, read: Callable[[str], int]) -> Document:
    at = paths(vendor)
    intake = {"DataSourceUri": at["inlet"], "Reading": read(INLET)}
    return resource(
        at["thermal_metrics"],
        "ThermalMetrics.v1_0_0.ThermalMetrics",
        "ThermalMetrics",
        "Thermal metrics",
        TemperatureSummaryCelsius={"Intake": intake},
    )


def environment_metrics(vendor: Vendor, read: Callable[[str], int]) -> Document:
    """Tells the temperature of the chassis as a whole; only its sensor says which one that is."""
    at = paths(vendor)
    return resource(
        at["environment"],
        "EnvironmentMetrics.v1_0_0.EnvironmentMetrics",
        "EnvironmentMetrics",
        "Environment",
        TemperatureCelsius={"DataSourceUri": at["inlet"], "Reading": read(INLET)},
    )


def inlet_sensor(vendor: Vendor, read: Callable[[str], int]) -> Document:
    return resource(
        paths(vendor)["inlet"],
        "Sensor.v1_0_0.Sensor",
        "InletTemp",
        INLET,
        ReadingType="Temperature",
        ReadingUnits="Cel",
        Reading=read(INLET),
        PhysicalContext="Intake",
        Status={"State": "Enabled", "Health": "OK"},
    )


def manager(vendor: Vendor) -> Document:
    at = paths(vendor)
    rest: Document = {"Jobs": link(at["jobs"])} if vendor.needs_job else {}
    if vendor.key == "supermicro":
        rest["Oem"] = {"Supermicro": {"FanMode": link(at["fan_mode"])}}
    return resource(
        at["manager"],
        "Manager.v1_5_0.Manager",
        vendor.manager,
        "Manager",
        ManagerType="BMC",
        Manufacturer=vendor.manufacturer,
        Model="Virtual BMC",
        FirmwareVersion="1.0",
        Status={"State": "Enabled", "Health": "OK"},
        Links={"ManagerForServers": [link(at["system"])], "ManagerForChassis": [link(at["chassis"])]},
        **rest,
    )


def at_once(vendor: Vendor, attributes: dict[str, str]) -> Document:
    path = paths(vendor)["at_once"]
    return resource(
        path, "DellAttributes.v1_0_0.DellAttributes", path.rpartition("/")[2], "System", Attributes=attributes
    )


def fan_mode(vendor: Vendor, mode: str) -> Document:
    names = {name: key for key, name in SUPERMICRO_FAN_MODES.items()}
    return resource(
        paths(vendor)["fan_mode"],
        "SmcFanMode.v1_0_0.FanMode",
        "FanMode",
        "Fan mode",
        Mode=names[mode],
        **{"Mode@Redfish.AllowableValues": list(SUPERMICRO_FAN_MODES)},
    )


def error(refusals: list[Refusal]) -> Document:
    """An error answer; one message per refusal."""
    messages = [
        {
            "@odata.type": "#Message.v1_0_8.Message",
            "MessageId": f"Base.1.8.{refusal.message}",
            "Message": refusal.text,
            "Severity": "Warning",
            "Resolution": "Correct the request and submit it again.",
            **({"RelatedProperties": [f"#/Attributes/{refusal.attribute}"]} if refusal.attribute else {}),
        }
        for refusal in refusals
    ]
    text = refusals[0].text if len(refusals) == 1 else "Several properties were refused; see @Message.ExtendedInfo."
    return {"error": {"code": "Base.1.8.GeneralError", "message": text, "@Message.ExtendedInfo": messages}}
