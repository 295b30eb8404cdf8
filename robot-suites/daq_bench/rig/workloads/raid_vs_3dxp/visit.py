"""One visit of the comparison: one target's work in one round, a write at full speed, then a paced record.

The throughput is that of `daqwriter write` at the burst's block size, not of an unpaced MiniDAQ: no checksum and no copy stand
between the drive and the figure, so that neither bounds a fast set, and the CPU time is that of the I/O path alone, in which
the RAID's own cost is the difference to the single drive. Latencies are those of a paced MiniDAQ: each superchunk is timed from
its *intended* arrival, at the same offered rate for every target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.documents.struct import moment
from daq_bench.bench_model.documents.tools.minidaq import Minidaq
from daq_bench.bench_model.documents.tools.synthetic import Write, WriteSeries
from daq_bench.bench_model.workloads.plan import DEVICE_SHARE_MIN
from daq_bench.bench_model.workloads.raid_vs_3dxp.analysis import BELOW, is_given
from daq_bench.rig.candidate.facilities import OpenTarget
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.site import Said, daqwriter_answer, minidaq_options

SLOWEST_BYTES_PER_S = 2e6  # bounds the wait for a set that hardly moves
DRAIN_S_MAX = 600.0
SOURCE_ACHIEVED_MIN = 0.99  # [P] as bench_model.evidence.admissibility asks of a record's source


@dataclass(frozen=True)
class VisitPlan:
    """The common values of all visits. `work` is on the candidate, `raw` in the bundle."""

    machine: Machine
    daqwriter: Path
    parameters: dict[str, Any]
    seed: int
    work: Path
    raw: Path
    line_protocol: Path
    tags: dict[str, str]


def paced_demand(parameters: dict[str, Any]) -> Demand:
    """The load that every target is offered while latencies are taken."""
    paced = parameters["paced"]
    return Demand.of(paced, paced["share"], paced["seconds"])


def write_arguments(plan: VisitPlan, file: Path) -> list[str]:
    parameters = plan.parameters
    return [
        "write",
        f"--target={file}",
        f"--bytes={parameters['write_size']}",
        f"--block-size={parameters['block_size']}",
        f"--threads={parameters['threads']}",
        f"--io-depth={parameters['io_depth']}",
        "--condition=fresh",
    ]


def paced_arguments(plan: VisitPlan, file: Path) -> list[str]:
    paced = plan.parameters["paced"]
    options = minidaq_options({**plan.parameters, **paced}, paced["share"])
    return ["minidaq", f"--target={file}", f"--duration={paced['seconds']:g}", *options]


def visit(plan: VisitPlan, target: OpenTarget, name: str, seed: int) -> dict[str, Any]:
    """Both measurements of one visit; `name` goes into the raw files' names. Raises BenchError when daqwriter itself breaks."""
    before = counters(plan.machine, target)
    size = plan.parameters["write_size"]
    write = _run(plan, target, Write, f"{name}-write", write_arguments, seed, 120 + size / SLOWEST_BYTES_PER_S)
    after = counters(plan.machine, target)
    paced = _run(
        plan, target, Minidaq, f"{name}-paced", paced_arguments, seed, plan.parameters["paced"]["seconds"] + DRAIN_S_MAX
    )
    return {"write": write_document(write, before, after), "paced": paced_document(paced)}


def counters(machine: Machine, target: OpenTarget) -> dict[str, Any]:
    """Returns the candidate's counters so far (on_candidate/reading/load_counters.py)."""
    array = (
        ["--array", target.device]
        if target.device and target.document.device and target.document.device.members
        else []
    )
    found: dict[str, Any] = machine.call("load_counters", *array, *target.drives)
    return found


