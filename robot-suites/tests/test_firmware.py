"""The candidate's own account of its firmware: real on this machine, and with tools that answer as told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from multipath_tree import unpack_multipath

from daq_bench.bench_model.evidence.soundness import fault_of
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.on_candidate.reading import firmware

# The form of `ipmitool mc info` (ipmitool 1.8, lib/ipmi_mc.c), composed.
MC_INFO = """Device ID                 : 32
Firmware Revision         : 2.07
IPMI Version              : 2.0
Aux Firmware Rev Info     :
    0x01
    0x00
    0x1f
    0x05
"""


def machine(root: Path) -> Path:
    for file, text in {
        "sys/block/nvme0n1/device/serial": "S1  \n", "sys/block/nvme0n1/device/firmware_rev": "1.0\n",
        "sys/block/nvme0n2/device/serial": "S1  \n", "sys/block/nvme0n2/device/firmware_rev": "1.0\n",
        "sys/block/sda/device/rev": "XC31\n", "sys/block/loop0/size": "1\n",
        "sys/class/dmi/id/bios_vendor": "AMI\n", "sys/class/dmi/id/bios_version": "2.1\n", "dev/ipmi0": "",
        "sys/class/net/eth0/device/vendor": "0x15b3\n", "sys/class/net/lo/mtu": "65536\n",
    }.items():  # fmt: skip
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    return root


def tools(folder: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in ("smartctl", "ethtool", "ipmitool"):
        (folder / name).write_text("#!/bin/sh\n" + scripts.get(name, "exit 1\n"))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(firmware, "BMC_PAUSE_S", 0.0)


def told(root: Path, with_bmc: bool = True) -> dict[tuple[str, str], tuple[str | None, str]]:
    return {(one["kind"], one["name"]): (one["version"], one["source"]) for one in firmware.firmware(with_bmc, root)}


def test_every_part_tells_its_firmware(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mc").write_text(MC_INFO)
    smart = json.dumps({"serial_number": "S1", "firmware_version": "1.1"})
    tools(tmp_path / "bin", monkeypatch, ipmitool=f"cat {tmp_path}/mc\n",
          smartctl=f"""case $3 in /dev/nvme*) echo '{smart}';; *) exit 2;; esac\n""",
          ethtool="echo 'driver: mlx5_core'; echo 'firmware-version: 22.31.1014 (MT_1)'\n")  # fmt: skip
    assert told(machine(tmp_path / "root")) == {
        ("drive", "S1"): ("1.1", "smartctl"),  # as it is now, and not as the kernel found it
        ("drive", "sda"): ("XC31", "sysfs"),
        ("bios", "system"): ("AMI 2.1", "dmi"),
        ("nic", "device port 0"): ("22.31.1014 (MT_1)", "ethtool"),
        ("bmc", "system"): ("2.07 0x01 0x00 0x1f 0x05", "ipmitool"),
    }
    assert ("bmc", "system") not in told(tmp_path / "root", with_bmc=False)


@pytest.mark.parametrize(
    "key", ["scsi_revision", "revision"]
)  # smartctl 7.4 (AnalogJ/scrutiny#717), 7.1 (smartmontools/smartmontools#96)
def test_a_sas_drive_tells_its_revision_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """The kernel keeps the one from before an update; the serial keeps the drive apart where its name changes."""
    smart = json.dumps({"device": {"protocol": "SCSI"}, "serial_number": "ZVTA1", key: "E005"})
    tools(tmp_path / "bin", monkeypatch, smartctl=f"case $3 in /dev/sda) echo '{smart}';; *) exit 2;; esac\n")
    assert told(machine(tmp_path / "root"))["drive", "ZVTA1"] == ("E005", "smartctl")


def test_a_drive_of_two_paths_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools(tmp_path / "bin", monkeypatch, smartctl="exit 2\n")
    found = told(unpack_multipath(tmp_path / "root"), with_bmc=False)
    assert found == {("drive", "S10"): ("GPNA5B3Q", "sysfs"), ("drive", "S11"): ("GPNA5B3Q", "sysfs")}


@pytest.mark.parametrize("said", ["echo", "echo null", "echo '[]'", "echo NaN", "exit 3",
                                  """echo '{"serial_number": 5, "firmware_version": null}'""", "printf '\\377\\000{'"])  # fmt: skip
def test_a_tool_that_says_nothing_sensible_leaves_no_version(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools(tmp_path / "bin", monkeypatch, smartctl=f"{said}\n", ethtool=f"{said}\n", ipmitool=f"{said}\n")
    found = told(machine(tmp_path / "root"))
    assert found["drive", "S1"] == ("1.0", "sysfs")
    assert found["nic", "device port 0"][0] is None and found["bmc", "system"][0] is None


def test_this_machine_answers() -> None:
    parts = LocalMachine().call("firmware")
    document = {"schema_version": 1, "readings": [{"when": "before the load", "parts": parts}]}
    assert fault_of("facts/firmware.json", document) == ""
    assert not any(one["kind"] == "bmc" for one in parts)
