"""Names of native NVMe multipath (`nvme_core.multipath=Y`): which drive a path or a controller belongs to.

The drive nvme10n1 hangs on a subsystem; each controller that leads to it has a hidden path (nvme10c65n1: the subsystem's number, then the
controller's identifier or number, by kernel). A controller's own name (nvme6) has another number than its drive's: systemd/systemd#31813.
"""

from __future__ import annotations

import re
from pathlib import Path

_PATH = re.compile(r"(nvme\d+)c\d+(n\d+)")
_NAMESPACE = re.compile(r"nvme\d+(c\d+)?n\d+")


def drive_of_path(name: str) -> str | None:
    """`nvme0c1n1`: `nvme0n1`; None for a name that is no path's."""
    match = _PATH.fullmatch(name)
    return match[1] + match[2] if match else None


def drives_of_controller(controller: Path) -> list[str]:
    """The drives (namespaces) that a controller's folder in sysfs lists, itself or as paths to them."""
    names = {path.name for path in controller.glob("nvme*n*") if _NAMESPACE.fullmatch(path.name)}
    return sorted({drive_of_path(name) or name for name in names})
