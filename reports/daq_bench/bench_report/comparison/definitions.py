"""Checks that the runs are about the same thing: refuses runs of another scenario or requirement profile. Any other difference in the
documents that define a run is named with both sides, and the requirements that rest on it are not compared.

All fields of the documents are compared but for those that `MAY_DIFFER` lists, so that a field that is added tomorrow is compared too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.differing import ABSENT, same, shown
from daq_bench.bench_model.base.direction import larger_is_better
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.provenance import MANIFEST, read_manifest
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.tender.contenders import POWER, Difference
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.comparison.bundles import Source
from daq_bench.bench_report.comparison.contenders import devices_text

SAME = "Compare runs of one scenario, one requirement profile and one version of metrics.yml"
SHOWN_MAX = 120
NOTHING = "nothing"
# Words for readers and names of files; the seed, which chooses the data and not the load; and how many repetitions were made, which
# the evidence itself shows and is compared by (`unlike_evidence`).
MAY_DIFFER = (
    "requirement profile/conditions/metrics",  # follows from the requirements, which are compared themselves
    "requirement profile/title", "requirement profile/file", "requirement profile/requirements/*/text",
    "requirement profile/requirements/*/source", "metrics/*/description", "metrics/*/highest", "metrics/*/better",
    *(f"scenario/{at}{key}" for at in ("", "parameters/") for key in
      ("title", "source", "file", "seed", "repetitions", "repetitions_max")),
)  # fmt: skip
SPOOL = "telemetry/points.lp"


@dataclass(frozen=True)
class Origin:
    """Tells one run from another. `name`: candidate and target; `spool`: the hash of its telemetry."""

    run_id: str
    name: str
    scenario: str
    requirement: str
    started: datetime
    ended: datetime
    spool: str | None


def origin_of(source: Source) -> Origin:
    run = source.run
    return Origin(
        run.run_id, source.name, run.scenario.id, run.requirement.id, run.started, source.moment, _spool(source)
    )


def check_same(sources: Sequence[Source]) -> None:
    check_origins([(source.root, origin_of(source)) for source in sources])


def check_origins(runs: Sequence[tuple[Path, Origin]]) -> None:
    """Raises BundleError for runs of different scenarios or profiles, and for one run that was given under two names."""
    _, first = runs[0]
    for root, other in runs[1:]:
        for what, one, two in (
            ("scenario id", first.scenario, other.scenario),
            ("requirement profile id", first.requirement, other.requirement),
        ):
            if one != two:
                raise BundleError(
                    str(root), f"its {what} differs from that of {first.run_id}: {one} against {two}", SAME
                )
    for earlier, later, why in _twice(runs):
        raise BundleError(str(later), f"{why} {earlier}", "Name each run once, and only runs that were made")


def check_alike(sources: Sequence[Source]) -> None:
    """Raises BundleError for the first definition that differs: for callers that cannot confine a difference to some requirements."""
    for one in _defined(sources):
        (value, runs), (other, others) = one.sides[:2]
        raise BundleError(
            f"{others[0]}", f"its {one.what} differs from that of {runs[0]}: {value} against {other}", SAME
        )


def _twice(runs: Sequence[tuple[Path, Origin]]) -> Iterator[tuple[Path, Path, str]]:
    """Yields pairs of bundles that cannot come from two runs, and why. There may be thousands of one candidate."""
    spools: dict[str, Path] = {}
    for root, run in runs:
        if run.spool is not None and spools.setdefault(run.spool, root) is not root:
            yield spools[run.spool], root, "has the very telemetry of"
    by_name: dict[str, list[tuple[Path, Origin]]] = {}
    for root, run in sorted(runs, key=lambda pair: pair[1].started):
        by_name.setdefault(run.name, []).append((root, run))
    for group in by_name.values():
        for at, (root, one) in enumerate(group):
            for later, two in islice(group, at + 1, None):
                if two.started >= one.ended and two.started != one.started:
                    break  # so do all that follow
                if one.started < two.ended or one.started == two.started:
                    yield root, later, "was made in the same minutes on the same candidate and target as"


def _spool(source: Source) -> str | None:
    """Returns the hash of its telemetry from its manifest; None without a manifest or without telemetry."""
    file = source.root / SPOOL
    if not (source.root / MANIFEST).is_file() or not file.is_file() or not file.stat().st_size:
        return None
    try:
        return read_manifest(source.root / MANIFEST).get(SPOOL)
    except BenchError as error:
        raise BundleError(str(source.root / MANIFEST), str(error)) from error


def differences(sources: Sequence[Source]) -> list[Difference]:
    """Returns differences in the definitions of these runs, or in the drives of one contender, each with all its values and runs."""
    return [*_defined(sources), *_other_drives(sources)]


def _defined(sources: Sequence[Source]) -> list[Difference]:
    if len(sources) < 2:
        return []
    documents = [_document(source) for source in sources]
    return [
        Difference(".".join(path), _sides(values, sources), _concerned(path, sources))
        for path, values in differing(documents, ())
    ]


def differing(values: Sequence[Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yields each place at which documents differ and may not, with the value there in each of them."""
    if any(fnmatchcase("/".join(path), pattern) for pattern in MAY_DIFFER):
        return
    if all(isinstance(value, Mapping) for value in values):
        for key in dict.fromkeys(key for value in values for key in value):
            yield from differing([value.get(key, ABSENT) for value in values], (*path, str(key)))
    elif any(not same(values[0], value) for value in values[1:]):
        yield path, list(values)


