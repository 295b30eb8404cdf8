"""`daq-bench discover`: real drives (loop devices under an lsblk of our own), real BMCs, and servers that say or do the worst."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

sys.path.append(str(Path(__file__).resolve().parents[2] / "ansible" / "tests"))
from ansible.module_utils.bench_lsblk import Device
from ansible.module_utils.bench_storage.devices import Mount
from ansible.module_utils.bench_storage.machine import Machine
from loop_drives import LoopDrives, can_use_loop_devices

from daq_bench.bench_model.base.calling import BY_MAKE
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate import ssh
from daq_bench.rig.candidate.travelling import source_of
from daq_bench.rig.cli import main
from daq_bench.rig.discovery.discover import Request, candidate_name, checked, connection_variables, in_options
from daq_bench.rig.discovery.doctor import management
from daq_bench.rig.discovery.drives import judged
from daq_bench.rig.discovery.firmware import Firmware, look
from daq_bench.rig.discovery.proposal import Found, inventory_text
from daq_bench.rig.on_candidate.reading import discovery as discovery_program
from daq_bench.rig.on_candidate.reading.discovery import places
from daq_bench.virtual_candidate.bmc.redfish_service import PLANTED
from daq_bench.virtual_candidate.bmc.simulator import Bmc
from daq_bench.virtual_candidate.files import write_json

loops = pytest.mark.skipif(not can_use_loop_devices(), reason="needs root and loop devices")
PASSWORD_ENV = "BENCH_TEST_DISCOVER_PASSWORD"


def account(serial: str = "S1", **changes: Any) -> dict[str, Any]:
    """The account of one free NVMe drive."""
    description = {
        **{
            "name": "nvme0n1",
            "model": "X100",
            "serial": serial,
            "firmware": "E2",
            "wwn": f"eui.{serial}",
            "members": [],
        },
        **{"size_bytes": 10**12, "numa_node": 1, "rotational": False, "transport": "nvme", "raid_level": None},
        "pcie_link": "16.0 GT/s PCIe x4",
    }
    facts = {
        **{
            "name": "nvme0n1",
            "path": "/dev/nvme0n1",
            "type": "disk",
            "fault": "",
            "uses": [],
            "sets": [],
            "identity": [],
        },
        **{"partitions": [], "partition_tables": [], "signatures": [], "contents": "nothing", "lba_bytes": 512},
        **{
            "schedulers": ["none"],
            "pci": {"address": "0000:41:00.0"},
            "lba_choices": [512, 4096],
            "purges": ["discard"],
        },
        **{"can_discard": True, "abilities_fault": ""},
    }
    described = {key: changes.pop(key) for key in list(changes) if key in description}
    return {**facts, **changes, "description": {**description, **described}}


def found(*accounts: dict[str, Any], firmware: Firmware | None = None, **changes: Any) -> Found:
    host = {
        "hostname": "snb",
        "architecture": "x86_64",
        "cpu_model": "EPYC",
        "cpus": 32,
        "memory_bytes": 2**39,
        "numa_nodes": 2,
    }
    able = {
        **{"firmware": dict.fromkeys(("sys_vendor", "product_name", "bios_version")), "ipmi_device": "/dev/ipmi0"},
        **{
            "turbo_control": "boost",
            "governors": ["performance"],
            "idle_states": 3,
            "aio_max_nr": "65536",
            "root": True,
        },
        **{"hypervisor": False, "systemd": True, "python": "3.11.2", "missing_tools": []},
    }
    whole = Found("snb", {"ansible_host": "snb"}, host, able, [], judged(accounts), {}, firmware, {})
    return replace(whole, **changes)


def targets_of(text: str) -> dict[str, Any]:
    node = YAML(typ="safe").load(text)["all"]["children"]["candidates"]["hosts"]["snb"]["bench_candidate"]
    assert isinstance(node["targets"], dict)
    return dict(node["targets"])


def test_a_free_drive_is_proposed_and_never_with_consent() -> None:
    text = checked(inventory_text(found(account())), "snb")
    assert targets_of(text)["drive-1"]["storage"] == {"drives": ["S1"], "purge": "discard", "filesystem": "xfs"}
    assert "destroy: true" not in text
    assert "bios_reboot: allowed" not in text.replace("and bios_reboot: allowed, if", "")
    for words in ("WWN eui.S1", "1 TB (1000000000000 B)", "PCIe 0000:41:00.0, 16.0 GT/s PCIe x4, NUMA node 1"):
        assert words in text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"uses": ["nvme0n1 is mounted at /data: unmount it"]}, "is mounted at /data"),
        ({"uses": ["it is held by md0 (raid0): stop or remove that first"]}, "it is held by md0"),
        ({"sets": ["nvme0n1 belongs to a set of drives (zfs_member)"]}, "zfs_member"),
        ({"partitions": ["nvme0n1p1"]}, "is partitioned (partition table: nvme0n1p1)"),
        ({"partition_tables": ["gpt"]}, "is partitioned (gpt table: no partition)"),
        ({"signatures": ["xfs"], "contents": "xfs on nvme0n1"}, "holds xfs on nvme0n1"),
        ({"fault": "it did not answer within 60 s"}, "cannot be probed: it did not answer within 60 s"),
        ({"serial": None}, "reports no serial"),
        ({"serial": "A{{ lookup('pipe','id') }}"}, "characters that an inventory cannot hold"),
        ({"serial": "A\nall: {}"}, "characters that an inventory cannot hold"),
        ({"identity": ["is read-only"]}, "is read-only"),
    ],
)
def test_what_cannot_be_tested_is_told_with_its_reason(changes: dict[str, Any], reason: str) -> None:
    text = checked(inventory_text(found(account(**changes), account("S2", path="/dev/nvme1n1"))), "snb")
    assert [one["storage"]["drives"] for one in targets_of(text).values()] == [["S2"]]
    assert reason in next(line for line in text.splitlines() if "# - /dev/nvme0n1" in line)


def test_a_server_without_anything_free_still_gets_an_entry() -> None:
    text = checked(inventory_text(found(account(uses=["nvme0n1 is mounted at /: unmount it"]))), "snb")
    assert targets_of(text) == {"scratch": {"kind": "scratch-file", "directory": "/var/tmp"}}
    checked(inventory_text(found()), "snb")


def test_two_drives_of_one_serial_are_told_apart_by_their_wwn_or_not_at_all() -> None:
    twins = [account("S1", wwn=wwn, path=f"/dev/{wwn}") for wwn in ("eui.1", "eui.2")]
    text = checked(inventory_text(found(*twins)), "snb")
    assert [one["storage"]["drives"][0]["wwn"] for one in targets_of(text).values()] == ["eui.1", "eui.2"]
    for wwns in (("eui.1", "EUI.1"), (None, None)):
        text = checked(inventory_text(found(*[account("S1", wwn=wwn) for wwn in wwns])), "snb")
        assert list(targets_of(text)) == ["scratch"]
        assert "another device has the same serial" in text


@pytest.mark.parametrize(
    "model", ['a"}, destroy: true, {"', "{{ 7*7 }}", "two\nlines: [", "# '\u2028\u202e", "a\\", "\x1b[2J"]
)
def test_a_hostile_name_is_data(model: str, tmp_path: Path) -> None:
    accounts = [account(model=model, firmware=model), account("S2", model=model, fault=model)]
    firmware = Firmware(fault=model, fans_fault=model)
    firmware_says = {"sys_vendor": model, "product_name": model, "bios_version": model}
    said = found(*accounts, firmware=firmware)
    text = checked(inventory_text(replace(said, abilities={**said.abilities, "firmware": firmware_says})), "snb")
    assert all(one.isprintable() for one in text.splitlines())
    entry = YAML(typ="safe").load(text)["all"]["children"]["candidates"]["hosts"]
    assert list(entry) == ["snb"]
    assert "destroy" not in json.dumps(entry["snb"]["bench_candidate"]["targets"])
    drive = entry["snb"]["bench_candidate"]["identity"]["drives"][0]
    told = {"model": model, "firmware": model} if "model" in drive else {}
    assert drive == {"serial": "S1", "capacity": "1000000000000B", **told}


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("-oProxyCommand=touch x", "is no user@server"),
        ("root@-oProxyCommand=x", "is no user@server"),
        ("-l@snb", "is no user@server"),
        ("root@a b", "is no user@server"),
        ("root@{{ x }}", "is no user@server"),
    ],
)
def test_a_host_that_is_none_is_refused(host: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["discover", f"--host={host}"]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


def test_a_remedy_for_the_reader_of_discover_names_its_options() -> None:
    """The texts of the modules, which know the inventory alone, name keys that `discover` has as options."""
    modules = Path(__file__).parents[2] / "ansible" / "module_utils" / "bench_bmc"
    texts = "".join((modules / name).read_text(encoding="utf-8") for name in ("redfish.py", "errors.py"))
    keys = set(re.findall(r"(?<![\w.])bmc\.(?:redfish_\w+|address|user|insecure)", texts))
    assert not {key for key in keys if in_options(key) == key} and len(keys) > 5
    assert in_options("bmc.insecure: true goes") == "--bmc-insecure goes"
    assert in_options("try bmc.cipher_suite: 3, or bmc.vendor") == "try --bmc-cipher-suite 3, or --bmc-vendor"


def test_a_remedy_for_the_reader_of_make_names_what_make_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its variables, and for DISCOVER_OPTIONS the options themselves."""
    monkeypatch.setenv(BY_MAKE, "1")
    assert (
        in_options("bmc.address, bmc.cipher_suite: 3, bmc.insecure: true")
        == "BMC=, --bmc-cipher-suite 3, --bmc-insecure"
    )


