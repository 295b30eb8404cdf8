"""The role bios' module against a virtual BMC: orders to each vendor's BIOS, records, refusals."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import sushy
import yaml
from ansible.module_utils.bench_bmc import redfish
from ansible.module_utils.bench_bmc.bios_control import Control, Run, Terms, note_of, recovered, vendor_key
from ansible.module_utils.bench_bmc.errors import BmcError
from ansible.module_utils.bench_bmc.first_values import FirstValues
from ansible.module_utils.bench_bmc.redfish import Service, Settings, System, chosen_system, connect, fault_of
from playbook_runs import ANSIBLE

from daq_bench.virtual_candidate import tls
from daq_bench.virtual_candidate.bmc.redfish_service import PLANTED
from daq_bench.virtual_candidate.bmc.simulator import Bmc
from daq_bench.virtual_candidate.files import write_json
from daq_bench.virtual_candidate.ports import free_ports

VENDORS: dict[str, Any] = yaml.safe_load((ANSIBLE / "roles/bios/vars/main/vendors.yml").read_text())["__bios_vendors"]
WHOLE = {"power_profile": "maximum-performance", "cstates": "off", "turbo": "on", "memory_speed": "maximum"}
KEEP = dict.fromkeys(WHOLE, "keep")
NEVER, ALLOWED = Terms(restart=False, wait_s=30), Terms(restart=True, wait_s=30)

# The BIOS must hold these values once everything of WHOLE is in force.
IN_FORCE = {
    "dell": {"SysProfile": "PerfOptimized", "ProcCStates": "Disabled", "ProcTurboMode": "Enabled", "MemFrequency": "MaxPerf"},
    "hpe": {"WorkloadProfile": "HighPerformanceCompute(HPC)", "ProcTurbo": "Enabled", "MaxMemBusFreqMHz": "Auto"},
    "supermicro": {
        "PowerTechnology": "Custom",
        "PowerPerformanceTuning": "BIOS Controls EPB",
        "ENERGY_PERF_BIAS_CFGMode": "Maximum Performance",
        "CPUC6Report": "Disable",
        "PackageCState": "C0/C1 state",
        "TurboMode": "Enable",
        "MemoryFrequency": "Auto",
    },
    "lenovo": {
        "OperatingModes_ChooseOperatingMode": "MaximumPerformance",
        "Processors_CStates": "Disable",
        "Processors_TurboMode": "Enable",
        "Memory_MemorySpeed": "MaxPerformance",
    },
}  # fmt: skip


class Server:
    """A server whose BIOS is set; each control is made anew, as by a new run of the module."""

    def __init__(self, bmc: Bmc, directory: Path) -> None:
        self.bmc, self.state_file = bmc, directory / "state/bios-before.json"
        self.service = Service(
            "127.0.0.1", bmc.redfish_port, bmc.user, bmc.password, "BENCH_PASSWORD", str(bmc.ca_file)
        )

    def control(self, vendor: str = "") -> Control:
        """Log in and find the vendor."""
        system = connect(self.service)
        key = vendor_key(VENDORS, vendor, system.manufacturer, self.service.where)
        return Control(system, FirstValues(str(self.state_file), "this BMC"), VENDORS, key)

    def patches(self) -> list[dict[str, Any]]:
        """Return the changes that the BMC was asked to make through Redfish."""
        return [line["body"] for line in self.bmc.commands() if line["via"] == "redfish" and line["method"] == "PATCH"]


def plant(bmc: Bmc, question: str, status: int, document: Any) -> None:
    """Make the BMC answer a question so, whatever it asks."""
    write_json(bmc.directory / PLANTED, {question: {"status": status, "document": document}})


def by_id(run: Run) -> dict[str, dict[str, str]]:
    """Return a run's records keyed by setting."""
    return {record["id"]: record for record in run.records}


def statuses(run: Run) -> set[str]:
    """Return the statuses of a run's records."""
    return {record["status"] for record in run.records}


@pytest.fixture
def server(bmc: Bmc, tmp_path: Path) -> Server:
    """Give a test a server."""
    return Server(bmc, tmp_path)


@pytest.mark.parametrize("name", ["vendor itself", "redfish"])
@pytest.mark.parametrize("bmc", IN_FORCE, indirect=True)
def test_settings_wait_for_a_reboot_come_into_force_and_go_back(server: Server, bmc: Bmc, name: str) -> None:
    """Check mode, provision, provision again, reboot by hand, verify, restore, reboot; also by the names of all vendors."""
    vendor, factory = "redfish" if name == "redfish" else "", bmc.bios.current()

    pretended = server.control(vendor).apply(WHOLE, dataclasses.replace(NEVER, pretend=True))
    assert pretended.changed
    assert server.patches() == []
    assert not server.state_file.exists()

    first = server.control(vendor).apply(WHOLE, NEVER)
    assert first.changed and first.waiting and not first.restarted
    profile = by_id(first)["bios-power-profile"]
    assert profile["status"] == "mismatch"
    assert profile["detail"].startswith("waiting for a reboot: ")
    assert bmc.bios.current() == factory
    memory = server.state_file.read_text()

    second = server.control(vendor).apply(WHOLE, NEVER)
    assert second.waiting and not second.changed
    assert len(server.patches()) == 1
    assert bmc.power.actions() == []

    bmc.power.reset()
    assert {**bmc.bios.current(), **IN_FORCE[bmc.vendor]} == bmc.bios.current()
    verified = server.control(vendor).verify(WHOLE)
    assert by_id(verified)["bios-power-profile"]["status"] == "unchanged"
    assert by_id(verified)["bios-power-profile"]["before"] == profile["before"]
    assert "mismatch" not in statuses(verified)
    third = server.control(vendor).apply(WHOLE, NEVER)
    assert not third.changed and not third.waiting
    assert server.state_file.read_text() == memory

    back = server.control(vendor).restore(NEVER)
    assert back.changed and back.waiting
    assert server.state_file.exists()
    assert not server.control(vendor).restore(NEVER).changed
    bmc.power.reset()
    if bmc.vendor == "hpe":  # its profile takes attributes along and does not put them back: that needs another reboot
        again = server.control(vendor).restore(NEVER)
        assert again.changed and again.waiting and server.state_file.exists()
        bmc.power.reset()
    done = server.control(vendor).restore(NEVER)
    assert (done.changed, done.waiting, statuses(done)) == (False, False, {"unchanged"})
    assert bmc.bios.current() == factory
    assert not server.state_file.exists()


