"""Judges a run bundle from nothing but its own files, and says whether others may rest on the run.

A stored verdict is a claim. Whoever shows it or builds on it computes it again: where the two differ, the bundle contradicts itself. By
the bundle alone nobody can tell a forged verdict from one that another version of the bench stored, so that both are called the same."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.differing import ABSENT, shown
from daq_bench.bench_model.base.differing import differences as places
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.evidence import Evidence
from daq_bench.bench_model.bundle.files import plain_file, read_bytes, read_json
from daq_bench.bench_model.bundle.provenance import MANIFEST, altered_documents
from daq_bench.bench_model.documents.admission import named
from daq_bench.bench_model.documents.struct import Document, as_document, not_finite, require_known
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.bench_model.profiles.metrics import ResultMetric, load_metrics
from daq_bench.bench_model.profiles.requirements import RequirementProfile, load_requirements
from daq_bench.bench_model.verdict.verdict import judge

VERDICT = "verdict.json"
SEALED, UNSEALED, ALTERED, CONTRADICTORY, UNJUDGED = "sealed", "unsealed", "altered", "contradictory", "unjudged"
ANOTHER_VERSION = "stored by another version of the bench, or altered"
ROWS, LISTS = "requirements", ("requirements", "findings")
Profiles = tuple[RequirementProfile, dict[str, ResultMetric]]
_known: dict[str, Profiles] = {}


@dataclass(frozen=True)
class Difference:
    """One field that is stored otherwise than it follows from the evidence; both values as text."""

    field: str
    stored: str
    recomputed: str

    @property
    def text(self) -> str:
        return f"{self.field} is {self.stored}, recomputed {self.recomputed}"


@dataclass(frozen=True)
class Again:
    """A verdict that was computed again. `verdict` is None where that cannot be done; `reason` then says why."""

    verdict: Verdict | None
    reason: str = ""
    differences: tuple[Difference, ...] = ()

    @property
    def contradicts(self) -> bool:
        return self.verdict is None or bool(self.differences)

    @property
    def words(self) -> str:
        """Why the stored verdict does not stand, in a sentence without its full stop."""
        if self.verdict is None:
            return f"the bundle cannot be judged again: {self.reason}"
        return f"{ANOTHER_VERSION}; this bench judges: {self.verdict.outcome}"


@dataclass(frozen=True)
class Standing:
    """A run as others may use it: only with `verdict`, which this bench computed, and only where the state is sealed.

    `reason` says of any other state why the run does not count, as a predicate, and `remedy` what to do."""

    state: str
    verdict: Verdict | None = None
    reason: str = ""
    remedy: str = ""


def judge_bundle(bundle: Path) -> Verdict:
    """The verdict of `bundle`."""
    evidence = Evidence.load(bundle)
    asked = evidence.run.get("requirement")
    if not isinstance(asked, dict) or not isinstance(asked.get("id"), str):
        raise BenchError(f"{bundle}/run.json names no requirement profile by which the run could be judged")
    profile, metrics = profiles_of(bundle, asked["id"])
    found = judge(evidence, profile, metrics)
    if odd := not_finite(as_document(found), VERDICT):
        raise BenchError(f"{odd}. Report it as a fault of the bench")
    return found


def judged_again(bundle: Path) -> Again:
    """The verdict of the bundle's evidence beside the one that it stores. Raises FileNotFoundError where it stores none."""
    try:
        stored = read_json(bundle, VERDICT)
        require_known(stored, VERDICT)
    except BenchError as error:
        return Again(None, str(error))
    try:
        recomputed = judge_bundle(bundle)
    except BenchError as error:
        return Again(None, str(error))
    except Exception as error:  # whatever hostile or old evidence trips over: it is no verdict, and the reason is shown
        return Again(None, f"{type(error).__name__}: {error}")
    return Again(recomputed, differences=tuple(differences(stored, recomputed)))


