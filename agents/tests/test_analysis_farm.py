"""The analysis reader's slow disk and its farm on Dask: as slow as asked, all of it read, dead processes told, nothing left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from analysis_helpers import REPOSITORY, files_of, shape

from daq_bench.analysis_reader import dataset, farm, slow_disk
from daq_bench.analysis_reader.errors import ReaderError
from daq_bench.analysis_reader.shape import FULL

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="loop devices and cgroups need root")


def holds_back() -> bool:
    version_2 = (
        "io" in (slow_disk.V2 / "cgroup.controllers").read_text().split()
        if (slow_disk.V2 / "cgroup.controllers").exists()
        else False
    )
    return version_2 or (slow_disk.V1 / "blkio.throttle.read_iops_device").exists()


@needs_root
@pytest.mark.skipif(not holds_back(), reason="no cgroup controller here holds a device back (blkio or io)")
@pytest.mark.skipif(not Path("/dev/loop-control").exists(), reason="no loop devices here")
def test_a_slow_disk_is_as_slow_as_asked_and_leaves_nothing(disk: Path) -> None:
    made = dataset.generate(disk / "set", shape(), 1)
    image = disk / "slow.img"
    options = [
        "slow-disk",
        f"--set={disk / 'set'}",
        f"--json={disk / 'slow.json'}",
        f"--image={image}",
        "--analysis=full",
    ]
    limits = ["--read-iops=1000", "--read-bytes-per-s=1500000", "--workers=1,2"]
    done = subprocess.run(
        [sys.executable, "-m", "daq_bench.analysis_reader", *options, *limits], capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "agents")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads((disk / "slow.json").read_text())
    for one in found["points"]:
        wall_s = max(record["end_s"] for record in one["records"]) - min(record["start_s"] for record in one["records"])
        assert one["devices"][0]["name"].startswith("loop")
        assert one["devices"][0]["read_bytes"] >= sum(record["fetched_bytes"] for record in one["records"])
        assert (
            0.8 * made["bytes"] / 1.5e6 < wall_s
        )  # the limit is a limit; how much slower the machine itself is, is not ours
        assert one["result"]["digest"] == made["truth"]["digest"]
    assert not image.exists() and not image.with_suffix(".mount").exists()
    assert str(image) not in subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
    assert not list(slow_disk.V1.glob(f"{slow_disk.GROUP}*")) and not list(slow_disk.V2.glob(f"{slow_disk.GROUP}*"))


@needs_root
def test_a_slow_disk_without_room_is_refused(disk: Path) -> None:
    with (
        pytest.raises(ReaderError, match=r"the slow disk needs \d+ B, \d+ B are free"),
        slow_disk.slow_disk(disk / "a.img", 10**18),
    ):
        raise AssertionError("it was made")
    assert list(disk.iterdir()) == []


def test_a_farm_reads_all_of_it_alone_and_together_and_leaves_nothing(disk: Path) -> None:
    made = dataset.generate(disk / "set", shape(), 1)
    options = [
        "farm",
        f"--set={disk / 'set'}",
        f"--json={disk / 'farm.json'}",
        "--analysis=full",
        "--nodes=2",
        "--workers=1",
        "--rounds=2",
    ]
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("a farm of two nodes needs two CPUs")
    done = subprocess.run(
        [sys.executable, "-m", "daq_bench.analysis_reader", *options, f"--cpus={cpus[0]},{cpus[1]}"],
        capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "agents"), "TMPDIR": str(disk)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads((disk / "farm.json").read_text())
    assert [[run["nodes"] for run in one["runs"]] for one in found["rounds"]] == [
        [["node0"], ["node1"], ["node0", "node1"]],
        [["node0", "node1"], ["node1"], ["node0"]],
    ]
    for one in found["rounds"]:
        whole = next(run for run in one["runs"] if len(run["nodes"]) == 2)
        assert whole["result"]["digest"] == made["truth"]["digest"] and len(whole["records"]) == 4
        alone = [run for run in one["runs"] if len(run["nodes"]) == 1]
        assert sum(run["result"]["entries"] for run in alone) == 1200
    assert sorted(path.name for path in disk.iterdir()) == ["farm.json", "set"]


def test_a_farm_worker_that_dies_is_an_error_at_once(tmp_path: Path) -> None:
    dataset.generate(tmp_path / "set", shape(), 1)
    nodes = farm.nodes_of(files_of(tmp_path / "set"), 2, 1, [0, 0])  # both on one CPU: speed is not the point here
    (tmp_path / "work").mkdir()
    with farm.farm(nodes, tmp_path / "work") as made:
        victim = made.processes[-1]
        victim.kill()
        with pytest.raises(
            ReaderError, match=rf"\(pid {victim.pid}\) died with exit status -9: the farm has no result"
        ):
            made.run(nodes, FULL, [], False)
        processes = made.processes
    assert all(process.poll() is not None for process in processes) and list((tmp_path / "work").iterdir()) == []


def test_a_farm_needs_cpus_and_files_for_every_node() -> None:
    paths = [Path(f"{number}.root") for number in range(5)]
    nodes = farm.nodes_of(paths, 2, 3, [0, 1, 2, 3])
    assert [(node.cpus, len(node.files), node.workers) for node in nodes] == [((0, 2), 3, 3), ((1, 3), 2, 3)]
    for wrong in ((paths, 2, 1, [0]), (paths[:1], 2, 1, [0, 1]), (paths, 1, 1, [0, 1])):
        with pytest.raises(ReaderError, match="every node needs one of each"):
            farm.nodes_of(*wrong)