@pytest.mark.parametrize("bmc", ["dell", "hpe"], indirect=True)
@pytest.mark.parametrize("custom", [False, True])
def test_a_restore_puts_back_what_a_profile_moved_and_no_table_lists(server: Server, bmc: Bmc, custom: bool) -> None:
    """From the factory's profile and from an administrator's own choice; in one restore, with as many restarts as it takes."""
    if custom:
        own = {
            "dell": {"SysProfile": "Custom", "WriteDataCrc": "Disabled", "MemPatrolScrub": "Disabled"},
            "hpe": {"WorkloadProfile": "Custom", "Sriov": "Disabled", "AdvancedMemProtection": "MirroredMemory"},
        }
        bmc.bios.set(own[bmc.vendor], with_job=True)
        bmc.power.reset()
        assert own[bmc.vendor].items() <= bmc.bios.current().items()
    before = bmc.bios.current()
    server.control().apply({**KEEP, "power_profile": "maximum-performance"}, ALLOWED)
    moved = {name for name, value in bmc.bios.current().items() if before[name] != value}
    assert moved >= ({"MemPatrolScrub", "UncoreFrequency"} if bmc.vendor == "dell" else {"IntelProcVtd", "ProcX2Apic"})
    back = server.control().restore(ALLOWED)
    assert bmc.bios.current() == before and bmc.bios.waiting() == {}
    assert moved <= {record["id"].removeprefix("bios-") for record in back.records}
    assert statuses(back) <= {"applied", "unchanged"} and not server.state_file.exists()


@pytest.mark.parametrize("bmc", ["dell", "hpe", "supermicro", "lenovo"], indirect=True)
def test_a_restore_before_the_reboot_leaves_nothing_pending(server: Server, bmc: Bmc) -> None:
    """iDRAC holds what is pending in a job: until that is deleted nothing else can be set, and it would come into force afterwards."""
    before = bmc.bios.current()
    assert server.control().apply(WHOLE, NEVER).waiting
    back = server.control().restore(NEVER)
    assert back.changed and not back.waiting
    assert bmc.bios.waiting() == {} and bmc.bios.current() == before
    assert not server.state_file.exists()
    bmc.power.reset()
    assert bmc.bios.current() == before


@pytest.mark.parametrize("bmc", ["dell"], indirect=True)
def test_a_setting_that_is_asked_later_joins_what_a_job_holds(server: Server, bmc: Bmc) -> None:
    server.control().apply({**KEEP, "power_profile": "maximum-performance"}, NEVER)
    monitor = {"attribute": "SysProfile", "values": {"maximum-performance": ["PerfWorkStationOptimized"]}}
    control = server.control()
    control.vendors = {**VENDORS, "dell": {**VENDORS["dell"], "settings": {"power_profile": [monitor]}}}
    run = control.apply({**KEEP, "power_profile": "maximum-performance"}, NEVER)
    assert by_id(run)["bios-power-profile"]["detail"].startswith("waiting for a reboot: SysProfile=PerfWorkStation")
    assert bmc.bios.waiting() == {"SysProfile": "PerfWorkStationOptimized"}


@pytest.mark.parametrize("bmc", ["hpe"], indirect=True)
def test_what_the_firmware_does_not_take_back_is_named_and_remembered(
    server: Server, bmc: Bmc, monkeypatch: Any
) -> None:
    server.control().apply({**KEEP, "power_profile": "maximum-performance"}, ALLOWED)
    control = server.control()
    send = control.system._patch

    def stubborn(settings: Any, path: str, body: dict[str, Any]) -> None:
        if "Sriov" in body["Attributes"]:
            bad = {**body, "Attributes": {**body["Attributes"], "Sriov": "Sometimes"}}
            send(settings, path, bad)
        send(settings, path, body)

    monkeypatch.setattr(control.system, "_patch", stubborn)
    back = control.restore(ALLOWED)
    refused = [record for record in back.records if record["status"] == "refused"]
    assert [record["id"] for record in refused] == ["bios-Sriov"] and "Sometimes" in refused[0]["detail"]
    assert server.state_file.exists()
    assert bmc.bios.current()["IntelProcVtd"] == "Enabled"  # one that is refused costs the others nothing
    assert statuses(server.control().restore(ALLOWED)) <= {"applied", "unchanged"}
    assert bmc.bios.current()["Sriov"] == "Enabled" and not server.state_file.exists()


BIOS_PATH = "/redfish/v1/Systems/Self/Bios"


