"""Drives as smartctl and nvme-cli tell of them: whole recorded answers against whole expected points, cut, hostile, absent."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import by_tag, fake_program, undeclared, wait_for
from drive_helpers import ANSWERING, DRIVES, REFUSING, Bench, lines_of, page_bytes, points_of

from daq_bench.candidate_kit import nand_pages
from daq_bench.telemetry_agent.base.line_parser import parse_line
from daq_bench.telemetry_agent.collectors.smart import Smart
from daq_bench.telemetry_agent.devices import nvme_pages, smartctl_json, vendor_pages
from daq_bench.telemetry_agent.devices.drive_poll import DrivePoll
from daq_bench.telemetry_agent.reading.collector import Unsupported

UNREADABLE = "nvme0n1: nvme smart-log: /dev/nvme0n1: Permission denied"
UNKNOWN = "nvme0n1: nvme id-ctrl: /dev/nvme0n1: Permission denied"


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The machine of the case that the test names."""
    made = Bench(tmp_path, request.param)
    monkeypatch.setenv("PATH", made.path)
    return made


def case(name: str) -> pytest.MarkDecorator:
    """A test about one case."""
    return pytest.mark.parametrize("bench", [name], indirect=True)


def test_there_is_a_case_of_every_kind() -> None:
    """A folder without expected points would be tested by nothing."""
    assert sorted([*ANSWERING, *REFUSING]) == sorted(path.name for path in DRIVES.iterdir())
    assert len(ANSWERING) == 10


@pytest.mark.parametrize("bench", ANSWERING, indirect=True)
def test_every_drive_gives_exactly_the_expected_points(bench: Bench) -> None:
    """Twice: what is asked once only is there again. All of it is declared."""
    collector = bench.smart()
    for _ in range(2):
        reading = collector.read()
        points = collector.parse(reading, None)
        assert lines_of(points) == (DRIVES / bench.files.name / "expected.lp").read_text()
        assert [undeclared(point) for point in points] == [[]] * len(points)
        if (bench.files / "health.bin").exists():
            assert reading.faults == ()


