"""What a run bundle holds, read once, for the verdict. Reads files of the bundle and nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_model.errors import BenchError
from bench_model.telemetry_files import BMC, OWN, SUMMARY_FILE

Document = dict[str, Any]


@dataclass(frozen=True)
class Evidence:
    """The documents of one bundle; a document that the run never wrote is None."""

    run: Document
    identity: Document | None
    tuning: Document | None
    tuning_verified: Document | None
    tuning_after: Document | None
    telemetry: Document | None
    results: dict[str, Document]
    clock: Document | None = None
    bmc_telemetry: Document | None = None  # of the agent that read the BMC over the network

    @staticmethod
    def load(bundle: Path) -> Evidence:
        run = _read(bundle / "run.json")
        if run is None:
            raise BenchError(f"{bundle} has no run.json, so it is not a run bundle. Name one with RUN=runs/<run-id>")
        files = sorted((bundle / "results").glob("*.json"))
        return Evidence(
            run=run,
            identity=_read(bundle / "results" / "identity.json"),
            tuning=_read(bundle / "facts" / "tuning.json"),
            tuning_verified=_read(bundle / "facts" / "tuning-verified.json"),
            tuning_after=_read(bundle / "facts" / "tuning-after.json"),
            telemetry=_read(bundle / OWN / SUMMARY_FILE),
            results={f"results/{file.name}": document for file in files if (document := _read(file)) is not None},
            clock=_read(bundle / "facts" / "clock.json"),
            bmc_telemetry=_read(bundle / BMC / SUMMARY_FILE),
        )


def _read(file: Path) -> Document | None:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise BenchError(
            f"{file} is not valid JSON ({error}). The bundle is damaged; run the qualification again"
        ) from None
    if not isinstance(document, dict):
        raise BenchError(f"{file} holds no JSON object. The bundle is damaged; run the qualification again")
    return document
