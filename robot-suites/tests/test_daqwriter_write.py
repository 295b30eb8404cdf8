"""`daqwriter write` and `read` themselves: their JSON keeps to its schema in every way it can end, their records to metrics.yml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from daq_bench.bench_model.bundle.line_protocol import points_of
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import LocalShell

LAYOUT = Layout()
FILE = ["--bytes=1MiB", "--block-size=64KiB", "--keep"]


def write(folder: Path, *options: str, before: str = "", command: str = "write") -> tuple[int, dict[str, Any]]:
    """Exit status and checked document of one load; `before` is what its shell does first."""
    result = folder / "write.json"
    argv = ["bash", "-c", f'{before} exec "$@"', "-", str(LAYOUT.daqwriter), command, f"--json={result}", *options]
    completed = LocalShell().run(argv, timeout_s=60)
    document: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    check_document(document, f"daqwriter-{command}", str(result))
    return completed.returncode, document


@pytest.mark.parametrize("engine", ["libaio", "io_uring"])
@pytest.mark.parametrize("more", [[], ["--condition=overwrite", "--pattern=random", "--threads=2", "--data=zeros"]])
def test_a_file_is_written_and_described(disk: Path, engine: str, more: list[str]) -> None:
    target = disk / "file"
    status, document = write(disk, f"--target={target}", f"--engine={engine}", *FILE, *more)
    assert (status, document["status"], document["ended_by"]) == (0, "complete", "bytes")
    assert document["written_bytes"] == target.stat().st_size == 1 << 20
    assert document["engine"] == engine


@pytest.mark.parametrize("engine", ["libaio", "io_uring"])
@pytest.mark.parametrize(
    "more", [["--bytes=4MiB"], ["--span=1MiB", "--duration=0.1", "--pattern=random", "--threads=2"]]
)
def test_reads_are_described_and_leave_nothing(disk: Path, engine: str, more: list[str]) -> None:
    options = [f"--target={disk / 'file'}", f"--engine={engine}", "--block-size=64KiB", *more]
    status, document = write(disk, *options, command="read")
    assert (status, document["status"]) == (0, "complete")
    assert document["read_bytes"] > 0 and document["prefilled_bytes"] == document["parameters"]["span_bytes"]
    assert not (disk / "file").exists()


def test_reads_of_zeros_are_refused(disk: Path) -> None:
    """Nothing could tell them from reads of a place that was never written."""
    argv = [str(LAYOUT.daqwriter), "read", f"--target={disk / 'file'}", "--bytes=1MiB", "--data=zeros"]
    refused = LocalShell().run(argv, timeout_s=60)
    assert refused.returncode == 2 and "--data" in refused.stderr
    assert not (disk / "file").exists()


def test_a_file_of_somebody_is_not_read_either(disk: Path) -> None:
    (disk / "file").write_text("somebody's data")
    argv = [str(LAYOUT.daqwriter), "read", f"--target={disk / 'file'}", "--bytes=1MiB"]
    refused = LocalShell().run(argv, timeout_s=60)
    assert refused.returncode == 2 and "never overwritten" in refused.stderr
    assert (disk / "file").read_text() == "somebody's data"


def test_the_null_sink_is_described(tmp_path: Path) -> None:
    status, document = write(tmp_path, "--sink=null", "--duration=0.05", "--block-size=4KiB")
    assert (status, document["ended_by"], document["parameters"]["condition"]) == (0, "duration", "none")


def test_a_failed_load_is_described(disk: Path) -> None:
    """A limit on the file's size is the simplest drive that ends early."""
    options = [f"--target={disk / 'file'}", "--preallocate=none", *FILE]
    status, document = write(disk, *options, before='trap "" XFSZ; ulimit -f 256;')
    assert (status, document["status"], document["ended_by"]) == (1, "failed", "error")
    assert "EFBIG" in document["error"]
    assert document["written_bytes"] <= 256 << 10


@pytest.mark.parametrize(("command", "counted"), [("write", "written_bytes"), ("read", "read_bytes")])
def test_its_records_are_declared(tmp_path: Path, command: str, counted: str) -> None:
    lines = tmp_path / "lines"
    options = ["--sink=null", "--duration=0.1", "--interval=0.02", f"--line-protocol={lines}", "--tag=run=r"]
    write(tmp_path, *options, command=command)
    declared = yaml.safe_load((LAYOUT.inventory / "metrics.yml").read_text(encoding="utf-8"))
    known = declared["measurements"]["daqwriter"]
    points = list(points_of(lines, {"daqwriter"}))
    assert points
    for point in points:
        assert set(point.fields) == {counted, "elapsed_s", "total_s"}
        assert {name: type(value).__name__ for name, value in point.fields.items()} == {
            name: {"integer": "int"}.get(known["fields"][name]["type"], known["fields"][name]["type"])
            for name in point.fields
        }
        assert set(point.tags) <= set(known["tags"])
        assert (point.tags["command"], point.tags["phase"]) == (command, command)