class TakesOneTag:
    """In place of the client's root: refuses a change that names another entity tag, or none."""

    def __init__(self, taken: str, status: int) -> None:
        self._conn, self.taken, self.status = self, taken, status
        self.sent: list[str] = []

    def _op(self, method: str, path: str, data: Any, headers: dict[str, str] | None) -> None:
        self.sent.append((headers or {}).get("If-Match", ""))
        if self.sent[-1] != self.taken:
            sushy.exceptions.raise_for_response(method, path, Refusing(self.status))


@pytest.mark.parametrize("status", [412, 428])
@pytest.mark.parametrize("tag", ['W/"1234"', '"1234"', ""])
def test_services_that_demand_an_entity_tag_are_given_the_one_that_they_take(status: int, tag: str) -> None:
    """As given, strong, any, none: whichever of them the service takes (CG #6434, #11261; gofish #171)."""
    for taken in ('W/"1234"', '"1234"', "*", ""):
        link = TakesOneTag(taken, status)
        system = System(Service("127.0.0.1", 1, "u", "p", "X"), link, None)
        settings = Settings("/redfish/v1/Systems/Self/Bios/SD", {}, tag, {})
        if taken in settings.tags():
            system._patch(settings, "/redfish/v1/Systems/Self/Bios", {"Attributes": {"A": "B"}})
            assert link.sent[-1] == taken and len(link.sent) <= 4
        else:
            with pytest.raises(sushy.exceptions.HTTPError):
                system._patch(settings, "/redfish/v1/Systems/Self/Bios", {"Attributes": {"A": "B"}})


MONITOR = "/redfish/v1/TaskService/TaskMonitors/7"


class TakesItLater:
    """In place of the client's root: answers a change with 202 and the place of a task, and then as `story` says."""

    def __init__(self, location: str, *story: tuple[int, Any]) -> None:
        self._conn, self.location, self.story, self.asked = self, location, list(story), list[str]()

    def _op(self, method: str, path: str, data: Any, headers: dict[str, str] | None) -> Any:
        return type(
            "Answer", (), {"status_code": 202, "headers": {"Location": self.location} if self.location else {}}
        )()

    def get(self, path: str) -> Any:
        """Answer."""
        self.asked.append(path)
        status, document = self.story.pop(0) if len(self.story) > 1 else self.story[0]
        if status >= 400:
            sushy.exceptions.raise_for_response("GET", path, Refusing(status))
        return type("Answer", (), {"status_code": status, "json": lambda self: document})()


EXCEPTION = {"TaskState": "Exception", "Messages": [{"Message": "The attribute A is read-only."}, {}]}


@pytest.mark.parametrize(
    ("location", "story", "refusal", "asked"),
    [
        (MONITOR, [(202, {"TaskState": "Running"}), (202, {}), (204, None)], "", 3),
        (MONITOR, [(202, {"TaskState": "Running"}), (200, {"TaskState": "Completed"})], "", 2),
        (MONITOR, [(200, {"@odata.id": BIOS_PATH})], "", 1),
        (MONITOR, [(404, None)], "", 1),
        (MONITOR, [(202, {"TaskState": "Running"}), (200, EXCEPTION)], "The attribute A is read-only.", 2),
        (MONITOR, [(200, {"TaskState": "Cancelled", "Messages": None})], "its task ended as Cancelled", 1),
        # iDRAC's job waits for the restart that comes later
        ("/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/Jobs/JID_1", [(200, {"JobState": "Scheduled"})], "", 1),
        (MONITOR, [(202, {"TaskState": "Pending"})], "", 1),
        (MONITOR, [(202, {"TaskState": "Running"})], "", None),  # it never ends
        ("", [(500, None)], "", 0),
        ("https://elsewhere.example/other/7", [(500, None)], "", 0),
    ],
)
def test_a_change_that_the_service_takes_to_do_later_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, location: str, story: list[tuple[int, Any]], refusal: str, asked: int | None
) -> None:
    monkeypatch.setattr(redfish, "POLL_S", 0.001)
    monkeypatch.setattr(redfish, "TASK_S_MAX", 0.1 if asked is None else 60.0)
    link = TakesItLater(location, *story)
    system = System(Service("127.0.0.1", 1, "u", "p", "X"), link, None)
    assert system._patch(Settings(f"{BIOS_PATH}/SD", {}, "", {}), BIOS_PATH, {"Attributes": {"A": "B"}}) == refusal
    assert asked is None or link.asked == [location] * asked


def test_the_place_of_a_task_leads_to_no_other_host() -> None:
    """The password goes along with each question."""
    link = TakesItLater(f"https://elsewhere.example{MONITOR}", (204, None))
    system = System(Service("127.0.0.1", 1, "u", "p", "X"), link, None)
    system._patch(Settings(f"{BIOS_PATH}/SD", {}, "", {}), BIOS_PATH, {"Attributes": {"A": "B"}})
    assert link.asked == [MONITOR]


class Answers:
    """In place of the client's connection: documents by path; any other is not there."""

    def __init__(self, documents: dict[str, Any]) -> None:
        self._conn, self.documents = self, documents

    def get(self, path: str) -> Any:
        """Answer."""
        if path not in self.documents:
            sushy.exceptions.raise_for_response("GET", path, Refusing(404))
        document = self.documents[path]
        return type("Answer", (), {"json": lambda self: document, "headers": {"ETag": '"1"'}})()


BIOS = "/redfish/v1/Systems/Self/Bios"


