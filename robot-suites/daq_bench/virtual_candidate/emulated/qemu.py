"""QEMU's command line, and the objects that it shares with hot-plugging. Pure: values in, words out.

The chain of a drive: file <- raw <- [blkdebug, which fails writes] <- throttle <- NVMe controller in a root port of its own."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.virtual_candidate.emulated.faults import DriveFaults
from daq_bench.virtual_candidate.hardware import Drive
from daq_bench.virtual_candidate.image import Image
from daq_bench.virtual_candidate.instance import Instance

PROGRAM = "qemu-system-x86_64"
NODES = 2
# NVMe base specification, SMART log, critical warning: temperature above its threshold.
TEMPERATURE_WARNING = 0x02
KEYS = "opt/daq-storage-bench"  # where the guest's init looks for its keys in the firmware configuration
# An old model boots with a fifth less CPU time than `max`: libraries choose their AVX routines by what the CPU offers, and those are slow
# under emulation. rdrand: the guest has random numbers from the start. The name is what /proc/cpuinfo shows.
PROCESSOR = "Westmere,+rdrand,model-id=QEMU emulated CPU"
# mitigations: emulation has no speculation to guard.
# net.ifnames=0: the interface is up before udev could rename it.
KERNEL_ARGUMENTS = "console=ttyS0 quiet root=/dev/vda mitigations=off random.trust_cpu=on net.ifnames=0 audit=0"

# Unix sockets, below the state directory, which is QEMU's working directory: a whole path may be longer than 107 bytes.
CONTROL_SOCKET = "control.qmp"
EVENTS_SOCKET = "events.qmp"
WIRE_SOCKET = "wire"

Json = dict[str, Any]


def version(text: str) -> tuple[int, int]:
    """Major and minor number in the output of `qemu-system-x86_64 --version`. Raises BenchError when there is none."""
    match = re.search(r"version (\d+)\.(\d+)", text)
    if match is None:
        raise BenchError(f"{PROGRAM} --version says {text.strip()!r}; QEMU 7.2 or newer is needed")
    return int(match[1]), int(match[2])


def command(
    instance: Instance, image: Image, overlay: Path, faults: DriveFaults, qemu_version: tuple[int, int]
) -> list[str]:
    """The command that starts the machine; its working directory must be the state directory."""
    return [
        PROGRAM,
        *("-name", f"virtual-candidate-{instance.name}"),
        *("-nodefaults", "-no-user-config", "-display", "none"),
        *("-machine", "q35", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", PROCESSOR),
        *_processors_and_memory(instance),
        *("-rtc", "base=utc"),
        *_identity(),
        *("-kernel", str(image.kernel), "-initrd", str(image.initramfs), "-append", KERNEL_ARGUMENTS),
        *_keys(instance),
        *_root_drive(overlay),
        *_network(instance),
        *_wire(instance),
        *("-device", "virtio-rng-pci,bus=pcie.0"),
        *_bmc(instance, qemu_version),
        *_drives(instance, faults),
        *("-qmp", f"unix:{CONTROL_SOCKET},server=on,wait=off", "-qmp", f"unix:{EVENTS_SOCKET},server=on,wait=off"),
        *("-serial", "file:console.log"),
    ]


def _processors_and_memory(instance: Instance) -> list[str]:
    """Two sockets of one CPU; a NUMA node each with half of the memory."""
    words = ["-smp", f"{NODES},sockets={NODES},cores=1,threads=1", "-m", f"{instance.memory_mib}M"]
    for node in range(NODES):
        words += ["-object", f"memory-backend-ram,id=memory{node},size={instance.memory_mib // NODES}M"]
        words += ["-numa", f"node,nodeid={node},cpus={node},memdev=memory{node}"]
    words += ["-numa", "dist,src=0,dst=1,val=21"]
    # A PCIe host bridge in each node; the first of them also serves devices that belong to no drive's node.
    for node in range(NODES):
        words += ["-device", f"pxb-pcie,id=host{node},bus=pcie.0,bus_nr={64 * (node + 1)},numa_node={node}"]
    return words


def _identity() -> list[str]:
    return [
        *("-smbios", "type=0,vendor=QEMU (emulated),version=1.0"),
        *("-smbios", "type=1,manufacturer=QEMU (emulated),product=Virtual candidate,serial=VCAND01"),
    ]


def _keys(instance: Instance) -> list[str]:
    words = []
    for name, file in (("authorized_keys", "id_ed25519.pub"), ("ssh_host_ed25519_key", "host_ed25519_key")):
        words += ["-fw_cfg", f"name={KEYS}/{name},file={_escaped(instance.ssh / file)}"]
    return words


def _root_drive(overlay: Path) -> list[str]:
    """no-flush: the guest's root is thrown away in the end and need not reach the disk; a killed QEMU leaves the host's cache whole."""
    node = {
        "driver": "qcow2",
        "node-name": "root",
        "cache": {"no-flush": True},
        "file": {"driver": "file", "filename": str(overlay), "cache": {"no-flush": True}},
    }
    return ["-blockdev", json.dumps(node), "-device", "virtio-blk-pci,bus=pcie.0,drive=root"]


def _network(instance: Instance) -> list[str]:
    """The guest reaches nobody; SSH reaches the guest. No boot ROM: the kernel is given."""
    return [
        *("-netdev", f"user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:{instance.ports.ssh}-:22"),
        *("-device", "virtio-net-pci,bus=pcie.0,netdev=net0,romfile="),
    ]


def _wire(instance: Instance) -> list[str]:
    """eth1, one end of a cable. A packet is a datagram: either end may be off, or come back; packets to an absent end are lost."""
    if instance.wired_to is None:
        return []
    ends = f"local.type=unix,local.path={WIRE_SOCKET},remote.type=unix,remote.path=../{instance.wired_to}/{WIRE_SOCKET}"
    own = hashlib.sha256(instance.name.encode()).hexdigest()
    address = ":".join(["52", "54", "00", own[0:2], own[2:4], own[4:6]])  # two machines must not have the same
    return [
        *("-netdev", f"dgram,id=net1,{ends}"),
        *("-device", f"virtio-net-pci,bus=pcie.0,netdev=net1,mac={address},romfile="),
    ]


def _bmc(instance: Instance, qemu_version: tuple[int, int]) -> list[str]:
    # A link that is there before the devices are complete makes QEMU 7.2 crash; `reconnect` makes it come up a moment later.
    again = "reconnect-ms=1000" if qemu_version >= (9, 2) else "reconnect=1"
    return [
        *("-chardev", f"socket,id=bmc-link,host=127.0.0.1,port={instance.ports.system},{again}"),
        *("-device", "ipmi-bmc-extern,id=bmc,chardev=bmc-link", "-device", "isa-ipmi-kcs,bmc=bmc"),
    ]


def _drives(instance: Instance, faults: DriveFaults) -> list[str]:
    words = []
    for slot, drive in enumerate(instance.drives, start=1):
        serial = drive.serial
        words += ["-object", json.dumps(throttle_group(drive, faults.throttled.get(serial, 0)))]
        words += ["-blockdev", json.dumps(file_node(drive, instance.drive_file(drive)))]
        if serial in faults.failing_writes:
            words += ["-blockdev", json.dumps(failing_node(drive))]
        words += ["-blockdev", json.dumps(throttle_node(drive, serial in faults.failing_writes))]
        port = {"driver": "pcie-root-port", "id": port_id(drive), "bus": f"host{drive.numa_node}"}
        words += ["-device", json.dumps({**port, "chassis": slot, "slot": slot})]
        if serial not in faults.pulled:
            words += ["-device", json.dumps(controller(drive, faults))]
    return words


def port_id(drive: Drive) -> str:
    return f"port-{drive.serial}"


def group_id(drive: Drive) -> str:
    return f"limits-{drive.serial}"


def controller_id(drive: Drive) -> str:
    return f"nvme-{drive.serial}"


def failing_id(drive: Drive) -> str:
    return f"failing-{drive.serial}"


def limits(bytes_per_s: int) -> Json:
    """QEMU's throttle limits for `bytes_per_s`; 0: without limit."""
    return {"bps-total": bytes_per_s}


