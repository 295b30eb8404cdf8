"""The Redfish resources of a vendor's BMC: `mockup.yml` and what `vendors.yml` adds, filled in.

In both, `{name}` is a path or a word of the vendor's, "@PATH" a link to a resource, and "$name" the value that the caller has now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from daq_bench.virtual_candidate.bmc.bios import Refusal
from daq_bench.virtual_candidate.hardware import FANS, INLET, SENSORS, Sensor
from daq_bench.virtual_candidate.vendors import Vendor

Document = dict[str, Any]
Values = Mapping[str, Callable[[], Any]]


class Mockup:
    """`at`: the path of each resource and action by its name. `resources`: by path, still to be filled."""

    def __init__(self, vendor: Vendor) -> None:
        common = YAML(typ="safe").load(Path(__file__).with_name("mockup.yml"))
        self.at: dict[str, str] = {}
        self._words = {
            **{f"{part}_id": getattr(vendor, part) for part in ("system", "manager", "chassis", "settings")},
            "manufacturer": vendor.manufacturer,
            "brand": vendor.manufacturer.split(" (")[0].removesuffix(" Inc."),
        }
        for name, path in {**common["paths"], **vendor.paths}.items():
            self.at[name] = self._words[name] = path.format_map(self._words)
        self.resources: dict[str, Document] = {}
        for path, document in (*common["resources"].items(), *vendor.resources.items()):
            self.resources.setdefault(path.format_map(self._words), {}).update(document)

    def filled(self, path: str, values: Values) -> Document:
        """The resource at `path` as it is now. Raises KeyError where there is none, or a value is not among `values`."""
        document: Document = self._filled(self.resources[path], values)
        return document

    def _filled(self, value: Any, values: Values) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(inner, values) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._filled(inner, values) for inner in value]
        if not isinstance(value, str):
            return value
        if value.startswith("$"):
            return values[value[1:]]()
        return link(value[1:].format_map(self._words)) if value.startswith("@") else value.format_map(self._words)


def link(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def registry_attributes(vendor: Vendor) -> list[Document]:
    """The attributes as entries of the attribute registry."""
    return [
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


def registry_dependencies(vendor: Vendor) -> list[Document]:
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


def temperatures(path: str, read: Callable[[str], int]) -> list[Document]:
    """The thermometers, as members of the resource at `path`."""

    def one(sensor: Sensor) -> Document:
        upper = sensor.thresholds["unc"]
        return {
            "SensorNumber": sensor.number,
            "ReadingCelsius": read(sensor.name),
            "UpperThresholdNonCritical": upper,
            "UpperThresholdCritical": sensor.thresholds["uc"],
            "PhysicalContext": "Intake" if sensor.name == INLET else "SystemBoard",
            "Status": {"State": "Enabled", "Health": "OK" if read(sensor.name) < upper else "Warning"},
        }

    return _members(f"{path}#/Temperatures", [sensor for sensor in SENSORS if sensor.unit == "degrees_C"], one)


def fans(path: str, read: Callable[[str], int]) -> list[Document]:
    """The fans, as members of the resource at `path`."""

    def one(sensor: Sensor) -> Document:
        lower = sensor.thresholds["lc"]
        return {
            "Reading": read(sensor.name),
            "ReadingUnits": "RPM",
            "LowerThresholdCritical": lower,
            "Status": {"State": "Enabled", "Health": "OK" if read(sensor.name) > lower else "Critical"},
        }

    names = [fan.name for fan in FANS]
    return _members(f"{path}#/Fans", [sensor for sensor in SENSORS if sensor.name in names], one)


def _members(path: str, sensors: list[Sensor], one: Callable[[Sensor], Document]) -> list[Document]:
    return [
        {**link(f"{path}/{index}"), "MemberId": str(index), "Name": sensor.name, **one(sensor)}
        for index, sensor in enumerate(sensors)
    ]


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
