"""Tells of one run what a lot report needs, so that the index over all runs can keep it: who made it, by which definitions, its drives.

A run is told by reading and judging its whole bundle (`read_source`). Definitions are told by a digest: where they differ, the lot reads
one bundle of each and says how."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from daq_bench import bench_report
from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.nights.history_index import Kind, kept_as_told, read_kept
from daq_bench.bench_model.nights.night import LeftOut
from daq_bench.bench_model.tender.buyer_files import Weights
from daq_bench.bench_report.base.errors import refuse_twice
from daq_bench.bench_report.comparison.bundles import Source, read_source
from daq_bench.bench_report.comparison.contenders import questions_of
from daq_bench.bench_report.comparison.definitions import Origin, definitions_of, origin_of
from daq_bench.bench_report.lot.drives import Drive, drives_in


@dataclass(frozen=True)
class Told:
    """`folder`: the bundle's name. `definitions`: a digest of all that its values rest on; `questions`: of what its requirements ask."""

    folder: str
    origin: Origin
    outcome: str
    word: str  # as people read the outcome
    counts: bool
    reason: str
    manifest_sha256: str | None
    definitions: str
    questions: str
    drives: list[Drive]

    @property
    def run_id(self) -> str:
        return self.origin.run_id

    @property
    def serials(self) -> str:
        return " ".join(drive.serial for drive in self.drives)

    @property
    def moment(self) -> datetime:
        return self.origin.ended


def told_of(source: Source) -> Told:
    """Raises BenchError for a bundle that is damaged."""
    return Told(
        folder=source.root.name,
        origin=origin_of(source),
        outcome=source.outcome,
        word=source.word,
        counts=source.counts,
        reason="" if source.counts else source.reason,
        manifest_sha256=source.manifest_sha256,
        definitions=_digest(definitions_of(source)) if source.counts else "",
        questions=_digest([[asdict(one) for one in questions_of([source], Weights())], source.profile is None])
        if source.verdict
        else "",
        drives=list(drives_in(source).values()),
    )


def told_or_reason(bundle: Path) -> Told | LeftOut:
    try:
        return told_of(read_source(bundle))
    except BenchError as error:
        return LeftOut(bundle.name, in_words(error))


def tell(roots: Sequence[Path]) -> list[tuple[Path, Told]]:
    """Each of the bundles in the order of their start. Raises BundleError for one that others may not rest on, and for a run that is named
    twice."""
    found: dict[str, tuple[Path, Told]] = {}
    for folder, bundles in groupby(roots, key=lambda root: root.parent):
        own = list(bundles)
        read = read_kept(LOT, folder, own) if all(root.is_dir() for root in own) and len(own) > 1 else [None] * len(own)
        for root, told in zip(own, read, strict=True):
            one = told if isinstance(told, Told) else told_of(read_source(root))  # which says what is wrong with it
            if one.run_id in found:
                refuse_twice(root, one.run_id, found[one.run_id][0])
            found[one.run_id] = (root, one)
    return sorted(found.values(), key=lambda pair: (pair[1].origin.started, pair[1].run_id))


def _digest(document: Any) -> str:
    told = json.dumps(document, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


LOT: Kind[Told | LeftOut] = kept_as_told(
    "lot", told_or_reason, Told, ["run_id", "outcome", "serials"], package=Path(str(bench_report.__file__)).parent
)
