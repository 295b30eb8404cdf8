"""A block device's counters as the kernel keeps them since boot. Reads /sys only.

`disk_counters.py NAME` prints {result: [...]} or {error}. The fields are those of /sys/block/NAME/stat (the kernel's
Documentation/block/stat.rst): sectors have 512 B whatever the device's block size. Where the kernel counts the requests of a
multipath NVMe drive at its paths alone (nvme0c0n1; the head's counters stay zero: sysstat/sysstat#341), the drive's are the
sums of its paths'."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

SECTOR_BYTES = 512
READ_IOS, READ_SECTORS, WRITE_IOS, WRITTEN_SECTORS = 0, 2, 4, 6
HEAD = re.compile(r"(nvme\d+)(n\d+)")


def counters(name: str, sys_block: Path = Path("/sys/block")) -> list[int]:
    """The device's fields. Raises OSError, ValueError."""
    found = _fields(sys_block / name)
    head = HEAD.fullmatch(name)
    if head is None or found[READ_IOS] or found[WRITE_IOS]:
        return found
    paths = sorted(sys_block.glob(f"{head[1]}c*{head[2]}"))
    return [sum(column) for column in zip(*(_fields(path) for path in paths))] if paths else found


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
