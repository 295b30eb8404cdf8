"""Refusals before anything is written: space, O_DIRECT, memory."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import build_pyz
from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.documents.run import Drive, Host
from daq_bench.bench_model.profiles.candidates import Candidate, Target, load_candidate
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.workloads.preconditioning import Room
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.host import Node, Survey
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.on_candidate.reading.probe import filesystem_of
from daq_bench.rig.run import planning, preflight
from daq_bench.rig.run.targets import Targets

INVENTORY = Layout().inventory
DAQWRITER = Layout().daqwriter
MACHINE = LocalMachine()
SCENARIO = load_scenario(INVENTORY / "scenarios" / "dune-snb.yml")
FULL = load_scenario(INVENTORY / "scenarios" / "snb-100s.yml")


def test_a_target_that_is_too_small_is_refused_with_the_arithmetic(disk: Path) -> None:
    with pytest.raises(RefusedError) as caught:
        preflight.check_space(FULL, disk, 80_100_000_000)
    text = str(caught.value)
    assert "9.243 GB/s (10 links x 166000 Hz x 5568 B x scale 1) x 100 s = 924.3 GB (924288000000 B)" in text
    assert "against 80.1 GB (80100000000 B) free" in text
    assert "ask for at most --duration 8.55 or --scale 0.0855, which makes" in text
    assert list(disk.iterdir()) == []


def test_what_the_refusal_proposes_is_then_accepted(disk: Path) -> None:
    preflight.check_space(FULL.altered(None, 8.55), disk, 80_100_000_000)
    preflight.check_space(FULL.altered(0.0855, None), disk, 80_100_000_000)


@pytest.mark.parametrize("free", [0, 1_000_000_000, preflight.RESERVE_BYTES, preflight.RESERVE_BYTES + 924_000_000])
def test_a_full_disk_is_not_offered_a_duration_of_nothing(disk: Path, free: int) -> None:
    with pytest.raises(RefusedError, match=r"make room on this one: hardly anything of 924\.3 GB fits") as caught:
        preflight.check_space(FULL, disk, free)
    assert "--duration" not in str(caught.value)


def test_a_file_system_in_memory_is_refused() -> None:
    memory = Path("/dev/shm")
    filesystem = filesystem_of(memory)
    assert filesystem == "tmpfs"
    with pytest.raises(RefusedError, match="is on tmpfs, which does not lead to a drive"):
        preflight.check_direct_io(memory, filesystem, MACHINE, DAQWRITER)


@pytest.fixture
def journalled(disk: Path) -> Iterator[Path]:
    """An ext4 that journals its data: it accepts O_DIRECT and then writes through the page cache."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system without direct I/O to try")
    image, mount = disk / "image", disk / "mount"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(64 * 2**20)
    MACHINE.run(["mkfs.ext4", "-q", image], timeout_s=60).check("mkfs.ext4")
    mounted = MACHINE.run(["mount", "-o", "loop,data=journal", image, mount], timeout_s=60)
    if mounted.returncode != 0:
        pytest.skip(f"this machine lets the tests mount nothing: {mounted.stderr.strip()}")
    yield mount
    MACHINE.run(["umount", mount], timeout_s=60).check("umount")


def test_a_file_system_without_direct_io_is_refused_and_left_clean(journalled: Path) -> None:
    with pytest.raises(RefusedError, match=r"does not support direct I/O \(O_DIRECT\)"):
        preflight.check_direct_io(journalled, filesystem_of(journalled), MACHINE, DAQWRITER)
    assert [path.name for path in journalled.iterdir()] == ["lost+found"]


def test_the_real_disk_takes_o_direct_and_is_left_clean(disk: Path) -> None:
    preflight.check_direct_io(disk, filesystem_of(disk), MACHINE, DAQWRITER)
    assert list(disk.iterdir()) == []


def test_rings_that_exceed_the_declared_buffer_are_refused() -> None:
    candidate = load_candidate(INVENTORY / "lab.yml", "this-machine")
    preflight.check_memory(candidate, SCENARIO, 24 * 2**30)
    with pytest.raises(RefusedError, match=r"ring_size: 10 rings of 512 MiB need 5.369 GB"):
        preflight.check_memory(candidate, FULL, 24 * 2**30)
    with pytest.raises(RefusedError, match="half of its RAM"):
        preflight.check_memory(candidate, SCENARIO, 2**30)


