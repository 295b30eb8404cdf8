"""The part of the bundle factory that writes events and line protocol. For tests only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from factory_knobs import RECORD_AT_S, SCAN_S, Knobs, ns, offered_rate, utc


def write_events(root: Path, knobs: Knobs) -> None:
    rows: list[tuple[float, str, str, str, dict[str, Any]]] = [
        (0.5, "phase", "identity", "comparing the candidate with the inventory", {"step": 1, "steps": 1}),
        (1.5, "phase", "block_scan", "blocks of 4 KiB", {"step": 1, "steps": 2}),
        (25.0, "phase", "block_scan", "blocks of 8 KiB", {"step": 2, "steps": 2}),
        (RECORD_AT_S - 2, "phase", "snb_record", "writing the record", {"step": 1, "steps": 2}),
        (
            RECORD_AT_S + 4,
            "telemetry",
            "telemetry_agent",
            "InfluxDB did not answer for 2.1 s; points wait in the spool",
            {"seconds": 2.1},
        ),
    ]
    if knobs.interrupted:
        rows.append((RECORD_AT_S + 9, "interruption", "rig", "Stopped by SIGTERM", {}))
    keys = ("time_utc", "kind", "source", "text", "data")
    lines = [json.dumps(dict(zip(keys, (utc(row[0]), *row[1:]), strict=True)), ensure_ascii=False) for row in rows]
    (root / "events.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_workload_lines(root: Path, record: dict[str, Any], knobs: Knobs) -> None:
    lines, offered, stored = [], 0, 0
    columns = zip(record["times"], record["offered"], record["stored"], record["backlog"], strict=True)
    for time, arrived, taken, waiting in columns:
        if knobs.interrupted and time > 9:
            break
        offered, stored = offered + arrived, stored + taken
        phase = "record" if time <= knobs.duration_s else "drain"
        lines.append(
            f"daqwriter,run=r,command=minidaq,phase={phase} offered_bytes={offered}i,stored_bytes={stored}i,backlog_bytes={waiting}i,"
            f"busy_count=0i,lost_superchunks=0i,elapsed_s={time},total_s={knobs.duration_s} {ns(RECORD_AT_S + time)}"
        )
    if not knobs.interrupted:
        end = RECORD_AT_S + record["times"][-1] + 1
        lines += [
            f"daqwriter,run=r,command=verify,phase=verify elapsed_s={step / 10},total_s=9.8 {ns(end + step / 10)}"
            for step in range(98)
        ]
    (root / "telemetry/workload.lp").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_points(root: Path, knobs: Knobs, rng: np.random.Generator, record: dict[str, Any]) -> None:
    lines, end = [], RECORD_AT_S + (9 if knobs.interrupted else record["times"][-1] + 12)
    for second in range(1, int(end)):
        writing = (
            2e9
            if second < SCAN_S
            else offered_rate(knobs)
            if RECORD_AT_S < second < RECORD_AT_S + knobs.duration_s
            else 1e5
        )
        rate = writing * float(rng.normal(1, 0.06))
        at = ns(second)
        lines.append(f"block_device,device=vda,serial=abc written_bytes_per_s={rate},write_ios={second}i {at}")
        lines.append(f'memory available_bytes=123i,note="a, b = c" {at}')
        for core in range(knobs.cores):
            user, system, wait = (float(value) for value in rng.uniform(0, 0.3, 3))
            lines.append(
                f"cpu,core={core} user_fraction={user},system_fraction={system},"
                f"iowait_fraction={wait},irq_fraction=0.01,softirq_fraction=0.02,steal_fraction=0.01 {at}"
            )
        if knobs.temperature:
            lines.append(
                f"temperature,chip=nvme,device=nvme0n1,sensor=hwmon1/temp1,label=Composite "
                f"temperature_degc={40 + 0.1 * second},warning_degc=77 {at}"
            )
    (root / "telemetry/points.lp").write_text("\n".join(lines) + "\n", encoding="utf-8")


def summary(knobs: Knobs) -> dict[str, Any]:
    def collector(name: str, status: str = "ok", detail: str | None = None) -> dict[str, Any]:
        return {
            "name": name,
            "period_s": 1.0,
            "status": status,
            "detail": detail,
            "points": 90 if status == "ok" else 0,
            "longest_gap_s": 1.02 if status == "ok" else 0.0,
        }

    heat = (
        collector("temperature")
        if knobs.temperature or knobs.outcome == "PASS"
        else collector("temperature", "unsupported", "no sensor in /sys/class/hwmon")
    )
    return {
        "schema_version": 1, "state": "finished", "points": {"collected": 1234, "spooled": 1234, "unspooled": 0, "delivered": 1230,
        "rejected": 0, "undelivered": 4},
        "spool": {"bytes": 123456, "torn_bytes": 0}, "cpu": {"percent_of_one_core": 0.31},
        "collectors": [collector("block_device"), collector("cpu"), heat],
    }  # fmt: skip


def account(told: dict[str, Any]) -> dict[str, Any]:
    """results/telemetry_account.json of the agent whose summary is `told`: nothing was lost."""
    rows = [
        {
            "name": one["name"], "status": one["status"], "expected_samples": one["points"], "collected_samples": one["points"],
            "missed_samples": 0, "points": one["points"], "reason": one["detail"],
        }
        for one in told["collectors"]
    ]  # fmt: skip
    counted = {"counted_utc": utc(171), "reached": True, "reason": None, "retention_s": None, "waiting": 0}
    whole = {"collector": None, "expected": None, "collected": 1234, "stored": 1234, "present": 1234, "differences": []}
    return {
        "schema_version": 1, "state": "finished", "clock_steps": [], "collectors": rows, "limits": [], "invalid": [],
        "influxdb": counted, "outages": [], "measurements": {}, "whole": whole,
        "sentence": "InfluxDB holds all of the bundle's 1234 points",
    }  # fmt: skip
