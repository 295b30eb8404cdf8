"""Tells what stands in the corpus' `expected.json`, found a second time by another way: straight from the fields that the tools document.

Nothing here uses the bench's readers, so that a reader does not vouch for itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contribute_corpus import CORPUS, about_of

CASES = sorted(path.parent for path in CORPUS.glob("*/case.json"))


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in CASES if about_of(case).kind == kind]


def raw(case: Path) -> str:
    return (case / "raw").read_text(encoding="utf-8")


def expected(case: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((case / "expected.json").read_text())
    return found


@pytest.mark.parametrize("case", of_kind("smartctl"))
def test_drives_by_smartctls_own_fields(case: Path) -> None:
    """NVMe base specification: data units are 1000 x 512 B; smartctl(8): SAS gigabytes are 1e9 B; ATA attributes by id."""
    document, found = json.loads(raw(case)), expected(case)
    if "no_data" in found:
        assert document["smartctl"]["exit_status"] & 3 or document.get("smart_support", {}).get("available") is not True
        return
    fields = found["fields"]
    assert fields["passed"] == document["smart_status"]["passed"]
    assert fields["temperature_degc"] == document["temperature"]["current"]
    assert fields.get("power_on_hours") == document.get("power_on_time", {}).get("hours")
    if "nvme_smart_health_information_log" in document:
        log = document["nvme_smart_health_information_log"]
        assert fields["data_written_bytes"] == log["data_units_written"] * 512_000
        assert fields["data_read_bytes"] == log["data_units_read"] * 512_000
        for ours, theirs in (
            ("percentage_used_percent", "percentage_used"),
            ("available_spare_percent", "available_spare"),
            ("media_errors", "media_errors"),
            ("unsafe_shutdowns", "unsafe_shutdowns"),
            ("critical_warning", "critical_warning"),
        ):
            assert fields[ours] == log[theirs], ours
    elif "scsi_error_counter_log" in document:
        for way, ours in (("read", "data_read_bytes"), ("write", "data_written_bytes")):
            gigabytes = document["scsi_error_counter_log"][way]["gigabytes_processed"]
            assert fields[ours] == int(gigabytes.replace(".", "")) * 10**6
        assert fields["grown_defects"] == document["scsi_grown_defect_list"]
    else:
        rows = document["ata_smart_attributes"]["table"]
        named = {(row["id"], row["name"]): row["raw"]["value"] for row in rows}
        for number, part, ours in (
            (5, "", "reallocated_sectors"),
            (197, "Pending", "pending_sectors"),
            (199, "CRC", "interface_crc_errors"),
        ):
            values = [value for (at, name), value in named.items() if at == number and part in name]
            assert fields.get(ours) == (values[0] if values else None), (
                ours
            )  # a drive has not all of them, or by another name
        host, nand = data_of_attributes(document)
        assert {key: fields[key] for key in ("data_written_bytes", "data_read_bytes") if key in fields} == host
        assert fields.get("nand_written_bytes") == nand


IN_UNITS = {"32MiB": 2**25, "MiB": 2**20, "GiB": 2**30, "GB": 10**9}


def data_of_attributes(document: dict[str, Any]) -> tuple[dict[str, int], int | None]:
    """Returns what the names of smartctl's drive database say: host data by way, and the bytes written to the flash.

    Names in LBAs count only where the database knows the drive, and not where they repeat the number that another name gives in 32 MiB."""
    rows = {(row["name"], row["id"]): row["raw"]["value"] for row in document["ata_smart_attributes"]["table"]}
    in_units: dict[str, int] = {}
    for (name, _), value in rows.items():
        what, way, unit = [*name.split("_"), "", ""][:3]
        medium = {"NAND": "nand_", "Flash": "nand_", "Host": "data_", "Lifetime": "data_", "Total": "data_"}.get(what)
        if unit in IN_UNITS and way in ("Writes", "Reads") and medium:  # of a cache, TLC_Writes_32MiB, neither is told
            in_units[medium + ("written" if way == "Writes" else "read") + "_bytes"] = value * IN_UNITS[unit]
    lbas = {name: value for (name, _), value in rows.items() if name.startswith("Total_LBAs_")}
    twins = any(
        value and value == lbas.get("Total_LBAs_Written")
        for (name, _), value in rows.items()
        if name == "Host_Writes_32MiB"
    )
    host = {key: value for key, value in in_units.items() if key.startswith("data_")}
    if document["in_smartctl_database"] and not twins:
        for name, value in lbas.items():
            key = "data_written_bytes" if name.endswith("Written") else "data_read_bytes"
            host.setdefault(key, value * document["logical_block_size"])
    statistics = {
        (page["number"], row["offset"]): row["value"] * document["logical_block_size"]
        for page in document.get("ata_device_statistics", {}).get("pages", [])
        for row in page["table"]
        if page["number"] == 1 and row["flags"]["valid"]
    }
    for place, key in (((1, 24), "data_written_bytes"), ((1, 40), "data_read_bytes")):
        if place in statistics:
            host.setdefault(key, statistics[place])
    return host, in_units.get("nand_written_bytes")


@pytest.mark.parametrize("case", of_kind("fio"))
def test_fio_by_its_documented_fields(case: Path) -> None:
    """fio(1), JSON: io_bytes in B, bw_bytes in B/s, runtime in ms, lat_ns in ns."""
    text, found = raw(case), expected(case)
    document = json.loads(text[text.index("{") :])
    failed = [f"{job['jobname']} (error {job['error']})" for job in document["jobs"] if job["error"]]
    assert ("refused" in found) == bool(failed) and all(one in found.get("refused", "") for one in failed)
    if failed:
        return
    assert document["fio version"] == f"fio-{about_of(case).version.split()[-1]}"
    assert [job["jobname"] for job in document["jobs"]] == [name.partition("#")[0] for name in found]
    for job, mine in zip(document["jobs"], found.values(), strict=True):
        for way in ("read", "write"):
            ours, theirs = mine[way], job[way]
            assert ours["bytes"] == theirs["io_bytes"] and ours["bytes_per_s"] == theirs["bw_bytes"]
            assert ours["iops"] == theirs["iops"] and ours["runtime_s"] == theirs["runtime"] / 1000
            if theirs["total_ios"]:
                assert ours["latency_us"]["mean"] == pytest.approx(theirs["lat_ns"]["mean"] / 1000)
                assert ours["latency_us"]["max"] == pytest.approx(theirs["lat_ns"]["max"] / 1000)
            else:
                assert ours["latency_us"] is None


@pytest.mark.parametrize("case", of_kind("iperf3"))
def test_iperf3_by_its_documented_fields(case: Path) -> None:
    """iperf3(1), -J: the receiver's rate is end.sum_received; an interval with omitted true does not count."""
    document, found = json.loads(raw(case)), expected(case)
    end = document["end"]
    if "refused" in found:
        test = document["start"].get("test_start", {})
        if "error" in document:
            assert document["error"] in found["refused"]
        else:  # no TCP; nothing transferred (3.9 says its errors on standard error only); or the other side went away
            early = "sum_sent" in end and end["sum_sent"]["end"] < test["duration"] / 2
            assert (
                test.get("protocol") == "UDP"
                or not document["intervals"]
                or (early and not end["sum_received"]["bytes"])
            )
        return
    assert "error" not in document and document["start"].get("test_start", {}).get("protocol") != "UDP"
    assert found["bytes_per_s"] == pytest.approx(end["sum_received"]["bits_per_second"] / 8)
    assert found["sent_again"] == end["sum_sent"]["retransmits"]
    assert found["samples"] == len([one for one in document["intervals"] if not one["sum"]["omitted"]])


