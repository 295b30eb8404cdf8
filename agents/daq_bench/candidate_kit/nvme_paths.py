"""Names of native NVMe multipath (`nvme_core.multipath=Y`): which drive a path or a controller belongs to.

The drive nvme10n1 hangs on a subsystem; each controller that leads to it has a hidden path (nvme10c65n1: the subsystem's number, then the
controller's identifier or number, by kernel). A controller's own name (nvme6) has another number than its drive's: systemd/systemd#31813.
"""

from __future__ import annotations

import re
from pathlib import Path

_PATH = re.compile(r"(nvme\d+)c\d+(n\d+)")
NAMESPACE = re.compile(r"nvme\d+(c\d+)?n\d+")
HEAD_COUNTS = 2  # [P] where both count, requests that are under way or were sent again differ by far less


def drive_of_path(name: str) -> str | None:
    """`nvme0c1n1`: `nvme0n1`; None for a name that is no path's."""
    match = _PATH.fullmatch(name)
    return match[1] + match[2] if match else None


def head_tells(head: int, paths: int) -> bool:
    """Does the drive itself count its requests, rather than its paths alone? By the bytes (or sectors) that both have counted.

    Kernels count at the head from 6.x on, and older ones of distributions at the paths alone (sysstat/sysstat#341), where the head may
    have a few requests (those that it held while it had no path)."""
    return paths <= HEAD_COUNTS * head


def drives_of_controller(controller: Path) -> list[str]:
    """The drives (namespaces) that a controller's folder in sysfs lists, itself or as paths to them."""
    names = {path.name for path in controller.glob("nvme*n*") if NAMESPACE.fullmatch(path.name)}
    return sorted({drive_of_path(name) or name for name in names})


def paths_of_drive(name: str, sys_block: Path) -> list[Path]:
    """The folders of a drive's hidden paths below /sys/block; a drive without native multipath has no path."""
    return sorted(path for path in sys_block.glob("nvme*c*n*") if drive_of_path(path.name) == name)
