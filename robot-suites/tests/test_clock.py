"""The record of the candidate's clock against ours."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.facts import Clock, ClockReading
from daq_bench.bench_model.documents.run import Host
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.host import Survey, clock_of
from daq_bench.rig.run import candidate_session
from daq_bench.rig.run.candidate_session import CandidateSession
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


def test_a_survey_that_took_long_is_followed_by_questions_for_the_clock_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """10.2 s say nothing below 5.1 s; the shortest question of them is left: the one of 2.5 s, then that of 0.4 s."""
    moments = iter([1000.0, 1010.2, 1011.0, 1013.5, 1014.0, 1017.0, 1020.0, 1020.4])
    answers = iter(["1012.5\n", "1015.5\n", "1020.3\n"])
    run = lambda argv, timeout_s: Completed(tuple(argv), 0, next(answers), "")  # noqa: E731
    machine: Any = SimpleNamespace(run=run)
    monkeypatch.setattr(candidate_session, "survey", lambda *_: survey(1003.0))
    monkeypatch.setattr(candidate_session.time, "time", lambda: next(moments))
    session = CandidateSession(Layout(), None, machine, Path("/srv"))  # type: ignore[arg-type]
    found, before_s, after_s = session.survey()
    assert (found.clock_s, before_s, after_s) == (1020.3, 1020.0, 1020.4)


def test_a_survey_that_was_answered_at_once_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([1000.0, 1001.5])
    monkeypatch.setattr(candidate_session, "survey", lambda *_: survey(1000.7))
    monkeypatch.setattr(candidate_session.time, "time", lambda: next(moments))
    session = CandidateSession(Layout(), None, None, Path("/srv"))  # type: ignore[arg-type]
    assert session.survey()[0].clock_s == 1000.7


@pytest.mark.parametrize("said", ["", "soon", "nan\n", "-3\n", "1e400\n"])
def test_a_clock_that_says_no_time_is_one_error(said: str) -> None:
    machine: Any = SimpleNamespace(run=lambda argv, timeout_s: Completed(tuple(argv), 0, said, ""))
    with pytest.raises(BenchError, match="which is no time"):
        clock_of(machine)
