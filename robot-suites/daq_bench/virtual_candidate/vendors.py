"""The differences between vendors' BMCs, which `vendors.yml` states with their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from ruamel.yaml import YAML


class Attribute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A BIOS attribute of type Enumeration. `only_with`: it can be set only while this attribute has, or is about to have, this value;
    `not_with`: not while this one has, or is about to have, one of these values, which move it."""

    name: str
    values: tuple[str, ...]
    default: str
    read_only: bool = False
    only_with: tuple[str, str] | None = None
    not_with: tuple[str, tuple[str, ...]] | None = None


class Vendor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One vendor's BMC as it presents itself.

    `iana`: manufacturer id in IPMI's Get Device ID (IANA private enterprise number). `system`, `manager`, `chassis`, `settings`: the last
    parts of these resources' paths. `paths`, `resources`: its own beside those of `bmc/mockup.yml`, in the same form; keys of a resource
    that is there join it. `tag_demanded`: a change of the settings must name their entity tag (If-Match), else it is refused with this
    status, 412 or 428. `at_once`: attributes of the manager that are in force at once. `fan_modes`: attribute -> value -> the fan mode
    that it sets when it comes into force. `implied`: attribute -> value -> what follows when it comes into force."""

    key: str
    manufacturer: str
    iana: int
    attributes: tuple[Attribute, ...]
    system: str
    manager: str
    chassis: str
    settings: str
    paths: dict[str, str] = {}
    resources: dict[str, dict[str, Any]] = {}
    tag_demanded: int = 0
    at_once: tuple[Attribute, ...] = ()
    fan_modes: dict[str, dict[str, str]] = {}
    implied: dict[str, dict[str, dict[str, str]]] = {}

    def attribute(self, name: str) -> Attribute | None:
        return next((each for each in (*self.attributes, *self.at_once) if each.name == name), None)

    @property
    def needs_job(self) -> bool:
        """Pending attributes are applied at a reset only when a job was made for it: @Redfish.SettingsApplyTime, or POST to Jobs."""
        return "jobs" in self.paths


def vendors_of(file: Path) -> dict[str, Vendor]:
    """The vendors that `file` states. Raises msgspec.ValidationError, with the key's place, where it is not of this form."""
    stated = YAML(typ="safe").load(file)
    return msgspec.convert({key: {"key": key, **rest} for key, rest in stated.items()}, dict[str, Vendor])


VENDORS = vendors_of(Path(__file__).with_name("vendors.yml"))
