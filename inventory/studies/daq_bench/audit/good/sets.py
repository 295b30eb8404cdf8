"""A good comparison: every set of drives does more than a readout unit demands, in every round."""

from __future__ import annotations

from dataclasses import replace

from daq_bench.audit.good.case import INVENTORY, RATE, Case

from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.profiles.candidates import Candidate, Target, load_candidate
from daq_bench.bench_model.workloads.raid_vs_3dxp import analysis as raid_comparison
from daq_bench.rig.workloads.raid_vs_3dxp import workload as raid_vs_3dxp
from daq_bench.rig.workloads.raid_vs_3dxp.visit import paced_demand

START_S, IDLE_S, PAUSE_S = 1_800_000_000.0, 30.0, 5.0


def documents(case: Case) -> dict[str, Document]:
    own = case.plan("raid_vs_3dxp").parameters
    names = [own["reference"], *own["sets"]]
    described = {name: _target(case, name, number) for number, name in enumerate(names)}
    rounds: list[Document] = []
    at_s = START_S
    for group, name in enumerate(own["sets"], start=1):
        for turn in range(1, own["rounds"] + 1):
            idle = {"begin_s": at_s, "end_s": at_s + IDLE_S}
            at_s += IDLE_S
            visits = []
            for position, target in enumerate(raid_vs_3dxp.order_of([own["reference"], name], turn)):
                visits.append(
                    {
                        "target": target,
                        "position": position,
                        **_visit(case, described[target]["drives"][0]["name"], at_s),
                    }
                )
                at_s = visits[-1]["paced"]["end_s"] + PAUSE_S
            rounds.append(
                {"group": group, "round": turn, "reference_first": turn % 2 == 1, "idle": idle, "visits": visits}
            )
    found = raid_vs_3dxp.document(own, described, rounds)
    watts = [
        (part["begin_s"] + second, 280.0 if part is not one["idle"] else 250.0)
        for one in rounds
        for part in (one["idle"], *(visit["write"] for visit in one["visits"]))
        for second in range(max(1, int(part["end_s"] - part["begin_s"])))
    ]
    made = raid_comparison.document(found, _candidate(names), {}, watts, [])
    return {"results/raid_vs_3dxp.json": found, "results/raid_comparison.json": made}


def _candidate(names: list[str]) -> Candidate:
    """A server that has these targets, and about which the inventory says nothing more."""
    shipped = load_candidate(INVENTORY / "lab.yml", "this-machine")
    targets: tuple[Target, ...] = tuple(replace(shipped.target, name=name, declared={}) for name in names)
    return replace(shipped, targets=targets)


def _target(case: Case, name: str, number: int) -> Document:
    kind = "filesystem" if "filesystem" in case.profile.conditions.target_kinds else "scratch-file"
    drive = {"name": f"nvme{number}n1", "model": "Imaginary 9000", "serial": f"IMG{number}", "size_bytes": 4 * 10**12}
    return {
        "name": name,
        "kind": kind,
        "directory": f"/srv/{name}",
        "path": f"/srv/{name}/run",
        "filesystem": "xfs",
        "device": {"name": drive["name"], "size_bytes": drive["size_bytes"], "members": []},
        "drives": [drive],
        "layout": {"drives": [drive["serial"]], "destroy": True, "filesystem": "xfs"},
        "tuning_wrong": [],
    }


def _visit(case: Case, drive: str, at_s: float) -> Document:
    own = case.plan("raid_vs_3dxp").parameters
    demand, size = paced_demand(own), own["write_size"]
    samples = case.series(case.around(1.02 * RATE), 80)
    rate = sum(samples) / len(samples)
    ended_s = at_s + size / rate
    count = int(demand.record_bytes / demand.superchunk_bytes)
    us = {"p50": 1e4, "p90": 2e4, "p99": 4e4, "p99_9": 8e4, "p99_99": 1e5}
    latency = {**{key: one if raid_comparison.is_given(key, count) else None for key, one in us.items()}, "max": 2e5}
    sound = {"failed": False, "admissible": True, "reason": None}
    return {
        "write": {
            "begin_s": at_s,
            "end_s": ended_s,
            "bytes_written": size,
            "throughput_bytes_per_s": rate,
            "throughput_bytes_per_s_samples": samples,
            "latency_us": {"p50": 1e3, "p99": 2e3, "max": 4e3},
            "process_cpu_s": 3.0,
            "machine_kernel_cpu_s": 0.2 * size / 1e9,
            "machine_cpu_s": 10.0,
            "machine_interval_s": ended_s - at_s,
            "md_threads_cpu_s": {},
            "device_bytes_written": {drive: size},
            **sound,
        },
        "paced": {
            "begin_s": ended_s,
            "end_s": ended_s + demand.duration_s + 0.1,
            "offered_bytes_per_s": demand.offered_bytes_per_s,
            "achieved_fraction": 1.0,
            "offered_superchunks": count,
            "lost_superchunks": 0,
            "busy_episodes": 0,
            "latency_us": latency,
            **sound,
        },
    }
