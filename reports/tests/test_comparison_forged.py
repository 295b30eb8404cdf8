"""A comparison trusts no stored verdict: a forged, unsealed or unreadable bundle is refused with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from comparison_runs import (
    FAST,
    SLOW,
    Roots,
    compared,
)
from evidence_factory import seal
from tender_factory import Run, write

from daq_bench.bench_report.__main__ import main


def forged(root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """The verdict is changed and the bundle sealed again, as anybody can who has no key."""
    document = json.loads((root / "verdict.json").read_text(encoding="utf-8"))
    change(document)
    write(root, "verdict.json", document)
    seal(root)


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "outcome": lambda d: d.update(outcome="PASS", reasons=[], findings=[]),
    "row": lambda d: d["requirements"][0].update(outcome="PASS", decision="met"),
    "value": lambda d: d["requirements"][0].update(measured=99.0),
    "reason": lambda d: d.update(reasons=["All is well"]),
    "finding": lambda d: d.update(findings=[]),
    "row removed": lambda d: d["requirements"].pop(0),
    "row twice": lambda d: d["requirements"].append(d["requirements"][1]),
    "rows in another order": lambda d: d["requirements"].reverse(),
    "no rows": lambda d: d.update(requirements=[]),
    "not a list": lambda d: d.update(requirements={}),
    "null": lambda d: d.update(requirements=None),
    "an invalid number": lambda d: d["requirements"][0].update(margin=float("nan")),
}


@pytest.mark.parametrize("command", ["compare", "lot"])
@pytest.mark.parametrize("which", [0, 1])
def test_a_run_that_cannot_be_read_is_named_among_others(
    runs_of: Roots, capsys: pytest.CaptureFixture[str], tmp_path: Path, which: int, command: str
) -> None:
    """`run.json: cannot be opened` alone does not say which of twelve runs is meant."""
    roots = runs_of(Run("a"), Run("b"))
    file = roots[which] / "run.json"
    file.unlink()
    file.mkdir()
    assert main([command, *map(str, roots), "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {file}: cannot be opened as a plain file")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("made", "says"), [(True, "it is a file"), (False, "there is no such folder")])
def test_a_name_that_is_no_folder_says_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: bool, says: str
) -> None:
    name = tmp_path / "mistyped"
    if made:
        name.touch()
    assert main(["compare", str(name), "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {name} is no run bundle ({says}). Name one: runs/<run-id>")


@pytest.mark.parametrize("command", ["compare", "lot"])
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_verdict_is_refused_with_the_reason(
    runs_of: Roots, capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, command: str
) -> None:
    low = Run("a", scale=0.05, rates=(8.0,), lost=1)  # FAIL, at less load than the profile demands
    roots = runs_of(low, Run("b", scale=0.05))
    forged(roots[0], FORGERIES[name])
    assert main([command, *map(str, roots), "-o", str(tmp_path / "out")]) != 0
    said = capsys.readouterr().err
    if name == "an invalid number":  # is no JSON, before it is a contradiction
        assert "is not valid JSON (NaN is no number)" in said
    else:
        assert (
            f"{roots[0]}: contradicts itself: stored by another version of the bench, or altered; this bench judges: FAIL"
            in said
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["compare", "lot"])
def test_what_is_not_sealed_or_was_added_to_is_refused(
    runs_of: Roots, capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    again = [command, *(map(str, roots := runs_of(Run("a"), Run("b")))), "-o", str(tmp_path / "out")]
    write(roots[0], "results/other.json", {"rate": [1]})
    assert main(again) == 2
    assert "was altered since it was sealed (results/other.json)" in capsys.readouterr().err
    write(roots[0], "telemetry/summary.json", {"collectors": []})
    (roots[0] / "results" / "other.json").unlink()
    assert main(again) == 2
    assert "was altered since it was sealed (telemetry/summary.json)" in capsys.readouterr().err
    (roots[0] / "MANIFEST.sha256").write_text("nothing\n", encoding="utf-8")
    assert main(again) == 2
    assert "is no line of `sha256sum`" in capsys.readouterr().err
    (roots[0] / "MANIFEST.sha256").unlink()
    assert main(again) == 2
    said = capsys.readouterr().err
    assert f"{roots[0]}: is not sealed: it has no MANIFEST.sha256" in said and "measure again" in said
    assert not (tmp_path / "out").exists()


def test_a_bundle_that_cannot_be_judged_again_is_refused(
    runs_of: Roots, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    roots = runs_of(Run("a"), Run("b"))
    (roots[0] / "profiles" / "requirements" / "tender.yml").unlink()
    seal(roots[0])
    assert main(["compare", *map(str, roots), "-o", str(tmp_path / "out")]) == 2
    assert "cannot be judged again:" in capsys.readouterr().err


def test_a_run_that_was_never_judged_is_named_and_not_ranked(runs_of: Roots) -> None:
    roots = runs_of(*FAST[:2], *SLOW[:2], Run("torn"))
    (roots[-1] / "verdict.json").unlink()
    seal(roots[-1])
    assert compared(roots).not_ranked == ["torn"]
