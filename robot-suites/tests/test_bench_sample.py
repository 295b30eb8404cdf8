"""Parsing of the real tools' output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_rounds.measuring.sample import parse_daqwriter, parse_fio

RECORDED = Path(__file__).parent / "recorded"


def test_fio_rate_is_bytes_over_the_longest_job() -> None:
    text = (RECORDED / "fio-2-jobs.json").read_text()
    jobs = json.loads(text)["jobs"]
    assert len(jobs) == 2
    sample = parse_fio(text)
    written = sum(job["write"]["io_bytes"] for job in jobs)
    longest = max(job["write"]["runtime"] for job in jobs)
    assert sample.bytes_per_s == pytest.approx(written / longest * 1000)
    # Not the KiB/s of `bw`, which would be 2.4 % less, nor anything in its unit.
    assert sample.bytes_per_s == pytest.approx(sum(job["write"]["bw_bytes"] for job in jobs), rel=0.02)


def test_fio_cpu_is_summed_over_the_jobs_threads() -> None:
    job = {"error": 0, "usr_cpu": 10.0, "sys_cpu": 40.0, "job_runtime": 2000}
    write = {"io_bytes": 500_000_000, "runtime": 2000}
    text = "fio: a warning\n" + json.dumps({"jobs": [{**job, "write": write}] * 2})
    sample = parse_fio(text)
    assert sample.cpu_s_per_gb == pytest.approx(2.0)  # 2 jobs x 50 % x 2 s for 1 GB
    assert sample.bytes_per_s == pytest.approx(0.5e9)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("fio: pid=1, err=12/file:memory.c", "no JSON"),
        ('{"jobs": [{"error": 28, "write": {}}]}', "error 28"),
        ('{"jobs": [{"error": 0, "write": {"io_bytes": 0, "runtime": 0}}]}', "wrote nothing"),
    ],
)
def test_fio_that_failed_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(BenchError, match=reason):
        parse_fio(text)


def test_write_with_and_without_the_final_flush() -> None:
    text = (RECORDED / "write.json").read_text()
    document = json.loads(text)
    assert document["bytes_per_s"] > document["bytes_per_s_with_flush"]
    assert parse_daqwriter(text).bytes_per_s == document["bytes_per_s_with_flush"]
    sample = parse_daqwriter(text, with_flush=False)
    assert sample.bytes_per_s == document["bytes_per_s"]
    assert sample.cpu_s_per_gb == document["cpu"]["seconds_per_gb"]
    assert sample.buffer_bytes == 2 * 4 * 65536  # threads x depth x block


def test_minidaq_states_rings_losses_and_copying() -> None:
    text = (RECORDED / "minidaq.json").read_text()
    document = json.loads(text)
    sample = parse_daqwriter(text)
    assert sample.bytes_per_s == document["stored_bytes_per_s"]
    assert sample.buffer_bytes == document["backlog"]["capacity_bytes"]
    until = document["bytes"]["payload"] / (document["time"]["record_s"] + document["time"]["drain_s"])
    assert sample.more["until_last_block_bytes_per_s"] == until > sample.bytes_per_s
    assert sample.more["lost_superchunks"] == 0
    assert sample.more["achieved_fraction"] == document["source"]["achieved_fraction"]
    assert sample.more["copy_share"] == document["cpu"]["copy_share"]


def test_an_incomplete_run_does_not_count() -> None:
    document = json.loads((RECORDED / "write.json").read_text())
    with pytest.raises(BenchError, match="interrupted"):
        parse_daqwriter(json.dumps({**document, "status": "interrupted"}))
