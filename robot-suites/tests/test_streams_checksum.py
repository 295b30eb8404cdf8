"""The storage application as a workload: cores and siblings, what is refused, the look at the files by other code, and a real run."""

from __future__ import annotations

import json
import random
import subprocess
import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from small_runs import refusal

from daq_bench.bench_model.profiles.scenarios import Scenario, load_scenario
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.bench_model.workloads.streams_checksum.analysis import document as analysis_of
from daq_bench.bench_model.workloads.streams_checksum.setups import ALL, CORES, Cpus, beyond, comparisons
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.on_candidate import scratch, stream_files
from daq_bench.rig.on_candidate.reading import cpu_topology
from daq_bench.rig.workloads.shared.site import Site
from daq_bench.rig.workloads.streams_checksum import workload as streams_checksum

LAYOUT = Layout()
NAME = streams_checksum.NAME
REHEARSAL = load_scenario(LAYOUT.inventory / "scenarios" / "streams-checksum-rehearsal.yml")


def scenario(**changes: Any) -> Scenario:
    """The rehearsal with `part__key=value` changed in its workload."""
    own = json.loads(json.dumps(REHEARSAL.workloads[NAME]))
    for path, value in changes.items():
        part, _, key = path.partition("__")
        own[part][key] = value
    return replace(REHEARSAL, workloads={NAME: own})


refused = partial(refusal, streams_checksum.check)


def test_what_cannot_be_compared_or_written_is_refused_by_field_and_value() -> None:
    assert "repetitions: 5 pairs" in refused(replace(REHEARSAL, repetitions=5))
    assert "repetitions: 2 pairs" in refused(replace(REHEARSAL, repetitions=2))
    assert "streams.shares: their sum is 0.9" in refused(scenario(streams__shares=[0.7, 0.2]))
    assert "0.3 is not the largest" in refused(scenario(streams__shares=[0.3, 0.7]))
    assert "threads: [2, 1] is not ascending" in refused(scenario(throughput__threads=[2, 1]))
    assert "streams.queue_size: 1000000 B is too small for events of up to 1500000 B" in refused(
        scenario(streams__queue_size=10**6)
    )
    assert "streams.file_size" in refused(scenario(streams__file_size=10**6))
    assert "throughput.small_event_size: 64 B" in refused(scenario(throughput__small_event_size=64))
    assert "identity.run_size: 1000 B holds no event" in refused(scenario(identity__run_size=1000))
    assert "demand.peak_rate_size: one server's share is below 1 B/s" in refused(scenario(demand__peak_rate_size=1))


def test_space_is_for_the_longest_run_and_each_streams_open_file() -> None:
    need = streams_checksum.WORKLOAD.need(REHEARSAL)
    assert need.size_bytes == int(0.125e9 * 5) + 5 * 100_000_000
    assert "the peak rate, 0.125 GB/s x 5 s" in need.arithmetic
    assert streams_checksum.WORKLOAD.need(scenario(throughput__sink="target")).size_bytes == 2_000_000_000 + 5 * 10**8


