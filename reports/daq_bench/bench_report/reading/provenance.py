"""A bundle's origin: its seal, its signer, and the profiles by which it was run and judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from daq_bench.bench_model.bundle.files import plain_file
from daq_bench.bench_model.bundle.provenance import MANIFEST, digest_in, digest_of, key_of
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_report.reading.dataset.provenance import Provenance


def provenance_of(root: Path, run: Run) -> Provenance:
    profiles, challenge = tuple(_profiles(root, run)), run.challenge
    manifest = plain_file(root, MANIFEST)
    if manifest is None:
        return Provenance(profiles=profiles, challenge=challenge)
    return Provenance(digest_of(manifest), key_of(manifest), profiles=profiles, challenge=challenge)


def _profiles(root: Path, run: Run) -> Iterator[tuple[str, str]]:
    """Yields the profiles that the run followed and was judged by."""
    for kind, identifier in (("scenario", run.scenario.id), ("requirement", run.requirement.id)):
        name = f"profiles/{kind}s/{identifier}.yml"
        if plain_file(root, name):
            yield name, digest_in(root, name)
