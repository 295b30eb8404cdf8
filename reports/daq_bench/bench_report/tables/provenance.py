"""The table of a report's own origin: seals, signatures and profiles."""

from __future__ import annotations

import re
from collections.abc import Sequence

from daq_bench.bench_model.bundle.provenance import MANIFEST
from daq_bench.bench_report.document.table import LINE, Table
from daq_bench.bench_report.reading.dataset.provenance import DIFFERENT, NOT_SEALED, UNSIGNED, Provenance

NAME_MAX, DIFFERENT_MAX = 100, 20


def different_fields(names: Sequence[str]) -> tuple[str, ...]:
    """The fields as a report may say them: short, and of no characters but those of names. The rest is counted."""
    return tuple(re.sub(r"[^A-Za-z0-9_.:\[\] -]", "?", name)[:NAME_MAX] for name in names[:DIFFERENT_MAX])


def provenance_table(provenance: Provenance) -> Table:
    seal = provenance.manifest_sha256 or NOT_SEALED
    if provenance.altered:
        seal += f" (but {provenance.altered} files were altered since)"
    rows = [
        (f"SHA-256 of {MANIFEST}", seal),
        ("Evidence", _signed(provenance.evidence_key.text if provenance.evidence_key else None)),
        ("This report", _signed(provenance.reports_key)),
        *((f"SHA-256 of {name}", digest) for name, digest in provenance.profiles),
        ("Challenge", provenance.challenge or "none: nothing says that the run was made after somebody asked for it"),
    ]
    if provenance.different:
        rows.append((DIFFERENT, LINE.join(provenance.different)))
    return Table(("What", "Provenance"), "tt", tuple(rows), "Seals and signatures.", "provenance")


def _signed(key: str | None) -> str:
    return (
        f"signed by the key {key}; `daq-bench check-bundle` says whether it is one that you trust"
        if key
        else f"{UNSIGNED}: nobody vouches for it"
    )