def two_by_two_by_two(root: Path, told: bool = True) -> Path:
    """Two processors of two cores with two threads each, numbered as Linux does: siblings are 4 apart."""
    for cpu in range(8):
        folder = root / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{cpu % 4 // 2}\n", encoding="ascii")
        if told:
            (folder / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n", encoding="ascii")
    (root / "smt").mkdir()
    (root / "smt" / "control").write_text("on\n", encoding="ascii")
    return root


def test_cores_come_before_their_siblings(tmp_path: Path) -> None:
    cpus = Cpus.of(cpu_topology.topology(range(8), two_by_two_by_two(tmp_path)))
    assert (cpus.cores, cpus.order, cpus.packages, cpus.smt) == ((0, 1, 2, 3), (0, 1, 2, 3, 4, 5, 6, 7), 2, "on")
    assert cpus.threads([1, 2, 6, 24], CORES) == [1, 2, 4]
    assert cpus.threads([1, 2, 6, 24], ALL) == [1, 2, 6, 8]
    # A process that may not use all of them: CPU 5 is then the only one of its core.
    some = Cpus.of(cpu_topology.topology([0, 4, 5], tmp_path))
    assert (some.cores, some.order, some.has_siblings) == ((0, 5), (0, 5, 4), True)


def test_a_kernel_that_does_not_tell_siblings_is_named(tmp_path: Path) -> None:
    with pytest.raises(cpu_topology.TopologyError, match="does not tell the siblings of CPU 0"):
        cpu_topology.topology(range(8), two_by_two_by_two(tmp_path, told=False))
    assert cpu_topology.parse_list("0-2,8\n") == [0, 1, 2, 8]


@pytest.mark.parametrize("said", ["-1", "", "4294967295x"])
def test_a_package_that_the_kernel_does_not_name_is_none(tmp_path: Path, said: str) -> None:
    """POWER, RISC-V: -1; counted, all CPUs would sit in one processor."""
    root = two_by_two_by_two(tmp_path)
    (root / "cpu3/topology/physical_package_id").write_text(f"{said}\n", encoding="ascii")
    found = cpu_topology.topology(range(8), root)
    assert [one["package"] for one in found["cpus"]][2:4] == [1, None] and Cpus.of(found).packages is None


@pytest.mark.parametrize(
    ("said", "words"),
    [("1,\0", "is no list of CPUs"), ("5-1", "5-1 runs backwards"), ("2,6", "which does not name CPU 1 itself")],
)
def test_siblings_that_cannot_be_are_named_with_their_file(tmp_path: Path, said: str, words: str) -> None:
    root = two_by_two_by_two(tmp_path)
    (root / "cpu1/topology/thread_siblings_list").write_text(said, encoding="ascii")
    with pytest.raises(cpu_topology.TopologyError, match=f"cpu1/topology/thread_siblings_list.*{words}"):
        cpu_topology.topology(range(8), root)


def test_with_siblings_there_are_two_series_and_without_one(tmp_path: Path) -> None:
    own = scenario(throughput__threads=[1, 4, 8, 24]).workloads[NAME]
    both = Cpus.of(cpu_topology.topology(range(8), two_by_two_by_two(tmp_path)))
    made = [(one.kind, one.setup.threads, one.setup.placement) for one in comparisons(own, both)]
    assert made == [
        ("switched-off", 1, ALL),
        ("threads", 1, CORES),
        ("threads", 4, CORES),
        ("threads", 4, ALL),
        ("threads", 8, ALL),
        ("small-events", 4, ALL),
        ("application", 1, ALL),
        ("ceiling", 1, ALL),
        ("smt", 8, ALL),
    ]
    assert comparisons(own, both)[-1].reference.placement == CORES
    cores = Cpus.of(cpu_topology.topology(range(4), tmp_path))
    assert not cores.has_siblings
    kinds = [(one.kind, one.setup.threads) for one in comparisons(own, cores)]
    assert kinds[:2] == [("switched-off", 1), ("threads", 4)]
    assert "smt" not in dict(kinds)
    assert beyond([1, 4, 8, 24], cores) == [
        {"threads": 8, "reason": "the candidate has 4 physical cores"},
        {"threads": 24, "reason": "the candidate has 4 physical cores"},
    ]


def test_the_definition_and_zlib_agree_on_any_bytes() -> None:
    generator = random.Random(20181)
    for length in (0, 1, 5552, 65536, 65537, 200_001):
        data = generator.randbytes(length)
        assert stream_files.adler32_by_definition([data]) == zlib.adler32(data)
        cut = generator.randrange(length + 1)
        assert stream_files.adler32_by_definition([data[:cut], data[cut:]]) == zlib.adler32(data)
    assert stream_files.adler32_by_definition([b"\xff" * 500_000]) == zlib.adler32(b"\xff" * 500_000)


def written(folder: Path, variant: str = "pool-busy") -> Path:
    directory = folder / "streams-checksum-test"
    argv = [
        str(LAYOUT.daqwriter),
        "streams",
        f"--target={directory}",
        "--bytes=20MB",
        "--file-size=4MB",
        "--event-size=300KiB",
    ]
    argv += [f"--checksum-variant={variant}", "--checksum-threads=2", "--smallest-parallel=1"]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    return directory


def test_other_code_finds_the_recorded_checksums_and_every_kind_of_damage(disk: Path) -> None:
    directory, machine = written(disk), LocalMachine()
    good = machine.call("stream_files", "check", directory, "5000000")
    assert good["closed"] and len(good["files"]) > 5
    assert all(one["fault"] is None and one["recorded"] == one["zlib"] for one in good["files"])
    assert sum(one["definition"] is not None for one in good["files"]) == 1
    names = [one["name"] for one in good["files"]]
    with (directory / names[0]).open("r+b") as file:
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))
    with (directory / names[1]).open("ab") as file:
        file.write(b"more")
    (directory / names[2]).unlink()
    (directory / "run.9.9.events").write_bytes(b"nobody's")
    faults = {
        one["name"]: one["fault"]
        for one in machine.call("stream_files", "check", directory, "0")["files"]
        if one["fault"]
    }
    assert "zlib finds" in faults[names[0]]
    assert "were recorded" in faults[names[1]]
    assert "not in the directory" in faults[names[2]]
    assert "not in the manifest" in faults["run.9.9.events"]
    assert len(faults) == 4
    machine.call("stream_files", "remove", directory)
    assert list(disk.iterdir()) == []
    assert machine.call("stream_files", "remove", directory) == 0


