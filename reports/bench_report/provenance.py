"""What a report says of its own origin, and with what it was rendered."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from weasyprint.text.ffi import pango

from bench_model.bundle_files import plain_file
from bench_model.provenance import MANIFEST, digest_in, digest_of, key_of

from .dataset import DIFFERENT, NOT_SEALED, UNSIGNED, Provenance
from .fields import Node
from .tables import LINE, Table

NAME_MAX, DIFFERENT_MAX = 100, 20
LIBRARIES = ("numpy", "scipy", "matplotlib", "jinja2", "markupsafe", "weasyprint", "pydyf", "fonttools")
SOURCES = Path(__file__).resolve().parent
FOLDERS = (SOURCES, SOURCES.parent / "templates")


def provenance_of(root: Path, run: Node) -> Provenance:
    profiles, challenge = tuple(_profiles(root, run)), run.text("challenge")
    manifest = plain_file(root, MANIFEST)
    if manifest is None:
        return Provenance(profiles=profiles, challenge=challenge)
    return Provenance(digest_of(manifest), key_of(manifest), profiles=profiles, challenge=challenge)


def _profiles(root: Path, run: Node) -> Iterator[tuple[str, str]]:
    """The files that say what was run and by what it was judged."""
    for kind in ("scenario", "requirement"):
        name = f"profiles/{kind}s/{run.at(kind).at('id').as_text()}.yml"
        if plain_file(root, name):
            yield name, digest_in(root, name)


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
        f"signed by the key {key}; `make check-bundle` says whether it is one that you trust"
        if key
        else f"{UNSIGNED}: nobody vouches for it"
    )


@cache
def made_by() -> dict[str, str]:
    """The renderer and the libraries that decide what a report looks like, to tell another version from an alteration."""
    found = {"bench": importlib.metadata.version("daq-storage-bench"), "renderer_sha256": _sources()}
    found |= {name: importlib.metadata.version(name) for name in LIBRARIES}
    found["python"] = platform.python_version()
    found["pango"] = str(pango.pango_version())
    return found


def _sources() -> str:
    """One hash over the renderer's own sources and templates, and the models that it uses."""
    whole = hashlib.sha256()
    import bench_model  # where it is installed, is all that is asked of it

    for folder in (*FOLDERS, Path(str(bench_model.__file__)).parent):
        for file in sorted(folder.rglob("*")):
            if file.suffix in (".py", ".css", ".j2") and file.is_file():
                whole.update(f"{folder.name}/{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return whole.hexdigest()


def seal_of_runs(manifests: Iterable[str | None]) -> str:
    """For every page of a document on several runs: one hash over those of their manifests, sorted, one to a line (see
    docs/provenance.md)."""
    given = list(manifests)
    known = sorted({one for one in given if one})
    if not known:
        return NOT_SEALED
    whole = hashlib.sha256("".join(f"{one}\n" for one in known).encode()).hexdigest()
    lacking = sum(one is None for one in given)
    more = f", {lacking} not sealed" if lacking else ""
    return f"evidence of {len(known)} run{'s' if len(known) != 1 else ''} {whole}{more}"
