"""The BIOS attributes: those in force, those pending until the next reset, and their permitted values. Kept in `bios.json`, with what a
start brings about: the power switch has the standard library alone, which does not read the vendors' file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daq_bench.virtual_candidate.bmc.sensors import Sensors
from daq_bench.virtual_candidate.files import locked, read_json, write_json

if TYPE_CHECKING:
    from daq_bench.virtual_candidate.vendors import Vendor


@dataclass(frozen=True)
class Refusal:
    """The reason why an attribute was not accepted: the name of a message in Redfish's Base registry, and its arguments."""

    message: str
    attribute: str
    text: str


@dataclass(frozen=True)
class Bios:
    """The attributes of the BMC whose state is in `directory`."""

    directory: Path

    @property
    def _file(self) -> Path:
        return self.directory / "bios.json"

    @property
    def _lock(self) -> Path:
        return self.directory / "bios.lock"

    def create(self, vendor: Vendor) -> None:
        """Sets all attributes to their defaults, with nothing pending."""
        defaults = {attribute.name: attribute.default for attribute in vendor.attributes}
        at_once = {attribute.name: attribute.default for attribute in vendor.at_once}
        state = {"vendor": vendor.key, "current": defaults, "pending": {}, "scheduled": False, "at_once": at_once}
        write_json(self._file, {**state, "implied": vendor.implied, "fan_modes": vendor.fan_modes})

    @property
    def vendor(self) -> Vendor:
        from daq_bench.virtual_candidate.vendors import VENDORS  # not for the power switch

        return VENDORS[self._read()["vendor"]]

    def current(self) -> dict[str, str]:
        return dict(self._read()["current"])

    def at_once(self) -> dict[str, str]:
        return dict(self._read()["at_once"])

    def set_at_once(self, attributes: dict[str, str]) -> None:
        """Brings attributes of the manager into force. They must have been found free of refusals."""
        with locked(self._lock):
            state = self._read()
            state["at_once"].update(attributes)
            write_json(self._file, state)
        self._set_fans(attributes)

    def _set_fans(self, changed: dict[str, str]) -> None:
        modes = self._read()["fan_modes"]
        for name, value in changed.items():
            if mode := modes.get(name, {}).get(value):
                Sensors(self.directory).set_fan_mode(mode)

    def pending(self) -> dict[str, str]:
        """Every attribute as the settings resource shows it: the values in force, overlaid by the requested ones."""
        state = self._read()
        return {**state["current"], **state["pending"]}

    def waiting(self) -> dict[str, str]:
        """Only the requested values that differ from those in force."""
        state = self._read()
        return {name: value for name, value in state["pending"].items() if state["current"][name] != value}

    @property
    def scheduled(self) -> bool:
        """True if the next reset will apply the pending values."""
        return bool(self._read()["scheduled"])

    def refusals(self, attributes: dict[str, Any]) -> list[Refusal]:
        """The faults of `attributes`; empty when all of them can be set."""
        vendor, wanted = self.vendor, {**self.pending(), **attributes}
        found = [_refusal(vendor, name, value) or _held(vendor, name, wanted) for name, value in attributes.items()]
        return [refusal for refusal in found if refusal]

    def set(self, attributes: dict[str, str], with_job: bool) -> None:
        """Adds `attributes` to the pending values. They must have been found free of refusals."""
        with locked(self._lock):
            state = self._read()
            state["pending"].update(attributes)
            state["scheduled"] = state["scheduled"] or with_job or not self.vendor.needs_job
            write_json(self._file, state)

    def clear(self) -> None:
        """Forgets what is pending, and the job for it."""
        with locked(self._lock):
            write_json(self._file, {**self._read(), "pending": {}, "scheduled": False})

    def schedule(self) -> None:
        """Does the work of a job for the settings: the next reset applies them."""
        with locked(self._lock):
            write_json(self._file, {**self._read(), "scheduled": True})

    def reset_to_defaults(self) -> None:
        """Makes every attribute's default pending."""
        self.set({attribute.name: attribute.default for attribute in self.vendor.attributes}, with_job=True)

    def power_on_self_test(self) -> dict[str, str]:
        """Does the BIOS' work at each start: brings pending values into force. Returns those that have changed."""
        with locked(self._lock):
            state = self._read()
            if not state["scheduled"]:
                return {}
            wanted: dict[str, str] = {}
            for name, value in state["pending"].items():
                if state["current"][name] != value:
                    wanted.update(state["implied"].get(name, {}).get(value, {}))
            wanted.update(state["pending"])
            changed = {name: value for name, value in wanted.items() if state["current"][name] != value}
            state["current"].update(changed)
            write_json(self._file, {**state, "pending": {}, "scheduled": False})
        self._set_fans(changed)
        return changed

    def _read(self) -> dict[str, Any]:
        document: dict[str, Any] = read_json(self._file)
        return document


def _held(vendor: Vendor, name: str, wanted: dict[str, Any]) -> Refusal | None:
    """Why an attribute cannot be set beside the others' values, as a dependency of the attribute registry."""
    attribute = vendor.attribute(name)
    if attribute is not None and attribute.not_with and wanted.get(attribute.not_with[0]) in attribute.not_with[1]:
        other = attribute.not_with[0]
        text = f"The BIOS attribute {name} is read-only while {other} is {wanted[other]!r}."
        return Refusal("PropertyNotWritable", name, text)
    if attribute is None or attribute.only_with is None or wanted.get(attribute.only_with[0]) == attribute.only_with[1]:
        return None
    other, value = attribute.only_with
    return Refusal(
        "PropertyNotWritable", name, f"The BIOS attribute {name} is read-only while {other} is not {value!r}."
    )


def _refusal(vendor: Vendor, name: str, value: Any) -> Refusal | None:
    attribute = vendor.attribute(name)
    if attribute is None:
        return Refusal("PropertyUnknown", name, f"The BIOS attribute {name} is not known to this system.")
    if attribute.read_only:
        return Refusal("PropertyNotWritable", name, f"The BIOS attribute {name} is read-only.")
    if not isinstance(value, str):
        text = f"The value {value!r} of the BIOS attribute {name} is of another type than the attribute, which is text."
        return Refusal("PropertyValueTypeError", name, text)
    if value not in attribute.values:
        text = f"The value {value!r} of the BIOS attribute {name} is not in its list: {', '.join(attribute.values)}."
        return Refusal("PropertyValueNotInList", name, text)
    return None