@pytest.mark.parametrize("bench", [*ANSWERING, *REFUSING], indirect=True)
def test_an_answer_that_is_cut_off_is_an_error_and_never_a_shorter_reading(bench: Bench) -> None:
    """Each answer, at each eighth of its length: what remains are only points that other answers prove."""
    lines = DRIVES / bench.files.name / "expected.lp"
    expected = [parse_line(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    whole = {point.measurement + str(dict(point.tags).get("sensor")): point.fields.items() for point in expected}
    for path in bench.printed():
        text = path.read_bytes()
        for eighths in range(8):
            path.write_bytes(text[: len(text) * eighths // 8])
            collector = bench.smart()
            try:
                reading = collector.read()
            except OSError as error:
                assert str(error).startswith(f"no drive answers: {bench.drive}: ")
                continue
            assert [fault for fault in reading.faults if fault not in (UNREADABLE, UNKNOWN)], (path.name, eighths)
            for point in points_of(collector, reading):
                remains = whole[point.measurement + str(dict(point.tags).get("sensor"))]
                assert point.fields.items() <= remains, (path.name, eighths)
        path.write_bytes(text)


@case("nvme_datacentre")
def test_what_does_not_change_is_asked_once_and_no_page_that_the_drive_has_not(bench: Bench) -> None:
    """Each question for a page that is not there would be an entry in the drive's error log."""
    collector = bench.smart()
    for _ in range(3):
        collector.read()
    asked = [call.split()[0] + call.partition("--log-id=")[2].partition(" ")[0] for call in bench.calls()]
    first = ["smart-log", "id-ctrl", "get-feature", "get-log0x0", "get-log0xc0", "get-log0xc0"]
    assert asked == first + 2 * ["smart-log", "get-log0xc0"]
    assert not any("0xca" in call for call in bench.calls())


@case("nvme_consumer")
def test_a_drive_that_lists_no_pages_is_asked_for_ocps_once(bench: Bench) -> None:
    """Its refusal is no fault: most drives have no such page."""
    collector = bench.smart()
    for _ in range(3):
        assert collector.read().faults == ()
    assert sum("0xc0" in call for call in bench.calls()) == 1


@case("nvme_datacentre")
def test_ocps_page_counts_only_with_its_guid(bench: Bench) -> None:
    """Elsewhere, another vendor keeps his own things at this place."""
    page = bytearray((bench.files / "c0.bin").read_bytes())
    page[496] ^= 1
    (bench.files / "c0.bin").write_bytes(page)
    collector = bench.smart()
    points = points_of(collector, collector.read())
    assert "smart_ocp" not in [point.measurement for point in points]
    assert "nand_written_bytes" not in points[0].fields
    with pytest.raises(ValueError, match="no OCP GUID at its end but c4af1028"):
        vendor_pages.ocp_fields(bytes(page))


@case("nvme_intel")
def test_the_erases_of_a_worn_drive_hide_no_count(bench: Bench) -> None:
    """Intel packs least, most and mean erases into one item; as a count of 32 MiB a mean of 64 is beyond all integers."""
    page = bytearray((bench.files / "ca.bin").read_bytes())
    at = next(at for at in range(0, len(page), 12) if page[at] == 0xAD)
    page[at + 5 : at + 11] = (60 | 90 << 16 | 70 << 32).to_bytes(6, "little")
    (bench.files / "ca.bin").write_bytes(page)
    collector = bench.smart()
    reading = collector.read()
    assert reading.faults == ()
    assert points_of(collector, reading)[0].fields["nand_source"] == "Intel log page CAh"


@case("nvme_intel")
def test_intels_counts_are_trusted_only_while_their_unit_is_proven(bench: Bench) -> None:
    """The same page in units of 1 GiB: its count of host writes no longer agrees with the standard one."""
    page = bytearray((bench.files / "ca.bin").read_bytes())
    for item in (11, 12):
        at = 12 * item + 5
        page[at : at + 6] = (int.from_bytes(page[at : at + 6], "little") // 32).to_bytes(6, "little")
    (bench.files / "ca.bin").write_bytes(page)
    collector = bench.smart()
    reading = collector.read()
    assert len(reading.faults) == 1
    assert reading.faults[0].startswith("nvme0n1: log page CAh: 28890365952 B written by the host, the health log says")
    assert reading.faults[0].endswith("not in 32 MiB; not read again")
    assert "nand_written_bytes" not in points_of(collector, reading)[0].fields
    assert collector.read().faults == ()


@pytest.mark.parametrize("bench", REFUSING, indirect=True)
def test_a_drive_without_health_data_is_unsupported_with_the_tools_own_words(bench: Bench) -> None:
    """Behind a USB bridge, without permission, without SMART."""
    said = json.loads((bench.files / "smartctl.json").read_text())["smartctl"]["messages"][0]["string"]
    with pytest.raises(Unsupported) as raised:
        bench.smart().read()
    assert str(raised.value) == f"no drive has SMART data: sda: {said}"


@case("sata_ssd")
def test_a_refusal_beside_other_drives_is_said_once(bench: Bench) -> None:
    """It is how that drive is, and no fault of each sample; it is asked again much later."""
    (bench.root / "sys/block/sdb/device").mkdir(parents=True)
    refused = DRIVES / "usb_bridge_refused" / "smartctl.json"
    script = f'case "$*" in *sdb*) echo x >>"{bench.files}/asked"; cat "{refused}";; *) cat "{bench.files}/smartctl.json";; esac\n'
    fake_program(bench.bin, "smartctl", script)
    collector = bench.smart()
    assert collector.read().faults == ("sdb: /dev/sda: Unknown USB bridge [0x152d:0x1561 (0x204)]",)
    assert collector.read().faults == ()
    assert (bench.files / "asked").read_text() == "x\n"


@case("sata_ssd")
def test_a_drive_that_is_lost_is_a_fault_of_each_sample(bench: Bench) -> None:
    """Not one that never had health data: it is asked again each time, and its age grows."""
    collector = bench.smart()
    collector.read()
    good = (bench.files / "smartctl.json").read_bytes()
    (bench.files / "smartctl.json").write_bytes((DRIVES / "permission_denied" / "smartctl.json").read_bytes())
    for _ in range(2):
        with pytest.raises(OSError, match="no drive answers: sda: Smartctl open device: /dev/sda failed"):
            collector.read()
    (bench.files / "smartctl.json").write_bytes(good)
    assert collector.read().faults == ()


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("nvme_smart_health_information_log", "media_errors"), "many", "media_errors is 'many', which is no credible count"),
        (("nvme_smart_health_information_log", "media_errors"), -1, "media_errors is '-1'"),
        (("nvme_smart_health_information_log", "media_errors"), None, "media_errors is 'None'"),
        (("nvme_smart_health_information_log", "media_errors"), True, "media_errors is 'True'"),
        (("nvme_smart_health_information_log", "data_units_written"), 1e21, r"data_units_written is '1e\+21'"),
        (("nvme_smart_health_information_log", "data_units_written"), 2**64, "data_units_written is '18446744073709551616'"),
        (("nvme_smart_health_information_log",), [], "nvme_smart_health_information_log is .*, expected an object"),
        (("temperature", "current"), "hot", "temperature.current is 'hot', which is no temperature"),
        (("temperature", "current"), 65535, "temperature.current is 65535 degrees C"),
        (("smart_status", "passed"), "yes", "smart_status.passed is 'yes', neither true nor false"),
    ],
)  # fmt: skip
@case("nvme_smartctl_only")
def test_a_hostile_value_costs_that_value_and_is_named(
    bench: Bench, place: tuple[str, ...], value: Any, reason: str
) -> None:
    """Never an invented field, and never the others of the drive."""
    collector = bench.smart()
    sound = points_of(collector, collector.read())[0].fields
    document = json.loads((bench.files / "smartctl.json").read_text())
    at = document
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    (bench.files / "smartctl.json").write_text(json.dumps(document))
    collector = bench.smart()
    reading = collector.read()
    assert any(re.search(reason, fault) for fault in reading.faults), reading.faults
    left = points_of(collector, reading)[0].fields
    assert left.items() < sound.items()
    assert len(left) == len(sound) - 1 or place == ("nvme_smart_health_information_log",)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each part of a document."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*at, key)
        yield from places(part, (*at, key))


def damaged(document: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(document))
    at = copy
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return copy


# What is its whole health; what rests on two values: a count in sectors on their size, the source of a count on the count.
WHOLE = ("nvme_smart_health_information_log", "ata_smart_attributes", "scsi_error_counter_log", "ata_device_statistics")
OF_TWO = {"data_read_bytes", "data_written_bytes", "nand_source"}
LISTS = {"temperature_sensors", "table", "pages"}


@pytest.mark.parametrize("name", sorted(path.parent.name for path in DRIVES.glob("*/smartctl.json")))
def test_one_bad_part_of_smartctls_answer_costs_that_part_alone(name: str) -> None:
    """A row of no attribute, or a sector of no size, cost a SATA drive all of its attributes."""
    document = json.loads((DRIVES / name / "smartctl.json").read_text())
    if smartctl_json.answer_fault(document):
        return
    sound = smartctl_json.health_fields(document)
    for place in places(document):
        if place[0] == "smartctl" or place[-1] in WHOLE or place[-1] in LISTS:
            continue
        for value in ("x", -1, None, [], {}, 1e300, 2**70, ["x"]):
            changed = damaged(document, place, value)
            smartctl_json.limits_of_load(changed)
            lost = {field for field in sound if field not in smartctl_json.health_fields(changed)} - OF_TWO
            assert len(lost) <= (2 if "scsi_error_counter_log" in place else 1), (place, value, lost)


def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: dict[str, Any]) -> Smart:
    """A machine whose one SATA or SAS drive answers this."""
    made = Bench(tmp_path, "sata_ssd")
    (made.files / "smartctl.json").write_text(json.dumps({"smartctl": {"exit_status": 0}} | document))
    monkeypatch.setenv("PATH", made.path)
    return made.smart()


def attribute(number: int, name: str, raw: int) -> dict[str, Any]:
    """A row of smartctl's table."""
    return {"id": number, "name": name, "raw": {"value": raw, "string": str(raw)}}


@pytest.mark.parametrize("turned", [False, True])
def test_a_stated_unit_wins_over_sectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turned: bool) -> None:
    """An SSD that counts in 32 MiB and gives the same number again under the usual name: 65,536 times too little."""
    table = [attribute(225, "Host_Writes_32MiB", 713542), attribute(241, "Total_LBAs_Written", 713542)]
    document = {
        "ata_smart_attributes": {"table": table[::-1] if turned else table},
        "in_smartctl_database": True,
        "logical_block_size": 512,
    }
    collector = answer(tmp_path, monkeypatch, document)
    assert points_of(collector, collector.read())[0].fields["data_written_bytes"] == 713542 * 32 * 2**20
    page = {
        "number": 1,
        "table": [{"offset": 24, "value": 713542, "flags": {"valid": True}}],
    }
    collector = answer(tmp_path / "b", monkeypatch, document | {"ata_device_statistics": {"pages": [page]}})
    reading = collector.read()
    assert points_of(collector, reading)[0].fields["data_written_bytes"] == 713542 * 32 * 2**20
    assert "whose name states its unit says 23942496518144" in reading.faults[0]


