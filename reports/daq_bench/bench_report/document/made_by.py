"""The program and libraries that rendered a report, and the runs that it was made of."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from weasyprint.text.ffi import pango

from daq_bench.bench_model.base.places import REPOSITORY, deciding_folders
from daq_bench.bench_report.reading.dataset.provenance import NOT_SEALED

LIBRARIES = ("numpy", "scipy", "matplotlib", "jinja2", "markupsafe", "weasyprint", "pydyf", "fonttools")
SOURCES = Path(__file__).resolve().parent.parent
FOLDERS = (SOURCES, REPOSITORY / "reports" / "templates")


@cache
def made_by() -> dict[str, str]:
    """The renderer and the libraries that decide what a report looks like, to tell another version from an alteration."""
    found = {"bench": importlib.metadata.version("daq-storage-bench"), "renderer_sha256": _sources()}
    found |= {name: importlib.metadata.version(name) for name in LIBRARIES}
    found["python"] = platform.python_version()
    found["pango"] = str(pango.pango_version())
    return found


def folders() -> tuple[Path, ...]:
    """The renderer's own sources and templates, and what the verdict follows from: the workloads' folders hold sections of a report."""
    return (*FOLDERS, *deciding_folders())


def _sources() -> str:
    """One hash over all sources and templates that a report is made by."""
    whole = hashlib.sha256()
    for folder in folders():
        for file in sorted(folder.rglob("*")):
            if file.suffix in (".py", ".css", ".j2") and file.is_file():
                whole.update(f"{folder.name}/{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return whole.hexdigest()


def seal_of_runs(manifests: Iterable[str | None]) -> str:
    """Returns the seal on every page of a document on several runs: one hash over those of their manifests, sorted, one to a line (see
    docs/provenance.md)."""
    given = list(manifests)
    known = sorted({one for one in given if one})
    if not known:
        return NOT_SEALED
    whole = hashlib.sha256("".join(f"{one}\n" for one in known).encode()).hexdigest()
    lacking = sum(one is None for one in given)
    more = f", {lacking} not sealed" if lacking else ""
    return f"evidence of {len(known)} run{'s' if len(known) != 1 else ''} {whole}{more}"
