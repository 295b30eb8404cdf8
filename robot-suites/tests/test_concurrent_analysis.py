"""Concurrent analysis: what is refused beforehand, in which order it runs, and what becomes of a reader that fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from analysis_factory import TRUTH, farm_round, point
from small_runs import altered, refusal

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.run import Drive, FurtherTarget
from daq_bench.bench_model.documents.struct import Kind, checked, read
from daq_bench.bench_model.workloads.concurrent_analysis.reader import AnalysisPoints, AnalysisSet
from daq_bench.bench_model.workloads.streams_checksum.setups import Cpus
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.facilities import OpenTarget
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.workloads.concurrent_analysis import workload
from daq_bench.rig.workloads.concurrent_analysis.runs import Reader, SetPlan, Storage

LAYOUT = Layout()
CPUS = Cpus((0, 1), (0, 1), 1, "notsupported")


scenario = partial(altered, "concurrent-analysis-rehearsal")
refused = partial(refusal, workload.check)


def test_what_could_not_be_compared_is_refused_with_field_and_remedy() -> None:
    assert "repetitions: 5 of alternating order" in refused(replace(scenario(), repetitions=5))
    sets = scenario().workloads[workload.NAME]["sets"]
    few = {**sets, "full": {**sets["full"], "events": 100, "files": 200}}
    assert "sets.full.files: 200 files for 100 events" in refused(scenario(sets=few))
    assert "farm.rounds: 3 rounds do not balance" in refused(scenario(farm={"nodes": 2, "rounds": 3}))
    assert "farm.nodes: 32 nodes for 16 files" in refused(scenario(farm={"nodes": 32, "rounds": 2}))


def test_the_shipped_scenarios_room_is_the_studys() -> None:
    whole = altered("concurrent-analysis")
    assert workload.WORKLOAD.need(whole).size_bytes == pytest.approx(1.15 * 1.4 * 46.4e9, rel=0.01)
    assert (
        "slow_disk: its set and its image" in workload.WORKLOAD.need(scenario()).arithmetic
    )  # a small one is mostly ext4's own
    small_s, whole_s = (workload.WORKLOAD.seconds(one) or 0.0 for one in (scenario(), whole))
    assert 60 < small_s < 900 < whole_s


class FakeReader:
    """Answers as the reader does, and keeps what it was asked for."""

    def __init__(self, slow: bool = True) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.removed: list[str] = []
        self._slow = slow

    @contextmanager
    def generated(self, storage: Storage, wanted: SetPlan) -> Iterator[tuple[Path, AnalysisSet]]:
        shape = {
            "kind": wanted.kind, "layout": wanted.layout, "events": wanted.events, "files": wanted.files, "event_bytes": wanted.event_bytes,
            "cluster_events": wanted.cluster_events, "compression": wanted.compression, "seed": wanted.seed,
            "truth": {"mass": 91.19, "width": 2.5, "slope": 30.0, "signal_share": 0.3, "opposite_share": 0.8},
        }  # fmt: skip
        try:
            files = [{"name": f"events-{number:04d}.root", "bytes": 10, "events": 5} for number in range(wanted.files)]
            made = {
                "schema_version": 1,
                "shape": shape,
                "files": files,
                "bytes": 1000,
                "truth": TRUTH,
                "versions": {"uproot": "5"},
            }
            yield storage.scratch / wanted.name, read(made, AnalysisSet, "set")
        finally:
            self.removed.append(f"{storage.name}/{wanted.name}")

    def run(self, command: str, options: list[str], name: str, kind: type[Kind], timeout_s: float) -> Kind:
        return read({"schema_version": 1, **self._answer(command, options)}, kind, name)

    def _answer(self, command: str, options: list[str]) -> dict[str, Any]:
        given = dict(option.removeprefix("--").partition("=")[::2] for option in options)
        self.asked.append((command, given))
        if command == "farm":
            nodes = [{"name": f"node{number}", "workers": 1, "cpus": [number], "files": 8} for number in (0, 1)]
            return {"analysis": "full", "nodes": nodes, "rounds": [farm_round(1), farm_round(2)]}
        if command == "slow-disk":
            if not self._slow:
                raise BenchError("analysis_reader slow-disk: no loop devices")
            workers = [int(one) for one in given["workers"].split(",")]
            limits = {"read_iops": 79, "read_bytes_per_s": 105_000_000}
            held = [{**passed(given["analysis"], number, 3.0), "repetition": 1} for number in workers]
            return {"controller": "io", "limits": limits, "points": held}
        return {"points": [passed(given["analysis"], int(one), 10.0) for one in given["workers"].split(",")]}


def passed(analysis: str, workers: int, rate: float) -> dict[str, Any]:
    made = point(analysis, workers, 1, rate)
    kept = {key: made[key] for key in ("analysis", "workers", "devices", "records", "result")}
    return {**kept, "files": 16, "drop_caches": True}


class FakeTargets:
    def __init__(self) -> None:
        self.told: list[str] = []

    def _target(self, name: str) -> OpenTarget:
        drives = [Drive("sda", "A drive", None), Drive("sdb", "A drive", None)]
        found = FurtherTarget("filesystem", "xfs", drives, device=Drive("md0", None, None))
        return OpenTarget(name, Path("/srv") / name, found)

    def reference(self) -> OpenTarget:
        return self._target("ssd")

    def open(self, name: str) -> OpenTarget:
        self.told.append(f"open {name}")
        return self._target(name)

    def close(self, target: OpenTarget) -> None:
        self.told.append(f"close {target.name}")


def campaign(reader: FakeReader, targets: FakeTargets, cpus: Cpus = CPUS, **changes: Any) -> workload.Campaign:
    own = scenario(**changes).workloads[workload.NAME]
    return workload.Campaign(reader, workload.Plan(own, cpus, 2, 1), targets, lambda *_: None)  # type: ignore[arg-type]


def test_workers_go_up_and_down_on_every_storage_and_every_set_is_removed() -> None:
    reader, targets = FakeReader(), FakeTargets()
    found = checked(campaign(reader, targets, storages=["ssd", "ssd-raid0"]).run())
    scanned = [
        given["workers"] for command, given in reader.asked if command == "points" and given["analysis"] == "sparse"
    ]
    assert scanned[:4] == [
        "1,2,3,4",
        "4,3,2,1",
        "2",
        "2",
    ]  # TTree in two repetitions, then RNTuple with as many as cores
    assert targets.told == ["open ssd-raid0", "close ssd-raid0"]
    assert [one["name"] for one in found["storages"]] == ["ssd", "ssd-raid0", "slow-disk"]
    assert found["storages"][0]["text"] == "xfs on 2 x A drive" and found["storages"][0]["devices"] == ["md0"]
    sets = [f"{one['storage']}/{one['analysis']}-{one['layout']}" for one in found["sets"]]
    assert sorted(reader.removed) == sorted(name.replace("slow-disk/", "ssd/") for name in sets)
    assert sum(command == "farm" for command, _ in reader.asked) == 1  # on the judged storage only
    assert all(given.get("device") == "md0" for command, given in reader.asked if command in ("points", "farm"))
    slow = next(given for command, given in reader.asked if command == "slow-disk")
    assert (slow["read-iops"], slow["read-bytes-per-s"], slow["workers"]) == ("79", "105000000", "1,2,3,4")


def test_a_large_set_has_a_call_for_each_point_so_that_progress_shows() -> None:
    reader = FakeReader()
    sets = scenario().workloads[workload.NAME]["sets"]
    campaign(reader, FakeTargets(), sets={**sets, "full": {**sets["full"], "events": 10**6}}).run()
    scanned = [
        given["workers"] for command, given in reader.asked if command == "points" and given["analysis"] == "full"
    ]
    assert scanned[:8] == [*"1234", *"4321"]


def test_a_machine_that_cannot_hold_a_disk_back_says_so_and_goes_on() -> None:
    found = checked(campaign(FakeReader(slow=False), FakeTargets()).run())
    assert found["limits"] == ["slow-disk: it could not be measured: analysis_reader slow-disk: no loop devices"]
    assert {one["storage"] for one in found["points"]} == {"ssd"}


def test_one_core_has_no_farm_of_two_nodes() -> None:
    reader = FakeReader()
    found = campaign(reader, FakeTargets(), Cpus((0,), (0,), 1, None)).run()
    assert found.farm is None and not any(command == "farm" for command, _ in reader.asked)


def test_a_set_that_breaks_is_taken_away_with_its_target() -> None:
    reader, targets = FakeReader(), FakeTargets()
    answer = reader.run

    def breaks(command: str, options: list[str], *more: Any) -> Any:
        if any("ssd-raid0" in option for option in options):
            raise BenchError("analysis_reader points: events-0001.root: cannot be read")
        return answer(command, options, *more)

    reader.run = breaks  # type: ignore[method-assign]
    with pytest.raises(BenchError, match=r"events-0001\.root"):
        campaign(reader, targets, storages=["ssd", "ssd-raid0"]).run()
    assert targets.told == ["open ssd-raid0", "close ssd-raid0"] and reader.removed[-1] == "ssd-raid0/sparse-ttree"


def reader(tmp_path: Path, *command: str) -> Reader:
    return Reader(LocalMachine(), command, tmp_path, tmp_path)


def test_the_readers_own_words_reach_the_user(tmp_path: Path) -> None:
    speaks = ("sh", "-c", "echo 'events-0002.root: cannot be read' >&2; exit 1")
    with pytest.raises(BenchError, match=r"^analysis_reader points: events-0002\.root: cannot be read$"):
        reader(tmp_path, *speaks).run("points", [], "a", AnalysisPoints, 60)
    with pytest.raises(BenchError, match="failed with exit status 9"):
        reader(tmp_path, "sh", "-c", "exit 9").run("points", [], "a", AnalysisPoints, 60)


def test_a_set_is_removed_also_when_the_reader_fails(tmp_path: Path) -> None:
    folder = tmp_path / "concurrent-analysis-full-ttree"
    wanted = SetPlan("full", "ttree", 10, 2, 1000, 5, "zlib-1", 1, 1)
    makes = ("sh", "-c", f"mkdir {folder}; touch {folder}/events-0000.root; echo full >&2; exit 1")
    storage = Storage("ssd", "xfs", tmp_path, ("sda",))
    with pytest.raises(BenchError, match="full"), reader(tmp_path, *makes).generated(storage, wanted):
        raise AssertionError("it was made")
    assert not folder.exists()
