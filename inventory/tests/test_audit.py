"""`make audit` in a short form: some mutants of each class of every scenario; and the audit must see what it looks for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from daq_bench.audit import __main__ as program
from daq_bench.audit import mutants
from daq_bench.audit.good import MAKERS, results_of
from daq_bench.audit.good.case import case_of, evidence_of

from daq_bench.bench_model.base.places import REPOSITORY
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.documents.verdict import PASS
from daq_bench.bench_model.evidence import admissibility, soundness
from daq_bench.bench_model.evidence.soundness import faults
from daq_bench.bench_model.profiles.scenarios import workload_names
from daq_bench.bench_model.verdict.verdict import judge

MOST = 2  # mutants of each class and scenario; `make audit` takes 60
# One has nothing mandatory; the other asks for 10 GB/s, which the good evidence's drive does not do.
NEVER_PASS = {"thread-scan", "snb-100s-nominal"}


def passing() -> Iterator[str]:
    for name in program.scenarios():
        if not name.endswith(("-rehearsal", "-emulated")) and name not in {"dune-snb", *NEVER_PASS}:
            yield name


def test_every_workload_has_good_evidence() -> None:
    """Here, or in a test module of the workload's own, which audits it."""
    assert set(MAKERS) <= set(workload_names())
    tests = Path(__file__).resolve().parents[2] / "robot-suites" / "tests"
    for name in set(workload_names()) - MAKERS.keys():
        assert "program.audit(" in (tests / f"test_{name}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("scenario", program.scenarios())
def test_no_wrong_evidence_passes_and_none_makes_the_judge_fall_over(scenario: str) -> None:
    found = program.audit(scenario, MOST)
    assert (found.wrong, found.broken) == ([], [])
    assert sum(found.tried.values()) > 20


@pytest.mark.parametrize("scenario", list(passing()))
def test_good_evidence_at_full_scale_passes_so_that_a_mutant_could(scenario: str) -> None:
    case = case_of(scenario)
    document = as_document(judge(evidence_of(case, results_of(case)), case.profile, case.metrics))
    assert document["outcome"] == PASS, document["reasons"]


def test_good_evidence_is_what_the_bench_writes() -> None:
    for scenario in program.scenarios():
        case = case_of(scenario)
        assert faults(evidence_of(case, results_of(case))) == {}, scenario


@pytest.mark.parametrize(
    ("where", "name", "kind"),
    [
        (soundness, "faults", "null"),
        (admissibility, "_gaps_of_plan", "last row removed"),
        (admissibility, "_identity", "flipped"),
        (admissibility, "_unrecorded", "document missing"),
    ],
)
def test_the_audit_sees_a_criterion_that_was_dropped(where: object, name: str, kind: str) -> None:
    """A campaign that cannot see is worth nothing."""
    nothing = {} if name == "faults" else ()
    case = case_of("snb-100s")
    good = evidence_of(case, results_of(case))
    tried = [one for one in program.mutants_of(case, good) if one.kind == kind and mutants.rests_on(one)]
    seen = 0
    with patch.object(where, name, lambda *_: nothing):
        for one in mutants.sample(tried, 60, 1):
            try:
                seen += judge(mutants.applied(good, one), case.profile, case.metrics).outcome == PASS
            except Exception:  # a fault that the dropped criterion kept away may now show: it counts as seen as well
                seen += 1
    assert seen > 0


def test_a_seed_chooses_other_places_and_the_same_ones_each_time() -> None:
    case = case_of("snb-100s")
    every = program.mutants_of(case, evidence_of(case, results_of(case)))
    chosen = [[(one.kind, one.place) for one in mutants.sample(every, 2, seed)] for seed in (1, 1, 2)]
    assert chosen[0] == chosen[1] != chosen[2]


def test_a_word_of_a_list_is_replaced_by_each_other_word_of_that_list() -> None:
    case = case_of("saturation")
    good = evidence_of(case, results_of(case))
    place = "repetitions[].target_kind"
    found = [one for one in mutants.of_allowed_words(good) if one.place == place]
    words = {
        mutants.applied(good, one).results["results/saturation.json"]["repetitions"][0]["target_kind"] for one in found
    }
    assert {"raw-device", "scratch-file"} >= words and len(
        words
    ) == 2  # the last row's mutant leaves the first as it is


def test_the_table_is_written_where_the_markers_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{program.BEGIN}\nold\n{program.END}\nafter\n", encoding="utf-8")
    assert program.main(["--most", "1", "--scenarios", "thread-scan", "--write", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "Wrong PASS: **0**" in text and "old" not in text and text.endswith("after\n")
    assert "1/1 thread-scan: good evidence is PASS" in capsys.readouterr().out
    page.write_text("no markers", encoding="utf-8")
    with pytest.raises(SystemExit, match="has no lines"):
        program.main(["--most", "1", "--scenarios", "thread-scan", "--write", str(page)])


CALLS = re.compile(
    r"(?:PYTHONPATH=(\S+) )?\$\(VENV_PYTHON\) (-m (?:daq_bench.audit|daq_bench.simulation|daq_bench.crash_trials)|inventory/studies/\S+)"
)


@pytest.mark.parametrize(("path", "program_called"), sorted(set(CALLS.findall((REPOSITORY / "Makefile").read_text()))))
def test_a_campaign_starts_as_make_starts_it(path: str, program_called: str) -> None:
    """pytest's own search path hid that `make audit` did not start."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said = subprocess.run(
        [sys.executable, *program_called.split(), "--help"],
        cwd=REPOSITORY,
        env={**environment, **({"PYTHONPATH": path} if path else {})},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert said.returncode == 0 and said.stdout.startswith("usage:"), said.stderr
