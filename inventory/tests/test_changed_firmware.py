"""Firmware before and after the load: a change makes the run inadmissible, an older bundle has nothing to say."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from evidence_factory import evidence

from daq_bench.bench_model.evidence.changed_firmware import firmware_findings
from daq_bench.bench_model.evidence.soundness import Sound, faults

PARTS = [
    {"kind": "drive", "name": "S1", "version": "1.0", "source": "smartctl"},
    {"kind": "bios", "name": "system", "version": "AMI 2.1 01/02/2025", "source": "dmi"},
    {"kind": "bmc", "name": "system", "version": "2.07 0x01", "source": "ipmitool"},
    {"kind": "nic", "name": "0000:5e:00.0 port 0", "version": "22.31.1014", "source": "ethtool"},
    {"kind": "nic", "name": "virtio1 port 0", "version": None, "source": "ethtool"},
]
WHEN = ("before the load", "after the load")


def document(after: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    readings = [{"when": WHEN[0], "parts": deepcopy(PARTS)}, {"when": WHEN[1], "parts": deepcopy(after or PARTS)}]
    return {"schema_version": 1, "readings": readings}


def found(told: dict[str, Any] | None) -> list[tuple[str, bool]]:
    run = replace(evidence(3), firmware=told)
    return [(one.text, one.invalidates) for one in firmware_findings(Sound.of(run))]


def changed(number: int, **values: Any) -> list[dict[str, Any]]:
    parts = deepcopy(PARTS)
    parts[number].update(values)
    return parts


def test_the_same_firmware_has_no_finding() -> None:
    assert found(document()) == [] and faults(replace(evidence(3), firmware=document())) == {}
    assert found(document(list(reversed(PARTS)))) == []


@pytest.mark.parametrize(
    ("number", "said"), [(0, "drive S1"), (1, "the BIOS"), (2, "the BMC"), (3, "network card 0000:5e:00.0 port 0")]
)
def test_a_changed_firmware_makes_the_run_inadmissible(number: int, said: str) -> None:
    ((text, invalidates),) = found(document(changed(number, version="9.9")))
    assert invalidates and said in text and "9.9" in text and str(PARTS[number]["version"]) in text


@pytest.mark.parametrize(("number", "invalidates"), [(0, True), (1, False), (2, False), (3, False)])
def test_a_part_that_tells_none_afterwards(number: int, invalidates: bool) -> None:
    for after in (changed(number, version=None), [one for index, one in enumerate(PARTS) if index != number]):
        ((text, invalid),) = found(document(after))
        assert invalid == invalidates and "tells none after it" in text


def test_another_way_of_asking_is_no_change() -> None:
    assert found(document(changed(0, version="1.0 ", source="sysfs"))) == []
    short = document(changed(0, version="1.0RC7", source="smartctl"))
    short["readings"][0]["parts"][0].update(version="1.0R", source="sysfs")
    assert found(short) == []
    assert found(document(changed(0, version="1.0RC7")))[0][1]  # asked in the same way it is one
    assert found(document(changed(0, version="2.0", source="sysfs")))[0][1]


def test_one_part_with_two_versions_is_seen() -> None:
    assert found(document([*PARTS, {**PARTS[0], "version": "1.1"}]))[0][1]
    assert "was not there before" in found(document([*PARTS, {**PARTS[0], "name": "S2"}]))[0][0]


@pytest.mark.parametrize("times", [[], [0], [1], [1, 0], [0, 0], [0, 1, 1]])
def test_readings_that_are_missing_or_twice_there_are_named(times: list[int]) -> None:
    told = document()
    told["readings"] = [told["readings"][one] for one in times]
    ((text, invalidates),) = found(told)
    assert invalidates and "once before and once after" in text


def test_an_older_bundle_keeps_its_verdict_and_a_newer_one_may_not_lack_it() -> None:
    run = evidence(3)
    assert run.firmware is None and list(firmware_findings(Sound.of(run))) == []
    run.telemetry["collectors"].append({**run.telemetry["collectors"][0], "name": "kernel_log"})
    (missing,) = firmware_findings(Sound.of(run))
    broken = replace(run, firmware={"schema_version": 1})
    assert missing.invalidates and list(firmware_findings(Sound.of(broken))) == []


@pytest.mark.parametrize("value", [math.nan, 1, True, [], {}])
def test_what_is_no_version_never_passes(value: Any) -> None:
    assert "facts/firmware.json" in faults(replace(evidence(3), firmware=document(changed(0, version=value))))
