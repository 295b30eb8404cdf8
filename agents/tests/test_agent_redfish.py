"""The air at the inlet by Redfish: documents with everything wrong in them, and real HTTPS with a service that misbehaves."""

from __future__ import annotations

import json
import math
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import undeclared

from daq_bench.telemetry_agent.collectors.hardware.redfish import Redfish
from daq_bench.telemetry_agent.devices import redfish_inlet
from daq_bench.telemetry_agent.devices.redfish_service import Address, Session
from daq_bench.telemetry_agent.reading.collector import Unsupported
from daq_bench.virtual_candidate import tls
from daq_bench.virtual_candidate.bmc.simulator import Bmc
from daq_bench.virtual_candidate.instance import DEFAULT_BASE
from daq_bench.virtual_candidate.ports import free_ports

PASSWORD = "secret-word"
ROOT = "/redfish/v1"
Tree = dict[str, Any]


def temperature(value: Any, name: str = "Inlet Temp", context: str = "Intake", state: Any = "Enabled") -> Tree:
    return {"Name": name, "ReadingCelsius": value, "PhysicalContext": context, "Status": {"State": state}}


@pytest.mark.parametrize(
    ("row", "degc"),
    [
        (temperature(24), 24.0),
        (temperature(-3.5), -3.5),
        (temperature(22, context="Room"), 22.0),
        (temperature(24, state=None), 24.0),
        ({"PhysicalContext": "Intake", "ReadingCelsius": 24}, 24.0),
        (temperature(24, state="Disabled"), None),
        (temperature(24, state="Absent"), None),
        (temperature(55, context="CPU"), None),
        (temperature(24, context="Exhaust"), None),
        (temperature(24, context=["Intake"]), None),  # type: ignore[arg-type]
    ],
)
def test_an_intake_that_works_counts_and_nothing_else(row: Tree, degc: float | None) -> None:
    found, faults = redfish_inlet.of_thermal({"Temperatures": [row]})
    assert [one.degc for one in found] == ([] if degc is None else [degc]) and faults == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "its reading is None and no number"),
        ("NaN", "its reading is 'NaN' and no number"),
        ("24", "no number"),
        (True, "no number"),
        ([24], "no number"),
        (math.nan, "of no air"),
        (math.inf, "of no air"),
        (10**400, "of no air"),
        (0, "0 degC, which BMCs state"),
        (-0.0, "0 degC, which BMCs state"),
        (-60, "of no air"),
        (75, "a wrong unit?"),  # Fahrenheit
        (297.15, "a wrong unit?"),  # kelvin
        (255, "of no air"),
    ],
)
def test_what_is_no_reading_gives_none_and_is_named(value: Any, said: str) -> None:
    """In each of the three documents; another sensor beside it still counts."""
    found, faults = redfish_inlet.of_thermal({"Temperatures": [temperature(value, "Front"), temperature(23)]})
    assert found == [redfish_inlet.Inlet("Inlet Temp", 23.0)]
    assert len(faults) == 1 and faults[0].startswith("Front: ") and said in faults[0]
    summary = {"Intake": {"Reading": value}, "Ambient": {"Reading": 21.5}}
    found, faults = redfish_inlet.of_metrics({"TemperatureSummaryCelsius": summary})
    assert found == [redfish_inlet.Inlet("Ambient", 21.5)] and said in faults[0]
    found, faults = redfish_inlet.of_sensor({"Name": "A", "PhysicalContext": "Intake", "Reading": value})
    assert found == [] and said in faults[0]


def test_two_intakes_that_differ_are_both_told() -> None:
    """Also those of one name."""
    rows = [temperature(22, "Inlet"), temperature(31, "Inlet"), temperature(25, "Inlet")]
    found, _ = redfish_inlet.of_thermal({"Temperatures": rows})
    assert found == [("Inlet", 22.0), ("Inlet#2", 31.0), ("Inlet#3", 25.0)]


def test_the_readings_stand_in_for_a_summary_that_is_not_there() -> None:
    rows = [
        {"DeviceName": "Front IO", "PhysicalContext": "Intake", "Reading": 24.4},
        {"PhysicalContext": "CPU", "Reading": 60},
    ]
    assert redfish_inlet.of_metrics({"TemperatureReadingsCelsius": rows})[0] == [("Front IO", 24.4)]
    internal = {"TemperatureSummaryCelsius": {"Internal": {"Reading": 39}, "Exhaust": {"Reading": 40}}}
    assert redfish_inlet.of_metrics(internal) == ([], [])