@pytest.mark.parametrize("again", [129493, 4345064062976 // 512])
def test_lbas_that_count_in_32_mib_give_no_data_read(again: int) -> None:
    """Intel's S3520 as Dell sells it: writes in 32 MiB under both names, reads under the usual one alone (294 MB in 21,213 h)."""
    rows = [
        attribute(225, "Host_Writes_32MiB", 129493),
        attribute(233, "Total_LBAs_Written", again),
        attribute(242, "Total_LBAs_Read", 573613),
    ]
    document = {"in_smartctl_database": True, "ata_smart_attributes": {"table": rows}}
    read = {} if again == 129493 else {"data_read_bytes": 573613 * 512}
    assert smartctl_json.health_fields(document) == {"data_written_bytes": 4345064062976} | read


@pytest.mark.parametrize(
    ("number", "name", "field"),
    [
        (5, "Retired_Block_Count", "reallocated_sectors"),
        (5, "Grown_Failing_Block_Ct", "reallocated_sectors"),
        (187, "Uncorrectable_Error_Cnt", "reported_uncorrectable"),
        (197, "Pending_Sector_Count", "pending_sectors"),
        (199, "CRC_Error_Count", "interface_crc_errors"),
        (197, "Not_In_Use", None),
    ],
)
def test_attributes_are_matched_by_id_and_class(number: int, name: str, field: str | None) -> None:
    """Makers word them differently; smartctl's database has all of these."""
    found = smartctl_json.health_fields({"ata_smart_attributes": {"table": [attribute(number, name, 3)]}})
    assert found == ({field: 3} if field else {})


VOLUMES: tuple[dict[str, Any], ...] = (
    {"smart_support": {"available": False}, "temperature": {"current": 0, "drive_trip": 0}, "smart_status": {"passed": True}},
    {"smartctl": {"exit_status": 4}, "temperature": {"current": 0, "drive_trip": 0}, "smart_status": {"passed": True}},
)  # fmt: skip


@pytest.mark.parametrize("document", VOLUMES)
def test_a_controllers_volume_is_no_healthy_drive_of_0_degrees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: dict[str, Any]
) -> None:
    """It is named as unseen."""
    collector = answer(tmp_path, monkeypatch, document)
    with pytest.raises(Unsupported, match="sda: no health data: a volume of a RAID controller"):
        collector.read()
    more = {"smartctl": {"exit_status": 4}, "scsi_grown_defect_list": 2, "temperature": {"current": 31}}
    assert smartctl_json.answer_fault(more) is None  # a command failed, and the rest is sound


def test_no_drive_in_use_has_0_degrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor a limit of 0; smartctl has the limit of a SAS drive at two places."""
    document = {"temperature": {"current": 0, "drive_trip": 0}, "scsi_grown_defect_list": 2}
    collector = answer(tmp_path, monkeypatch, document)
    reading = collector.read()
    points = points_of(collector, reading)
    assert [point.fields for point in points] == [{"grown_defects": 2}]
    assert "sda: smartctl: temperature.current is 0 degrees C, which is no reading of what is in use" in reading.faults
    sas = {"scsi_temperature": {"drive_trip": 68}}
    assert smartctl_json.limits(sas) == {"critical_degc": 68.0}
    assert smartctl_json.limits_of_load(sas) == {"warning_degc": 68.0, "critical_degc": 68.0}
    critical_alone = {"nvme_composite_temperature_threshold": {"critical": 85}}
    assert smartctl_json.limits_of_load(critical_alone) == {"critical_degc": 85.0}


def test_disks_behind_a_controller_are_asked_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The volume is named, its disks are found by smartctl, and one that the system sees itself counts once."""
    made = Bench(tmp_path, "sata_ssd")
    (made.root / "sys/block/sdb/device").mkdir(parents=True)
    scan = [{"name": "/dev/sda", "type": "scsi"}] + [{"name": "/dev/bus/0", "type": f"megaraid,{n}"} for n in (0, 1, 9)]
    disk = {"smartctl": {"exit_status": 0}, "scsi_grown_defect_list": 0, "temperature": {"current": 31}}
    answers = {
        "scan": {"smartctl": {"exit_status": 0}, "devices": scan},
        "sda": {"smartctl": {"exit_status": 4}, **VOLUMES[0]},
        "sdb": disk | {"serial_number": "PASSED"},
        "0": disk | {"serial_number": "S0"},
        "1": disk | {"serial_number": "S1"},
        "9": disk | {"serial_number": "PASSED"},
    }
    for name, document in answers.items():
        (made.files / f"{name}.json").write_text(json.dumps(document))
    script = """
        echo "$*" >>calls
        case "$*" in
            "--scan-open -j") cat scan.json ;;
            *megaraid,?" /dev/bus/0") number="${*#*megaraid,}"; cat "${number%% *}.json" ;;
            *) cat "${*##*/}.json" ;;
        esac
    """
    fake_program(made.bin, "smartctl", f'cd "{made.files}" || exit 2\n{script}')
    monkeypatch.setenv("PATH", made.path)
    collector = made.smart()
    for expected in (
        "sda: no health data: a controller's volume; asked in its place: bus/0 mega",
        "",
    ):
        reading = collector.read()
        assert "".join(reading.faults).startswith(expected)
        points = [point for point in points_of(collector, reading) if point.measurement == "smart"]
        assert [dict(point.tags)["device"] for point in points] == ["sdb", "bus/0 megaraid,0", "bus/0 megaraid,1"]
        assert [dict(point.tags)["serial"] for point in points] == ["PASSED", "S0", "S1"]
    assert (made.files / "calls").read_text().count("--scan-open") == 1


def test_disks_of_a_smart_array_are_asked_by_number_and_each_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two volumes of one controller with three disks: smartctl says of a volume how its disks are asked, and its scan finds none."""
    made = Bench(tmp_path, "sata_ssd")
    (made.root / "sys/block/sdb/device").mkdir(parents=True)
    said = {"string": "/dev/sdX: requires option '-d cciss,N'", "severity": "error"}
    volume = {"smartctl": {"exit_status": 1, "messages": [said]}}
    beyond = {"smartctl": {"exit_status": 2, "messages": [{"string": "no such disk", "severity": "error"}]}}
    (made.files / "scan.json").write_text(json.dumps({"smartctl": {"exit_status": 0}, "devices": []}))
    (made.files / "volume.json").write_text(json.dumps(volume))
    (made.files / "beyond.json").write_text(json.dumps(beyond))
    for number in range(3):
        disk = {"smartctl": {"exit_status": 0}, "scsi_grown_defect_list": number, "serial_number": f"S{number}"}
        (made.files / f"{number}.json").write_text(json.dumps(disk))
    script = """
        echo "$*" >>calls
        case "$*" in
            --scan-open*) cat scan.json ;;
            *cciss,[012]" /dev/sd"*) number="${*#*cciss,}"; cat "${number%% *}.json" ;;
            *cciss,*) cat beyond.json ;;
            *) cat volume.json ;;
        esac
    """
    fake_program(made.bin, "smartctl", f'cd "{made.files}" || exit 2\n{script}')
    monkeypatch.setenv("PATH", made.path)
    collector = made.smart()
    for _ in range(2):
        points = [point for point in points_of(collector, collector.read()) if point.measurement == "smart"]
        assert [dict(point.tags)["device"] for point in points] == [f"sda cciss,{number}" for number in range(3)]
        assert [point.fields["grown_defects"] for point in points] == [0, 1, 2]
    assert (made.files / "calls").read_text().count("-i -d cciss,") == 8  # four for each volume, once


@pytest.mark.parametrize("answer", ["not JSON", "[]", '{"smartctl": []}', '{"smartctl": {"exit_status": "0"}}'])
def test_a_smart_array_that_answers_nonsense_is_no_disk_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    made = Bench(tmp_path, "sata_ssd")
    said = {
        "smartctl": {"exit_status": 1, "messages": [{"string": "requires option '-d cciss,N'", "severity": "error"}]}
    }
    (made.files / "volume.json").write_text(json.dumps(said))
    script = f"""case "$*" in *cciss,*) echo '{answer}' ;; *) cat "{made.files}/volume.json" ;; esac"""
    monkeypatch.setenv("PATH", fake_program(made.bin, "smartctl", script))
    with pytest.raises((Unsupported, OSError), match="cciss"):
        made.smart().read()


def test_an_ocp_page_of_ones_is_no_page() -> None:
    """With its GUID alone it counts nothing."""
    page = bytearray(b"\xff" * 512)
    page[496:] = nand_pages.OCP_GUID.to_bytes(16, "little")
    with pytest.raises(ValueError, match="all of it is ones, which is no page"):
        vendor_pages.ocp_fields(bytes(page))


@pytest.mark.parametrize(
    "printed", ["segfault", "[]", "3", '{"smartctl": ', "\udcff".encode("utf-8", "surrogateescape").decode("latin-1")]
)
@case("sata_ssd")
def test_what_is_not_json_is_shown(bench: Bench, printed: str) -> None:
    """Up to 200 characters of it."""
    (bench.files / "smartctl.json").write_text(printed + "x" * 500)
    with pytest.raises(OSError, match="sda: smartctl: not JSON: ") as raised:
        bench.smart().read()
    assert len(str(raised.value)) < 300
    assert printed[:3] in str(raised.value)


@case("sata_ssd")
def test_a_serial_that_cannot_be_a_tag_is_left_out(bench: Bench) -> None:
    """Line protocol has no form for a line break or a backslash at the end; the device's name still tells which it is."""
    document = json.loads((bench.files / "smartctl.json").read_text()) | {"serial_number": "A\nB", "model_name": "M\\"}
    (bench.files / "smartctl.json").write_text(json.dumps(document))
    collector = bench.smart()
    assert {point.tags[:1] for point in points_of(collector, collector.read())} == {(("device", "sda"),)}


