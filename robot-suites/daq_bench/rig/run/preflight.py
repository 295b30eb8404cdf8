"""Refuses a run that cannot succeed, before anything is provisioned or written: space, O_DIRECT, memory."""

from __future__ import annotations

import os
from decimal import ROUND_DOWN, Context, Decimal
from pathlib import Path

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.evidence.admissibility import CLOCK_DIFFERENCE_S_MAX
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.raid_vs_3dxp.facts import DATA_DRIVES
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.host import Survey, Target, check_identity, differences, where_it_is_named
from daq_bench.rig.candidate.load_target import RawDevice
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.registry import workloads_of
from daq_bench.rig.workloads.shared.base import RESERVE_BYTES, Workload
from daq_bench.rig.workloads.shared.fio_job import MISREAD
from daq_bench.rig.workloads.shared.plan import Need

SHARE_MIN = 1e-3  # [P] of the record; less is no load
MEMORY_FILESYSTEMS = {"tmpfs", "ramfs", "overlay"}
INODE_BYTES, EXT4_RESERVED_SHARE = 256, 0.05  # mke2fs.conf
EXT4_INODE_RATIOS = (
    (2**42, 16384),
    (2**44, 32768),
)  # mke2fs.conf: bytes to an inode below 4 TiB, and below 16 TiB ("big")
EXT4_INODE_RATIO_HUGE = 65536
# XFS with reflink and finobt, its defaults: one block of the reference counts' tree to 168 blocks, one of the free inodes' to 1008
# (half-full leaves of 4 KiB; fs/xfs/libxfs: xfs_refcountbt_calc_size, xfs_inobt_max_size).
XFS_KEPT_SHARE = 1 / 168 + 1 / 1008
# With rmapbt, a default since xfsprogs 6.5.0, one block to 84 more, and a node to 45 of these (xfs_rmapbt_calc_reserves).
XFS_RMAP_KEPT_SHARE = 1 / 84 * (1 + 1 / 45)
XFS_DEFAULTS = (
    'PATH=$PATH:/usr/sbin:/sbin; file=$(mktemp) && mkfs.xfs -N -d file,name="$file",size=1g; rm -f "$file"'  # a dry run
)


def space_needs(scenario: Scenario) -> list[Need]:
    """Returns each workload's need on the target; the workloads follow one another and each removes its file."""
    return [workload.need(scenario) for workload in workloads_of(scenario)]


def check_space(scenario: Scenario, directory: Path, free: int, reserve: int = RESERVE_BYTES) -> None:
    """Raises RefusedError, with the arithmetic, when the `free` B of the target cannot hold the largest workload.

    `reserve`: what is left free; nothing on a raw drive."""
    need = max(space_needs(scenario), key=lambda need: need.size_bytes, default=Need(0, "no workload"))
    if need.size_bytes + reserve <= free:
        return
    share = max(0, free - reserve) / need.size_bytes
    remedy = f"smaller sizes in {scenario.file}"
    if scenario.duration_s and need.size_bytes == scenario.demand.record_bytes:
        remedy = (
            f"ask for at most {typed('--duration', _rounded_down(scenario.duration_s * share))} or "
            f"{typed('--scale', _rounded_down(scenario.scale * share))}, which makes the run a rehearsal"
            if share >= SHARE_MIN
            else f"make room on this one: hardly anything of {decimal_label(need.size_bytes)} fits"
        )
    room = f"plus {decimal_label(reserve)} kept free, against {decimal_label(free)} ({free} B) free"
    if not reserve:
        room = f"against a drive of {decimal_label(free)} ({free} B)"
    raise RefusedError(
        f"target {directory} is too small: {need.arithmetic}, {room}. Nothing was written. Use a larger target, or {remedy}"
    )


def _rounded_down(value: float) -> str:
    """Three digits, never more than the value: what is proposed has to fit."""
    return f"{Decimal(value).normalize(Context(prec=3, rounding=ROUND_DOWN)):f}"