def _document(source: Source) -> dict[str, Any]:
    """Returns one document with every definition that a run rests on."""
    scenario = as_document(source.run.scenario)
    if source.profile is None:
        return {"requirement profile": "is not in the bundle", "scenario": scenario}
    profile = asdict(source.profile)
    asked = {one["metric"] for one in profile["requirements"]}
    for one in profile["requirements"]:  # an older bundle's metrics do not say which values are better: the bound does
        if one["comparison"] != "equal":
            one["larger is better"] = larger_is_better(source.metrics[one["metric"]].better, one["comparison"])
    return {
        "requirement profile": {**profile, "requirements": {one["id"]: one for one in profile["requirements"]}},
        "metrics": {name: asdict(source.metrics[name]) for name in sorted(asked)},
        "scenario": scenario,
        "demand": as_document(source.run.demand) if source.run.demand else None,
    }


def definitions_of(source: Source) -> Any:
    """Returns what `check_alike` compares: every definition that the run rests on, but for what may differ."""
    return _that_may_not_differ(_document(source), ())


def _that_may_not_differ(value: Any, path: tuple[str, ...]) -> Any:
    if not isinstance(value, Mapping):
        return value
    own = {key: (*path, str(key)) for key in value}
    return {
        str(key): _that_may_not_differ(value[key], place)
        for key, place in own.items()
        if not any(fnmatchcase("/".join(place), pattern) for pattern in MAY_DIFFER)
    }


def _concerned(path: tuple[str, ...], sources: Sequence[Source]) -> tuple[str, ...]:
    """Returns ids of the requirements that rest on the field at `path`; empty: all, as for a field whose reach is unknown."""
    profiles = [source.profile for source in sources if source.profile is not None]
    metrics = dict.fromkeys((one.id, one.metric) for profile in profiles for one in profile.requirements)
    if path[:2] == ("requirement profile", "requirements") and len(path) > 2:
        return (path[2],)
    if path[0] == "metrics" and len(path) > 1:
        return tuple(dict.fromkeys(key for key, metric in metrics if metric == path[1]))
    if path[:3] == ("scenario", "parameters", "workloads") and len(path) > 3:
        workloads = {name for source in sources for name in _workloads(source)} - {path[3]}
        return (*dict.fromkeys(key for key, metric in metrics if metric.partition(".")[0] not in workloads), POWER)
    return ()


def _workloads(source: Source) -> list[str]:
    return list(source.run.scenario.workloads)


def _other_drives(sources: Sequence[Source]) -> Iterator[Difference]:
    """Yields differing drives: runs of one contender are repetitions of each other only on drives of the same models."""
    for name in dict.fromkeys(source.name for source in sources):
        own = [source for source in sources if source.name == name]
        models = [devices_text(source) for source in own]
        if len(set(models)) > 1:
            yield Difference(f"drives of {name} between its runs", _sides(models, own))


def _sides(values: Sequence[Any], sources: Sequence[Source]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    texts = [NOTHING if value is None else shown(value, SHOWN_MAX) for value in values]
    return tuple(
        (text, tuple(source.run.run_id for source, own in zip(sources, texts, strict=True) if own == text))
        for text in dict.fromkeys(texts)
    )
