"""The saturation section: its words on a drive with a cliff, of one without, and of a pass that cannot tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from daq_bench.audit.good import results_of
from daq_bench.audit.good.case import case_of

from daq_bench.bench_model.workloads.saturation import analysis as saturation
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.section import Lacking, Section, Warned
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.workloads.saturation import section


def made(bundle: Path, change: Callable[[dict[str, Any]], None] = lambda told: None) -> Section:
    told = results_of(case_of("saturation"))[saturation.FILE]
    change(told)
    for file, document in ((saturation.FILE, told), (saturation.NAME, saturation.document(told))):
        (bundle / file).write_text(json.dumps(document), encoding="utf-8")
    found = section(load(bundle))
    assert found is not None
    return found


@pytest.fixture
def bundle(bundle_with: Callable[..., Path]) -> Path:
    return bundle_with()


def text_of(found: Section) -> str:
    return " ".join(part for part in found.parts if isinstance(part, str))


def test_a_run_without_it_has_no_section(bundle: Path) -> None:
    assert section(load(bundle)) is None


def test_a_cliff_is_drawn_and_listed_with_its_interval_and_both_rates(bundle: Path) -> None:
    found = made(bundle)
    (figure,) = [part for part in found.parts if isinstance(part, Figure)]
    assert "The rate falls after" in figure.see and "in 6 of 6 passes" in figure.see
    assert {trace.series for trace in figure.data} >= {"pass 1", "pass 6", "cliff"}
    passes, cliffs = [part for part in found.parts if isinstance(part, Table)][:2]
    assert [row[3] for row in passes.rows] == ["cliff"] * 6
    assert len(cliffs.rows) == 6 and " to " in cliffs.rows[0][2]
    assert "Passes with a cliff: 6; without: 0; that cannot tell: 0" in text_of(found)


def test_a_pass_without_a_cliff_and_one_that_cannot_tell_differ(bundle: Path) -> None:
    def change(told: dict[str, Any]) -> None:
        even, torn = told["repetitions"][:2]
        amounts = np.full(len(even["series"]["t_s"]), even["written_bytes"] // len(even["series"]["t_s"]))
        amounts[-1] += even["written_bytes"] - amounts.sum()
        even["series"]["written_bytes"] = amounts.tolist()
        even["series"]["t_s"] = [float(place + 1) for place in range(len(amounts))]
        even["write_s"] = even["series"]["t_s"][-1]
        torn["series"]["written_bytes"][3] -= 1

    found = made(bundle, change)
    passes = next(part for part in found.parts if isinstance(part, Table))
    assert [row[3] for row in passes.rows][:3] == ["no cliff", "cannot be told", "cliff"]
    (lacking,) = [part for part in found.parts if isinstance(part, Lacking)]
    assert lacking.text.startswith("whether pass 2 has a cliff: the samples of the series add up to")


def test_a_part_of_the_room_is_not_taken_for_the_drive(bundle: Path) -> None:
    def change(told: dict[str, Any]) -> None:
        for one in told["repetitions"]:
            one["capacity_bytes"] *= 4

    for found, share in ((made(bundle), "80"), (made(bundle, change), "20")):  # the scenario itself asks for 80 %
        (warning,) = [part for part in found.parts if isinstance(part, Warned)]
        assert warning.text.startswith(f"only {share}\u202f%")


def test_a_result_that_is_not_there_is_said(bundle: Path) -> None:
    told = results_of(case_of("saturation"))[saturation.FILE]
    (bundle / saturation.FILE).write_text(json.dumps(told), encoding="utf-8")
    found = section(load(bundle))
    assert found is not None
    assert isinstance(found.parts[0], Lacking)
