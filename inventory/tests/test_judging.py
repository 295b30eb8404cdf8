"""A run as others may use it: sealed, unaltered, and with the verdict that follows from its evidence. Each rule meets a forger."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from evidence_factory import conclude, seal
from nights_factory import NightPlan, write_night

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.provenance import MANIFEST
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.bench_model.nights.night import read_night
from daq_bench.bench_model.nights.run_history import history_of, read_all
from daq_bench.bench_model.verdict.judging import (
    ALTERED,
    CONTRADICTORY,
    SEALED,
    UNJUDGED,
    UNSEALED,
    VERDICT,
    differences,
    judge_bundle,
    judged_again,
    standing_of,
)

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_night(tmp_path, NightPlan(1))


def stored(bundle: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((bundle / VERDICT).read_text(encoding="utf-8"))
    return found


def fields_of(change: Change, verdict: dict[str, Any]) -> list[str]:
    """Returns the fields in which the forger's verdict differs."""
    forged = json.loads(json.dumps(verdict))
    change(forged)
    return [one.field for one in differences(forged, read(verdict, Verdict, VERDICT))]


def row(document: dict[str, Any], number: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = document["requirements"][number]
    return found


def test_a_run_as_it_was_sealed_stands_with_its_recomputed_verdict(run: Path) -> None:
    found = standing_of(run)
    assert (found.state, found.reason, found.verdict) == (SEALED, "", read(stored(run), Verdict, VERDICT))
    assert found.verdict is not None and found.verdict.outcome == "PASS"


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        (lambda d: d.update(outcome="FAIL"), ["outcome"]),
        (lambda d: d.pop("outcome"), ["outcome"]),
        (lambda d: d.update(outcome=None), ["outcome"]),
        (lambda d: d.update(declared_rehearsal=True), ["declared_rehearsal"]),
        (lambda d: d.update(declared_rehearsal=0), ["declared_rehearsal"]),
        (lambda d: d.update(reasons=[]), ["reasons"]),
        (lambda d: d.update(approved=True), ["approved"]),
        (lambda d: d.update(findings=[{"text": "a gap", "invalidates": False, "evidence": []}]), ["finding 1"]),
        (lambda d: row(d).update(outcome="FAIL"), ["R-01.outcome"]),
        (lambda d: row(d).update(measured=None), ["R-01.measured"]),
        (lambda d: row(d).update(measured=float("nan")), ["R-01.measured"]),
        (lambda d: row(d).update(measured=float("inf")), ["R-01.measured"]),
        (lambda d: row(d).update(measured="10.0"), ["R-01.measured"]),
        (lambda d: row(d).update(n=True), ["R-01.n"]),
        (lambda d: row(d).update(scaled_bound=8.0, bound=8.0), ["R-01.bound", "R-01.scaled_bound"]),
        (lambda d: row(d).update(confidence_interval=[9.9]), ["R-01.confidence_interval"]),
        (lambda d: row(d, 2).update(reason="Missed"), ["R-03.reason"]),
        (lambda d: d["requirements"].pop(1), ["R-02"]),
        (lambda d: d["requirements"].append(row(d)), ["R-01"]),
        (lambda d: d["requirements"].append({**row(d), "id": "R-09"}), ["R-09"]),
        (lambda d: d["requirements"].reverse(), ["requirements"]),
        (lambda d: d.update(requirements=[]), ["R-01", "R-02", "R-03"]),
        (lambda d: d.update(requirements=None), ["null", "R-01", "R-02", "R-03"]),
        (lambda d: d.update(requirements=["R-01", "R-02", "R-03"]), ["R-01", "R-02", "R-03"]),
    ],
)
def test_every_field_that_differs_is_named(run: Path, change: Change, fields: list[str]) -> None:
    found = fields_of(change, stored(run))
    assert set(fields) <= set(found) and set(found) <= set(fields), found


@pytest.mark.parametrize("other", [None, [], "PASS", 1])
def test_what_is_no_object_is_no_verdict(run: Path, other: object) -> None:
    assert [one.field for one in differences(other, stored(run))] == [VERDICT]


def test_the_last_digits_of_another_processor_are_no_difference(run: Path) -> None:
    assert fields_of(lambda d: row(d).update(measured=row(d)["measured"] * (1 + 1e-13)), stored(run)) == []
    assert fields_of(lambda d: row(d).update(measured=row(d)["measured"] * (1 + 1e-6)), stored(run)) == [
        "R-01.measured"
    ]


def test_a_mandatory_row_that_fails_contradicts_a_pass(tmp_path: Path) -> None:
    """The rows of such a verdict are what follows; its outcome alone was changed."""
    failed = write_night(tmp_path, NightPlan(1, lost=1.0))
    (failed / VERDICT).write_text(json.dumps({**stored(failed), "outcome": "PASS"}), encoding="utf-8")
    found = standing_of(seal(failed))
    assert (found.state, found.verdict and found.verdict.outcome) == (CONTRADICTORY, "FAIL")
    assert found.reason == (
        "contradicts itself: stored by another version of the bench, or altered; this bench judges: FAIL "
        "(outcome is PASS, recomputed FAIL)"
    )