@case("nvme_datacentre")
def test_one_tool_that_fails_leaves_what_the_other_says(bench: Bench) -> None:
    """smartctl without permission: the drive's own pages are a whole reading but for its verdict."""
    fake_program(bench.bin, "smartctl", f"cat {DRIVES}/permission_denied/smartctl.json; exit 2\n")
    collector = bench.smart()
    reading = collector.read()
    assert reading.faults == ("nvme0n1: Smartctl open device: /dev/sda failed: Permission denied",)
    fields = points_of(collector, reading)[0].fields
    assert fields["media_errors"] == 0
    assert "passed" not in fields
    assert dict(points_of(collector, reading)[0].tags)["serial"] == "2313401ABCDE"


def test_a_page_of_the_wrong_size_is_no_page() -> None:
    """Nor are counts that no drive can have reached."""
    with pytest.raises(ValueError, match="health log: 6 B instead of 512 B: b'short"):
        nvme_pages.health_fields(b"short\n")
    page = bytearray(page_bytes((DRIVES / "nvme_consumer" / "health.hex").read_text()))
    page[48:64] = b"\xff" * 16
    with pytest.raises(ValueError, match=r"bytes 48 to 63: \d+ is no credible count"):
        nvme_pages.health_fields(bytes(page))


def test_health_fields_of_nothing_are_none() -> None:
    """An empty answer yields no invented value."""
    assert smartctl_json.health_fields({}) == {}


