"""Evidence that looks whole and shows nothing: the judge alone does not pass it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from evidence_factory import evidence

from daq_bench.bench_model.evidence.admissibility import findings
from daq_bench.bench_model.evidence.changed_firmware import firmware_findings
from daq_bench.bench_model.evidence.soundness import Sound
from daq_bench.bench_model.profiles.requirements import Conditions
from daq_bench.bench_model.tender.contrasts import Sample, contrast, has_two_modes, judge_family
from daq_bench.bench_model.workloads.plan import EMPTY, INVALIDATES, counting

CONDITIONS = Conditions(1.0, ("filesystem", "raw-drive"))
DRIVE = {"kind": "drive", "name": "S1", "version": "1.0", "source": "smartctl"}
WHEN = ("before the load", "after the load")


def of_clock(*readings: tuple[str, float, float]) -> list[str]:
    told = [{"when": when, "difference_s": by, "uncertainty_s": within} for when, by, within in readings]
    run = replace(evidence(3), clock={"schema_version": 1, "same_clock": False, "readings": told})
    found = findings(Sound.of(run), CONDITIONS)
    return [one.text for one in found if "facts/clock.json" in one.evidence and one.invalidates]


def test_a_clock_that_was_compared_well_has_no_finding() -> None:
    assert of_clock(("before the run", 0.1, 0.2), (WHEN[0], 0.1, 4.9), (WHEN[1], -0.9, 0.2)) == []


def test_an_uncertainty_without_end_hides_no_difference() -> None:
    (text,) = of_clock((WHEN[0], 3600.0, 1e9), (WHEN[1], 0.0, 0.1))
    assert "only to within 1000000000 s before the load" in text


@pytest.mark.parametrize("there", WHEN)
def test_a_clock_that_was_read_once_may_have_jumped_since(there: str) -> None:
    (missing,) = set(WHEN) - {there}
    assert of_clock((there, 0.0, 0.1)) == [f"Nobody compared the candidate's clock with ours {missing}"]


def of_firmware(*parts: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    told = {
        "schema_version": 1,
        "readings": [{"when": when, "parts": own} for when, own in zip(WHEN, parts, strict=True)],
    }
    return [(one.text, one.invalidates) for one in firmware_findings(Sound.of(replace(evidence(3), firmware=told)))]


def test_firmware_that_was_read_of_no_part_shows_nothing() -> None:
    assert of_firmware([], []) == [(f"Firmware: not one part of the candidate was read {when}", False) for when in WHEN]
    assert of_firmware([DRIVE], [DRIVE]) == []


def row(counted: int | None, reason: str | None = None) -> dict[str, Any]:
    return {"bytes_written": 1000, "device_bytes_written": counted, "reason": reason, "admissible": reason is None}


@pytest.mark.parametrize(("counted", "holds"), [(None, True), (950, True), (1400, True), (949, False), (0, False)])
def test_a_row_that_the_device_does_not_confirm_never_counts(counted: int | None, holds: bool) -> None:
    found = list(counting("block size", [("4 KiB", row(counted))]))
    assert found == (
        [] if holds else [(f"block size 4 KiB counts, although the device counted {counted} B of 1000 B", INVALIDATES)]
    )


def test_a_scan_of_which_all_points_were_refused_leaves_nothing_to_miss() -> None:
    refused = [(name, row(0, "the device counted 0 B")) for name in ("4 KiB", "8 KiB")]
    assert list(counting("block size", refused))[-1] == ("not one block size counts: 2 of 2 were refused", EMPTY)
    assert not any(EMPTY in one for one in counting("block size", [refused[0], ("8 KiB", row(1000))]))


GOOD = (10.0, 10.02, 9.98, 10.01, 9.99, 10.0)


def verdict_of(first: tuple[float, ...], second: tuple[float, ...]) -> str:
    return judge_family([contrast(Sample(first), Sample(second), "ratio")], [0.0])[0].verdict


def test_repetitions_that_are_each_good_or_bad_decide_nothing() -> None:
    """One of six runs is slower by a tenth; all others are faster by a fifth."""
    fast = tuple(1.2 * one for one in GOOD)
    assert verdict_of(fast, GOOD) == "first"
    assert has_two_modes([9.9, 10.0, 10.1, 10.0, 7.0]) and not has_two_modes(list(GOOD))
    assert verdict_of((*fast[:5], 11.0), GOOD) == "undecided"
    assert not has_two_modes([1.0, 2.0, 3.0, 4.0]) and not has_two_modes([1.0] * 6)


def test_drives_without_the_device_that_they_make_up_are_no_target() -> None:
    run = evidence(3)
    del run.run["target"]["device"]
    (found,) = [one for one in findings(Sound.of(run), CONDITIONS) if "make up" in one.text]
    assert found.invalidates and found.evidence == ("run.json",)