def standing_of(bundle: Path) -> Standing:
    """Says whether others may rest on this run: sealed, its documents unchanged since, and its verdict what follows from them."""
    leave_out = f"See daq-bench check-bundle {bundle}, and leave the run out"
    if not (bundle / MANIFEST).is_file():
        reason = f"is not sealed: it has no {MANIFEST}, so that nothing vouches for what it says"
        return Standing(UNSEALED, None, reason, "A run is sealed when it ends; leave this one out, or measure again")
    try:
        altered = altered_documents(bundle)
    except BenchError as error:
        return Standing(ALTERED, None, f"was altered since it was sealed ({error})", leave_out)
    if altered:
        return Standing(ALTERED, None, f"was altered since it was sealed ({named(altered)})", leave_out)
    if plain_file(bundle, VERDICT) is None:
        return Standing(UNJUDGED, None, f"has no {VERDICT}: its run was never judged", leave_out)
    again = judged_again(bundle)
    if again.contradicts:
        told = named([one.text for one in again.differences], "; ")
        reason = f"contradicts itself: {again.words}" if again.verdict else f"cannot be judged again: {again.reason}"
        reason += f" ({told})" if told else ""
        return Standing(CONTRADICTORY, again.verdict, reason, leave_out)
    return Standing(SEALED, again.verdict)


def differences(stored: Any, found: Verdict) -> Iterator[Difference]:
    """Every field of a stored verdict that is not what follows from the evidence, one for each."""
    recomputed = as_document(found)
    if not isinstance(stored, dict):
        yield Difference(VERDICT, shown(stored), shown(recomputed))
        return
    for key in sorted((stored.keys() | recomputed.keys()) - set(LISTS)):
        yield from _difference(key, stored.get(key, ABSENT), recomputed.get(key, ABSENT))
    for number, (one, other) in enumerate(
        zip_longest(_list(stored, "findings"), recomputed["findings"], fillvalue=ABSENT), start=1
    ):
        yield from _difference(f"finding {number}", one, other)
    yield from _rows(_list(stored, ROWS), recomputed[ROWS])


def _rows(stored: list[Any], recomputed: list[Document]) -> Iterator[Difference]:
    names = [str(row.get("id")) if isinstance(row, dict) else shown(row) for row in stored]
    rows = {name: row for name, row in zip(names, stored, strict=True) if isinstance(row, dict)}
    expected = {row["id"]: row for row in recomputed}
    for name, count in Counter(names).items():
        if count > 1:
            yield Difference(name, f"{count} rows", "1 row" if name in expected else "no row")
        elif name not in expected:
            yield Difference(name, "a row", "no row of the bundle's profile")
    for name, row in expected.items():
        if name in rows:
            for key in sorted(rows[name].keys() | row.keys()):
                yield from _difference(f"{name}.{key}", rows[name].get(key, ABSENT), row.get(key, ABSENT))
        else:
            yield Difference(name, "no row", f"a row with outcome {row['outcome']}")
    if sorted(names) == sorted(expected) and names != list(expected):
        yield Difference(ROWS, f"in the order {', '.join(names)}", ", ".join(expected))


def _difference(field: str, stored: Any, recomputed: Any) -> Iterator[Difference]:
    for place, one, other in places(stored, recomputed, field):
        yield Difference(place, shown(one), shown(other))


def _list(document: Document, key: str) -> list[Any]:
    found = document.get(key)
    return found if isinstance(found, list) else [found]


def _digest(bundle: Path, name: str) -> str:
    try:
        return hashlib.sha256(read_bytes(bundle, name)).hexdigest()
    except FileNotFoundError:
        raise BenchError(f"{bundle / name}: there is no such file. The bundle is damaged") from None


def profiles_of(bundle: Path, requirement: str) -> Profiles:
    """The definitions that the run took along. Runs of one bench share them, and they take a tenth of a second to read: those of the same
    content are read once, and name the file of the first bundle. Raises BenchError."""
    if Path(requirement).name != requirement:
        raise BenchError(f"{bundle}/run.json: requirement.id: {requirement!r} is no name. The bundle is damaged")
    names = ("profiles/metrics.yml", f"profiles/requirements/{requirement}.yml")
    key = "".join(map(partial(_digest, bundle), names))
    if key not in _known:
        metrics = load_metrics(bundle / names[0])
        _known[key] = (load_requirements(bundle / names[1], metrics, stored=True), metrics)
    return _known[key]