@pytest.mark.parametrize("case", of_kind("ipmi-sdr"))
def test_sensors_by_the_columns_of_ipmitool(case: Path) -> None:
    """ipmitool(1), -v -c sdr elist: name, value, unit, state, entity."""
    rows = [line.split(",") for line in raw(case).splitlines()]
    assert expected(case) == {"sensors": [[r[0], r[4], r[2], float(r[1]), r[3].lower()] for r in rows], "faults": []}


@pytest.mark.parametrize("case", of_kind("ipmi-sel"))
def test_entries_of_the_log_by_the_columns_of_ipmitool(case: Path) -> None:
    """ipmitool(1), -c sel elist: record in hexadecimal, date, time, sensor, what happened, direction."""
    rows = [line.split(",") for line in raw(case).splitlines() if line != "SEL has no entries"]
    found = expected(case)
    assert bool(found["faults"]) == (not rows) and len(found["entries"]) == len(rows)
    for row, (record, time, sensor, text, asserted) in zip(rows, found["entries"], strict=True):
        assert record == int(row[0], 16) and time == f"{row[1].strip()} {row[2].strip()}".strip()
        assert sensor == row[3] and text.startswith(row[3])
        assert asserted is (True if "Asserted" in row else False if "Deasserted" in row else None)


def tree_of(text: str) -> Iterator[tuple[str, list[str]]]:
    """(path, lines) of each file of an archive of ttar."""
    for path, lines, rest in re.findall(r"^Path: (.*)\nLines: (\d+)\n((?:(?!# ttar).*\n)*)", text, re.MULTILINE):
        yield path, rest.splitlines()[: int(lines)]


