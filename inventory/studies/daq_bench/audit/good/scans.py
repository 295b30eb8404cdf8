"""Good scans: block sizes, threads, request sizes, and the ladder of loads."""

from __future__ import annotations

from typing import Any

from daq_bench.audit.good.case import Case
from daq_bench.audit.good.record import minidaq as minidaq_record
from msgspec import structs

from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.documents.results import WriteLatency, WritePoint
from daq_bench.bench_model.documents.struct import Document, as_document, read
from daq_bench.bench_model.documents.tools.daqwriter import Latency
from daq_bench.bench_model.documents.tools.minidaq import Minidaq, MinidaqSearch, Trial, Trigger
from daq_bench.bench_model.workloads import read_scan as reads
from daq_bench.bench_model.workloads import thread_scan as threads
from daq_bench.bench_model.workloads.scan import SAMPLE_S
from daq_bench.rig.workloads import block_scan as of_blocks
from daq_bench.rig.workloads import latency_under_load as ladder
from daq_bench.rig.workloads import minidaq_scan as minidaq
from daq_bench.simulation.tools.daqwriter import TO_DURABLE, latency


def point(case: Case, parameters: dict[str, Any], block_bytes: int, rate: float) -> WritePoint:
    """One point that ran for its whole time, with a sample of 250 ms each."""
    seconds = float(parameters["seconds_per_point"])
    samples = case.series(rate, int(seconds * 4))
    written = int(rate * seconds)
    median_us = block_bytes / rate * 1e6 * parameters["io_depth"]
    return WritePoint(
        block_bytes=block_bytes,
        throughput_bytes_per_s=sum(samples) / len(samples),
        iops=rate / block_bytes,
        bytes_written=written,
        runtime_s=seconds,
        throughput_bytes_per_s_samples=samples,
        latency_us=WriteLatency(
            p50=median_us, p99=2 * median_us, p99_9=3 * median_us, max=4 * median_us, mean=median_us
        ),
        cpu_user_percent=5.0,
        cpu_system_percent=10.0,
        device_bytes_written=written,
        admissible=True,
        reason=None,
    )


def _rate(case: Case, block_bytes: int, number: int = 1) -> float:
    """A rate that rises with block size and threads, and levels out."""
    return case.rate * min(1.0, block_bytes * number / 2**20)


def block_scan(case: Case) -> dict[str, Document]:
    parameters = case.plan("block_scan").parameters
    scans = []
    for tool in parameters.get("tools", ["fio"]):
        points = [point(case, parameters, size, _rate(case, size)) for size in parameters["block_sizes"]]
        seconds = parameters.get("confirm", {}).get("seconds_per_repetition", 0)
        longer = {**parameters, "seconds_per_point": seconds}
        again = [
            of_blocks.repetition_of(point(case, longer, size, case.around(_rate(case, size))), number)
            for number, size in of_blocks.turns(parameters)
        ]
        scans.append(of_blocks.document(f"{tool}-1", parameters, points, again, tool))
    return {"results/block_scan.json": {**scans[0], "others": scans[1:]}}


def thread_scan(case: Case) -> dict[str, Document]:
    parameters = case.plan("thread_scan").parameters
    scans = []
    for tool in parameters["tools"]:
        points = [
            threads.ThreadPoint(
                threads=number, **structs.asdict(point(case, parameters, size, _rate(case, size, number)))
            )
            for size in parameters["block_sizes"]
            for number in parameters["threads"]
        ]
        scans.append(threads.scan_of(tool, f"{tool}-1", "overwritten", points))
    return {"results/thread_scan.json": threads.result(parameters, SAMPLE_S, scans)}


def minidaq_scan(case: Case) -> dict[str, Document]:
    load = minidaq.Load(case.plan("minidaq_scan").parameters, case.scenario.scale)
    turns = minidaq.turns(load.parameters, case.scenario.repetitions)
    points = [{"repetition": number, **_request(case, load, size)} for number, size in turns]
    return {"results/minidaq_scan.json": minidaq.document(load, points)}