@pytest.mark.parametrize(
    ("bios", "others", "found"),
    [
        ({"@Redfish.Settings": {"SettingsObject": {"@odata.id": f"{BIOS}/Pending"}}}, [f"{BIOS}/Pending"], f"{BIOS}/Pending"),
        # AMI: linked, and there only once a setting was made pending
        ({"@Redfish.Settings": {"SettingsObject": {"@odata.id": f"{BIOS}/SD"}}}, [], f"{BIOS}/SD"),
        # linked without a path (CG #6434), and not linked at all
        ({"@Redfish.Settings": {"@odata.type": "#Settings.v1_2_1.Settings"}}, [f"{BIOS}/SD"], f"{BIOS}/SD"),
        ({}, [f"{BIOS}/Settings"], f"{BIOS}/Settings"),
        ({}, [], None),
    ],
)  # fmt: skip
def test_the_resource_for_pending_settings_is_found_where_firmware_has_it(
    bios: dict[str, Any], others: list[str], found: str | None
) -> None:
    root = Answers({path: {"Attributes": {"Knob": "Off"}} for path in others})
    system = System(Service("127.0.0.1", 1, "u", "p", "X"), root, None)
    settings = system._settings(type("Bios", (), {"json": bios, "path": BIOS})())
    assert (settings.path if settings else None) == found


@pytest.mark.parametrize("none", [None, {}])
@pytest.mark.parametrize(
    ("wanted", "systems", "chosen"),
    [
        ("", {"Self": True}, "Self"),
        ("", {"Self": False}, "Self"),
        ("", {"System_0": True, "HGX_Baseboard_0": False}, "System_0"),
        ("Node2", {"Node1": True, "Node2": True}, "Node2"),
        ("", {"Node1": True, "Node2": True}, None),
        ("Node3", {"Node1": True, "Node2": True}, None),
    ],
)
def test_one_of_several_systems_is_the_one_that_is_named_or_has_the_bios(
    wanted: str, systems: dict[str, bool], chosen: str | None, none: dict[str, Any] | None
) -> None:
    paths = {name: f"/redfish/v1/Systems/{name}" for name in systems}
    bios = {name: {"@odata.id": f"{paths[name]}/Bios"} if has else none for name, has in systems.items()}
    members = [type("Member", (), {"path": paths[name], "json": {"Bios": bios[name]}})() for name in systems]
    service = dataclasses.replace(Service("127.0.0.1", 1, "u", "p", "X"), system=wanted)
    if chosen is None:
        with pytest.raises(BmcError, match=r"name one of them in bmc\.redfish_system"):
            chosen_system(service, members)
    else:
        assert chosen_system(service, members).path.endswith(f"/{chosen}")


def test_a_job_that_is_gone_hides_no_job_that_waits() -> None:
    """A BMC forgets jobs while they are listed: with one of them gone the other was not deleted, and nothing more could be set."""
    waiting = {"Id": "JID_2", "JobState": "Scheduled", "JobType": "BIOSConfiguration"}
    members: list[Any] = [{"@odata.id": "/jobs/1"}, None, {}, {"@odata.id": "/jobs/2"}]
    root = Answers({"/jobs": {"Members": members}, "/jobs/2": waiting})
    system = System(Service("127.0.0.1", 1, "u", "p", "X"), root, None)
    assert system._scheduled({"list": "/jobs"}) == ["JID_2"]
    assert system._scheduled({"list": "/none"}) == []


def test_a_bmc_without_a_system_is_another_one_than_the_servers() -> None:
    with pytest.raises(BmcError, match=r"it manages no system\. Remedy: correct bmc\.address"):
        chosen_system(Service("127.0.0.1", 1, "u", "p", "X", system="1"), [])


def test_a_password_that_must_be_changed_is_said_in_the_bmcs_words() -> None:
    said = {
        "error": {
            "@Message.ExtendedInfo": [{"MessageId": "Base.1.8.PasswordChangeRequired", "Message": "Change it first."}]
        }
    }
    refusing = Refusing(403, said)
    with pytest.raises(sushy.exceptions.AccessError) as caught:
        sushy.exceptions.raise_for_response("GET", "/redfish/v1/Systems", refusing)
    fault = str(fault_of(Service("127.0.0.1", 1, "root", "p", "BENCH_PASSWORD"), caught.value))
    assert "Change it first. Remedy: log in once" in fault and "BENCH_PASSWORD" in fault


@pytest.mark.parametrize(
    ("told", "words"),
    [
        # HewlettPackard/python-ilorest-library#135: iLO gives identifiers, iLO 4 under another name
        ([{"MessageID": "iLO.0.10.SystemResetRequired"}], "iLO.0.10.SystemResetRequired"),
        (
            [{"MessageId": "Base.1.4.PropertyNotWritable", "MessageArgs": ["Sriov"]}, {"MessageArgs": 3}],
            "Base.1.4.PropertyNotWritable (Sriov)",
        ),
        ({"Message": "It is read-only."}, "It is read-only."),
        (
            [{"Message": "A.", "MessageId": "Base.1.8.X"}, {"Message": None, "MessageId": "Base.1.8.Y"}],
            "A. Base.1.8.Y",
        ),
        ([], "See @Message.ExtendedInfo for more information."),
        (None, "See @Message.ExtendedInfo for more information."),
    ],
)
def test_a_refusal_without_words_is_said_by_its_identifier(told: Any, words: str) -> None:
    """Else people read "See @Message.ExtendedInfo for more information.", and nothing of what is in it."""
    body = {"error": {"code": "iLO.0.10.ExtendedInfo", "message": "See @Message.ExtendedInfo for more information."}}
    body["error"]["@Message.ExtendedInfo"] = told
    with pytest.raises(sushy.exceptions.BadRequestError) as caught:
        sushy.exceptions.raise_for_response("PATCH", "/redfish/v1/Systems/1/Bios/settings", Refusing(400, body))
    assert redfish.said_by(caught.value) == words


