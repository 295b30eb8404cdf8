"""Reads from one run bundle what a decision needs: its verdict, the values behind it, its definitions and conditions.

Promise: only run.json, profiles/, facts/ and the results are read, not the telemetry, so that sixty bundles take seconds. The verdict is
judged again, and a run that is not sealed, was altered or contradicts itself is refused (bench_model.verdict.judging). A missing part
is None or empty; a part that is there and broken is a BenchError that names file and field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from daq_bench.bench_model.bundle.files import find_document, find_struct, plain_file
from daq_bench.bench_model.bundle.provenance import MANIFEST, digest_of
from daq_bench.bench_model.documents.admission import Admission
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document, Kind
from daq_bench.bench_model.documents.verdict import Judgement, Verdict
from daq_bench.bench_model.evidence.measured import measure
from daq_bench.bench_model.profiles.candidates import Candidate, load_candidate
from daq_bench.bench_model.profiles.metrics import ResultMetric, load_metrics
from daq_bench.bench_model.profiles.published import FOLDER, PublishedDevice, load_published
from daq_bench.bench_model.profiles.requirements import RequirementProfile
from daq_bench.bench_model.verdict.conclusion import conclude
from daq_bench.bench_model.verdict.judging import SEALED, UNJUDGED, profiles_of, standing_of
from daq_bench.bench_report.base.errors import BundleError, refuse_twice
from daq_bench.bench_report.reading import door
from daq_bench.bench_report.reading.door import Trust
from daq_bench.bench_report.reading.load import run_of

NO_VERDICT = "NO VERDICT"
COUNTS = (
    "PASS",
    "FAIL",
)  # words of evidence that counts; a rehearsal decides nothing, whether it missed something or not
REFUSED_MAX = 4  # refused runs that an error names


@dataclass(frozen=True)
class Source:
    """One run bundle. `manifest_sha256`: of its MANIFEST.sha256, which names everything in it; None where it has none. `unrankable`: why
    the door keeps a run out of a ranking whose outcome counts; empty where it does not. `marks`: the door's words beside the run."""

    root: Path
    run: Run
    verdict: Verdict | None
    manifest_sha256: str | None
    unrankable: str = ""
    marks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Candidate, and target where it has several."""
        target = self.run.target.name
        return f"{self.run.candidate.name}/{target}" if target else self.run.candidate.name

    @property
    def outcome(self) -> str:
        return self.verdict.outcome if self.verdict else NO_VERDICT

    @property
    def word(self) -> str:
        """The outcome as people read it: a rehearsal is called so."""
        return conclude(self.verdict).word if self.verdict else NO_VERDICT

    @property
    def moment(self) -> datetime:
        return self.run.finished or self.run.started

    @property
    def counts(self) -> bool:
        return self.word in COUNTS and not self.unrankable

    @property
    def reason(self) -> str:
        """Returns a sentence that says why the run does not count."""
        if self.verdict is None:
            return f"the run has no verdict (state: {self.run.state})"
        if self.word in COUNTS:
            return self.unrankable
        return conclude(self.verdict).reason

    @cached_property
    def metrics(self) -> dict[str, ResultMetric]:
        """The run's metric definitions; empty where its bundle has none."""
        file = plain_file(self.root, "profiles/metrics.yml")
        return load_metrics(file) if file else {}

    @cached_property
    def profile(self) -> RequirementProfile | None:
        name = self.run.requirement.id
        if not self.metrics or plain_file(self.root, f"profiles/requirements/{name}.yml") is None:
            return None
        return profiles_of(self.root, name)[0]

    @cached_property
    def candidate(self) -> Candidate | None:
        """Its inventory entry, with the run's target chosen; None where the bundle has none."""
        file = plain_file(self.root, "profiles/lab.yml")
        if file is None:
            return None
        found = load_candidate(file, self.run.candidate.name)
        target = self.run.target.name
        return found.aimed_at(target) if target else found

    @cached_property
    def published(self) -> dict[str, PublishedDevice]:
        return load_published(self.root / "profiles" / FOLDER)

    def result(self, name: str, kind: type[Kind]) -> Kind | None:
        """results/NAME.json as its type; None where the run left none."""
        return find_struct(self.root, f"results/{name}.json", kind)

    def document(self, name: str) -> Document | None:
        """A file of the bundle as a JSON object; None where there is none."""
        return find_document(self.root, name)

    def row(self, requirement: str) -> Judgement | None:
        return next((row for row in self.verdict.requirements if row.id == requirement), None) if self.verdict else None

    def values(self, row: Judgement) -> tuple[float, ...]:
        """The row's value in each repetition, in its unit; the judged value alone where the bundle does not define the metric."""
        asked = next((one for one in self.profile.requirements if one.id == row.id), None) if self.profile else None
        if asked is not None:
            metric = self.metrics[asked.metric]
            document = self.document(metric.file)
            found = measure(asked, metric, {metric.file: document} if document is not None else {})
            if found.values:
                return found.values
        return () if row.measured is None else (row.measured,)


def read_source(root: Path) -> Source:
    """Reads one bundle. Raises BenchError for a folder that is no run bundle, a damaged one, or one that others may not rest on."""
    run = run_of(root)
    standing = standing_of(root)
    if standing.state not in (SEALED, UNJUDGED):
        raise BundleError(str(root), standing.reason, standing.remedy)
    return Source(
        root=root,
        run=run,
        verdict=standing.verdict,
        manifest_sha256=digest_of(root / MANIFEST),
    )


def read_sources(roots: list[Path]) -> list[Source]:
    """Reads all of them, in the order of their start. Raises BundleError for a run that is named twice."""
    found: dict[str, Source] = {}
    for root in roots:
        source = read_source(root)
        if source.run.run_id in found:
            refuse_twice(root, source.run.run_id, found[source.run.run_id].root)
        found[source.run.run_id] = source
    return sorted(found.values(), key=lambda one: (one.run.started, one.run.run_id))


def through_the_door(sources: Sequence[Source], trust: Trust) -> list[Source]:
    """The same runs with what the door of check-bundle says of each. Raises BundleError that names each run which it refuses."""
    known = _let_in([(source.root, source.run.run_id) for source in sources], trust)
    return [
        replace(source, marks=known[source.root].marks, unrankable=known[source.root].unrankable(trust.accept_unsigned))
        for source in sources
    ]


def marks_by_run(runs: Sequence[tuple[Path, str]], trust: Trust) -> dict[str, tuple[str, ...]]:
    """By run id the door's words beside each bundle. Raises BundleError that names each run which the door refuses."""
    known = _let_in(runs, trust)
    return {run_id: known[root].marks for root, run_id in runs}


def _let_in(runs: Sequence[tuple[Path, str]], trust: Trust) -> dict[Path, Admission]:
    known = door.admissions([root for root, _ in runs], trust)
    refused = [(root, f"{run_id} {why}") for root, run_id in runs if (why := known[root].refusal)]
    if len(refused) == 1:
        raise BundleError(str(refused[0][0]), refused[0][1], "See what `daq-bench check-bundle` says, and leave it out")
    if refused:
        lines = "".join(f"\n  {root}: {text}" for root, text in refused[:REFUSED_MAX])
        more = f"\n  and {len(refused) - REFUSED_MAX} more" if len(refused) > REFUSED_MAX else ""
        remedy = "See what `daq-bench check-bundle` says of each, and leave them out"
        raise BundleError(f"{len(refused)} of {len(runs)} runs are refused", f"{lines}{more}\n{remedy}")
    return known