def _request(case: Case, load: minidaq.Load, size: int) -> Document:
    """A point that stores all that the links deliver; synthetic writes could do a little more."""
    seconds, rate = int(load.parameters["seconds_per_point"]), load.bytes_per_s * 0.999
    own, counts = load.parameters, [int(rate)] * seconds
    trial = Trial(1.0, rate, rate, 1.0, lost=0, vetoed=0, busy_count=0, stood=True)
    asked = {
        "schema_version": 1, "tool": "daqwriter", "version": "0.1.0", "error": None,
        "command": "minidaq-search", "status": "complete", "mode": "triggered", "data_path": "copy",
        "applications": own["applications"], "links": own["links"], "request_bytes": size, "duration_s": own["seconds_per_trial"],
        "unpaced_bytes_per_s": rate, "asked_bytes_per_s": rate, "highest_bytes_per_s": rate,
        "highest_trigger_rate_hz": rate / size, "lowest_refused_bytes_per_s": None, "trials": [as_document(trial)] * 4,
    }  # fmt: skip
    search = read(asked, MinidaqSearch, "a search")
    demand = Demand.of(own, load.scale, seconds)
    record = read(minidaq_record(case, demand, own, 1)[0], Minidaq, "a record")
    run = structs.replace(
        record,
        trigger=Trigger(
            size, size, 1, rate / size, decisions=1, vetoed=0, unbuffered_superchunks=0, achieved_rate_hz=1.0
        ),
        stored_bytes_per_s=rate,
        series=structs.replace(
            record.series, t_s=[float(second + 1) for second in range(seconds)], stored_bytes=counts
        ),
        cpu=structs.replace(record.cpu, copy_share=0.08, seconds_per_gb=0.05),
    )
    synthetic = {
        "block_bytes": -(-size // 4096) * 4096,
        "threads": load.parameters["synthetic_threads"],
        "throughput_bytes_per_s": load.bytes_per_s * 1.02,
        "throughput_bytes_per_s_samples": case.series(load.bytes_per_s * 1.02, seconds),
        "reason": None,
    }
    return minidaq.point(load, size, search, [run], synthetic, True)


def latency_under_load(case: Case) -> dict[str, Document]:
    own, scale = case.plan("latency_under_load").parameters, case.scenario.scale
    points = [_rung(case, own, float(factor), ladder.demand_of(own, scale, factor)) for factor in own["load_factors"]]
    return {"results/latency_under_load.json": ladder.document(own, scale, points)}


def _rung(case: Case, own: Document, factor: float, demand: Demand) -> Document:
    """A rung that stores everything up to the demand; beyond it the rings fill, and superchunks are lost."""
    record = read(minidaq_record(case, demand, own, 1)[0], Minidaq, "a record")
    if factor > 1:
        counts = record.superchunks
        lost = counts.offered // 100
        record = structs.replace(
            record,
            superchunks=structs.replace(counts, lost=lost, stored=counts.offered - lost),
            stored_bytes_per_s=0.99 * record.offered_bytes_per_s,
            busy=structs.replace(record.busy, count=1),
            latency_us=read(latency(3000.0, counts.offered - lost, TO_DURABLE), Latency, "a latency"),
        )
    return ladder.point(factor, demand, record)


def read_scan(case: Case) -> dict[str, Document]:
    own = case.plan("read_scan").parameters
    seconds = float(own["seconds_per_point"])

    def point(key: reads.Key) -> reads.Point:
        rate = case.around(10e9 if key[0] == "sequential" else 2e5 * key[1])
        read = round(rate * seconds)
        latency = reads.Latency(60.0, 50.0, 90.0, 200.0, 900.0)
        samples = case.series(rate, 80)
        return reads.point_of(key, seconds, read, seconds, samples, latency, read)

    points = [point(key) for key in reads.grid(own)]
    again = [point(key) for key in reads.chosen(points) for _ in range(case.scenario.repetitions)]
    return {"results/read_scan.json": reads.result(own, 0.25, [reads.Scan("fio", "fio-3.36", points)], again)}