def to_build(filesystem: str | None, level: int | None, size_bytes: int) -> tuple[Candidate, Survey]:
    """A target that provisioning is yet to build, of one drive or of two in an array, and the survey of its machine."""
    serials = ["A"] if level is None else ["A", "B"]
    storage: dict[str, Any] = {"drives": serials, "destroy": True}
    storage |= {"filesystem": filesystem} if filesystem else {}
    storage |= {} if level is None else {"raid": {"level": level}}
    candidate = load_candidate(INVENTORY / "lab.yml", "this-machine")
    candidate = replace(candidate, target=Target("t", "filesystem", "/mnt/t", None, storage))
    devices = [
        Node(serial, f"/dev/{serial}", "disk", None, Drive(serial, None, serial, size_bytes=size_bytes))
        for serial in ("A", "B", "OTHER")
    ]
    return candidate, Survey(Host(), devices, None, 0.0)


# What the tools left of sparse files, B: mke2fs 1.47.0 (free less reserved blocks); mkfs.xfs 6.1.0 (the last one mounted: df's avail).
LEFT_BY_MKFS = [
    ("ext4", 100_000_000_000, (23_883_985 - 1_220_703) * 4096),
    ("ext4", 480_000_000_000, (115_067_313 - 5_859_375) * 4096),
    ("ext4", 960_000_000_000, (230_414_604 - 11_718_750) * 4096),
    ("ext4", 1_920_000_000_000, (461_110_834 - 23_437_500) * 4096),
    ("ext4", 4_300_000_000_000, (1_033_041_432 - 52_490_234) * 4096),
    ("ext4", 4_500_000_000_000, (1_089_686_359 - 54_931_640) * 4096),
    ("ext4", 7_680_000_000_000, (1_859_932_591 - 93_750_000) * 4096),
    ("ext4", 17_500_000_000_000, (4_238_507_973 - 213_623_046) * 4096),
    ("xfs", 960 * 2**30, 1_023_071_703_040),
    ("xfs", 200_000_000_000, 48_455_748 * 4096),
    ("xfs", 7_680_000_000_000, 1_861_400_877 * 4096),
    ("xfs+rmapbt", 200_000_000_000, 47_861_526 * 4096),  # -m rmapbt=1
    ("xfs+rmapbt", 1_000_000_000_000, 239_340_760 * 4096),
    ("xfs+rmapbt", 7_680_000_000_000, 1_838_578_467 * 4096),
]


@pytest.mark.parametrize(("filesystem", "capacity_bytes", "left_bytes"), LEFT_BY_MKFS)
def test_the_room_foreseen_is_that_which_the_tools_leave(filesystem: str, capacity_bytes: int, left_bytes: int) -> None:
    kind, _, maps_back = filesystem.partition("+")
    foreseen = preflight.room_once_built(kind, capacity_bytes, bool(maps_back))
    assert left_bytes <= foreseen <= 1.005 * left_bytes  # never refuses what fits


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mkfs.xfs"), reason="needs root, loop devices and mkfs.xfs")
@pytest.mark.parametrize("maps_back", [0, 1])
def test_the_room_of_a_real_xfs_is_foreseen_and_can_be_filled(disk: Path, maps_back: int) -> None:
    """statvfs leaves out what XFS reserves, with the reverse map as without: all but the reserve can be written."""
    image, folder, size = disk / "image", disk / "mounted", 20_000_000_000
    folder.mkdir()
    image.touch()
    os.truncate(image, size)

    def run(*words: str | Path) -> str:
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    run("mkfs.xfs", "-q", "-m", f"rmapbt={maps_back}", image)
    device = run("losetup", "--find", "--show", image)
    try:
        run("mount", device, folder)
        try:
            left = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
            assert left <= preflight.room_once_built("xfs", size, bool(maps_back)) <= 1.005 * left
            assert (left <= preflight.room_once_built("xfs", size, True)) == bool(maps_back)
            room = Room(size, left, dedicated=True)
            run("fallocate", "--length", str(room.writable_bytes), folder / "full")
        finally:
            run("umount", folder)
    finally:
        run("losetup", "--detach", device)


