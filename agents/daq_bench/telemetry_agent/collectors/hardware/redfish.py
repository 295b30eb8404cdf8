"""The air at the server's inlet as its BMC tells it by Redfish, beside what IPMI says of it.

Promise: only reads, for at most TIME_S_MAX; both of Redfish's trees are read where the BMC has them, of the chassis alone that hold its
one server; an invalid reading gives no point, and is named. A service that cannot be read from the start is one that the server has
not (many BMCs have none, or let nobody in); one that answered before and is silent is a failed sample.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from daq_bench.telemetry_agent.base.point import Point, Tags
from daq_bench.telemetry_agent.collectors.ipmi import PASSWORD_VARIABLE
from daq_bench.telemetry_agent.devices.redfish_inlet import AIR, READERS, is_server
from daq_bench.telemetry_agent.devices.redfish_service import Address, Session, link, links
from daq_bench.telemetry_agent.reading.collector import Reading, Unsupported, reading_now

PERIOD_S_MIN = 15.0  # a BMC makes these documents slowly
TIME_S_MAX = 20.0
CHASSIS_MAX, SYSTEMS_MAX = 32, 8
SYSTEMS, CHASSIS = "/redfish/v1/Systems", "/redfish/v1/Chassis"


class Redfish:
    """Collector of the measurement `redfish_sensor`. A reading's texts are documents, by "chassis resource"."""

    name = "redfish"
    pace = "slow"

    def __init__(self, period_s: float, address: Address, time_s_max: float = TIME_S_MAX) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._address, self._time_s_max = address, time_s_max
        self._answered = False

    def read(self) -> Reading:
        """Ask for every document that tells of the inlet."""
        try:
            with Session(self._address, os.environ.get(PASSWORD_VARIABLE, ""), self._time_s_max) as session:
                texts, faults = _texts(session, self._address.system)
        except OSError as error:
            if self._answered:
                raise
            raise Unsupported(f"the BMC's Redfish service: {error}") from None
        if not self._answered and not any(_inlets(texts)[0]):
            raise Unsupported("; ".join([f"Redfish states no temperature of {' or '.join(AIR)}", *faults]))
        self._answered = True
        return reading_now(texts, tuple(faults))

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """A point per sensor that has a reading."""
        return [
            Point("redfish_sensor", tags, {"temperature_degc": degc}, reading.time_ns)
            for tags, degc in _inlets(reading.texts)[0]
        ]


def _inlets(texts: Mapping[str, str]) -> tuple[list[tuple[Tags, float]], list[str]]:
    found: list[tuple[Tags, float]] = []
    faults: list[str] = []
    for key, text in texts.items():
        chassis, resource = key.rsplit(" ", 1)
        inlets, said = READERS[resource](json.loads(text))
        faults += [f"{chassis} {resource}: {one}" for one in said]
        for one in inlets:
            found.append(((("chassis", chassis), ("resource", resource), ("sensor", one.sensor)), one.degc))
    return found, faults


def _texts(session: Session, system: str = "") -> tuple[dict[str, str], list[str]]:
    """Documents by chassis and resource; what cannot be read is a fault beside the others' readings. Raises OSError when nothing can."""
    texts: dict[str, str] = {}
    faults: list[str] = []
    paths = _chassis_paths(session, system)
    if len(paths) > CHASSIS_MAX:
        faults.append(f"more than {CHASSIS_MAX} chassis; the others are not read")
    for path in paths[:CHASSIS_MAX]:
        try:
            chassis = session.get(path)
        except OSError as error:
            faults.append(str(error))
            continue
        if is_server(chassis):
            faults += _of_chassis(session, path, chassis, texts)
    if faults and not texts:
        raise OSError("; ".join(faults))
    return texts, faults + _inlets(texts)[1]


def _of_chassis(session: Session, path: str, chassis: dict[str, Any], texts: dict[str, str]) -> list[str]:
    """Adds a chassis' documents to `texts`; returns what failed."""
    faults = []
    name = path.rstrip("/").rpartition("/")[2].replace("\\", "/") or "unnamed"
    for resource, ask in TREES.items():
        try:
            document = ask(session, chassis)
        except OSError as error:
            faults.append(str(error))
            continue
        if document is not None:
            texts[f"{name} {resource}"] = json.dumps(document)
    return faults


def _chassis_paths(session: Session, system: str) -> list[Any]:
    """Those that hold the one computer system; all of them where it does not say which."""
    held = _chosen_system(session, system).get("Links")
    paths = links(held.get("Chassis")) if isinstance(held, dict) else []
    return paths or links(session.pages(CHASSIS, "Members").get("Members"))


def _chosen_system(session: Session, system: str) -> dict[str, Any]:
    """The one that is named, else the only one, else the only one with a BIOS: an HGX baseboard of GPUs is a second one without.

    The role bios chooses alike (bench_bmc.redfish: chosen_system)."""
    paths = links(session.pages(SYSTEMS, "Members").get("Members"))
    if system or len(paths) == 1:
        named = [path for path in paths if not system or str(path).rstrip("/").rpartition("/")[2] == system]
        if not named:
            raise OSError(f"it manages no computer system {system}")
        return session.get(named[0])
    with_bios = [one for one in map(session.get, paths[:SYSTEMS_MAX]) if link(one, "Bios")]
    if len(with_bios) != 1:
        raise OSError(
            f"it manages {len(paths)} computer systems: whose air it is cannot be told. Name one in bmc.redfish_system"
        )
    return with_bios[0]


def _thermal(session: Session, chassis: dict[str, Any]) -> dict[str, Any] | None:
    path = link(chassis, "Thermal")
    return None if path is None else session.pages(path, "Temperatures")


def _metrics(session: Session, chassis: dict[str, Any]) -> dict[str, Any] | None:
    path = link(chassis, "ThermalSubsystem")
    path = None if path is None else link(session.get(path), "ThermalMetrics")
    return None if path is None else session.pages(path, "TemperatureReadingsCelsius")


def _environment(session: Session, chassis: dict[str, Any]) -> dict[str, Any] | None:
    """The sensor that the excerpt is of: the excerpt itself does not say what is measured."""
    path = link(chassis, "EnvironmentMetrics")
    excerpt = None if path is None else session.get(path).get("TemperatureCelsius")
    source = excerpt.get("DataSourceUri") if isinstance(excerpt, dict) else None
    return None if source is None else session.get(source)


TREES = {"Thermal": _thermal, "ThermalMetrics": _metrics, "EnvironmentMetrics": _environment}