@pytest.mark.parametrize("bmc", ["dell", "supermicro"], indirect=True)
def test_a_reboot_that_is_allowed_brings_settings_into_force_and_back(server: Server, bmc: Bmc) -> None:
    """The module shuts the machine down gracefully and turns it on again; the record says so."""
    factory = bmc.bios.current()
    run = server.control().apply(WHOLE, ALLOWED)
    assert (run.changed, run.waiting) == (True, False)
    record = by_id(run)["bios-power-profile"]
    assert (record["status"], record["detail"]) == ("applied", "restarted by Redfish: graceful shutdown, then on")
    assert bmc.power.actions() == ["shutdown", "on"]
    again = server.control().apply(WHOLE, ALLOWED)
    assert not again.changed and not again.restarted
    back = server.control().restore(ALLOWED)
    assert back.restarted and not back.waiting
    assert bmc.bios.current() == factory
    assert bmc.power.actions() == ["shutdown", "on"] * 2


KILLED = """
import os, signal, sys
import ansible.module_utils
ansible.module_utils.__path__.insert(0, sys.argv[1])
from ansible.module_utils.bench_bmc import redfish
from ansible.module_utils.bench_bmc.bios_control import Control, Terms
from ansible.module_utils.bench_bmc.first_values import FirstValues
redfish.System._awaited = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # where it would wait for the shutdown
import json
address, state_file, subject, vendors, asked = json.loads(sys.stdin.read())
system = redfish.connect(redfish.Service(*address))
Control(system, FirstValues(state_file, subject), vendors, "supermicro").apply(asked, Terms(restart=True, wait_s=30))
"""


@pytest.mark.parametrize("bmc", ["supermicro"], indirect=True)
def test_a_bench_that_is_killed_in_its_own_shutdown_leaves_a_note_by_which_the_next_one_switches_on(
    server: Server, bmc: Bmc
) -> None:
    """A real SIGKILL after the order to shut down: the server is off, and restore finds out, switches it on, says so."""
    factory = bmc.bios.current()
    service = dataclasses.astuple(server.service)
    control = server.control()
    words = json.dumps([service, str(server.state_file), control.state.subject, VENDORS, WHOLE])
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(ANSIBLE / "module_utils")],
        input=words,
        text=True,
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not bmc.power.is_on()
    note = note_of(server.control().state)
    assert note.values["since_s"] > 0

    record = recovered(connect(server.service), note)
    assert bmc.power.actions() == ["shutdown", "on"]
    assert (record["status"], record["before"], record["read_back"]) == ("applied", "off", "on")
    assert record["detail"].startswith("the server was off and was switched on: a bench that did not live to see it")
    assert not note_of(server.control().state).values
    server.control().restore(ALLOWED)
    assert bmc.bios.current() == factory


@pytest.mark.parametrize("bmc", ["supermicro"], indirect=True)
def test_a_shutdown_that_goes_on_is_waited_out_and_a_server_that_stays_on_is_left_alone(
    server: Server, bmc: Bmc
) -> None:
    """The note is younger than the longest shutdown: on now may be off in a minute. Where it is older, nothing is waited for."""
    note = note_of(server.control().state)
    note.values = {"since_s": time.time()}
    note.save()
    later = threading.Timer(3, bmc.power.shutdown)
    later.start()
    assert recovered(connect(server.service), note)["before"] == "off"
    later.join()
    assert bmc.power.is_on()
    note.values = {"since_s": time.time() - 3600}
    note.save()
    began = time.monotonic()
    assert recovered(connect(server.service), note)["status"] == "unchanged"
    assert time.monotonic() - began < 60
    assert bmc.power.actions() == ["shutdown", "on"]


class StubbornMachine:
    """Ignores every shutdown; only a cut of the power helps."""

    power_state = sushy.PowerState.ON

    def __init__(self) -> None:
        self.resets: list[Any] = []

    def refresh(self, force: bool) -> None:
        """Do nothing, since nothing is cached."""

    def get_allowed_reset_system_values(self) -> set[Any]:
        """Offer all."""
        return set(sushy.ResetType)

    def reset_system(self, kind: Any) -> None:
        """Take an order."""
        self.resets.append(kind)
        if kind in (sushy.ResetType.FORCE_OFF, sushy.ResetType.ON):
            off = kind == sushy.ResetType.FORCE_OFF
            self.power_state = sushy.PowerState.OFF if off else sushy.PowerState.ON


def test_a_machine_that_does_not_shut_down_is_forced_and_that_is_said() -> None:
    """The wait is bounded; the record tells that file systems were not closed."""
    machine = StubbornMachine()
    said = System(Service("127.0.0.1", 1, "u", "p", "X"), None, machine).restart(graceful_s=0.1)
    assert said == "restarted by Redfish: forced off (it had not shut down 0 s after it was asked to), then on"
    assert machine.resets == [sushy.ResetType.GRACEFUL_SHUTDOWN, sushy.ResetType.FORCE_OFF, sushy.ResetType.ON]


def test_an_attribute_that_the_bios_lacks_is_unsupported_by_name(server: Server) -> None:
    """The BIOS has another vendor's names here; the play goes on."""
    run = server.control("dell").apply({**WHOLE, "cooling": "maximum"}, NEVER)
    assert statuses(run) == {"unsupported"}
    assert by_id(run)["bios-cstates"]["detail"] == "the BIOS has no such attribute (looked for ProcCStates)"
    assert server.patches() == []


