#!/usr/bin/python
"""Read drives' health data with smartctl."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_smart
short_description: Read drives' health data with smartctl
description:
  - Runs C(smartctl -j -a -l devstat) on each device and returns its data, in the form of C(facts/smart-before.json).
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

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.bench_smartctl import (
    ARGUMENTS,
    COMMAND_LINE_OR_OPEN_FAILED,
    VOLUME,
    document_of,
    is_volume,
    rows,
    split,
    table,
)

# Bits of smartctl's exit status, as smartctl(8) words them.
MEANINGS = {
    4: "some command to the drive failed or a checksum is wrong, so that parts may be missing; this says nothing about its health",
    8: "a problem of the drive: it says itself that it is failing",
    16: "a problem of the drive: an attribute that foretells failure is beyond its threshold",
    32: "an attribute was beyond its threshold in the past",
    64: "its log of errors has entries, which may be old",
    128: "its log of self-tests has errors, which may be old",
}


def entry(device: str, exit_status: int, output: str, error: str) -> dict[str, Any]:
    """Turn one run of smartctl into the record of its device."""
    before = split(output)[1]  # it says what is wrong with its own drive database
    data = document_of(output)
    if data is None:
        text = (error or output).strip().splitlines()
        detail = f"smartctl printed no JSON (exit status {exit_status}): {text[0] if text else 'no output'}"
        return {"device": device, "status": "unsupported", "detail": detail, "data": None}
    if exit_status & COMMAND_LINE_OR_OPEN_FAILED:
        messages = [str(one.get("string", "")) for one in rows(table(data, "smartctl"), "messages")]
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
            devices.append(entry(device, *module.run_command([smartctl, *ARGUMENTS, device])))
    module.exit_json(changed=False, devices=devices)


if __name__ == "__main__":
    main()