def reserve_of(candidate: Candidate, free: int) -> int:
    """Returns the room to leave free on a file system that others use too; at most a tenth of drives that are the bench's own."""
    return min(RESERVE_BYTES, free // 10) if candidate.target.storage is not None else RESERVE_BYTES


def xfs_maps_back(machine: Machine) -> bool:
    """Whether the candidate's mkfs.xfs makes file systems that map blocks back to their owners (rmapbt), by its own dry run; False where
    the tool is yet to be installed."""
    return "rmapbt=1" in machine.run(["sh", "-c", XFS_DEFAULTS], timeout_s=30).stdout


def room_once_built(filesystem: str | None, capacity_bytes: int, maps_back: bool = False) -> int:
    """Returns what a file system that is made with the defaults of its tool leaves of drives, at most; all for one that we do not know.

    Measured with mke2fs 1.47.0 from 0.1 to 17.5 TB and with mkfs.xfs 6.1.0 from 0.02 to 7.68 TB, it is at most 0.5 % above what they
    leave. `maps_back`: XFS has rmapbt, which keeps 1.2 % more; where nobody knows that yet, the built target is looked at again."""
    if filesystem == "ext4":
        ratio = next((ratio for below, ratio in EXT4_INODE_RATIOS if capacity_bytes < below), EXT4_INODE_RATIO_HUGE)
        journal = min(2**30, capacity_bytes // 256)
        return int(capacity_bytes * (1 - EXT4_RESERVED_SHARE - INODE_BYTES / ratio)) - journal
    if filesystem == "xfs":
        log = min(2**31, capacity_bytes // 2048)
        kept = XFS_KEPT_SHARE + (XFS_RMAP_KEPT_SHARE if maps_back else 0)
        return int(capacity_bytes * (1 - kept)) - log
    return capacity_bytes


def check_built_space(
    scenario: Scenario, candidate: Candidate, directory: Path, capacity_bytes: int, maps_back: bool = False
) -> None:
    """Raises RefusedError when the file system that provisioning is to make on `capacity_bytes` cannot hold the largest workload."""
    chosen = (candidate.target.storage or {}).get("filesystem", "xfs")

    def check(filesystem: str) -> None:
        room = room_once_built(filesystem, capacity_bytes, maps_back)
        check_space(scenario, directory, room, reserve_of(candidate, room))

    try:
        check(chosen)
    except RefusedError as refused:
        kept = capacity_bytes - room_once_built(chosen, capacity_bytes, maps_back)
        text = f"{refused}. {chosen} keeps {decimal_label(kept)} of {decimal_label(capacity_bytes)} for itself"
        try:
            check("xfs")
        except RefusedError:
            raise RefusedError(text) from None
        raise RefusedError(f"{text}. Or choose storage.filesystem: xfs, on which it fits") from None


def check_capacity(
    scenario: Scenario, candidate: Candidate, found: Survey, directory: Path, maps_back: bool = False
) -> None:
    """Checks a target that provisioning is yet to build: raises RefusedError while nothing on its drives has been erased.

    Drives that are not there are left to the identity check and the storage role's guard."""
    storage = candidate.target.storage or {}
    sizes = [one.description.size_bytes or 0 for drive in candidate.target.drives for one in found.named(*drive)]
    if not sizes:
        return
    level = storage.get("raid", {}).get("level")
    drives = DATA_DRIVES[level](len(candidate.target.serials)) if level is not None else 1
    check_built_space(scenario, candidate, directory, int(min(sizes) * drives), maps_back)


def check_drives(candidate: Candidate, found: Survey) -> None:
    """Raises RefusedError when a drive of any of the candidate's targets is not there, before the machine is tuned or rebooted."""
    there = {name for one in found.devices for name in (one.description.serial, one.description.wwn) if name}
    for target in candidate.targets:
        missing = [serial for serial in target.serials if serial not in there]
        if missing:
            name = f"targets.{target.name}" if target.name else "target"
            key = "storage.drives" if target.storage else "drive_serial"
            raise RefusedError(
                f"{name}: {candidate.name} has no drive {', '.join(missing)}. Nothing was changed, nothing was erased. Put it in, "
                f"correct {name}.{key} in the inventory, or leave the target out"
            )


def check_direct_io(directory: Path, filesystem: str | None, machine: Machine, daqwriter: Path) -> None:
    """Raises RefusedError when the target's file system keeps data in memory or does no direct I/O.

    daqwriter itself is asked, by a dry run: some file systems accept O_DIRECT and then write through the page cache."""
    if filesystem in MEMORY_FILESYSTEMS:
        raise RefusedError(
            f"target {directory} is on {filesystem}, which does not lead to a drive: its speed says nothing about one. "
            f"Set {where_it_is_named()} to a folder on ext4 or xfs"
        )
    least = ["--duration=0.01", "--links=1", "--ring-size=1MiB", "--block-size=4KiB"]
    target = directory / f".dry-run-{os.getpid()}"
    asked = machine.run([daqwriter, "minidaq", "--dry-run", f"--target={target}", *least], timeout_s=30)
    if asked.returncode != 0:
        raise RefusedError(
            f"target {directory} on {filesystem} cannot hold a record: {asked.stderr.strip()}. "
            f"Set {where_it_is_named()} to a folder on ext4 or xfs"
        )


def check_path(directory: Path) -> None:
    """Raises RefusedError for a folder in whose path fio would read something else."""
    if wrong := MISREAD.search(str(directory)):
        raise RefusedError(
            f"target directory {str(directory)!r} has {wrong[0]!r} in its path: fio would take it for another file. Nothing was written. "
            "Choose a folder whose path has no ; # $ or control character"
        )


def check_leads_to_drive(directory: Path, memory: str) -> None:
    """Raises RefusedError for a target that lies in RAM, or whose layers end out of sight, whatever is layered above."""
    if memory:
        raise RefusedError(
            f"target {directory} does not lead to a drive ({memory}): its speed says nothing about one. Nothing was written. "
            f"Set {where_it_is_named()} to a folder whose file system is on drives"
        )


def check_candidate(candidate: Candidate, found: Survey, inventory: Path) -> None:
    """Raises RefusedError when this is not the machine that the inventory declares: it is neither tuned nor written to."""
    # A target that provisioning builds is not there yet; the storage role's own guard looks at its drives.
    wrong = differences(check_identity(candidate, found, directory_is_there=candidate.target.storage is None))
    if wrong:
        raise RefusedError(
            f"this machine is not the candidate {candidate.name!r} that {inventory} declares: {wrong}. Nothing was changed. "
            "Run on the right machine, or correct bench_candidate.identity"
        )


def check_target(candidate: Candidate, found: Survey, directory: Path) -> Target:
    """The target's facts. Raises RefusedError when its folder is not there."""
    if found.target is None and candidate.target.is_raw:
        raise RefusedError(f"target {directory} is no drive of {candidate.name} any more. Nothing was written")
    if found.target is None:
        raise RefusedError(
            f"target directory {directory} is not there on {candidate.name}. Mount the drives under test there, correct "
            f"{where_it_is_named()}, or let provisioning build it (target.storage, docs/own-hardware.md)"
        )
    return found.target


def check_clock(clock_s: float, before_s: float, after_s: float) -> float:
    """The candidate's clock, which was read between `before_s` and `after_s` of ours, minus ours, s.

    Raises RefusedError when telemetry and events could not be brought together."""
    difference = clock_s - (before_s + after_s) / 2
    uncertainty = (after_s - before_s) / 2
    if abs(difference) > CLOCK_DIFFERENCE_S_MAX + uncertainty:
        raise RefusedError(
            f"the candidate's clock is {difference:+.1f} s off ours: its telemetry would not lie beside the bench's events. "
            "Let both machines follow the same time server (chrony, systemd-timesyncd)"
        )
    return difference


def check_memory(candidate: Candidate, scenario: Scenario, memory_bytes: int) -> None:
    """Raises RefusedError when a workload's buffers exceed the declared transient buffer or half of the RAM."""
    check_buffers(scenario, min(candidate.transient_buffer_bytes, memory_bytes // 2))


def check_buffers(scenario: Scenario, limit: int) -> None:
    """Raises RefusedError when a workload's buffers exceed `limit` B."""
    for workload in workloads_of(scenario):
        wanted = workload.memory(scenario)
        if wanted.size_bytes > limit:
            raise RefusedError(
                f"{scenario.file}: workloads.{workload.name}.{wanted.arithmetic}, but "
                f"the candidate has {decimal_label(limit)} for them (the lesser of its declared transient_buffer and half of its RAM). "
                "Make them smaller, or declare more in inventory/lab.yml"
            )


def raw_path(candidate: Candidate, found: Survey) -> Path:
    """Device node of the raw drive that the inventory names. Raises RefusedError when it is not there."""
    serial = candidate.target.drive_serial or ""
    path = found.path_of(serial)
    if path is None:
        drives = [node for node in found.devices if node.type == "disk" and node.description.serial]
        there = ", ".join(f"{node.path} {node.description.serial}" for node in drives)
        raise RefusedError(
            f"candidate {candidate.name} has no drive with the serial {serial}; it has: {there or 'none with a serial'}. "
            "Nothing was written. Correct drive_serial in the inventory"
        )
    return path


def check_raw(candidate: Candidate, machine: Machine, path: Path, daqwriter: Path, is_there: bool) -> RawDevice:
    """The raw drive, which the guard has just let pass. Raises RefusedError with its objection. `is_there`: daqwriter is a file of
    the candidate; ours is lent to it otherwise."""
    target = candidate.target
    drive = RawDevice(machine, target.drive_serial or "", path, target.destroy, daqwriter)
    try:
        drive.size_bytes(machine.run if is_there else machine.run_from_here)
    except BenchError as error:
        name = f"target {target.name}: " if target.name else ""
        raise RefusedError(f"{name}{error}. Nothing was written") from None
    return drive


def check_programs(scenario: Scenario, layout: Layout) -> None:
    """Raises RefusedError for a program that a workload needs and nobody has built, and for an agent of other sources."""
    if (stale := layout.stale_archive()) is not None:
        raise RefusedError(f"{stale} is not there, or not made of the sources beside it. `make agent` makes it")
    for workload in workloads_of(scenario):
        file = layout.programs[workload.program] if workload.program else layout.daqwriter
        if not file.is_file():
            raise RefusedError(
                f"{scenario.file}: workloads.{workload.name} needs {file}, which is not built. `make build` does it, or says"
                " what this system lacks for it"
            )


def check_workloads(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    """Raises RefusedError for a demand that a workload cannot meet on this candidate."""
    for workload in workloads_of(scenario):
        check_workload(workload, scenario, candidate, found)


def check_workload(workload: Workload, scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    """Raises RefusedError for a demand that this workload cannot meet."""
    if candidate.target.is_raw and not workload.raw:
        raise RefusedError(
            f"{scenario.file}: workloads.{workload.name} needs a file system, but the target of {candidate.name} is a raw drive. "
            "Choose a target of kind filesystem"
        )
    workload.check(scenario, candidate, found)
