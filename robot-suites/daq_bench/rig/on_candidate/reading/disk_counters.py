"""A block device's counters as the kernel keeps them since boot. Reads /sys only.

`disk_counters.py NAME` prints {result: [...]} or {error}. The fields are those of /sys/block/NAME/stat (the kernel's
Documentation/block/stat.rst): sectors have 512 B whatever the device's block size. Where the kernel counts the requests of a
multipath NVMe drive at its paths alone (nvme0c0n1: sysstat/sysstat#341), the drive's are the sums of its paths'."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from daq_bench.candidate_kit.nvme_paths import head_tells, paths_of_drive

SECTOR_BYTES = 512
READ_SECTORS, WRITTEN_SECTORS = 2, 6


def counters(name: str, sys_block: Path = Path("/sys/block")) -> list[int]:
    """The device's fields. Raises OSError, ValueError."""
    found = _fields(sys_block / name)
    paths = [_fields(path) for path in paths_of_drive(name, sys_block)]
    total = [sum(column) for column in zip(*paths)] if paths else found
    return found if head_tells(_sectors(found), _sectors(total)) else total


def _sectors(fields: list[int]) -> int:
    return fields[READ_SECTORS] + fields[WRITTEN_SECTORS]


def _fields(device: Path) -> list[int]:
    fields = [int(text) for text in (device / "stat").read_text(encoding="ascii").split()]
    if len(fields) <= WRITTEN_SECTORS:
        raise ValueError(f"{device / 'stat'} has {len(fields)} fields, at least {WRITTEN_SECTORS + 1} are expected")
    return fields


def main(arguments: list[str]) -> dict[str, Any]:
    try:
        (name,) = arguments
        return {"result": counters(name)}
    except (OSError, ValueError) as error:
        return {"error": f"the device's counters cannot be read: {error}"}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
