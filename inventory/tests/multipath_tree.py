"""A server's /sys with native NVMe multipath: two drives, one of them reached by two controllers, no number the same.

The drives nvme10n1 and nvme11n1, their subsystems, paths and controllers (nvme6 leads to nvme10n1, nvme10 to nvme11n1) stand so in the
listing of /sys/block of a public sosreport of a server with twelve drives. The second controller of nvme10n1, nvme33, is numbered as
linux-nvme/nvme-cli#1671 shows a drive of two ports (`nvme-subsys9: nvme9, nvme33`). Attributes: Linux' drivers/nvme/host, its
Documentation/ABI, openSUSE/libstorage-ng#923 and md-raid-utilities/ledmon#152."""

from __future__ import annotations

from pathlib import Path

PORTS = "sys/devices/pci0000:ae/0000:ae:00.0/0000:af:00.0"
# drive, serial, its paths: (path, controller, PCI function)
DRIVES = (
    ("nvme10n1", "S10", (("nvme10c65n1", "nvme6", "0000:b7:00.0"), ("nvme10c66n1", "nvme33", "0000:b8:00.0"))),
    ("nvme11n1", "S11", (("nvme11c65n1", "nvme10", "0000:bd:00.0"),)),
)
SIZE_SECTORS = 3_125_627_568


def write(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n", encoding="ascii")


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def unpack_multipath(root: Path) -> Path:
    """The tree below `root`/sys; returns `root`."""
    for at, (drive, serial, paths) in enumerate(DRIVES):
        subsystem = root / f"sys/devices/virtual/nvme-subsystem/nvme-subsys{drive[4:-2]}"
        head = subsystem / drive
        for name, text in (("serial", serial), ("model", "SAMSUNG MZPLL1T6HEHP-00003"), ("firmware_rev", "GPNA5B3Q")):
            write(subsystem / name, text)
        _disk(head, subsystem, f"eui.{at:032x}", hidden=0)
        write(head / "dev", f"259:{at}")
        link(root / "sys/block" / drive, head)
        for number, (path, controller, function) in enumerate(paths):
            pci = root / PORTS / function
            folder = pci / "nvme" / controller
            for name, text in (("numa_node", 1), ("current_link_speed", "8.0 GT/s PCIe"), ("current_link_width", 2),
                               ("max_link_speed", "8.0 GT/s PCIe"), ("max_link_width", 4),
                               (f"msi_irqs/{100 + 10 * at + number}", "msix")):  # fmt: skip
                write(pci / name, text)
            write(folder / "serial", serial)
            link(folder / "device", pci)
            _disk(folder / path, folder, f"eui.{at:032x}", hidden=1)
            hwmon = folder / f"hwmon{10 * at + number}"
            for name, text in (("name", "nvme"), ("temp1_label", "Composite"), ("temp1_input", 40_000 + 1000 * number)):
                write(hwmon / name, text)
            link(hwmon / "device", folder)
            link(root / "sys/class/hwmon" / hwmon.name, hwmon)
            link(root / "sys/class/nvme" / controller, folder)
            link(root / "sys/block" / path, folder / path)
            link(subsystem / controller, folder)
    return root


def _disk(folder: Path, device: Path, wwid: str, hidden: int) -> None:
    for name, text in (("hidden", hidden), ("wwid", wwid), ("size", SIZE_SECTORS), ("queue/scheduler", "[none]")):
        write(folder / name, text)
    link(folder / "device", device)


def diskstats(writes: dict[str, int]) -> str:
    """/proc/diskstats in which each path has written so many sectors and the drives nothing."""
    names = [name for drive, _, paths in DRIVES for name in (drive, *(one[0] for one in paths))]
    rows = [
        f"   0       0 {name} 0 0 0 0 {writes.get(name, 0)} 0 {writes.get(name, 0)} 9 0 9 9 0 0 0 0 0 0"
        for name in names
    ]
    return "\n".join(rows) + "\n"
