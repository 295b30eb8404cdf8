"""The record of the candidate's clock against ours."""

from __future__ import annotations

from rig.candidate.host import Survey
from rig.run.clock import ClockLog


def survey(clock_s: float) -> Survey:
    return Survey(host={}, devices=[], target=None, clock_s=clock_s)


def test_a_reading_is_the_difference_to_the_middle_of_the_question_and_half_its_length() -> None:
    log = ClockLog()
    log.note("before the run", survey(1001.5), 1000.0, 1002.0)
    log.note("after the load", survey(2004.0), 2000.0, 2001.0)
    assert log.document(same_clock=False)["readings"] == [
        {"when": "before the run", "difference_s": 0.5, "uncertainty_s": 1.0},
        {"when": "after the load", "difference_s": 3.5, "uncertainty_s": 0.5},
    ]


def test_one_machine_has_one_clock() -> None:
    log = ClockLog()
    log.note("before the run", survey(1000.0), 1000.0, 1000.2)
    assert log.document(same_clock=True) == {"schema_version": 1, "same_clock": True, "readings": []}