@pytest.mark.parametrize("case", of_kind("node-tree"))
def test_trees_by_the_kernels_documentation(case: Path) -> None:
    """hwmon-sysfs and thermal: millidegrees; md: raid_disks and degraded as they stand; powercap: uJ; PSI: total in us."""
    files, points = dict(tree_of(raw(case))), expected(case)["points"]
    inputs = sorted(
        int(lines[0]) / 1000 for path, lines in files.items() if re.search(r"(temp\d+_input|zone\d+/temp)$", path)
    )
    read = sorted(float(value) for value in re.findall(r"temperature_degc=([-\d.]+)", "\n".join(points)))
    assert read == pytest.approx(inputs) and expected(case)["faults"] == []
    for path, (value,) in ((path, lines) for path, lines in files.items() if path.endswith("/md/degraded")):
        array = path.split("/")[2]
        assert any(point.startswith(f"md_array,device={array} ") and f"degraded={value}i" in point for point in points)
    for path, (value,) in ((path, lines) for path, lines in files.items() if path.endswith("/energy_uj")):
        assert any(f"energy_uj={value}i" in point for point in points), path
    for path, lines in files.items():
        if path.startswith("proc/pressure/"):
            for line in lines:
                total = line.partition("total=")[2]
                assert any(f"stalled_us={total}i" in point for point in points), path


def numbers_of(cpus: str) -> set[int]:
    """Returns the numbers of the kernel's list form, `0-2,8`."""
    ends = [part.split("-") for part in cpus.split(",") if part]
    return {number for each in ends for number in range(int(each[0]), int(each[-1]) + 1)}


@pytest.mark.parametrize("case", of_kind("node-tree"))
def test_places_by_the_kernels_documentation(case: Path) -> None:
    """ABI/stable/sysfs-devices-system-cpu: CPUs with the same list of siblings are a core; -1 means no package.

    ABI/testing/sysfs-bus-pci: local_cpulist is the CPUs near a device; where it has no node, all are, which says nothing of several."""
    files = {path: lines[0] if lines else "" for path, lines in tree_of(raw(case))}
    cpus = "sys/devices/system/cpu"
    if f"{cpus}/online" not in files:
        assert "placement" not in expected(case)
        return
    found = expected(case)["placement"]
    online = numbers_of(files[f"{cpus}/online"])
    assert numbers_of(found["online"]) == online
    cores: dict[str, set[int]] = {}
    packages = set()
    for number in online:
        folder = f"{cpus}/cpu{number}/topology"
        siblings = files.get(f"{folder}/core_cpus_list") or files[f"{folder}/thread_siblings_list"]
        assert number in numbers_of(siblings)
        cores.setdefault(siblings, set()).add(number)
        packages.add(files[f"{folder}/physical_package_id"])
    assert numbers_of(found["cores"]) == {min(core) for core in cores.values()}
    assert found["threads_of_a_core"] == max(map(len, cores.values()))
    assert found["packages"] == (None if "-1" in packages else len(packages))
    assert found["smt"] == files.get(f"{cpus}/smt/control")
    nodes = {path.split("/")[-2][4:]: line for path, line in files.items() if path.endswith("/cpulist")}
    assert found["nodes"] == nodes
    for address, place in found["devices"].items():
        (near,) = (line for path, line in files.items() if path.endswith(f"{address}/local_cpulist"))
        if place["numa_node"] is None and len(nodes) > 1:
            assert place["node_cpus"] == "" and numbers_of(near) == online
        else:
            assert numbers_of(place["node_cpus"]) == numbers_of(near)