def _run(
    plan: VisitPlan, target: OpenTarget, kind: type[Said], name: str, arguments: Any, seed: int, timeout_s: float
) -> Said:
    """daqwriter's answer to one command on a file that is gone afterwards."""
    file = target.scratch / "raid-vs-3dxp.daq"
    words = arguments(plan, file)
    tags = [f"--tag={key}={value}" for key, value in plan.tags.items()]
    json_file = plan.work / f"{name}.json"
    argv: list[str | Path] = [
        plan.daqwriter,
        *words,
        f"--seed={seed}",
        f"--json={json_file}",
        f"--line-protocol={plan.line_protocol}",
        *tags,
    ]
    try:
        completed = plan.machine.run(argv, timeout_s=timeout_s)
    finally:
        plan.machine.remove(file)
    what = f"daqwriter {words[0]} on {target.name}"
    return daqwriter_answer(plan.machine, completed, what, plan.work, plan.raw, name, kind)


def _window(found: Minidaq | Write, length_s: float) -> dict[str, float]:
    """The load's own interval by the candidate's clock, s since 1970; `started_utc` is from before the preparation."""
    started = moment(found.started_utc).timestamp() + found.time.prepare_s
    return {"begin_s": started, "end_s": started + length_s}


def write_document(found: Write, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """`write` of a visit. `admissible` false: the figure is not drawn, and `reason` says why."""
    written = found.written_bytes
    device = {name: after["written_bytes"][name] - before["written_bytes"][name] for name in after["written_bytes"]}
    threads = {name: value - before["md_threads_s"].get(name, 0.0) for name, value in after["md_threads_s"].items()}
    reason = None
    if found.status != "complete":
        reason = f"daqwriter's write {found.status} after {decimal_label(written)}: {found.error}"
    elif device and sum(device.values()) < DEVICE_SHARE_MIN * written:
        reason = f"the drives counted {sum(device.values())} B of the {written} B that were written"
    elapsed = after["clock_s"] - before["clock_s"]
    return {
        **_window(found, found.time.write_s + found.time.flush_s),
        "bytes_written": written,
        # With the flush: what a volatile cache still holds is not written yet.
        "throughput_bytes_per_s": found.bytes_per_s_with_flush,
        "throughput_bytes_per_s_samples": samples(found.series),
        "latency_us": {"p50": found.latency_us.p50, "p99": found.latency_us.p99, "max": found.latency_us.max},
        "process_cpu_s": found.cpu.user_s + found.cpu.system_s,
        "machine_kernel_cpu_s": after["kernel_cpu_s"] - before["kernel_cpu_s"],
        "machine_cpu_s": after["total_cpu_s"] - before["total_cpu_s"],
        "machine_interval_s": elapsed,
        "md_threads_cpu_s": threads,
        "device_bytes_written": device,
        "failed": found.status == "failed",
        "admissible": reason is None,
        "reason": reason,
        **({"errno": found.errno} if found.errno else {}),
    }


def samples(series: WriteSeries) -> list[float]:
    """Throughput of each whole interval, B/s; the last one, which is cut short, is left out."""
    times = [0.0, *series.t_s]
    rates = [
        size / (end - begin)
        for size, begin, end in zip(series.written_bytes, times, times[1:], strict=False)
        if end > begin
    ]
    return rates[:-1] if len(rates) > 1 else rates


def paced_document(found: Minidaq) -> dict[str, Any]:
    """`paced` of a visit. A percentile with too few values beyond it is null."""
    counts, latency = found.superchunks, found.latency_us
    achieved = found.source.achieved_fraction
    reason = None
    if found.status != "complete":
        reason = f"the paced record {found.status}: {found.error}"
    elif achieved < SOURCE_ACHIEVED_MIN:
        reason = f"the source offered only {achieved:.1%} of the superchunks that were due"
    elif counts.lost:
        reason = f"{counts.lost} of {counts.offered} superchunks were lost: the set cannot carry the common rate"
    return {
        **_window(found, found.time.total_s),
        "offered_bytes_per_s": found.offered_bytes_per_s,
        "achieved_fraction": achieved,
        "offered_superchunks": counts.offered,
        "lost_superchunks": counts.lost,
        "busy_episodes": found.busy.count,
        "latency_us": {
            **{key: getattr(latency, key) if is_given(key, latency.count) else None for key in BELOW},
            "max": latency.max,
        },
        "failed": found.status == "failed",
        "admissible": reason is None,
        "reason": reason,
        **({"errno": found.errno} if found.errno else {}),
    }
