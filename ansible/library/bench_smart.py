#!/usr/bin/python
"""Read drives' health data with smartctl."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_smart
short_description: Read drives' health data with smartctl
description:
  - Runs C(smartctl -j -a) on each device and returns its data, in the form of C(facts/smart-before.json).
  - A device that gives none is returned as C(unsupported) with smartctl's reason. Reads only.
options:
  devices:
    description: Device files.
    type: list
    elements: str
    required: true
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Read the health data of one drive
  bench_smart:
    devices: [/dev/nvme0]
"""

RETURN = r"""
devices:
  description: One entry per device.
  returned: always
  type: list
  elements: dict
  sample:
    - device: /dev/nvme0n1
      status: read
      detail: ""
      data: {}
"""

import json
import math
import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule

# Bits of smartctl's exit status, as smartctl(8) words them. All but the lowest two come with data.
COMMAND_LINE_BAD = 1
DEVICE_NOT_OPENED = 2
MEANINGS = {
    4: "some command to the drive failed or a checksum is wrong, so that parts may be missing; this says nothing about its health",
    8: "a problem of the drive: it says itself that it is failing",
    16: "a problem of the drive: an attribute that foretells failure is beyond its threshold",
    32: "an attribute was beyond its threshold in the past",
    64: "its log of errors has entries, which may be old",
    128: "its log of self-tests has errors, which may be old",
}
# In the agent's words (agents/daq_bench/telemetry_agent/devices/smartctl_json.py), which ansible/tests holds these to.
VOLUME = "a volume of a RAID controller or bridge, whose disks are not seen through it, or a drive without SMART"


def is_volume(data: dict[str, Any], exit_status: int) -> bool:
    """Says whether a controller answered in place of a disk: whatever health it reports is nobody's."""
    if "nvme_smart_health_information_log" in data or "ata_smart_attributes" in data:
        return False
    if table_of(data, "smart_support").get("available") is False:
        return True
    return bool(exit_status & 4) and table_of(data, "temperature").get("current") == 0


def number_of(text: str) -> float | None:
    """Return a number of the answer; none for NaN and what is beyond all floats, which no document of a bundle may hold."""
    number = float(text)
    return number if math.isfinite(number) else None


def table_of(data: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an object of the answer; empty for another type."""
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def rows_of(data: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return a list of objects of the answer, without whatever else stands in it."""
    value = data.get(key)
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def entry(device: str, exit_status: int, output: str, error: str) -> dict[str, Any]:
    """Turn one run of smartctl into the record of its device."""
    begin = re.search(r"^[ \t]*\{", output, re.MULTILINE)
    before = (
        output[: begin.start()].strip().splitlines() if begin else []
    )  # it says what is wrong with its own drive database
    try:
        data = json.loads(output[begin.start() :] if begin else output, parse_constant=number_of, parse_float=number_of)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        text = (error or output).strip().splitlines()
        detail = f"smartctl printed no JSON (exit status {exit_status}): {text[0] if text else 'no output'}"
        return {"device": device, "status": "unsupported", "detail": detail, "data": None}
    if exit_status & (COMMAND_LINE_BAD | DEVICE_NOT_OPENED):
        messages = [str(one.get("string", "")) for one in rows_of(table_of(data, "smartctl"), "messages")]
        detail = "; ".join(messages) or f"smartctl could not read it (exit status {exit_status})"
        return {"device": device, "status": "unsupported", "detail": detail, "data": None}
    if is_volume(data, exit_status):
        return {"device": device, "status": "unsupported", "detail": VOLUME, "data": None}
    said = "; ".join(words for bit, words in MEANINGS.items() if exit_status & bit)
    detail = "; ".join([*before, *([f"smartctl's exit status {exit_status}: {said}"] if said else [])])
    return {"device": device, "status": "read", "detail": detail, "data": data}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"devices": {"type": "list", "elements": "str", "required": True}},
        supports_check_mode=True,
    )
    smartctl = module.get_bin_path("smartctl")
    devices = []
    for device in module.params["devices"]:
        if smartctl is None:
            detail = "smartctl is not installed (package smartmontools)"
            devices.append({"device": device, "status": "unsupported", "detail": detail, "data": None})
        else:
            devices.append(entry(device, *module.run_command([smartctl, "--json", "--all", device])))
    module.exit_json(changed=False, devices=devices)


if __name__ == "__main__":
    main()