def test_no_host_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["discover"]) == 2
    assert "no server is named. Name it with --host user@server, or --host local" in capsys.readouterr().err


def test_names_keys_and_files_are_checked_before_a_server_is_asked(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"name would be 'candidates'.*--name"):
        candidate_name(Request("root@candidates"))
    assert candidate_name(Request("root@fe80::1")) == "fe80--1"
    with pytest.raises(BenchError, match=r"--key .* is no file"):
        connection_variables(Request("root@snb", key=tmp_path / "none"))
    with pytest.raises(BenchError, match=r"^--ssh-args would be .* template"):
        connection_variables(Request("root@snb", ssh_arguments="{{ lookup('pipe', 'id') }}"))
    with pytest.raises(BenchError, match=r"^--ssh-args .* has a quotation mark without its end"):
        connection_variables(Request("root@snb", ssh_arguments="-o 'Port=22"))
    mine = tmp_path / "lab.yml"
    mine.write_text("mine", encoding="utf-8")
    assert main(["discover", "--host=local", f"--out={mine}"]) == 2
    assert mine.read_text(encoding="utf-8") == "mine"
    assert main(["discover", "--host=snb", "--bmc=admin:secret@10.0.0.1"]) == 2


def test_a_hung_and_an_absent_sshd_end_in_one_message(
    mute_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ssh, "CONNECT_S_MAX", 2.0)
    begin = time.monotonic()
    assert main(["discover", "--host=root@127.0.0.1", f"--port={mute_port}"]) == 2
    assert time.monotonic() - begin < 100
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    assert main(["discover", "--host=root@127.0.0.1", f"--port={free}"]) == 2
    said = capsys.readouterr()
    assert said.err.count("cannot be reached by ssh") == 2
    assert "Connection refused" in said.err
    assert said.out == ""