def test_smart_runs_at_ten_seconds_at_most() -> None:
    """A drive's log pages are not read at 1 Hz under load."""
    assert (Smart(1.0).period_s, Smart(60.0).period_s, Smart.pace) == (10.0, 60.0, "slow")


def several(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    names: tuple[str, ...],
    tool_s_max: float = 4.0,
    patience_s: float = 2.0,
) -> Smart:
    """A machine with several SATA drives; in the script, $name is the one that is asked."""
    bench = Bench(tmp_path, "sata_ssd")
    for name in names:
        (bench.root / "sys/block" / name / "device").mkdir(parents=True, exist_ok=True)
    script = 'for name; do :; done; name="${name#/dev/}"\n' + script
    monkeypatch.setenv("PATH", fake_program(bench.bin, "smartctl", script + f'cat "{bench.files}/smartctl.json"\n'))
    return Smart(1.0, bench.root, patience_s=patience_s, tool_s_max=tool_s_max)


def test_a_drive_that_hangs_delays_no_other_and_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first sample waits for it, no later one does; it is a fault by name, and its silence a number."""
    collector = several(tmp_path, monkeypatch, '[ "$name" = sdb ] && exec sleep 20\n', ("sda", "sdb", "sdc"))
    took_s = []
    for _ in range(2):
        started_s = time.monotonic()
        reading = collector.read()
        took_s.append(time.monotonic() - started_s)
        assert len(reading.faults) == 1
        assert reading.faults[0].startswith("sdb: no answer for")
        points = collector.parse(reading, None)
        healthy = [point for point in points if point.measurement == "smart"]
        assert sorted(dict(point.tags)["device"] for point in healthy) == ["sda", "sdc"]
        assert all(point.time_ns < reading.time_ns for point in healthy)
        queries = by_tag([point for point in points if point.measurement == "smart_query"], "device")
        assert [queries[name]["answered"] for name in ("sda", "sdb", "sdc")] == [True, False, True]
        assert queries["sdb"]["staleness_s"] >= 2.0
        assert queries["sda"]["staleness_s"] < 15.0
    assert took_s[0] >= 2.0 and took_s[1] < took_s[0]  # the patience, and without it
    said = ("sdb: smartctl: no answer within 4 s",)
    wait_for(lambda: collector.read().faults == said, "the end of the drive's time", 60)


def test_a_slow_drive_is_read_at_its_own_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slower than a sample waits for: its answer comes with a later one, and bears the time at which it was given."""
    collector = several(tmp_path, monkeypatch, '[ "$name" = sdb ] && sleep 3\n', ("sda", "sdb"), tool_s_max=60.0)
    assert [point.tags[0][1] for point in points_of(collector, collector.read())] == ["sda", "sda"]
    found = []

    def answered() -> bool:
        found[:] = [collector.read()]
        return not found[0].faults

    wait_for(answered, "the slow drive's answer", 60)
    (reading,) = found
    times = {point.tags[0][1]: point.time_ns for point in points_of(collector, reading)}
    assert times["sdb"] < times["sda"]
    assert dict(collector.parse(reading, None)[-1].fields)["answered"] is True


