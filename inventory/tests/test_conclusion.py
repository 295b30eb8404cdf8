"""The line that a person reads first: what it says of good, bad, undecided, unmeasured and broken runs."""

from __future__ import annotations

from typing import Any

import pytest

from daq_bench.bench_model.documents.verdict import Finding, Judgement, Verdict
from daq_bench.bench_model.evidence.admissibility import UNKNOWN_DRIVES
from daq_bench.bench_model.evidence.company import Company
from daq_bench.bench_model.verdict.conclusion import conclude

SCALED = Finding("The load is 0.1 of one readout unit", False, ("run.json",))
DEAD = Finding("The agent died", True, ("events.jsonl",))


def row(number: int, decision: str | None, **more: Any) -> Judgement:
    """A count that must be 0; without a decision it was not measured."""
    measured = {"met": 0.0, "missed": 169682.0, "undecided": 0.0, None: None}[decision]
    margin = None if measured is None else -measured
    told = {
        "id": f"SNB-{number:02}", "text": "No superchunk is lost", "metric": "m", "comparison": "equal", "bound": 0.0, "unit": "count",
        "scaled_bound": 0.0, "guard_band": 0.0, "measured": measured, "n": 6, "spread": None, "confidence": None,
        "confidence_interval": None, "interval_method": None, "decision": decision, "more_repetitions": None, "length_factor": None,
        "margin": margin, "margin_percent": None, "severity": "mandatory", "statistic": "max",
        "outcome": {"met": "PASS", "missed": "FAIL"}.get(decision or "", "INADMISSIBLE"),
        "reason": "Not measured: no sensor" if decision is None else str(decision).capitalize(), "evidence": [], "source": "[P]",
    }  # fmt: skip
    return Judgement(**{**told, **more})


def line(
    outcome: Any, rows: list[Judgement], *found: Finding, reasons: tuple[str, ...] = (), rehearsal: bool = False
) -> str:
    told = [*reasons, *(one.text for one in found)]
    return conclude(Verdict(1, outcome, told, 1.0, rehearsal, list(found), rows)).line


MISS = "SNB-03 No superchunk is lost: measured 169682, bound = 0"


COMPANY = "other processes took 90% of all CPUs (stress-ng-cpu 41%, <b>x</b> 30%, ld-linux-x86-64 9%) during daqwriter record 2"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (line("PASS", [row(1, "met"), row(2, "met")]), "PASS: 2 of 2 mandatory requirements met"),
        (line("FAIL", [row(1, "met"), row(3, "missed")], SCALED), f"REHEARSAL FAILED: missed {MISS}"),
        (line("FAIL", [row(3, "missed")], Finding(UNKNOWN_DRIVES, False, ("run.json",))), f"FAIL: missed {MISS}"),
        (
            line("FAIL", [row(4, "missed", measured=3.0, margin=-3.0, comparison="at_most"), row(3, "missed"), row(5, "missed")]),
            "FAIL: missed SNB-04 No superchunk is lost: measured 3, bound ≤ 0 (+2 more missed)",
        ),
        (
            line("FAIL", [row(3, "missed")], reasons=("daqwriter: Input/output error. It lies on nvme0n1",)),
            f"FAIL: missed {MISS}; daqwriter: Input/output error. It lies on nvme0n1",
        ),
        (line("FAIL", [], SCALED, reasons=("daqwriter: Input/output error",)), "FAIL: daqwriter: Input/output error"),
        (
            line("INADMISSIBLE", [row(3, "missed", outcome="INADMISSIBLE")], SCALED, DEAD),
            f"INADMISSIBLE: missed {MISS}; The agent died",
        ),
        (
            line("INADMISSIBLE", [row(3, "missed", outcome="INADMISSIBLE")], SCALED, reasons=(Company(0.9, COMPANY).cause,)),
            f"INADMISSIBLE: missed {MISS}; The machine was not alone: other processes took 90% of all CPUs"
            " (stress-ng-cpu 41%, <b>x</b> 30%, ld-linux-x86-64 9%)",
        ),
        (line("INADMISSIBLE", [row(1, "met")], SCALED, DEAD), "INADMISSIBLE: The agent died"),
        (
            line("INADMISSIBLE", [row(1, "met"), row(2, None)], SCALED),
            "INADMISSIBLE: 1 of 2 mandatory requirements met, 1 not measured: SNB-02 No superchunk is lost: Not measured: no sensor",
        ),
        (
            line("INADMISSIBLE", [row(1, "met"), row(2, None), row(6, "undecided")], SCALED, rehearsal=True),
            "REHEARSAL: 1 of 3 mandatory requirements met, 1 undecided, 1 not measured; it decides nothing about buying",
        ),
        (line("ERROR", [row(3, "missed")], reasons=("playbook provision failed",)), "ERROR: the bench failed: playbook provision failed"),
        (line("INADMISSIBLE", [], reasons=("run.json: no object",)), "INADMISSIBLE: run.json: no object"),
        (line("FAIL", [row(3, "missed"), row(7, "missed", severity="advisory")]), f"FAIL: missed {MISS}"),
    ],
)  # fmt: skip
def test_the_line(said: str, words: str) -> None:
    assert said == words


