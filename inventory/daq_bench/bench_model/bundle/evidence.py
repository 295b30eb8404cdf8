"""The content of a run bundle, read once, for the verdict. Reads files of the bundle and nothing else."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.bundle.files import find_document, plain_file, refuse_no_bundle, require_sound
from daq_bench.bench_model.bundle.telemetry_files import BMC, OWN, SUMMARY_FILE
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.yaml_source import read_shared_yaml

FILES = {  # of the bundle, and the attribute of Evidence that holds it
    "results/identity.json": "identity",
    "facts/tuning.json": "tuning",
    "facts/tuning-verified.json": "tuning_verified",
    "facts/tuning-after.json": "tuning_after",
    f"{OWN}/{SUMMARY_FILE}": "telemetry",
    "facts/clock.json": "clock",
    f"{BMC}/{SUMMARY_FILE}": "bmc_telemetry",
    "facts/firmware.json": "firmware",
}


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
    firmware: Document | None = None  # None also in a bundle of before it was read
    scenario: Document | None = None  # the bundle's copy of the scenario; None also where it cannot be read

    def documents(self) -> Iterator[tuple[str, Document]]:
        """Every document that there is, by the name of its file; results/identity.json once."""
        yield "run.json", self.run
        for file, name in FILES.items():
            document: Document | None = getattr(self, name)
            if document is not None:
                yield file, document
        for file, document in self.results.items():
            if file not in FILES:
                yield file, document

    def without(self, files: Collection[str]) -> Evidence:
        """The same without these files; run.json stays."""
        gone: dict[str, Any] = {name: None for file, name in FILES.items() if file in files}
        kept = {file: document for file, document in self.results.items() if file not in files}
        return replace(self, **gone, results=kept)

    @staticmethod
    def load(bundle: Path) -> Evidence:
        """Raises BenchError for a folder that is no bundle, and for a document that is there but cannot be read: it may not help."""
        require_sound(bundle)
        run = find_document(bundle, "run.json")
        if run is None:
            refuse_no_bundle(bundle)
        names = sorted(f"results/{file.name}" for file in (bundle / "results").glob("*.json"))
        return Evidence(
            run=run,
            results={name: document for name in names if (document := find_document(bundle, name)) is not None},
            scenario=stored_scenario(bundle, told.get("id") if isinstance(told := run.get("scenario"), dict) else None),
            **{name: find_document(bundle, file) for file, name in FILES.items()},
        )


def stored_scenario(bundle: Path, identifier: object) -> Document | None:
    """The copy of the scenario that run.json names. Its id comes out of the bundle: no path may hide in it."""
    if not isinstance(identifier, str) or not re.fullmatch(r"[a-z0-9][a-z0-9-]*", identifier):
        return None
    file = plain_file(bundle, f"profiles/scenarios/{identifier}.yml")
    try:
        found = plain(read_shared_yaml(file).data) if file else None
    except ProfileError:
        return None
    return found if isinstance(found, dict) else None
