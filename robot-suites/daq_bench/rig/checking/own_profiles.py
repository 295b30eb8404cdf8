"""Compares a bundle's scenario, requirements and metrics with the checker's own copies.

A bundle brings its profiles along, so that anybody can judge it; anybody can also loosen them and seal the whole again. The checker's own
copies come from this checkout, or from files that the checker names, and never from the bundle."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.differing import differences, shown
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import plain_file, read_bytes
from daq_bench.bench_model.bundle.provenance import digest_in
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.composed import Kind, read_profile
from daq_bench.bench_model.profiles.yaml_source import read_yaml
from daq_bench.rig.base.settings import Layout, profile_file

DIFFERENT = "DIFFERENT FROM YOURS"
KINDS: dict[Kind, str] = {
    "scenario": "scenarios",
    "requirement": "requirements",
}
METRICS = "profiles/metrics.yml"
OVERRIDDEN = ("scale", "duration_s")  # by --scale and --duration, which run.json states
KNOWN_MAX = 64  # parsed documents that are kept
_known: dict[str, Any] = {}
PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Own:
    """The checker's own copies: a file where one is named, else the one in `inventory` with the bundle's id."""

    scenario: Path | None = None
    requirement: Path | None = None
    inventory: Path = Layout().inventory

    @staticmethod
    def named(folder: Path, scenario: str | None, requirement: str | None) -> Own:
        """Each by its id, whose file is below `folder`, or as a YAML file."""
        return Own(
            profile_file(folder / KINDS["scenario"], scenario) if scenario else None,
            profile_file(folder / KINDS["requirement"], requirement) if requirement else None,
        )

    def file(self, kind: Kind, identifier: str) -> Path:
        named = self.scenario if kind == "scenario" else self.requirement
        return named or self.inventory / KINDS[kind] / f"{identifier}.yml"


@dataclass(frozen=True)
class Difference:
    """One field that differs: `where` names profile and field, `text` adds both values."""

    where: str
    text: str


@dataclass(frozen=True)
class Profile:
    """One profile of the bundle: its hash, and in what it differs from the checker's own."""

    kind: str
    id: str
    sha256: str
    differences: tuple[Difference, ...]


def compared(bundle: Path, run: Run, own: Own) -> list[Profile]:
    """Scenario and requirements of the bundle, the metrics that these use among the latter. Raises BenchError where one cannot be read."""
    found = []
    for kind, folder in KINDS.items():
        identifier = plain_id(getattr(run, kind).id, f"run.json: {kind}.id")
        name = f"profiles/{folder}/{identifier}.yml"
        theirs = _document(bundle, name)
        # Nobody has a copy of an own suite's scenario, and no run by it can pass.
        own_suite = kind == "scenario" and run.own_suite
        differences = [] if own_suite else list(_of_profile(kind, identifier, theirs, own))
        # Parsing the metrics takes seconds, and most often they are the same to the last byte.
        if kind == "requirement" and read_bytes(bundle, METRICS) != (own.inventory / "metrics.yml").read_bytes():
            differences += _of_metrics(_document(bundle, METRICS), _metrics_used(theirs), own)
        found.append(Profile(kind, identifier, digest_in(bundle, name), tuple(differences)))
    return found


def altered_parameters(bundle: Path, run: Run) -> list[str]:
    """Returns where run.json's parameters differ from the bundle's scenario, but for those that --scale and --duration chose."""
    name = f"profiles/scenarios/{plain_id(run.scenario.id, 'run.json: scenario.id')}.yml"
    file, stated = _document(bundle, name), run.scenario.parameters
    wanted = {key: getattr(run.request, key, None) or file.get(key) for key in OVERRIDDEN}
    wanted["scale"] = wanted["scale"] or 1
    expected = {**file, **{key: value for key, value in wanted.items() if value is not None}}
    return [
        f"run.json: scenario.parameters: {where} is {shown(one)}, by {name} and the request {shown(other)}"
        for where, one, other in differences(stated, expected, by_id=True)
    ]


def plain_id(identifier: object, where: str) -> str:
    """Returns the id. Raises BenchError for one that would lead a reader to another file."""
    if not isinstance(identifier, str) or not PLAIN_ID.fullmatch(identifier):
        raise BenchError(f"{where} is {identifier!r:.100}, which is no id. The bundle is damaged, or was made to harm")
    return identifier


def _of_profile(kind: Kind, identifier: str, theirs: Mapping[str, Any], own: Own) -> Iterator[Difference]:
    file = own.file(kind, identifier)
    if not file.is_file():
        what = f"{kind} {identifier}"
        yield Difference(what, f"{what}: you have none ({file}); name your own with --{kind} FILE")
        return
    found = file.stat()
    for where, one, other in differences(theirs, _own(kind, file, found.st_mtime_ns, found.st_size), by_id=True):
        yield _difference(f"{kind} {identifier}", where, one, other)


def _of_metrics(theirs: Mapping[str, Any], used: set[str], own: Own) -> list[Difference]:
    """Compares only the metrics that the requirements use: a bundle from another version may know others besides."""
    mine = _parsed(own.inventory / "metrics.yml")["results"]
    stated = theirs.get("results") or {}
    one, other = ({name: document.get(name) for name in used} for document in (stated, mine))
    return [_difference("metric", where, *values) for where, *values in differences(one, other, by_id=True)]


@lru_cache(maxsize=64)
def _own(kind: Kind, file: Path, mtime_ns: int, size: int) -> Any:
    """The checker's own profile, read once for all bundles; `mtime_ns` and `size` tell another content of the file."""
    return plain(read_profile(kind, file).data)


def _parsed(file: Path) -> Any:
    """The file's content. Bundles share profiles, which take seconds to parse: those of the same content are parsed once."""
    digest = hashlib.sha256(read_bytes(file.parent, file.name)).hexdigest()
    if digest not in _known:
        if len(_known) >= KNOWN_MAX:
            _known.clear()
        _known[digest] = plain(read_yaml(file).data)
    return _known[digest]


def _metrics_used(requirements: Mapping[str, Any]) -> set[str]:
    return {str(one.get("metric")) for one in requirements.get("requirements") or []}


def _difference(what: str, where: str, one: object, other: object) -> Difference:
    named = f"{what}: {where}"
    return Difference(named, f"{named} is {shown(one)}, yours {shown(other)}")


def _document(bundle: Path, name: str) -> dict[str, Any]:
    file = plain_file(bundle, name)
    if file is None:
        raise BenchError(f"{bundle / name}: is missing. The bundle is damaged")
    document = _parsed(file)
    if not isinstance(document, dict):
        raise BenchError(f"{file}: holds no fields. The bundle is damaged")
    return document
