"""Run bundles -> comparison.json: a pure function of the bundles, the price file and the weights file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from daq_bench.bench_model.documents.comparison import (
    AskedOfRuns,
    BuyersFile,
    BuyersFiles,
    ComparedRun,
    ComparisonDocument,
    ComparisonKind,
    Unranked,
)
from daq_bench.bench_model.documents.several import Titled
from daq_bench.bench_model.documents.struct import as_document, read
from daq_bench.bench_model.tender import tender
from daq_bench.bench_model.tender.buyer_files import Prices, Weights, load_prices, load_weights
from daq_bench.bench_model.tender.contenders import Contender, Question
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.comparison.bundles import Source, read_sources, through_the_door
from daq_bench.bench_report.comparison.conditions import marks
from daq_bench.bench_report.comparison.configurations import configurations, is_comparison, names_of, sets_of
from daq_bench.bench_report.comparison.contenders import contender_of, grouped, questions_of, speed_of
from daq_bench.bench_report.comparison.curves import curves
from daq_bench.bench_report.comparison.definitions import check_same, differences
from daq_bench.bench_report.comparison.unranked import unranked_configurations, unranked_runs
from daq_bench.bench_report.reading.door import Trust

LEAST, MOST = 2, 8
CANDIDATES: Final = "candidates"
CONFIGURATIONS: Final = "configurations"


@dataclass(frozen=True)
class Asked:
    """The inputs that the command line names."""

    roots: tuple[Path, ...]
    prices: Path | None = None
    weights: Path | None = None
    trust: Trust = field(default_factory=Trust)


def compare(asked: Asked) -> tuple[ComparisonDocument, list[Source]]:
    """The document, and the runs that it rests on. Raises BundleError or ProfileError for what cannot be compared."""
    sources = through_the_door(read_sources(list(asked.roots)), asked.trust)
    of_one_run = len(sources) == 1 and is_comparison(sources[0])
    kind: ComparisonKind = CONFIGURATIONS if of_one_run else CANDIDATES
    names = names_of(sources[0]) if of_one_run else list(grouped(sources))
    if not LEAST <= len(names) <= MOST:
        what = f"{len(sources)} run{'s' if len(sources) > 1 else ''} of {len(names)} candidate{'s' if len(names) > 1 else ''}"
        raise BundleError(
            ", ".join(names), f"{what}; a comparison takes {LEAST} to {MOST}",
            "Name runs of several candidates, or one run of scenario raid-vs-3dxp",
        )  # fmt: skip
    check_same(sources)
    prices = None if asked.prices is None else load_prices(asked.prices, names)
    contenders, questions, weights = _contenders(kind, sources, prices, asked.weights)
    speed = speed_of(questions)
    first = sources[0].run
    decided = tender.document(
        contenders, questions, speed, weights, differences([one for one in sources if one.counts])
    )
    asked_of, unranked = _unranked(kind, sources)
    made = ComparisonDocument(
        **msgspec.structs.asdict(decided),
        schema_version=1,
        kind=kind,
        scenario=Titled(first.scenario.id, first.scenario.title or None),
        requirement=Titled(first.requirement.id, first.requirement.title or None),
        files=BuyersFiles(_file(asked.prices), _file(asked.weights)),
        accepted_unsigned=[source.run.run_id for source in sources if source.counts and source.marks],
        equivalence_percent=weights.margin_percent,
        runs=[_run(source) for source in sources],
        not_ranked=[name for name in names if name not in {one.name for one in contenders}],
        conditions=marks(sources),
        asked=asked_of,
        unranked=unranked,
        curves=curves(sources) if kind == CANDIDATES else [],
        sets=sets_of(sources[0]) if kind == CONFIGURATIONS else None,
    )
    return read(tender.clean(as_document(made)), ComparisonDocument, "comparison.json"), sources


def _contenders(
    kind: str, sources: Sequence[Source], prices: Prices | None, weights_file: Path | None
) -> tuple[list[Contender], list[Question], Weights]:
    """Returns contenders, questions and weights from runs that count: an INADMISSIBLE or ERROR run is never ranked."""
    counting = [source for source in sources if source.counts]
    known = questions_of(sources, Weights())
    weights = Weights() if weights_file is None else load_weights(weights_file, known)
    if kind == CONFIGURATIONS:
        if not counting:
            return [], [], weights
        made, questions = configurations(counting[0], prices, weights)
        return made, questions, weights
    questions = questions_of(sources, weights)
    speed = speed_of(questions)
    made = [contender_of(name, runs, questions, speed, prices) for name, runs in grouped(counting).items()]
    return made, questions, weights


def _unranked(kind: str, sources: Sequence[Source]) -> tuple[list[AskedOfRuns], list[Unranked]]:
    """Returns the questions and the measurements of runs that do not count; nothing where all count."""
    if all(source.counts for source in sources):
        return [], []
    questions = questions_of(sources, Weights())
    shown = unranked_configurations(sources[0]) if kind == CONFIGURATIONS else unranked_runs(sources, questions)
    return [AskedOfRuns(one.id, one.text, one.comparison) for one in questions if shown], shown


def _run(source: Source) -> ComparedRun:
    return ComparedRun(
        run_id=source.run.run_id,
        manifest_sha256=source.manifest_sha256,
        outcome=source.outcome,
        word=source.word,
        reason=None if source.counts else source.reason,
        marks=list(source.marks),
        contender=source.name,
        started_utc=source.run.started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        ranked=source.counts,
        scale=source.run.scenario.scale,
    )


def _file(file: Path | None) -> BuyersFile | None:
    if file is None:
        return None
    try:
        content = file.read_bytes()
    except OSError as error:
        raise BundleError(str(file), f"cannot be read: {error.strerror}") from error
    return BuyersFile(file.name, hashlib.sha256(content).hexdigest())