PULLED = "The target failed in record 3: /srv/daq/run/snb-record-3.daq: write at offset 4066570: Input/output error (errno 5)"
MUCH = "the read-back of record 3 ended as 'damaged': the data are damaged"


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (MUCH, MUCH),
        (f"{PULLED}. It lies on nvme0n1 (SIM X100, serial S1)", "The target failed in record 3"),
        (f"{'a' * 60}. {'b' * 60}: c", "a" * 60),
        ("a" * 300, "a" * 300),  # nothing to end it at: cut words would say something else
    ],
)
def test_a_cause_beside_a_miss_is_short_for_it_stands_in_full_among_the_reasons(cause: str, said: str) -> None:
    assert line("FAIL", [row(3, "missed")], reasons=(cause,)) == f"FAIL: missed {MISS}; {said}"
    assert line("FAIL", [], reasons=(cause,)) == f"FAIL: {cause}"


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (
            "Undecided: repetition 1: 360 samples are too few for their autocorrelation (neighbours correlate by 0.70); a measurement "
            "about 1.3 times as long would decide",
            "; a measurement about 1.3 times as long would decide",
        ),
        ("Undecided: the workload's results contradict themselves; report it as a fault of the bench", ""),
        ("Undecided", ""),
    ],
)
def test_an_undecided_run_begins_with_its_counts_and_says_what_would_decide(reason: str, said: str) -> None:
    rate = {
        "comparison": "at_least",
        "unit": "GB/s",
        "scaled_bound": 9.243,
        "bound": 9.243,
        "text": "It sustains the demand",
    }
    open_ = row(7, "undecided", **rate, measured=9.267, margin=0.024, reason=reason)
    assert line("INADMISSIBLE", [row(1, "met"), open_], SCALED) == (
        "INADMISSIBLE: 1 of 2 mandatory requirements met, 1 undecided: SNB-07 It sustains the demand: measured 9.267 GB/s, "
        f"bound ≥ 9.243 GB/s{said}"
    )


def test_a_count_that_had_to_be_exact_comes_before_a_rate_and_the_worse_rate_before_the_better() -> None:
    rate = {"comparison": "at_least", "unit": "GB/s", "scaled_bound": 10.0, "bound": 10.0}
    rows = [
        row(1, "missed", **rate, measured=9.0, margin=-1.0, margin_percent=-10.0),
        row(2, "missed", **rate, measured=2.0, margin=-8.0, margin_percent=-80.0),
        row(3, "missed"),
    ]
    found = conclude(Verdict(1, "FAIL", ["x"], 1.0, False, [], rows))
    assert [text[:6] for text in found.missed] == ["SNB-03", "SNB-02", "SNB-01"]


def test_a_miss_that_an_older_bench_put_in_other_words_is_no_cause_beside_itself() -> None:
    old = "SNB-03 No superchunk is lost: measured 3, bound <= 0"
    found = conclude(Verdict(1, "FAIL", [old], 1.0, False, [], [row(3, "missed")]))
    assert (found.cause, len(found.missed)) == ("", 1)