def throttle_group(drive: Drive, bytes_per_s: int) -> Json:
    return {"qom-type": "throttle-group", "id": group_id(drive), "limits": limits(bytes_per_s)}


def file_node(drive: Drive, file: Path) -> Json:
    return {
        "driver": "raw",
        "node-name": f"raw-{drive.serial}",
        "file": {
            "driver": "file",
            "filename": str(file),
            "aio": "threads",
            "discard": "unmap",
            "cache": {"no-flush": True},
        },
        "discard": "unmap",
    }


def failing_node(drive: Drive) -> Json:
    """The block node through which every write ends with EIO; reads pass."""
    error = {"event": "none", "iotype": "write", "errno": 5, "immediately": True}
    return {
        "driver": "blkdebug",
        "node-name": failing_id(drive),
        "image": f"raw-{drive.serial}",
        "inject-error": [error],
        "discard": "unmap",
    }


def throttle_node(drive: Drive, fails_writes: bool) -> Json:
    return {
        "driver": "throttle",
        "node-name": f"throttle-{drive.serial}",
        "throttle-group": group_id(drive),
        "file": failing_id(drive) if fails_writes else f"raw-{drive.serial}",
        "discard": "unmap",
    }


def controller(drive: Drive, faults: DriveFaults) -> Json:
    """The NVMe controller in the drive's slot, with its one namespace. mdts=9: requests of up to 2 MiB."""
    return {
        "driver": "nvme",
        "id": controller_id(drive),
        "bus": port_id(drive),
        "serial": faults.swapped.get(drive.serial, drive.serial),
        "drive": f"throttle-{drive.serial}",
        "logical_block_size": drive.block_bytes,
        "physical_block_size": drive.block_bytes,
        "max_ioqpairs": 2,
        "mdts": 9,
        "smart_critical_warning": TEMPERATURE_WARNING if drive.serial in faults.throttled else 0,
    }


def _escaped(path: Path) -> str:
    """The path for QEMU's option syntax, where a comma ends a value and two of them stand for one."""
    return str(path).replace(",", ",,")
