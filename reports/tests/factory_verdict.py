"""The part of the bundle factory that writes a run's profiles, and the verdict that the bench's own rules give. For tests only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from factory_knobs import LONG, NON_LATIN, Knobs, workloads

from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import as_document, read
from daq_bench.bench_model.evidence.admissibility import scaled_down
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.profiles.sizes import LEFT_OUT
from daq_bench.bench_model.verdict.judging import VERDICT, judge_bundle

SCAN, RECORD, HEAT = "results/block_scan.json", "results/snb_record.json", "results/drive_temperature.json"
HEADROOM = "snb_record.drive_temperature_headroom"
LARGE = "large_blocks.repetitions[]"
METRICS: dict[str, tuple[str, str, str, dict[str, str]]] = {  # unit, file, path, more
    "snb_record.lost_superchunks": ("count", RECORD, "repetitions[].minidaq.superchunks.lost", {}),
    "snb_record.busy_episodes": ("count", RECORD, "repetitions[].minidaq.busy.count", {}),
    "snb_record.verified_fraction": ("1", RECORD, "repetitions[].verified_fraction", {"nature": "observed"}),
    "snb_record.transient_buffer_needed": (
        "B", RECORD, "repetitions[].minidaq.transient_buffer.needed_bytes", {"nature": "observed"},
    ),
    HEADROOM: ("K", HEAT, "[headroom_degC]", {"nature": "observed"}),
    "block_scan.large_block_throughput": ("B/s", SCAN, f"{LARGE}.throughput_bytes_per_s", {
        "samples": f"{LARGE}.throughput_bytes_per_s_samples", "strata": f"{LARGE}.block_bytes",
    }),
    "snb_record.durable_latency_p99_9": ("us", RECORD, "repetitions[].minidaq.latency_us.p99_9", {"nature": "observed"}),
    "block_scan.plateau_throughput": ("B/s", SCAN, "[plateau.throughput_bytes_per_s]", {}),  # once: it decides nothing
}  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {"text": "No superchunk is lost during the record", "metric": "snb_record.lost_superchunks", "comparison": "equal", "bound": 0,
     "unit": "count"},
    {"text": "The dataflow is never BUSY", "metric": "snb_record.busy_episodes", "comparison": "equal", "bound": 0, "unit": "count",
     "severity": "advisory"},
    {"text": "Every superchunk that was offered reads back once", "metric": "snb_record.verified_fraction", "comparison": "equal",
     "bound": 1, "unit": "1"},
    {"text": "The transient buffer that the record needed fits the server's RAM for it",
     "metric": "snb_record.transient_buffer_needed", "comparison": "at_most", "bound": 1.073741824, "unit": "GB"},
    {"text": "The drive stays below its own warning temperature (WCTEMP)", "metric": HEADROOM, "comparison": "at_least", "bound": 1,
     "unit": "K"},
    {"text": "Sequential writing sustains the unit's real demand", "metric": "block_scan.large_block_throughput", "comparison": "at_least",
     "bound": 9.24288, "unit": "GB/s", "guard_band": 0.25, "scales_with_load": True},
    {"text": "99.9 % of superchunks are on the drive within 1 s of their arrival", "metric": "snb_record.durable_latency_p99_9",
     "comparison": "at_most", "bound": 1000, "unit": "ms", "severity": "advisory"},
    {"text": "Parity with the Micron X100 in sequential writing", "metric": "block_scan.plateau_throughput", "comparison": "at_least",
     "bound": 8.5, "unit": "GiB/s", "severity": "advisory"},
]  # fmt: skip


def write_profiles(root: Path, knobs: Knobs) -> None:
    """The run's definitions, in JSON, which is YAML too."""
    results = {
        name: {"description": name, "unit": unit, "file": file, "path": path, **more}
        for name, (unit, file, path, more) in METRICS.items()
    }
    _write(root / "profiles" / "metrics.yml", {"version": 1, "measurements": {}, "results": results})
    profile = {
        "id": "dune-snb", "title": "DUNE supernova burst buffer, one readout unit", "source": "the paper",
        "conditions": _conditions(knobs), "requirements": [_requirement(index, knobs) for index in range(knobs.requirements)],
    }  # fmt: skip
    _write(root / "profiles" / "requirements" / "dune-snb.yml", profile)


def _conditions(knobs: Knobs) -> dict[str, Any]:
    """Returns conditions of a profile that counts this run as whole, where the test asks for a PASS."""
    if knobs.outcome == "PASS" or not knobs.scaled_down:
        kinds = ["scratch-file", "filesystem", "raw-device"]
        return {"scale_min": 0.05, "target_kinds": kinds, "load": demanded(knobs, knobs.duration_s)}
    return {"target_kinds": ["filesystem", "raw-device"], "load": demanded(knobs, 100.0)}


def demanded(knobs: Knobs, duration_s: float) -> dict[str, Any]:
    """The load of the factory's scenario, with a record of `duration_s`."""
    own = workloads(knobs)
    own["block_scan"] |= {"tools": ["fio"]}
    own["snb_record"] |= {"conditions": LEFT_OUT, "precondition_size": LEFT_OUT, "purge": "discard"}
    whole = {name: {key: value for key, value in one.items() if key != "yields"} for name, one in own.items()}
    return {"duration_s": duration_s, "repetitions": 1, "telemetry_period_s": 1, **whole}


def _requirement(index: int, knobs: Knobs) -> dict[str, Any]:
    row = ROWS[index % len(ROWS)]
    text = row["text"]
    if knobs.long_names:
        text += " " + LONG + " and a long explanation of what is meant" * 6
    if knobs.non_latin:
        text += " " + NON_LATIN
    # The worst repetition decides, as in the shipped profile; for an equality with 0 that is the largest value.
    most = row["comparison"] == "at_most" or (row["comparison"], row["bound"]) == ("equal", 0)
    given = {"severity": "mandatory", "statistic": "max" if most else "min", "source": "section 5 of the paper"}
    return {**given, **row, "id": f"SNB-{index + 1:02d}", "text": text}


def write_verdict(root: Path) -> None:
    """Writes the bench's verdict on the bundle as it is."""
    _write(root / VERDICT, as_document(judge_bundle(root)))


def _write(file: Path, document: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8")


def scaled_sentences(root: Path, run: dict[str, Any]) -> list[str]:
    """Returns the bench's sentences on the respects in which the run is less than its profile asks for."""
    metrics = load_metrics(root / "profiles" / "metrics.yml")
    profile = load_requirements(root / "profiles" / "requirements" / "dune-snb.yml", metrics)
    return scaled_down(read(run, Run, "run.json"), profile.conditions)