@pytest.mark.parametrize("bmc", ["dell"], indirect=True)
def test_dells_fans_are_raised_by_its_own_attributes_at_once_and_go_back(server: Server, bmc: Bmc) -> None:
    """Firmware that refuses the IPMI commands keeps these; a reboot is neither needed nor waited for."""
    asked = {**KEEP, "cooling": "maximum"}
    pretended = server.control().apply(asked, dataclasses.replace(NEVER, pretend=True))
    assert pretended.changed and not server.patches() and not server.state_file.exists()
    run = server.control().apply(asked, ALLOWED)
    record = by_id(run)["bios-cooling"]
    assert (record["status"], run.restarted, run.waiting) == ("applied", "", False)
    assert record["read_back"] == (
        "ThermalSettings.1.ThermalProfile=Maximum Performance, ThermalSettings.1.FanSpeedOffset=Max"
    )
    assert bmc.bios.at_once() == {
        "ThermalSettings.1.ThermalProfile": "Maximum Performance",
        "ThermalSettings.1.FanSpeedOffset": "Max",
    }
    again = server.control().apply(asked, NEVER)
    assert not again.changed and by_id(again)["bios-cooling"]["status"] == "unchanged"
    assert len(server.patches()) == 1
    bmc.bios.set_at_once({"ThermalSettings.1.FanSpeedOffset": "Low"})  # somebody's hand
    assert by_id(server.control().verify(asked))["bios-cooling"]["status"] == "mismatch"
    back = server.control().restore(NEVER)
    assert back.changed and not back.waiting
    assert set(bmc.bios.at_once().values()) == {"Default Thermal Profile Settings", "Off"}
    assert not server.state_file.exists()


@pytest.mark.parametrize("bmc", ["dell"], indirect=True)
def test_what_needs_a_reboot_and_what_does_not_are_set_in_one_run(server: Server, bmc: Bmc) -> None:
    """The one is in force, the other waits; a refusal of one costs the other nothing."""
    run = server.control().apply({**KEEP, "power_profile": "maximum-performance", "cooling": "maximum"}, NEVER)
    found = by_id(run)
    assert found["bios-cooling"]["status"] == "applied"
    assert found["bios-power-profile"]["detail"].startswith("waiting for a reboot: ")
    system = connect(server.service)
    system.look_beside(VENDORS["dell"]["beside"])
    system.firmware()
    bmc.bios.clear()  # a job would keep anything else from being set
    refused = system.set_attributes({"ThermalSettings.1.FanSpeedOffset": "Loud", "SysProfile": "Custom"})
    assert (
        list(refused) == ["ThermalSettings.1.FanSpeedOffset"] and "Loud" in refused["ThermalSettings.1.FanSpeedOffset"]
    )
    assert bmc.bios.waiting()["SysProfile"] == "Custom"


class Refusing:
    """In place of the client's root: every path is answered with one status."""

    def __init__(self, status: int, document: dict[str, Any] | None = None) -> None:
        self._conn, self.status_code, self.content = self, status, b"{}"
        self.document = document or {}

    def get(self, path: str) -> Any:
        """Refuse."""
        sushy.exceptions.raise_for_response("GET", path, self)

    def json(self) -> dict[str, Any]:
        """Say what it was given to say."""
        return self.document


@pytest.mark.parametrize("status", [400, 404, 405, 501])
def test_a_bmc_without_those_attributes_has_its_bios_set_as_before(status: int) -> None:
    """Whichever way it says so."""
    system = System(Service("127.0.0.1", 1, "u", "p", "X"), Refusing(status), None)
    system.look_beside(VENDORS["dell"]["beside"])
    assert system._attributes_beside() == {}


@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_bmc_that_fails_just_now_is_not_taken_for_one_without_them(status: int) -> None:
    """Or a restore would forget what it has to put back."""
    system = System(Service("127.0.0.1", 1, "u", "p", "X"), Refusing(status), None)
    system.look_beside(VENDORS["dell"]["beside"])
    with pytest.raises(BmcError):
        system.firmware()


@pytest.mark.parametrize("bmc", ["dell"], indirect=True)
def test_older_firmware_has_the_attributes_elsewhere(server: Server, monkeypatch: Any) -> None:
    """The first path answers 404, the second is taken; without both, the setting is unsupported by name."""
    paths = VENDORS["dell"]["beside"]
    monkeypatch.setitem(VENDORS["dell"], "beside", ["/redfish/v1/Managers/None", *paths])
    asked = {**KEEP, "cooling": "automatic"}
    assert by_id(server.control().apply(asked, NEVER))["bios-cooling"]["status"] == "unchanged"
    monkeypatch.setitem(VENDORS["dell"], "beside", ["/redfish/v1/Managers/None"])
    assert "ThermalSettings.1.ThermalProfile" in by_id(server.control().apply(asked, NEVER))["bios-cooling"]["detail"]


@pytest.mark.parametrize("bmc", ["dell"], indirect=True)
def test_a_value_that_the_bios_does_not_offer_is_unsupported_by_name(server: Server, monkeypatch: Any) -> None:
    """The attribute registry decides; the record also says where the data has no value for the request."""
    asked = {**KEEP, "power_profile": "power-saving"}
    detail = by_id(server.control().apply(asked, NEVER))["bios-power-profile"]["detail"]
    assert detail == "no value of SysProfile is known that means power-saving"
    other = {"attribute": "SysProfile", "values": {"maximum-performance": ["Fastest", "Faster"]}}
    monkeypatch.setitem(VENDORS["dell"]["settings"], "power_profile", [other])
    record = by_id(server.control().apply({**KEEP, "power_profile": "maximum-performance"}, NEVER))[
        "bios-power-profile"
    ]
    assert record["status"] == "unsupported"
    assert record["detail"].startswith(
        "SysProfile does not offer Fastest or Faster for maximum-performance (it offers Perf"
    )
    assert server.patches() == []


