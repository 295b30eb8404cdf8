"""`python -m daq_bench.bench_model.evidence.schemas FOLDER` writes the JSON Schema of every typed document into inventory/schemas."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from daq_bench.bench_model.documents.comparison import ComparisonDocument
from daq_bench.bench_model.documents.derived import Cost, DriveTemperature, HardwareEvents, Others, RecordPower
from daq_bench.bench_model.documents.dips import Dips, Throttling
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.facts import Clock, Firmware, Identity, Tuning
from daq_bench.bench_model.documents.lot import Lot
from daq_bench.bench_model.documents.nights import Baselines, NightDocument
from daq_bench.bench_model.documents.results import Reasoned
from daq_bench.bench_model.documents.run import FurtherTarget, Run
from daq_bench.bench_model.documents.struct import Struct
from daq_bench.bench_model.documents.telemetry import InfluxCounts, SensorCoverage, TelemetryAccount, TelemetrySummary
from daq_bench.bench_model.documents.tools.checksum import Checksum
from daq_bench.bench_model.documents.tools.daqwriter import Verify
from daq_bench.bench_model.documents.tools.hotstore import HotstoreBench, HotstoreSemantics, HotstoreVerify
from daq_bench.bench_model.documents.tools.minidaq import Minidaq, MinidaqSearch
from daq_bench.bench_model.documents.tools.netprobe import NetprobeBuild, NetprobeLatency
from daq_bench.bench_model.documents.tools.streams import Streams, VerifyStreams
from daq_bench.bench_model.documents.tools.synthetic import Read, Write
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.bench_model.evidence.target_failures import PURGE_FAILURE, TARGET_FAILURE, PurgeFailure, TargetFailure
from daq_bench.bench_model.workloads.concurrent_analysis.reader import (
    AnalysisFarm,
    AnalysisPoints,
    AnalysisSet,
    AnalysisSlowDisk,
)
from daq_bench.bench_model.workloads.table import MODELS

VERDICT = "verdict.json"
WIDTH = 130
BESIDE: dict[str, type[Struct]] = {  # of files besides the evidence that a verdict rests on
    VERDICT: Verdict,
    "event.json": Event,
    "target.json": FurtherTarget,
    "nightly.json": NightDocument,
    "baselines.json": Baselines,
    "lot.json": Lot,
    "comparison.json": ComparisonDocument,
}
PARTIAL = (Reasoned,)  # what a verdict reads of documents whose schemas are written by hand
TYPES: dict[str, type[Struct]] = {
    "run.json": Run,
    "results/identity.json": Identity,
    "facts/tuning.json": Tuning,
    "facts/tuning-verified.json": Tuning,
    "facts/tuning-after.json": Tuning,
    "facts/clock.json": Clock,
    "facts/firmware.json": Firmware,
    "telemetry/summary.json": TelemetrySummary,
    "telemetry/bmc/summary.json": TelemetrySummary,
    "telemetry/influx-counts.json": InfluxCounts,
    "results/sensor_coverage.json": SensorCoverage,
    "results/telemetry_account.json": TelemetryAccount,
    "results/drive_temperature.json": DriveTemperature,
    "results/hardware_events.json": HardwareEvents,
    "results/cost.json": Cost,
    "results/wear.json": Reasoned,
    "results/surroundings.json": Reasoned,
    "results/record_power.json": RecordPower,
    "results/others.json": Others,
    TARGET_FAILURE: TargetFailure,
    PURGE_FAILURE: PurgeFailure,
    "results/dips.json": Dips,
    "results/throttling.json": Throttling,
    **{f"results/{name}.json": model.result for name, model in MODELS.items()},
    **{one.file: one.kind for model in MODELS.values() for one in model.beside if one.kind},
}

TOOLS: dict[str, type[Struct]] = {  # by the name of the schema that a tool's own document is held against
    "daqwriter-minidaq": Minidaq,
    "daqwriter-minidaq-search": MinidaqSearch,
    "daqwriter-verify": Verify,
    "daqwriter-write": Write,
    "daqwriter-read": Read,
    "daqwriter-streams": Streams,
    "daqwriter-verify-streams": VerifyStreams,
    "daqwriter-checksum": Checksum,
    "hotstore-bench": HotstoreBench,
    "hotstore-semantics": HotstoreSemantics,
    "hotstore-verify": HotstoreVerify,
    "netprobe-latency": NetprobeLatency,
    "netprobe-build": NetprobeBuild,
    "analysis-set": AnalysisSet,
    "analysis-points": AnalysisPoints,
    "analysis-slow-disk": AnalysisSlowDisk,
    "analysis-farm": AnalysisFarm,
}


def schemas() -> Iterator[tuple[str, str]]:
    """(file's name, text) of each schema: one for each type, named as the first document of that type."""
    named: dict[type[Struct], str] = {}
    every = {**TYPES, **BESIDE}
    for file, kind in every.items():
        if kind not in PARTIAL:
            named.setdefault(kind, file)
    for kind, file in {**named, **{kind: stem for stem, kind in TOOLS.items()}}.items():
        stem = file.rpartition("/")[2].removesuffix(".json").replace("_", "-")
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": file, **msgspec.json.schema(kind)}
        yield f"{stem}.schema.json", _shown(schema) + "\n"


def _shown(node: object, indent: str = "") -> str:
    """JSON as people write it: what fits on a line stands on one."""
    text = json.dumps(node, ensure_ascii=False)
    if not isinstance(node, dict | list) or len(indent) + len(text) <= WIDTH:
        return text
    deeper = f"{indent} "
    keyed = [f"{json.dumps(key)}: {_shown(one, deeper)}" for key, one in node.items()] if isinstance(node, dict) else []
    parts = keyed or [_shown(one, deeper) for one in node]
    ends = "{}" if keyed else "[]"
    return f"{ends[0]}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{ends[1]}"


def main(folder: Path) -> None:
    """Each file appears whole: others may be reading."""
    for name, text in schemas():
        made = folder / f".{name}.{os.getpid()}"
        made.write_text(text, encoding="utf-8")
        made.replace(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