def test_without_checksums_a_file_has_no_proof(disk: Path) -> None:
    found = stream_files.check(written(disk, "off"), 0)
    assert {one["fault"] for one in found["files"]} == {"has no recorded checksum"}


def test_what_a_killed_run_left_goes_with_the_scratch_folder_and_nothing_else(disk: Path) -> None:
    folder = scratch.create(disk, "killed")
    written(folder)
    assert scratch.remove(folder) > 15_000_000
    folder = scratch.create(disk, "killed")
    foreign = written(folder) / "thesis.tex"
    foreign.write_text("years of work", encoding="utf-8")
    with pytest.raises(scratch.ForeignFilesError, match="did not make"):
        scratch.remove(folder)
    assert foreign.exists()


def test_a_real_run_compares_carries_the_demand_and_reads_everything_back(disk: Path, tmp_path: Path) -> None:
    own = scenario(
        overhead__seconds_per_point=0.005,
        overhead__split_size=300,
        throughput__seconds=0.2,
        throughput__threads=[1, 2, 64],
        demand__sustained_s=0.5,
        demand__peak_s=0.5,
        identity__run_size=16_000_000,
        streams__file_size=8_000_000,
        streams__queue_size=4 << 20,
    )
    own = replace(own, repetitions=4)
    site = Site(LocalMachine(), LAYOUT.daqwriter, disk, tmp_path, tmp_path, None)
    steps: list[tuple[int, int]] = []
    plan = streams_checksum.Plan(own)
    found = streams_checksum.run_streams_checksum(site, plan, lambda _, step, steps_, __: steps.append((step, steps_)))
    check_document(found, "streams-checksum", "results/streams_checksum.json")
    assert list(disk.iterdir()) == []
    assert [step for step, _ in steps] == list(range(1, len(steps) + 1))
    assert steps[-1][0] <= steps[-1][1]
    assert [pair["reference_first"] for pair in found["comparisons"][0]["pairs"]] == [True, False, True, False]
    assert found["identity"]["wrong"] == 0
    assert found["identity"]["splits"]["comparisons"] > 301 * 5 - 1
    assert {one["variant"] for one in found["verification"]} == {
        "zlib",
        "thread-per-chunk",
        "pool-cv",
        "pool-busy",
        "fused",
    }
    assert all(one["wrong_files"] == one["faults"] == 0 and one["by_definition"] == 1 for one in found["verification"])
    small = next(one for one in found["comparisons"] if one["kind"] == "small-events")
    if small["setup"]["threads"] > 1:
        assert all(pair["measured"]["fallback_share"] == 1 for pair in small["pairs"])
    assert found["not_measured"][-1]["threads"] == 64
    analysis = analysis_of(found)
    assert analysis["wrong_files"] == [0] * 7
    assert any(one["admissible"] for one in analysis["comparisons"]), analysis["reasons"]