@pytest.mark.parametrize("sensor", [{"ReadingUnits": "K"}, {"ReadingUnits": "[degF]"}, {"PhysicalContext": "Chassis"}])
def test_a_sensor_of_another_unit_or_place_does_not_count(sensor: Tree) -> None:
    whole = {"Name": "A", "PhysicalContext": "Intake", "ReadingUnits": "Cel", "Reading": 24}
    assert redfish_inlet.of_sensor(whole)[0] == [("A", 24.0)]
    assert redfish_inlet.of_sensor(whole | sensor)[0] == []


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"Temperatures": None},
        {"Temperatures": 3},
        {"Temperatures": [None, 3, "x"]},
        {"TemperatureSummaryCelsius": [1]},
    ],
)
def test_a_document_of_another_form_tells_nothing(document: Tree) -> None:
    for read in redfish_inlet.READERS.values():
        assert read(document) == ([], [])


def test_a_name_cannot_break_a_line_nor_flood_the_account() -> None:
    rows = [temperature(24, "a\nb\x1b\\"), *(temperature(20 + n / 100, f"s{n}") for n in range(900))]
    found, faults = redfish_inlet.of_thermal({"Temperatures": rows})
    assert found[0].sensor == "a\\x0ab\\x1b" and len(found) == 16 and "more than 16 sensors" in faults[0]


# --- real HTTPS ---


def members(*paths: str) -> Tree:
    return {"Members": [{"@odata.id": f"{ROOT}{path}"} for path in paths]}


def to(path: str) -> Tree:
    return {"@odata.id": f"{ROOT}{path}"}


def server_tree() -> Tree:
    """One server, and an enclosure of drives beside it."""
    return {
        "/Systems": members("/Systems/1"),
        "/Systems/1": {"Links": {"Chassis": [to("/Chassis/1"), to("/Chassis/box")]}},
        "/Chassis/1": {"ChassisType": "RackMount", "Thermal": to("/Chassis/1/Thermal")},
        "/Chassis/1/Thermal": {"Temperatures": [temperature(24)]},
        "/Chassis/box": {"ChassisType": "StorageEnclosure", "Thermal": to("/Chassis/box/Thermal")},
        "/Chassis/box/Thermal": {"Temperatures": [temperature(41, "Enclosure Inlet")]},
    }