def test_what_has_no_seal_stands_for_nothing(run: Path) -> None:
    (run / MANIFEST).unlink()
    assert (standing_of(run).state, standing_of(run).verdict) == (UNSEALED, None)
    (run / MANIFEST).mkdir()
    assert standing_of(run).state == UNSEALED


ALTERATIONS: dict[str, Callable[[Path], object]] = {
    "results/night.json": lambda file: file.write_text("{}", encoding="utf-8"),
    "results/added.json": lambda file: file.write_text("{}", encoding="utf-8"),
    "telemetry/summary.json": lambda file: file.write_text('{"collectors": []}', encoding="utf-8"),
    "telemetry/bmc/summary.json": lambda file: (file.parent.mkdir(), file.write_text("{}", encoding="utf-8")),
    "profiles/metrics.yml": lambda file: file.unlink(),
    "facts/link.json": lambda file: file.symlink_to("host.json"),
    "results/pipe.json": lambda file: os.mkfifo(file),
    "verdict.json": lambda file: file.unlink(),
    MANIFEST: lambda file: file.write_text("nothing\n", encoding="utf-8"),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_a_document_that_is_not_as_it_was_sealed_is_named(run: Path, name: str) -> None:
    ALTERATIONS[name](run / name)
    found = standing_of(run)
    assert (found.state, found.verdict) == (ALTERED, None) and name in found.reason


def test_a_sealed_run_without_a_verdict_was_never_judged(run: Path) -> None:
    (run / VERDICT).unlink()
    assert standing_of(seal(run)).state == UNJUDGED


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (VERDICT, "{", "is not valid JSON"),
        (VERDICT, "[" * 100_000, "nests deeper"),
        (VERDICT, '{"outcome": NaN}', "NaN is no number"),
        ("profiles/metrics.yml", None, "there is no such file"),
        ("profiles/requirements/nights.yml", "[]", "nights.yml"),
        ("results/night.json", "[]", "holds no JSON object"),
        ("run.json", '{"requirement": {"id": "../../../nights"}}', "is no name"),
        ("run.json", '{"requirement": {}}', "run.json names no requirement profile"),
    ],
)
def test_what_cannot_be_judged_again_is_contradictory_with_the_reason(
    run: Path, name: str, content: str | None, reason: str
) -> None:
    if content is None:
        (run / name).unlink()
    else:
        (run / name).write_text(content, encoding="utf-8")
    found = standing_of(seal(run))
    assert (found.state, found.verdict) == (CONTRADICTORY, None)
    assert found.reason.startswith("cannot be judged again: ") and reason in found.reason


def test_a_malformed_document_contradicts_a_pass_and_is_named(run: Path) -> None:
    (run / "telemetry/summary.json").write_text('{"collectors": 7}', encoding="utf-8")
    found = standing_of(seal(run))
    assert found.state == CONTRADICTORY and found.verdict is not None
    assert found.verdict.outcome == "INADMISSIBLE"
    assert found.verdict.reasons[0].startswith("telemetry/summary.json is not what the bench writes")


def test_a_definition_that_was_changed_since_is_read_anew(run: Path) -> None:
    """The judge knows a file that it read before by its content and not by its path."""
    assert judge_bundle(run).outcome == "PASS"
    profile = run / "profiles" / "requirements" / "nights.yml"
    profile.write_text(profile.read_text(encoding="utf-8").replace('"bound": 9.0', '"bound": 11.0'), encoding="utf-8")
    assert judge_bundle(run).outcome == "FAIL"
    assert judged_again(run).contradicts and not judged_again(conclude(run)).contradicts


def test_a_night_rests_on_nothing_else(tmp_path: Path) -> None:
    bundles = [write_night(tmp_path, NightPlan(number)) for number in range(4)]
    (bundles[0] / MANIFEST).unlink()
    (bundles[1] / "results" / "night.json").write_text("{}", encoding="utf-8")
    (bundles[2] / VERDICT).write_text(json.dumps({**stored(bundles[2]), "reasons": []}), encoding="utf-8")
    seal(bundles[2])
    found = history_of(*read_all([tmp_path]), "server-a")
    assert [night.path for night in found.nights] == [bundles[3]]
    told = {one.name: one.reason.partition(" (")[0] for one in found.left_out}
    assert told[bundles[0].name].startswith("is not sealed")
    assert told[bundles[1].name] == "was altered since it was sealed"
    assert told[bundles[2].name].startswith("contradicts itself")
    for bundle in bundles[:3]:
        with pytest.raises(BenchError):
            read_night(bundle)


def test_a_verdict_that_is_a_pipe_is_not_waited_for(run: Path) -> None:
    (run / VERDICT).unlink()
    os.mkfifo(run / VERDICT)
    assert judged_again(run).contradicts
    assert standing_of(run).state == ALTERED
