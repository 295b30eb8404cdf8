"""Vendors as data: a file of another form is refused, what is stated fits together, and every resource can be reached and read."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daq_bench.virtual_candidate.bmc.bios import Bios
from daq_bench.virtual_candidate.bmc.mockup import Mockup
from daq_bench.virtual_candidate.bmc.power import Power
from daq_bench.virtual_candidate.bmc.redfish_service import SUPERMICRO_FAN_MODES, ProblemError, Service
from daq_bench.virtual_candidate.bmc.sensors import Sensors
from daq_bench.virtual_candidate.bmc.simulator import python_path
from daq_bench.virtual_candidate.hardware import FAN_MODES
from daq_bench.virtual_candidate.vendors import VENDORS, Vendor, vendors_of

OURS = {
    "manufacturer": "Ours", "iana": 1, "system": "1", "manager": "1", "chassis": "1", "settings": "SD",
    "attributes": [{"name": "Turbo", "values": ["On", "Off"], "default": "On"}],
}  # fmt: skip
ALL = pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS)


def test_the_power_switch_of_a_machine_needs_the_standard_library_alone() -> None:
    """ipmi_sim calls it with `-S`; what fails there is an unspecified error of every chassis command."""
    argv = [
        sys.executable,
        "-S",
        "-c",
        "import daq_bench.virtual_candidate.bmc.power, daq_bench.virtual_candidate.emulated.machine",
    ]
    done = subprocess.run(argv, env={"PYTHONPATH": python_path()}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def stated(tmp_path: Path, **changed: object) -> dict[str, Vendor]:
    file = tmp_path / "vendors.yml"
    file.write_bytes(msgspec.json.encode({"ours": {**OURS, **changed}}))  # JSON is YAML
    return vendors_of(file)


def service(tmp_path: Path, vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> Service:
    Bios(tmp_path).create(vendor)
    Sensors(tmp_path).create()
    monkeypatch.setattr(Power, "is_on", lambda power: False)
    return Service(tmp_path)


def links(value: Any) -> Iterator[str]:
    """Paths of the resources that a document links to; those within a document end in a fragment."""
    if isinstance(value, dict):
        if "#" not in (target := value.get("@odata.id", "#")):
            yield target
        for inner in value.values():
            yield from links(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from links(inner)


def test_a_vendor_is_what_its_file_states(tmp_path: Path) -> None:
    (ours,) = stated(tmp_path).values()
    assert (ours.key, ours.manufacturer, ours.needs_job) == ("ours", "Ours", False)
    assert ours.attribute("Turbo") == ours.attributes[0]
    assert ours.attribute("turbo") is None


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"atributes": []}, "atributes"),  # a key that nobody reads
        ({"iana": "674"}, "iana"),
        ({"iana": None}, "iana"),
        (
            {"attributes": [{"name": "Speed", "values": [2133], "default": "2133"}]},
            r"attributes\[0\].values",
        ),  # YAML's number
        (
            {"attributes": [{"name": "Turbo", "values": [True], "default": "On"}]},
            r"attributes\[0\].values",
        ),  # YAML 1.1's On
        ({"attributes": [{"name": "Turbo", "values": ["On"]}]}, "default"),
        ({"attributes": [{"name": "Turbo", "values": ["On"], "default": "On", "only_with": ["X"]}]}, "only_with"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, changed: dict[str, object], where: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=where):
        stated(tmp_path, **changed)


@ALL
def test_attributes_name_attributes_and_values_that_there_are(vendor: Vendor) -> None:
    known = {one.name: one.values for one in (*vendor.attributes, *vendor.at_once)}
    asked = [(one.name, one.default) for one in (*vendor.attributes, *vendor.at_once)]
    for one in vendor.attributes:
        asked += [one.only_with] if one.only_with else []
        asked += [(one.not_with[0], value) for value in one.not_with[1]] if one.not_with else []
    for name, moves in vendor.implied.items():
        for value, followed in moves.items():
            asked += [(name, value), *followed.items()]
    asked += [(name, value) for name, modes in vendor.fan_modes.items() for value in modes]
    assert [(name, value) for name, value in asked if value not in known.get(name, ())] == []
    modes = {mode for named in vendor.fan_modes.values() for mode in named.values()}
    assert modes <= {mode.name for mode in FAN_MODES} == set(SUPERMICRO_FAN_MODES.values())


@ALL
def test_every_resource_can_be_read_and_reached(
    tmp_path: Path, vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = service(tmp_path, vendor, monkeypatch)
    documents = {path: found.document(path) for path in found.readable()}
    for path, document in documents.items():
        assert document.get("@odata.id", path).rstrip("/") == path
        assert not re.search(r"\{\w+\}|\$", str(document)), document  # nothing that was not filled in
    linked = {target.rstrip("/") for document in documents.values() for target in links(document)}
    assert linked <= documents.keys()


def test_a_vendor_has_no_actions_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hpe, dell = (Mockup(VENDORS[name]).at for name in ("hpe", "dell"))
    assert set(dell) - set(hpe) == {"jobs", "delete_job", "clear_pending", "at_once"}
    found = service(tmp_path, VENDORS["hpe"], monkeypatch)
    for path in (dell["jobs"], dell["delete_job"], dell["clear_pending"]):
        with pytest.raises(ProblemError, match="takes no POST"):
            found.post(path, {})
    with pytest.raises(ProblemError, match="cannot be changed"):
        found.patch(dell["at_once"], {"Attributes": {}})


def test_a_reset_of_another_kind_names_those_that_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = service(tmp_path, VENDORS["dell"], monkeypatch)
    kinds = "On, ForceOn, ForceOff, GracefulShutdown, GracefulRestart, ForceRestart, PowerCycle"
    with pytest.raises(ProblemError, match=rf"'Nmi' .* not in its list: {kinds}\."):
        found.post(found.at["reset"], {"ResetType": "Nmi"})


def test_a_value_that_nobody_has_is_an_error(tmp_path: Path) -> None:
    (ours,) = stated(tmp_path, resources={"/redfish/v1/Ours": {"Name": "$nobody"}}).values()
    with pytest.raises(KeyError, match="nobody"):
        Mockup(ours).filled("/redfish/v1/Ours", {})
