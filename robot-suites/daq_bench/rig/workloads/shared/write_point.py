"""One point of a scan of sequential writes, with fio or with `daqwriter write`, in one form, so that both can share a figure."""

from __future__ import annotations

import statistics

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.units import binary_label
from daq_bench.bench_model.documents.results import WriteLatency, WritePoint
from daq_bench.bench_model.documents.tools.synthetic import WorkingThread, Write
from daq_bench.bench_model.workloads.scan import SAMPLE_S, why_masked
from daq_bench.rig.workloads.shared import fio
from daq_bench.rig.workloads.shared.scan import FIO, At, Parameters, after_ramp, samples_of
from daq_bench.rig.workloads.shared.site import Site


def measure_write(
    site: Site, tool: str, file: str, block_bytes: int, own: Parameters, name: str, threads: int = 1
) -> WritePoint:
    """Measures a point. `file`: of fio on the target; daqwriter writes one of its own. `name`: of its output, which no other point of the
    run has."""
    size = binary_label(block_bytes)
    if tool == FIO:
        at = At(site, own, file, f"fio-{name}", f"fio at block size {size}", site.device_written_bytes)
        part = own["file_size"] // threads // block_bytes * block_bytes
        values = {"BLOCK_BYTES": block_bytes, "SIZE_BYTES": part, "IO_DEPTH": own["io_depth"]}
        job = ("block-scan", values, "_bw.1.log") if threads == 1 else ("thread-scan", {**values, "THREADS": threads})
        output, log, device_bytes = at.with_fio(*job)
        return parse_point(output, block_bytes, own["seconds_per_point"], log, device_bytes)
    name = f"daqwriter-write-{name}"
    at = At(site, own, f"{name}.bin", name, f"daqwriter write at block size {size}", site.device_written_bytes)
    options = [f"--block-size={block_bytes}", f"--threads={threads}", f"--io-depth={own['io_depth']}"]
    with site.removed_afterwards(at.file):
        said, device_bytes = at.with_daqwriter(
            "write", Write, options, block_bytes * threads, ["--condition=overwrite"]
        )
    return write_point(said, own["seconds_per_point"], own["ramp_s"], device_bytes)


def parse_point(
    output: str, block_bytes: int, seconds: float, bandwidth_log: str, device_bytes: int | None
) -> WritePoint:
    """A point from fio's JSON and its bandwidth log. Raises BenchError for fio's errors and for no writes."""
    what = f"block size {block_bytes} B"
    with fio.readable(what):
        job = fio.document_of(output, what)["jobs"][0]
        write = {name: fio.number(job["write"], name) for name in ("io_bytes", "runtime", "bw_bytes", "iops")}
        if job["error"] or not write["io_bytes"]:
            raise BenchError(f"fio at {what} ended with error {str(job['error'])[:40]} after {write['io_bytes']} B")
        latency, percentiles = job["write"]["lat_ns"], fio.percentiles_us(job["write"]["lat_ns"])
        runtime_s = write["runtime"] / 1000
        threads = int(job.get("job options", {}).get("numjobs", 0))
        samples = fio.bandwidth_samples(bandwidth_log, SAMPLE_S * 1000, write["runtime"], write["io_bytes"], threads)
        reason = why_masked(runtime_s, seconds, samples, "fio says it wrote", write["io_bytes"], device_bytes)
        return WritePoint(
            block_bytes=block_bytes,
            throughput_bytes_per_s=float(write["bw_bytes"]),
            iops=float(write["iops"]),
            bytes_written=fio.whole(job["write"], "io_bytes"),
            runtime_s=runtime_s,
            throughput_bytes_per_s_samples=samples,
            latency_us=WriteLatency(
                p50=percentiles[50.0],
                p99=percentiles[99.0],
                p99_9=percentiles[99.9],
                max=fio.number(latency, "max") / 1000,
                mean=fio.number(latency, "mean") / 1000,
            ),
            cpu_user_percent=float(fio.number(job, "usr_cpu")),
            cpu_system_percent=float(fio.number(job, "sys_cpu")),
            device_bytes_written=device_bytes,
            admissible=reason is None,
            reason=reason,
        )


def write_point(said: Write, seconds: float, ramp_s: float, device_bytes: int | None) -> WritePoint:
    """Returns a point from daqwriter's answer. `device_bytes` includes the preparation's writing: the span, once."""
    intervals = after_ramp(said.series.t_s, said.series.written_bytes, ramp_s)
    written = sum(count for _, _, count in intervals)
    runtime_s = intervals[-1][1] - intervals[0][0] if intervals else 0.0
    block_bytes = said.parameters.block_bytes
    expected = said.written_bytes + said.parameters.span_bytes
    samples = samples_of(intervals)
    reason = why_masked(runtime_s, seconds, samples, "daqwriter says it wrote", expected, device_bytes)
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


def _percent_of_time(thread: WorkingThread) -> tuple[float, float]:
    """User and system CPU time of a thread in percent of the time that it ran."""
    if not thread.end_s:
        return 0.0, 0.0
    return 100 * thread.user_s / thread.end_s, 100 * thread.system_s / thread.end_s