@pytest.mark.parametrize("bmc", ["supermicro"], indirect=True)
def test_what_the_bmc_refuses_is_recorded_with_its_words(server: Server, monkeypatch: Any) -> None:
    """One attribute that is refused does not keep the others from being set."""
    read_only = {"attribute": "BMCFirmwareRevision", "values": {"on": ["1.0"], "off": ["2.0"]}}
    monkeypatch.setitem(VENDORS["supermicro"]["settings"], "turbo", [read_only])
    control = server.control()
    monkeypatch.setattr("ansible.module_utils.bench_bmc.redfish.registry_of", lambda root, bios: redfish.Registry())
    run = control.apply({**KEEP, "turbo": "off", "cstates": "off"}, NEVER)
    record = by_id(run)["bios-turbo"]
    assert record["status"] == "refused"
    assert "The BIOS attribute BMCFirmwareRevision is read-only." in record["detail"]
    assert record["applied"] == ""  # a refused setting was never applied
    assert by_id(run)["bios-cstates"]["detail"].startswith("waiting for a reboot")
    assert server.bmc.bios.waiting() == {"CPUC6Report": "Disable", "PackageCState": "C0/C1 state"}


# What a BMC may say to a question at a property, without `error` (OpenBMC: ibm-openbmc/bmcweb#70): a restart, a job's removal.
RESTART = "The action was refused since the host is in its self-test."
AT_PROPERTIES = {
    "a restart": ("/redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset", "ResetType", RESTART),
    "a job's removal": (
        "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellJobService/Actions/DellJobService.DeleteJobQueue",
        "JobID",
        "The job cannot be deleted while it runs.",
    ),
}


@pytest.mark.parametrize("bmc", ["dell"], indirect=True)
@pytest.mark.parametrize("status", [400, 409])
@pytest.mark.parametrize("what", AT_PROPERTIES)
def test_a_refusal_at_a_property_of_what_is_no_attribute_is_said(
    server: Server, bmc: Bmc, what: str, status: int
) -> None:
    """In the BMC's words, naming what it did not take."""
    path, name, said = AT_PROPERTIES[what]
    server.control().apply(WHOLE, NEVER)  # a job now waits
    document = {f"{name}@Message.ExtendedInfo": [{"MessageId": "Base.1.8.OperationFailed", "Message": said}]}
    plant(bmc, f"POST {path}", status, document)
    with pytest.raises(BmcError) as refused:
        if what == "a restart":
            server.control().apply(WHOLE, ALLOWED)
        else:
            server.control().restore(NEVER)
    assert str(refused.value) == f"{server.service.where}: it refused what it was asked: {name}: {said}"


# Missing in one of the documents: (which, the change to it).
SYSTEM_PATH = "/redfish/v1/Systems/System.Embedded.1"
AT_ONCE_PATH = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/System.Embedded.1"
REGISTRY_PATH = "/redfish/v1/Registries/BiosAttributeRegistry.v1_0_0"
REGISTRY_FILE = f"{REGISTRY_PATH}/BiosAttributeRegistry.v1_0_0.json"
LACKING: dict[str, tuple[str, Any]] = {
    "the root's Id": ("/redfish/v1", lambda found: found.pop("Id")),
    "a service that is null": ("/redfish/v1", lambda found: found.update(Chassis=None, Managers=None, Tasks=None)),
    "the registries' link": ("/redfish/v1", lambda found: found.update(Registries=None)),
    "the system's Id": (SYSTEM_PATH, lambda found: found.pop("Id")),
    "a null in a summary": (SYSTEM_PATH, lambda found: found.update(MemorySummary={"Status": None})),
    "an action's target": (SYSTEM_PATH, lambda found: found["Actions"].update({"#ComputerSystem.Decommission": {}})),
    "the BIOS' Id": (f"{SYSTEM_PATH}/Bios", lambda found: found.pop("Id")),
    "the target of the BIOS' reset": (f"{SYSTEM_PATH}/Bios", lambda found: found["Actions"]["#Bios.ResetBios"].clear()),
    "the registry file's Id": (REGISTRY_PATH, lambda found: found.pop("Id")),
    "the registry file's languages": (REGISTRY_PATH, lambda found: found.pop("Languages")),
    "the registry's owner": (REGISTRY_FILE, lambda found: found.pop("OwningEntity")),
    "the registry's language": (REGISTRY_FILE, lambda found: found.update(Language=None)),
    "the type of a row": (REGISTRY_FILE, lambda found: found["RegistryEntries"]["Attributes"][0].pop("Type")),
    "a row's name": (REGISTRY_FILE, lambda found: found["RegistryEntries"]["Attributes"].append({"Type": "String"})),
    "a whole row": (REGISTRY_FILE, lambda found: found["RegistryEntries"]["Attributes"].append(None)),
}


@pytest.mark.parametrize("bmc", ["dell"], indirect=True)
def test_what_a_document_lacks_costs_nothing_else(server: Server, bmc: Bmc) -> None:
    """Whether a key is absent or null: DSP0266 has null for what a service does not know."""
    whole = server.control().system.firmware()
    assert whole is not None and whole.offered and whole.current["ThermalSettings.1.FanSpeedOffset"] == "Off"
    for what, (path, change) in LACKING.items():
        document = bmc.redfish(path)[1]
        change(document)
        plant(bmc, f"GET {path}", 200, document)
        assert server.control().system.firmware() == whole, what
        (bmc.directory / PLANTED).unlink()
    plant(bmc, f"GET {AT_ONCE_PATH}", 200, {"Id": "System.Embedded.1"})
    without = server.control().system.firmware()
    assert without is not None and set(whole.current) - set(without.current) == {
        each.name for each in bmc.bios.vendor.at_once
    }


