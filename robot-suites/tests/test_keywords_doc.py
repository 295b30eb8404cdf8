"""The keywords' documentation by libdoc: a page for each library, and no keyword without words of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from daq_bench.rig.base.settings import Layout
from daq_bench.rig.workloads.registry import WORKLOADS, _workload
from keywords_doc import libraries, main


def test_every_keyword_is_documented() -> None:
    found = dict(libraries())
    assert list(found) == ["DaqBench", "identity", *WORKLOADS]
    assert [f"{name}: {one.name}" for name, each in found.items() for one in each.keywords if not one.doc.strip()] == []
    for name, workload in WORKLOADS.items():
        assert len(found[name].keywords) == 1 + len(workload.checks), name
        assert found[name].doc.strip()
        suite = (Layout().repository / "robot-suites" / "suites" / f"{name}.robot").read_text(encoding="utf-8")
        assert workload.action in [
            line.split("}=")[-1].strip().lower().replace(" ", "_") for line in suite.splitlines()
        ]


def test_the_pages_are_written(tmp_path: Path) -> None:
    assert main(tmp_path / "keywords") == 0
    text = (tmp_path / "keywords" / "snb_record.html").read_text(encoding="utf-8")
    assert "Record Burst" in text and "WorkloadKeywords of snb_record" in text


def test_a_workload_that_nobody_wrote_names_the_module_to_write() -> None:
    with pytest.raises(
        ImportError, match=r"workload 'my_probe' has no run: write daq_bench\.rig\.workloads\.my_probe with a "
    ):
        _workload("my_probe")
