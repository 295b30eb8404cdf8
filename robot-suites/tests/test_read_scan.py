"""The read scan, really run with fio and daqwriter on a scratch file; and evidence of it that is spoilt, which must never pass."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import small_runs
from daq_bench.audit import __main__ as program
from daq_bench.audit.good.case import case_of, evidence_of
from daq_bench.audit.good.scans import read_scan as good_evidence
from msgspec import convert

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document, read
from daq_bench.bench_model.documents.verdict import PASS
from daq_bench.bench_model.evidence.coverage import gaps
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.verdict.verdict import judge
from daq_bench.bench_model.workloads.plan import plan_of
from daq_bench.bench_model.workloads.read_scan import Latency, ReadScan, coverage, point_of
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.workloads.read_scan import section
from daq_bench.rig.checking.extraction import extract_again
from daq_bench.rig.workloads.read_scan import WORKLOAD

NAME = "read_scan"
SMALL = {
    "tools": ["fio", "daqwriter"],
    "block_sizes": ["4KiB", "1MiB"],
    "io_depths": [4],
    "jobs": [1, 2],
    "seconds_per_point": 1,
    "ramp_s": 0.25,
    "file_size": "16MiB",
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = small_runs.LAYOUT.build / "tests"
    folder.mkdir(parents=True, exist_ok=True)
    disk = Path(tempfile.mkdtemp(dir=folder))
    patch = pytest.MonkeyPatch()
    patch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path_factory.mktemp("locks")))
    patch.setitem(small_runs.SMALL, NAME, ("read-scan", {"repetitions": 2}, SMALL))
    yield small_runs.small_run(tmp_path_factory.mktemp(NAME), disk, NAME)
    assert [file.name for file in (disk / "scratch").iterdir()] == [], "the scan left files on the target"
    patch.undo()
    shutil.rmtree(disk)


def documents(bundle: Path) -> tuple[Document, Document]:
    names = ("run.json", "results/read_scan.json")
    run, scan = (json.loads((bundle / name).read_text(encoding="utf-8")) for name in names)
    return run, scan


def test_both_tools_really_read(bundle: Path) -> None:
    run, scan = documents(bundle)
    assert [one["tool"] for one in scan["scans"]] == ["fio", "daqwriter"]
    for one in scan["scans"]:
        assert len(one["points"]) == 2 * 2 * 1 * 2
    assert [one["pattern"] for one in scan["again"]] == ["sequential"] * 2 + ["random"] * 2
    for one in scan["scans"]:
        assert all(
            point["bytes_read"] > 0 and (point["samples_bytes_per_s"] or point["reason"]) for point in one["points"]
        )
    masked = [
        gap.text
        for gap in gaps(read(run, Run, "run.json"), {f"results/{NAME}.json": scan})
        if "does not count" not in gap.text
    ]
    assert masked == []  # a busy machine may be too slow for a point, which then says why
    for check in WORKLOAD.checks[:1]:
        check(small_runs.RunContext(small_runs.Bundle.open(bundle), small_runs.LocalMachine()), convert(scan, ReadScan))


def test_the_result_is_extracted_again_as_it_is_stored(bundle: Path, tmp_path: Path) -> None:
    found = extract_again(bundle)
    assert (found.problems, found.again) == ([], [WORKLOAD.result])
    altered = Path(shutil.copytree(bundle, tmp_path / bundle.name))
    file = altered / WORKLOAD.result
    scan = json.loads(file.read_text(encoding="utf-8"))
    scan["scans"][0]["points"][0]["bytes_read"] *= 2
    file.unlink()
    file.write_text(json.dumps(scan), encoding="utf-8")
    assert "scans[0].points[0].bytes_read" in extract_again(altered).problems[0]


def test_the_section_shows_each_tool(bundle: Path) -> None:
    _, scan = documents(bundle)

    class Read:
        results = {NAME: scan}  # noqa: RUF012

        def result(self, name: str, kind: type[ReadScan]) -> ReadScan | None:
            return read(self.results[name], kind, name) if name in self.results else None

    made = section(Read())  # type: ignore[arg-type]
    assert made is not None
    text, *rest = made.parts
    tables = [part for part in rest if isinstance(part, Table)]
    assert "Sequential reads reach" in str(text)
    assert [len(table.rows) for table in tables] == [8, 8]
    Read.results = {}
    assert section(Read()) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("found", [0, 1, 2])
def test_a_point_that_a_pause_left_without_samples_does_not_count(found: int) -> None:
    """0.68 s hold two whole windows of 0.25 s."""
    point = point_of(
        ("sequential", 2**25, 8, 1), 0.5, 2**28, 0.68, [3.9e8] * found, Latency(1.0, 1.0, 1.0, 1.0, 1.0), None
    )
    lacking = f"has {found} of 3 samples in 0.68 s: give it more seconds (seconds_per_point, of a repetition seconds_per_repetition)"
    assert point.reason == (None if found == 2 else lacking)


def test_no_wrong_evidence_passes() -> None:
    case = case_of("read-scan")
    assert judge(evidence_of(case, good_evidence(case)), case.profile, case.metrics).outcome == PASS
    found = program.audit("read-scan", 40)
    assert (found.wrong, found.broken) == ([], [])


Spoil = Callable[[dict[str, Any]], Any]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda scan: scan["scans"].clear(), "the tool fio was planned and is missing"),
        (lambda scan: scan["scans"].append(scan["scans"][0]), "the tool fio stands there 2 times"),
        (lambda scan: scan["scans"][0]["points"].pop(), "random 8 MiB, depth 32, 4 jobs was planned and is missing"),
        (lambda scan: scan["scans"][0]["points"][0].update(io_depth=2), "depth 2, 1 job was not planned"),
        (lambda scan: scan["scans"][0]["points"][0].update(runtime_s=3.0), "does not follow, 'ran for 3.00 s of 20 s' does"),
        (lambda scan: scan["scans"][0]["points"][0].update(device_bytes_read=7), "the device counted 7 B"),
        (lambda scan: scan["scans"][0]["points"][0].update(reason="slow"), "does not count: slow"),
        (lambda scan: scan["scans"][0]["points"][0].update(throughput_bytes_per_s=99e9), "its rate is not its bytes"),
        (lambda scan: scan["scans"][0]["points"][0].update(samples_bytes_per_s=[1.0] * 80), "its samples do not account"),
        (lambda scan: scan["scans"][0]["points"][0]["samples_bytes_per_s"].pop(), "its samples do not account"),
        (lambda scan: scan["scans"][0]["points"][0].update(samples_bytes_per_s=[]), "its samples do not account"),
        (lambda scan: scan["again"][0].update(device_bytes_read=None), "of some points and not of others"),
        (lambda scan: scan["again"][0]["latency_us"].update(p99=1.0), "its latencies do not ascend"),
        (lambda scan: scan["scans"][0]["points"][0].update(bytes_read=None), "scans[0].points[0].bytes_read: Expected `int`"),
        (lambda scan: scan["sequential_throughput"].update(value=99e9), "sequential_throughput.value does not follow"),
        (lambda scan: scan["again"].pop(), "number 6 was planned and is missing"),
        (lambda scan: scan["again"].append(scan["again"][0]), "number 7 was not planned"),
        (lambda scan: scan["again"][0].update(reason="slow"), "does not count: slow"),
        (lambda scan: scan["again"][0].update(bytes_read=1), "its rate is not its bytes over its time"),
        (lambda scan: scan.pop("rule"), "missing required field `rule`"),
        (lambda scan: scan.update(file_bytes=4096), "the file's size does not follow"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_result_is_named(spoil: Spoil, said: str) -> None:
    case = case_of("read-scan")
    document = json.loads(json.dumps(good_evidence(case)[f"results/{NAME}.json"]))
    plan = plan_of(case.run, NAME)
    assert list(coverage(plan, document)) == []
    spoil(document)
    assert any(said in str(problem) for problem in coverage(plan, document)), list(coverage(plan, document))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("io_depths: [8, 1]", r"read_scan\.io_depths: is not ascending"),
        ("file_size: 16MiB", r"read_scan\.file_size: 16777216 B hold no block for each job\. Make it 33554432 B"),
    ],
)
def test_what_cannot_be_read_is_refused_before_the_target_is_touched(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "mine.yml"
    file.write_text(f"id: mine\ntitle: t\nextends: read-scan\nworkloads:\n  read_scan: {{{text}}}\n", encoding="utf-8")
    with pytest.raises(RefusedError, match=problem):
        WORKLOAD.check(load_scenario(file), None, None)  # type: ignore[arg-type]


def test_the_scenario_yields_all_metrics_of_the_workload() -> None:
    scenario = load_scenario(small_runs.INVENTORY / "scenarios" / "read-scan.yml")
    metrics = load_metrics(small_runs.INVENTORY / "metrics.yml")
    assert sorted(name for name in metrics if scenario.answers(name)) == [
        f"{NAME}.random_latency_p99_9",
        f"{NAME}.random_rate",
        f"{NAME}.sequential_throughput",
    ]
