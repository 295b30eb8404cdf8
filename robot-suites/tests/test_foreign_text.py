"""Whatever a tool prints, its reader on the control node gives numbers or one error of its own: no other exception, no hang, no NaN."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "inventory" / "tests"))
from foreign_text import harmed_json, harmed_text

from bench_model.base.errors import BenchError
from bench_model.bundle.line_protocol import parse_line
from bench_model.workloads.lan import iperf3, perftest
from rig.base.settings import Layout
from rig.workloads import block_scan
from rig.workloads.endurance.step import parse_step
from rig.workloads.shared import fio

REPOSITORY = Layout().repository
FIO = tuple(
    json.loads(file.read_text(encoding="utf-8"))
    for file in (Path(__file__).parent / "recorded" / "fio-2-jobs.json", *(REPOSITORY / "inventory" / "corpus").glob("fio-*/raw"))
)  # fmt: skip
RECORDED = REPOSITORY / "inventory" / "tests" / "recorded"
IPERF = (json.loads((RECORDED / "iperf3.json").read_text(encoding="utf-8")),)
BANDWIDTH = ((RECORDED / "ib_write_bw.txt").read_text(encoding="utf-8"),)
LATENCY = ((RECORDED / "ib_read_lat.txt").read_text(encoding="utf-8"),)
LINES = ('cpu,host=a\\ b,core=0 busy=0.5,count=3i,on=true,text="a \\"b\\"" 1795428009447467552',)
SOME = settings(max_examples=300, derandomize=True, deadline=5000, suppress_health_check=list(HealthCheck))


def finite(found: object) -> bool:
    """No number of an accepted answer is NaN or infinite."""
    if isinstance(found, float):
        return math.isfinite(found)
    if isinstance(found, dict):
        return all(finite(value) for value in found.values())
    if isinstance(found, list | tuple):
        return all(finite(value) for value in found)
    return True


def held(read: Callable[[], Any], *errors: type[Exception]) -> None:
    try:
        found = read()
    except errors as error:
        assert type(error) in errors, f"{type(error).__name__}: {error}"
        assert len(str(error)) < 2000
        return
    assert finite(
        found
        if isinstance(found, dict | list | tuple | float)
        else vars(found)
        if hasattr(found, "__dict__")
        else found
    )


@SOME
@given(harmed_json(FIO))
def test_fio_of_a_block_scan(text: str) -> None:
    held(lambda: block_scan.parse_point(text, 4096, 1.0, "", None), BenchError)


@SOME
@given(harmed_json(FIO))
def test_fio_of_an_endurance_step(text: str) -> None:
    held(lambda: parse_step(text, "step 1"), BenchError)


@SOME
@given(harmed_json(FIO))
def test_fio_of_reads_and_writes(text: str) -> None:
    held(
        lambda: [fio.direction(job, name) for job in fio.jobs_of(text, "a scan") for name in ("read", "write")],
        BenchError,
    )


@SOME
@given(harmed_json(IPERF))
def test_iperf3(text: str) -> None:
    held(lambda: iperf3.parse(text), ValueError)


@SOME
@given(harmed_text(BANDWIDTH))
def test_perftest_bandwidth(text: str) -> None:
    held(lambda: perftest.parse_bandwidth(text, 65536), ValueError)


@SOME
@given(harmed_text(LATENCY))
def test_perftest_latency(text: str) -> None:
    held(lambda: perftest.parse_latency(text, 2), ValueError)


@SOME
@given(harmed_text(LINES))
def test_line_protocol(text: str) -> None:
    held(lambda: parse_line(text), ValueError)


@pytest.mark.parametrize("document", FIO)
def test_what_is_not_harmed_is_read(document: Any) -> None:
    """A reader that refuses everything would pass the tests above."""
    assert fio.jobs_of(json.dumps(document), "a scan")