def test_many_drives_that_hang_hold_up_the_others_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A late drive gives up its place among those that are asked at a time."""
    names = tuple(f"sd{letter}" for letter in "abcdefghijkl")
    hang = 'case "$name" in sd[a-i]) exec sleep 20;; esac\n'
    collector = several(tmp_path, monkeypatch, hang, names)
    reading = collector.read()
    assert {point.tags[0][1] for point in points_of(collector, reading)} == {"sdj", "sdk", "sdl"}
    assert len(reading.faults) == 9


def test_when_every_drive_hangs_the_sample_fails_and_the_collector_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silence is no proof that there is nothing to ask."""
    collector = several(tmp_path, monkeypatch, "exec sleep 20\n", ("sda",))
    with pytest.raises(OSError, match="no drive answers: sda: no answer for"):
        collector.read()


def test_no_drive_is_asked_twice_at_a_time() -> None:
    """However often samples are taken."""
    under_way: list[str] = []

    def ask(name: str) -> tuple[dict[str, str], list[str]]:
        assert name not in under_way
        under_way.append(name)
        time.sleep(0.3)
        under_way.remove(name)
        return {"t": name}, []

    poll = DrivePoll(ask, patience_s=0.05, parallel=2)
    answered = set[str]()

    def all_have() -> bool:
        answers, _ = poll.sample(["a", "b", "c", "d"])
        assert not any(answer.faults for answer in answers.values())
        answered.update(answers)
        return answered == {"a", "b", "c", "d"}

    wait_for(all_have, "each drive's answer", 60)


def test_times_are_those_of_the_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of the moment at which the last drive was through."""
    before_ns = time.time_ns()
    collector = several(tmp_path, monkeypatch, '[ "$name" = sdb ] && sleep 1\n', ("sda", "sdb"), patience_s=30.0)
    reading = collector.read()
    times = {point.tags[0][1]: point.time_ns for point in points_of(collector, reading)}
    assert before_ns < times["sda"] < times["sdb"] < reading.time_ns
    assert times["sdb"] - before_ns > 1e9
