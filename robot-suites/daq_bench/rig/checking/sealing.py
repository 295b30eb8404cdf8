"""Seals a bundle, and names files that changed since. One seal is over the evidence, one over the reports, which carry the first's hash.

Promise: a signature stands beside a manifest only as long as it is one for that manifest's bytes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import plain_file, read_bytes, survey
from daq_bench.bench_model.bundle.provenance import (
    MANIFEST,
    REPORTS,
    REPORTS_MANIFEST,
    SIGNATURE_SUFFIX,
    digest_in,
    is_evidence,
    manifest_of,
    read_manifest,
)
from daq_bench.rig.base.bundle import write_atomically
from daq_bench.rig.checking.signing import Signer

ALTERED, ADDED, MISSING, ODD = "altered since it was sealed", "added since the run", "missing", "a link or special file"


@dataclass(frozen=True)
class Change:
    """The change of one file; `name` is relative to the bundle."""

    name: str
    what: str

    @property
    def text(self) -> str:
        return f"{self.name}: {self.what}"


def sealed(bundle: Path) -> bool:
    return plain_file(bundle, MANIFEST) is not None


def seal_evidence(bundle: Path, signer: Signer | None = None) -> None:
    """Writes MANIFEST.sha256 over every file of the bundle but the reports, and signs it where there is a key."""
    _seal(bundle, MANIFEST, [name for name in survey(bundle).files if is_evidence(name)], signer)


def seal_reports(bundle: Path, signer: Signer | None = None) -> None:
    """Writes REPORTS.sha256 over the reports that there are and the evidence's manifest, and signs it where there is a key."""
    names = [name for name in (*REPORTS, MANIFEST) if plain_file(bundle, name)]
    _seal(bundle, REPORTS_MANIFEST, names, signer)


def break_reports_seal(bundle: Path) -> None:
    """Breaks the seal of reports on altered evidence, so that nothing vouches for them."""
    for suffix in (SIGNATURE_SUFFIX, ""):
        (bundle / f"{REPORTS_MANIFEST}{suffix}").unlink(missing_ok=True)


def _seal(bundle: Path, manifest: str, names: list[str], signer: Signer | None) -> None:
    file, signature = bundle / manifest, bundle / f"{manifest}{SIGNATURE_SUFFIX}"
    content = manifest_of(bundle, names)
    if not file.exists() or read_bytes(bundle, manifest) != content or manifest == REPORTS_MANIFEST:
        signature.unlink(missing_ok=True)
        write_atomically(file, content)
    if signer:
        signer.sign(file)


def altered_evidence(bundle: Path) -> list[Change]:
    """Returns files that are missing, differ from the evidence's manifest, or are not in it. Raises BenchError without a sound manifest."""
    if not sealed(bundle):
        raise BenchError(f"{bundle} has no {MANIFEST}: the run did not finish. Only a finished run can be checked")
    found, listed = survey(bundle), read_manifest(bundle / MANIFEST)
    # A bundle from before the reports had a seal of their own lists them in the evidence's.
    present = {name for name in found.files if is_evidence(name) or (name in REPORTS and name in listed)}
    changes = [Change(name, ODD) for name in found.odd]
    return _sorted([*changes, *_changes(bundle, listed, present, set(found.odd))])


def altered_reports(bundle: Path) -> list[Change] | None:
    """Returns the same for the reports; None where they never had a seal of their own."""
    if plain_file(bundle, REPORTS_MANIFEST) is None:
        return None
    listed = read_manifest(bundle / REPORTS_MANIFEST)
    files = survey(bundle).files
    present = {name for name in (*REPORTS, MANIFEST) if name in files}
    return _sorted(_changes(bundle, listed, present))


def unsealed_reports(bundle: Path) -> list[str]:
    """Reports that are in neither manifest."""
    known = [bundle / name for name in (MANIFEST, REPORTS_MANIFEST) if plain_file(bundle, name)]
    listed = {name for file in known for name in read_manifest(file)}
    return [name for name in REPORTS if (bundle / name).exists() and name not in listed]


def _changes(bundle: Path, listed: dict[str, str], present: set[str], odd: Collection[str] = ()) -> list[Change]:
    """Compares a manifest's list with the files that are there; `odd` is named elsewhere."""
    missing = [Change(name, MISSING) for name in listed.keys() - present - set(odd)]
    added = [Change(name, ADDED) for name in present - listed.keys()]
    both = listed.keys() & present
    return [*missing, *added, *(Change(name, ALTERED) for name in both if digest_in(bundle, name) != listed[name])]


def _sorted(changes: list[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: change.name)
