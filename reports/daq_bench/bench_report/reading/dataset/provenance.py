"""Provenance: signatures of a bundle, and whether it is unchanged since it was sealed."""

from __future__ import annotations

from dataclasses import dataclass

from daq_bench.bench_model.bundle.provenance import SigningKey

NOT_SEALED = "not sealed: the run left no manifest"
UNSIGNED, DIFFERENT = "unsigned", "DIFFERENT FROM YOURS"


@dataclass(frozen=True)
class Provenance:
    """`manifest_sha256`: of MANIFEST.sha256, None for a bundle that was never sealed. `reports_key`: by which the reports are
    about to be signed. `altered`: files that changed since the bundle was sealed. `different`: fields of its profiles that are not those
    of the renderer. `profiles`: SHA-256 of scenario and requirements, by file. `challenge`: the buyer's nonce."""

    manifest_sha256: str | None = None
    evidence_key: SigningKey | None = None
    reports_key: str | None = None
    altered: int = 0
    different: tuple[str, ...] = ()
    profiles: tuple[tuple[str, str], ...] = ()
    challenge: str | None = None

    @property
    def footer(self) -> str:
        """Returns the words at the foot of every page."""
        if self.manifest_sha256 is None:
            return NOT_SEALED
        if self.altered:
            return f"ALTERED since it was sealed: {self.altered} file{'s' if self.altered > 1 else ''}"
        if self.different:
            return f"{DIFFERENT} in {len(self.different)} field{'s' if len(self.different) > 1 else ''}: see Provenance"
        signed = "" if self.evidence_key else f"{UNSIGNED}, "
        return f"{signed}evidence {self.manifest_sha256}"