@pytest.mark.parametrize("state", [None, "Unknown"])
def test_a_power_state_that_is_not_told_is_not_off(server: Server, bmc: Bmc, state: str | None) -> None:
    """A restart would begin with switching on what is on, and take that for done. BMCs that have just started say so."""
    path = "/redfish/v1/Systems/1"
    document = {**bmc.redfish(path)[1], "PowerState": state}
    plant(bmc, f"GET {path}", 200, document)
    with pytest.raises(BmcError, match=rf"does not say whether the machine is on \(PowerState: {state or 'nothing'}\)"):
        server.control().apply(WHOLE, ALLOWED)
    assert bmc.power.actions() == []


@pytest.mark.parametrize(
    "body",
    [
        {"error": "The service is about to start."},
        {"error": None, "@Message.ExtendedInfo": [None, {"Message": "The service is about to start."}]},
        {"error": {"@Message.ExtendedInfo": ["x", {"Message": "The service is about to start."}]}},
    ],
)
def test_an_error_of_another_form_is_said_in_its_words(server: Server, bmc: Bmc, body: dict[str, Any]) -> None:
    """The client would break over it, and the words be lost."""
    plant(bmc, "GET /redfish/v1/Systems/1/Bios", 409, body)
    with pytest.raises(BmcError, match=r"The service is about to start\."):
        server.control().system.firmware()


@pytest.mark.parametrize("bmc", IN_FORCE, indirect=True)
def test_the_registry_is_found_however_its_name_is_worded(server: Server, bmc: Bmc) -> None:
    """As Supermicro's X13 does; and as NVIDIA's GB200, whose Bios names no registry."""
    firmware = server.control().system.firmware()
    assert firmware is not None and {each.name for each in bmc.bios.vendor.attributes} == set(firmware.offered)
    system = server.control().system
    path = system.system.bios.path
    document = bmc.redfish(path)[1]
    del document["AttributeRegistry"]
    plant(bmc, f"GET {path}", 200, document)
    unnamed = system.firmware()
    assert unnamed is not None and unnamed.offered == firmware.offered


REFUSALS = {
    "wrong password": ({"password": "wrong-password"}, ["it refuses this user and password", "BENCH_PASSWORD"]),
    "certificate not trusted": ({"ca_file": ""}, ["its certificate is not trusted", "bmc.redfish_ca_file"]),
    "no such file": ({"ca_file": "/nowhere/ca.pem"}, ["/nowhere/ca.pem does not exist"]),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_service_that_cannot_be_entered_is_refused_with_cause_and_remedy(server: Server, case: str) -> None:
    """Address, port and user stand in the message; the password never does."""
    change, parts = REFUSALS[case]
    server.service = dataclasses.replace(server.service, **change)
    with pytest.raises(BmcError) as caught:
        server.control()
    for part in parts:
        assert part in str(caught.value)
    if case != "no such file":
        assert f"127.0.0.1 port {server.service.port}, user admin" in str(caught.value)
    assert server.service.password not in str(caught.value) + repr(server.service)


def test_another_ca_is_not_trusted_unless_that_is_written_down(server: Server, tmp_path: Path) -> None:
    """`insecure: true` goes without verification."""
    tls.create(tmp_path / "other-ca")
    server.service = dataclasses.replace(server.service, ca_file=str(tmp_path / "other-ca/ca.pem"))
    with pytest.raises(BmcError, match="its certificate is not trusted"):
        server.control()
    server.service = dataclasses.replace(server.service, insecure=True)
    assert by_id(server.control().apply(WHOLE, NEVER))["bios-turbo"]["status"] == "unchanged"


def fingerprint_of(file: Path) -> str:
    done = subprocess.run(
        ["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in", file],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip().partition("=")[2]


def test_a_certificate_is_trusted_by_its_fingerprint_whoever_signed_it(server: Server) -> None:
    """As openssl prints it, and in small letters without colons; no authority is named."""
    folder = Path(server.service.ca_file).parent
    pin = fingerprint_of(folder / "server.pem")
    for written in (pin, pin.replace(":", "").lower()):
        server.service = dataclasses.replace(server.service, ca_file="", fingerprint=written)
        assert by_id(server.control().apply(WHOLE, NEVER))["bios-turbo"]["status"] == "unchanged"


@pytest.mark.parametrize("insecure", [False, True])
def test_a_certificate_of_another_fingerprint_gets_no_password(server: Server, insecure: bool) -> None:
    """Also one that the authority has signed, and where insecure is written beside it."""
    pin = fingerprint_of(Path(server.service.ca_file).parent / "ca.pem")
    server.service = dataclasses.replace(server.service, fingerprint=pin, insecure=insecure)
    with pytest.raises(
        BmcError, match=r"its certificate is not the one of bmc.redfish_fingerprint, so that no password"
    ):
        server.control()


def test_a_service_that_does_not_answer_is_refused_with_what_to_check(server: Server) -> None:
    """Here nothing listens on the port."""
    server.service = dataclasses.replace(server.service, port=free_ports(1)[0])
    with pytest.raises(BmcError, match=r"it does not answer. Remedy: check bmc.address and bmc.redfish_port.*refused"):
        server.control()
