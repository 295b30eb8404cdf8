"""The part of the bundle factory that writes the verdict. For tests only."""

from __future__ import annotations

from typing import Any

from factory_knobs import LONG, NON_LATIN, REAL, Knobs, offered_rate

EXACT = "observation: the repetition itself, exact; it bounds no other repetition"


def _requirement(index: int, knobs: Knobs, record: dict[str, Any]) -> dict[str, Any]:
    minidaq = record["minidaq"]
    lost = minidaq["superchunks"]["lost"]
    rows = [
        (
            "No superchunk is lost during the record",
            "snb_record.lost_superchunks",
            "equal",
            0,
            0,
            "count",
            lost,
            "snb_record",
        ),
        (
            "The dataflow is never BUSY",
            "snb_record.busy_episodes",
            "equal",
            0,
            0,
            "count",
            minidaq["busy"]["count"],
            "snb_record",
        ),
        (
            "Every superchunk that was offered reads back once",
            "snb_record.verified_fraction",
            "equal",
            1,
            1,
            "1",
            0.99996 if lost else 1,
            "snb_record",
        ),
        (
            "The transient buffer that the record needed fits the server's RAM for it",
            "snb_record.transient_buffer_needed",
            "at_most",
            1.073741824,
            1.073741824,
            "GB",
            minidaq["transient_buffer"]["needed_bytes"] / 1e9,
            "snb_record",
        ),
        (
            "The drive stays below its own warning temperature (WCTEMP)",
            "snb_record.drive_temperature_headroom",
            "at_least",
            1,
            1,
            "degC",
            None,
            "snb_record",
        ),
        (
            "Sequential writing sustains the unit's real demand",
            "block_scan.plateau_throughput",
            "at_least",
            9.24288,
            9.24288 * knobs.scale,
            "GB/s",
            2.38,
            "block_scan",
        ),
        (
            "99.9 % of superchunks are on the drive within 1 s of their arrival",
            "snb_record.durable_latency_p99_9",
            "at_most",
            1000,
            1000,
            "ms",
            43.1,
            "snb_record",
        ),
        (
            "Parity with the Micron X100 in sequential writing",
            "block_scan.plateau_throughput",
            "at_least",
            8.5,
            8.5,
            "GiB/s",
            2.2165,
            "block_scan",
        ),
    ]
    text, metric, comparison, bound, scaled, unit, measured, workload = rows[index % len(rows)]
    margin = (
        None
        if measured is None
        else measured - scaled
        if comparison == "at_least"
        else scaled - measured
        if comparison == "at_most"
        else -abs(measured - scaled)
    )
    outcome = (
        "INADMISSIBLE" if margin is None or (knobs.scaled_down and margin >= 0) else "PASS" if margin >= 0 else "FAIL"
    )
    if index == 7 and outcome != "PASS":
        outcome = "INADMISSIBLE"
    if knobs.long_names:
        text += " " + LONG + " and a long explanation of what is meant" * 6
    if knobs.non_latin:
        text += " " + NON_LATIN
    return {
        "id": f"SNB-{index + 1:02d}", "text": text, "metric": metric, "comparison": comparison, "bound": bound, "unit": unit,
        "scaled_bound": scaled, "measured": measured, "n": 0 if measured is None else knobs.repetitions,
        "confidence_interval": [measured * 0.98, measured * 1.01] if index == 5 else None, "margin": margin,
        "confidence": 0.95 if index == 5 else None, "guard_band": 0.25 if index == 5 else 0,
        "interval_method": None if measured is None else "block bootstrap and cosine t, 80 samples, block 3.2" if index == 5
        else "none: 12 samples are too few: 50 are the least" if index == 7 else EXACT,
        "spread": None if measured is None else {"of": "samples", "count": 80, "min": measured * 0.9, "median": measured,
        "max": measured * 1.1, "sd": measured * 0.03} if index in (5, 7) else {"of": "repetitions", "count": 1, "min": measured,
        "median": measured, "max": measured, "sd": None},
        "decision": None if margin is None else "undecided" if index == 7 else "met" if margin >= 0 else "missed",
        "margin_percent": 100 * margin / abs(scaled) if margin is not None and scaled else None,
        "severity": "advisory" if index % len(rows) in (6, 7) else "mandatory", "statistic": "min", "outcome": outcome,
        "reason": "Not measured: no temperature sensor" if measured is None
        else "Undecided: 12 samples are too few: 50 are the least; a measurement about 4.2 times as long would decide"
        if index == 7 else "Met" if margin is not None and margin >= 0 else "Missed",
        "evidence": [f"results/{workload}.json"], "source": "section 5 of the paper",
    }  # fmt: skip


def verdict(knobs: Knobs, record: dict[str, Any]) -> dict[str, Any]:
    reasons = {
        "PASS": ["Every mandatory requirement is met by evidence at full scale"],
        "FAIL": ["SNB-01 No superchunk is lost during the record: measured 1234 count, bound = 0 count"],
        "ERROR": ["The telemetry agent stopped 12 s into the record"],
        "INADMISSIBLE": scaled_sentences(knobs),
    }[knobs.outcome]
    return {
        "schema_version": 1, "outcome": knobs.outcome, "reasons": reasons, "scale": knobs.scale,
        "declared_rehearsal": knobs.outcome == "INADMISSIBLE", "findings": [{"text": text, "invalidates": False,
        "evidence": ["run.json"]} for text in scaled_sentences(knobs)],
        "requirements": [_requirement(index, knobs, record) for index in range(knobs.requirements)],
    }  # fmt: skip


def scaled_sentences(knobs: Knobs) -> list[str]:
    if not knobs.scaled_down:
        return []
    return [
        f"The load is {knobs.scale:g} of one readout unit: {offered_rate(knobs) / 1e9:.4g} GB/s offered of {REAL / 1e9:.4g} GB/s",
        f"The record lasts {knobs.duration_s:g} s instead of 100 s",
        "The target is a scratch file on ext4, not the candidate's own storage set aside for the record",
    ]