class Service:
    """The service answers so, by path below the root: a document, bytes, a status, or a function of the handler."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.asked = server_tree(), []  # type: tuple[Tree, list[str]]
        tls.create(folder)
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                service.asked.append(self.path)
                found = service.tree.get(self.path.removeprefix(ROOT), 404)
                if callable(found):
                    found(self)
                    return
                body = found if isinstance(found, bytes) else json.dumps(found).encode()
                self.send_response(found if isinstance(found, int) else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Nothing."""

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.address = Address("127.0.0.1", self.server.server_address[1], "admin", str(folder / "ca.pem"))


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("IPMI_PASSWORD", PASSWORD)
    found = Service(tmp_path / "tls")
    thread = threading.Thread(target=found.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


def read(service: Service, **options: Any) -> tuple[dict[str, float], tuple[str, ...]]:
    """({"chassis resource sensor": degc}, faults)."""
    collector = Redfish(1.0, service.address, **options)
    reading = collector.read()
    points = collector.parse(reading, None)
    assert [undeclared(point) for point in points] == [[]] * len(points)
    return {
        " ".join(value for _, value in one.tags): float(one.fields["temperature_degc"]) for one in points
    }, reading.faults


def pin_of(folder: Path, name: str = "server.pem") -> str:
    done = subprocess.run(
        ["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in", folder / name],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip().partition("=")[2].replace(":", "").lower()


def test_a_certificate_is_trusted_by_its_fingerprint_alone_and_no_other_gets_the_password(
    service: Service, tmp_path: Path
) -> None:
    """Without an authority, and under a name that the certificate has not."""
    pin = pin_of(tmp_path / "tls")
    service.address = service.address._replace(ca_file="", fingerprint=pin)
    assert read(service) == ({"1 Thermal Inlet Temp": 24.0}, ())
    asked = len(service.asked)
    assert asked > 0
    for other in (pin_of(tmp_path / "tls", "ca.pem"), pin[:-1] + ("0" if pin[-1] != "0" else "1"), "0" * 64):
        service.address = service.address._replace(fingerprint=other)
        with pytest.raises(
            OSError, match=f"its certificate has another fingerprint than the one that is trusted: {pin}"
        ):
            Session(service.address, PASSWORD, 5.0).get(ROOT)
    service.address = service.address._replace(fingerprint="0" * 64, insecure=True)
    with pytest.raises(OSError, match="another fingerprint"):
        Session(service.address, PASSWORD, 5.0).get(ROOT)
    assert len(service.asked) == asked


def test_no_fault_names_the_address(service: Service) -> None:
    """The text stands in the bundle, which vendors get; 127.1 leads to 127.0.0.1, and is no name of the certificate."""
    address = service.address._replace(host="127.1")
    with pytest.raises(OSError, match=r"certificate is not valid for '\(withheld\)'") as caught:
        Session(address, PASSWORD, 5.0).get(ROOT)
    assert "127.1" not in str(caught.value)
    with pytest.raises(Unsupported, match=r"^the BMC's Redfish service: /redfish/v1/Systems: ") as unsupported:
        Redfish(1.0, address._replace(port=free_ports(1)[0])).read()
    assert "127.1" not in str(unsupported.value)


def test_the_servers_chassis_counts_and_the_drives_enclosure_does_not(service: Service) -> None:
    assert read(service) == ({"1 Thermal Inlet Temp": 24.0}, ())
    assert not any("box/Thermal" in path for path in service.asked)


def test_a_bmc_may_have_only_one_of_both_trees(service: Service) -> None:
    """Or name both and have one: that is said, and costs nothing."""
    chassis = service.tree["/Chassis/1"]
    chassis["ThermalSubsystem"] = to("/Chassis/1/ThermalSubsystem")
    service.tree["/Chassis/1/ThermalSubsystem"] = {"ThermalMetrics": to("/Chassis/1/M")}
    service.tree["/Chassis/1/M"] = {"TemperatureSummaryCelsius": {"Intake": {"Reading": 24.8}}}
    assert set(read(service)[0]) == {"1 Thermal Inlet Temp", "1 ThermalMetrics Intake"}
    for status in (404, 500):  # it has none; it fails just now
        service.tree["/Chassis/1/Thermal"] = status
        fault = f"/redfish/v1/Chassis/1/Thermal: HTTP status {status}"
        assert read(service) == ({"1 ThermalMetrics Intake": 24.8}, (fault,))
    del chassis["Thermal"]
    assert read(service) == ({"1 ThermalMetrics Intake": 24.8}, ())


def test_the_environments_temperature_counts_by_its_sensor_alone(service: Service) -> None:
    service.tree["/Chassis/1"] = {"EnvironmentMetrics": to("/E")}
    service.tree["/E"] = {"TemperatureCelsius": {"Reading": 39, "DataSourceUri": f"{ROOT}/S"}}
    service.tree["/S"] = {"Name": "Front", "Reading": 23.5, "PhysicalContext": "Intake", "ReadingUnits": "Cel"}
    assert read(service)[0] == {"1 EnvironmentMetrics Front": 23.5}
    service.tree["/S"]["PhysicalContext"] = "Chassis"
    with pytest.raises(Unsupported, match="states no temperature of Intake or Room"):
        read(service)
    del service.tree["/E"]["TemperatureCelsius"]["DataSourceUri"]
    with pytest.raises(Unsupported, match="states no temperature"):
        read(service)


def test_pages_are_followed_and_bounded(service: Service) -> None:
    service.tree["/Chassis/1/Thermal"] = {
        "Temperatures": [temperature(50, context="CPU")],
        "Temperatures@odata.nextLink": f"{ROOT}/Chassis/1/Thermal?skip=1",
    }
    service.tree["/Chassis/1/Thermal?skip=1"] = {"Temperatures": [temperature(24)]}
    service.tree["/Systems"] = {"Members": [], "Members@odata.nextLink": f"{ROOT}/Systems?skip=1"}
    service.tree["/Systems?skip=1"] = members("/Systems/1")
    assert read(service)[0] == {"1 Thermal Inlet Temp": 24.0}
    service.tree["/Chassis/1/Thermal?skip=1"]["Temperatures@odata.nextLink"] = f"{ROOT}/Chassis/1/Thermal?skip=1"
    with pytest.raises(Unsupported, match="pages without end"):
        read(service)


@pytest.mark.parametrize("count", [0, 2])
def test_a_bmc_of_several_servers_cannot_say_whose_air_it_is(service: Service, count: int) -> None:
    service.tree["/Systems"] = members(*(f"/Systems/{n}" for n in range(count)))
    for bios in ({"Bios": to("/B")}, {}):
        service.tree.update({f"/Systems/{n}": bios for n in range(count)})
        with pytest.raises(Unsupported, match=rf"it manages {count} computer systems.*bmc\.redfish_system"):
            read(service)


@pytest.mark.parametrize("none", [{}, {"Bios": None}, {"Bios": {}}])
def test_of_several_systems_the_one_with_a_bios_counts_or_the_one_that_is_named(
    service: Service, none: dict[str, Any]
) -> None:
    """NVIDIA/libredfish, tests/mockups/nvidia_viking (a DGX H100): DGX with a BIOS, and HGX_Baseboard_0, the GPUs' board, without."""
    service.tree["/Systems"] = members("/Systems/HGX_Baseboard_0", "/Systems/DGX")
    service.tree["/Systems/HGX_Baseboard_0"] = {"Links": {"Chassis": [to("/Chassis/HGX")]}, **none}
    service.tree["/Systems/DGX"] = {"Bios": to("/Systems/DGX/Bios"), "Links": {"Chassis": [to("/Chassis/1")]}}
    service.tree["/Chassis/HGX"] = {"Thermal": to("/Chassis/HGX/Thermal")}
    service.tree["/Chassis/HGX/Thermal"] = {"Temperatures": [temperature(39)]}
    assert read(service) == ({"1 Thermal Inlet Temp": 24.0}, ())
    service.address = service.address._replace(system="HGX_Baseboard_0")
    assert read(service) == ({"HGX Thermal Inlet Temp": 39.0}, ())
    service.address = service.address._replace(system="System_0")
    with pytest.raises(Unsupported, match="it manages no computer system System_0"):
        read(service)


def test_a_path_is_asked_again_with_the_slash_that_its_bmc_wants(service: Service) -> None:
    """ansible/ansible#48296 (iLO 4), bb-Ricardo/check_redfish#187 (Supermicro). iLO 4 names itself by another address in it
    (mrlhansen/idrac_exporter#201): the password goes there no more than elsewhere."""
    asked: list[str] = []

    def to_the_slash(handler: Any) -> None:
        asked.append(handler.path)
        handler.send_response(308)
        handler.send_header("Location", f"https://192.168.1.28{handler.path}/")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    service.tree["/Systems/"] = service.tree["/Systems"]
    service.tree["/Systems"] = to_the_slash
    assert read(service) == ({"1 Thermal Inlet Temp": 24.0}, ())
    service.tree["/Systems/"] = to_the_slash  # and never twice
    with pytest.raises(Unsupported, match=r"/redfish/v1/Systems: HTTP status 308"):
        read(service)
    assert asked == [f"{ROOT}/Systems", f"{ROOT}/Systems", f"{ROOT}/Systems/"]


def test_lenovos_sensor_says_c_for_degrees_celsius() -> None:
    """NVIDIA/libredfish, tests/mockups/lenovo: the Ambient Temp of an XCC."""
    sensor = {
        "Name": "Ambient Temp",
        "Reading": 19,
        "ReadingType": "Temperature",
        "ReadingUnits": "C",
        "PhysicalContext": "Intake",
    }
    assert redfish_inlet.of_sensor(sensor) == ([("Ambient Temp", 19.0)], [])
    assert redfish_inlet.of_sensor(sensor | {"ReadingUnits": "K"})[0] == []


def test_values_of_other_types_break_nothing(service: Service) -> None:
    service.tree["/Chassis/1"]["ChassisType"] = ["RackMount"]
    service.tree["/Chassis/1"]["Status"] = 3
    assert read(service) == ({"1 Thermal Inlet Temp": 24.0}, ())
    service.tree["/Systems"]["Members@odata.nextLink"] = [1]
    with pytest.raises(Unsupported, match="which is no path of this service"):
        read(service)


def test_without_links_all_chassis_are_looked_at(service: Service) -> None:
    service.tree["/Systems/1"] = {}
    service.tree["/Chassis"] = members("/Chassis/box", "/Chassis/1")
    assert read(service)[0] == {"1 Thermal Inlet Temp": 24.0}


def redirecting(handler: Any) -> None:
    handler.send_response(302)
    handler.send_header("Location", "http://127.0.0.1:9/")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def dripping(handler: Any) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    with suppress(OSError):  # the collector goes away
        for _ in range(1000):
            handler.wfile.write(b" ")
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (401, "HTTP status 401"),
        (503, "HTTP status 503"),
        (redirecting, "HTTP status 302"),
        (b"<html>", "no sound JSON object"),
        (b"[1]", "no sound JSON object"),
        (b"[" * 200_000, "no sound JSON object"),
        (b" " * (4 * 2**20 + 1), "a document of more than 4 MiB"),
        (dripping, "Thermal: .*time"),
    ],
)
def test_an_answer_that_is_none_is_named_in_time(service: Service, answer: Any, said: str) -> None:
    """At first as a service that the server has not, later as a failed sample. The password is in no message."""
    collector = Redfish(1.0, service.address, time_s_max=1.0)
    collector.read()
    sound = service.tree["/Chassis/1/Thermal"]
    service.tree["/Chassis/1/Thermal"] = answer
    for asking, kind in ((Redfish(1.0, service.address, time_s_max=1.0), Unsupported), (collector, OSError)):
        started_s = time.monotonic()
        with pytest.raises(kind, match=said) as raised:
            asking.read()
        assert time.monotonic() - started_s < 60 and PASSWORD not in str(raised.value)
    service.tree["/Chassis/1/Thermal"] = sound
    assert collector.parse(collector.read(), None)[0].fields == {"temperature_degc": 24.0}