def bmc_of(bmc: Bmc, tmp_path: Path, **changes: Any) -> dict[str, Any]:
    file = tmp_path / "password"
    file.write_text(bmc.password, encoding="utf-8")
    file.chmod(0o600)
    ports = {"ipmi_port": bmc.ipmi_port, "redfish_port": bmc.redfish_port, "cipher_suite": 3}
    entry = {"address": "127.0.0.1", "user": "admin", "password_env": PASSWORD_ENV, "password_file": str(file)}
    return {**entry, **ports, "redfish_ca_file": str(bmc.ca_file), **changes}


def test_the_bmc_says_vendor_and_attributes_and_changes_nothing(start_bmc: Callable[..., Bmc], tmp_path: Path) -> None:
    bmc = start_bmc(vendor="dell")
    entry = bmc_of(bmc, tmp_path)
    seen = look(Layout(), "snb", entry)
    assert (seen.vendor, seen.fault, seen.fans_fault) == ("dell", "", "")
    assert (
        "would set SysProfile=PerfOptimized"
        in next(one for one in seen.settings if one.name == "power_profile").attributes
    )
    assert "SysProfile=Custom" in next(one for one in seen.settings if one.name == "cstates").obstacle
    text = checked(inventory_text(found(account(), firmware=seen, bmc=entry)), "snb")
    assert 'vendor: "dell"' in text
    assert bmc.password not in text
    assert [one for one in bmc.commands() if one.get("method") in ("PATCH", "POST")] == []
    tuning = YAML(typ="safe").load(text)["all"]["children"]["candidates"]["hosts"]["snb"]["bench_candidate"]["tuning"]
    assert not [key for key in tuning if key.startswith("bios_")]


