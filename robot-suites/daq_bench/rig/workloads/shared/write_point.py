"""One point of a scan measured with `daqwriter write`, in the form of a fio point, so that both can share a figure.

The part of the file that is written has been written once before (condition overwrite). daqwriter has no ramp of its own:
the first `ramp_s` are left out of the throughput and its samples, and are part of latency and CPU time, whose documents say so."""

from __future__ import annotations

import statistics
from typing import Any

from daq_bench.bench_model.base.units import binary_label
from daq_bench.bench_model.documents.results import WriteLatency, WritePoint
from daq_bench.bench_model.documents.tools.synthetic import WorkingThread, Write, WriteSeries
from daq_bench.bench_model.workloads.plan import DEVICE_SHARE_MIN
from daq_bench.rig.workloads.shared.site import Site, unless_failed

SAMPLE_S = 0.25
RUNTIME_SHARE_MIN = 0.97  # a point that ran for less than this share of its time is masked
WRITE_BYTES_PER_S_MIN = 20e6  # slower than any drive that one would qualify: bounds the wait


def version_of(site: Site) -> str:
    return site.machine.run([site.daqwriter, "--version"], timeout_s=20).check("daqwriter").stdout.strip()


def measure_write(site: Site, block_bytes: int, threads: int, parameters: dict[str, Any], name: str) -> WritePoint:
    """Writes for `ramp_s` + `seconds_per_point` s. Raises BenchError when daqwriter itself breaks."""
    seconds, ramp_s = parameters["seconds_per_point"], parameters["ramp_s"]
    span = parameters["file_size"] // (block_bytes * threads) * block_bytes * threads
    target = f"{name}.bin"
    options = [
        *site.daqwriter_target(target),
        f"--block-size={block_bytes}",
        f"--threads={threads}",
        f"--io-depth={parameters['io_depth']}",
        f"--duration={seconds + ramp_s:g}",
        f"--span={span}",
        "--condition=overwrite",
        f"--interval={SAMPLE_S:g}",
    ]
    before = site.device_written_bytes()
    with site.removed_afterwards(target):
        timeout_s = 60 + 5 * (seconds + ramp_s) + span / WRITE_BYTES_PER_S_MIN
        said = site.run_daqwriter("write", options, name, Write, timeout_s)
    unless_failed(said, f"daqwriter write at block size {binary_label(block_bytes)}")
    return write_point(said, seconds, ramp_s, site.device_written_bytes(since=before))


def write_point(said: Write, seconds: float, ramp_s: float, device_bytes: int | None) -> WritePoint:
    """Returns a point from daqwriter's answer. `device_bytes` includes the preparation's writing: the span, once."""
    samples, written, runtime_s = _after_ramp(said.series, ramp_s)
    block_bytes = said.parameters.block_bytes
    expected = said.written_bytes + said.parameters.span_bytes
    reason = why_masked("daqwriter", runtime_s, seconds, expected, device_bytes)
    latency = said.latency_us
    shares = [_percent_of_time(thread) for thread in said.threads]
    return WritePoint(
        block_bytes=block_bytes,
        throughput_bytes_per_s=written / runtime_s if runtime_s else 0.0,
        iops=written / runtime_s / block_bytes if runtime_s else 0.0,
        bytes_written=said.written_bytes,
        runtime_s=runtime_s,
        throughput_bytes_per_s_samples=samples,
        latency_us=WriteLatency(latency.p50, latency.p99, latency.p99_9, latency.max, latency.mean),
        cpu_user_percent=statistics.fmean(user for user, _ in shares),
        cpu_system_percent=statistics.fmean(system for _, system in shares),
        device_bytes_written=device_bytes,
        admissible=reason is None,
        reason=reason,
    )


def why_masked(tool: str, runtime_s: float, seconds: float, said_bytes: float, device_bytes: int | None) -> str | None:
    """Why a point of a scan does not count; None when it does."""
    if runtime_s < RUNTIME_SHARE_MIN * seconds:
        return f"ran for {runtime_s:.2f} s of {seconds:g} s"
    if device_bytes is not None and device_bytes < DEVICE_SHARE_MIN * said_bytes:
        return f"the device counted {device_bytes} B of the {said_bytes} B that {tool} says it wrote"
    return None


def _percent_of_time(thread: WorkingThread) -> tuple[float, float]:
    """User and system CPU time of a thread in percent of the time that it ran."""
    if not thread.end_s:
        return 0.0, 0.0
    return 100 * thread.user_s / thread.end_s, 100 * thread.system_s / thread.end_s


def _after_ramp(series: WriteSeries, ramp_s: float) -> tuple[list[float], int, float]:
    """(samples in B/s, bytes, s) of the intervals that begin after the ramp; a last interval of under half the usual
    length, which is the drain, counts for the mean and is no sample."""
    samples: list[float] = []
    total, since, start = 0, 0.0, None
    for end, written in zip(series.t_s, series.written_bytes, strict=True):
        begin, since = since, end
        # The clock trembles: an interval that begins a little before the ramp's end is taken whole.
        if begin < ramp_s - SAMPLE_S / 2:
            continue
        start = begin if start is None else start
        total += written
        if end - begin >= SAMPLE_S / 2:
            samples.append(written / (end - begin))
    return samples, total, since - start if start is not None else 0.0
