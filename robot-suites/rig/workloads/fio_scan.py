"""The block-size scan: sequential O_DIRECT writes with fio and, where asked for, daqwriter; one point per block size
(DUNE paper, figure 1). Its fio points also serve the thread scan.

fio's file is written once before the first point, so that every point overwrites allocated blocks and none pays for the
file system's allocation. Evidence that a point's bytes reached the device is the device's own write counter."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_model.errors import BenchError, RefusedError
from bench_model.plateau import LARGE_BLOCK_BYTES, RULE, find_plateau, lowest_of_large_blocks
from bench_model.profiles import Candidate, Scenario
from bench_model.units import binary_label, decimal_label
from rig import fio
from rig.host import Survey
from rig.machine import Machine
from rig.workloads.base import Need, Report, Workload
from rig.workloads.site import Site
from rig.workloads.write_point import measure_write, version_of

SAMPLE_MS = 250  # averaging window of the throughput samples that the report's spread comes from
RUNTIME_SHARE_MIN = 0.97  # a point that ran for less than this share of its time is masked
DEVICE_SHARE_MIN = 0.95  # as is one whose bytes the device's own counter does not confirm
SECTOR_BYTES = 512  # unit of the counters in /sys/block/*/stat, whatever the device's block size

PLATEAU_METRICS = ("block_scan.plateau_throughput", "block_scan.plateau_block_size")
LARGE_BLOCK_METRIC = "block_scan.large_block_throughput"


@dataclass(frozen=True)
class Folders:
    """Where fio's logs go: `work` on the candidate, from where they are fetched into `raw` of the bundle."""

    work: Path
    raw: Path


def estimated_s(scenario: Scenario) -> float:
    """Expected duration of the scan in s, for the progress display: a point takes its time plus fio's start."""
    parameters = scenario.workloads["block_scan"]
    tools = _tools(parameters)
    per_point = parameters["seconds_per_point"] + parameters["ramp_s"] + 0.6
    writing_s = parameters["file_size"] / 2e9
    layouts = 1 + (len(parameters["block_sizes"]) if "daqwriter" in tools else 0)
    return float(per_point * len(parameters["block_sizes"]) * len(tools) + layouts * writing_s)


def _tools(parameters: dict[str, Any]) -> list[str]:
    """fio first: its scan is the one that the document's own figures are of."""
    return list(parameters.get("tools", ["fio"]))


def _need(scenario: Scenario) -> Need:
    size = scenario.workloads["block_scan"]["file_size"]
    return Need(size, f"the block scan's file of {decimal_label(size)}")


def check_sizes(scenario: Scenario, workload: str, threads: int = 1) -> None:
    """Raises RefusedError when a thread's part of the file cannot hold a block of the largest size."""
    parameters = scenario.workloads[workload]
    largest, part = max(parameters["block_sizes"]), parameters["file_size"] // threads
    if largest > part:
        parts = f" shared out among {threads} threads" if threads > 1 else ""
        raise RefusedError(
            f"{scenario.file}: workloads.{workload}.file_size: {parameters['file_size']} B{parts} hold no block of {largest} B. "
            f"Make it {largest * threads} B or more, or leave the largest block sizes out"
        )


def _check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    check_sizes(scenario, "block_scan")
    parameters = scenario.workloads["block_scan"]
    asked = [metric for metric in parameters["yields"] if metric.startswith("block_scan.daqwriter_")]
    if asked and "daqwriter" not in _tools(parameters):
        raise RefusedError(
            f"{scenario.file}: workloads.block_scan.yields: {asked[0]} needs daqwriter, which `tools` does not name. "
            "Write tools: [fio, daqwriter], or leave it out"
        )


WORKLOAD = Workload("block_scan", estimated_s, _need, check=_check)


def run_tools(site: Site, parameters: dict[str, Any], report: Report) -> dict[str, Any]:
    """results/block_scan.json: fio's scan, with those of the other tools that the scenario names in `others`."""
    tools = _tools(parameters)
    folders = Folders(site.work, site.raw)
    scan = run_scan(site.machine, parameters, site.scratch, folders, site.device, report)
    others = [_run_daqwriter(site, parameters, report)] if "daqwriter" in tools else []
    reasons = {
        name.replace("block_scan.", f"block_scan.{other['tool']}_"): why
        for other in others
        for name, why in other["reasons"].items()
    }
    return {**scan, "others": others, "reasons": scan["reasons"] | reasons}