def test_a_bmc_that_refuses_is_left_out_with_its_reason(start_bmc: Callable[..., Bmc], tmp_path: Path) -> None:
    entry = bmc_of(start_bmc(), tmp_path)
    Path(entry["password_file"]).write_text("wrong-password", encoding="utf-8")
    seen = look(Layout(), "snb", entry)
    assert "refuses this user and password" in seen.fault
    assert f"the password in {entry['password_file']}" in seen.fault
    assert "correct --bmc or the password" in in_options(seen.fault)
    text = checked(inventory_text(found(account(), firmware=seen, bmc=entry)), "snb")
    assert "Left out, since its Redfish service cannot be used" in text
    assert "bmc" not in YAML(typ="safe").load(text)["all"]["children"]["candidates"]["hosts"]["snb"]["bench_candidate"]
    assert "wrong-password" not in text


@pytest.mark.skipif(os.geteuid() != 0, reason="examining drives needs root")
def test_a_bmc_that_was_named_and_is_left_out_is_told_beside_the_entry(
    start_bmc: Callable[..., Bmc], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The entry goes into a file: the reason must not stand there alone, in a comment."""
    bmc, file = start_bmc(), tmp_path / "password"
    file.write_text("wrong-password", encoding="utf-8")
    file.chmod(0o600)
    options = [f"--bmc-password-file={file}", f"--bmc-ca-file={bmc.ca_file}", f"--bmc-redfish-port={bmc.redfish_port}"]
    asked = [
        "discover",
        "--host=local",
        "--bmc=admin@127.0.0.1",
        f"--bmc-ipmi-port={bmc.ipmi_port}",
        "--bmc-cipher-suite=3",
    ]
    assert main([*asked, *options, f"--out={tmp_path / 'lab.yml'}"]) == 0
    said = capsys.readouterr().err
    assert "--bmc admin@127.0.0.1 is left out: " in said and f"the password in {file}" in said


# A mixed rack: what a BMC answers in the place of one document, further options, and what is told; "": its block stands in the entry.
SYSTEM, BIOS = "/redfish/v1/Systems/1", "/redfish/v1/Systems/1/Bios"
RACK: dict[str, tuple[dict[str, tuple[int, Any]], list[str], str, str]] = {
    "another maker": ({SYSTEM: (200, {"Manufacturer": "Inspur"})}, [], "'Inspur' is no known vendor; set --bmc-vendor", ""),
    "its names": ({SYSTEM: (200, {"Manufacturer": "Inspur"})}, ["--bmc-vendor=redfish"], "", 'vendor: "redfish"'),
    "another system": ({}, ["--bmc-redfish-system=2"], "no system 2; it has: 1. Remedy: name one of them in --bmc-redfish-system", ""),
    "of a power shelf": ({"/redfish/v1/Systems": (200, {"Members": []})}, [], "it manages no system. Remedy: correct --bmc", ""),
    "no right": (
        {BIOS: (403, {"error": {"@Message.ExtendedInfo": [{"Message": "No privilege."}]}})}, [],
        "it refuses this user and password (No privilege). Remedy: correct --bmc or the password in", "",
    ),
    "it starts": (
        {"/redfish/v1/Systems": (503, {"error": {"message": "The service is starting."}})}, [],
        "it failed by itself: The service is starting. Remedy: wait", "",
    ),
    "no licence": ({SYSTEM: (200, {"Bios": None})}, [], "", "cannot be had: the BMC shows no BIOS attributes"),
    "never started": ({BIOS: (200, {"Attributes": {}})}, [], "", "cannot be had: the BMC shows no BIOS attributes"),
    "no settings": (
        {BIOS: (200, {"@Redfish.Settings": None}), f"{BIOS}/SD": (404, {})}, [], "",
        'bios_cstates: "off": cannot be had: the BMC offers no resource for pending BIOS settings',
    ),
}  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="examining drives needs root")
def test_what_a_mixed_rack_s_bmcs_say_names_what_can_be_typed(
    start_bmc: Callable[..., Bmc], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option of the command, and a BMC that can be used for its fans and sensors stays in the entry."""
    bmc = start_bmc()
    entry = bmc_of(bmc, tmp_path)
    words = ["discover", "--host=local", "--bmc=admin@127.0.0.1", f"--bmc-password-file={entry['password_file']}"]
    words += [f"--bmc-ca-file={bmc.ca_file}", f"--bmc-redfish-port={bmc.redfish_port}", "--bmc-cipher-suite=3"]
    words.append(f"--bmc-ipmi-port={bmc.ipmi_port}")
    for case, (answers, more, told, entered) in RACK.items():
        planted = {}
        for path, (status, document) in answers.items():
            whole = bmc.redfish(path)[1] if status == 200 else {}
            planted[f"GET {path}"] = {"status": status, "document": {**whole, **document}}
        write_json(bmc.directory / PLANTED, planted)
        assert main([*words, *more]) == 0, case
        said = capsys.readouterr()
        (bmc.directory / PLANTED).unlink()
        assert (told in said.err and "bmc." not in said.err) if told else said.err == "", (case, said.err)
        assert entered in said.out and ("# Left out, since" in said.out) is bool(told), (case, said.out)
        assert told or "              fan_mode: full" in said.out or "redfish" in entered, (case, said.out)


def test_a_bmc_that_talks_nonsense_or_has_no_password_is_said(
    mute_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"address": "127.0.0.1", "user": "admin", "password_env": PASSWORD_ENV, "insecure": True, "ipmi_port": 1}
    with pytest.raises(BenchError, match=f"{PASSWORD_ENV}.*is not set.*--bmc-password-file"):
        look(Layout(), "snb", entry)
    monkeypatch.setenv(PASSWORD_ENV, "hunter2-secret")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def chatter() -> None:
            while True:
                try:
                    one, _ = server.accept()
                except OSError:
                    return
                one.sendall(b"220 hunter2-secret \xff\x00 garbage\r\n")
                one.close()

        threading.Thread(target=chatter, daemon=True).start()
        seen = look(Layout(), "snb", {**entry, "redfish_port": server.getsockname()[1]})
        server.shutdown(socket.SHUT_RDWR)
    assert seen.fault
    assert "hunter2" not in seen.fault + seen.fans_fault


def test_doctor_asks_the_bmc_for_all_that_a_run_needs_of_it(start_bmc: Callable[..., Bmc], tmp_path: Path) -> None:
    declared = bmc_of(start_bmc(vendor="dell"), tmp_path)
    tuned = {"bmc": declared, "tuning": {"fan_mode": "full"}}
    redfish, fans = management(Layout(), "snb", tuned)
    assert (redfish.found, fans.found) == ("answers; made by Dell Inc. (emulated)", "can be set")
    assert redfish.ok and fans.ok
    other = {key: value for key, value in declared.items() if key != "redfish_ca_file"}
    redfish, fans = management(Layout(), "snb", {**tuned, "bmc": other})
    assert "its certificate is not trusted" in redfish.found and fans.ok
    assert redfish.remedy.startswith("name the file with the CA's certificate")
    redfish, _ = management(Layout(), "snb", {**tuned, "bmc": {**declared, "redfish_ca_file": "/etc/hostname"}})
    assert "no certificate stands in /etc/hostname" in redfish.found and "redfish_ca_file" in redfish.remedy
    Path(declared["password_file"]).write_text("wrong-password", encoding="utf-8")
    redfish, fans = management(Layout(), "snb", tuned)
    assert "refuses this user and password" in redfish.found and redfish.remedy
    assert not fans.ok and "wrong-password" not in f"{redfish}{fans}"
    redfish, fans = management(Layout(), "snb", {"bmc": declared, "tuning": {"fan_mode": "keep"}})
    assert fans.ok, "what no tuning asks for does not end a run"
    Path(declared["password_file"]).chmod(0o644)
    (found,) = management(Layout(), "snb", tuned)
    assert found.subject == "BMC 127.0.0.1" and found.remedy
    assert list(management(Layout(), "snb", {"bmc": {"vendor": "dell"}})) == []  # reached in band alone


def first_bytes(paths: dict[str, str]) -> list[bytes]:
    """The first MiB of each drive; a mounted one changes by itself."""
    found = []
    for name, path in paths.items():
        with Path(path).open("rb") as device:
            found += [device.read(1 << 20)] if name != "MOUNTED" else []
    return found


def discovery(environment: dict[str, str]) -> dict[str, Any]:
    """Returns the travelling program's answer on this machine."""
    argv = [sys.executable, "-I", "-S", "-c", source_of("discovery"), "no-such-tool"]
    done = subprocess.run(
        argv, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_machine_without_lsblk_says_so(tmp_path: Path) -> None:
    (tmp_path / "lsblk").write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    (tmp_path / "lsblk").chmod(0o755)
    assert "lsblk" in discovery({"PATH": f"{tmp_path}:{os.environ['PATH']}"})["error"]


@loops
def test_real_devices_are_free_mounted_partitioned_held_or_signed(disk: Path) -> None:
    with LoopDrives(disk) as drives:
        names = ("FREE", "MOUNTED", "TABLE", "SIGNED", "MEMBER", "OPEN")
        paths = {name: drives.add(name) for name in names}
        for name in ("MOUNTED", "SIGNED"):
            subprocess.run(["mkfs.ext4", "-q", paths[name]], check=True)
        (disk / "mnt").mkdir()
        subprocess.run(["mount", paths["MOUNTED"], str(disk / "mnt")], check=True)
        with Path(paths["TABLE"]).open("r+b") as device:
            device.seek(446)  # the boot record's first entry: Linux, from sector 2048 on
            device.write(struct.pack("<B3sB3sII", 0, b"", 0x83, b"", 2048, 4096) + bytes(48) + b"\x55\xaa")
        if shutil.which("pvcreate"):
            subprocess.run(["pvcreate", "-q", paths["MEMBER"]], check=True, capture_output=True)
        before = first_bytes(paths)
        claim = os.open(paths["OPEN"], os.O_RDWR | os.O_EXCL)
        try:
            seen = discovery(drives.environment())["result"]
        finally:
            os.close(claim)
        ours = [one for one in seen["drives"] if one["path"] in paths.values()]
        reasons = {drive.serial: "; ".join(drive.reasons) for drive in judged(ours)}
        assert first_bytes(paths) == before
    assert reasons["FREE"] == ""
    assert "is mounted at" in reasons["MOUNTED"]
    assert "is partitioned (dos" in reasons["TABLE"]
    assert "holds ext4" in reasons["SIGNED"]
    assert "refuses to open it exclusively" in reasons["OPEN"]
    if shutil.which("pvcreate"):
        assert "LVM2_member" in reasons["MEMBER"]
    assert seen["abilities"]["missing_tools"] == ["no-such-tool"]


def test_a_drive_that_hangs_costs_its_own_account_alone() -> None:
    code = (
        source_of("discovery").replace('if __name__ == "__main__"', "if False")
        + "\nimport time\nbegin = time.monotonic()\n"
        + "hung = bounded(lambda: time.sleep(200), 0.5)\nfine = bounded(lambda: {'fault': ''}, 5)\n"
        + "print(json.dumps([hung, fine, time.monotonic() - begin]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=150, check=True
    )
    hung, fine, took_s = json.loads(done.stdout)
    assert hung == {"fault": "it did not answer within 0 s"}
    assert fine == {"fault": ""}
    assert took_s < 100


def test_a_mount_that_another_one_hides_costs_no_other_place(tmp_path: Path) -> None:
    """The kernel lists both; what lies beneath is not there."""

    class Mounted(Machine):
        def mounts(self) -> list[Mount]:
            """Two of one drive: one is hidden."""
            return [Mount(number, str(folder), "ext4", ("rw",)) for number, folder in drives.items()]

    drives = {"8:1": tmp_path / "hidden", "8:2": tmp_path}
    roots = [Device(f"x{number}", f"/dev/x{number}", number, "disk", 10**9) for number in drives]
    assert [one["directory"] for one in places(Mounted(lambda line: None), roots)] == [str(tmp_path)]


def test_a_mount_or_a_drive_that_fails_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file system with errors, or one drive that was just pulled, kept back the account of the whole server."""
    failing, sound = tmp_path / "failing", tmp_path / "sound"

    class Mounted(Machine):
        def mounts(self) -> list[Mount]:
            """Two, of two drives."""
            return [Mount("8:1", str(failing), "xfs", ("rw",)), Mount("8:2", str(sound), "xfs", ("rw",))]

    def memory(path: Path) -> str:
        if path in (failing, Path("/dev/null")):
            raise OSError(errno.EIO, "Input/output error", str(path))
        return "loop0 < tmpfs" if path == Path("/dev/zero") else ""

    failing.mkdir()
    sound.mkdir()
    monkeypatch.setattr(discovery_program, "memory_beneath", memory)
    roots = [Device(name, f"/dev/{name}", number, "disk", 10**9) for name, number in (("null", "8:1"), ("zero", "8:2"))]
    machine = Mounted(lambda line: None)
    assert [one["directory"] for one in places(machine, roots)] == [str(sound)]
    first, second = discovery_program.drives(machine, roots, [], 1.0)
    assert first["fault"].startswith("it cannot be looked at: [Errno 5] Input/output error")
    assert second["fault"] == "it does not lead to a drive (loop0 < tmpfs)"


@pytest.mark.skipif(os.geteuid() != 0, reason="examining drives needs root")
def test_this_machines_entry_is_taken_by_validate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine.yml"
    assert main(["discover", "--host=local", f"--out={mine}"]) == 0
    assert load_candidate(mine, "local").connection == "local"
    _, *following = shlex.split(capsys.readouterr().err.partition("next: ")[2])
    assert main(following) == 0, "the command that it names is to the letter"
    said = capsys.readouterr().out
    assert "local: erase nothing\nvalid    1 candidate, " in said and "; this run erases nothing\n" in said
