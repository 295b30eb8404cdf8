"""Runs of a tender as bundles, changed before they were sealed, and their comparison as a document and as a page."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evidence_factory import conclude
from ruamel.yaml import YAML
from tender_factory import Run

from daq_bench.bench_model.documents.comparison import ComparisonDocument
from daq_bench.bench_report.comparison.analysis import Asked, compare
from daq_bench.bench_report.comparison.document import paper_of
from daq_bench.bench_report.output.paper import to_html

Roots = Callable[..., tuple[Path, ...]]
PROFILE, METRICS = "profiles/requirements/tender.yml", "profiles/metrics.yml"
ALL = ["TND-01", "TND-02", "TND-03", "TND-04"]


def several(name: str, rates: Sequence[float], **changes: Any) -> list[Run]:
    """One run for each rate."""
    return [Run(name, number, rates=(rate,), **changes) for number, rate in enumerate(rates, 1)]


def weights_file(folder: Path, text: str) -> Path:
    file = folder / "weights.yml"
    file.write_text(text + "\n", encoding="utf-8")
    return file


FAST = several("fast", (11.9, 12.0, 12.1), price=900.0)
NEAR = several("near", (11.6, 11.8, 12.0), price=880.0)
SLOW = several("slow", (9.9, 10.0, 10.1), price=700.0)


def compared(roots: tuple[Path, ...], **asked: Any) -> ComparisonDocument:
    return compare(Asked(roots, **asked))[0]


def html_of(roots: tuple[Path, ...], **asked: Any) -> str:
    found, sources = compare(Asked(roots, **asked))
    return to_html(paper_of(found, "make compare", sources[-1].moment))


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html.replace("\u202f", " ")))


def changed(root: Path, name: str, edit: Callable[[str], str]) -> Path:
    """The bundle with a document changed before it was judged and sealed."""
    before = (root / name).read_text(encoding="utf-8")
    after = edit(before)
    assert after != before
    (root / name).write_text(after, encoding="utf-8")
    conclude(root)
    return root


def put(root: Path, name: str, *path: str | int, value: Any) -> Path:
    """The bundle with one field of a document changed before it was judged and sealed."""
    load, dump = (json.loads, json.dumps) if name.endswith(".json") else (YAML_TEXT.load, yaml_text)
    document = load((root / name).read_text(encoding="utf-8"))
    node = document
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    if name == "run.json":
        asked_for(root, document["scenario"])
    (root / name).write_text(dump(document), encoding="utf-8")
    conclude(root)
    return root


def asked_for(root: Path, scenario: dict[str, Any]) -> None:
    """The parameters, and the bundle's copy of the scenario, say what `scenario` of run.json says."""
    scenario["parameters"].update({key: scenario[key] for key in ("scale", "seed")})
    copy = root / "profiles" / "scenarios" / f"{scenario['id']}.yml"
    copy.write_text(json.dumps(scenario["parameters"]), encoding="utf-8")


YAML_TEXT = YAML(typ="safe")


def yaml_text(document: Any) -> str:
    stream = io.StringIO()
    YAML_TEXT.dump(document, stream)
    return stream.getvalue()