def _run_daqwriter(site: Site, parameters: dict[str, Any], report: Report) -> dict[str, Any]:
    sizes, points = parameters["block_sizes"], []
    for step, block_bytes in enumerate(sizes, start=1):
        seconds = parameters["seconds_per_point"] + parameters["ramp_s"]
        report(f"block size {binary_label(block_bytes)} with daqwriter", step, len(sizes), seconds)
        points.append(measure_write(site, block_bytes, 1, parameters, f"daqwriter-write-{block_bytes}"))
    condition = "overwrite of a file that was written once before each point"
    return document(version_of(site), parameters, points, "daqwriter", condition)


def run_scan(
    machine: Machine, parameters: dict[str, Any], scratch: Path, folders: Folders, device: str | None, report: Report
) -> dict[str, Any]:
    """fio's scan: all points on a file in `scratch`. `report` gets (text, step, steps, seconds)."""
    version = machine.run(["fio", "--version"], timeout_s=20).check("fio").stdout.strip()
    sizes = parameters["block_sizes"]
    file = scratch / "block-scan.bin"
    with removed_afterwards(machine, file):
        report("laying out the scan's file", 0, len(sizes), parameters["file_size"] / 2e9)
        fio.lay_out(machine, file, parameters["file_size"])
        points = []
        for step, block_bytes in enumerate(sizes, start=1):
            seconds = parameters["seconds_per_point"] + parameters["ramp_s"]
            report(f"block size {binary_label(block_bytes)}", step, len(sizes), seconds)
            points.append(measure(machine, file, block_bytes, parameters, folders, device))
    return document(version, parameters, points)


def document(
    version: str,
    parameters: dict[str, Any],
    points: list[dict[str, Any]],
    tool: str = "fio",
    condition: str = "overwrite of a file that was written once before the scan",
) -> dict[str, Any]:
    """One tool's scan from its points; what it does not show is null, and `reasons` says why by metric.

    `throughput_bytes_per_s_samples` of `large_blocks` are those of the lowest point, whose mean is the value."""
    measured = [
        (point["block_bytes"], point["throughput_bytes_per_s"] if point["admissible"] else None) for point in points
    ]
    plateau = find_plateau([(size, rate) for size, rate in measured if rate is not None])
    lowest = lowest_of_large_blocks(measured)
    reasons: dict[str, str] = {}
    if plateau is None:
        reasons |= dict.fromkeys(
            PLATEAU_METRICS, "throughput does not level out within the scan, so there is no plateau"
        )
    if lowest is None:
        reasons[LARGE_BLOCK_METRIC] = "a block size of at least 8 MiB was not measured, or its point does not count"
    return {
        "schema_version": 1,
        "tool": tool,
        "tool_version": version,
        "io_depth": parameters["io_depth"],
        "threads": 1,
        "seconds_per_point": parameters["seconds_per_point"],
        "ramp_s": parameters["ramp_s"],
        "sample_s": SAMPLE_MS / 1000,
        "file_bytes": parameters["file_size"],
        "direct": True,
        "condition": condition,
        "points": points,
        "plateau": {
            "throughput_bytes_per_s": plateau.throughput_bytes_per_s if plateau else None,
            "from_block_bytes": plateau.from_block_bytes if plateau else None,
            "rule": RULE,
        },
        "large_blocks": {
            "throughput_bytes_per_s": lowest,
            "throughput_bytes_per_s_samples": _samples_of_lowest(points, lowest),
            "from_block_bytes": LARGE_BLOCK_BYTES,
        },
        "reasons": reasons,
    }


def _samples_of_lowest(points: list[dict[str, Any]], lowest: float | None) -> list[float]:
    large = [point for point in points if point["block_bytes"] >= LARGE_BLOCK_BYTES and point["admissible"]]
    return next((p["throughput_bytes_per_s_samples"] for p in large if p["throughput_bytes_per_s"] == lowest), [])


@contextmanager
def removed_afterwards(machine: Machine, file: Path) -> Iterator[None]:
    try:
        yield
    finally:
        machine.remove(file)


def fio_arguments(file: Path, block_bytes: int, parameters: dict[str, Any], log: Path, threads: int = 1) -> list[str]:
    """fio's command line for one point: closed loop, overwriting, each thread in its own part of the file.

    fio's default buffers are random and scrambled at each write, so that they neither compress nor deduplicate; refilling
    them would measure the random generator instead."""
    size = parameters["file_size"] // threads // block_bytes * block_bytes
    several = [
        f"--numjobs={threads}",
        "--thread",
        "--group_reporting",
        f"--offset_increment={size}",
        "--per_job_logs=0",
    ]
    return [
        *fio.writing(file),
        f"--name=bs-{block_bytes}",
        f"--bs={block_bytes}",
        f"--size={size}",
        f"--iodepth={parameters['io_depth']}",
        "--overwrite=1",
        "--time_based",
        f"--runtime={parameters['seconds_per_point']}s",
        f"--ramp_time={parameters['ramp_s']}s",
        "--lat_percentiles=1",
        "--percentile_list=50:99:99.9",
        f"--write_bw_log={log}",
        f"--log_avg_msec={SAMPLE_MS}",
        *(several if threads > 1 else []),
    ]