def test_the_defaults_of_mkfs_xfs_are_asked_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    if shutil.which("mkfs.xfs", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
        file = tmp_path / "none"
        said = subprocess.run(
            ["mkfs.xfs", "-N", "-d", f"file,name={file},size=1g"], check=True, capture_output=True, text=True
        )
        file.unlink()
        assert preflight.xfs_maps_back(LocalMachine()) is ("rmapbt=1" in said.stdout)
    for words, expected in (("echo rmapbt=1, reflink=1", True), ("echo rmapbt=0, reflink=1", False), ("exit 1", False)):
        tool = tmp_path / "bin" / "mkfs.xfs"
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(f"#!/bin/sh\n{words}\n", encoding="utf-8")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
        assert preflight.xfs_maps_back(LocalMachine()) is expected
    assert [*tmp_path.iterdir()] == [tmp_path / "bin"], "the dry run left a file"


def test_drives_that_hold_a_record_only_without_the_reverse_map_are_refused_where_mkfs_makes_it() -> None:
    candidate, found = to_build("xfs", None, 940 * 10**9)
    preflight.check_capacity(FULL, candidate, found, Path("/mnt/t"))
    with pytest.raises(
        RefusedError, match=r"924\.3 GB .*Use a larger target.* xfs keeps 1[89]\.\d+ GB of 940 GB for itself"
    ):
        preflight.check_capacity(FULL, candidate, found, Path("/mnt/t"), maps_back=True)


def test_of_a_file_system_that_it_does_not_know_it_foresees_all_of_the_drives() -> None:
    assert preflight.room_once_built("btrfs", 10**12) == preflight.room_once_built(None, 10**12) == 10**12


@pytest.mark.parametrize(
    ("filesystem", "level", "size_bytes", "refused"),
    [
        (None, None, 800 * 10**9, True),  # left out is xfs
        ("xfs", None, 931 * 10**9, True),
        ("xfs", None, 934 * 10**9, False),
        ("ext4", None, 960 * 10**9, True),
        ("ext4", None, 990 * 10**9, True),
        ("ext4", None, 993 * 10**9, False),
        ("ext4", 0, 480 * 10**9, True),
        ("ext4", 0, 500 * 10**9, False),
        ("xfs", 0, 480 * 10**9, False),
        ("xfs", 1, 800 * 10**9, True),
        ("xfs", 0, 0, False),  # a drive that states no size
    ],
)
def test_drives_that_cannot_hold_the_record_are_refused_before_they_are_erased(
    filesystem: str | None, level: int | None, size_bytes: int, refused: bool
) -> None:
    candidate, found = to_build(filesystem, level, size_bytes)
    if not refused:
        if size_bytes:
            preflight.check_capacity(FULL, candidate, found, Path("/mnt/t"))
        return
    with pytest.raises(RefusedError, match=r"924\.3 GB .* free. Nothing was written"):
        preflight.check_capacity(FULL, candidate, found, Path("/mnt/t"))


@pytest.mark.parametrize(("wwn", "refused"), [("eui.1", True), ("eui.2", False)])
def test_the_namespace_that_is_named_has_to_hold_the_record(wwn: str, refused: bool) -> None:
    """Namespaces of one drive share its serial (linux-nvme/nvme-cli#454): the smaller one is not the target."""
    candidate, found = to_build("xfs", None, 0)
    storage = {**(candidate.target.storage or {}), "drives": [{"serial": "A", "wwn": wwn}]}
    candidate = replace(candidate, target=replace(candidate.target, storage=storage))
    there = [
        Node(f"nvme0n{number}", f"/dev/nvme0n{number}", "disk", None, Drive("", None, "A", None, f"eui.{number}", size))
        for number, size in ((1, 500 * 10**9), (2, 3340 * 10**9))
    ]
    found = Survey(found.host, there, None, 0.0)
    with pytest.raises(RefusedError, match=r"500 GB for itself") if refused else nullcontext():
        preflight.check_capacity(FULL, candidate, found, Path("/mnt/t"))
    beneath = planning._beneath(candidate, {}, found)
    assert beneath.capacity_bytes == (500 * 10**9 if refused else 3340 * 10**9)


def test_a_refusal_for_room_says_what_the_file_system_keeps_and_which_one_would_do() -> None:
    candidate, found = to_build("ext4", None, 960 * 10**9)
    with pytest.raises(
        RefusedError, match=r"ext4 keeps 64.* GB of 960 GB for itself\. Or choose storage\.filesystem: xfs"
    ):
        preflight.check_capacity(FULL, candidate, found, Path("/mnt/t"))
    candidate, found = to_build("ext4", None, 930 * 10**9)  # xfs would not do either
    with pytest.raises(RefusedError, match="ext4 keeps") as caught:
        preflight.check_capacity(FULL, candidate, found, Path("/mnt/t"))
    assert "xfs" not in str(caught.value)


@pytest.mark.parametrize("name", ["a;b", "a#b", "a$b", "a\nb"])
def test_a_path_that_fio_would_misread_is_refused_before_the_load(name: str) -> None:
    with pytest.raises(RefusedError, match="has no ; # "):
        preflight.check_path(Path("/mnt") / name / "t")
    preflight.check_path(Path("/mnt/a b,c:d/t"))


def test_preflight_looks_at_the_path_before_it_asks_the_machine() -> None:
    candidate, _ = to_build("xfs", None, 960 * 10**9)
    profiles = SimpleNamespace(candidate=candidate, scenario=FULL)
    session: Any = SimpleNamespace(profiles=profiles, machine=None, layout=None, directory=Path("/mnt/a;b"))
    with pytest.raises(RefusedError, match="has ';' in its path"):
        Targets(session).preflight()


def test_a_program_that_a_scenario_needs_and_nobody_built_is_named(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    file = INVENTORY / "scenarios" / "hot-store-rehearsal.yml"
    with pytest.raises(
        RefusedError, match=r"workloads\.hot_store needs .*hotstore, which is not built\. `make build` does it"
    ):
        preflight.check_programs(load_scenario(file), layout)
    layout.hotstore.parent.mkdir(parents=True)
    layout.hotstore.touch()
    preflight.check_programs(load_scenario(file), layout)
    with pytest.raises(RefusedError, match=r"needs .*daqwriter"):
        preflight.check_programs(load_scenario(INVENTORY / "scenarios" / "dune-snb.yml"), layout)


def test_an_agent_of_other_sources_watches_no_run(tmp_path: Path) -> None:
    """A clone that took the build of an older one along ran an agent that told of no power that was not read: a wrong PASS."""
    layout, scenario = Layout(tmp_path), load_scenario(INVENTORY / "scenarios" / "hot-store-rehearsal.yml")
    layout.hotstore.parent.mkdir(parents=True)
    layout.hotstore.touch()
    kit = tmp_path / "agents" / "daq_bench" / "candidate_kit" / "plausible.py"
    kit.parent.mkdir(parents=True)
    kit.write_text("", encoding="utf-8")
    for archive in (layout.agent, layout.analysis_reader):
        package = tmp_path / "agents" / "daq_bench" / archive.stem
        (package / "room").mkdir(parents=True)
        (package / "cli.py").write_text("main = print\n", encoding="utf-8")
        (package / "room" / "__init__.py").write_text("", encoding="utf-8")
        with pytest.raises(
            RefusedError, match=rf"{archive.name} is not there, or not made of .* `make agent` makes it"
        ):
            preflight.check_programs(scenario, layout)
        archive.write_bytes(build_pyz.archive(package))
    preflight.check_programs(scenario, layout)
    source = tmp_path / "agents" / "daq_bench" / layout.agent.stem / "room" / "__init__.py"
    for spoil in (
        lambda: source.write_text("changed = 1\n", encoding="utf-8"),
        source.unlink,
        lambda: layout.agent.write_bytes(b"no archive"),
        lambda: kit.write_text("changed = 1\n", encoding="utf-8"),
        kit.unlink,
    ):
        before = layout.agent.read_bytes()
        spoil()
        with pytest.raises(RefusedError, match=layout.agent.name):
            preflight.check_programs(scenario, layout)
        source.write_text("", encoding="utf-8")
        kit.write_text("", encoding="utf-8")
        layout.agent.write_bytes(before)
    preflight.check_programs(scenario, layout)