@pytest.mark.parametrize("case", of_kind("redfish-bios"))
def test_what_a_bios_would_be_set_to_stands_in_it(case: Path) -> None:
    """Every attribute that is named exists in the vendor's own document."""
    attributes = json.loads(raw(case))["Attributes"]
    named = {name for words in expected(case).values() for plan in words.values() for name in plan.get("in_force", {})}
    assert named <= set(attributes)
    assert ("WorkloadProfile" in attributes) == ("WorkloadProfile" in named)


@pytest.mark.parametrize("case", of_kind("nvme-health"))
def test_health_logs_by_the_specifications_table(case: Path) -> None:
    """NVMe base specification, SMART / Health Information: little-endian; temperature in K; data units of 512,000 B."""
    page, fields = bytes.fromhex(raw(case)), expected(case)["fields"]

    def at(first: int, last: int) -> int:
        return int.from_bytes(page[first : last + 1], "little")

    assert fields["critical_warning"] == at(0, 0) and fields["temperature_degc"] == at(1, 2) - 273
    assert (fields["data_read_bytes"], fields["data_written_bytes"]) == (at(32, 47) * 512_000, at(48, 63) * 512_000)
    assert (fields["power_on_hours"], fields["media_errors"]) == (at(128, 143), at(160, 175))
    assert expected(case)["temperatures"] == {"composite": at(1, 2) - 273}


@pytest.mark.parametrize("case", of_kind("lsblk"))
def test_devices_by_the_columns_of_lsblk(case: Path) -> None:
    """lsblk(8): one object for each place of a device in the tree; --bytes: sizes in B."""
    rows: dict[str, dict[str, Any]] = {}
    pending = list(json.loads(raw(case))["blockdevices"])
    assert expected(case)["roots"] == [row["kname"] for row in pending]
    while pending:
        row = pending.pop()
        rows[row["kname"]] = row
        pending += row.get("children", [])
    assert set(expected(case)["devices"]) == set(rows)
    for name, found in expected(case)["devices"].items():
        row = rows[name]
        assert (found["type"], found["size_bytes"]) == (row["type"], row["size"])
        assert (found["model"], found["filesystem"]) == ((row["model"] or "").strip(), row["fstype"] or "")
        assert found["read_only"] is row["ro"] and found["on_it"] == [one["kname"] for one in row.get("children", [])]


@pytest.mark.parametrize("case", of_kind("wipefs"))
def test_signatures_by_the_fields_of_wipefs(case: Path) -> None:
    """wipefs(8), --json: type and label of each."""
    assert expected(case) == {
        "signatures": [[one["type"], one["label"]] for one in json.loads(raw(case))["signatures"]]
    }


def test_every_kind_of_case_is_found_again_here() -> None:
    """Those that are a line long are compared by hand in `reviewed`."""
    by_hand = {"ipmi-dcmi", "smartctl-scan"}
    kinds = {about_of(case).kind for case in CASES}
    again = {"smartctl", "fio", "iperf3", "ipmi-sdr", "ipmi-sel", "node-tree", "redfish-bios", "nvme-health"} | {
        "lsblk",
        "wipefs",
    }
    assert kinds - by_hand == again
