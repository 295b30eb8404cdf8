"""The record of the candidate's clock against ours."""

from __future__ import annotations

from daq_bench.bench_model.documents.facts import Clock, ClockReading
from daq_bench.bench_model.documents.run import Host
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.run.readings import ClockLog


def survey(clock_s: float) -> Survey:
    return Survey(host=Host(), devices=[], target=None, clock_s=clock_s)


def test_a_reading_is_the_difference_to_the_middle_of_the_question_and_half_its_length() -> None:
    log = ClockLog()
    log.note("before the run", survey(1001.5), 1000.0, 1002.0)
    log.note("after the load", survey(2004.0), 2000.0, 2001.0)
    assert log.document(same_clock=False).readings == [
        ClockReading("before the run", 0.5, 1.0),
        ClockReading("after the load", 3.5, 0.5),
    ]


def test_one_machine_has_one_clock() -> None:
    log = ClockLog()
    log.note("before the run", survey(1000.0), 1000.0, 1000.2)
    assert log.document(same_clock=True) == Clock(1, True, [])