def measure(
    machine: Machine,
    file: Path,
    block_bytes: int,
    parameters: dict[str, Any],
    folders: Folders,
    device: str | None,
    threads: int = 1,
) -> dict[str, Any]:
    """One point with fio; its output is kept in `folders.raw`."""
    name = f"fio-{block_bytes}" if threads == 1 else f"fio-{block_bytes}-{threads}-threads"
    log, logged = folders.work / name, f"{name}_bw.1.log" if threads == 1 else f"{name}_bw.log"
    argv = fio_arguments(file, block_bytes, parameters, log, threads)
    before = written_bytes(machine, device)
    timeout_s = 60 + 5 * (parameters["seconds_per_point"] + parameters["ramp_s"])
    completed = machine.run(argv, timeout_s=timeout_s).check(f"fio at block size {binary_label(block_bytes)}")
    after = written_bytes(machine, device)
    (folders.raw / f"{name}.json").write_text(completed.stdout, encoding="utf-8")
    bandwidth = folders.raw / logged
    machine.fetch(folders.work / logged, bandwidth)
    samples = parse_bandwidth_log(bandwidth.read_text(encoding="ascii"))
    device_bytes = after - before if after is not None and before is not None else None
    return parse_point(completed.stdout, block_bytes, parameters["seconds_per_point"], samples, device_bytes)


def written_bytes(machine: Machine, device: str | None) -> int | None:
    """Bytes that `device` has written since boot, by its own counter; None where no single device carries the target."""
    if device is None:
        return None
    fields = machine.read_text(Path(f"/sys/block/{device}/stat")).split()
    return int(fields[6]) * SECTOR_BYTES


def parse_bandwidth_log(text: str) -> list[float]:
    """Throughput samples in B/s; fio's bandwidth log is `time_ms, KiB/s, direction, ...`, one line per window.

    Several threads share a log, one after the other: time then starts again, and windows of the same number are summed."""
    threads: list[list[float]] = []
    before_ms = math.inf
    for fields in (line.split(",") for line in text.splitlines() if line.strip()):
        if float(fields[0]) <= before_ms:
            threads.append([])
        before_ms = float(fields[0])
        threads[-1].append(float(fields[1]) * 1024)
    return [sum(windows) for windows in zip(*threads, strict=False)]


def parse_point(
    output: str, block_bytes: int, seconds: float, samples: list[float], device_bytes: int | None
) -> dict[str, Any]:
    """One point of results/block_scan.json from fio's JSON. Raises BenchError when fio reports an error or no writes."""
    try:
        job = json.loads(output)["jobs"][0]
        write = job["write"]
        latency = write["lat_ns"]
    except (ValueError, KeyError, IndexError) as error:
        raise BenchError(
            f"fio's output at block size {block_bytes} B cannot be read ({error!r}); it is kept in results/raw"
        ) from None
    if job["error"] or not write["io_bytes"]:
        raise BenchError(
            f"fio at block size {block_bytes} B ended with error {job['error']} after {write['io_bytes']} B"
        )
    runtime_s = write["runtime"] / 1000
    reason = _why_masked(runtime_s, seconds, write["io_bytes"], device_bytes)
    percentiles = {float(key): value / 1000 for key, value in latency["percentile"].items()}
    return {
        "block_bytes": block_bytes,
        "throughput_bytes_per_s": write["bw_bytes"],
        "iops": write["iops"],
        "bytes_written": write["io_bytes"],
        "runtime_s": runtime_s,
        "throughput_bytes_per_s_samples": samples,
        "latency_us": {
            "p50": percentiles[50.0],
            "p99": percentiles[99.0],
            "p99_9": percentiles[99.9],
            "max": latency["max"] / 1000,
            "mean": latency["mean"] / 1000,
        },
        "cpu_user_percent": job["usr_cpu"],
        "cpu_system_percent": job["sys_cpu"],
        "device_bytes_written": device_bytes,
        "admissible": reason is None,
        "reason": reason,
    }


def _why_masked(runtime_s: float, seconds: float, io_bytes: int, device_bytes: int | None) -> str | None:
    if runtime_s < RUNTIME_SHARE_MIN * seconds:
        return f"ran for {runtime_s:.2f} s of {seconds:g} s"
    if device_bytes is not None and device_bytes < DEVICE_SHARE_MIN * io_bytes:
        return f"the device counted {device_bytes} B of the {io_bytes} B that fio says it wrote"
    return None