@pytest.mark.parametrize(
    "elsewhere",
    ["https://10.0.0.1/redfish/v1/T", "//h/redfish/v1", "/other", "/redfish/v1/a b", "/redfish/v1/\r\nX: y", 3],
)
def test_a_link_that_leads_elsewhere_is_not_followed(service: Service, elsewhere: Any) -> None:
    service.tree["/Chassis/1"]["Thermal"] = {"@odata.id": elsewhere}
    with pytest.raises(Unsupported, match="which is no path of this service"):
        read(service)


def test_a_certificate_that_nobody_vouches_for_gets_no_password(service: Service) -> None:
    with pytest.raises(Unsupported, match="CERTIFICATE_VERIFY_FAILED"):
        Redfish(1.0, service.address._replace(ca_file="")).read()
    assert service.asked == []
    assert Redfish(1.0, service.address._replace(ca_file="", insecure=True)).read().faults == ()
    with pytest.raises(Unsupported, match="No such file"):
        Redfish(1.0, service.address._replace(ca_file="/nowhere.pem")).read()


def test_an_intake_that_falls_silent_is_said_and_repeated_by_nobody(service: Service) -> None:
    collector = Redfish(1.0, service.address)
    collector.read()
    service.tree["/Chassis/1/Thermal"]["Temperatures"][0]["ReadingCelsius"] = None
    reading = collector.read()
    assert collector.parse(reading, None) == []
    assert reading.faults == ("1 Thermal: Inlet Temp: its reading is None and no number",)


def test_the_emulators_service_is_read_by_both_trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lan, redfish, system = free_ports(3)
    with Bmc(tmp_path / "bmc", lan, redfish, system, "dell", cache=DEFAULT_BASE / "cache") as bmc:
        monkeypatch.setenv("IPMI_PASSWORD", bmc.password)
        collector = Redfish(1.0, Address("127.0.0.1", redfish, bmc.user, str(bmc.ca_file)))
        bmc.sensors.write("Inlet Temp", 33)
        points = collector.parse(collector.read(), None)
    assert {dict(one.tags)["resource"] for one in points} == {"Thermal", "ThermalMetrics", "EnvironmentMetrics"}
    assert {one.fields["temperature_degc"] for one in points} == {33.0}
